-- Whose period a handler's resync has: its own, else the informer's, else the factory's.
local host = require "support.host"

describe("a resync", function()
	it("is the handler's own, else the informer's, else the factory's; 0 is none", function()
		local run = host.start { flags = { "--sandbox" }, script = [[
			local factory, quiet = k8s.factory { resync = 1 }, k8s.factory()
			local MAPS = { apiVersion = "v1", kind = "ConfigMap", label_selector = "mine" }
			local function maps(from, resync)
				MAPS.resync = resync
				return from:informer(MAPS)
			end
			local seen = {}
			local function count(name, informer, resync)
				seen[name] = 0
				informer:add_event_handler { resync = resync, update = function(_, event)
					if event.resync then seen[name] = seen[name] + 1 end
				end }
			end
			count("factory", maps(factory))
			count("informer", maps(quiet, 1))
			count("handler", maps(quiet), 1)
			count("none of the factory", maps(factory, 0))
			count("none of the informer", maps(quiet, 1), 0)
			count("none at all", maps(quiet))
			k8s.main(function()
				k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m", namespace = "default", labels = { mine = "" } } }
			end)
			k8s.every(0.05, function()
				if seen.factory < 2 or seen.informer < 2 or seen.handler < 2 or seen.told then return end
				seen.told = 1
				for name, times in pairs(seen) do if times == 0 then print(name) end end
				print "end"
			end)
		]] }
		local lines = run:lines_until "end"
		table.sort(lines)
		assert.same({ "none at all", "none of the factory", "none of the informer" }, lines)
		run:stop()
	end)
end)
