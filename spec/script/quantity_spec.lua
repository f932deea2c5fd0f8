-- k8s.quantity: amounts as the API server reads and writes them. Its own canonical forms: spec/script/cluster/quantity_spec.lua.
local k8s = require "perilune"
local quantity = k8s.quantity

local function text(value)
	return tostring(assert(quantity(value)))
end

local function misused(f, pattern)
	local ok, err = pcall(f)
	assert.is_false(ok)
	assert.matches(pattern, err)
end

describe("k8s.quantity", function()
	it("writes the largest suffix that leaves a whole number", function()
		for from, to in pairs {
			["0"] = "0", ["0Gi"] = "0", ["-0"] = "0", ["1"] = "1", ["+1"] = "1", ["1000m"] = "1", ["1500m"] = "1500m", ["1.5"] = "1500m",
			["0.5Gi"] = "512Mi", ["1.5Gi"] = "1536Mi", ["1024Mi"] = "1Gi", ["1000k"] = "1M", ["100Ki"] = "100Ki", ["512"] = "512",
			["0.5Ki"] = "512", ["-1Ki"] = "-1Ki", ["1.1Ki"] = "1126400m", ["1e3"] = "1e3", ["1E3"] = "1e3", ["12e2"] = "1200", ["1E"] = "1E",
			["12e-4"] = "1200e-6", [".5"] = "500m", ["5."] = "5", ["0.000000001"] = "1n", ["1Ei"] = "1Ei", ["007"] = "7", ["3000000000u"] = "3k",
		} do
			assert.equal(to, text(from), from)
		end
	end)

	it("rounds away from zero what is finer than a nano", function()
		assert.equal("1n", text "0.1n")
		assert.equal("-1n", text "-0.0000000001")
		assert.equal("0", text "0.0000000000")
		assert.equal("2n", text "1.000000001n")
	end)

	it("takes numbers, int64 and itself", function()
		assert.equal("2", text(2))
		assert.equal("100m", text(0.1))
		assert.equal("9223372036854775807", text(9223372036854775807LL))
		assert.equal("-1500m", text(-1.5))
		assert.equal("1G", text(1e9))
		assert.equal("100E", text(1e20))
		local one = quantity "1"
		assert.equal(one, quantity(one))
	end)

	it("returns nil and why for what is none", function()
		for _, bad in ipairs { "", " 1", "1 ", "1K", "1gi", "Gi", ".", "-", "1.2.3", "1e", "1e+", "0x10", "1KI", "--1", "1e99", "1e1000", "NaN",
			("9"):rep(60), ("1"):rep(1000), "1\0", 0 / 0, 1 / 0, true, {}, print, k8s.null } do
			local value, err = quantity(bad)
			assert.is_nil(value, tostring(bad))
			assert.equal("Invalid", err.reason)
			assert.matches("is no quantity", tostring(err))
			assert(#tostring(err) < 400)
		end
		local value, err = quantity(nil)
		assert.is_nil(value)
		assert.matches("nil", tostring(err))
	end)

	it("compares exactly, whatever the suffixes", function()
		assert.is_true(quantity "1Gi" == quantity "1024Mi")
		assert.is_true(quantity "1" ~= quantity "1001m")
		assert.is_true(quantity "1G" < quantity "1Gi")
		assert.is_true(quantity "-1" < quantity "1m")
		assert.is_true(quantity "-2" < quantity "-1")
		assert.is_true(quantity "2" <= quantity "2000m")
		assert.is_true(quantity "9007199254740993" > quantity "9007199254740992")
		assert.is_false(quantity "1" == "1")
	end)

	it("adds, takes away and multiplies exactly, in the format of the left one", function()
		assert.equal("1536Mi", tostring(quantity "1Gi" + quantity "512Mi"))
		assert.equal("9007199254740993", tostring(quantity "9007199254740992" + quantity "1"))
		assert.equal("300m", tostring(quantity "100m" + quantity "0.2"))
		assert.equal("2Gi", tostring(quantity(0) + quantity "2Gi"))
		assert.equal("-500m", tostring(quantity "1" - quantity "1500m"))
		assert.equal("0", tostring(quantity "1Gi" - quantity "1Gi"))
		assert.equal("-1Gi", tostring(quantity "-2Gi" - quantity "-1Gi"))
		assert.equal("3Gi", tostring(quantity "1.5Gi" * 2))
		assert.equal("3Gi", tostring(2 * quantity "1.5Gi"))
		assert.equal("100m", tostring(quantity "1" * 0.1))
		assert.equal("-150m", tostring(quantity "100m" * -1.5))
		assert.equal("1Gi", tostring(quantity "1Gi" * 1LL))
	end)

	it("keeps to the rules of numbers, whatever they are", function()
		local seed = os.time()
		math.randomseed(seed)
		for i = 1, 500 do
			local a, b, factor = math.random(-1e9, 1e9), math.random(-1e9, 1e9), math.random(-1000, 1000)
			local x, y = quantity(("%dm"):format(a)), quantity(("%dm"):format(b))
			local place = ("seed %d, round %d: %d and %d"):format(seed, i, a, b)
			assert.equal(quantity(("%dm"):format(a + b)), x + y, place)
			assert.equal(quantity(("%dm"):format(a - b)), x - y, place)
			assert.equal(quantity(("%dm"):format(a * factor)), x * factor, place)
			assert.equal(a < b, x < y, place)
			assert.equal(a <= b, x <= y, place)
			assert.equal(x, quantity(tostring(x)), place)
			assert.equal(tonumber(("%de-3"):format(a)), x:number(), place)
		end
	end)

	it("gives a number", function()
		assert.equal(1.5 * 2 ^ 30, quantity("1.5Gi"):number())
		assert.equal(0.1, quantity("100m"):number())
		assert.equal(-1e-9, quantity("-1n"):number())
		assert.equal(0, quantity("0"):number())
	end)

	it("is its text in JSON and YAML", function()
		assert.equal('{"memory":"1536Mi"}', k8s.json.encode { memory = quantity "1Gi" + quantity "512Mi" })
		assert.matches("1536Mi", k8s.yaml.encode { memory = quantity "1.5Gi" })
	end)

	it("refuses misuse at the script's line", function()
		local one = quantity "1"
		for message, misuse in pairs {
			["added to a quantity, not a string"] = function() return one + "1" end,
			["subtracted from a quantity, not a number"] = function() return 1 - one end,
			["multiplied by a number, not by 1"] = function() return one * one end,
			["has no 'value'"] = function() return one.value end,
			["with a colon"] = function() return one.number() end,
			["too large"] = function() return one * 1e30 * 1e30 end,
		} do
			misused(misuse, "quantity_spec.lua:%d+: .*" .. message)
		end
	end)
end)
