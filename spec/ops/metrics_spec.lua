-- /metrics as a scraper sees it, with a strict reader, and what of it /status has too.
local cjson = require "cjson"
local cli = require "support.cli"
local exposition = require "support.exposition"
local files = require "support.files"
local host = require "support.host"
local sandbox = require "support.sandbox"
local stub = require "support.stub"

local SECONDS = 20

local function metrics(run)
	local status, body = run:page "/metrics"
	assert.equal(200, status)
	return exposition.read(body)
end

-- The first page on which is_right says so.
local function await(run, what, is_right)
	local page
	run.child:await(SECONDS, what, function()
		page = metrics(run)
		return is_right(page) or nil
	end)
	return page
end

-- The sandbox within run, for curl.
local function server_of(run)
	return { server = run:log_line("perilune "):match "server=(%S+)" }
end

local function create(server, name, labels)
	local body = cjson.encode { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, labels = labels } }
	local status = sandbox.request(server, "POST", "/api/v1/namespaces/default/configmaps", body, { "Content-Type: application/json" })
	assert.equal(201, status)
end

local function start(script, ...)
	return host.start { script = script, pages = true, flags = { "--sandbox", "--grace-period", "0s", ... } }
end

describe("/metrics", function()
	local run

	after_each(function()
		run:stop()
	end)

	it("is a page that Prometheus takes, with GET and with HEAD", function()
		run = start ""
		metrics(run)
		local function head_of(...)
			return files.output_of { "curl", "--silent", "--noproxy", "*", "--max-time", "10", run.url .. "/metrics", ... }
		end
		local get, head = head_of("--include"), head_of("--head")
		for _, answer in ipairs { get, head } do
			assert.truthy(answer:find "^HTTP/1%.1 200 ")
			assert.truthy(answer:find("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n", 1, true), answer)
		end
		assert.truthy(get:find "\r\n\r\n# HELP ")
		assert.truthy(head:find "\r\n\r\n$")
		assert.truthy(head_of("--include", "--request", "POST"):find "^HTTP/1%.1 405 ")
	end)

	it("tells what the process takes", function()
		local before = os.time()
		run = start ""
		local page = metrics(run)
		assert.is_true(page:value "process_resident_memory_bytes" > 1e6)
		assert.is_true(page:value "process_cpu_seconds_total" > 0)
		assert.is_true(page:value "process_open_fds" > 3)
		assert.is_true(page:value "process_max_fds" > page:value "process_open_fds")
		assert.is_true(math.abs(page:value "process_start_time_seconds" - before) < SECONDS)
		local _, version = cli.run { "version" }
		assert.equal(1, page:value("perilune_build_info", { version = version:match "%d+%.%d+%.%d+" }))
	end)

	it("has a row for each informer", function()
		run = start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "a in (b,c)" }
			k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "a in (b,c)", keep = { "data" } }
			k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "a in (b,c)", drop = {} }
			k8s.informer { apiVersion = "example.com/v1", kind = "Absent" }
		]]
		local server = server_of(run)
		local whole = { informer = "v1/ConfigMap default a in (b,c)", api_version = "v1", kind = "ConfigMap" }
		local absent = { informer = "example.com/v1/Absent", api_version = "example.com/v1", kind = "Absent" }
		await(run, "the caches sync", function(page) return page:value("perilune_informer_synced", whole) == 1 end)
		create(server, "one", { a = "b" })
		create(server, "two", { a = "c" })
		create(server, "other", { a = "d" })
		local page = await(run, "the objects come", function(page)
			local total = 0
			for _, sample in ipairs(page:all "perilune_informer_objects") do
				total = total + sample.value
			end
			return total == 6
		end)
		assert.is_true(page:value("perilune_informer_bytes", whole) > 100)
		assert.equal(0, page:value("perilune_informer_synced", absent))
		assert.equal(0, page:value("perilune_informer_objects", absent))
		for _, projection in ipairs { " (keep data)", " (drop nothing)" } do
			local labels = { informer = whole.informer .. projection, api_version = "v1", kind = "ConfigMap" }
			assert.equal(2, page:value("perilune_informer_objects", labels))
		end
	end)

	it("tells informers apart that differ in their transform alone", function()
		local script = [[k8s.informer { apiVersion = "v1", kind = "Namespace", transform = function(object) return object end }]]
		run = host.start { scripts = { one = script, two = script }, pages = true, flags = { "--sandbox" } }
		local function synced(page, suffix)
			return page:value("perilune_informer_synced",
				{ informer = "v1/Namespace (transformed)" .. suffix, api_version = "v1", kind = "Namespace" })
		end
		await(run, "both sync", function(page) return synced(page, "") == 1 and synced(page, " 2") == 1 end)
	end)

	it("counts the calls of a handler, by what they were and how they ended", function()
		run = start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "spec" }
			maps:add_event_handler {
				add = function(map) if map.metadata.name ~= "one" then error "no" end end,
				delete = function() end,
			}
			k8s.on_synced(function() error "no" end)
		]]
		local server = server_of(run)
		local labels = { script = "script", informer = "v1/ConfigMap default spec", handler = "script.lua:2" }
		local function of_type(kind)
			return { script = labels.script, informer = labels.informer, handler = labels.handler, type = kind }
		end
		await(run, "the script's error", function(page) return page:value("perilune_script_errors_total", { script = "script" }) == 1 end)
		for _, name in ipairs { "one", "two", "three" } do
			create(server, name, { spec = "1" })
		end
		sandbox.request(server, "DELETE", "/api/v1/namespaces/default/configmaps/one")
		local page = await(run, "all calls end", function(page)
			return page:value("perilune_handler_events_total", of_type "delete") == 1
		end)
		assert.equal(3, page:value("perilune_handler_events_total", of_type "add"))
		assert.is_nil(page:value("perilune_handler_events_total", of_type "update"))
		assert.equal(2, page:value("perilune_handler_errors_total", labels))
		assert.equal(4, page:value("perilune_handler_duration_seconds_count", labels))
		assert.equal(3, page:value("perilune_script_errors_total", { script = "script" }))
		assert.is_true(page:value("perilune_script_memory_bytes", { script = "script" }) > 10000)
	end)

	it("and /status tell how much waits for a handler, and for how long", function()
		run = start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "spec" }
			maps:add_event_handler { add = function() k8s.sleep(3600) end }
			maps:add_event_handler { add = function() end }
		]]
		local server = server_of(run)
		local function labels(line)
			return { script = "script", informer = "v1/ConfigMap default spec", handler = "script.lua:" .. line }
		end
		for i = 1, 4 do
			create(server, "map-" .. i, { spec = "1" })
		end
		local page = await(run, "three wait", function(page)
			return page:value("perilune_handler_queue_depth", labels(2)) == 3 and page:value("perilune_handler_queue_age_seconds", labels(2)) > 0.2
		end)
		assert.equal(0, page:value("perilune_handler_queue_depth", labels(3)))
		assert.equal(0, page:value("perilune_handler_queue_age_seconds", labels(3)))
		local handlers = run:status().scripts[1].handlers
		assert.same({ "script.lua:2", 3 }, { handlers[1].handler, handlers[1].depth })
		assert.is_true(handlers[1].oldestSeconds >= 0.2)
		assert.same({ "script.lua:3", 0, 0 }, { handlers[2].handler, handlers[2].depth, handlers[2].oldestSeconds })
	end)

	it("and /status tell what waits for a controller, and how its reconciles end", function()
		run = start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "spec" }
			k8s.controller { name = "keys", watch = maps, workers = 2, rate_limit = { base = 1000 }, reconcile = function(request)
				if request.name == "map-1" then error "no" end
				if request.name == "map-2" then return { requeue_after = 3600 } end
				if request.name ~= "map-3" then k8s.sleep(3600) end
			end }
		]]
		local server = server_of(run)
		for i = 1, 7 do
			create(server, "map-" .. i, { spec = "1" })
		end
		local page = await(run, "two wait", function(page)
			return page:value("workqueue_depth", { name = "keys", controller = "keys", priority = "high" }) == 2
		end)
		assert.equal(2, page:value("controller_runtime_active_workers", { controller = "keys" }))
		assert.equal(2, page:value("controller_runtime_max_concurrent_reconciles", { controller = "keys" }))
		assert.equal(1, page:value("controller_runtime_reconcile_errors_total", { controller = "keys" }))
		for result, count in pairs { error = 1, requeue_after = 1, success = 1 } do
			assert.equal(count, page:value("controller_runtime_reconcile_total", { controller = "keys", result = result }))
		end
		assert.equal(3, page:value("controller_runtime_reconcile_time_seconds_count", { controller = "keys" }))
		local controller = run:status().scripts[1].controllers[1]
		assert.same({ "keys", true, 2, 2, 2, 2 },
			{ controller.controller, controller.started, controller.workers, controller.running, controller.depth, controller.delayed })
	end)

	it("forgets a handler that is removed, and keeps those of the same line", function()
		run = start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "spec" }
			local all = {}
			for i = 1, 2 do all[i] = maps:add_event_handler { add = function(map) if map.metadata.name == "go-" .. i then all[i]:remove() end end } end
		]]
		local server = server_of(run)
		local function calls(page)
			local sample = page:all("perilune_handler_events_total")[1]
			return sample and sample.value
		end
		create(server, "one", { spec = "1" })
		await(run, "both are called", function(page) return calls(page) == 2 end)
		create(server, "go-1", { spec = "1" })
		await(run, "both have seen the second", function(page) return calls(page) == 4 end)
		create(server, "two", { spec = "1" })
		await(run, "one is called", function(page) return calls(page) == 5 end)
		create(server, "go-2", { spec = "1" })
		await(run, "nothing is left of them", function(page) return not calls(page) and #page:all "perilune_handler_queue_depth" == 0 end)
	end)

	it("counts the calls that were stopped at a limit", function()
		run = start([[
			k8s.on_synced(function() while true do end end)
		]], "--time-limit", "0.2s")
		local page = await(run, "the call is stopped", function(page)
			return page:value("perilune_script_stops_total", { script = "script", limit = "time" }) == 1
		end)
		assert.equal(0, page:value("perilune_script_stops_total", { script = "script", limit = "memory" }))
	end)
