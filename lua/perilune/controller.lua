-- controller: k8s.controller and k8s.terminal, over what bind_controller.c gives.
--
-- A reconcile is called with the key of an object; what it asks of the cache it reads itself. With a finalizer, the steps around it are here
-- too: the finalizer is there before the first reconcile, and goes only when cleanup is done. Nothing is stored but the finalizer itself.

local k8s, core, client = ...

local error, ipairs, pairs, tostring, type, unpack = error, ipairs, pairs, tostring, type, unpack
local setmetatable, rawget = setmetatable, rawget
local find, sub = string.find, string.sub
local misuse, check_options = client.misuse, client.check_options

local WHAT = "k8s.controller"

-- controller-runtime's and client-go's defaults; the deadline is Perilune's own.
local WORKERS, TIMEOUT, BASE, MAX = 1, 60, 0.005, 1000
local MOST_WORKERS = 1000

-- --- options ---

local function check(value, wanted, name)
	if type(value) ~= wanted then
		misuse(("%s: %s must be a %s, not %s"):format(WHAT, name, wanted, value == nil and "nothing" or "a " .. type(value)))
	end
	return value
end

local function number(value, name, fallback, least)
	if value == nil then
		return fallback
	end
	if check(value, "number", name) ~= value or value < least or value > 1e9 then
		misuse(("%s: %s must be a number from %g on"):format(WHAT, name, least))
	end
	return value
end

local function whole(value, name, fallback, most)
	value = number(value, name, fallback, 1)
	if value and (value % 1 ~= 0 or value > most) then
		misuse(("%s: %s must be a whole number from 1 to %d"):format(WHAT, name, most))
	end
	return value
end

local function informer_of(value, name)
	local informer = core.informer(value)
	if not informer then
		misuse(("%s: %s must be an informer, or { informer, when = ... }"):format(WHAT, name))
	end
	return informer
end

-- As it is before any script can put another in its place.
local test_labels = k8s.predicate.label_changed.test

-- A predicate is a table that can be called, and says which fields it looks at; a script's own function sees the whole object.
local function add_when(source, when, name)
	if when == nil then
		return
	end
	if type(when) == "table" and rawget(when, "test") then
		source.when, source.fields = check(when.test, "function", name .. "'s when.test"), when.fields
		source.only_labels = source.when == test_labels
	else
		source.when = check(when, "function", name .. "'s when")
	end
end

-- What watch and owns take: an informer, or { informer, when =, controller = }.
local function source_of(value, type_name, name, known)
	if type(value) ~= "table" then
		informer_of(value, name)
		return { type = type_name, informer = value }
	end
	for key in pairs(value) do
		if key ~= 1 and not known[key] then
			misuse(("%s: %s has no '%s'"):format(WHAT, name, tostring(key)))
		end
	end
	informer_of(value[1], name)
	local source = { type = type_name, informer = value[1], controller = value.controller }
	if source.controller ~= nil then
		check(source.controller, "boolean", name .. "'s controller")
	end
	add_when(source, value.when, name)
	return source
end

local WATCH_OPTIONS, OWNS_OPTIONS = { when = true }, { when = true, controller = true }

