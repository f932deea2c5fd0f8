-- A handler's filter: entering it is an add, leaving it a delete, and what does not pass is not told.
local cache = require "support.cache"
local host = require "support.host"
local script = require "support.script"

-- A ConfigMap that the scripts below let pass, or not.
local function object(name, version, passes)
	return script.object(name, version, { data = { passes = passes } })
end

local TELL = [[
	local function tell(map, event)
		print(event.type, map.metadata.name .. map.metadata.resourceVersion, event.old and event.old.metadata.resourceVersion or "-",
			event.initial and "initial" or event.resync and "resync" or "-")
	end
	local function passes(map) return map.data.passes == "yes" end
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
]]

describe("a filter", function()
	local server, run

	before_each(function()
		server = script.start()
	end)

	local function start(text, items)
		run = host.start { kubeconfig = cache.config(server.url), script = TELL .. text, pages = true }
		server:discover()
		server:list({ resourceVersion = "0", limit = "500" }):items(items, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		return stream
	end

	local function told(...)
		for _, line in ipairs { ... } do
			assert.equal((line:gsub(" ", "\t")), run:line())
		end
	end

	local function change(stream, kind, name, version, passes)
		stream:event(kind, name, version, { data = { passes = passes } })
	end

	it("makes an add of what enters and a delete, as last told, of what leaves", function()
		local stream = start([[maps:add_event_handler { add = tell, update = tell, delete = tell, filter = passes, every_event = true }]],
			{ object("in", 5, "yes"), object("out", 6, "no") })
		told "add in5 - initial"
		change(stream, "MODIFIED", "in", 11, "yes")
		change(stream, "MODIFIED", "out", 12, "no")
		change(stream, "MODIFIED", "out", 13, "yes")
		change(stream, "MODIFIED", "out", 14, "yes")
		change(stream, "MODIFIED", "in", 15, "no")
		change(stream, "MODIFIED", "in", 16, "no")
		change(stream, "DELETED", "in", 17, "no")
		change(stream, "ADDED", "in", 18, "yes")
		change(stream, "DELETED", "in", 19, "no")
		told("update in11 5 -", "add out13 - -", "update out14 13 -", "delete in11 - -", "add in18 - -", "delete in19 - -")
		run:stop()
	end)

	it("judges what merged by its newest object, against what the handler was told last", function()
		local stream = start([[
			local first = true
			local function slow(map, event)
				tell(map, event)
				while first and maps:get("shop", "end") == nil do k8s.sleep(0.005) end
				first = false
			end
			maps:add_event_handler { add = slow, update = slow, delete = slow, filter = passes }
		]], { object("gate", 4, "yes"), object("stays", 5, "yes"), object("leaves", 6, "yes"), object("enters", 7, "no"), object("never", 8, "no") })
		told "add gate4 - initial"
		for version, passes in ipairs { "no", "yes", "no" } do
			change(stream, "MODIFIED", "leaves", 10 + version, passes)
			change(stream, "MODIFIED", "never", 20 + version, passes)
		end
		for version, passes in ipairs { "yes", "no", "yes" } do
			change(stream, "MODIFIED", "stays", 30 + version, passes)
			change(stream, "MODIFIED", "enters", 40 + version, passes)
		end
		change(stream, "ADDED", "end", 50, "yes")
		told("add stays33 - initial", "add enters43 - initial", "add end50 - -")
		change(stream, "MODIFIED", "never", 60, "yes")
		told "add never60 - -"
		run:stop()
	end)

	it("holds for a relist, whose deletes are told for what had passed alone", function()
		local stream = start([[maps:add_event_handler { add = tell, update = tell, delete = tell, filter = passes }]],
			{ object("a", 5, "yes"), object("b", 6, "no"), object("c", 7, "yes"), object("d", 8, "no"), object("e", 9, "yes") })
		told("add a5 - initial", "add c7 - initial", "add e9 - initial")
		stream:error(410, "Expired", "too old")
		server:list({ resourceVersion = "10" }):items({ object("c", 21, "no"), object("d", 22, "yes"), object("e", 9, "yes"), object("f", 23, "no") },
			{ version = "30" })
		server:watch("30"):open()
		told("delete a5 - -", "delete c7 - -", "add d22 - -")
		run:stop()
	end)

	it("keeps from a resync what does not pass, and lets its answer change without an event", function()
		start([[
			local wanted = "yes"
			maps:add_event_handler { add = tell, delete = tell, resync = 1,
				update = function(map, event) tell(map, event) wanted = "later" end,
				filter = function(map) return map.data.passes == wanted end,
			}
		]], { object("now", 5, "yes"), object("later", 6, "later"), object("never", 7, "no") })
		told("add now5 - initial", "update now5 5 resync", "add later6 - -", "delete now5 - -", "update later6 6 resync")
		run:stop()
	end)

	it("is given the handler's fields", function()
		start([[maps:add_event_handler { fields = "data.passes", add = tell, filter = function(map)
			print(map.data.passes, map.data.more)
			return false
		end }]], { script.object("a", 5, { data = { passes = "x", more = "y" } }) })
		told "x nil"
		run:stop()
	end)

	it("that is all the handler hears of leaves it synced", function()
		start([[
			local registration = maps:add_event_handler { add = tell, filter = function() return false end }
			k8s.every(0.01, function() if registration:has_synced() then print "synced" end end)
		]], { object("a", 5, "no"), object("b", 6, "no") })
		assert.equal("synced", run:line())
		run:stop()
	end)

	it("may remove its own registration", function()
		local stream = start([[
			local registration
			registration = maps:add_event_handler { add = tell, filter = function(map) print("judged", map.metadata.name) registration:remove() return true end }
			maps:add_event_handler { add = function(map, event) if not event.initial then print "other" end end }
		]], { object("a", 5, "yes"), object("b", 6, "yes") })
		told "judged a"
		change(stream, "ADDED", "c", 11, "yes")
		told "other"
		run:stop()
	end)

	describe("that fails", function()
		local wrong = {
			["by an error"] = { "error 'no'", "script%.lua:1[0-9]: no" },
			["by waiting"] = { "k8s.sleep(1)", "k8s%.sleep waits for the host, which does not work inside the script's filter" },
			["by shutting its factory down"] = { "factory:shutdown()",
				"factory:shutdown does not work inside the script's filter: the host is in the middle of an event" },
		}
		for how, case in pairs(wrong) do
			it(how .. " leaves each object where it was, in or out, and the handler synced", function()
				local stream = start([[
					local factory = k8s.factory()
					local registration = maps:add_event_handler { add = tell, update = tell, delete = tell, filter = function(map)
						if map.data.passes == "bad" then
							]] .. case[1] .. [[ end
						return passes(map)
					end }
					k8s.on_synced(function() while not registration:has_synced() do k8s.sleep(0.01) end print "synced" end)
				]], { object("a", 5, "yes"), object("b", 6, "no"), object("bad", 7, "bad") })
				told("add a5 - initial", "synced")
				change(stream, "MODIFIED", "b", 11, "bad")
				change(stream, "MODIFIED", "a", 12, "bad")
				told "update a12 5 -"
				change(stream, "MODIFIED", "bad", 13, "yes")
				told "add bad13 - -"
				local line = run:log_line "filter failed"
				assert.matches(case[2], line)
				assert.matches("name=bad", line)
				assert.equal(3, run:status().scripts[1].errors)
				local _, metrics = run:page "/metrics"
				assert.truthy(metrics:find('perilune_script_function_errors_total{script="script",function="filter"} 3', 1, true), metrics)
				run:stop()
			end)
		end
	end)
end)
