-- specs: `perilune test`: busted's own runner as a k8s.main, so that specs may call the API and yield.
--
-- require "perilune.specs"(arguments, set_exit_code, rbac) registers it;
-- rbac: the file for the rights that scripts needed, or nil; the exit code is busted's: 0 when all passed, else 1. It is 1 too where
-- there was no test at all, to run or to list: a misspelt filter must not look like success.

local k8s = require "perilune"
local make_busted = require "busted.core"
local rights = require "perilune.testing.rights"
local scope = require "perilune.testing.scope"

local EXIT = {} -- thrown in place of os.exit, so that the host can end in order

local tests = 0

-- A subscriber would not do: `--list` keeps tests from those.
local function count_tests(busted)
	local publish = busted.publish
	busted.publish = function(channel, ...)
		if channel[1] == "test" and channel[2] == "start" then
			tests = tests + 1
		end
		return publish(channel, ...)
	end
end

package.loaded["busted.core"] = function()
	local busted = make_busted()
	scope.watch(busted)
	count_tests(busted)
	return busted
end

-- The exit code, once more.
local function write_rights(path, code)
	local written, problem = rights.write(path)
	if not written then
		io.stderr:write("perilune test: --rbac: ", tostring(problem), "\n")
		return 1
	end
	return code
end

return function(arguments, set_exit_code, rbac)
	k8s.main(function()
		local code
		arg = arguments
		os.exit = function(status)
			code = (status == true or status == nil or status == 0) and 0 or 1
			error(EXIT, 0)
		end
		local ok, problem = xpcall(function()
			require "busted.runner" { standalone = false }
		end, function(problem)
			return problem == EXIT and problem or debug.traceback(tostring(problem), 2)
		end)
		if not ok and problem ~= EXIT then
			io.stderr:write(problem, "\n")
			code = 1
		end
		io.stdout:flush()
		code = code or 0
		if code == 0 and tests == 0 then
			io.stderr:write "perilune test: no test ran: the files have none, or none that --filter, --tags and the like let through\n"
			code = 1
		end
		set_exit_code(rbac and write_rights(rbac, code) or code)
	end)
end