local function add_owns(sources, owns)
	if owns == nil then
		return
	end
	if core.informer(owns) then -- one of them, without its braces
		owns = { owns }
	end
	for key in pairs(check(owns, "table", "owns")) do
		if type(key) ~= "number" then
			misuse(("%s: owns is a list of informers; it has a '%s'"):format(WHAT, tostring(key)))
		end
	end
	for i = 1, table.maxn(owns) do
		sources[#sources + 1] = source_of(owns[i], "owns", ("owns[%d]"):format(i), OWNS_OPTIONS)
	end
end

local function add_maps(sources, map)
	for informer, f in pairs(map == nil and {} or check(map, "table", "map")) do
		informer_of(informer, "a key of map")
		sources[#sources + 1] = { type = "map", informer = informer, map = check(f, "function", "what map gives for an informer") }
	end
end

local function limits_of(rate_limit)
	local limit = rate_limit or {}
	check_options(check(limit, "table", "rate_limit"), WHAT .. "'s rate_limit", { "base", "max", "qps", "burst" })
	local base = number(limit.base, "rate_limit.base", BASE, 0.001)
	local max = number(limit.max, "rate_limit.max", MAX, base)
	local qps = number(limit.qps, "rate_limit.qps", nil, 0.001)
	local burst = whole(limit.burst, "rate_limit.burst", nil, 1e6)
	if (qps == nil) ~= (burst == nil) then
		misuse(WHAT .. ": rate_limit takes qps and burst together")
	end
	return base, max, qps, burst
end

-- --- one call ---

local LEVELS = { "debug", "info", "warn", "error" }

-- k8s.log with the controller and the object in each line.
local function logger(name, request)
	local log = {}
	for _, level in ipairs(LEVELS) do
		log[level] = function(message, fields)
			if type(message) ~= "string" or fields ~= nil and type(fields) ~= "table" then
				misuse(("context.log.%s takes a text and a table of fields"):format(level))
			end
			local all = { controller = name, namespace = request.namespace, name = request.name }
			for key, value in pairs(fields or {}) do
				all[key] = value
			end
			k8s.log[level](message, all)
		end
	end
	return log
end

-- A reconcile that does not log makes no logger.
local function context_of(name, request, attempt, deadline)
	return setmetatable({ attempt = attempt, deadline = deadline }, {
		__index = function(context, key)
			if key == "log" then
				context.log = logger(name, request)
				return context.log
			end
		end,
	})
end

local function request_of(informer, key)
	local slash = find(key, "/", 1, true)
	return {
		apiVersion = informer.apiVersion,
		kind = informer.kind,
		namespace = slash and sub(key, 1, slash - 1) or nil,
		name = slash and sub(key, slash + 1) or key,
	}
end

-- The seconds that a result asks for, or nil.
local function after_of(result, what)
	if result == nil then
		return nil
	end
	if type(result) ~= "table" then
		error(("%s returned a %s; it returns nothing, { requeue_after = seconds }, or nil and an error"):format(what, type(result)), 0)
	end
	for key in pairs(result) do
		if key ~= "requeue_after" then
			error(("%s: its result has no '%s', only requeue_after"):format(what, tostring(key)), 0)
		end
	end
	local after = result.requeue_after
	if after ~= nil and not (type(after) == "number" and after >= 0 and after < 1e9) then
		error(what .. ": requeue_after must be seconds, from 0 on", 0)
	end
	return after
end

-- --- the finalizer ---

local function is_held(object, name)
	for _, other in ipairs(object.metadata.finalizers or {}) do
		if other == name then
			return true
		end
	end
	return false
end

-- With the version that it was read at, so that nobody else's finalizer is lost.
local function set_finalizers(object, finalizers)
	local _, err = k8s.patch(object, { metadata = { resourceVersion = object.metadata.resourceVersion, finalizers = k8s.array(finalizers) } })
	return err
end

local function is_gone(err)
	return err and err.reason == "NotFound"
end

local function add_finalizer(object, name)
	local finalizers = {}
	for i, other in ipairs(object.metadata.finalizers or {}) do
		finalizers[i] = other
	end
	finalizers[#finalizers + 1] = name
	return set_finalizers(object, finalizers)
end

local function remove_finalizer(object, name)
	local finalizers = {}
	for _, other in ipairs(object.metadata.finalizers) do
		if other ~= name then
			finalizers[#finalizers + 1] = other
		end
	end
	return set_finalizers(object, finalizers)
end

-- Of the object as the cache has it after cleanup, which may have written to it.
local function let_go(informer, request, uid, name)
	local object = informer:get(request)
	if not object or object.metadata.uid ~= uid or not is_held(object, name) then
		return nil
	end
	local err = remove_finalizer(object, name)
	return not is_gone(err) and err or nil
end

local function clean_up(options, informer, request, context)
	local object = informer:get(request)
	local uid = object.metadata.uid
	if not is_held(object, options.finalizer) then
		return nil
	end
	local result, err = options.cleanup(object, context)
	if err ~= nil then
		return nil, err
	end
	local after = after_of(result, "cleanup")
	if after then
		return after
	end
	return nil, let_go(informer, request, uid, options.finalizer)
end

-- reconcile's steps where there is a finalizer: an object that is going is cleaned up, one that is there carries the finalizer before its
-- first reconcile, and of one that is gone nothing is left to do.
local function finalizing(options, informer, reconcile)
	return function(request, context)
		local object = informer:get(request)
		if not object then
			return nil
		end
		if object.metadata.deletionTimestamp then
			return clean_up(options, informer, request, context)
		end
		if not is_held(object, options.finalizer) then
			local err = add_finalizer(object, options.finalizer)
			if err then
				return nil, not is_gone(err) and err or nil -- what reconcile made for one that is gone nobody would clean up
			end
		end
		return reconcile(request, context)
	end
end

-- A field selector that an object can't leave.
local function is_fixed(selector)
	for term in selector:gmatch "[^,]+" do
		if not term:find "^%s*metadata%.name%s*=" and not term:find "^%s*metadata%.namespace%s*=" then
			return false
		end
	end
	return true
end

local function check_finalizer(options, informer)
	local finalizer = options.finalizer
	if finalizer == nil then
		if options.cleanup ~= nil then
			misuse(WHAT .. ": cleanup needs a finalizer, such as \"example.com/" .. options.name .. "\"")
		end
		return
	end
	check(finalizer, "string", "finalizer")
	check(options.cleanup, "function", "cleanup")
	if not finalizer:find "^[%w][%w.-]*/[%w][%w._-]*$" then
		misuse(("%s: a finalizer is a domain and a name, such as \"example.com/%s\", not \"%s\""):format(WHAT, options.name, finalizer))
	end
	local selector = informer.label_selector or (informer.field_selector and not is_fixed(informer.field_selector) and informer.field_selector)
	if selector then
		misuse(("%s: a finalizer together with the selector \"%s\", which an object could leave: its cleanup would never run"):format(WHAT, selector))
	end
	if not informer.keeps_finalizers then
		misuse(WHAT .. ": a finalizer needs metadata.finalizers, deletionTimestamp and resourceVersion in the cache: see the informer's drop, keep and transform")
	end
end

-- A function of the script's own must not hide that an object is to be cleaned up.
local function pass_deletions(source)
	local when = source.when
	if not when then
		return
	end
	source.when = function(object, event)
		return object.metadata.deletionTimestamp ~= nil or when(object, event)
	end
	if source.fields then
		source.fields = { "metadata.deletionTimestamp", unpack(source.fields) }
	end
end

-- --- the function itself ---

local OPTIONS = { "name", "watch", "owns", "map", "workers", "timeout", "rate_limit", "finalizer", "cleanup", "leader", "reconcile" }

local function reconcile_of(options, watched, informer)
	local reconcile = check(options.reconcile, "function", "reconcile")
	local function plain(request, context)
		local result, err = reconcile(request, context)
		if err ~= nil then
			return nil, err
		end
		return after_of(result, "reconcile")
	end
	return options.finalizer and finalizing(options, watched, plain) or plain
end

local function copy_of(options)
	local copy = {}
	for name, value in pairs(options) do
		copy[name] = value
	end
	return copy
end

function k8s.controller(options)
	check_options(options, WHAT, OPTIONS)
	options = copy_of(options) -- the script may change its table later
	if not check(options.name, "string", "name"):find "^[a-z0-9][a-z0-9.-]*$" or #options.name > 63 then
		misuse(WHAT .. ": name is 1 to 63 of a-z, 0-9, '-' and '.', and begins with a letter or a digit")
	end
	if options.watch == nil then
		misuse(WHAT .. ": watch is missing: the informer whose objects are reconciled")
	end
	local watch = source_of(options.watch, "watch", "watch", WATCH_OPTIONS)
	local informer = informer_of(watch.informer, "watch")
	check_finalizer(options, informer)
	if options.finalizer then
		pass_deletions(watch)
	end
	if options.leader ~= nil then
		check(options.leader, "boolean", "leader")
	end
	local sources = { watch }
	add_owns(sources, options.owns)
	add_maps(sources, options.map)
	local run, name = reconcile_of(options, watch.informer, informer), options.name
	local base, max, qps, burst = limits_of(options.rate_limit)
	local resolved -- the kind's own name is known when the first key comes
	return core.new {
		name = name,
		primary = watch.informer,
		sources = sources,
		workers = whole(options.workers, "workers", WORKERS, MOST_WORKERS),
		timeout = number(options.timeout, "timeout", TIMEOUT, 0.001),
		base = base,
		max = max,
		qps = qps,
		burst = burst,
		leader = options.leader,
		finalizes = options.finalizer ~= nil,
		reconcile = function(key, attempt, deadline)
			resolved = resolved or core.informer(watch.informer)
			local request = request_of(resolved, key)
			return run(request, context_of(name, request, attempt, deadline))
		end,
	}
end

-- Raises an error after which the key is not tried again before something changes. message: a text, or an err.
function k8s.terminal(message)
	error(core.terminal_err(tostring(message)), 0)
end
