-- modify: k8s.modify, which gets an object, lets a function change it and updates it, again while others are faster.

local k8s, core, calls = ...

local type = type

-- client-go's RetryOnConflict tries 5 times within about 50 ms; busy objects need more.
local MOST_TRIES = 10
local FIRST_WAIT, LONGEST_WAIT = 0.01, 1 -- seconds

-- The first repetition is at once, as the other writer has just been there.
local function pause(try)
	if try > 1 then
		local wait = math.min(FIRST_WAIT * 2 ^ (try - 2), LONGEST_WAIT)
		k8s.sleep(wait * (0.5 + core.random()))
	end
end

local function write_back(reference, object, options)
	local call = calls.named(reference, "k8s.modify")
	calls.write(call, options)
	call.method, call.body, call.query.fieldManager = "PUT", object, core.field_manager()
	return core.request(call)
end

-- The object, whether somebody else was faster, and why it could not be written.
local function try_once(reference, change, options)
	local call = calls.named(reference, "k8s.modify")
	call.method, call.timeout = "GET", options.timeout
	local object, err = core.request(call)
	if err then
		return nil, err
	end
	local before = k8s.json.encode(object)
	if change(object) == false or k8s.json.encode(object) == before then
		return object
	end
	return write_back(reference, object, options)
end

function k8s.modify(reference, change, options)
	local call = calls.named(reference, "k8s.modify")
	options = calls.write(call, options)
	if type(change) ~= "function" then
		core.misuse("k8s.modify takes a function, not a " .. type(change))
	end
	-- Its own copy: change may get at the reference.
	reference = { apiVersion = call.apiVersion, kind = call.kind, namespace = call.namespace, name = call.name }
	local object, err
	for try = 1, MOST_TRIES do
		object, err = try_once(reference, change, options)
		if not err or err.reason ~= "Conflict" or err.outcome_unknown then
			break -- a conflict may be with our own write, the answer to which was lost
		elseif try < MOST_TRIES then
			pause(try)
		end
	end
	return object, err
end
