-- What err says of each way in which a call can fail, and what becomes of calls that are lost, cancelled or too many.
local cli = require "support.cli"
local client = require "support.client"
local files = require "support.files"
local host = require "support.host"
local stub = require "support.stub"
local testing = require "perilune.testing"

local MAP = '{ apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "%s" } }'
local GET = "k8s.get" .. MAP:format "a"
local CREATE = "k8s.create" .. MAP:format "b"
local UPDATE = "k8s.update" .. MAP:format "a"
local NAMELESS = 'k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", generateName = "made-" } }'

-- The call with these options.
local function with(call, options)
	return (call:gsub("^([%w.]+)%s*(.*)$", "%1(%2, { " .. options .. " })"))
end

describe("err", function()
	local cluster

	before_each(function()
		cluster = testing.cluster()
		assert(cluster:create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "a" } })
	end)

	-- The outcome of the call, after that many seconds.
	local function outcome_of(call, seconds)
		client.start(cluster, "local value, err = " .. call .. " return value, err")
		cluster:advance(seconds or 0)
		return assert(client.outcome(cluster), "it has not ended")
	end

	-- A fault, a call, what its err is, and after how many seconds.
	local rows = {
		["NotFound"] = { nil, "k8s.get" .. MAP:format "none", { code = 404, text = 'NotFound: configmaps "none" not found' } },
		["AlreadyExists"] = { nil, "k8s.create" .. MAP:format "a", { code = 409 } },
		["Conflict"] = { { verb = "update", action = "conflict" }, UPDATE, { code = 409 } },
		["Forbidden"] = { { verb = "get", action = "status", code = 403 }, GET, { code = 403 } },
		["Unauthorized"] = { { verb = "get", action = "unauthorized", times = 9 }, GET, { code = 401 } },
		["Expired"] = { { verb = "list", action = "expire" }, 'k8s.list { apiVersion = "v1", kind = "ConfigMap" }', { code = 410 } },
		["RequestEntityTooLarge"] = { { verb = "create", action = "status", code = 413, reason = "RequestEntityTooLarge" }, CREATE, { code = 413 } },
		["NoKind"] = { nil, 'k8s.get { apiVersion = "v1", kind = "Pot", name = "a", namespace = "default" }', {} },
		["TooManyRequests"] = { { verb = "create", action = "status", code = 429, retry_after = 5 }, with(CREATE, "timeout = 3"),
			{ code = 429, retryable = true, retry_after = 5 } },
		["ServiceUnavailable"] = { { verb = "create", action = "status", code = 503, retry_after = 1 }, CREATE,
			{ code = 503, retryable = true, retry_after = 1 } },
		["InternalError"] = { { verb = "create", action = "status", code = 500 }, CREATE, { code = 500, retryable = true } },
		["ServerTimeout"] = { { verb = "create", action = "status", code = 500, reason = "ServerTimeout" }, CREATE,
			{ code = 500, retryable = true, outcome_unknown = true } },
		["Timeout, there"] = { { verb = "create", action = "status", code = 504 }, CREATE, { code = 504, retryable = true, outcome_unknown = true } },
		["Timeout, here, of a write"] = { { verb = "create", action = "silence" }, with(CREATE, "timeout = 3"),
			{ retryable = true, outcome_unknown = true }, 4 },
		["Timeout, here, of a read"] = { { verb = "list", action = "silence" }, 'k8s.list { apiVersion = "v1", kind = "ConfigMap", timeout = 3 }',
			{ retryable = true }, 4 },
		["Timeout, by itself"] = { { verb = "get", action = "silence" }, GET, { retryable = true }, 61 },
		["Connection"] = { { verb = "create", action = "reset" }, CREATE, { retryable = true, outcome_unknown = true } },
		["Connection, of an answer that broke off"] = { { verb = "create", action = "cut", bytes = 20 }, CREATE,
			{ retryable = true, outcome_unknown = true } },
		["Connection, of an answer that is none"] = { { verb = "create", action = "garbage" }, CREATE, { outcome_unknown = true } },
	}
	for what, row in pairs(rows) do
		it("is " .. what, function()
			local fault, call, expected, seconds = unpack(row, 1, 4)
			if fault then
				cluster:fault(fault)
			end
			local err = outcome_of(call, seconds).err
			local reason = what:match "^%a+"
			assert.same({ reason, expected.code, expected.retry_after, expected.retryable or false, expected.outcome_unknown or false },
				{ err.reason, err.code, err.retry_after, err.retryable, err.outcome_unknown })
			assert.equal(expected.text or reason .. ": " .. err.message, err.text)
			assert.is_nil(err.text:find("\n", 1, true))
		end)
	end

	it("is Invalid, and says of each field what is wrong with it", function()
		local err = outcome_of('k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "UPPER" } }').err
		assert.same({ 422, "Invalid", "metadata.name", "FieldValueInvalid" }, { err.code, err.reason, err.causes[1].field, err.causes[1].reason })
		assert.matches("UPPER", err.causes[1].message, 1, true)
	end)

	it("is none where the server asked to come back, and the call did", function()
		for verb, call in pairs { create = NAMELESS, update = UPDATE, get = GET } do
			cluster:fault { verb = verb, action = "status", code = 429, retry_after = 2, times = 3 }
			client.start(cluster, "local value, err = " .. call .. " return value, err")
			local _, before = client.outcome(cluster)
			cluster:advance(5)
			assert.equal(before, select(2, client.outcome(cluster)))
			cluster:advance(2)
			assert.equal("ConfigMap", client.outcome(cluster).value.kind)
		end
	end)
