-- lua/types/testing.lua is what editors know of perilune.testing.
local faults = require "perilune.sandbox.faults"
local files = require "support.files"
local testing = require "perilune.testing"

local text = files.read "lua/types/testing.lua"

local function names(pattern)
	local found = {}
	for name in text:gmatch(pattern) do
		found[name] = true
	end
	return found
end

describe("the stubs of perilune.testing", function()
	it("have all that a cluster has", function()
		local cluster = testing.cluster()
		local known = names "\nfunction cluster:([%l_]+)"
		known.status = true
		for _, has in ipairs { cluster, debug.getmetatable(cluster) } do
			for name in pairs(has) do
				assert.is_true(name == "handle" or name:find "^__" ~= nil or known[name], name)
			end
		end
		for name in pairs(known) do
			assert.truthy(cluster[name], name)
		end
	end)

	it("have all actions and options of a fault", function()
		local order = text:match "@class perilune.testing.order(.-)\n\n"
		local _, actions = pcall(function() faults.new():add { action = "?" } end)
		local _, options = pcall(function() faults.new():add { ["?"] = 1 } end)
		for action in actions:match("there are (.*)"):gmatch "[%l_]+" do
			assert.truthy(order:find("%f[%l]" .. action .. "%f[^%l_]"), action)
		end
		for option in options:match("there are (.*)"):gmatch "[%l_]+" do
			assert.truthy(order:find("@field " .. option .. "%f[^%l_]"), option)
		end
	end)
end)
