local exposition = require "support.exposition"
local host = require "support.host"

local SECONDS = 20
local MIB = 1024 * 1024

describe("a script's garbage", function()
	local run

	after_each(function()
		run:stop()
	end)

	it("is collected while nothing happens", function()
		run = host.start { pages = true, flags = { "--sandbox", "--grace-period", "0s" }, script = [[
			local function fill()
				local texts = {}
				for i = 1, 16 do texts[i] = i .. ("x"):rep(1024 * 1024) end
				print(collectgarbage "count" > 16 * 1024)
			end
			k8s.main(function() fill() k8s.sleep(1000) end)
		]] }
		assert.equal("true", run:line())
		run.child:await(SECONDS, "the memory is given back", function()
			local _, page = run:page "/metrics"
			return exposition.read(page):value("perilune_script_memory_bytes", { script = "script" }) < MIB or nil
		end)
	end)
end)
