-- apply: server-side apply, k8s.apply, k8s.status.apply and k8s.ensure.
--
-- The manager is the script, or the controller whose reconcile this is. There fields of other managers are taken over,
-- as a controller can't ask anybody; elsewhere they are a conflict unless `force` says so.

local k8s, core, calls = ...

local misuse = core.misuse

local CONTENT_TYPE = "application/apply-patch+yaml" -- JSON is YAML
local OPTIONS = calls.options("field_manager", "force")

local function apply(object, options, what, subresource, ensured)
	local call = calls.named(object, what)
	options = calls.write(call, options, OPTIONS)
	calls.check_type(options, "field_manager", "string", what)
	calls.check_type(options, "force", "boolean", what)
	if options.field_manager == "" then
		misuse(what .. ": field_manager must not be empty")
	end
	local manager, reconciling = core.field_manager()
	local force = options.force
	if force == nil then
		force = reconciling
	end
	call.query.fieldManager = options.field_manager or manager
	call.query.force = force and "true" or nil
	call.method, call.content_type, call.body, call.subresource = "PATCH", CONTENT_TYPE, object, subresource
	call.ensured = ensured
	return core.request(call)
end

function k8s.apply(object, options)
	return apply(object, options, "k8s.apply")
end

function k8s.status.apply(object, options)
	return apply(object, options, "k8s.status.apply", "status")
end

function k8s.ensure(object, options)
	return apply(object, options, "k8s.ensure", nil, true)
end
