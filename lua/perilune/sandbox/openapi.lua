--- OpenAPI, as far as kubectl needs it: there is a document for each group and version, which says little.
local k8s = require "perilune"
local fail = require "perilune.sandbox.fail"

local openapi = {}

local function paths(server)
	local found = {}
	for _, group in ipairs(server.registry.groups) do
		for _, version in ipairs(group.versions) do
			local path = group.name == "" and "api/" .. version.name or "apis/" .. group.name .. "/" .. version.name
			found[path] = { serverRelativeURL = "/openapi/v3/" .. path }
		end
	end
	return found
end

function openapi.v3(server)
	return { status = 200, body = k8s.json.encode { paths = paths(server) } }
end

local function schema_of(resource)
	return {
		type = "object", ["x-kubernetes-preserve-unknown-fields"] = true,
		["x-kubernetes-group-version-kind"] = k8s.array {
			{ group = resource.group, version = resource.version, kind = resource.kind } },
	}
end

-- What kubectl looks for to know whether a kind can be dry-run and validated on the server's side.
local function patch_operation(resource)
	return { patch = {
		operationId = "patch" .. resource.kind, ["x-kubernetes-group-version-kind"] = {
			group = resource.group, version = resource.version, kind = resource.kind },
		parameters = k8s.array {
			{ name = "dryRun", ["in"] = "query", schema = { type = "string" } },
			{ name = "fieldValidation", ["in"] = "query", schema = { type = "string" } },
			{ name = "fieldManager", ["in"] = "query", schema = { type = "string" } },
		},
		responses = { ["200"] = { description = "OK" } },
	} }
end

local function path_of(prefix, resource)
	return prefix .. (resource.namespaced and "/namespaces/{namespace}/" or "/") .. resource.plural .. "/{name}"
end

--- The document of one group and version.
function openapi.group(server, request)
	local rest = request.path:match "^/openapi/v3/(.*)$"
	local group, version = rest:match "^apis/([^/]+)/([^/]+)$"
	if not group then
		group, version = "", rest:match "^api/([^/]+)$"
	end
	local found = version and server.registry:version(group, version)
	if not found then
		fail.not_a_path()
	end
	local schemas, operations = k8s.object {}, k8s.object {}
	for _, resource in ipairs(found.resources) do
		schemas[resource.group .. "." .. resource.version .. "." .. resource.kind] = schema_of(resource)
		operations[path_of("/" .. rest, resource)] = patch_operation(resource)
	end
	return { status = 200, body = k8s.json.encode {
		openapi = "3.0.0", info = { title = "Kubernetes", version = "v1.36.3" }, paths = operations,
		components = { schemas = schemas } } }
end

local PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

-- A field of a message: its number, and a text or message of less than 128 bytes.
local function field(number, bytes)
	return string.char(number * 8 + 2, #bytes) .. bytes
end

local INFO = field(1, "Kubernetes") .. field(2, "v1.36.3")
local DOCUMENT = field(1, "2.0") .. field(2, INFO) .. field(8, "") .. field(9, "") -- swagger, info, paths, definitions

--- kubectl can read it as protobuf alone, and does so for kinds that came while it ran.
function openapi.v2(_, request)
	if (request.headers.accept or ""):find("proto-openapi", 1, true) then
		return { status = 200, content_type = PROTOBUF, body = DOCUMENT }
	end
	return { status = 200, body = k8s.json.encode {
		swagger = "2.0", info = { title = "Kubernetes", version = "v1.36.3" }, paths = k8s.object {}, definitions = k8s.object {} } }
end

return openapi
