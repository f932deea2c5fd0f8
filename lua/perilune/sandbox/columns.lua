--- The columns that `kubectl get` shows of a kind.
--
-- A column: { name, type, function of (object, now) that gives the cell, priority } - priority 1 is for `-o wide`.
local k8s = require "perilune"
local jsonpath = require "perilune.sandbox.jsonpath"
local tree = require "perilune.sandbox.tree"

local columns = {}

-- --- cells ---

local function at(...)
	local path = { ... }
	return function(object)
		return tree.at(object, unpack(path))
	end
end

local function or_none(fn)
	return function(object)
		local value = fn(object)
		return (value == nil or value == "") and "<none>" or value
	end
end

local function count(...)
	local fn = at(...)
	return function(object)
		local found = 0
		for _ in pairs(fn(object) or {}) do
			found = found + 1
		end
		return found
	end
end

local function or_zero(...)
	local fn = at(...)
	return function(object)
		return fn(object) or 0
	end
end

-- Seconds since 1970 of an RFC 3339 time in UTC.
local function seconds_of(text)
	local year, month, day, hour, minute, second = text:match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)"
	if not year then
		return nil
	end
	year, month = tonumber(year), tonumber(month)
	if month <= 2 then
		year, month = year - 1, month + 12
	end
	local days = 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
		+ math.floor((153 * (month - 3) + 2) / 5) + day - 719469
	return ((days * 24 + hour) * 60 + minute) * 60 + second
end

-- As kubectl writes an age: two units at most, the smaller only where it matters.
local function duration(seconds)
	seconds = math.max(0, math.floor(seconds))
	local minutes, hours, days = math.floor(seconds / 60), math.floor(seconds / 3600), math.floor(seconds / 86400)
	local function with(first, unit, second, small)
		return second > 0 and ("%d%s%d%s"):format(first, unit, second, small) or ("%d%s"):format(first, unit)
	end
	if seconds < 120 then
		return ("%ds"):format(seconds)
	elseif minutes < 10 then
		return with(minutes, "m", seconds % 60, "s")
	elseif minutes < 180 then
		return ("%dm"):format(minutes)
	elseif hours < 8 then
		return with(hours, "h", minutes % 60, "m")
	elseif hours < 48 then
		return ("%dh"):format(hours)
	elseif days < 8 then
		return with(days, "d", hours % 24, "h")
	elseif days < 730 then
		return ("%dd"):format(days)
	elseif days < 2920 then
		return with(math.floor(days / 365), "y", days % 365, "d")
	end
	return ("%dy"):format(math.floor(days / 365))
end

local function since(fn)
	return function(object, now)
		local text = fn(object)
		local began = text and seconds_of(text)
		return began and duration(now - began) or "<unknown>"
	end
end

local NAME = { "Name", "string", at("metadata", "name"), format = "name" }
local AGE = { "Age", "string", since(at("metadata", "creationTimestamp")) }
local function created_at(object)
	return object.metadata.creationTimestamp
end

