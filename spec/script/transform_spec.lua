-- An informer's transform: what the cache holds is what the script made of each object.
local cache = require "support.cache"
local host = require "support.host"
local script = require "support.script"

local object = script.object

describe("a transform", function()
	local server, run

	before_each(function()
		server = script.start()
	end)

	-- Runs the script with these items in the first list; the watch that follows it.
	local function start(text, items)
		run = host.start { kubeconfig = cache.config(server.url), script = text }
		server:discover()
		server:list({ resourceVersion = "0", limit = "500" }):items(items, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		return stream
	end

	it("makes what is stored, of lists and of events", function()
		local stream = start([[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", index = { size = "data.size" }, transform = function(map)
				map.data = { size = #(map.data.text or "") .. "", was = map.data.text }
				return map
			end }
			maps:add_event_handler {
				add = function(map, event) print("add", map.metadata.name, map.data.size, event.initial) end,
				update = function(map, event) print("update", map.data.size, event.old.data.size) end,
				delete = function(map) print("delete", map.data.size) print(#maps:list { index = { size = "5" } }) end,
			}
		]], { object("a", 5, { data = { text = "xy" } }) })
		assert.equal("add\ta\t2\ttrue", run:line())
		stream:event("ADDED", "b", 11, { data = { text = "abcde" } })
		assert.equal("add\tb\t5\tfalse", run:line())
		stream:event("MODIFIED", "a", 12, { data = { text = "xyz" } })
		assert.equal("update\t3\t2", run:line())
		stream:event("DELETED", "a", 13, { data = { text = "xyzxyz" } })
		assert.equal("delete\t6", run:line())
		assert.equal("1", run:line())
		run:stop()
	end)

	it("makes the labels that a selector is asked of", function()
		local labels = { labels = { app = "web" } }
		local stream = start([[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", transform = function(map)
				if map.metadata.name == "a" then
					map.metadata.labels.app = "made"
				else
					map.metadata.labels = nil
				end
				return map
			end }
			local function count(selector) return #maps:list { label_selector = selector } end
			maps:add_event_handler { add = function(map) print(map.metadata.name, count "app=web", count "app=made", count "!app") end }
		]], { object("a", 5, labels) })
		assert.equal("a\t0\t1\t0", run:line())
		stream:event("ADDED", "b", 11, labels)
		assert.equal("b\t0\t1\t1", run:line())
		run:stop()
	end)

	it("sees what drop and keep have left, and keeps JSON's meaning of what it does not touch", function()
		local text = [=[{"metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"5","managedFields":[{}],"big":1234567890123456789},
			"list":[],"map":{},"none":null,"double":1.5,"text":"\u00e9\\\"/","deep":[[{"x":[1]}]],"data":{"secret":"s","kept":"k"}}]=]
		run = host.start { kubeconfig = cache.config(server.url), script = [[
			local seen
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", drop = { "metadata.managedFields", "data.secret" }, transform = function(map)
				seen = map.data.secret == nil and map.metadata.managedFields == nil and map.kind == "ConfigMap"
				map.mine = true
				return map
			end }
			k8s.on_synced(function()
				print(seen)
				print(k8s.json.encode(maps:get("shop", "a")))
			end)
		]] }
		server:discover()
		local list = server:list { resourceVersion = "0", limit = "500" }
		list.raw:reply(200, { ["content-type"] = "application/json" },
			'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[' .. text .. "]}")
		server:watch("10"):open()
		assert.equal("true", run:line())
		local line = run:line()
		for _, part in ipairs { '"list":[]', '"map":{}', '"none":null', '"big":1234567890123456789', '"double":1.5', '"text":"é\\\\\\"/"',
			'"deep":[[{"x":[1]}]]', '"data":{"kept":"k"}', '"mine":true' } do
			assert.truthy(line:find(part, 1, true), part .. " is not in " .. line)
		end
		run:stop()
	end)

	it("is not asked again for what a relist finds unchanged, and is for what has changed", function()
		local stream = start([[
			local calls = {}
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", transform = function(map)
				calls[#calls + 1] = map.metadata.name .. map.metadata.resourceVersion
				return map
			end }
			local function say() print(table.concat(calls, " ")) end
			maps:add_event_handler { update = say }
			k8s.on_synced(say)
		]], { object("a", 5), object("b", 6) })
		assert.equal("a5 b6", run:line())
		stream:error(410, "Expired", "too old")
		server:list({ resourceVersion = "10" }):items({ object("a", 5), object("b", 21) }, { version = "30" })
		server:watch("30"):open()
		assert.equal("a5 b6 b21", run:line())
		run:stop()
	end)

	describe("that fails", function()
		local wrong = {
			["by an error"] = { "error 'no'", "script%.lua:2: no" },
			["by returning nothing"] = { "do return end", "script%.lua:1: the transform returned nothing, not the object" },
			["by returning what is no table"] = { "return 7", "script%.lua:1: the transform returned number, not the object" },
			["by returning what can't be JSON"] = { "map.data = print return map", "data: a function can't be JSON" },
			["by another name"] = { "map.metadata.name = 'z' return map",
				"script%.lua:1: the transform changed metadata%.name, which says which object this is" },
			["by another namespace"] = { "map.metadata.namespace = nil return map", "the transform changed metadata%.namespace" },
			["by another uid"] = { "map.metadata.uid = 'z' return map", "the transform changed metadata%.uid" },
			["by another version"] = { "map.metadata.resourceVersion = '6' return map", "the transform changed metadata%.resourceVersion" },
			["by another kind"] = { "map.kind = nil return map", "the transform changed kind" },
			["by taking the metadata away"] = { "map.metadata = nil return map", "the transform returned an object without metadata" },
			["by waiting"] = { "k8s.sleep(1) return map", "k8s%.sleep waits for the host, which does not work inside the script's transform" },
			["by yielding"] = { "coroutine.yield() return map", "attempt to yield" },
			["by registering"] = { "k8s.informer { apiVersion = 'v1', kind = 'Pod' } return map",
				"registering does not work inside the script's transform" },
		}
		for how, case in pairs(wrong) do
			it(how .. " leaves that object as it came, and the barrier opens", function()
				local stream = start([[local function change(map) if map.metadata.name == "bad" then
					]] .. case[1] .. [[ end map.data = { changed = "yes" } return map end
					local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", transform = change }
					maps:add_event_handler { add = function(map) print(map.metadata.name, map.data and map.data.changed or "as it came") end }]],
					{ object("bad", 5, { data = { changed = "no" } }), object("good", 6) })
				assert.equal("bad\tno", run:line())
				assert.equal("good\tyes", run:line())
				stream:event("ADDED", "late", 11)
				assert.equal("late\tyes", run:line())
				local line = run:log_line "transform failed"
				assert.matches(case[2], line)
				assert.matches("shop", line)
				assert.matches("bad", line)
				run:stop()
			end)
		end
	end)

	it("whose script takes too much memory is not asked any more, which is said once", function()
		local items = {}
		for i = 1, 50 do
			items[i] = object("m" .. i, i)
		end
		run = host.start { kubeconfig = cache.config(server.url), flags = { "--memory-limit", "16MiB" }, pages = true, script = [[
			local kept = {}
			k8s.informer { apiVersion = "v1", kind = "ConfigMap", transform = function(map)
				for i = 1, 100 do kept[#kept + 1] = map.metadata.name .. ("x"):rep(100000) .. i end
				return map
			end } ]] }
		server:discover()
		server:list({ resourceVersion = "0", limit = "500" }):items(items, { version = "100" })
		server:watch("100"):open()
		run:await_page("/readyz", 200, 20)
		run:log_line "the script is parked"
		assert.equal(50, run:status().informers[1].objects)
		run:stop()
		local _, said = run.child:stderr():gsub("the script is parked", "")
		local _, failed = run.child:stderr():gsub("transform failed", "")
		assert.same({ 1, 1 }, { said, failed })
	end)

	it("makes the informer the script's own, and one for the same function", function()
		local shared = [[ local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" } ]]
		run = host.start {
			flags = { "--sandbox" }, pages = true,
			scripts = {
				plain = shared,
				other = shared .. [[
					local function change(map) map.data = { changed = "yes" } return map end
					local one = k8s.informer { apiVersion = "v1", kind = "ConfigMap", transform = change }
					local again = k8s.informer { apiVersion = "v1", kind = "ConfigMap", transform = change }
					k8s.on_synced(function()
						k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", namespace = "default" }, data = { changed = "no" } }
					end)
					one:add_event_handler { add = function()
						while maps:count() < one:count() do k8s.sleep(0.01) end
						for _, from in ipairs { maps, one, again } do
							local map = from:get("default", "a")
							if map then print(tostring(from), map.data.changed) end
						end
					end }
				]],
			},
		}
		assert.equal("informer v1/ConfigMap\tno", run:line())
		assert.equal("informer v1/ConfigMap (transformed)\tyes", run:line())
		assert.equal("informer v1/ConfigMap (transformed)\tyes", run:line())
		assert.equal(2, #run:status().informers)
		run:stop()
	end)
end)
