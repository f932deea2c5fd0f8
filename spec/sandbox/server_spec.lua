-- The sandbox's server by itself: its io is the spec's, so that time stands still until the spec moves it.
local k8s = require "perilune"
local sandbox = require "perilune.sandbox"

local MAPS = "/api/v1/namespaces/default/configmaps"

describe("the sandbox's server", function()
	local server, now, alarm_at, problems

	before_each(function()
		now, alarm_at, problems = 1000, nil, {}
		server = sandbox({
			now = function() return now end,
			wall = function() return 1e9 + now end,
			alarm = function(seconds) alarm_at = seconds and now + seconds end,
			log = function(text) problems[#problems + 1] = text end,
		}, { address = "here" })
	end)

	after_each(function()
		assert.same({}, problems)
	end)

	-- Time goes on; what is due happens in its order.
	local function advance(seconds)
		local until_then = now + seconds
		while alarm_at and alarm_at <= until_then do
			now, alarm_at = math.max(now, alarm_at), nil
			server.clock:ring()
		end
		now = until_then
	end

	-- An answer that keeps what it is told.
	local function wire()
		local made = { events = {}, faults = {} }
		function made:reply(status, headers, body) self.status, self.headers, self.body = status, headers, body end
		function made:open(status) self.status = status end
		function made:push(text) self.events[#self.events + 1] = text end
		function made:finish() self.finished = true end
		for _, name in ipairs { "cut", "cut_now", "reset", "silence", "slow" } do
			made[name] = function(self, value) self.faults[name] = value or true end
		end
		return made
	end

	local function send(method, path, query, body)
		local answer = wire()
		answer.gone = server:handle(method, path, query or {}, { ["user-agent"] = "spec" }, body and k8s.json.encode(body) or "", answer)
		answer.decoded = answer.body and k8s.json.decode(answer.body)
		return answer
	end

	local function make(name, more)
		local object = { metadata = { name = name } }
		for key, value in pairs(more or {}) do
			object.metadata[key] = value
		end
		local answer = send("POST", MAPS, {}, object)
		assert.equal(201, answer.status, answer.body)
		return answer.decoded
	end

	local function watch(query)
		query.watch = "1"
		return send("GET", MAPS, query)
	end

	-- "ADDED a, MODIFIED a" of a stream.
	local function told(stream)
		local found = {}
		for _, text in ipairs(stream.events) do
			local event = k8s.json.decode(text)
			found[#found + 1] = event and ("%s %s"):format(event.type, event.object.metadata.name or event.object.reason or "")
				or "no JSON"
		end
		return table.concat(found, ", ")
	end

	it("ends a watch when its time is over, and not before", function()
		local stream = watch { timeoutSeconds = "30" }
		advance(29)
		assert.is_nil(stream.finished)
		advance(1)
		assert.is_true(stream.finished)
		make "a"
		assert.equal("", told(stream))
	end)

	it("sends bookmarks each minute to those who want them", function()
		local with, without = watch { allowWatchBookmarks = "true" }, watch {}
		advance(59)
		assert.equal("", told(with))
		advance(62)
		assert.equal("BOOKMARK , BOOKMARK ", told(with))
		assert.equal("", told(without))
	end)

	it("tells nothing more to a client that has gone", function()
		local stream = watch {}
		stream.gone()
		make "a"
		assert.equal("", told(stream))
		assert.is_nil(next(server.watchers["/configmaps"]))
	end)

	it("answers 410 for history that it has forgotten, in a list and in a watch", function()
		local first = make "a"
		make "b"
		local page = send("GET", MAPS, { limit = "1" }).decoded
		make "c"
		server:restart()
		local stream = watch { resourceVersion = first.metadata.resourceVersion }
		assert.equal("ERROR Expired", told(stream))
		assert.is_true(stream.finished)
		local rest = send("GET", MAPS, { limit = "1", continue = page.metadata.continue })
		assert.equal(410, rest.status)
		assert.equal("Expired", rest.decoded.reason)
		-- The token in that answer goes on with what is there now.
		rest = send("GET", MAPS, { limit = "1", continue = rest.decoded.metadata.continue })
		assert.equal("b", rest.decoded.items[1].metadata.name)
	end)

	it("lets dependents go after their owner, or keeps them", function()
		local owner = make "owner"
		local references = k8s.array { { apiVersion = "v1", kind = "ConfigMap", name = "owner", uid = owner.metadata.uid } }
		make("owned", { ownerReferences = references })
		send("DELETE", MAPS .. "/owner", { propagationPolicy = "Orphan" })
		assert.is_false(server:is_idle())
		advance(0)
		assert.is_true(server:is_idle())
		assert.is_nil(send("GET", MAPS .. "/owned").decoded.metadata.ownerReferences)
		owner = make "owner"
		references[1].uid = owner.metadata.uid
		make("second", { ownerReferences = references })
		send("DELETE", MAPS .. "/owner", { propagationPolicy = "Foreground" })
		assert.is_table(send("GET", MAPS .. "/owner").decoded.metadata.finalizers)
		advance(0)
		assert.equal(404, send("GET", MAPS .. "/second").status)
		assert.equal(404, send("GET", MAPS .. "/owner").status)
		assert.equal(200, send("GET", MAPS .. "/owned").status)
	end)

	it("lets chains of owners go in the foreground, the last first", function()
		local uid
		for _, name in ipairs { "a", "b", "c", "d" } do
			local references = uid and k8s.array { { apiVersion = "v1", kind = "ConfigMap", name = "x", uid = uid } }
			uid = make(name, { ownerReferences = references }).metadata.uid
		end
		local stream = watch { resourceVersion = ("%d"):format(server.store.revision) }
		send("DELETE", MAPS .. "/a", { propagationPolicy = "Foreground" })
		advance(0)
		local order = told(stream):gsub("MODIFIED %l, ", "")
		assert.equal("DELETED d, DELETED c, DELETED b, DELETED a", order)
		assert.is_true(server:is_idle())
	end)

	it("keeps a namespace until its content has gone", function()
		send("POST", "/api/v1/namespaces", {}, { metadata = { name = "shop" } })
		local held = "/api/v1/namespaces/shop/configmaps"
		send("POST", held, {}, { metadata = { name = "a", finalizers = k8s.array { "example.com/x" } } })
		send("DELETE", "/api/v1/namespaces/shop")
		advance(0)
		assert.equal("Terminating", send("GET", "/api/v1/namespaces/shop").decoded.status.phase)
		local refused = send("POST", held, {}, { metadata = { name = "b" } })
		assert.equal(403, refused.status)
		assert.equal("NamespaceTerminating", refused.decoded.details.causes[1].reason)
		local object = send("GET", held .. "/a").decoded
		object.metadata.finalizers = nil
		send("PUT", held .. "/a", {}, object)
		advance(0)
		assert.equal(404, send("GET", "/api/v1/namespaces/shop").status)
	end)

	describe("with a fault", function()
		it("answers with the status that was ordered, so often and not more", function()
			local fault = server:fault {
				verb = "create", resource = "configmaps", after = 1, times = 2, action = "status", code = 429, retry_after = 3 }
			make "a"
			for _ = 1, 2 do
				local answer = send("POST", MAPS, {}, { metadata = { name = "b" } })
				assert.equal(429, answer.status)
				assert.equal("TooManyRequests", answer.decoded.reason)
				assert.equal(3, answer.decoded.details.retryAfterSeconds)
			end
			make "b"
			assert.equal(2, fault.fired)
		end)

		it("expires the page that was named", function()
			make "a"
			make "b"
			make "c"
			server:fault { verb = "list", page = 2, action = "expire" }
			local first = send("GET", MAPS, { limit = "1" }).decoded
			local second = send("GET", MAPS, { limit = "1", continue = first.metadata.continue })
			assert.equal(410, second.status)
			assert.equal(200, send("GET", MAPS, { limit = "1", continue = first.metadata.continue }).status)
		end)

		it("expires a watch at its start, and after so many events", function()
			server:fault { verb = "watch", action = "expire" }
			assert.equal(410, watch({}).status)
			server:fault { verb = "watch", action = "expire", after = 1 }
			local stream = watch {}
			make "a"
			make "b"
			assert.equal("ADDED a, ERROR Expired", told(stream))
			assert.is_true(stream.finished)
		end)

		it("spoils events", function()
			for action, expected in pairs { garbage = "no JSON", duplicate = "no JSON", wrong_kind = "ADDED wrong-kind, ADDED wrong-kind" } do
				server:fault { verb = "watch", action = action }
				local stream = watch {}
				make((action:gsub("_", "-")))
				stream.gone()
				assert.equal(expected, told(stream), action)
				send("DELETE", MAPS)
			end
		end)

		it("leaves out the end of a watch-list", function()
			local query = { sendInitialEvents = "true", resourceVersionMatch = "NotOlderThan", allowWatchBookmarks = "true" }
			local fault = server:fault { verb = "watch", action = "no_end_bookmark" }
			make "a"
			local stream = watch(query)
			assert.equal("ADDED a", told(stream))
			assert.equal(1, fault.fired)
			assert.equal("ADDED a, BOOKMARK ", told(watch(query)))
		end)

		it("cuts, resets, slows and goes silent", function()
			for action, option in pairs { cut = "bytes", slow = "bytes_per_second", reset = false, silence = false } do
				server:fault { verb = "list", action = action, [option or "times"] = option and 7 or 1 }
				local answer = send("GET", MAPS)
				assert.equal(option and 7 or true, answer.faults[action], action)
			end
			server:fault { verb = "watch", action = "cut", bytes = 5 }
			local stream = watch {}
			make "a"
			assert.equal('{"typ', table.concat(stream.events))
			assert.is_true(stream.faults.cut_now)
		end)

		it("restarts: streams break off and history is gone", function()
			local stream = watch {}
			local version = make("a").metadata.resourceVersion
			make "b"
			server:fault { verb = "get", action = "restart" }
			assert.is_true(send("GET", MAPS .. "/a").faults.reset)
			assert.is_true(stream.faults.reset)
			assert.equal("ERROR Expired", told(watch { resourceVersion = version }))
		end)

		it("says what is wrong with an order", function()
			assert.error_matches(function() server:fault { action = "explode" } end, "fault: unknown action 'explode': there are conflict, cut, .*wrong_kind$")
			assert.has_error(function() server:fault { action = "cut", bytes = "3" } end, "fault: option 'bytes' must be a number, not a string")
			assert.has_error(function() server:fault { action = "cut", bytes = -1 } end, "fault: option 'bytes' must be a number from 0 on")
			assert.error_matches(function() server:fault { action = "cut", byte = 3 } end, "fault: unknown option 'byte': there are action, after, bytes, .*")
		end)
	end)

	it("remembers what it was asked", function()
		make "a"
		local last = server.requests[#server.requests]
		assert.same({ "create", "ConfigMap", "configmaps", "default", "spec" },
			{ last.verb, last.kind, last.resource, last.namespace, last.agent })
	end)
end)
