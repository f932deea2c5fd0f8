-- One API call against a server that does what the spec says: what goes out, what is repeated, what errors tell.
local cjson = require "cjson"
local files = require "support.files"
local h2server = require "support.h2server"
local kube = require "support.kube"
local stub = require "support.stub"

local JSON = { ["content-type"] = "application/json" }

local function status_object(code, reason, message)
	return cjson.encode { kind = "Status", apiVersion = "v1", status = "Failure", code = code, reason = reason, message = message }
end

describe("a request", function()
	local server, driver, folder

	before_each(function()
		server, folder = stub.listen(), files.folder()
	end)

	after_each(function()
		if driver then
			driver:finish()
			driver = nil
		end
		server:close()
	end)

	local function start(options)
		options = options or {}
		local cluster = { server = options.server or server.url }
		for key, value in pairs(options.cluster or {}) do
			cluster[key] = value
		end
		options.kubeconfig = kube.write_config(folder .. "/config", cluster, options.user or {})
		driver = kube.start(options)
		assert(driver.ready, driver.fatal and driver.fatal.message)
		return driver
	end

	-- Sends it, answers it, and gives the request as the server saw it and the outcome.
	local function exchange(fields, status, headers, body)
		local id = driver:start(fields)
		local request = server:accept()
		request:reply(status, headers or JSON, body or "{}")
		return request, driver:event("done", id)
	end

	describe("as it goes out", function()
		it("says who asks and what it wants", function()
			start()
			local request, done = exchange({ path = "/api/v1/pods", query = "limit=5" }, 200)
			assert.same({ "GET", "/api/v1/pods?limit=5" }, { request.method, request.target })
			assert.truthy(request.headers["user-agent"]:find "^perilune/%d+%.%d+%.%d+ %(linux/%w+%)$")
			assert.equal("application/json", request.headers.accept)
			assert.is_nil(request.headers["content-type"])
			assert.is_nil(done.err)
		end)

		it("carries a body with its type", function()
			start()
			local request = exchange({ path = "/x", method = "POST", body = '{"a":"ü"}' }, 201)
			assert.same({ "POST", '{"a":"ü"}', "application/json" }, { request.method, request.body, request.headers["content-type"] })
			request = exchange({ path = "/x", method = "PATCH", body = "[]", content_type = "application/json-patch+json" }, 200)
			assert.equal("application/json-patch+json", request.headers["content-type"])
		end)

		it("keeps the path of the server's URL", function()
			start { server = server.url .. "/k8s/clusters/c-1/" }
			assert.equal("/k8s/clusters/c-1/version", (exchange({ path = "/version" }, 200)).target)
		end)

		local users = {
			token = { token = "word-1" },
			["user name and password"] = { username = "ann", password = "word-1" },
		}
		for name, user in pairs(users) do
			it("shows no " .. name .. " over plain http, and warns of that once", function()
				start { user = user }
				for _ = 1, 2 do
					local request = exchange({ path = "/x" }, 200)
					assert.is_nil(request.headers.authorization)
				end
				driver:finish()
				local stderr = driver.child:stderr()
				driver = nil
				local _, warnings = stderr:gsub("plain http", "")
				assert.equal(1, warnings)
				assert.is_nil(stderr:find("word-1", 1, true))
			end)
		end

		it("says whom to act as", function()
			start { user = { as = "ann", ["as-groups"] = { "dev", "ops" }, ["as-uid"] = "7", ["as-user-extra"] = { scopes = { "view" } } } }
			local request = exchange({ path = "/x", method = "POST", body = "{}" }, 200)
			for _, line in ipairs { "User: ann", "Group: dev", "Group: ops", "Uid: 7", "Extra-scopes: view" } do
				assert.matches("\r\nImpersonate-" .. line .. "\r\n", request.raw, 1, true)
			end
		end)

		it("of a dry run says so in every write, leases excepted", function()
			start { dry_run = true }
			local leases = "/apis/coordination.k8s.io/v1/namespaces/leases/leases"
			local expected = {
				{ "GET", "/api/v1/pods", nil, "/api/v1/pods" },
				{ "POST", "/api/v1/pods", nil, "/api/v1/pods?dryRun=All" },
				{ "DELETE", "/api/v1/pods/a", "propagationPolicy=Foreground", "/api/v1/pods/a?propagationPolicy=Foreground&dryRun=All" },
				{ "PUT", "/api/v1/pods/a", "dryRun=All", "/api/v1/pods/a?dryRun=All" },
				{ "PUT", leases .. "/l", nil, leases .. "/l" },
				{ "POST", leases, nil, leases },
				{ "POST", "/apis/coordination.k8s.io/v1/namespaces/leases/other", nil, "/apis/coordination.k8s.io/v1/namespaces/leases/other?dryRun=All" },
				{ "PATCH", "/apis/example.com/v1/leases/a", nil, "/apis/example.com/v1/leases/a?dryRun=All" },
			}
			for _, case in ipairs(expected) do
				local request = exchange({ method = case[1], path = case[2], query = case[3], body = case[1] ~= "GET" and "{}" or nil }, 200)
				assert.equal(case[4], request.target)
			end
		end)

		it("of a dry run says so in the body of a delete too, which is all that the server reads then", function()
			start { dry_run = true }
			local bodies = {
				["{}"] = '{"dryRun":["All"]}', [' {"a":{}}\n'] = '{"a":{},"dryRun":["All"]}',
				['{"dryRun":null}'] = '{"dryRun":null,"dryRun":["All"]}', ['{"dryRun":["All"]}'] = '{"dryRun":["All"]}',
				["{"] = "{", [""] = "",
			}
			for given, expected in pairs(bodies) do
				assert.equal(expected, exchange({ method = "DELETE", path = "/api/v1/pods/a", body = given:gsub("\n", " ") }, 200).body)
			end
			assert.equal("{}", exchange({ method = "POST", path = "/api/v1/pods", body = "{}" }, 200).body)
		end)
	end)

	it("goes through the proxy that the kubeconfig names, whose password no error shows", function()
		local proxy = "http://ann:word-2@127.0.0.1:" .. server.port
		start { server = "http://api.example.invalid:8080", cluster = { ["proxy-url"] = proxy } }
		local request, done = exchange({ path = "/version" }, 200)
		assert.equal("http://api.example.invalid:8080/version", request.target)
		assert.is_nil(done.err)
		server:close()
		done = driver:get "/version"
		assert.truthy(done.err.message:find("cannot reach http://api.example.invalid:8080 through its proxy", 1, true), done.err.message)
		driver:finish()
		assert.is_nil(driver:output():find("word-2", 1, true))
		driver, server = nil, stub.listen()
	end)

	describe("that the server wants later", function()
		it("is sent again when the server said, for any verb after 429", function()
			start()
			for _, method in ipairs { "GET", "POST", "DELETE" } do
				local id = driver:start { method = method, path = "/x" }
				server:accept():reply(429, { ["retry-after"] = "30" }, "")
				local wait = driver:event("wait", id)
				assert.same({ 30, 429, "TooManyRequests", true }, { wait.seconds, wait.err.code, wait.err.reason, wait.err.retryable })
				driver:order("advance", { seconds = 31 })
				local again = server:accept()
				assert.equal(method, again.method)
				again:reply(200, JSON, '{"second":true}')
				local done = driver:event("done", id)
				assert.is_nil(done.err)
				assert.is_true(done.body.second)
			end
		end)

		it("is sent again after 503, unless it creates", function()
			start()
			local id = driver:start { method = "PUT", path = "/x", body = "{}" }
			server:accept():reply(503, { ["retry-after"] = "0" }, "")
			server:accept():reply(200, JSON, "{}")
			assert.is_nil(driver:event("done", id).err)
			local _, done = exchange({ method = "POST", path = "/x", body = "{}" }, 503, { ["retry-after"] = "7" }, "")
			assert.same({ 503, "ServiceUnavailable", 7, true }, { done.err.code, done.err.reason, done.err.retry_after, done.err.retryable })
		end)

		it("is given up after ten waits", function()
			start()
			local id = driver:start { path = "/x" }
			for _ = 1, 11 do
				server:accept():reply(429, { ["retry-after"] = "0" }, "")
			end
			assert.equal(429, driver:event("done", id).err.code)
		end)

		it("is given up at once where the wait would pass its deadline", function()
			start()
			local _, done = exchange({ path = "/x", timeout = 5 }, 429, { ["retry-after"] = "6" }, "")
			assert.same({ 429, 6 }, { done.err.code, done.err.retry_after })
			assert.is_false(driver:has("wait"))
		end)

		it("is not repeated without Retry-After", function()
			start()
			local _, done = exchange({ path = "/x" }, 503, JSON, status_object(503, "ServiceUnavailable", "later"))
			assert.same({ "ServiceUnavailable", "later", true }, { done.err.reason, done.err.message, done.err.retryable })
		end)

		it("lets another one have its turn meanwhile", function()
			start()
			local waiting = driver:start { path = "/waits" }
			server:accept():reply(429, { ["retry-after"] = "100" }, "")
			driver:event("wait", waiting)
			local _, done = exchange({ path = "/other" }, 200)
			assert.is_nil(done.err)
			driver:order("cancel", { id = waiting })
		end)

		it("works over TLS and HTTP/2 too", function()
			local tls, why = h2server.start()
			if not tls then
				pending(why)
			end
			start { server = tls.url, cluster = { ["certificate-authority"] = tls.ca } }
			local done = driver:request { path = "/status?code=429&retry_after=0&times=3&id=a" }
			assert.is_nil(done.err)
			assert.is_true(done.body.ok)
			tls:close()
		end)
	end)

	describe("that fails", function()
		it("has the server's words, reason and causes", function()
			start()
			local body = cjson.encode { kind = "Status", code = 422, reason = "Invalid", message = "it is invalid",
				details = { causes = { { reason = "FieldValueRequired", field = "spec.x", message = "needed" } } } }
			local _, done = exchange({ method = "POST", path = "/x", body = "{}" }, 422, JSON, body)
			assert.same({ 422, "Invalid", "it is invalid", false, false },
				{ done.err.code, done.err.reason, done.err.message, done.err.retryable, done.err.outcome_unknown })
			assert.equal("spec.x", done.causes[1].field)
		end)

		it("has the first line of a plain answer, and nothing of a web page", function()
			start()
			local _, done = exchange({ path = "/x" }, 502, { ["content-type"] = "text/plain" }, "no healthy upstream\nmore")
			assert.equal("GET " .. server.url .. "/x: HTTP 502: no healthy upstream", done.err.message)
			_, done = exchange({ path = "/x" }, 502, { ["content-type"] = "text/html" }, "<html><body>Oops</body></html>")
			assert.equal("GET " .. server.url .. "/x: HTTP 502: Bad Gateway", done.err.message)
			_, done = exchange({ path = "/x" }, 302, { location = "http://127.0.0.1:1/" }, "")
			assert.truthy(done.err.message:find("HTTP 302: a redirect, which is not followed", 1, true))
		end)

		it("says where nobody answers", function()
			server:close()
			start()
			local done = driver:request { method = "POST", path = "/x", body = "{}" }
			assert.same({ "Connection", 0, true, false }, { done.err.reason, done.err.code, done.err.retryable, done.err.outcome_unknown })
			assert.truthy(done.err.message:find("cannot reach " .. server.url .. ": ", 1, true), done.err.message)
			server = stub.listen()
		end)

		it("says that no file is left to open, and how to get more", function()
			start { descriptors = 40 }
			local last
			for _ = 1, 60 do
				last = driver:start { path = "/hang" }
			end
			assert.matches("too many files are open; raise the limit (ulimit -n)", driver:event("done", last).err.message, 1, true)
		end)

		it("leaves the outcome of a write open when the connection breaks, and of a read never", function()
			start()
			for method, unknown in pairs { POST = true, PUT = true, PATCH = true, DELETE = true } do
				local id = driver:start { method = method, path = "/x", body = "{}" }
				server:accept().peer:close()
				local done = driver:event("done", id)
				assert.same({ "Connection", true, unknown }, { done.err.reason, done.err.retryable, done.err.outcome_unknown })
			end
			local id = driver:start { path = "/x", stream = 1 }
			local request = server:accept()
			request.peer:write "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
			driver:event("head", id)
			request.peer:close()
			local done = driver:event("done", id)
			assert.same({ "Connection", false }, { done.err.reason, done.err.outcome_unknown })
		end)

		local function cut(request, status)
			request.peer:write(("HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"):format(status))
			request.peer:close()
		end

		it("is asked again when a read's answer, or a refusal, breaks off", function()
			start()
			for method, status in pairs { GET = 200, POST = 403, PUT = 409 } do
				local id = driver:start { method = method, path = "/x", body = method ~= "GET" and "{}" or nil }
				for _ = 1, 3 do
					cut(server:accept(), status)
				end
				server:accept():reply(status, JSON, status == 200 and '{"whole":true}' or status_object(status, "Reason", "the server's words"))
				local done = driver:event("done", id)
				if status == 200 then
					assert.is_true(done.body.whole)
				else
					assert.same({ "the server's words", false }, { done.err.message, done.err.outcome_unknown })
				end
				driver:event("head", id)
				assert.is_false(driver:has("head", id))
			end
		end)

		it("has at least the status of a refusal that breaks off each time", function()
			start()
			local id = driver:start { method = "DELETE", path = "/x" }
			for _ = 1, 4 do
				cut(server:accept(), 403)
			end
			local done = driver:event("done", id)
			assert.same({ 403, "Forbidden", false }, { done.err.code, done.err.reason, done.err.outcome_unknown })
		end)

		it("is not asked again when a write was accepted, or may have been, and only its answer broke off", function()
			start()
			for status, reason in pairs { [201] = "Connection", [408] = "Timeout" } do
				local id = driver:start { method = "POST", path = "/x", body = "{}" }
				cut(server:accept(), status)
				local done = driver:event("done", id)
				assert.same({ reason, true }, { done.err.reason, done.err.outcome_unknown })
			end
		end)

		it("leaves the outcome of a write open when time runs out", function()
			start()
			local id = driver:start { method = "POST", path = "/x", body = "{}", timeout = 5 }
			local request = server:accept()
			driver:order("advance", { seconds = 6 })
			local done = driver:event("done", id)
			assert.same({ "Timeout", true, true }, { done.err.reason, done.err.retryable, done.err.outcome_unknown })
			assert.truthy(done.err.message:find("did not answer POST /x in time", 1, true), done.err.message)
			request.peer:close()
		end)

		it("leaves the outcome open after a gateway's time-out, also when a later try says otherwise", function()
			start()
			local _, done = exchange({ method = "PUT", path = "/x", body = "{}" }, 504, JSON, status_object(504, "Timeout", "slow"))
			assert.same({ "Timeout", true, true }, { done.err.reason, done.err.retryable, done.err.outcome_unknown })
			local id = driver:start { method = "PUT", path = "/x", body = "{}" }
			server:accept():reply(504, { ["retry-after"] = "0" }, "")
			server:accept():reply(409, JSON, status_object(409, "Conflict", "changed"))
			done = driver:event("done", id)
			assert.same({ "Conflict", true }, { done.err.reason, done.err.outcome_unknown })
		end)

		it("does so when it could not even be sent in time", function()
			start()
			driver:order("burst", { id = "b", count = 100, path = "/hang" })
			local id = driver:start { method = "POST", path = "/x", body = "{}", timeout = 5 }
			driver:order("advance", { seconds = 6 })
			local done = driver:event("done", id)
			assert.same({ "Timeout", false }, { done.err.reason, done.err.outcome_unknown })
			assert.truthy(done.err.message:find("too many requests are under way", 1, true), done.err.message)
		end)

		it("is refused beyond its limit of bytes", function()
			start()
			local _, done = exchange({ path = "/x", limit = 1000 }, 200, JSON, '"' .. ("x"):rep(1000) .. '"')
			assert.same({ "TooLarge", false }, { done.err.reason, done.err.retryable })
			assert.truthy(done.err.message:find("larger than 1000 bytes", 1, true), done.err.message)
		end)

		it("does not take a web page or broken JSON for an object", function()
			start()
			local _, done = exchange({ path = "/x" }, 200, { ["content-type"] = "text/html" }, "<html>log in</html>")
			assert.truthy(done.err.message:find("is no JSON but text/html", 1, true), done.err.message)
			_, done = exchange({ path = "/x" }, 200, JSON, '{"a":')
			assert.truthy(done.err.message:find("is no JSON", 1, true), done.err.message)
		end)
	end)

	it("gives other types than JSON as they are when they were asked for", function()
		start()
		local request, done = exchange({ path = "/logs", accept = "*/*" }, 200, { ["content-type"] = "text/plain" }, "line 1\nline 2\n")
		assert.equal("*/*", request.headers.accept)
		assert.equal("line 1\nline 2\n", done.body)
	end)

	it("logs every warning once, whatever the text", function()
		start()
		local warnings = { warning = { '299 - "first \\"quoted\\" thing"', '299 - "second"', '299 - "with\tcontrol"' }, ["content-type"] = "application/json" }
		for _ = 1, 3 do
			exchange({ path = "/x" }, 200, warnings)
		end
		driver:finish()
		local lines = {}
		for line in driver.child:stderr():gmatch "[^\n]+" do
			lines[#lines + 1] = line:match "API server: (.*)"
		end
		driver = nil
		assert.same({ 'first "quoted" thing', "second", "with\\tcontrol" }, lines)
	end)

	for _, event in ipairs { "head", "chunk", "wait" } do
		it("can be cancelled at its event " .. event, function()
			start()
			local id = driver:start { path = "/x", stream = 1, cancel_on = event }
			local request = server:accept()
			if event == "wait" then
				request:reply(429, { ["retry-after"] = "1" }, "")
			else
				request.peer:write "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
			end
			driver:event("cancelled", id)
			local _, done = exchange({ path = "/y" }, 200)
			assert.is_nil(done.err)
			assert.is_false(driver:has("done", id))
		end)
	end

	it("that waits for its turn can be cancelled, and the ones behind it go on", function()
		start()
		local held = {}
		driver:order("burst", { id = "b", count = 100, path = "/hang" })
		local first = driver:start { path = "/first" }
		local second = driver:start { path = "/second" }
		driver:order("cancel", { id = first })
		local seen
		repeat
			local request = server:accept()
			held[#held + 1] = request
			seen = request.target
			if seen == "/hang" then
				request:reply(200, JSON, "{}")
			end
		until seen ~= "/hang"
		assert.equal("/second", seen)
		held[#held]:reply(200, JSON, "{}")
		assert.is_nil(driver:event("done", second).err)
		while #held < 101 do
			held[#held + 1] = server:accept()
			held[#held]:reply(200, JSON, "{}")
		end
		assert.equal(100, driver:event("done", "b").good)
	end)
end)
