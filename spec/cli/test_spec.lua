local cli = require "support.cli"
local files = require "support.files"
local manifests = require "support.manifests"

describe("perilune test", function()
	local folder = files.folder()
	local empty = files.write(folder .. "/empty_spec.lua", 'describe("nothing", function() end)')
	local one = files.write(folder .. "/one_spec.lua", 'it("holds", function() end)')
	local later = files.write(folder .. "/later_spec.lua", 'pending "is to come"')

	local function fails_for_want_of_tests(...)
		local code, _, err = cli.run { "test", "-o", "plainTerminal", ... }
		assert.equal(1, code)
		assert.truthy(err:find("no test ran", 1, true), err)
	end

	local function passes(...)
		local code, _, err = cli.run { "test", "-o", "plainTerminal", ... }
		assert.equal(0, code, err)
		assert.is_nil(err:find("no test ran", 1, true))
	end

	it("fails where no test is", function()
		fails_for_want_of_tests(empty)
		fails_for_want_of_tests("--list", empty)
	end)

	it("fails where a filter leaves none", function()
		fails_for_want_of_tests("--filter", "hodls", one)
		fails_for_want_of_tests("--exclude-tags=x", "--filter-out", "holds", one)
		fails_for_want_of_tests("--list", "--tags=none", one)
	end)

	it("passes where one file of several has tests, or one is only listed or pending", function()
		passes(empty, one)
		passes("--list", one)
		passes(later)
	end)

	it("writes the role that scripts under test needed, of all files", function()
		local function spec(name, script)
			local path = files.write(("%s/%s.lua"):format(folder, name), script)
			return files.write(("%s/%s_spec.lua"):format(folder, name), ([[
				it("runs", function()
					local cluster = require("perilune.testing").cluster()
					cluster:load %q
					cluster:settle()
				end)
			]]):format(path))
		end
		local watches = spec("watches", 'require("perilune").informer { apiVersion = "v1", kind = "Pod" }')
		local calls = spec("calls", [[
			local k8s = require "perilune"
			k8s.on_synced(function() k8s.delete { apiVersion = "batch/v1", kind = "Job", namespace = "shop", name = "x" } end)
		]])
		local role = folder .. "/role.yaml"
		passes(watches, calls, "--rbac", role)
		assert.same({
			{ apiGroups = { "" }, resources = { "pods" }, verbs = { "list", "watch" } },
			{ apiGroups = { "batch" }, resources = { "jobs" }, verbs = { "delete" } },
		}, manifests.find(manifests.read(role), "ClusterRole").rules)
		local code, _, err = cli.run { "test", "-o", "plainTerminal", one, "--rbac", folder .. "/none/role.yaml" }
		assert.equal(1, code)
		assert.truthy(err:find("--rbac: " .. folder .. "/none/role.yaml", 1, true), err)
	end)

	it("says only what failed where a file does", function()
		local broken = files.write(folder .. "/broken_spec.lua", "error 'no'")
		local code, out, err = cli.run { "test", "-o", "plainTerminal", broken }
		assert.equal(1, code)
		assert.is_nil((out .. err):find("no test ran", 1, true))
	end)
end)
