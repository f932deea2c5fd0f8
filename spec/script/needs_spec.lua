-- k8s.needs: rights that a script declares; and k8s.state, its own data.
local cli = require "support.cli"
local files = require "support.files"
local k8s = require "perilune"

local function check(text)
	local path = files.write(files.folder() .. "/script.lua", 'local k8s = require "perilune"\n' .. text)
	return cli.run { "check", path }
end

describe("k8s.needs", function()
	it("is printed by check, rule for rule", function()
		local code, out, err = check [[
			k8s.needs { { apiGroups = "", resources = { "pods", "pods/status" }, verbs = { "get", "patch" } } }
			k8s.needs {
				{ apiGroups = { "apps", "example.com" }, resources = "deployments", verbs = "get" },
				{ apiGroups = { "" }, resources = { "events" }, verbs = { "create" } },
			}
		]]
		assert.equal(0, code, err)
		assert.truthy(out:find('  needs get, patch of pods, pods/status in ""\n  needs get of deployments in "apps, example.com"\n'
			.. '  needs create of events in ""\n', 1, true), out)
	end)

	it("refuses misuse at the script's line", function()
		local rule = { apiGroups = "", resources = "pods", verbs = "get" }
		local function with(name, value)
			local changed = { apiGroups = "", resources = "pods", verbs = "get" }
			changed[name] = value
			return changed
		end
		for message, rules in pairs {
			["takes a list of rules"] = rule,
			["unknown option 'resource', did you mean 'resources'"] = { rule, with("resource", "pods") },
			["verbs must be a list of strings"] = { { apiGroups = "", resources = "pods" } },
			["resources must be a list of strings"] = { with("resources", {}) },
			["'verbs' must be a string or a list of strings"] = { with("verbs", { 5 }) },
			["takes a table of options, not a string"] = { "pods" },
		} do
			local ok, err = pcall(k8s.needs, rules)
			assert.is_false(ok, message)
			assert.matches("needs_spec.lua:%d+: .*" .. message, err)
		end
	end)

	it("refuses rules of more than a megabyte, however small the table that lists them", function()
		local long, rules, words = ("x"):rep(1000000), {}, {}
		for i = 1, 2000 do
			words[i] = long
		end
		for i = 1, 2000 do
			rules[i] = { apiGroups = "", resources = words, verbs = "get" }
		end
		local ok, err = pcall(k8s.needs, rules)
		assert.is_false(ok)
		assert.matches("more than a megabyte of rules", err)
	end)
end)

describe("k8s.state", function()
	it("is a table of the script's own, which can't be replaced", function()
		k8s.state.count = (k8s.state.count or 0) + 1
		assert.equal(1, k8s.state.count)
		assert.equal(k8s.state, require("perilune").state)
		k8s.state.count = nil
		assert.is_nil(next(k8s.state))
		local ok, err = pcall(function() k8s.state = {} end)
		assert.is_false(ok)
		assert.matches("can't be changed", err)
	end)
end)
