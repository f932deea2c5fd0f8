-- When the host calls what a script registered: each once, nothing new while the program stops, and whatever a call does to its own registration.
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"
local script = require "support.script"

-- A program whose informer has synced with one ConfigMap (or those of these names), and its watch; `flags` as for the shell.
local function start(text, flags, names)
	local maps = {}
	for i, name in ipairs(names or { "a" }) do
		maps[i] = script.object(name, i)
	end
	local server = script.start()
	local run = host.start { kubeconfig = cli.kubeconfig(files.folder(), server.url), script = text, flags = flags }
	server:discover()
	server:list({ resourceVersion = "0", limit = "500" }):items(maps, { version = "10" })
	local stream = server:watch "10"
	stream:open()
	return run, stream
end

local function start_alone(text)
	return host.start { kubeconfig = cli.kubeconfig(files.folder()), script = text }
end

describe("on_synced", function()
	it("runs once for each that is registered, those from inside another one too", function()
		local run = start_alone [[
			k8s.on_synced(function() k8s.on_synced(function() print "inner" end) print "first" end)
			k8s.on_synced(function() print "second" k8s.sleep(0.05) print "end" end)
		]]
		assert.same({ "first", "second", "inner" }, run:lines_until "end")
		run:stop()
	end)
end)

describe("while the program stops", function()
	it("nothing is called but on_shutdown and what was running", function()
		local run = start_alone [[
			k8s.on_synced(function() print "here" end)
			k8s.on_shutdown(function()
				k8s.every(0.001, function() print "late" end)
				k8s.on_synced(function() print "late" end)
				k8s.sleep(0.05)
				print "end"
			end)
		]]
		assert.equal("here", run:line())
		run.child:kill "TERM"
		assert.same({}, run:lines_until "end")
		assert.equal(0, run:wait())
	end)

	it("a handler that has removed itself and waits is cancelled as any other, without an error", function()
		local run = start([[
			local registration
			registration = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }:add_event_handler {
				add = function()
					registration:remove()
					registration:remove()
					print "waits"
					k8s.sleep(60)
				end,
			}
		]], { "--grace-period", "50ms" })
		assert.equal("waits", run:line())
		run:stop()
		assert.is_nil(run.child:stderr():find("ERROR", 1, true), run.child:stderr())
	end)
end)

describe("event.old", function()
	it("is one table, however often it is read and whatever is collected", function()
		local run, stream = start [[
			k8s.informer { apiVersion = "v1", kind = "ConfigMap" }:add_event_handler {
				every_event = true,
				update = function(map, event)
					event.old.event = event
					collectgarbage()
					k8s.sleep(0.001)
					collectgarbage()
					print(event.old.metadata.resourceVersion, event.old.event == event, map.metadata.resourceVersion)
				end,
			}
		]]
		stream:event("MODIFIED", "a", 11)
		stream:event("MODIFIED", "a", 12)
		assert.equal("1\ttrue\t11", run:line())
		assert.equal("11\ttrue\t12", run:line())
		run:stop()
	end)
end)

describe("a script that keeps more memory than it may", function()
	it("is told once and called no more", function()
		local run = start([[
			local kept = {}
			k8s.every(0.001, function() end)
			k8s.informer { apiVersion = "v1", kind = "ConfigMap" }:add_event_handler {
				add = function(map)
					print(map.metadata.name)
					while true do kept[#kept + 1] = ("x"):rep(1000) .. #kept end
				end,
			}
		]], { "--memory-limit", "8MiB", "--time-limit", "10s" }, { "a", "b", "c" })
		assert.equal("a", run:line())
		run:log_line "the script is parked"
		run:stop()
		assert.equal("a\n", run.child:stdout())
		assert.equal(2, select(2, run.child:stderr():gsub(" ERROR ", "")), run.child:stderr())
	end)
end)

describe("a handler that removes itself", function()
	it("ends its call and gets nothing more", function()
		local run = start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
			local registration
			registration = maps:add_event_handler { add = function() registration:remove() k8s.sleep(0.01) print "done" end }
			maps:add_event_handler { add = function() registration:remove() print(registration:has_synced()) end }
		]]
		assert.equal("false", run:line())
		assert.equal("done", run:line())
		run:stop()
	end)
end)
