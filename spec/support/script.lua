--- An API server of ConfigMaps in the spec's own hands, on plain HTTP: each request is shown, and answered as the spec says.
--
--   local script = script.start()               script.url
--   local request = script:list { resourceVersion = "0", limit = "500" }   waits for a LIST with exactly these parameters
--   request:items({ script.object("a", 5) }, { version = "10", continue = "x" })
--   request:status(410, "Expired", "too old")   a Status; with headers as a fourth
--   local stream = script:watch "10"            waits for a WATCH from that resourceVersion
--   script.streams = true                       it takes watch-lists; else it refuses them by itself, as older servers do
--   script.history = 20                         the version that it has reached; nil: further than any that is asked for
--   local stream = script:watch_list "10"       waits for a watch-list from that resourceVersion; nil for none
--   stream:initial_end "10"                     the bookmark behind the initial state
--   stream:open()  stream:event("ADDED", "a", 11)  stream:raw_bytes(bytes)  stream:finish()  stream:cut()
local assert = require "luassert"
local cjson = require "cjson"
local stub = require "support.stub"

local script = {}

local SECONDS = 20

local Script, Exchange = {}, {}
Script.__index, Exchange.__index = Script, Exchange

function script.start()
	local server = stub.listen()
	return setmetatable({ server = server, url = server.url }, Script)
end

--- A ConfigMap as it comes in a list (fields may name namespace, uid and whatever else) or, with apiVersion and kind, in an event.
function script.object(name, version, fields)
	fields = fields or {}
	local object = { metadata = { name = name, namespace = fields.namespace or "shop", uid = fields.uid or "uid-" .. name,
		resourceVersion = tostring(version), labels = fields.labels } }
	for _, key in ipairs { "data", "apiVersion", "kind" } do
		object[key] = fields[key]
	end
	return object
end

local function decode(text)
	return (text:gsub("%%(%x%x)", function(hex)
		return string.char(tonumber(hex, 16))
	end))
end

function Script:accept()
	local raw = self.server:accept(SECONDS)
	local path, query = raw.target:match "^([^?]*)%??(.*)$"
	local exchange = setmetatable({ raw = raw, path = path, parameters = {}, headers = raw.headers, peer = raw.peer }, Exchange)
	for name, value in query:gmatch "([^&=]+)=([^&]*)" do
		exchange.parameters[name] = decode(value)
	end
	return exchange
end

-- Of a version, by a watch that goes on.
function Exchange:is_probe()
	local parameters = self.parameters
	return not parameters.watch and parameters.limit == "1" and parameters.resourceVersion and parameters.resourceVersion ~= "0"
end

--- The next request that is not answered by itself: path, and parameters.
function Script:request()
	while true do
		local exchange = self:accept()
		if exchange.path == "/version" then
			exchange:json(200, { gitVersion = self.version or "v1.30.0" })
		elseif exchange.parameters.sendInitialEvents and not self.streams then
			exchange:status(422, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
		elseif exchange:is_probe() and not self.history then
			exchange:items({}, { version = exchange.parameters.resourceVersion })
		elseif exchange:is_probe() and tonumber(exchange.parameters.resourceVersion) > self.history then
			exchange:too_large(self.history)
		else
			return exchange
		end
	end
end

--- Answers the look-up of the kind. With `absent`, as a server that does not have it.
function Script:discover(absent)
	local request = self:request()
	assert.equal("/api/v1", request.path)
	local kind = { name = "configmaps", singularName = "configmap", namespaced = true, kind = "ConfigMap", verbs = { "list", "watch" } }
	request:json(200, { kind = "APIResourceList", groupVersion = "v1", resources = absent and {} or { kind } })
	-- The first time, near names are looked for among all kinds.
	for _ = 1, absent and not self.asked_all and 2 or 0 do
		local all = self:request()
		assert(all.path == "/api" or all.path == "/apis", all.path)
		all:status(404, "NotFound", "no")
	end
	self.asked_all = self.asked_all or absent
end

function Script:list(parameters, path)
	local request = self:request()
	assert.is_nil(request.parameters.watch)
	assert.same(parameters, request.parameters)
	assert.equal(path or "/api/v1/configmaps", request.path)
	return request
end

function Script:watch(version, path)
	local request = self:request()
	assert.equal("true", request.parameters.watch)
	assert.equal("true", request.parameters.allowWatchBookmarks)
	assert.equal(version, request.parameters.resourceVersion)
	assert.equal(path or "/api/v1/configmaps", request.path)
	local timeout = tonumber(request.parameters.timeoutSeconds)
	assert(timeout >= 300 and timeout < 600, "timeoutSeconds is " .. tostring(timeout))
	return request
end

function Script:watch_list(version, path)
	local request = self:watch(version, path)
	assert.equal("true", request.parameters.sendInitialEvents)
	assert.equal("NotOlderThan", request.parameters.resourceVersionMatch)
	return request
end

function Exchange:json(status, body, headers)
	headers = headers or {}
	headers["content-type"] = "application/json"
	local text = cjson.encode(body):gsub('"(%w+)":{}', '"%1":[]')
	self.raw:reply(status, headers, text)
end

function Exchange:items(items, options)
	options = options or {}
	self:json(200, { kind = "ConfigMapList", apiVersion = "v1", items = items,
		metadata = { resourceVersion = options.version, continue = options.continue } })
end

local function status_of(code, reason, message, extra)
	local status = { kind = "Status", apiVersion = "v1", status = "Failure", code = code, reason = reason, message = message }
	for key, value in pairs(extra or {}) do
		status[key] = value
	end
	return status
end

function Exchange:status(code, reason, message, headers, extra)
	self:json(code, status_of(code, reason, message, extra), headers)
end

function Exchange:too_large(current)
	local message = ("Too large resource version: %s, current: %d"):format(self.parameters.resourceVersion, current)
	self:status(504, "Timeout", message, { ["retry-after"] = "1" }, {
		details = { retryAfterSeconds = 1, causes = { { reason = "ResourceVersionTooLarge", message = "Too large resource version" } } },
	})
end

function Exchange:open()
	self.peer:write "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
end

function Exchange:raw_bytes(bytes)
	self.peer:write(("%x\r\n%s\r\n"):format(#bytes, bytes))
end

function Exchange:send(kind, object)
	self:raw_bytes(cjson.encode { type = kind, object = object } .. "\n")
end

function Exchange:event(kind, name, version, fields)
	fields = fields or {}
	fields.apiVersion, fields.kind = fields.apiVersion or "v1", fields.kind or "ConfigMap"
	self:send(kind, script.object(name, version, fields))
end

function Exchange:bookmark(version)
	self:send("BOOKMARK", { apiVersion = "v1", kind = "ConfigMap", metadata = { resourceVersion = version } })
end

function Exchange:initial_end(version)
	self:send("BOOKMARK", { apiVersion = "v1", kind = "ConfigMap",
		metadata = { resourceVersion = version, annotations = { ["k8s.io/initial-events-end"] = "true" } } })
end

function Exchange:error(code, reason, message, extra)
	self:send("ERROR", status_of(code, reason, message, extra))
end

--- Ends the stream as a server does whose time is over.
function Exchange:finish()
	self.peer:write "0\r\n\r\n"
	self.peer:close()
end

--- Breaks it off.
function Exchange:cut()
	self.peer:close()
end

return script
