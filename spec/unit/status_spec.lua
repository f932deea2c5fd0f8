-- What a failed answer means for the caller.
local cjson = require "cjson"
local kube_units = require "support.kube_units"

-- The order of enum http_failure.
local CONNECT, UNTRUSTED, TIMEOUT, BROKEN, TOO_LARGE, REFUSED = 1, 2, 3, 4, 5, 6

local function status(fields)
	fields.kind, fields.apiVersion, fields.status = "Status", "v1", "Failure"
	return cjson.encode(fields)
end

describe("a failed answer", function()
	local units

	setup(function()
		units = kube_units.start()
	end)

	teardown(function()
		units:finish()
	end)

	local function answer(fields)
		return units:one("answer", fields)
	end

	it("speaks with the server's words when it is a Status", function()
		local err = answer { status = 409, body = status { code = 409, reason = "AlreadyExists", message = 'pods "a" already exists' } }
		assert.same({ 409, "AlreadyExists", 'pods "a" already exists', false }, { err.code, err.reason, err.message, err.retryable })
	end)

	it("has the usual reason of its code when it says nothing itself", function()
		local usual = {
			[400] = "BadRequest", [401] = "Unauthorized", [403] = "Forbidden", [404] = "NotFound", [405] = "MethodNotAllowed",
			[409] = "Conflict", [410] = "Gone", [413] = "RequestEntityTooLarge", [422] = "Invalid", [429] = "TooManyRequests",
			[500] = "InternalError", [502] = "InternalError", [503] = "ServiceUnavailable", [504] = "Timeout", [599] = "InternalError",
		}
		for code, reason in pairs(usual) do
			local err = answer { status = code }
			assert.same({ code, reason }, { err.code, err.reason })
			assert.truthy(err.message:find("HTTP " .. code, 1, true))
			err = answer { status = code, body = '{"kind":"Status"}' }
			assert.same({ code, reason }, { err.code, err.reason })
		end
	end)

	it("can be retried when the server was busy or broken, and not when the request was wrong", function()
		for code, retryable in pairs { [400] = false, [401] = false, [403] = false, [404] = false, [408] = true, [409] = false, [410] = false,
			[422] = false, [429] = true, [500] = true, [502] = true, [503] = true, [504] = true } do
			assert.equal(retryable, answer({ status = code }).retryable, code)
		end
	end)

	it("leaves the outcome of a write open only when it may have happened", function()
		local timed_out = status { code = 500, reason = "InternalError", message = "etcdserver: request timed out" }
		local leader_changed = status { code = 500, reason = "InternalError", message = "etcdserver: leader changed" }
		local server_timeout = status { code = 500, reason = "ServerTimeout", message = "try again" }
		local denied = status { code = 500, reason = "InternalError", message = "admission webhook is broken" }
		local cases = {
			{ 504, nil, true }, { 502, nil, true }, { 503, nil, false }, { 429, nil, false }, { 409, nil, false }, { 422, nil, false },
			{ 500, timed_out, true }, { 500, leader_changed, true }, { 500, server_timeout, true }, { 500, denied, false },
		}
		for _, case in ipairs(cases) do
			assert.equal(case[3], answer({ status = case[1], body = case[2], write = 1 }).outcome_unknown)
			assert.is_false(answer({ status = case[1], body = case[2] }).outcome_unknown)
		end
	end)

	it("says how long to wait: the header counts, else the Status, never more than an hour", function()
		local body = status { code = 429, reason = "TooManyRequests", message = "m", details = { retryAfterSeconds = 5 } }
		assert.equal(5, answer({ status = 429, body = body }).retry_after)
		assert.equal(2, answer({ status = 429, body = body, retry_after = 2 }).retry_after)
		assert.is_nil(answer({ status = 429 }).retry_after)
		body = status { code = 429, details = { retryAfterSeconds = 1e6 } }
		assert.equal(3600, answer({ status = 429, body = body }).retry_after)
	end)

	it("shows the first line of plain text, and no markup", function()
		assert.equal("HTTP 503: upstream is down", answer({ status = 503, body = "\n upstream is down\r\nsecond line" }).message)
		assert.equal("HTTP 503: Service Unavailable", answer({ status = 503, body = "<!doctype html><p>no" }).message)
		assert.equal("HTTP 503: Service Unavailable", answer({ status = 503, body = '{"kind":"Stat' }).message)
		local long = answer { status = 500, body = ("ä"):rep(5000) }
		assert(#long.message < 1024)
		assert.is_nil(answer({ status = 500, body = "a\27[31mb\7" }).message:find "%c")
	end)

	it("survives a Status with other types than it should have", function()
		for _, body in ipairs { '{"kind":"Status","message":7,"reason":[],"code":"x","details":[]}', '{"kind":"Status","reason":null,"details":{"causes":{}}}',
			"[]", "null", '"Status"', '{"kind":"Pod"}', '{"kind":"Status","code":99999999999999999999}' } do
			local err = answer { status = 404, body = body }
			assert.same({ 404, "NotFound" }, { err.code, err.reason })
			assert(#err.message > 0)
		end
	end)

	it("has its causes at hand", function()
		local body = status { code = 422, reason = "Invalid", message = "m", details = { causes = { { reason = "R", message = "M", field = "f" } } } }
		local causes = cjson.decode(answer({ status = 422, body = body }).causes)
		assert.equal("f", causes[1].field)
	end)
end)

describe("no answer", function()
	it("is explained by what happened to the connection", function()
		local units = kube_units.start()
		local cases = {
			{ CONNECT, "Connection", true }, { UNTRUSTED, "Connection", false }, { TIMEOUT, "Timeout", true }, { BROKEN, "Connection", true },
			{ TOO_LARGE, "TooLarge", false }, { REFUSED, "BadRequest", false },
		}
		for _, case in ipairs(cases) do
			local err = units:one("failure", { failure = case[1], message = "why" })
			assert.same({ 0, case[2], "why", case[3], false }, { err.code, err.reason, err.message, err.retryable, err.outcome_unknown })
			assert.is_false(units:one("failure", { failure = case[1], sent = 1 }).outcome_unknown)
			assert.is_false(units:one("failure", { failure = case[1], write = 1 }).outcome_unknown)
			assert.is_true(units:one("failure", { failure = case[1], sent = 1, write = 1, status = 200 }).outcome_unknown)
		end
		units:finish()
	end)
end)

describe("a Status in a watch", function()
	local units

	setup(function()
		units = kube_units.start()
	end)

	teardown(function()
		units:finish()
	end)

	it("tells an expired version from one that is gone", function()
		local err = units:one("object", { body = status { code = 410, reason = "Expired", message = "too old resource version: 1 (5)" } })
		assert.same({ 410, "Expired", "too old resource version: 1 (5)" }, { err.code, err.reason, err.message })
		err = units:one("object", { body = status { code = 410, message = "gone" } })
		assert.equal("Gone", err.reason)
	end)

	it("is known for a too large resourceVersion, also as older servers say it", function()
		local message = "Too large resource version: 100, current: 5"
		local yes = {
			{ code = 504, reason = "Timeout", message = message, details = { causes = { { reason = "ResourceVersionTooLarge", message = "x" } } } },
			{ code = 504, reason = "Timeout", message = "Timeout: " .. message },
			{ code = 504, reason = "Timeout", message = "m", details = { causes = { { message = "Too large resource version" } } } },
			{ code = 410, reason = "Expired", message = message },
		}
		local no = {
			{ code = 504, reason = "Timeout", message = "the request did not complete in time" },
			{ code = 410, reason = "Expired", message = "too old resource version: 1 (5)" },
			{ code = 500, reason = "InternalError", message = message },
		}
		for _, fields in ipairs(yes) do
			assert.is_true(units:one("object", { body = status(fields) }).too_large_version)
		end
		for _, fields in ipairs(no) do
			assert.is_false(units:one("object", { body = status(fields) }).too_large_version)
		end
	end)
end)
