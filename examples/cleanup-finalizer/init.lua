-- cleanup-finalizer: keeps an entry in an HTTP service for each Record, and takes it out before the Record goes.
--
-- PUT SERVICE/records/NAMESPACE/NAME with the Record's spec as JSON makes or changes the entry, DELETE takes it out. The finalizer is
-- there before the first PUT, so that no entry can be left behind by a Record that was deleted while this program was down.
-- Options:
--   --set service=https://names.example.com     where the service is (http://localhost:8000)
--   --set period=60                             seconds after which each entry is PUT again, in case the service lost it (600)
local k8s = require "perilune"

local service = k8s.config.service or "http://localhost:8000"
local period = assert(tonumber(k8s.config.period or 600), "period must be a number of seconds")
assert(service:match "^https?://[^/]+$", "service must be a URL without a path, such as https://names.example.com")

local records = k8s.informer { apiVersion = "example.com/v1", kind = "Record" }

k8s.needs {
	{ apiGroups = "example.com", resources = "records", verbs = "patch" }, -- the finalizer
	{ apiGroups = "example.com", resources = "records/status", verbs = "update" },
}

-- The status that the service answers with; nil and an err when it can't be reached.
local function call(method, record, body)
	local answer, err = k8s.http.request {
		method = method,
		url = ("%s/records/%s/%s"):format(service, record.metadata.namespace, record.metadata.name),
		headers = { ["content-type"] = "application/json" },
		body = body and k8s.json.encode(body),
		timeout = 10,
	}
	return answer and answer.status, err
end

local function is_success(status)
	return status and status >= 200 and status < 300
end

-- What a service that is not reached says of it differs from one time to the next, and goes into the log alone.
local function report(record, status)
	local done = is_success(status)
	local changed = k8s.conditions.set(record, {
		type = "Ready",
		status = done and "True" or "False",
		reason = done and "Stored" or status and "Refused" or "Unreachable",
		message = status and ("the service answers %d"):format(status) or "the service does not answer",
	})
	if changed then
		assert(k8s.status.update(record))
	end
end

-- Of the changes of a Record those of its spec matter, and its deletion, which always counts.
k8s.controller {
	name = "cleanup-finalizer",
	watch = { records, when = k8s.predicate.generation_changed },
	workers = 4,
	finalizer = "example.com/cleanup-finalizer",

	reconcile = function(request, context)
		local record = records:get(request)
		if not record then
			return
		end
		local status, err = call("PUT", record, record.spec)
		report(record, status)
		if is_success(status) then
			context.log.info "stored"
			return { requeue_after = period }
		end
		error(err or ("the service answers %d"):format(status), 0)
	end,

	-- An entry that is not there any more is as good as taken out: an earlier attempt may have got that far.
	cleanup = function(record, context)
		local status, err = call("DELETE", record)
		if not is_success(status) and status ~= 404 then
			return nil, err or ("the service answers %d"):format(status)
		end
		context.log.info "taken out"
	end,
}
