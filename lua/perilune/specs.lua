-- specs: `perilune test`: busted's own runner as a k8s.main, so that specs may call the API and yield.
--
-- require "perilune.specs"(arguments) registers it; the exit code is busted's: 0 when all passed, else 1.

local k8s = require "perilune"
local make_busted = require "busted.core"
local scope = require "perilune.testing.scope"

local EXIT = {} -- thrown in place of os.exit, so that the host can end in order

package.loaded["busted.core"] = function()
	local busted = make_busted()
	scope.watch(busted)
	return busted
end

return function(arguments, set_exit_code)
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
		set_exit_code(code or 0)
	end)
end
