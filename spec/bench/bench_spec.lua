local cjson = require "cjson"
local process = require "support.process"

describe("scripts/bench", function()
	it("has Perilune see each update of its replay server #slow", function()
		local code, out, err = process.run { "scripts/bench", "smoke", seconds = 300, env = { PERILUNE_BUILD = process.build() } }
		if code == 3 then
			pending("no Go to build the server with")
			return
		end
		assert(code == 0, err)
		local seen = {}
		for line in out:gmatch "[^\n]+" do
			local what = cjson.decode(line)
			seen[what.program] = what
		end
		for _, program in ipairs { "fields", "whole", "key", "configmaps", "secrets", "nodes", "reports" } do
			assert.same({ program = program, objects = 41, handled = 40 }, seen[program])
		end
	end)
end)
