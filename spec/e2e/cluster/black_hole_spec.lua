-- Connections that stay open and on which nothing comes any more, between informers and a real API server: they are noticed, what
-- waited on them goes on elsewhere, and no change is lost.
local cache = require "support.cache"
local cluster = require "support.cluster"
local process = require "support.process"
local proxy = require "support.proxy"

local before_each, after_each, it = cluster.when_up(before_each, after_each, it)

local KINDS = { ConfigMap = "configmaps", Secret = "secrets", ServiceAccount = "serviceaccounts" }
local SECONDS = 60

describe("a black hole", function()
	local wire, driver, mirrors, namespace

	before_each(function()
		namespace = cluster.namespace()
		wire = proxy.start(cluster.server())
		driver = cache.start(wire:kubeconfig(cluster))
		mirrors = {}
	end)

	after_each(function()
		driver:finish()
		wire:close()
	end)

	-- An informer with a handler, which need not sync: its id is the kind, or what is given.
	local function follow(kind, id)
		id = id or kind
		driver:follow({ id = id, apiVersion = "v1", kind = kind, namespaces = namespace }, { id = "handler of " .. id })
		mirrors[id] = { kind = kind, events = cache.mirror() }
	end

	local function create(kind, name)
		local status, answer = cluster.curl("POST", ("/api/v1/namespaces/%s/%s"):format(namespace, KINDS[kind]),
			{ metadata = { name = name, annotations = { text = ("x"):rep(1000) } } })
		assert.equal(201, status, answer.message)
	end

	local function create_many(count)
		local requests = {}
		for i = 1, count do
			requests[i] = { "POST", ("/api/v1/namespaces/%s/configmaps"):format(namespace),
				{ metadata = { name = ("item-%03d"):format(i) }, data = { text = ("x"):rep(1000) } } }
		end
		cluster.send(requests)
	end

	local function truth(kind)
		local status, list = cluster.curl("GET", ("/api/v1/namespaces/%s/%s"):format(namespace, KINDS[kind]))
		assert.equal(200, status)
		local map = {}
		for _, item in ipairs(list.items) do
			map[item.metadata.namespace .. "/" .. item.metadata.name] = item.metadata.resourceVersion
		end
		return map
	end

	-- Of the store, and of the handler.
	local function holds_truth(id)
		local wanted, store = truth(mirrors[id].kind), driver:store(id)
		for _, event in ipairs(driver:rest("handler of " .. id)) do
			if event.key then
				mirrors[id].events:apply(event)
			end
		end
		return pcall(assert.same, wanted, store) and pcall(assert.same, wanted, mirrors[id].events.map)
	end

	-- Lets the time that is waited for pass, as far as it is a wait between two attempts.
	local function pass_backoff(id)
		local wait = driver:ask("report", { id = id }).wait
		if wait and wait > 0 then
			driver:advance(wait)
		end
	end

	local function expect_truth()
		local deadline = process.now() + SECONDS
		for id in pairs(mirrors) do
			while not holds_truth(id) do
				pass_backoff(id)
				assert(process.now() < deadline, id .. " does not become what the server holds")
			end
		end
	end

	local function await_streaming(id)
		driver:event("change", id, function(event)
			return event.synced and event.state == "streaming"
		end)
	end

	local function watches()
		local counts = {}
		for id in pairs(mirrors) do
			counts[id] = driver:ask("report", { id = id }).watches
		end
		return counts
	end

	it("in mid-watch of several kinds on one connection is noticed, and all go on without a loss", function()
		for kind in pairs(KINDS) do
			follow(kind)
			await_streaming(kind)
		end
		expect_truth()
		local before = watches()
		wire:silence()
		for kind in pairs(KINDS) do
			create(kind, "in-the-hole")
		end
		wire:await("the events of the three are lost", function(counts)
			return counts.lost_down > 3 * 1000
		end)
		assert.is_false(holds_truth "ConfigMap")
		driver:advance(610) -- the longest that a server is asked to keep a watch, and the grace on top
		expect_truth()
		for kind, count in pairs(watches()) do
			assert.equal(before[kind] + 1, count, kind)
		end
	end)

	it("in the middle of an initial state is noticed, and the rest is had in another way", function()
		create_many(40)
		follow("Secret", "first") -- so that there is a connection
		await_streaming "first"
		wire:silence { after = 20000, direction = "down" }
		follow "ConfigMap"
		wire:await("the hole", function(counts)
			return counts.fired.silence == 1
		end)
		wire:heal()
		driver:advance(95)
		driver:wait_synced("ConfigMap", SECONDS)
		expect_truth()
	end)

	it("before the answer to the first request is noticed", function()
		follow("Secret", "first")
		await_streaming "first"
		create_many(3)
		wire:silence { scope = "all", direction = "down" }
		follow "ConfigMap"
		wire:await("the answer is lost", function(counts)
			return counts.lost_down > 0
		end)
		wire:heal { scope = "all" }
		driver:advance(95)
		expect_truth()
	end)
end)

