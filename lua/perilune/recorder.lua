-- recorder: k8s.event, which tells people what was done to an object, as an Event of events.k8s.io/v1.
--
-- As client-go's recorder has it: the first of its like is created; the second makes a series of it, with one patch; those after that are
-- counted, and the count is sent every half an hour, and once when six minutes passed without another. Alike are those about one object
-- with the same type, reason, action and source, whatever the message: it stays the first one's. For one object a source sends 25 at
-- once, then one in 300 s; what is more is left out. All that is remembered has a bound.

local k8s, core, client = ...

local ipairs, pairs, setmetatable, tostring, type = ipairs, pairs, setmetatable, tostring, type
local concat, min = table.concat, math.min
local now, every, encode, decode = k8s.now, k8s.every, k8s.json.encode, k8s.json.decode
local misuse, check_options = client.misuse, client.check_options

local WHAT = "k8s.event"
local API_VERSION = "events.k8s.io/v1"
local OPTIONS = { "type", "reason", "action", "message", "related" }
local TYPES = { Normal = true, Warning = true }

-- The API server's, in bytes.
local MOST_NOTE, MOST_REASON, MOST_NAME = 1024, 128, 253

-- client-go's, in seconds.
local FINISH, REFRESH = 360, 1800
local BURST, EVERY = 25, 300

local SWEEP = 60 -- seconds between two looks at what is to be finished
local GIVEN_UP = 60 -- seconds after which a request belongs to a call that was cancelled: no call lasts longer
local MOST = 1000 -- that many of each are remembered at least, and twice as many at most

-- --- memory ---

-- Values by keys. What was not used while MOST others came is forgotten.
local Memory = {}
Memory.__index = Memory

local function memory()
	return setmetatable({ young = {}, old = {}, count = 0 }, Memory)
end

function Memory:put(key, value)
	if self.count >= MOST then
		self.young, self.old, self.count = {}, self.young, 0
	end
	if self.young[key] == nil then
		self.count = self.count + 1
	end
	self.young[key], self.old[key] = value, nil
end

function Memory:get(key)
	local value = self.old[key]
	if value ~= nil then
		self:put(key, value)
	end
	return self.young[key]
end

function Memory:drop(key)
	if self.young[key] ~= nil then
		self.count = self.count - 1
	end
	self.young[key], self.old[key] = nil, nil
end

-- A copy, so that the memory may change meanwhile.
function Memory:all()
	local all = {}
	for _, part in ipairs { self.old, self.young } do
		for key, value in pairs(part) do
			all[key] = value
		end
	end
	return all
end

-- --- what an event says ---

local function text(value, name, most)
	if type(value) ~= "string" or value == "" or #value > most then
		misuse(("%s: %s must be a text of 1 to %d bytes, not %s"):format(WHAT, name, most, tostring(value)))
	end
	return value
end

local function reference_of(object, name)
	if type(object) ~= "table" then
		misuse(("%s: %s must be an object or a reference, not a %s"):format(WHAT, name, type(object)))
	end
	local metadata = type(object.metadata) == "table" and object.metadata or object
	local function field(key, value, needed)
		if value ~= nil and type(value) ~= "string" or needed and not value then
			misuse(("%s: %s of %s must be a text, not %s"):format(WHAT, key, name, tostring(value)))
		end
		return value ~= "" and value or nil
	end
	local reference = {
		apiVersion = field("apiVersion", object.apiVersion, true),
		kind = field("kind", object.kind, true),
		namespace = field("namespace", metadata.namespace),
		name = field("name", metadata.name, true),
		uid = field("uid", metadata.uid),
		resourceVersion = field("resourceVersion", metadata.resourceVersion),
	}
	if not reference.namespace and client.is_namespaced(reference.apiVersion, reference.kind) then
		reference.namespace = client.default_namespace()
	end
	-- Who describes an object looks for its uid. A plain reference, such as a reconcile's request, has none; a cache may.
	if not reference.uid then
		reference.uid, reference.resourceVersion = core.cached(reference.apiVersion, reference.kind, reference.namespace, reference.name)
	end
	return reference
end

