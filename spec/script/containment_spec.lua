-- Whatever a script's functions do, the host stops or fails that call alone, names it, and calls the other script on.
local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"
local sandbox = require "support.sandbox"

local MAPS = [[k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "spec" %s }]]
local LOOP = "while true do end"

local function create(run, name)
	run.server = run.server or { server = run:log_line("perilune "):match "server=(%S+)" }
	local body = cjson.encode { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, labels = { spec = "1" } } }
	local status = sandbox.request(run.server, "POST", "/api/v1/namespaces/default/configmaps", body, { "Content-Type: application/json" })
	assert.equal(201, status)
end

describe("a script's #slow", function()
	-- What the host calls, with the words that its log has for it. %s is the body of the function.
	local places = {
		handler = { MAPS:format "" .. ":add_event_handler {\nadd = function() %s end }", "add handler failed" },
		filter = { MAPS:format "" .. ":add_event_handler { add = function() end,\nfilter = function() %s end }", "filter failed" },
		transform = { MAPS:format ",\ntransform = function(map) %s return map end", "transform failed" },
		["index function"] = { MAPS:format ", index = {\ni = function() %s end }", "index function failed" },
		reconcile = { "k8s.controller { name = 'c', watch = " .. MAPS:format "" .. ",\nreconcile = function() %s end }", "reconcile failed" },
		when = { "k8s.controller { name = 'c', reconcile = function() end, watch = { " .. MAPS:format "" .. ",\nwhen = function() %s end } }",
			"predicate failed" },
		map = { "local maps = " .. MAPS:format "" .. " k8s.controller { name = 'c', reconcile = function() end, watch = maps, map = {\n"
			.. "[maps] = function() %s end } }", "map failed" },
		main = { "k8s.main(function()\n%s end)", "k8s.main failed" },
		["on_synced function"] = { "k8s.on_synced(function()\n%s end)", "k8s.on_synced failed" },
		timer = { "k8s.every(0.1, function()\n%s end)", "k8s.every failed" },
	}

	local function contained(place, body, error)
		local run = host.start {
			flags = { "--sandbox", "--time-limit", "200ms", "--memory-limit", "16MiB", "--grace-period", "0s" },
			scripts = { bad = place[1]:format(body), good = MAPS:format "" .. ":add_event_handler { add = function(map) print(map.metadata.name) end }" },
		}
		create(run, "a")
		local line = run:log_line(place[2])
		assert.matches("script=bad", line)
		assert.matches(error, line)
		create(run, "b")
		assert.same({ "a", "b" }, { run:line(), run:line() })
		run:stop()
	end

	for name, place in pairs(places) do
		it(name .. " that never ends is stopped, and the other script goes on", function()
			contained(place, LOOP, "bad%.lua:2: stopped: ran longer than 0%.2 s without yielding")
		end)
	end

	it("handler that takes all memory is stopped, and the other script goes on", function()
		contained(places.handler, "local s = 'x' while true do s = s .. s end", "the script needs more than 16 MiB")
	end)

	it("handler may raise anything", function()
		contained(places.handler, "error(nil)", "bad%.lua:2: error%(nil%)")
		contained(places.handler, "error(setmetatable({}, { __tostring = function() error 'worse' end }))", "bad%.lua:2: worse")
	end)
end)

describe("a script's top level", function()
	local function loads(text)
		local path = files.write(files.folder() .. "/script.lua", text)
		local code, _, err = cli.run { "run", path, "--sandbox", "--listen", "off", "--time-limit", "200ms" }
		return code, err
	end

	it("that never ends is stopped, and the program says where", function()
		local code, err = loads("\n" .. LOOP)
		assert.equal(1, code)
		assert.matches("script%.lua:2: stopped: ran longer than 0%.2 s", err)
	end)

	it("that never ends leaves the code before at work in a reload", function()
		local run = host.start {
			flags = { "--sandbox", "--time-limit", "200ms" },
			script = MAPS:format "" .. ":add_event_handler { add = function(map) print(map.metadata.name) end }",
		}
		create(run, "a")
		assert.equal("a", run:line())
		files.write(run.folder .. "/script.lua", "\n" .. LOOP)
		run.child:kill "HUP"
		assert.matches("script%.lua:2: stopped: ran longer than 0%.2 s", run:log_line "reload failed, the code before goes on")
		create(run, "b")
		assert.equal("b", run:line())
		run:stop()
	end)
end)

describe("a handle of a factory that was shut down", function()
	it("can still be used, and has nothing more", function()
		local run = host.start { flags = { "--sandbox" }, script = [[
			k8s.main(function()
				local factory = k8s.factory {}
				local maps = factory:informer { apiVersion = "v1", kind = "ConfigMap" }
				local registration = maps:add_event_handler { add = print }
				factory:start()
				factory:wait_for_cache_sync()
				factory:shutdown()
				factory:shutdown()
				factory:start()
				registration:remove()
				print(maps:get("default", "a"), #maps:list(), maps:count(), pcall(maps.add_event_handler, maps, { add = print }))
				print(tostring(maps), registration:has_synced() ~= nil, maps:has_synced() ~= nil)
				collectgarbage()
			end) ]] }
		run:line()
		assert.matches("^informer v1/ConfigMap\ttrue\ttrue$", run:line())
		run:stop()
	end)
end)
