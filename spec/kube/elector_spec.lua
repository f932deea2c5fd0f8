-- One process in an election, against a server that does what the spec says, with the clock in the spec's hands.
local cjson = require "cjson"
local files = require "support.files"
local kube = require "support.kube"
local stub = require "support.stub"

local JSON = { ["content-type"] = "application/json" }
local ONE = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/team"
local ALL = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
local MICRO_TIME = "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%d%d%d%dZ$"

describe("an elector #slow", function()
	local server, driver, version

	before_each(function()
		server, version = stub.listen(), 10
		driver = kube.start { kubeconfig = kube.write_config(files.folder() .. "/config", { server = server.url }, {}) }
	end)

	after_each(function()
		driver:finish()
		server:close()
	end)

	local function elect(times)
		times = times or {}
		driver:order("elect", { namespace = "shop", name = "team", duration = times.duration or 15, deadline = times.deadline or 10,
			retry = times.retry or 0.05 })
	end

	local function status(request, code, reason)
		request:reply(code, JSON, cjson.encode { kind = "Status", apiVersion = "v1", status = "Failure", code = code, reason = reason, message = "no" })
	end

	-- The next request, which must be this one.
	local function expect(method, target)
		local request = server:accept()
		assert.same({ method, target }, { request.method, request.target })
		request.lease = request.body ~= "" and cjson.decode(request.body) or nil
		return request
	end

	-- Answers with a Lease; what was written, unless one is given.
	local function store(request, lease)
		lease = lease or request.lease
		version = version + 1
		lease.metadata.resourceVersion = tostring(version)
		request:reply(request.method == "POST" and 201 or 200, JSON, cjson.encode(lease))
		return lease
	end

	local function lease(spec)
		return { apiVersion = "coordination.k8s.io/v1", kind = "Lease", metadata = { namespace = "shop", name = "team", resourceVersion = "1" }, spec = spec }
	end

	local function held(by, renewed)
		return lease { holderIdentity = by, leaseDurationSeconds = 15, leaseTransitions = 3, acquireTime = "2020-01-01T00:00:00.000000Z",
			renewTime = renewed or "2020-01-01T00:00:00.000000Z" }
	end

	local function lead(times)
		elect(times)
		status(expect("GET", ONE), 404, "NotFound")
		local stored = store(expect("POST", ALL))
		driver:event "leading"
		return stored
	end

	-- It has seen the answer to the first of two reads when the second one comes, and has not taken the Lease on it.
	local function waits(found)
		for _ = 1, 2 do
			store(expect("GET", ONE), found)
		end
	end

	-- Answers its reads until it takes the Lease: what it writes.
	local function taken_from(found)
		while true do
			local request = server:accept()
			if request.method ~= "GET" then
				assert.same({ "PUT", ONE }, { request.method, request.target })
				request.lease = cjson.decode(request.body)
				return request
			end
			store(request, found)
		end
	end

	it("makes the Lease and leads", function()
		elect()
		status(expect("GET", ONE), 404, "NotFound")
		local request = expect("POST", ALL)
		local spec = request.lease.spec
		store(request)
		driver:event "leading"
		driver:order "election"
		local election = driver:event "election"
		assert.is_true(election.leading)
		assert.equal(election.identity, spec.holderIdentity)
		assert.equal(election.identity, election.holder)
		assert.matches("^.+_%x%x%x%x%x%x%x%x%-%x%x%x%x%-4%x%x%x%-[89ab]%x%x%x%-%x+$", election.identity)
		assert.same({ 15, 0 }, { spec.leaseDurationSeconds, spec.leaseTransitions })
		assert.matches(MICRO_TIME, spec.renewTime)
		assert.equal(spec.renewTime, spec.acquireTime)
	end)

	it("renews with what it read last, and leaves alone what others keep there", function()
		elect()
		local found = held ""
		found.metadata.labels, found.spec.strategy = { team = "a" }, "OldestEmulationVersion"
		store(expect("GET", ONE), found)
		local taken = expect("PUT", ONE)
		assert.equal("11", taken.lease.metadata.resourceVersion)
		assert.same({ team = "a" }, taken.lease.metadata.labels)
		assert.same({ "OldestEmulationVersion", 4 }, { taken.lease.spec.strategy, taken.lease.spec.leaseTransitions })
		local acquired = store(taken).spec.acquireTime
		assert.not_equal(found.spec.acquireTime, acquired)
		driver:event "leading"
		local renewed = expect("PUT", ONE)
		assert.equal("12", renewed.lease.metadata.resourceVersion)
		assert.same({ acquired, 4 }, { renewed.lease.spec.acquireTime, renewed.lease.spec.leaseTransitions })
		store(renewed)
		store(expect("PUT", ONE))
	end)

	for what, renewed in pairs { ["the past"] = "2001-01-01T00:00:00.000000Z", ["the future"] = "2999-01-01T00:00:00.000000Z" } do
		it("waits for another one's lease by its own clock, whatever that one's says: " .. what, function()
			elect()
			waits(held("other", renewed))
			driver:order "election"
			local election = driver:event "election"
			assert.same({ false, "other" }, { election.leading, election.holder })
			driver:order("advance", { seconds = 13 })
			waits(held("other", renewed))
			driver:order("advance", { seconds = 3 })
			local taken = taken_from(held("other", renewed))
			assert.equal(4, taken.lease.spec.leaseTransitions)
			store(taken)
			driver:event "leading"
		end)
	end

	it("waits anew for a lease that was renewed", function()
		elect()
		local renewed = held("other", "2020-01-01T00:00:13.000000Z")
		waits(held "other")
		driver:order("advance", { seconds = 13 })
		waits(renewed)
		driver:order("advance", { seconds = 13 })
		waits(renewed)
		driver:order("advance", { seconds = 3 })
		store(taken_from(renewed))
		driver:event "leading"
	end)

	it("has lost when it could not renew in time, though the server never said no", function()
		lead()
		local pending = expect("PUT", ONE)
		driver:order("advance", { seconds = 10 })
		assert.matches("not renewed within 10 s", driver:event "lost".why)
		pending.peer:close()
	end)

	it("has lost at once when somebody else is in the Lease", function()
		lead()
		status(expect("PUT", ONE), 409, "Conflict")
		store(expect("GET", ONE), held "other")
		assert.equal("other has it", driver:event "lost".why)
	end)

	it("goes on when somebody else changed something else", function()
		local mine = lead()
		status(expect("PUT", ONE), 409, "Conflict")
		mine.metadata.labels = { a = "b" }
		store(expect("GET", ONE), mine)
		local renewed = expect("PUT", ONE)
		assert.same({ a = "b" }, renewed.lease.metadata.labels)
		store(renewed)
		store(expect("PUT", ONE))
		assert.is_false(driver:has "lost")
	end)

	it("goes on after errors, and where the Lease was deleted makes it again", function()
		lead()
		status(expect("PUT", ONE), 500, "InternalError")
		status(expect("GET", ONE), 404, "NotFound")
		store(expect("POST", ALL))
		store(expect("PUT", ONE))
		assert.is_false(driver:has "lost")
	end)

	it("leads when its write was answered by nothing but found to be there", function()
		elect()
		status(expect("GET", ONE), 404, "NotFound")
		local lost = expect("POST", ALL)
		lost.peer:close()
		store(expect("GET", ONE), lost.lease)
		store(expect("PUT", ONE))
		driver:event "leading"
	end)

	it("does not lead by an answer that came when its time was over", function()
		elect { deadline = 5, duration = 15 }
		status(expect("GET", ONE), 404, "NotFound")
		local request = expect("POST", ALL)
		-- Longer than the request may take; the answer is there when the process looks again.
		driver:order("advance", { seconds = 6 })
		request.peer:close()
		store(expect("GET", ONE), request.lease)
		assert.is_false(driver:has "leading")
		store(expect("PUT", ONE))
		driver:event "leading"
	end)

	it("takes no part by an answer that is no Lease", function()
		elect()
		for _, body in ipairs { "[]", "{}", "5", '{"metadata":{"resourceVersion":5}}', '{"metadata":{"resourceVersion":""}}', "no JSON" } do
			expect("GET", ONE):reply(200, JSON, body)
		end
		status(expect("GET", ONE), 403, "Forbidden")
		store(expect("GET", ONE), lease(cjson.null))
		local taken = expect("PUT", ONE)
		taken.lease.spec.holderIdentity = "a webhook's"
		store(taken)
		store(expect("GET", ONE), held "")
		store(expect("PUT", ONE))
		driver:event "leading"
	end)

	it("gives the lease back when it stops", function()
		local mine = lead { retry = 5 }
		driver:order "resign"
		local given = expect("PUT", ONE)
		assert.same({ "", 1, mine.spec.leaseTransitions }, { given.lease.spec.holderIdentity, given.lease.spec.leaseDurationSeconds,
			given.lease.spec.leaseTransitions })
		assert.equal(mine.metadata.resourceVersion, given.lease.metadata.resourceVersion)
		store(given)
		driver:event "stopped"
	end)

	it("gives back what a write under way brings it", function()
		elect()
		status(expect("GET", ONE), 404, "NotFound")
		local request = expect("POST", ALL)
		driver:order "resign"
		store(request)
		store(expect("PUT", ONE))
		driver:event "stopped"
		assert.is_false(driver:has "leading")
	end)

	it("takes nothing from a new holder when it stops", function()
		lead { retry = 5 }
		driver:order "resign"
		status(expect("PUT", ONE), 409, "Conflict")
		store(expect("GET", ONE), held "other")
		driver:event "stopped"
	end)

	it("stops in time where the server does not answer", function()
		lead { retry = 3 }
		driver:order "resign"
		local pending = expect("PUT", ONE)
		driver:order("advance", { seconds = 5 })
		driver:event "stopped"
		pending.peer:close()
	end)

	it("waits for nobody when it stops without a lease", function()
		elect()
		store(expect("GET", ONE), held "other")
		driver:order "resign"
		driver:event "stopped"
	end)

	it("keeps its lease while a hundred calls are under way", function()
		lead { retry = 0.5 }
		driver:order("burst", { id = "many", count = 120, path = "/api/v1/pods" })
		local calls, renewals = {}, 0
		repeat
			local request = server:accept()
			if request.target == ONE then
				request.lease = cjson.decode(request.body)
				store(request)
				renewals = renewals + 1
			else
				calls[#calls + 1] = request
			end
		until #calls == 100 and renewals == 2
		driver:order("cancel", { id = "many" })
	end)

	describe("and requests of the leader's", function()
		local PATH = "/api/v1/namespaces/shop/configmaps/a"

		-- The connection stays open.
		local function answer(peer)
			peer:write "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
		end

		-- What comes next is this, so nothing else went out before it.
		local function nothing_but_a_probe()
			local id = driver:start { path = "/version" }
			expect("GET", "/version"):reply(200, JSON, "{}")
			driver:event("done", id)
		end

		it("sends them while it leads", function()
			lead { retry = 5 }
			local id = driver:start { method = "PUT", path = PATH, body = "{}", leader = 1 }
			expect("PUT", PATH):reply(200, JSON, "{}")
			assert.is_nil(driver:event("done", id).err)
		end)

		it("refuses them before, and tells that nothing happened", function()
			elect()
			store(expect("GET", ONE), held "other")
			local done = driver:event("done", driver:start { method = "PUT", path = PATH, body = "{}", leader = 1 })
			assert.same({ "NotLeader", false, false }, { done.err.reason, done.err.retryable, done.err.outcome_unknown })
			assert.matches("PUT /api/v1/namespaces/shop/configmaps/a was not sent", done.err.message)
		end)

		it("lets no byte of them out after a pause that was longer than the deadline", function()
			lead { retry = 5 }
			local first = driver:start { method = "PUT", path = PATH, body = "{}", leader = 1 }
			local peer = expect("PUT", PATH).peer
			answer(peer)
			driver:event("done", first)
			-- On a connection that is open, it would be written as soon as the process looks at its sockets again.
			local second = driver:start { method = "PUT", path = PATH, body = "{}", leader = 1, then_advance = 10 }
			assert.equal("NotLeader", driver:event("done", second).err.reason)
			driver:event "lost"
			local probe = driver:start { path = "/version" }
			assert.matches("^GET /version ", peer:request(20))
			answer(peer)
			driver:event("done", probe)
		end)

		it("cuts off what is under way, and says that it may have happened", function()
			lead { retry = 9 }
			local write = driver:start { method = "PUT", path = PATH, body = "{}", leader = 1 }
			local sent = expect("PUT", PATH)
			local read = driver:start { path = PATH, leader = 1 }
			local asked = expect("GET", PATH)
			driver:order("advance", { seconds = 10 })
			assert.is_true(driver:event("done", write).err.outcome_unknown)
			assert.is_false(driver:event("done", read).err.outcome_unknown)
			sent.peer:close()
			asked.peer:close()
		end)

		it("leaves a write that the server has not taken whole as it is", function()
			lead { retry = 9 }
			local id = driver:start { method = "PUT", path = PATH, body = ("x"):rep(16e6), leader = 1 }
			local peer = server.tcp:accept(20)
			assert.matches("content%-length: 16000000", peer:request(20):lower())
			driver:order("advance", { seconds = 10 })
			assert.is_true(driver:event("done", id).err.outcome_unknown)
			assert.is_nil(peer:read_until("y", 20)) -- its end
			assert.is_true(#peer.received < 16e6)
		end)

		it("does not send again what the server had asked to wait", function()
			lead { retry = 9 }
			local id = driver:start { method = "PUT", path = PATH, body = "{}", leader = 1 }
			expect("PUT", PATH):reply(429, { ["retry-after"] = "8" }, "{}")
			driver:event("wait", id)
			driver:order("advance", { seconds = 10 })
			assert.equal("NotLeader", driver:event("done", id).err.reason)
			nothing_but_a_probe()
		end)
	end)
end)