-- The object's name with the time behind it. Some names, of roles for one, are no name for an Event.
local function name_of(regarding, unique)
	local base = regarding.name:sub(1, MOST_NAME - #unique - 1)
	for label in (base .. "."):gmatch "([^.]*)%." do
		if not label:find "^[a-z0-9][a-z0-9-]*$" or label:find "%-$" then
			base = "event"
			break
		end
	end
	return base .. "." .. unique
end

local function draft(object, options)
	check_options(options, WHAT, OPTIONS)
	local regarding = reference_of(object, "the object")
	local time, unique = core.stamp()
	local controller, instance, leading = core.source()
	local kind = options.type or "Normal"
	if not TYPES[kind] then
		misuse(("%s: type must be Normal or Warning, not %s"):format(WHAT, tostring(kind)))
	end
	if options.message ~= nil and type(options.message) ~= "string" then
		misuse(("%s: message must be a text, not a %s"):format(WHAT, type(options.message)))
	end
	local reason = text(options.reason, "reason", MOST_REASON)
	return {
		apiVersion = API_VERSION, kind = "Event",
		metadata = { namespace = regarding.namespace or "default", name = name_of(regarding, unique) },
		eventTime = time, reportingController = controller, reportingInstance = instance,
		type = kind, reason = reason, action = options.action ~= nil and text(options.action, "action", MOST_REASON) or reason,
		regarding = regarding, related = options.related ~= nil and reference_of(options.related, "related") or nil,
		note = core.text(options.message or "", MOST_NOTE),
	}, leading
end

local function add_object(parts, reference)
	for _, key in ipairs { "apiVersion", "kind", "namespace", "name", "uid" } do
		parts[#parts + 1] = reference and reference[key] or ""
	end
end

local function source_of(event)
	local parts = { event.reportingController }
	add_object(parts, event.regarding)
	return concat(parts, "\0")
end

local function likeness_of(event)
	local parts = { source_of(event), event.type, event.reason, event.action }
	add_object(parts, event.related)
	return concat(parts, "\0")
end

-- --- sending ---

-- What the leader alone says is apart, since nothing of it may go out once another one leads.
local books = {}

local function request(method, event, body)
	return client.request {
		what = WHAT, method = method, apiVersion = API_VERSION, kind = "Event", namespace = event.metadata.namespace,
		name = method == "PATCH" and event.metadata.name or nil, query = { fieldManager = client.field_manager() }, body = body,
		content_type = method == "PATCH" and "application/merge-patch+json" or nil,
	}
end

-- A copy for the script, of what was not sent now.
local function unsent(event)
	return decode(encode(event))
end

-- An Event that the server has forgotten, as it does after an hour, begins again.
local function send_series(entry)
	local count, event = entry.count, entry.event
	entry.busy = now()
	event.series = { count = count, lastObservedTime = entry.observed }
	local answer, err = request("PATCH", event, { series = event.series })
	if err and err.code == 404 then
		answer, err = request("POST", event, event)
	end
	entry.busy = nil
	if err then
		return nil, err
	end
	entry.sent, entry.sent_at = count, now()
	return answer
end

local function finish(book, key, entry, time)
	local pending = entry.count > entry.sent and not entry.busy
	if time - entry.last >= FINISH then
		book.entries:drop(key)
	elseif time - entry.sent_at < REFRESH then
		return
	end
	if pending then
		send_series(entry)
	end
end

local function book_of(leading)
	local book = books[leading]
	if not book then
		book = { entries = memory(), buckets = memory() }
		books[leading] = book
		every(SWEEP, function()
			for key, entry in pairs(book.entries:all()) do
				finish(book, key, entry, now())
			end
		end, { leader = leading })
	end
	return book
end

local function may_send(book, event)
	local key, time = source_of(event), now()
	local bucket = book.buckets:get(key)
	if not bucket then
		bucket = { left = BURST, at = time }
		book.buckets:put(key, bucket)
	end
	bucket.left = min(BURST, bucket.left + (time - bucket.at) / EVERY)
	bucket.at = time
	if bucket.left < 1 then
		return false
	end
	bucket.left = bucket.left - 1
	return true
end

local function create(book, key, event)
	local entry = { event = event, count = 1, sent = 1, last = now(), sent_at = now(), busy = now() }
	book.entries:put(key, entry)
	local answer, err = request("POST", event, event)
	entry.busy = nil
	if err then
		book.entries:drop(key)
		return nil, err
	end
	if entry.count > 1 then -- another came while it was being created
		return send_series(entry)
	end
	return answer
end

local function is_busy(entry)
	return entry.busy and now() - entry.busy < GIVEN_UP
end

local function count_in(book, entry, event)
	entry.count, entry.last, entry.observed = entry.count + 1, now(), event.eventTime
	local told = entry.sent > 1 and now() - entry.sent_at < REFRESH
	if told or is_busy(entry) or not may_send(book, event) then
		return unsent(entry.event)
	end
	return send_series(entry)
end

function k8s.event(object, options)
	local event, leading = draft(object, options)
	local book, key = book_of(leading), likeness_of(event)
	local entry = book.entries:get(key)
	if entry then
		return count_in(book, entry, event)
	end
	if not may_send(book, event) then
		return unsent(event)
	end
	return create(book, key, event)
end
