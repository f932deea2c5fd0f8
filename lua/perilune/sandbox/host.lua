--- The sandbox inside the program: what core/script/sandbox.c calls. io is bind_sandbox.c's table.
local manifests = require "perilune.sandbox.manifests"
local sandbox = require "perilune.sandbox"

return function(io, address)
	local server = sandbox(io, { address = address })
	return {
		request = function(...)
			return server:handle(...)
		end,
		alarm = function()
			server.clock:ring()
		end,
		apply = function(path)
			manifests.apply(server, path)
		end,
		is_idle = function()
			return server:is_idle()
		end,
	}
end
