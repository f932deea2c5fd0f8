--- The sandbox inside the program: what core/script/sandbox.c calls. io is bind_sandbox.c's table.
local k8s = require "perilune"
local manifests = require "perilune.sandbox.manifests"
local questions = require "perilune.sandbox.questions"
local sandbox = require "perilune.sandbox"

return function(io, address)
	local server = sandbox(io, { address = address })
	local handlers = {
		request = function(...)
			return server:handle(...)
		end,
		alarm = function()
			server.clock:ring()
		end,
		apply = function(path)
			manifests.apply(server, path)
		end,
	}
	for name, answer in pairs(questions) do
		handlers[name] = function(text)
			return answer(server, k8s.json.decode(text))
		end
	end
	return handlers
end
