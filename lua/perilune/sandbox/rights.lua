--- rights: what rights a client needs for what it asked: the set of them, which grows with each request.
--
-- A right is as perilune/rbac.lua has it, of all namespaces.
local rbac = require "perilune.rbac"

local rights = {}

rights.new = rbac.rights

-- An apply makes what is not there, for which a create must be allowed; and what watches lists where it can't do with a watch.
local MORE = { apply = { "create", "patch" }, watch = { "list", "watch" } }

--- Adds those of one request, where it is about a resource and a subresource that there are: so the set has a bound.
function rights.note(set, request)
	if not request.resource or not request.verb or (request.subresource and not request.resource[request.subresource]) then
		return
	end
	local resource, kind = request.plural, request.headers["content-type"] or ""
	if request.subresource then
		resource = resource .. "/" .. request.subresource
	end
	local is_apply = request.verb == "patch" and kind:find("apply-patch", 1, true) and not request.subresource
	local right = { namespace = "", group = request.group, resource = resource }
	set:add_each(right, MORE[is_apply and "apply" or request.verb] or { request.verb })
end

return rights
