--- Whether a ClusterRole allows what a script asked of a server, and nothing else.
local role = {}

-- "apps/deployments/status patch". One that lists may have to watch, and the other way round: which of them it is depends on the server.
local function right(group, resource, verb)
	return ("%s/%s %s"):format(group, resource, verb == "list" and "watch" or verb)
end

local function allowed(rules)
	local rights = {}
	for _, rule in ipairs(rules) do
		for _, group in ipairs(rule.apiGroups) do
			for _, resource in ipairs(rule.resources) do
				for _, verb in ipairs(rule.verbs) do
					rights[right(group, resource, verb)] = true
				end
			end
		end
	end
	return rights
end

-- The group of an apiVersion; "" for "v1".
local function group_of(api_version)
	return api_version:match "^(.*)/" or ""
end

-- An apply makes what is not there, which the API server takes for a create.
local function add_apply(rights, request)
	if request.verb == "patch" and not request.subresource and request.body.kind then
		rights[right(group_of(request.body.apiVersion), request.resource, "create")] = true
	end
end

-- To keep an owner from going before its object is a right of its own where the API server is strict.
local function add_owners(rights, request, resources)
	for _, owner in ipairs(type(request.body) == "table" and request.body.metadata and request.body.metadata.ownerReferences or {}) do
		if owner.blockOwnerDeletion then
			rights[right(group_of(owner.apiVersion), resources[owner.kind] .. "/finalizers", "update")] = true
		end
	end
end

local function used(requests)
	local rights, resources = {}, {}
	for _, request in ipairs(requests) do
		if request.resource then
			local resource = request.resource .. (request.subresource and "/" .. request.subresource or "")
			resources[request.kind] = request.resource
			rights[right(request.path:match "^/apis/([^/]+)" or "", resource, request.verb)] = true
			add_apply(rights, request)
			add_owners(rights, request, resources)
		end
	end
	return rights
end

local function missing(rights, others)
	local list = {}
	for one in pairs(rights) do
		if not others[one] then
			list[#list + 1] = one
		end
	end
	table.sort(list)
	return table.concat(list, ", ")
end

--- objects: of rbac.yaml; requests: as cluster:requests() gives them.
function role.check(objects, requests)
	local given, needed = allowed(require("support.manifests").find(objects, "ClusterRole").rules), used(requests)
	local lacking, idle = missing(needed, given), missing(given, needed)
	assert(lacking == "" and idle == "", ("the role lacks: %s\nthe role has, and nothing used it: %s"):format(lacking, idle))
end

return role