end)

describe("/metrics", function()
	it("counts each answer of the API server, the tries that failed and those made again", function()
		local server = stub.listen()
		local name = "127.0.0.1:" .. server.port
		local run = host.start {
			kubeconfig = cli.kubeconfig(files.folder(), server.url), pages = true, flags = { "--grace-period", "0s" },
			script = [[k8s.main(function() print(k8s.get { apiVersion = "v1", kind = "Node", name = "a" }) end)]],
		}
		local json = { ["content-type"] = "application/json" }
		local busy = { ["content-type"] = "application/json", ["retry-after"] = "0" }
		local function answer(...)
			local request = server:accept()
			request:reply(...)
			return request.target
		end
		answer(429, busy, "{}")
		local targets = answer(200, json, cjson.encode { kind = "APIResourceList", groupVersion = "v1", resources = {
			{ name = "nodes", kind = "Node", namespaced = false, verbs = { "get", "list", "watch" } } } })
		assert.equal("/api/v1", targets)
		assert.equal("/api/v1/nodes/a", answer(503, busy, "{}"))
		assert.equal("/api/v1/nodes/a", answer(404, json, cjson.encode { kind = "Status", status = "Failure", code = 404, reason = "NotFound", message = "no" }))
		assert.truthy(run:line():find "NotFound")
		local page = metrics(run)
		for code, count in pairs { ["429"] = 1, ["200"] = 1, ["503"] = 1, ["404"] = 1 } do
			assert.equal(count, page:value("rest_client_requests_total", { code = code, method = "GET", host = name }))
		end
		for _, code in ipairs { "429", "503" } do
			assert.equal(1, page:value("rest_client_request_retries_total", { code = code, verb = "GET", host = name }))
		end
		assert.equal(2, #page:all "rest_client_request_retries_total")
		assert.equal(2, page:value("rest_client_request_duration_seconds_count", { verb = "GET", host = name }))
		server:close()
		run:stop()
	end)

	it("tells why an informer listed or watched again, and what it heard last", function()
		local server = stub.listen()
		local run = host.start {
			kubeconfig = cli.kubeconfig(files.folder(), server.url), pages = true,
			script = [[k8s.informer { apiVersion = "v1", kind = "Node", page_size = 500 }]],
		}
		local json = { ["content-type"] = "application/json" }
		local function answer(wanted, ...)
			local request = server:accept()
			assert.truthy(request.target:find(wanted, 1, true), request.target)
			request:reply(200, json, table.concat({ ... }, "\n"))
		end
		local list = [[{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}]]
		local function event(kind, object)
			return cjson.encode { type = kind, object = object }
		end
		local function node(version)
			return { kind = "Node", apiVersion = "v1", metadata = { name = "a", uid = "u", resourceVersion = version } }
		end
		answer("/api/v1", cjson.encode { kind = "APIResourceList", groupVersion = "v1", resources = {
			{ name = "nodes", kind = "Node", namespaced = false, verbs = { "get", "list", "watch" } } } })
		local labels = { informer = "v1/Node", api_version = "v1", kind = "Node" }
		assert.is_nil(metrics(run):value("perilune_informer_last_event_age_seconds", labels))
		answer("limit=500", list)
		answer("watch=true", event("ADDED", node "6"), event("BOOKMARK", node "7"))
		answer("resourceVersion=7", event("ERROR", { kind = "Status", code = 410, reason = "Expired", message = "too old" }))
		answer("limit=500", list)
		local last = server:accept()
		local page = await(run, "the list is counted", function(page)
			return page:value("perilune_informer_relists_total", { informer = "v1/Node", api_version = "v1", kind = "Node", cause = "expired" }) == 1
		end)
		local total = 0
		for _, sample in ipairs(page:all "perilune_informer_relists_total") do
			total = total + sample.value
		end
		assert.equal(1, total)
		assert.equal(1, page:value("perilune_informer_watch_restarts_total",
			{ informer = "v1/Node", api_version = "v1", kind = "Node", cause = "ended" }))
		local function age(name)
			return page:value(("perilune_informer_last_%s_age_seconds"):format(name), labels)
		end
		assert.is_true(age "event" < age "bookmark" and age "bookmark" > 0.5, "the list came after the bookmark")
		last.peer:close()
		server:close()
		run:stop()
	end)

	it("counts what gets no answer as an error", function()
		local script = [[k8s.main(function() print(k8s.get { apiVersion = "v1", kind = "Node", name = "a" }) end)]]
		local run = host.start { kubeconfig = cli.kubeconfig(files.folder()), pages = true, script = script }
		run:line()
		local page = metrics(run)
		assert.is_true(page:value("rest_client_requests_total", { code = "<error>", method = "GET", host = "127.0.0.1:1" }) >= 1)
		run:stop()
	end)
end)
