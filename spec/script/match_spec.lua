-- Patterns: what scripts' string functions find and replace is what LuaJIT's own do.
local process = require "support.process"
local seed = require "support.seed"

local SECONDS = 600

local function agree(count)
	local said = seed()
	local command = { process.driver "script_driver", "strings", "spec/support/match_judge.lua", math.random(2 ^ 30), count, seconds = SECONDS }
	local code, out, err = process.run(command)
	assert.equal(0, code, said .. ": " .. err)
	local matches, errors = out:match "(%d+) matches, (%d+) errors"
	assert(tonumber(matches) > count / 4 and tonumber(errors) > count / 20, "too few cases say something: " .. out)
end

describe("find, match, gmatch and gsub of scripts", function()
	it("do what LuaJIT's do, errors included", function()
		agree(20000)
	end)

	it("do what LuaJIT's do, errors included, a million times #soak", function()
		agree(1000000)
	end)
end)