-- With the real clock, as a server sends bookmarks once a minute.
describe("a black hole of one of two connections #soak", function()
	local NAMESPACES = 110 -- more watches than one HTTP/2 connection takes

	it("is noticed in 90 s by each watch that has had bookmarks, and leaves the other connection alone", function()
		local namespace, wire = cluster.namespace(), proxy.start(cluster.server())
		local path = "/api/v1/namespaces/" .. namespace .. "/configmaps"
		local driver = cache.start(wire:kubeconfig(cluster))

		local function report(i)
			return driver:ask("report", { id = "n" .. i })
		end

		-- Those whose watch was begun again since `before`.
		local function restarted(before)
			local found = {}
			for i = 1, NAMESPACES do
				if report(i).watches ~= before[i] then
					found[#found + 1] = i
				end
			end
			return found
		end

		for i = 1, NAMESPACES do -- that a namespace is not there is nothing to a watch
			driver:order("informer", { id = "n" .. i, apiVersion = "v1", kind = "ConfigMap", namespaces = i == 1 and namespace or namespace .. i })
		end
		driver:order "start"
		for i = 1, NAMESPACES do
			driver:wait_synced("n" .. i, 60)
		end
		cluster.await(400, "three bookmarks on each watch", function()
			process.run { "sleep", "1" }
			for i = 1, NAMESPACES do
				if report(i).bookmarks < 3 then
					return false
				end
			end
			return true
		end)
		local connections, before = wire:connections(), {}
		for i = 1, NAMESPACES do
			before[i] = report(i).watches
		end
		table.sort(connections, function(a, b)
			return a.up > b.up
		end)
		wire:silence { connection = connections[1].number } -- the one with the most requests
		local started, status = process.now(), cluster.curl("POST", path, { metadata = { name = "in-the-hole" } })
		assert.equal(201, status)
		cluster.await(200, "the watches go on elsewhere", function()
			return #restarted(before) > NAMESPACES / 2
		end)
		local took = process.now() - started
		assert(took > 30 and took < 120, took)
		local _, truth = cluster.curl("GET", path .. "/in-the-hole")
		cluster.await(20, "the change is there", function()
			return driver:store("n1")[namespace .. "/in-the-hole"] == truth.metadata.resourceVersion
		end)
		local count = #restarted(before)
		assert(count < NAMESPACES, "the other connection's watches were begun again, too")
		print(("%d of %d watches were begun again, %.0f s after the hole"):format(count, NAMESPACES, took))
		driver:finish()
		wire:close()
	end)
end)

describe("nothing to tell for five minutes #soak", function()
	local SECONDS_IDLE = 300

	it("restarts neither the watch of an idle kind nor that of events", function()
		local api_version = cluster.define()
		local namespace, wire = cluster.namespace(), proxy.start(cluster.server())
		local driver = cache.start(wire:kubeconfig(cluster))
		local kinds = {
			idle = { apiVersion = api_version, kind = "Widget" }, events = { apiVersion = "v1", kind = "Event" },
			["new events"] = { apiVersion = "events.k8s.io/v1", kind = "Event" }, maps = { apiVersion = "v1", kind = "ConfigMap" },
		}
		for id, kind in pairs(kinds) do
			kind.id, kind.namespaces = id, namespace
			driver:order("informer", kind)
		end
		driver:order "start"
		for id in pairs(kinds) do
			driver:wait_synced(id)
		end
		local connections = wire:counts().connections
		process.run { "sleep", tostring(SECONDS_IDLE), seconds = SECONDS_IDLE + 10 } -- that nothing happens is what is waited for
		for id in pairs(kinds) do
			local report = driver:ask("report", { id = id })
			-- The server may end a watch after 300 s; nothing else may.
			assert(report.lists == 1 and report.watches <= 2, id .. " was begun again")
			assert.same({}, report.relists, id)
			for cause in pairs(report.restarts) do
				assert.equal("ended", cause, id)
			end
		end
		assert.equal(connections, wire:counts().connections)
		driver:finish()
		wire:close()
	end)
end)
