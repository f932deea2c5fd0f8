--- A request to the function that answers it, and its answer onto the wire.
local k8s = require "perilune"
local create = require "perilune.sandbox.write"
local delete = require "perilune.sandbox.delete"
local discovery = require "perilune.sandbox.discovery"
local fail = require "perilune.sandbox.fail"
local list = require "perilune.sandbox.list"
local openapi = require "perilune.sandbox.openapi"
local patch = require "perilune.sandbox.patch"
local path = require "perilune.sandbox.path"
local rights = require "perilune.sandbox.rights"
local scale = require "perilune.sandbox.scale"
local watch = require "perilune.sandbox.watch"

local router = {}

-- --- pages that are no objects ---

local VERSION = {
	major = "1", minor = "36", emulationMajor = "1", emulationMinor = "36", minCompatibilityMajor = "1", minCompatibilityMinor = "35",
	gitVersion = "v1.36.3", gitCommit = "", gitTreeState = "clean", buildDate = "1970-01-01T00:00:00Z", goVersion = "",
	compiler = "", platform = "linux/amd64",
}

local function ok()
	return { status = 200, content_type = "text/plain; charset=utf-8", body = "ok" }
end

local PAGES = {
	["/healthz"] = ok, ["/livez"] = ok, ["/readyz"] = ok,
	["/version"] = function()
		return { status = 200, body = k8s.json.encode(VERSION) }
	end,
	["/api"] = discovery.core, ["/apis"] = discovery.groups,
	["/openapi/v2"] = openapi.v2, ["/openapi/v3"] = openapi.v3,
}

-- --- resources ---

local VERBS = {
	get = list.get, list = list.handle, watch = watch.handle, create = create.create, update = create.update,
	patch = patch.handle, delete = delete.handle, deletecollection = delete.collection,
}

local METHODS = { POST = "create", PUT = "update", PATCH = "patch" }

local function verb_of(request)
	if request.method == "GET" then
		if watch.is_true(request.query.watch) then
			return "watch"
		end
		return request.name and "get" or "list"
	elseif request.method == "DELETE" then
		return request.name and "delete" or "deletecollection"
	end
	return METHODS[request.method]
end

local SUBRESOURCE_VERBS = { get = true, update = true, patch = true }

local SUBRESOURCES = {
	scale = function(server, request)
		return scale.handle(server, request)
	end,
}

local function handle_subresource(server, request)
	local resource, name = request.resource, request.subresource
	if not resource[name] or (name ~= "status" and not SUBRESOURCES[name]) then
		if resource.custom then
			fail.not_found(resource, request.name)
		end
		fail.no_such_path()
	elseif not SUBRESOURCE_VERBS[request.verb] then
		fail.method_not_allowed()
	end
	return (SUBRESOURCES[name] or VERBS[request.verb])(server, request)
end

-- The API server allows what discovery says; namespaces are never deleted together.
local function is_allowed(request)
	local resource = request.resource
	if request.verb == "deletecollection" and resource.storage == "/namespaces" then
		return false
	end
	for _, verb in ipairs(resource.verbs) do
		if verb == request.verb then
			return true
		end
	end
	return false
end

local function needs_namespace(request)
	local verb = request.verb
	return request.resource.namespaced and not request.namespace and (request.name or verb == "create" or verb == "deletecollection")
end

local function handle_resource(server, request)
	if request.resource.namespaced == false and request.namespace then
		fail.no_such_path()
	elseif request.subresource then
		return handle_subresource(server, request)
	elseif needs_namespace(request) and request.name then
		fail.no_such_path()
	elseif not request.verb or not is_allowed(request) or needs_namespace(request) then
		fail.method_not_allowed()
	end
	return VERBS[request.verb](server, request)
end

local function json(value)
	return { status = 200, body = k8s.json.encode(value) }
end

local function handle_api(server, request, place)
	if not place.version then
		return json(discovery.group(server, place.group or ""))
	elseif not place.plural then
		return json(discovery.resources(server, place.group, place.version))
	elseif not server.registry:group(place.group) then
		fail.not_a_path()
	end
	for name, value in pairs(place) do
		request[name] = value
	end
	request.resource = server.registry:find(place.group, place.version, place.plural)
	if not request.resource then
		fail.no_such_path()
	end
	request.verb = verb_of(request)
	local reply = server.faults:begin(server, request)
	return reply or handle_resource(server, request)
end

local function dispatch(server, request)
	local page = PAGES[request.path:gsub("(.)/$", "%1")]
	if page then
		return page(server, request)
	elseif request.path:find "^/openapi/v3/" then
		return openapi.group(server, request)
	end
	local place = path.parse(request.path)
	if not place then
		fail.not_a_path()
	end
	return handle_api(server, request, place)
end

-- --- answers ---

local function failure_reply(server, problem)
	local failure = fail.of(problem)
	if not failure then
		server.io.log("the sandbox failed: " .. tostring(problem))
		return { status = 500, body = k8s.json.encode(fail.status(500, "InternalError",
			"Internal error occurred: " .. tostring(problem), { causes = k8s.array { { message = tostring(problem) } } })) }
	elseif failure.plain then
		return { status = failure.code, content_type = "text/plain; charset=utf-8", body = failure.plain }
	end
	return { status = failure.status.code, body = k8s.json.encode(failure.status), headers = failure.headers }
end

local function with_trace(problem)
	return fail.of(problem) and problem or debug.traceback(tostring(problem), 2)
end

local function reply_to(server, request)
	if request.too_large then
		return { status = 413, body = k8s.json.encode(fail.status(413, "RequestEntityTooLarge",
			"Request entity too large: limit is 3145728")) }
	end
	local worked, reply = xpcall(dispatch, with_trace, server, request)
	if not worked then
		return failure_reply(server, reply)
	end
	return reply
end

local MOST_REMEMBERED = 10000

local function forget_half(requests)
	local half = MOST_REMEMBERED / 2
	for i = 1, MOST_REMEMBERED do
		requests[i] = requests[i + half]
	end
end

local function remember(server, request)
	rights.note(server.rights, request)
	if #server.requests == MOST_REMEMBERED then
		forget_half(server.requests)
	end
	server.requests[#server.requests + 1] = {
		method = request.method, path = request.path, query = request.query, verb = request.verb,
		kind = request.resource and request.resource.kind, resource = request.plural, namespace = request.namespace,
		name = request.name, subresource = request.subresource, body = request.body, agent = request.headers["user-agent"],
	}
end

--- Answers a request: { method =, path =, query =, headers =, body =, answer = }. A watch is answered by its stream.
function router.handle(server, request)
	request.now = server.io.wall()
	local reply = reply_to(server, request)
	remember(server, request)
	if reply and reply ~= true and not request.answered then
		local headers = reply.headers or {}
		headers["Content-Type"] = reply.content_type or "application/json"
		headers["Cache-Control"] = "no-cache, private"
		headers["Warning"] = request.warnings
		request.answer:reply(reply.status, headers, server.faults:body(request, reply))
	end
end

--- The same from inside the process, without a wire, and past all faults: status and body, both texts.
function router.ask(server, method, target, query, headers, body)
	local reply = reply_to(server, {
		method = method, path = target, query = query, headers = headers, now = server.io.wall(), body = body, inside = true,
	})
	return reply.status, reply.body
end

--- As one of the control plane's own: status and the decoded body. body: a table.
function router.call(server, method, target, body, headers)
	headers = headers or {}
	headers["user-agent"] = "kube-apiserver"
	local status, text = router.ask(server, method, target, {}, headers, body and k8s.json.encode(body) or "")
	return status, k8s.json.decode(text)
end

return router
