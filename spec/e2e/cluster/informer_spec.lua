-- What an informer can be asked for and what its cache answers, against a real API server.
local cjson = require "cjson"
local cluster = require "support.cluster"
local host = require "support.host"

local setup, it = cluster.when_up(setup, it)

describe("an informer", function()
	local one, two

	local function path(namespace)
		return "/api/v1/namespaces/" .. namespace .. "/configmaps"
	end

	local function create(namespace, name, labels, data)
		return { "POST", path(namespace), {
			metadata = { name = name, labels = labels, annotations = { note = "of " .. name } }, data = data,
		} }
	end

	setup(function()
		one, two = cluster.namespace(), cluster.namespace()
		cluster.send {
			create(one, "web-1", { app = "web", tier = "gold" }, { node = "n1", size = "big" }),
			create(one, "web-2", { app = "web" }, { node = "n2", size = "small" }),
			create(one, "db-1", { app = "db" }, { node = "n1" }),
			create(two, "web-3", { app = "web" }, { node = "n1" }),
		}
	end)

	-- Runs `text` once the caches have filled; what it returns. In it, `one` and `two` are the namespaces, and names(list) are a list's
	-- names, sorted.
	local function ask(text, flags)
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), flags = flags, set = { one = one, two = two },
			script = ([[
				local one, two = k8s.config.one, k8s.config.two
				local function names(list)
					local found = k8s.array {}
					for i, object in ipairs(list) do found[i] = object.metadata.name end
					table.sort(found)
					return found
				end
				local function answer(value) print(k8s.json.encode(value)) end
			]]):gsub("%s+", " ") .. text,
		}
		local answer = cjson.decode(run:line())
		return answer, run
	end

	local function asked(text, flags)
		local answer, run = ask(text, flags)
		run:stop()
		return answer
	end

	it("watches the namespace of -n alone, which API calls take for theirs too", function()
		local answer = asked([[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
			k8s.on_synced(function()
				local other = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = one }
				answer { names(maps:list()), maps:get("web-3").metadata.namespace, k8s.get { apiVersion = "v1", kind = "ConfigMap", name = "web-3" },
					tostring(maps), tostring(other) }
			end)
		]], { "-n", two })
		assert.same({ "kube-root-ca.crt", "web-3" }, answer[1])
		assert.equal(two, answer[2])
		assert.equal("n1", answer[3].data.node)
		assert.same({ "informer v1/ConfigMap " .. two, "informer v1/ConfigMap " .. one }, { answer[4], answer[5] })
	end)

	it("watches several namespaces as one", function()
		local answer, run = ask [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = { one, two }, label_selector = "app" }
			maps:add_event_handler { add = function(map, event) if not event.initial then print(map.metadata.namespace, map.metadata.name) end end }
			k8s.on_synced(function()
				local versions = maps:resource_version()
				answer { maps:count(), names(maps:list { namespace = two }), maps:get(one, "db-1").data, maps:get(two, "db-1") or "none",
					versions[one] ~= nil and versions[two] ~= nil, pcall(maps.get, maps, "db-1") }
			end)
		]]
		assert.same({ 4, { "web-3" }, { node = "n1" }, "none", true, false }, { unpack(answer, 1, 6) })
		assert.truthy(answer[7]:find("get(namespace,", 1, true), answer[7])
		cluster.send { create(two, "late-2", { app = "x" }), create(one, "late-1", { app = "x" }) }
		local lines = { run:line(), run:line() }
		table.sort(lines)
		local expected = { one .. "\tlate-1", two .. "\tlate-2" }
		table.sort(expected)
		assert.same(expected, lines)
		run:stop()
		cluster.send { { "DELETE", path(two) .. "/late-2" }, { "DELETE", path(one) .. "/late-1" } }
	end)

	it("holds what its selectors allow, also when an object begins or ceases to match", function()
		local answer, run = ask [[
			local gold = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = one, label_selector = "app=web,tier in (gold, iron)" }
			local named = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = one, field_selector = "metadata.name=db-1" }
			local function log(map, event) print(event.type, map.metadata.name) end
			gold:add_event_handler { add = function(map, event) if not event.initial then log(map, event) end end, update = log, delete = log, every_event = true }
			k8s.on_synced(function() answer { names(gold:list()), names(named:list()) } end)
		]]
		assert.same({ { "web-1" }, { "db-1" } }, answer)
		cluster.send {
			{ "PATCH", path(one) .. "/web-2", { metadata = { labels = { tier = "iron" } } } },
			{ "PATCH", path(one) .. "/web-2", { data = { more = "1" } } },
			{ "PATCH", path(one) .. "/web-2", { metadata = { labels = { tier = "tin" } } } },
		}
		assert.same({ "add\tweb-2", "update\tweb-2", "delete\tweb-2" }, { run:line(), run:line(), run:line() })
		run:stop()
	end)

	it("keeps of each object what it was told to keep", function()
		local answer = asked [[
			local function maps(options)
				options.apiVersion, options.kind, options.namespace, options.field_selector = "v1", "ConfigMap", one, "metadata.name=web-1"
				return k8s.informer(options)
			end
			local usual, dropped, kept = maps {}, maps { drop = { "metadata.annotations", "data.size" } }, maps { keep = { "metadata.labels", "data.node" } }
			local bare, all = maps { metadata_only = true }, maps { drop = {} }
			k8s.on_synced(function()
				answer { usual = usual:get("web-1"), dropped = dropped:get("web-1"), kept = kept:get("web-1"), bare = bare:get("web-1"), all = all:get("web-1") }
			end)
		]]
		for name, object in pairs(answer) do
			assert.same({ name, "v1", "ConfigMap", "web-1", one },
				{ name, object.apiVersion, object.kind, object.metadata.name, object.metadata.namespace })
			assert.same({ app = "web", tier = "gold" }, object.metadata.labels)
			assert.truthy(object.metadata.resourceVersion and object.metadata.uid)
		end
		assert.same({ node = "n1", size = "big" }, answer.usual.data)
		assert.is_nil(answer.usual.metadata.managedFields)
		assert.equal("of web-1", answer.usual.metadata.annotations.note)
		assert.truthy(#answer.all.metadata.managedFields > 0)
		assert.same({ node = "n1" }, answer.dropped.data)
		assert.is_nil(answer.dropped.metadata.annotations)
		assert.same({ node = "n1" }, answer.kept.data)
		assert.is_nil(answer.kept.metadata.annotations)
		assert.is_nil(answer.bare.data)
		assert.equal("of web-1", answer.bare.metadata.annotations.note)
	end)

	it("lists by index, selector, namespace and fields", function()
		local answer, run = ask [[
			local maps = k8s.informer {
				apiVersion = "v1", kind = "ConfigMap", namespace = { one, two }, label_selector = "app in (web, db)", index = { node = "data.node" },
			}
			local function say()
				answer {
					by_node = names(maps:list { index = { node = "n1" } }),
					in_one = names(maps:list { index = { node = "n1" }, namespace = one }),
					web = names(maps:list { label_selector = "app=web" }),
					web_on_n1 = names(maps:list { index = { node = "n1" }, label_selector = "app!=db", namespace = one }),
					none = maps:list { index = { node = "n9" } },
					by_size = names(maps:list { index = { size = "big" } }),
					parts = maps:list { index = { node = "n2" }, fields = { "metadata.name", "data.size" } },
					keys = #maps:keys(), wrong = select(2, pcall(maps.list, maps, { index = { nothing = "x" } })),
				}
			end
			maps:add_event_handler { update = say }
			k8s.on_synced(function() maps:add_index { size = "data.size" } say() end)
		]]
		assert.truthy(answer.wrong:find("no index 'nothing'", 1, true), answer.wrong)
		assert.equal(1, #answer.parts)
		assert.same({ size = "small" }, answer.parts[1].data)
		assert.equal("web-2", answer.parts[1].metadata.name)
		assert.is_nil(answer.parts[1].metadata.labels)
		answer.wrong, answer.parts = nil, nil
		assert.same({
			by_node = { "db-1", "web-1", "web-3" }, in_one = { "db-1", "web-1" }, web = { "web-1", "web-2", "web-3" }, web_on_n1 = { "web-1" },
			none = {}, by_size = { "web-1" }, keys = 4,
		}, answer)

		-- The indexes follow an update.
		cluster.send { { "PATCH", path(one) .. "/web-1", { data = { node = "n2", size = "huge" } } } }
		answer = cjson.decode(run:line())
		assert.same({ { "db-1", "web-3" }, { "db-1" }, {} }, { answer.by_node, answer.in_one, answer.by_size })
		cluster.send { { "PATCH", path(one) .. "/web-1", { data = { node = "n1", size = "big" } } } }
		assert.same({ "web-1" }, cjson.decode(run:line()).by_size)
		run:stop()
	end)

	it("gives handlers the fields that they ask for, and a table of their own each time", function()
		local answer = asked [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = one, field_selector = "metadata.name=db-1" }
			local seen
			maps:add_event_handler { fields = { "metadata.name", "data" }, add = function(map)
				map.data.node = "changed"
				map.metadata.name = "changed"
				seen = map
			end }
			k8s.every(0.02, function()
				if not seen then return end
				local again = maps:get(one, "db-1")
				again.data.node = "changed too"
				answer { seen, maps:get { namespace = one, name = "db-1" }.data, maps:get(maps:list()[1]).metadata.name }
				seen = nil
			end)
		]]
		assert.same({ node = "changed" }, answer[1].data)
		assert.is_nil(answer[1].metadata.labels)
		assert.same({ node = "n1" }, answer[2])
		assert.equal("db-1", answer[3])
	end)

	it("of a cluster-scoped kind, asked for by its resource, has no namespace", function()
		local answer = asked([[
			local spaces = k8s.informer { apiVersion = "v1", resource = "namespaces" }
			k8s.on_synced(function() answer { spaces:get(one).kind, spaces:get { name = two }.metadata.name, tostring(spaces) } end)
		]], { "-n", one })
		assert.same({ "Namespace", two }, { answer[1], answer[2] })
	end)
end)
