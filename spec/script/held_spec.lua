-- event.old holds an object of the cache, which Lua's collector sees nothing of.
local cache = require "support.cache"
local host = require "support.host"
local script = require "support.script"

-- Counts the events that Lua has not let go of yet.
local SCRIPT = [[
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
	local held, kept = setmetatable({}, { __mode = "v" }), {}
	maps:add_event_handler { fields = "metadata.name", update = function(map, event)
		held[map.metadata.resourceVersion] = event
		if keeps then kept[#kept + 1] = event end
		local count = 0
		for _ in pairs(held) do count = count + 1 end
		print(map.metadata.resourceVersion, count)
	end }
]]

describe("the old objects of events", function()
	local text, updates = ("x"):rep(1024 * 1024), 40
	local run

	after_each(function()
		run:stop()
	end)

	-- How many events the script held at each update of a large object.
	local function most_held(keeps)
		local members = { data = { text = text } }
		local server, most = script.start(), 0
		run = host.start { kubeconfig = cache.config(server.url), script = "local keeps = " .. keeps .. "\n" .. SCRIPT, pages = true }
		server:discover()
		server:list({ resourceVersion = "0", limit = "500" }):items({ script.object("large", 10, members) }, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		for version = 11, 10 + updates do
			stream:event("MODIFIED", "large", version, members)
			local seen, count = run:line():match "^(%d+)\t(%d+)$"
			assert.equal(tostring(version), seen)
			most = math.max(most, tonumber(count))
		end
		return most
	end

	it("are let go of after a few MiB of them", function()
		local most = most_held "false"
		assert.is_true(most <= 10, most .. " at once")
	end)

	it("stay while the script holds their events", function()
		assert.equal(updates, most_held "true")
	end)
end)
