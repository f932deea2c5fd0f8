-- Handlers that fail or are slow, and lists that break off: what they must not do to anybody else.
local cli = require "support.cli"
local cluster = require "support.cluster"
local files = require "support.files"
local host = require "support.host"
local script = require "support.script"

local FIRST = { resourceVersion = "0", limit = "500" }
local MAPS = [[
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
]]

describe("a handler #slow", function()
	local server, run

	local function start(text)
		server = script.start()
		run = host.start { kubeconfig = cli.kubeconfig(files.folder(), server.url), script = MAPS .. text, pages = true }
		server:discover()
	end

	after_each(function()
		run:stop()
	end)

	local function watch_from(version)
		local stream = server:watch(version)
		stream:open()
		return stream
	end

	local function handlers()
		return run:status().scripts[1].handlers
	end

	it("that throws on each initial object leaves the barrier open and the registration synced, each error counted", function()
		start [[
			local registration = maps:add_event_handler { add = function(map) error("no " .. map.metadata.name) end }
			k8s.on_synced(function() print "open" end)
			k8s.every(0.05, function() if registration:has_synced() then print "synced" end end)
		]]
		server:list(FIRST):items({ script.object("a", 5), script.object("b", 6), script.object("c", 7) }, { version = "10" })
		watch_from "10"
		assert.equal("open", run:line())
		assert.equal("synced", run:line())
		run:await_page("/readyz", 200)
		assert.equal(3, run:status().scripts[1].errors)
		for _, name in ipairs { "a", "b", "c" } do
			run:log_line("no " .. name)
		end
	end)

	it("that sleeps while one object changes 10,000 times holds one waiting update at most, and ends with the last state", function()
		start [[
			maps:add_event_handler { every_event = true, update = function(map)
				if map.data.turn == "10000" then print "all have come" end
			end }
			k8s.on_synced(function()
				local calls = 0
				maps:add_event_handler { update = function(map, event)
					calls = calls + 1
					print(event.old.data.turn, map.data.turn)
					k8s.sleep(1)
				end }
				print "ready"
			end)
		]]
		server:list(FIRST):items({ script.object("a", 5, { data = { turn = "0" } }) }, { version = "10" })
		local stream = watch_from "10"
		assert.equal("ready", run:line())
		local most = 0
		for turn = 1, 10000 do
			stream:event("MODIFIED", "a", 10 + turn, { data = { turn = tostring(turn) } })
			most = math.max(most, turn % 1000 == 0 and handlers()[2].depth or 0)
		end
		local told, last = {}, "0"
		while last ~= "10000" do
			local line = run:line()
			local old, new = line:match "^(%d+)\t(%d+)$"
			if new then
				assert.equal(last, old)
				told[#told + 1], last = new, new
			else
				assert.equal("all have come", line)
			end
			most = math.max(most, handlers()[2].depth)
		end
		assert.equal(1, most)
		assert(#told < 100, #told .. " calls")
		cluster.await(20, "nothing waits", function()
			return handlers()[2].depth == 0
		end)
	end)
end)

describe("a list whose second page fails", function()
	it("deletes nothing", function()
		local server = script.start()
		local run = host.start { kubeconfig = cli.kubeconfig(files.folder(), server.url), script = [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", page_size = 2 }
			local function tell(map, event) print(event.type, map.metadata.name, map.metadata.resourceVersion) end
			maps:add_event_handler { add = tell, update = tell, delete = tell }
		]] }
		local FIRST_PAGE = { resourceVersion = "0", limit = "2" }
		local items = { script.object("a", 5), script.object("b", 6), script.object("c", 7) }
		server:discover()
		server:list(FIRST_PAGE):items(items, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		for _, name in ipairs { "a", "b", "c" } do
			assert.equal("add\t" .. name, run:line():match "^add\t%a")
		end
		stream:error(410, "Expired", "too old")
		stream:finish()
		server:list({ resourceVersion = "10", limit = "2" }):items({ script.object("a", 21) }, { version = "30", continue = "x" })
		server:list({ continue = "x", limit = "2" }):status(500, "InternalError", "no")
		server:list({ resourceVersion = "10", limit = "2" }):items({ script.object("a", 21), items[2] }, { version = "31", continue = "y" })
		server:list({ continue = "y", limit = "2" }):items({ items[3] }, { version = "31" })
		server:watch("31"):open()
		assert.equal("update\ta\t21", run:line())
		run:stop()
		assert.equal("update\ta\t21", run.child:stdout():match "([^\n]*)\n$")
	end)
end)
