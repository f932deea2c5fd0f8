-- What an informer asks next, and when, after each kind of answer; and that nothing is lost or told twice by it.
local cache = require "support.cache"
local script = require "support.script"

local object = script.object
local FIRST = { resourceVersion = "0", limit = "500" }

describe("an informer", function()
	local server, driver

	before_each(function()
		server = script.start()
		driver = cache.start(cache.config(server.url))
	end)

	after_each(function()
		driver:finish()
	end)

	local function follow(spec, listen)
		spec = spec or {}
		spec.apiVersion, spec.kind = "v1", "ConfigMap"
		driver:follow(spec, listen)
		server:discover()
	end

	-- Listed with these objects (a map of name to version) at that version, and watching.
	local function settle(version, items)
		follow()
		server:list(FIRST):items(items or { object("a", 5) }, { version = version })
		local stream = server:watch(version)
		stream:open()
		driver:change("i", "streaming")
		return stream
	end

	-- The state after a failure; its wait lies in the bounds of that many failures in a row. Passes the time.
	local function expect_wait(failures, state)
		local change = driver:event("change", "i", function(event)
			return event.wait ~= nil
		end)
		local base = math.min(0.8 * 2 ^ (failures - 1), 30)
		assert(change.wait > base * 0.95 and change.wait <= base * 2, "the wait is " .. change.wait)
		assert.equal(state or "backing off", change.state:match "^[^,]*")
		driver:advance(change.wait)
		return change
	end

	local function told()
		local events = {}
		for i, event in ipairs(driver:rest "h") do
			events[i] = ("%s %s %s"):format(event.event, event.key or "", event.version or "")
		end
		return events
	end

	describe("lists", function()
		it("at 0 with a limit of 500, and then watches from the list's version", function()
			follow()
			local list = server:list(FIRST)
			assert.equal("application/json", list.headers.accept)
			assert.matches("^perilune/%S+ %(linux/%w+%)$", list.headers["user-agent"])
			list:items({ object("b", 7), object("a", 5) }, { version = "10" })
			server:watch("10"):open()
			driver:event("synced", "h")
			assert.same({ "add shop/b 7", "add shop/a 5" }, told())
		end)

		it("an empty namespace, and is synced at once", function()
			settle("3", {})
			assert.is_true(driver:ask("report", { id = "i" }).synced)
			driver:order("listen", { id = "late", informer = "i", open = 1 })
			assert.is_true(driver:ask("stats", { id = "late" }).synced)
		end)

		it("page by page, with the token alone, and tells nothing before the last page", function()
			follow { page_size = 2, labels = "app=web" }
			local first = server:list { resourceVersion = "0", limit = "2", labelSelector = "app=web" }
			first:items({ object("a", 5), object("b", 6) }, { version = "10", continue = "tok/en+1" })
			local second = server:list { continue = "tok/en+1", limit = "2", labelSelector = "app=web" }
			assert.same({}, told())
			assert.is_nil(driver:ask("report", { id = "i" }).synced)
			second:items({ object("c", 7) }, { version = "10" })
			server:watch "10"
			driver:event("add", "h", function(event)
				return event.key == "shop/c"
			end)
			assert.is_true(driver:ask("report", { id = "i" }).synced)
		end)

		it("again at once at no version after a 410, and waits only when that fails too", function()
			follow()
			server:list(FIRST):status(410, "Expired", "too old")
			server:list({ limit = "500" }):status(410, "Gone", "gone")
			expect_wait(1)
			server:list({ limit = "500" }):items({ object("a", 5) }, { version = "10" })
			server:watch "10"
		end)

		it("again at once at no version when the server does not know the version yet", function()
			follow()
			server:list(FIRST):too_large(3)
			server:list({ limit = "500" }):items({}, { version = "3" })
			server:watch "3"
		end)

		it("whole, at the version first asked, when a page's token expired", function()
			follow { page_size = 1 }
			server:list({ resourceVersion = "0", limit = "1" }):items({ object("a", 5) }, { version = "10", continue = "t" })
			server:list({ continue = "t", limit = "1" }):status(410, "Expired", "the token expired")
			server:list({ resourceVersion = "0" }):items({ object("b", 6) }, { version = "11" })
			server:watch("11"):open()
			driver:event("synced", "h")
			assert.same({ "add shop/b 6" }, told())
		end)

		it("waits where the server pages what was asked for whole, and lets its tokens expire", function()
			follow { page_size = 1 }
			for _, parameters in ipairs { { resourceVersion = "0", limit = "1" }, { resourceVersion = "0" }, { limit = "1" }, {} } do
				server:list(parameters):items({ object("a", 5) }, { version = "10", continue = "t" })
				server:list({ continue = "t", limit = parameters.limit }):status(410, "Expired", "the token expired")
			end
			expect_wait(1)
		end)

		it("in pages at no version when a page is gone", function()
			follow { page_size = 1 }
			server:list({ resourceVersion = "0", limit = "1" }):items({ object("a", 5) }, { version = "10", continue = "t" })
			server:list({ continue = "t", limit = "1" }):status(410, "Gone", "gone")
			server:list({ limit = "1" }):items({ object("b", 6) }, { version = "11", continue = "u" })
			-- There is nothing to fall back to from here: a server that goes on so is not asked without a pause.
			server:list({ continue = "u", limit = "1" }):status(410, "Gone", "gone")
			expect_wait(1)
			server:list({ limit = "1" }):items({ object("b", 6) }, { version = "12" })
			server:watch "12"
		end)

		it("the same again when the server says when", function()
			follow()
			server:list(FIRST):status(429, "TooManyRequests", "slow down", { ["retry-after"] = "7" })
			local change = driver:change("i", "told to wait")
			assert(change.wait > 6.5 and change.wait <= 7)
			driver:advance(7)
			server:list(FIRST):items({}, { version = "3" })
			server:watch "3"
		end)

		it("again with growing waits while the server fails, and says why", function()
			local least, most = 2, 1
			follow()
			for failures = 1, 7 do
				server:list(FIRST):status(500, "InternalError", "etcd is unwell")
				local change = expect_wait(failures)
				local part = change.wait / math.min(0.8 * 2 ^ (failures - 1), 30)
				least, most = math.min(least, part), math.max(most, part)
				assert.equal(500, change.status)
				assert.equal(failures, change.attempts)
				assert.equal("etcd is unwell", change.message)
			end
			assert(most - least > 0.05, "all waits are the same part longer") -- many clients must not come back at once
			server:list(FIRST):items({}, { version = "3" })
			server:watch "3"
		end)

		it("from the first wait again after two quiet minutes", function()
			follow()
			for failures = 1, 4 do
				server:list(FIRST):status(500, "InternalError", "no")
				expect_wait(failures)
			end
			server:list(FIRST):items({}, { version = "3" })
			local stream = server:watch "3"
			stream:open()
			driver:change("i", "streaming")
			driver:advance(125)
			stream:error(500, "InternalError", "no")
			expect_wait(1)
			server:list { resourceVersion = "3" }
		end)

		it("again after a body that breaks off, and deletes nothing", function()
			local stream = settle("10", { object("a", 5), object("b", 6) })
			stream:error(500, "InternalError", "no")
			expect_wait(1)
			local list = server:list { resourceVersion = "10" }
			list.peer:write 'HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"metadata":{"resourceVersion":"11"},"items":['
			list.peer:close()
			expect_wait(2)
			server:list({ resourceVersion = "10" }):items({ object("a", 5), object("b", 6) }, { version = "12" })
			server:watch "12"
			assert.same({ "add shop/a 5", "add shop/b 6", "synced  " }, told())
		end)

		for name, body in pairs {
			["cut short"] = '{"kind":"ConfigMapList","metadata":{"resourceVersion":"11"},"items":[{"metadata":{"name":"c"',
			["one object"] = '{"kind":"ConfigMap","metadata":{"name":"x","uid":"u","resourceVersion":"11"}}',
			["a Status"] = '{"kind":"Status","metadata":{},"status":"Success"}',
			["a page for people"] = "<html><body>welcome</body></html>",
			["without metadata"] = '{"items":[]}',
			["a list with a nameless item"] = '{"kind":"ConfigMapList","metadata":{"resourceVersion":"11"},"items":[{"metadata":{}}]}',
		} do
			it("again after an answer that is " .. name .. ", and deletes nothing", function()
				local stream = settle("10", { object("a", 5), object("b", 6) })
				stream:error(500, "InternalError", "no")
				expect_wait(1)
				server:list({ resourceVersion = "10" }).raw:reply(200, { ["content-type"] = "application/json" }, body)
				expect_wait(2)
				server:list({ resourceVersion = "10" }):items({ object("a", 5), object("b", 6) }, { version = "12" })
				server:watch "12"
				assert.same({ ["shop/a"] = "5", ["shop/b"] = "6" }, (driver:store "i"))
				assert.same({ "add shop/a 5", "add shop/b 6", "synced  " }, told())
			end)
		end

		it("in pages later too when the first list came in pages", function()
			follow()
			server:list(FIRST):items({ object("a", 5) }, { version = "10", continue = "t" })
			server:list({ continue = "t", limit = "500" }):items({ object("b", 6) }, { version = "10" })
			local stream = server:watch "10"
			stream:open()
			stream:error(410, "Expired", "too old resource version")
			expect_wait(1)
			server:list { resourceVersion = "10", limit = "500" }
		end)

		it("partial objects when only metadata is wanted", function()
			follow { metadata = 1 }
			local list = server:list(FIRST)
			assert.equal("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json", list.headers.accept)
			local partial = object("a", 5, { apiVersion = "meta.k8s.io/v1", kind = "PartialObjectMetadata" })
			list:items({ partial }, { version = "10" })
			local stream = server:watch "10"
			assert.equal("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", stream.headers.accept)
			stream:open()
			stream:event("MODIFIED", "a", 11, { apiVersion = "meta.k8s.io/v1", kind = "PartialObjectMetadata" })
			driver:event("update", "h")
			local held = driver:ask("get", { id = "i", key = "shop/a" }).object
			assert.equal("ConfigMap", held.kind)
			assert.equal("v1", held.apiVersion)
			-- A server that can't do that sends whole objects.
			stream:event("MODIFIED", "a", 12, { data = { large = "x" } })
			driver:event("update", "h")
			held = driver:ask("get", { id = "i", key = "shop/a" }).object
			assert.is_nil(held.data)
			assert.equal("12", held.metadata.resourceVersion)
		end)
	end)

	describe("whose watch", function()
		it("ends in time watches again at once from the last version", function()
			local stream = settle("10")
			local lists = driver:ask("report", { id = "i" }).lists
			stream:event("MODIFIED", "a", 12)
			stream:bookmark "20"
			stream:finish()
			stream = server:watch "20"
			stream:open()
			stream:event("ADDED", "b", 21)
			driver:event("add", "h", function(event)
				return event.key == "shop/b"
			end)
			local report = driver:ask("report", { id = "i" })
			assert.same({ lists, { ended = 1 } }, { report.lists, report.restarts })
		end)

		it("breaks off inside an event gets that event again", function()
			local stream = settle("10")
			stream:event("MODIFIED", "a", 12)
			stream:raw_bytes '{"type":"ADDED","object":{"apiVersion":"v1","ki'
			driver:event("update", "h")
			stream:cut()
			stream = server:watch "12"
			stream:open()
			stream:event("ADDED", "b", 13)
			driver:event("add", "h", function(event)
				return event.key == "shop/b"
			end)
			assert.same({ broken = 1 }, driver:ask("report", { id = "i" }).restarts)
		end)

		it("goes on from a version that the server has lost lists what there is", function()
			local stream = settle("500")
			stream:event("ADDED", "b", 501)
			driver:event("add", "h", function(event)
				return event.key == "shop/b"
			end)
			stream:cut()
			server.history = 20 -- it began anew
			server:watch("501"):open()
			server:list({ limit = "500" }):items({ object("c", 18) }, { version = "20" })
			server:watch "20"
			driver:event("add", "h", function(event)
				return event.key == "shop/c"
			end)
			assert.same({ ["shop/c"] = "18" }, (driver:store "i"))
		end)

		it("ends at once without an event lists again, after a wait", function()
			local stream = settle("10")
			stream:finish()
			local change = expect_wait(1)
			assert.matches("the watch ended after 0%.%d s without an event", change.message)
			server:list({ resourceVersion = "10" }):items({ object("a", 5) }, { version = "20" })
			-- A bookmark is no event: one a stream would make an endless loop of them.
			stream = server:watch "20"
			stream:open()
			stream:bookmark "21"
			stream:finish()
			expect_wait(2)
			server:list { resourceVersion = "21" }
		end)

		it("brings nothing new and ends at once lists again, after a wait", function()
			local stream = settle("10")
			stream:event("MODIFIED", "a", 4)
			stream:finish()
			expect_wait(1)
		end)

		it("ends without an event after a while watches again at once", function()
			local stream = settle("10")
			driver:advance(301)
			stream:finish()
			server:watch "10"
		end)

		for _, row in ipairs {
			{ "an expired version", 410, "Expired" },
			{ "anything else", 500, "InternalError" },
		} do
			it("tells of " .. row[1] .. " lists again from there, after a wait", function()
				local stream = settle("10")
				stream:event("ADDED", "b", 12)
				stream:error(row[2], row[3], "no")
				expect_wait(1)
				server:list({ resourceVersion = "12" }):status(410, "Expired", "no")
				server:list({ limit = "500" }):items({ object("a", 5), object("b", 12) }, { version = "30" })
				server:watch "30"
				assert.equal(0, #driver:rest "none")
				assert.same({ "add shop/a 5", "synced  ", "add shop/b 12" }, told())
			end)
		end

		it("is expired because the server was away lists again soon, however long that was", function()
			local stream = settle("10")
			driver:advance(2)
			stream:cut()
			for failures = 1, 6 do
				server:watch("10").peer:close()
				expect_wait(failures)
			end
			stream = server:watch "10"
			stream:open()
			stream:error(410, "Expired", "too old resource version: 10 (90)")
			expect_wait(1)
			stream = server:list { resourceVersion = "10" }
			stream:items({ object("a", 5) }, { version = "90" })
			stream = server:watch "90"
			stream:open()
			stream:error(410, "Expired", "too old resource version: 90 (91)")
			expect_wait(2)
			server:list { resourceVersion = "90" }
		end)

		it("is refused for its number watches again, when told", function()
			local stream = settle("10")
			stream:event("ADDED", "b", 12)
			stream:error(429, "TooManyRequests", "no", { details = { retryAfterSeconds = 9 } })
			local change = driver:change("i", "told to wait")
			assert(change.wait > 8.5 and change.wait <= 9)
			driver:advance(9)
			server:watch "12"
		end)

		for _, row in ipairs {
			{ 429, "TooManyRequests" }, { 503, "ServiceUnavailable" },
		} do
			it(("can't begin (%d) watches again when the server says"):format(row[1]), function()
				follow()
				server:list(FIRST):items({}, { version = "10" })
				server:watch("10"):status(row[1], row[2], "no", { ["retry-after"] = "4" })
				local change = driver:event("change", "i", function(event)
					return event.wait ~= nil
				end)
				assert(change.wait > 3.5 and change.wait <= 4)
				driver:advance(4)
				server:watch "10"
			end)
		end

		it("can't begin for want of an answer watches again, after a wait", function()
			follow()
			server:list(FIRST):items({}, { version = "10" })
			server:watch("10").peer:reset()
			expect_wait(1)
			server:watch("10").peer:close()
			expect_wait(2)
			server:watch "10"
		end)

		for _, code in ipairs { 400, 403, 404, 410, 500 } do
			it(("can't begin (%d) lists again, after a wait"):format(code), function()
				follow()
				server:list(FIRST):items({}, { version = "10" })
				server:watch("10"):status(code, "Whatever", "no")
				expect_wait(1, code == 403 and "stale: forbidden" or nil)
				server:list { resourceVersion = "10" }
			end)
		end

		it("brings garbage goes on from the last good event, after a wait", function()
			local stream = settle("10")
			stream:event("ADDED", "b", 12)
			stream:raw_bytes '{"type":"ADDED","object":{"apiVersion":"v1",,}}\n'
			expect_wait(1)
			server:watch "12"
		end)

		it("brings nothing but garbage lists again, after a wait", function()
			local stream = settle("10")
			stream:raw_bytes "what?\n"
			expect_wait(1)
			server:list { resourceVersion = "10" }
		end)

		it("brings an unknown type goes on from the event before, after a wait", function()
			local stream = settle("10")
			stream:event("ADDED", "b", 12)
			stream:event("RENAMED", "b", 13)
			local change = expect_wait(1)
			assert.matches("unknown type", change.message)
			server:watch "12"
		end)

		it("brings events of another kind skips them, and keeps its place", function()
			local stream = settle("10")
			stream:event("ADDED", "secret", 15, { kind = "Secret" })
			stream:event("MODIFIED", "a", 12)
			driver:event("update", "h")
			stream:finish()
			server:watch "12"
			assert.equal(1, driver:ask("report", { id = "i" }).skipped)
			assert.same({ ["shop/a"] = "12" }, (driver:store "i"))
		end)

		it("brings an event twice, or an older one, takes nothing back", function()
			local stream = settle "10"
			stream:event("MODIFIED", "a", 12)
			stream:event("MODIFIED", "a", 12)
			stream:event("ADDED", "b", 13)
			stream:event("MODIFIED", "a", 11)
			stream:event("DELETED", "a", 11)
			stream:event("DELETED", "none", 11)
			stream:finish()
			server:watch "13"
			local report = driver:ask("report", { id = "i" })
			assert.same({ 2, 2 }, { report.duplicates, report.stale })
			assert.same({ "add shop/a 5", "synced  ", "update shop/a 12", "add shop/b 13" }, told())
			assert.same({ ["shop/a"] = "12", ["shop/b"] = "13" }, (driver:store "i"))
		end)

		it("shows another uid under the same name tells a delete and an add", function()
			local stream = settle "10"
			stream:event("MODIFIED", "a", 12, { uid = "another" })
			local gone = driver:event("delete", "h")
			local new = driver:event("add", "h", function(event)
				return event.uid == "another"
			end)
			assert.same({ "uid-a", true }, { gone.uid, gone.final_state_unknown })
			assert.same({ "another", "12" }, { new.uid, new.version })
		end)
	end)

	describe("that lists again", function()
		local function relist(items, version)
			local stream = settle("10", { object("a", 5), object("b", 6), object("c", 7), object("d", 8) })
			driver:event("synced", "h")
			driver:rest "h"
			stream:error(410, "Expired", "no")
			expect_wait(1)
			server:list({ resourceVersion = "10" }):items(items, { version = version })
			server:watch(version):open()
			driver:change("i", "streaming")
			driver:ask("report", { id = "i" })
			return driver:rest "h"
		end

		it("tells deletes, then adds and updates in list order, and nothing of what is the same", function()
			local events = relist({ object("new", 20), object("d", 21), object("c", 7), object("b", 22, { uid = "other" }) }, "30")
			local lines = {}
			for i, event in ipairs(events) do
				lines[i] = ("%s %s %s %s"):format(event.event, event.key, event.version, tostring(event.final_state_unknown))
			end
			assert.same({ "delete shop/a 5 true", "delete shop/b 6 true", "add shop/new 20 nil", "update shop/d 21 nil",
				"add shop/b 22 nil" }, lines)
			local _, keys = driver:store "i"
			assert.same({ "shop/b", "shop/c", "shop/d", "shop/new" }, keys)
		end)

		it("does not take an object back", function()
			assert.same({}, relist({ object("a", 4), object("b", 6), object("c", 7), object("d", 8) }, "30"))
			assert.equal("5", driver:store("i")["shop/a"])
		end)

		it("at no version believes what is older", function()
			local stream = settle("100", { object("a", 50), object("b", 60) })
			stream:error(410, "Expired", "no")
			expect_wait(1)
			server:list({ resourceVersion = "100" }):status(410, "Expired", "no")
			server:list({ limit = "500" }):items({ object("a", 40), object("b", 60, { data = { restored = "yes" } }) }, { version = "70" })
			server:watch "70"
			driver:event("update", "h", function(event)
				return event.key == "shop/a" and event.version == "40"
			end)
			driver:event("update", "h", function(event)
				return event.key == "shop/b"
			end)
			assert.equal("yes", driver:ask("get", { id = "i", key = "shop/b" }).object.data.restored)
		end)
	end)

	it("of one namespace takes nothing of another", function()
		follow { namespaces = "shop" }
		local path = "/api/v1/namespaces/shop/configmaps"
		local strange = object("b", 6)
		strange.metadata.namespace = nil
		server:list(FIRST, path):items({ object("a", 5), strange, object("c", 7, { namespace = "other" }) }, { version = "10" })
		local stream = server:watch("10", path)
		stream:open()
		stream:event("ADDED", "d", 11, { namespace = "other" })
		stream:event("ADDED", "e", 12)
		driver:event("add", "h", function(event)
			return event.key == "shop/e"
		end)
		assert.same({ ["shop/a"] = "5", ["shop/e"] = "12" }, (driver:store "i"))
		assert.equal(3, driver:ask("report", { id = "i" }).skipped)
	end)

	describe("of several namespaces", function()
		it("lists each on its own, and a relist of one leaves the other alone", function()
			follow { namespaces = "one,two" }
			local path = "/api/v1/namespaces/%s/configmaps"
			local function request_of(name, parameters)
				return server:list(parameters, path:format(name))
			end
			local lists = {} -- in any order
			for _ = 1, 2 do
				local list = server:request()
				assert.same(FIRST, list.parameters)
				lists[list.path] = list
			end
			lists[path:format "one"]:items({ object("a", 5, { namespace = "one" }) }, { version = "10" })
			local one = server:watch("10", path:format "one")
			one:open()
			driver:event("add", "h")
			assert.is_nil(driver:ask("report", { id = "i" }).synced)
			lists[path:format "two"]:items({ object("a", 6, { namespace = "two" }) }, { version = "11" })
			server:watch("11", path:format "two"):open()
			driver:event("synced", "h")
			one:error(410, "Expired", "no")
			expect_wait(1)
			request_of("one", { resourceVersion = "10" }):items({}, { version = "20" })
			server:watch("20", path:format "one")
			driver:event("delete", "h", function(event)
				return event.key == "one/a" and event.final_state_unknown
			end)
			assert.same({ ["two/a"] = "6" }, (driver:store "i"))
		end)
	end)

	describe("without rights", function()
		it("names the rule that is missing, and tries again within 30 s", function()
			follow { namespaces = "shop" }
			driver:order("barrier", { id = "g", informers = "i", patience = 1000 })
			local path = "/api/v1/namespaces/shop/configmaps"
			for failures = 1, 8 do
				server:list(FIRST, path):status(403, "Forbidden", "configmaps is forbidden: eve can't")
				local change = driver:event("change", "i", function(event)
					return event.wait and event.attempts == failures
				end)
				assert(change.wait <= 30)
				assert.equal("configmaps is forbidden: eve can't (missing: list, watch on configmaps in namespace shop)", change.message)
				driver:advance(change.wait)
			end
			assert.matches("^v1/ConfigMap shop: .*%(missing: list, watch on configmaps in namespace shop%)$",
				driver:ask("late", { id = "g" }).text)
			server:list(FIRST, path):items({}, { version = "3" })
			server:watch("3", path):status(403, "Forbidden", "no")
			local change = driver:event("change", "i", function(event)
				return event.message ~= "" and event.synced
			end)
			assert.matches("%(missing: watch on configmaps in namespace shop%)$", change.message)
			driver:event("gate_open", "g")
		end)
	end)

	describe("of an absent kind", function()
		it("looks the kind up again until it is there", function()
			driver:follow({ apiVersion = "v1", kind = "ConfigMap" })
			server:discover(true)
			local change = expect_wait(1, "no such kind")
			assert.is_nil(change.synced)
			server:discover(true)
			expect_wait(2, "no such kind")
			server:discover()
			server:list(FIRST):items({}, { version = "3" })
			server:watch "3"
		end)

		it("that was there tells deletes once discovery agrees, and adds when it is back", function()
			local stream = settle "10"
			stream:error(500, "InternalError", "no")
			expect_wait(1)
			server:list({ resourceVersion = "10" }):status(404, "NotFound", "the server could not find the requested resource")
			expect_wait(1, "no such kind")
			assert.equal(1, #(select(2, driver:store "i")))
			server:discover(true)
			local gone = driver:event("delete", "h")
			assert.is_true(gone.final_state_unknown)
			expect_wait(2, "parked: no such kind")
			server:discover()
			server:list(FIRST):items({ object("a", 50, { uid = "new" }) }, { version = "60" })
			server:watch "60"
			driver:event("add", "h", function(event)
				return event.uid == "new" and not event.initial
			end)
		end)
	end)
end)
