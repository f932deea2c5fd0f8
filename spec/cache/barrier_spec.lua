-- The barrier: when it opens, when it gives up, and what it says meanwhile.
local cache = require "support.cache"
local script = require "support.script"

local object = script.object
local FIRST = { resourceVersion = "0", limit = "500" }

describe("a barrier", function()
	local server, driver

	before_each(function()
		server = script.start()
		driver = cache.start(cache.config(server.url))
	end)

	after_each(function()
		driver:finish()
	end)

	local function start(fields)
		for _, namespace in ipairs(fields.namespaces or { "" }) do
			driver:order("informer", { id = "i" .. namespace, apiVersion = "v1", kind = "ConfigMap", namespaces = namespace, page_size = 2 })
		end
		driver:order("barrier", { id = "g", informers = fields.informers or "i", patience = fields.patience, timeout = fields.timeout })
		driver:order "start"
		server:discover()
	end

	local first = { resourceVersion = "0", limit = "2" }

	local function late()
		return driver:ask("late", { id = "g" }).text
	end

	it("without informers opens", function()
		driver:order("barrier", { id = "g", patience = 10 })
		driver:event("gate_open", "g")
	end)

	it("opens when the last informer has synced", function()
		start { namespaces = { "one", "two" }, informers = "ione,itwo", patience = 60 }
		local path = "/api/v1/namespaces/%s/configmaps"
		local one, list = server:list(first, path:format "one"), server:list(first, path:format "two")
		one:items({}, { version = "3" })
		server:watch("3", path:format "one")
		driver:wait_synced "ione"
		assert.matches("^v1/ConfigMap two: connecting, 0 objects so far$", late())
		list:items({}, { version = "3" })
		driver:event("gate_open", "g")
		assert.equal("", late())
		server:watch("3", path:format "two")
	end)

	it("opens for informers that had synced before", function()
		start { patience = 60 }
		server:list(first):items({}, { version = "3" })
		server:watch "3"
		driver:event("gate_open", "g")
		driver:order("barrier", { id = "again", informers = "i" })
		driver:event("gate_open", "again")
	end)

	it("gives up when nothing has come for as long as it is patient", function()
		start { patience = 20 }
		server:list(first):status(500, "InternalError", "etcd is unwell")
		driver:event("change", "i", function(event)
			return event.wait ~= nil
		end)
		assert.matches("^v1/ConfigMap: backing off, next try in %d s: etcd is unwell$", late())
		driver:advance(21)
		driver:event("gate_late", "g")
		assert.matches("INFORMER%s+SYNCED%s+STATE%s+OBJECTS%s+ATTEMPTS%s+WHY\nv1/ConfigMap%s+no%s+%S.-%s+0%s+1%s+etcd is unwell\n",
			driver:ask("table", { id = "g" }).text)
	end)

	it("is patient anew with each page", function()
		start { patience = 20 }
		local page = server:list(first)
		for i = 1, 4 do
			driver:advance(15)
			page:items({ object("n" .. i, i) }, { version = "10", continue = "t" .. i })
			page = server:list { continue = "t" .. i, limit = "2" }
		end
		driver:advance(15)
		page:items({}, { version = "10" })
		driver:event("gate_open", "g")
		server:watch "10"
	end)

	it("is not kept waiting by a list that always fails at the same place", function()
		start { patience = 20 }
		for _ = 1, 3 do
			server:list(first):items({ object("a", 1) }, { version = "10", continue = "t" })
			server:list({ continue = "t", limit = "2" }):status(500, "InternalError", "no")
			local change = driver:event("change", "i", function(event)
				return event.wait ~= nil
			end)
			driver:advance(change.wait + 6)
		end
		driver:event("gate_late", "g", 3)
		server:list(first)
	end)

	it("gives up after its time even while objects come", function()
		start { timeout = 20, patience = 15 }
		local page = server:list(first)
		for i = 1, 2 do
			driver:advance(11)
			page:items({ object("n" .. i, i) }, { version = "10", continue = "t" .. i })
			page = server:list { continue = "t" .. i, limit = "2" }
		end
		driver:event("gate_late", "g")
	end)

	it("says now and then which are late and why, and that all have synced", function()
		start { patience = 1000 }
		local list = server:list(first)
		driver:advance(2.5)
		driver.child:wait_for("waiting for 1 of 1 caches: v1/ConfigMap: connecting, 0 objects so far", 5)
		driver:advance(4.5)
		driver.child:wait_for("waiting for 1 of 1 caches", 5)
		list:items({}, { version = "3" })
		driver.child:wait_for("the cache has synced, after 7%.%d%d s", 5)
		server:watch "3"
	end)
end)

