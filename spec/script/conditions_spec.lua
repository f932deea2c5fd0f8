-- k8s.conditions: status.conditions of an object.
local k8s = require "perilune"
local testing = require "perilune.testing"

local function ready(status, more)
	local condition = { type = "Ready", status = status }
	for name, value in pairs(more or {}) do
		condition[name] = value
	end
	return condition
end

local function misused(f, pattern)
	local ok, err = pcall(f)
	assert.is_false(ok)
	assert.matches(pattern, err)
end

describe("k8s.conditions.set", function()
	it("makes the list, with the time and the generation", function()
		local object = { metadata = { generation = 3 } }
		local before = math.floor(k8s.now())
		assert.is_true(k8s.conditions.set(object, ready("True", { reason = "Done" })))
		local condition = object.status.conditions[1]
		assert.equal(1, #object.status.conditions)
		assert.equal("Done", condition.reason)
		assert.equal("", condition.message)
		assert.equal(3, condition.observedGeneration)
		local year, month, day, hour, min, sec = condition.lastTransitionTime:match "^(%d+)-(%d%d)-(%d%d)T(%d%d):(%d%d):(%d%d)Z$"
		local noon = os.time(os.date("!*t", before))
		local told = os.time { year = year, month = month, day = day, hour = hour, min = min, sec = sec }
		assert(told >= noon and told <= noon + 5, condition.lastTransitionTime)
		assert.equal("[]", k8s.json.encode(k8s.array {}))
		assert.matches('^%[{', k8s.json.encode(object.status.conditions))
	end)

	it("moves the time with the status alone", function()
		local cluster = testing.cluster()
		local object = { metadata = { generation = 1 } }
		k8s.conditions.set(object, ready "False")
		local first = object.status.conditions[1].lastTransitionTime
		cluster:advance(10)
		assert.is_true(k8s.conditions.set(object, ready("False", { message = "still not" })))
		assert.equal(first, object.status.conditions[1].lastTransitionTime)
		assert.is_true(k8s.conditions.set(object, ready "True"))
		local second = object.status.conditions[1].lastTransitionTime
		assert.are_not.equal(first, second)
		assert.equal("", object.status.conditions[1].message)
		cluster:advance(10)
		object.metadata.generation = 2
		assert.is_true(k8s.conditions.set(object, ready "True"))
		assert.equal(second, object.status.conditions[1].lastTransitionTime)
		assert.equal(2, object.status.conditions[1].observedGeneration)
		k8s.conditions.set(object, ready("False", { lastTransitionTime = "2020-01-01T00:00:00Z", observedGeneration = 7 }))
		assert.equal("2020-01-01T00:00:00Z", object.status.conditions[1].lastTransitionTime)
		assert.equal(7, object.status.conditions[1].observedGeneration)
	end)

	it("says whether anything changed, also where a server leaves fields out", function()
		local object = {}
		assert.is_true(k8s.conditions.set(object, ready "True"))
		assert.is_false(k8s.conditions.set(object, ready "True"))
		object.status.conditions[1].message = nil
		assert.is_false(k8s.conditions.set(object, ready "True"))
		object.metadata = { generation = 5 }
		assert.is_false(k8s.conditions.set(object, ready "True"))
		assert.is_true(k8s.conditions.set(object, ready("True", { observedGeneration = 5 })))
		assert.is_true(k8s.conditions.set(object, ready("True", { reason = "Other" })))
	end)

	it("keeps the order, the others and what it does not know", function()
		local object = { status = { phase = "x", conditions = k8s.array {
			{ type = "A", status = "True" }, { type = "Ready", status = "True", probe = 5 }, { type = "B", status = "True" },
		} } }
		k8s.conditions.set(object, ready "False")
		k8s.conditions.set(object, { type = "C", status = "Unknown" })
		local types = {}
		for i, condition in ipairs(object.status.conditions) do
			types[i] = condition.type
		end
		assert.same({ "A", "Ready", "B", "C" }, types)
		assert.equal(5, object.status.conditions[2].probe)
		assert.equal("x", object.status.phase)
	end)

	it("neither keeps nor changes the table that it was given", function()
		local object, condition = {}, ready "True"
		k8s.conditions.set(object, condition)
		assert.same(ready "True", condition)
		condition.status = "False"
		assert.is_true(k8s.conditions.is_true(object, "Ready"))
	end)

	it("takes null for nothing", function()
		for _, text in ipairs { '{"status":null}', '{"status":{"conditions":null}}' } do
			local object = k8s.json.decode(text)
			assert.is_nil(k8s.conditions.get(object, "Ready"))
			assert.is_true(k8s.conditions.set(object, ready "True"))
			assert.is_true(k8s.conditions.is_true(object, "Ready"))
		end
	end)

	it("refuses misuse at the script's line", function()
		for message, misuse in pairs {
			["status must be"] = function() k8s.conditions.set({}, { type = "Ready", status = true }) end,
			["the type of a condition"] = function() k8s.conditions.set({}, { status = "True" }) end,
			["takes an object"] = function() k8s.conditions.get(nil, "Ready") end,
			["takes a condition"] = function() k8s.conditions.set({}, "Ready") end,
			["did you mean 'is_true'"] = function() return k8s.conditions.istrue end,
		} do
			misused(misuse, "conditions_spec.lua:%d+: .*" .. message)
		end
	end)
end)

describe("k8s.conditions.get and is_true", function()
	local object = { status = { conditions = { { type = "Ready", status = "True" }, { type = "Broken", status = "False" } } } }

	it("find a condition by its type", function()
		assert.equal(object.status.conditions[2], k8s.conditions.get(object, "Broken"))
		assert.is_nil(k8s.conditions.get(object, "Other"))
		assert.is_nil(k8s.conditions.get({}, "Ready"))
		assert.is_true(k8s.conditions.is_true(object, "Ready"))
		assert.is_false(k8s.conditions.is_true(object, "Broken"))
		assert.is_false(k8s.conditions.is_true({}, "Ready"))
	end)
end)
