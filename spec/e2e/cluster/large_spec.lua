-- Sizes near what a real API server takes.
local cluster = require "support.cluster"
local host = require "support.host"

describe("an object of 1.5 MB", function()
	it("is listed, watched, read and written", function()
		cluster.need()
		local namespace = cluster.namespace()
		local version, group_path = cluster.define()
		local path = group_path .. "/namespaces/" .. namespace .. "/widgets"
		local parts = {}
		for i = 1, 100 do
			parts[i] = ("%d:"):format(i) .. ("ä\\\"\n"):rep(1860) -- 14,880 bytes of JSON
		end
		local function widget(name)
			return { apiVersion = version, kind = "Widget", metadata = { name = name }, parts = parts }
		end
		assert.equal(201, (cluster.curl("POST", path, widget "listed")))

		local run = host.start {
			kubeconfig = cluster.kubeconfig(), set = { namespace = namespace, version = version },
			script = [[
				local widgets = k8s.informer { apiVersion = k8s.config.version, kind = "Widget", namespace = k8s.config.namespace }
				local function size(widget)
					local sum = 0
					for _, part in ipairs(widget.parts) do sum = sum + #part end
					return sum
				end
				local function log(widget, event)
					print(event.type, widget.metadata.name, #widget.parts, size(widget), widget.note, event.type == "update" and size(event.old))
				end
				widgets:add_event_handler { add = log, update = log, delete = log, every_event = true }
				k8s.on_synced(function()
					local widget = assert(k8s.get(widgets:get("listed")))
					widget.note = "changed"
					widget = assert(k8s.update(widget))
					assert(k8s.patch(widget, { note = "again" }))
				end)
			]],
		}
		local bytes = 0
		for _, part in ipairs(parts) do
			bytes = bytes + #part
		end
		local shown = ("100\t%d\t"):format(bytes)
		assert.equal("add\tlisted\t" .. shown .. "nil\tfalse", run:line())
		assert.equal("update\tlisted\t" .. shown .. "changed\t" .. bytes, run:line())
		assert.equal("update\tlisted\t" .. shown .. "again\t" .. bytes, run:line())
		assert.equal(201, (cluster.curl("POST", path, widget "watched")))
		assert.equal("add\twatched\t" .. shown .. "nil\tfalse", run:line())
		assert.equal(200, (cluster.curl("DELETE", path .. "/watched")))
		assert.equal("delete\twatched\t" .. shown .. "nil\tfalse", run:line())
		local _, seen = cluster.curl("GET", path .. "/listed")
		assert.same(parts, seen.parts)
		run:stop()
	end)
end)

describe("5,000 objects", function()
	it("are listed and handled, each once, whatever the page size", function()
		cluster.need()
		local namespace = cluster.namespace()
		local requests, expected = {}, {}
		for i = 1, 5000 do
			local name = ("item-%04d"):format(i)
			requests[i] = { "POST", "/api/v1/namespaces/" .. namespace .. "/configmaps", {
				metadata = { name = name, labels = { app = "many" } }, data = { number = tostring(i) },
			} }
			expected[name] = 1
		end
		for _, answer in ipairs(cluster.send(requests, true)) do
			assert.equal(201, answer.status)
		end

		local run = host.start {
			kubeconfig = cluster.kubeconfig(), set = { namespace = namespace }, pages = true,
			script = [[
				local function watch(name, options)
					options.apiVersion, options.kind, options.namespace = "v1", "ConfigMap", k8s.config.namespace
					local maps = k8s.informer(options)
					local registration = maps:add_event_handler { add = function(map) print(name, map.metadata.name, map.data.number) end }
					k8s.every(0.1, function() if registration:has_synced() then print("end of " .. name, maps:count()) registration:remove() end end)
				end
				watch("usual", { label_selector = "app=many" })
				watch("paged", { label_selector = "app in (many)", page_size = 100 })
				k8s.on_synced(function()
					local all = assert(k8s.list { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, label_selector = "app=many" })
					for _, map in ipairs(all) do print("listed", map.metadata.name, map.data.number) end
					print "end of listed"
				end)
			]],
		}
		local seen, ended = { usual = {}, paged = {}, listed = {} }, 0
		while ended < 3 do
			local line = run:line(60)
			local who, name = line:match "^(%S+)\t(item%-%d+)"
			if who then
				seen[who][name] = (seen[who][name] or 0) + 1
			else
				assert.truthy(line == "end of usual\t5000" or line == "end of paged\t5000" or line == "end of listed", line)
				ended = ended + 1
			end
		end
		assert.same(expected, seen.usual)
		assert.same(expected, seen.paged)
		assert.same(expected, seen.listed)
		for _, informer in ipairs(run:status().informers) do
			assert.same({ 5000, 1, true }, { informer.objects, informer.lists, informer.synced })
		end
		run:stop()
	end)
end)
