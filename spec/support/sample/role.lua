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

local function used(requests)
	local rights = {}
	for _, request in ipairs(requests) do
		if request.resource then
			local resource = request.resource .. (request.subresource and "/" .. request.subresource or "")
			rights[right(request.path:match "^/apis/([^/]+)" or "", resource, request.verb)] = true
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
