--- judge: what one handler was told, held against what it may be told.
--
--   local judge = judges.new { has_synced = function() … end }
--   judge:event(object, event)     in the order of the handler's calls
--   judge.held                     key to object, as the events leave it
--   judge.problems                 texts; the first few of them
--
-- The promises: no add of a known key, no update or delete of an unknown one; event.old is what the handler was told
-- last; a resync changes nothing; within one uid the resourceVersion never goes back, and each update but a resync takes
-- it forward; another uid comes only after the delete of the one before; event.initial is of adds alone, and of none
-- after the registration had synced.
local judges = {}

local MOST_PROBLEMS = 5

local Judge = {}
Judge.__index = Judge

function judges.new(options)
	return setmetatable({ has_synced = options.has_synced, held = {}, versions = {}, problems = {}, events = 0, kinds = {} }, Judge)
end

function judges.key(object)
	local metadata = object.metadata
	return metadata.namespace and metadata.namespace .. "/" .. metadata.name or metadata.name
end

--- Whether two JSON values mean the same.
function judges.same(a, b)
	if type(a) ~= "table" or type(b) ~= "table" then
		return a == b
	end
	for name, value in pairs(a) do
		if not judges.same(value, b[name]) then
			return false
		end
	end
	for name in pairs(b) do
		if a[name] == nil then
			return false
		end
	end
	return true
end

local function describe(object)
	local metadata = object.metadata
	return ("%s (uid %s, resourceVersion %s)"):format(judges.key(object), metadata.uid, metadata.resourceVersion)
end

function Judge:problem(text, ...)
	if #self.problems < MOST_PROBLEMS then
		self.problems[#self.problems + 1] = ("call %d: %s"):format(self.events, text:format(...))
	end
end

-- strict: the version must be a later one.
function Judge:check_version(event, object, strict)
	local metadata = object.metadata
	local before, now = self.versions[metadata.uid], tonumber(metadata.resourceVersion)
	if before and (now < before or (strict and now == before)) then
		self:problem("%s of %s after resourceVersion %d of the same uid", event.type, describe(object), before)
	end
	self.versions[metadata.uid] = now
end

local CHECKS = {}

function CHECKS.add(self, object, event, held)
	if held then
		self:problem("an add of %s, which is known as %s", describe(object), describe(held))
	end
	self:check_version(event, object)
	self.held[judges.key(object)] = object
end

function CHECKS.update(self, object, event, held)
	if not held then
		self:problem("an update of %s, which is not known", describe(object))
	elseif not judges.same(event.old, held) then
		self:problem("an update of %s from %s, where %s was told last", describe(object), describe(event.old), describe(held))
	elseif held.metadata.uid ~= object.metadata.uid then
		self:problem("an update of %s from another uid, %s", describe(object), describe(held))
	elseif event.resync and not judges.same(object, held) then
		self:problem("a resync of %s changes it", describe(object))
	end
	self:check_version(event, object, not event.resync)
	self.held[judges.key(object)] = object
end

function CHECKS.delete(self, object, event, held)
	if not held then
		self:problem("a delete of %s, which is not known", describe(object))
	elseif held.metadata.uid ~= object.metadata.uid then
		self:problem("a delete of %s, where %s was told last", describe(object), describe(held))
	end
	self:check_version(event, object)
	self.held[judges.key(object)] = nil
end

function Judge:event(object, event)
	self.events = self.events + 1
	self.kinds[event.type] = (self.kinds[event.type] or 0) + 1
	if event.initial and (event.type ~= "add" or self.has_synced()) then
		self:problem("an initial %s of %s%s", event.type, describe(object), self.has_synced() and ", after it had synced" or "")
	end
	if event.resync and event.type ~= "update" then
		self:problem("a resync that is an %s of %s", event.type, describe(object))
	end
	CHECKS[event.type](self, object, event, self.held[judges.key(object)])
end

--- How two maps of key to object differ: texts, in no order, a few of them. What each is called comes with it.
function judges.differences(a, a_name, b, b_name)
	local found = {}
	local function note(text, ...)
		if #found < MOST_PROBLEMS then
			found[#found + 1] = text:format(...)
		end
	end
	for key, object in pairs(a) do
		if not b[key] then
			note("%s is in %s and not in %s", describe(object), a_name, b_name)
		elseif not judges.same(object, b[key]) then
			note("%s in %s differs from %s in %s", describe(object), a_name, describe(b[key]), b_name)
		end
	end
	for key, object in pairs(b) do
		if not a[key] then
			note("%s is in %s and not in %s", describe(object), b_name, a_name)
		end
	end
	return found
end

--- An array of objects as a map by key; a key that is there twice is a problem, given as the second result.
function judges.by_key(objects)
	local map, twice = {}, nil
	for _, object in ipairs(objects) do
		local key = judges.key(object)
		twice = twice or map[key] and key
		map[key] = object
	end
	return map, twice
end

return judges
