--- What the server holds: objects, and the events that made them what they are.
--
-- An entry is { object =, bare = } and never changes; a write makes a new one. One counter gives every write its
-- resourceVersion. The log keeps the latest events; history before `floor` is forgotten.
--
--   event: { revision =, type = "ADDED" | "MODIFIED" | "DELETED", storage =, key =, entry =, old = }
local k8s = require "perilune"
local tree = require "perilune.sandbox.tree"

local store = {}
store.__index = store

local LOG_LENGTH = 5000 -- events; the API server's watch cache holds some thousands, etcd five minutes

function store.new()
	return setmetatable({ revision = 1, floor = 1, buckets = {}, log = {}, first = 1, last = 0, on_event = function() end }, store)
end

function store.key(namespace, name)
	return namespace and namespace .. "/" .. name or name
end

local function key_of(object)
	return store.key(object.metadata.namespace, object.metadata.name)
end

function store:bucket(storage)
	local bucket = self.buckets[storage]
	if not bucket then
		bucket = { entries = {} }
		self.buckets[storage] = bucket
	end
	return bucket
end

--- The object, or nil. It is the store's own: copy it before changing it.
function store:get(storage, namespace, name)
	local entry = self:bucket(storage).entries[store.key(namespace, name)]
	return entry and entry.object
end

--- The entry's object as JSON text without apiVersion and kind.
function store.bare(entry)
	if not entry.bare then
		local copy = tree.shallow(entry.object)
		copy.apiVersion, copy.kind = nil, nil
		entry.bare = k8s.json.encode(copy)
	end
	return entry.bare
end

--- The entry's object as JSON text: the same bytes in a list as in an event, but for the head.
function store.json(entry, api_version)
	return ('{"kind":%s,"apiVersion":%s,%s'):format(k8s.json.encode(entry.object.kind),
		k8s.json.encode(api_version or entry.object.apiVersion), store.bare(entry):sub(2))
end

local function forget_old_events(self)
	while self.last - self.first + 1 > LOG_LENGTH do
		self.floor = self.log[self.first].revision
		self.log[self.first] = nil
		self.first = self.first + 1
	end
end

local function record(self, event)
	self.last = self.last + 1
	self.log[self.last] = event
	forget_old_events(self)
	self.on_event(event)
end

local function next_revision(self)
	self.revision = self.revision + 1
	return self.revision
end

--- Stores an object, new or in place of what has its key; gives it its resourceVersion. The table is the store's from now
-- on.
function store:put(storage, object)
	local bucket, key = self:bucket(storage), key_of(object)
	local old = bucket.entries[key]
	local revision = next_revision(self)
	object.metadata.resourceVersion = ("%d"):format(revision)
	local entry = { object = object }
	bucket.entries[key] = entry
	if not old then
		bucket.keys = nil
	end
	record(self, {
		revision = revision, type = old and "MODIFIED" or "ADDED", storage = storage, key = key, entry = entry, old = old,
	})
	return object
end

-- The object as it was, at another version.
local function at_revision(object, revision)
	local copy = tree.shallow(object)
	copy.metadata = tree.shallow(object.metadata)
	copy.metadata.resourceVersion = ("%d"):format(revision)
	return copy
end
store.at_revision = at_revision

--- Removes the object of that key; its last state, at the version of its removal.
function store:remove(storage, namespace, name)
	local bucket, key = self:bucket(storage), store.key(namespace, name)
	local old = bucket.entries[key]
	local revision = next_revision(self)
	local entry = { object = at_revision(old.object, revision) }
	bucket.entries[key], bucket.keys = nil, nil
	record(self, { revision = revision, type = "DELETED", storage = storage, key = key, entry = entry, old = old })
	return entry.object
end

local function sorted_keys(entries)
	return tree.keys(entries)
end

--- The entries of a kind in the order of their keys: an array of { key =, entry = }. revision: as they were then; nil where
-- that is forgotten.
function store:list(storage, revision)
	local bucket = self:bucket(storage)
	local entries = bucket.entries
	local keys
	if revision and revision < self.revision then
		if revision < self.floor then
			return nil
		end
		entries = self:entries_at(storage, revision)
		keys = sorted_keys(entries)
	else
		bucket.keys = bucket.keys or sorted_keys(entries)
		keys = bucket.keys
	end
	local found = {}
	for i, key in ipairs(keys) do
		found[i] = { key = key, entry = entries[key] }
	end
	return found
end

-- Undoes events from the latest back.
function store:entries_at(storage, revision)
	local entries = tree.shallow(self:bucket(storage).entries)
	for i = self.last, self.first, -1 do
		local event = self.log[i]
		if event.revision <= revision then
			break
		end
		if event.storage == storage then
			entries[event.key] = event.old
		end
	end
	return entries
end

--- The events of a kind after a revision, in order; nil where they are forgotten.
function store:since(storage, revision)
	if revision < self.floor then
		return nil
	end
	local start = self.last + 1
	while start > self.first and self.log[start - 1].revision > revision do
		start = start - 1
	end
	local found = {}
	for i = start, self.last do
		if self.log[i].storage == storage then
			found[#found + 1] = self.log[i]
		end
	end
	return found
end

--- Forgets all history, as after a restart of the API server with etcd compacted.
function store:forget()
	self.log, self.first, self.last, self.floor = {}, 1, 0, self.revision
end

return store
