local exposition = require "support.exposition"
local host = require "support.host"

local SECONDS = 20
local MIB = 1024 * 1024

describe("a script's garbage", function()
	local run

	after_each(function()
		run:stop()
	end)

	local function start(script, ...)
		run = host.start { pages = true, flags = { "--sandbox", "--grace-period", "0s", ... }, script = [[
			local function fill(size)
				local texts = {}
				for i = 1, size do texts[i] = i .. ("x"):rep(1024 * 1024) end
				return texts
			end
		]] .. script }
	end

	-- Nothing enters the script meanwhile.
	local function await_memory_below(mib)
		run.child:await(SECONDS, ("less than %d MiB"):format(mib), function()
			local _, page = run:page "/metrics"
			return exposition.read(page):value("perilune_script_memory_bytes", { script = "script" }) < mib * MIB or nil
		end)
	end

	it("is collected while nothing happens", function()
		start [[k8s.main(function() print(#fill(16)) k8s.sleep(1000) end)]]
		assert.equal("16", run:line())
		await_memory_below(1)
	end)

	it("is collected where the script once held much more", function()
		start [[
			local held = fill(24)
			k8s.main(function()
				k8s.sleep(0.2)
				held = nil
				collectgarbage()
				k8s.sleep(0)
				print(#fill(12))
				k8s.sleep(1000)
			end)
		]]
		assert.equal("12", run:line())
		await_memory_below(1)
	end)

	it("has a finalizer that fails logged, and those behind it called", function()
		start([[
			k8s.main(function()
				for i = 1, 3 do
					local proxy = newproxy(true)
					getmetatable(proxy).__gc = function() error("finalizer " .. i) end
				end
				fill(4)
				k8s.sleep(1000)
			end)
		]], "--unsafe-libs")
		for i = 1, 3 do
			assert.matches("a finalizer failed: .*finalizer " .. i, run:log_line("finalizer " .. i))
		end
	end)
end)