describe("a factory", function()
	local server, driver

	before_each(function()
		server = script.start()
		driver = cache.start(cache.config(server.url))
	end)

	after_each(function()
		driver:finish()
	end)

	it("connects to nothing before its start", function()
		driver:order("informer", { id = "i", apiVersion = "v1", kind = "ConfigMap" })
		assert.equal("not started", driver:ask("report", { id = "i" }).state)
		driver:order "start"
		server:discover()
		server:list(FIRST)
		local before = driver:ask("report", { id = "i" })
		driver:order "start"
		local after = driver:ask("report", { id = "i" })
		assert.same({ before.lists, before.watches }, { after.lists, after.watches })
	end)

	it("shares one informer among those who ask for the same", function()
		driver:order("informer", { id = "a", apiVersion = "v1", kind = "ConfigMap", namespaces = "x,y" })
		driver:order("informer", { id = "b", apiVersion = "v1", kind = "ConfigMap", namespaces = "y,x,x", page_size = 9 })
		driver:order("informer", { id = "c", apiVersion = "v1", kind = "ConfigMap", namespaces = "x" })
		driver.child:wait_for("page_size stays 0", 5)
		driver:order "start"
		server:discover()
		local lists = {}
		for i = 1, 3 do
			lists[i] = server:request().path
		end
		table.sort(lists)
		assert.same({ "/api/v1/namespaces/x/configmaps", "/api/v1/namespaces/x/configmaps", "/api/v1/namespaces/y/configmaps" }, lists)
	end)

	it("takes the usual projection for the same, spelled out or not", function()
		driver:order("informer", { id = "a", apiVersion = "v1", kind = "ConfigMap" })
		driver:order("informer", { id = "b", apiVersion = "v1", kind = "ConfigMap", drop = "metadata.managedFields" })
		driver:order("informer", { id = "c", apiVersion = "v1", kind = "ConfigMap", drop = "" })
		driver:order "start"
		server:discover()
		server:list(FIRST)
		server:list(FIRST)
		assert.has_error(function()
			server.server:accept(0.2)
		end)
	end)

	it("refuses what can be no informer", function()
		for message, fields in pairs {
			["is no apiVersion"] = { apiVersion = "a/b/c", kind = "Pod" },
			["needs a kind"] = { apiVersion = "v1" },
			["needs an apiVersion"] = { kind = "Pod" },
			["exclude each other"] = { apiVersion = "v1", kind = "Pod", drop = "spec", keep = "spec" },
			["path \"a["] = { apiVersion = "v1", kind = "Pod", drop = "a[" },
			["is no namespace"] = { apiVersion = "v1", kind = "Pod", namespaces = "a/b" },
			["in "] = { apiVersion = "v1", kind = "Pod", labels = "app in web" },
		} do
			fields.id = "i"
			driver:order("informer", fields)
			assert.matches(message, driver:event("refused", "i").message, 1, true)
		end
	end)

	it("that is shut down ends its requests at once, also where handlers hold on", function()
		driver:order("informer", { id = "i", apiVersion = "v1", kind = "ConfigMap" })
		driver:order("listen", { id = "h", informer = "i", open = 1 })
		driver:order "start"
		server:discover()
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		driver:change("i", "streaming")
		driver:order "shutdown"
		driver:order "shutdown"
		driver:order "start"
		assert(stream.peer:wait_closed(5))
		assert.equal("stopped", driver:ask("report", { id = "i" }).state)
		driver:order("informer", { id = "j", apiVersion = "v1", kind = "ConfigMap" })
		assert.matches("shut down", driver:event("refused", "j").message)
	end)
end)
