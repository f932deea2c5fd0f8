--- What a spec asks of the server from inside the process: past the wire, and past all faults.
--
-- Each is a function of (server, what was asked, decoded) and returns JSON text, or nothing.
local k8s = require "perilune"
local rbac = require "perilune.rbac"
local fail = require "perilune.sandbox.fail"
local router = require "perilune.sandbox.router"

local questions = {}

-- --- API calls ---

local function failure(code, reason, message)
	return code, k8s.json.encode(fail.status(code, reason, message))
end

local function url_of(resource, call)
	local parts = { resource.group == "" and "/api" or "/apis", resource.api_version }
	if resource.namespaced and call.namespace then
		parts[#parts + 1] = "namespaces/" .. call.namespace
	end
	parts[#parts + 1] = resource.plural
	parts[#parts + 1] = call.name
	parts[#parts + 1] = call.subresource
	return table.concat(parts, "/")
end

local function answer(server, call)
	local resource = server.registry:of_kind(call.apiVersion, call.kind)
	if not resource then
		return failure(404, "NoKind", ('the server has no kind "%s" in %s'):format(call.kind, call.apiVersion))
	elseif resource.namespaced and not call.namespace and (call.name or call.method ~= "GET") then
		return failure(400, "BadRequest", ("%s %s is namespaced: give a namespace"):format(call.apiVersion, call.kind))
	end
	local headers = { ["content-type"] = call.content_type or "application/json", ["user-agent"] = "spec" }
	return router.ask(server, call.method, url_of(resource, call), call.query, headers, call.body and k8s.json.encode(call.body) or "")
end

--- One call of the client: its status, a space, and the body.
function questions.call(server, call)
	return ("%d %s"):format(answer(server, call))
end

-- --- requests ---

local function fits(request, filter)
	for name, value in pairs(filter) do
		if request[name] ~= value then
			return false
		end
	end
	return true
end

--- The requests that came over the wire and have these fields, in order; their bodies decoded.
function questions.requests(server, filter)
	local found = k8s.array {}
	for _, request in ipairs(server.requests) do
		if fits(request, filter) then
			local copy = {}
			for name, value in pairs(request) do
				copy[name] = value
			end
			copy.body = k8s.json.decode(request.body)
			found[#found + 1] = copy
		end
	end
	return k8s.json.encode(found)
end

--- What those requests needed: rules, as k8s.needs takes them.
function questions.rules(server)
	return k8s.json.encode(k8s.array(rbac.rules(server.rights)))
end

--- The names of what is served now, and of what was asked for since: rows of kind, resource and singular.
function questions.kinds(server)
	local rows = k8s.array {}
	for _, resource in pairs(server.registry.by_name) do
		rows[#rows + 1] = { kind = resource.kind, resource = resource.plural, singular = resource.singular }
	end
	for _, request in ipairs(server.requests) do
		rows[#rows + 1] = { kind = request.kind, resource = request.resource }
	end
	return k8s.json.encode(rows)
end

-- --- faults ---

--- Orders a fault; its number, for the others.
function questions.fault(server, order)
	server.ordered[#server.ordered + 1] = server:fault(order)
	return tostring(#server.ordered)
end

function questions.fired(server, number)
	return tostring(server.ordered[number].fired)
end

function questions.remove_fault(server, number)
	server.faults:remove(server.ordered[number])
end

function questions.compact(server)
	server.store:forget()
end

function questions.restart(server)
	server:restart()
end

return questions
