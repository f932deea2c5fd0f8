-- A script that does not keep within its limits is parked: what that means for it, for others, and for its next generation.
local cjson = require "cjson"
local files = require "support.files"
local host = require "support.host"
local sandbox = require "support.sandbox"

local HEAD = [[local k8s = require "perilune" ]]
	.. [[local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "spec" } ]]

describe("a parked script #slow", function()
	local run, folder, server

	after_each(function()
		run:stop()
	end)

	local function write(name, text)
		return files.write(("%s/%s.lua"):format(folder, name), HEAD .. text)
	end

	-- The scripts by name, as those of one folder.
	local function start(scripts)
		folder = files.folder() .. "/scripts"
		os.execute("mkdir " .. folder)
		for name, text in pairs(scripts) do
			write(name, text)
		end
		run = host.start { pages = true, flags = { "--sandbox", "--grace-period", "0s", "--time-limit", "100ms", folder } }
		server = { server = run:log_line("perilune "):match "server=(%S+)" }
	end

	local function create(...)
		for _, name in ipairs { ... } do
			local body = cjson.encode { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, labels = { spec = "1" } } }
			local status = sandbox.request(server, "POST", "/api/v1/namespaces/default/configmaps", body, { "Content-Type: application/json" })
			assert.equal(201, status)
		end
	end

	local function reload(name, text)
		write(name, text)
		run.child:kill "HUP"
		run:log_line "reloaded"
	end

	local function count(text)
		return select(2, run.child:stderr():gsub(text, ""))
	end

	local function of_script(name)
		for _, script in ipairs(run:status().scripts) do
			if script.script == name then
				return script
			end
		end
	end

	local HANDLER = [[ maps:add_event_handler { add = function(map) print("%s " .. map.metadata.name) %s end } ]]

	it("is called no more, says so once, and others go on", function()
		start { bad = HANDLER:format("bad", "while true do end") .. " k8s.every(0.01, function() end)", good = HANDLER:format("good", "") }
		create("a", "b", "c")
		local line = run:log_line "the script is parked"
		assert.matches("script=bad", line)
		assert.matches("it was stopped 3 times within 60 s, the last time at %S*bad.lua:1: stopped: ran longer than 0.1 s", line)
		create("d", "e")
		local seen = {}
		repeat
			local name, map = run:line():match "^(%S+) (%S+)$"
			seen[name] = (seen[name] or "") .. map
		until seen.good == "abcde"
		assert.equal("abc", seen.bad)
		assert.equal(1, count "the script is parked")
		assert.equal(3, count "add handler failed")
	end)

	it("is seen in /status, with its stops, and in /metrics", function()
		start { bad = HANDLER:format("bad", "while true do end"), good = HANDLER:format("good", "") }
		assert.is_nil(of_script("bad").parked)
		create("a", "b", "c")
		run:log_line "the script is parked"
		local bad, good = of_script "bad", of_script "good"
		assert.matches("^it was stopped 3 times within 60 s", bad.parked)
		assert.same({ time = 3, memory = 0 }, bad.stops)
		assert.same({ 3, 1 }, { bad.errors, bad.generation })
		assert.is_nil(good.parked)
		assert.same({ time = 0, memory = 0 }, good.stops)
		local _, page = run:page "/metrics"
		for _, sample in ipairs { 'parked{script="bad"} 1', 'parked{script="good"} 0', 'stops_total{script="bad",limit="time"} 3',
			'errors_total{script="bad"} 3', 'generation{script="bad"} 1' } do
			assert.truthy(page:find("\nperilune_script_" .. sample .. "\n", 1, true), sample)
		end
		assert.equal(200, (run:page "/readyz"))
	end)

	it("is parked for its functions too", function()
		for _, text in ipairs {
			"maps:add_event_handler { add = print, filter = function() while true do end end }",
			"maps:add_index { i = function() while true do end end }",
			"k8s.controller { name = 'c', watch = { maps, when = function() while true do end end }, reconcile = function() end }",
		} do
			start { bad = text }
			create("a", "b", "c", "d")
			run:log_line "the script is parked"
			assert.equal(3, of_script("bad").stops.time)
			run:stop()
		end
		start { bad = "" }
	end)

	it("lets go of the calls that wait", function()
		start { bad = [[
			k8s.every(0.01, function() while true do end end)
			k8s.on_synced(function() k8s.sleep(3600) end)
		]] }
		run:log_line "the script is parked"
		run.child:await(20, "no call runs", function()
			return of_script("bad").runningCalls == 0 or nil
		end)
		assert.equal(3, count " failed ")
	end)

	it("begins anew with the next load, and its controller's keys go on", function()
		local controller = [[ k8s.controller { name = "keys", watch = maps, rate_limit = { base = 0.001 }, reconcile = function(request, context)
			print(request.name .. " " .. context.attempt) %s end } ]]
		start { bad = "k8s.state.word = 'kept' " .. controller:format "while true do end" }
		create "a"
		run:log_line "the script is parked"
		assert.same({ "a 1", "a 2", "a 3" }, { run:line(), run:line(), run:line() })
		create "b"
		run.child:await(20, "both keys wait", function()
			local controllers = of_script("bad").controllers[1]
			return controllers.depth + controllers.delayed == 2 or nil
		end)
		assert.equal(0, of_script("bad").controllers[1].running)
		reload("bad", controller:format "print(k8s.state.word)")
		local seen = {}
		repeat
			seen[run:line()] = true
		until seen["a 4"] and seen["b 1"]
		assert.is_nil(of_script("bad").parked)
		assert.equal(2, of_script("bad").generation)
		repeat until run:line() == "kept"
	end)

	it("never takes the place of one that works", function()
		start { bad = HANDLER:format("one", "") }
		create("a", "b", "c", "d")
		for _ = 1, 4 do
			run:line()
		end
		write("bad", HANDLER:format("two", "") .. [[
			k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "spec",
				transform = function() while true do end end } ]])
		run.child:kill "HUP"
		local line = run:log_line "reload failed, the code before goes on"
		assert.matches("it was stopped 3 times within 60 s", line)
		create "e"
		assert.equal("one e", run:line())
		assert.is_nil(of_script("bad").parked)
	end)
end)