end)

-- What the client library and HTTP do about a failed request must never make two objects of one create.
describe("a create by generateName makes one object at most, and err says so where it may have", function()
	for _, order in ipairs {
		{ action = "status", code = 429, retry_after = 1 }, { action = "status", code = 500 }, { action = "status", code = 503, retry_after = 1 },
		{ action = "status", code = 504 }, { action = "unauthorized" }, { action = "reset" }, { action = "cut", bytes = 0 }, { action = "cut", bytes = 30 },
		{ action = "garbage" }, { action = "silence" }, { action = "slow", bytes_per_second = 1 }, { action = "wrong_kind" },
	} do
		it(order.action .. (order.code and " " .. order.code or ""), function()
			local cluster = testing.cluster()
			-- The first one leaves a connection that the second one finds.
			order.verb, order.after = "create", 1
			local fault = cluster:fault(order)
			client.start(cluster, "assert(" .. NAMELESS .. ") local value, err = " .. NAMELESS .. " return value, err")
			cluster:advance(100)
			local outcome, made = client.outcome(cluster), 0
			for _, one in ipairs(assert(cluster:list { apiVersion = "v1", kind = "ConfigMap", namespace = "default" })) do
				made = made + (one.metadata.name:find "^made%-" and 1 or 0)
			end
			assert.equal(1, fault.fired)
			assert.is_true(made <= 2, made .. " objects")
			if outcome.err then
				assert.is_true(made == 1 or outcome.err.outcome_unknown)
			else
				assert.equal(2, made)
			end
		end)
	end
end)

describe("API calls", function()
	local cluster

	before_each(function()
		cluster = testing.cluster { quiet = true }
	end)

	local function load(text)
		return cluster:load(files.write(files.folder() .. "/many.lua", 'local k8s = require "perilune"\n' .. text))
	end

	it("are a hundred at once, and the rest wait in order", function()
		local fault = cluster:fault { verb = "patch", action = "silence", times = 100 }
		load [[
			for i = 1, 150 do
				local map = { apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = ("m-%03d"):format(i) }
				k8s.on_synced(function() k8s.patch(map, {}, { timeout = i <= 100 and 10 or nil }) end)
			end
		]]
		cluster:advance(9)
		assert.equal(100, fault.fired)
		assert.equal(100, #cluster:requests { verb = "patch" })
		cluster:advance(2)
		local requests = cluster:requests { verb = "patch" }
		assert.equal(150, #requests)
		for i = 101, 150 do
			assert.equal(("m-%03d"):format(i), requests[i].name)
		end
	end)

	it("tell of a server's warning once, and whose call it was", function()
		load [[
			k8s.on_synced(function()
				for _ = 1, 3 do
					k8s.create({ apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "w" }, dada = 1 },
						{ field_validation = "Warn", dry_run = true })
				end
			end)
		]]
		cluster:settle()
		local found = {}
		for _, line in ipairs(cluster:logs { level = "warn" }) do
			if line.msg:find("^API server: ") then
				found[#found + 1] = line.script .. " " .. line.msg
			end
		end
		assert.same({ 'many API server: unknown field "dada"' }, found)
	end)

	it("end with the program that made them", function()
		cluster:fault { action = "silence", verb = "get", times = 9 }
		local program = load [[
			for i = 1, 5 do
				k8s.on_synced(function() k8s.get { apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "m" .. i } end)
			end
		]]
		cluster:advance(1)
		program:kill()
		cluster:settle()
	end)

	-- By a server that takes requests and answers none.
	local function silent(body)
		local server = stub.listen()
		local run = host.start {
			kubeconfig = cli.kubeconfig(files.folder(), server.url), flags = { "--grace-period", "100ms" },
			script = ("k8s.main(function() %s end)"):format(body),
		}
		return run, server
	end

	it("time out also while their kind is looked up", function()
		local run, server = silent [[
			local _, err = k8s.create({ apiVersion = "v1", kind = "Pod", metadata = { namespace = "a", name = "b" } }, { timeout = 0.2 })
			print(tostring(err), err.retryable, err.outcome_unknown)
		]]
		assert.equal("Timeout: the server did not say within 0.2 s whether it has v1 Pod\ttrue\tfalse", run:line())
		run:stop()
		server:close()
	end)

	it("are cancelled when the grace period is over, and the program ends well", function()
		local run, server = silent [[
			k8s.on_shutdown(function() print "bye" k8s.get { apiVersion = "v1", kind = "Pod", namespace = "a", name = "b" } print "no" end)
			print "here"
			k8s.create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "a", name = "b" } }
			print "no"
		]]
		assert.equal("here", run:line())
		server:accept():reply(200, { ["content-type"] = "application/json" },
			'{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["create","get"]}]}')
		local request = server:accept()
		assert.equal("POST", request.method)
		run:stop()
		assert.equal("here\nbye\n", run.child:stdout())
		server:close()
	end)
end)