local function ready_containers(object)
	local ready = 0
	for _, one in ipairs(tree.at(object, "status", "containerStatuses") or {}) do
		ready = ready + (one.ready and 1 or 0)
	end
	return ("%d/%d"):format(ready, #(tree.at(object, "spec", "containers") or {}))
end

local function restarts(object)
	local found = 0
	for _, one in ipairs(tree.at(object, "status", "containerStatuses") or {}) do
		found = found + (one.restartCount or 0)
	end
	return ("%d"):format(found)
end

local function pod_status(object)
	if object.metadata.deletionTimestamp then
		return "Terminating"
	end
	return tree.at(object, "status", "reason") or tree.at(object, "status", "phase") or ""
end

local function fraction(ready, wanted)
	return function(object)
		return ("%d/%d"):format(tree.at(object, "status", ready) or 0, tree.at(object, unpack(wanted)) or 0)
	end
end

local function ports(object)
	local found = {}
	for i, port in ipairs(tree.at(object, "spec", "ports") or {}) do
		found[i] = ("%d%s/%s"):format(port.port, port.nodePort and (":%d"):format(port.nodePort) or "", port.protocol or "TCP")
	end
	return #found > 0 and table.concat(found, ",") or "<none>"
end

local function node_status(object)
	for _, one in ipairs(tree.at(object, "status", "conditions") or {}) do
		if one.type == "Ready" then
			return one.status == "True" and "Ready" or "NotReady"
		end
	end
	return "Unknown"
end

local function role(object)
	local reference = object.roleRef or {}
	return ("%s/%s"):format(reference.kind or "", reference.name or "")
end

local function event_object(object)
	local about = object.involvedObject or object.regarding or {}
	return ("%s/%s"):format((about.kind or ""):lower(), about.name or "")
end

local function event_text(object)
	return object.message or object.note or ""
end

local function job_status(object)
	for _, one in ipairs(tree.at(object, "status", "conditions") or {}) do
		if one.status == "True" and (one.type == "Complete" or one.type == "Failed") then
			return one.type
		end
	end
	return tree.at(object, "spec", "suspend") and "Suspended" or "Running"
end

-- --- kinds ---

local KINDS = {
	["/configmaps"] = { NAME, { "Data", "string", function(object)
		return count "data"(object) + count "binaryData"(object)
	end }, AGE },
	["/secrets"] = { NAME, { "Type", "string", at "type" }, { "Data", "string", count "data" }, AGE },
	["/namespaces"] = { NAME, { "Status", "string", at("status", "phase") }, AGE },
	["/pods"] = {
		NAME, { "Ready", "string", ready_containers }, { "Status", "string", pod_status }, { "Restarts", "string", restarts }, AGE,
		{ "IP", "string", or_none(at("status", "podIP")), 1 }, { "Node", "string", or_none(at("spec", "nodeName")), 1 },
		{ "Nominated Node", "string", or_none(at("status", "nominatedNodeName")), 1 },
		{ "Readiness Gates", "string", function() return "<none>" end, 1 },
	},
	["/services"] = {
		NAME, { "Type", "string", at("spec", "type") }, { "Cluster-IP", "string", or_none(at("spec", "clusterIP")) },
		{ "External-IP", "string", or_none(at("spec", "externalName")) }, { "Port(s)", "string", ports }, AGE,
	},
	["/nodes"] = {
		NAME, { "Status", "string", node_status }, { "Roles", "string", function() return "<none>" end }, AGE,
		{ "Version", "string", at("status", "nodeInfo", "kubeletVersion") },
	},
	["/serviceaccounts"] = { NAME, { "Secrets", "integer", count "secrets" }, AGE },
	["/events"] = {
		{ "Last Seen", "string", since(function(object)
			return object.lastTimestamp or object.eventTime or object.metadata.creationTimestamp
		end) },
		{ "Type", "string", at "type" }, { "Reason", "string", at "reason" }, { "Object", "string", event_object },
		{ "Message", "string", event_text },
	},
	["apps/deployments"] = {
		NAME, { "Ready", "string", fraction("readyReplicas", { "spec", "replicas" }) },
		{ "Up-to-date", "integer", or_zero("status", "updatedReplicas") },
		{ "Available", "integer", or_zero("status", "availableReplicas") }, AGE,
	},
	["apps/replicasets"] = {
		NAME, { "Desired", "integer", or_zero("spec", "replicas") }, { "Current", "integer", or_zero("status", "replicas") },
		{ "Ready", "integer", or_zero("status", "readyReplicas") }, AGE,
	},
	["apps/statefulsets"] = { NAME, { "Ready", "string", fraction("readyReplicas", { "spec", "replicas" }) }, AGE },
	["apps/daemonsets"] = {
		NAME, { "Desired", "integer", or_zero("status", "desiredNumberScheduled") },
		{ "Current", "integer", or_zero("status", "currentNumberScheduled") },
		{ "Ready", "integer", or_zero("status", "numberReady") },
		{ "Up-to-date", "integer", or_zero("status", "updatedNumberScheduled") },
		{ "Available", "integer", or_zero("status", "numberAvailable") },
		{ "Node Selector", "string", function() return "<none>" end }, AGE,
	},
	["batch/jobs"] = {
		NAME, { "Status", "string", job_status }, { "Completions", "string", fraction("succeeded", { "spec", "completions" }) },
		{ "Duration", "string", function() return "" end }, AGE,
	},
	["batch/cronjobs"] = {
		NAME, { "Schedule", "string", at("spec", "schedule") }, { "Timezone", "string", or_none(at("spec", "timeZone")) },
		{ "Suspend", "string", function(object) return object.spec.suspend and "True" or "False" end },
		{ "Active", "integer", count("status", "active") }, { "Last Schedule", "string", function(object, now)
			return tree.at(object, "status", "lastScheduleTime") and since(at("status", "lastScheduleTime"))(object, now) or "<none>"
		end }, AGE,
	},
	["coordination.k8s.io/leases"] = { NAME, { "Holder", "string", at("spec", "holderIdentity") }, AGE },
	["rbac.authorization.k8s.io/roles"] = { NAME, { "Created At", "date", created_at } },
	["rbac.authorization.k8s.io/clusterroles"] = { NAME, { "Created At", "date", created_at } },
	["rbac.authorization.k8s.io/rolebindings"] = { NAME, { "Role", "string", role }, AGE },
	["rbac.authorization.k8s.io/clusterrolebindings"] = { NAME, { "Role", "string", role }, AGE },
	["apiextensions.k8s.io/customresourcedefinitions"] = { NAME, { "Created At", "date", created_at } },
}
KINDS["events.k8s.io/events"] = KINDS["/events"]

local GENERIC = { NAME, AGE }

-- --- custom resources ---

local function custom_cell(column)
	local read = jsonpath.compile(column.jsonPath)
	local found = column.type == "date" and since(read) or read
	return function(object, now)
		local value = found(object, now)
		if value == "<unknown>" or (value == nil and column.type == "date") then
			return k8s.null
		elseif type(value) == "table" then
			return k8s.json.encode(value)
		end
		return value
	end
end

local function custom(resource)
	if not resource.columns then
		return { NAME, { "Age", "date", since(created_at) } }
	end
	local found = { NAME }
	for _, column in ipairs(resource.columns) do
		found[#found + 1] = { column.name, column.type, custom_cell(column), column.priority, description = column.description }
	end
	return found
end

local function definition(column)
	return {
		name = column[1], type = column[2], format = column.format or "", priority = column[4] or 0,
		description = column.description or "",
	}
end

--- { definitions = for the table, cells = function of (object, now) } of a resource.
function columns.of(resource)
	if not resource.printed then
		local list = resource.custom and custom(resource) or KINDS[resource.storage] or GENERIC
		local definitions = k8s.array {}
		for i, column in ipairs(list) do
			definitions[i] = definition(column)
		end
		resource.printed = { definitions = definitions, cells = function(object, now)
			local cells = {}
			for i, column in ipairs(list) do
				local value = column[3](object, now)
				cells[i] = value == nil and (resource.custom and k8s.null or "") or value
			end
			return cells
		end }
	end
	return resource.printed
end

return columns
