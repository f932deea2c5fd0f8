-- Reloads of a running program, by signals: many at once, and one that a SIGTERM interrupts.
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"
local process = require "support.process"
local sandbox = require "support.sandbox"

local MAPS = [[local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" } ]]
local OLD = MAPS .. [[
	maps:add_event_handler { add = function(map)
		print("add", map.metadata.name)
		k8s.sleep(map.metadata.name == "slow" and 1 or 0)
		print("added", map.metadata.name)
	end }
	k8s.on_synced(function()
		print "old"
		k8s.sleep(300)
	end)
	k8s.on_shutdown(function() print "end of old" end)
]]
local NEW = 'local k8s = require "perilune" ' .. MAPS .. [[
	k8s.on_synced(function() print "new" end)
	k8s.on_shutdown(function() print "end of new" end)
	k8s.main(function() k8s.sleep(300) end)
]]
local ABSENT = [[ k8s.informer { apiVersion = "example.com/v1", kind = "Moon" } ]]

describe("a running program #slow", function()
	local server, run

	before_each(function()
		server = sandbox.start()
		run = host.start { kubeconfig = cli.kubeconfig(files.folder(), server.url), script = OLD, flags = { "--grace-period", "2s" } }
		assert.equal("old", run:line())
	end)

	after_each(function()
		server:stop()
	end)

	local function create(name)
		assert.equal(201, server:curl("POST", "/api/v1/namespaces/default/configmaps", ('{"metadata":{"name":"%s"}}'):format(name)))
	end

	local function reload(text)
		files.write(run.folder .. "/script.lua", text)
		run.child:kill "HUP"
	end

	local function ends_with(line)
		run.child:kill "TERM"
		run.child:kill "HUP"
		assert.equal(0, run:wait(20))
		local text = run.child:stdout()
		assert(text:find(line, 1, true), text)
		assert.equal(1, select(2, text:gsub("end of", "")), text)
	end

	it("can be told to stop while new code waits for its caches", function()
		reload(NEW .. ABSENT)
		run:log_line "waiting for 1 of 2 caches"
		local at = process.now()
		ends_with "end of old"
		assert(process.now() - at > 1.9, "what ran in the old code had no grace period")
	end)

	it("can be told to stop while the old code is told the rest", function()
		create "slow"
		assert.equal("add\tslow", run:line())
		reload(NEW .. [[print "loaded"]])
		assert.equal("loaded", run:line())
		ends_with "end of old"
		assert(run.child:stdout():find "added\tslow")
	end)

	it("can be told to stop while calls of the old code end", function()
		reload(NEW)
		local seen = { [run:line()] = true, [run:line()] = true }
		assert.same({ new = true, ["end of old"] = true }, seen)
		run.child:kill "TERM"
		assert.equal("end of new", run:line())
		assert.equal(0, run:wait(20))
	end)

	it("takes a hundred SIGHUPs in a row", function()
		for i = 1, 100 do
			reload(NEW .. "local generation = " .. i)
		end
		reload(NEW .. [[k8s.every(0.1, function() print "the last" end)]])
		run:lines_until("the last", 20)
		run:stop()
	end)
end)
