local cli = require "support.cli"
local files = require "support.files"

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

	it("says only what failed where a file does", function()
		local broken = files.write(folder .. "/broken_spec.lua", "error 'no'")
		local code, out, err = cli.run { "test", "-o", "plainTerminal", broken }
		assert.equal(1, code)
		assert.is_nil((out .. err):find("no test ran", 1, true))
	end)
end)
