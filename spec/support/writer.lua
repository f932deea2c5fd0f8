--- An independent client that creates, updates, deletes and re-creates ConfigMaps at random, and knows each version it made.
--
--   local writer = writer.new(cluster, namespace, { names = 12, seed = 7 })
--   writer:write(100)          so many writes, one after another
--   writer.history             all of them: { type = "add", name =, uid =, version =, old = } as a handler should see them; the
--                              version of a delete is not known, since the server does not tell it: nil
--   writer.objects             name to { uid =, version = }: what there is now
--   writer:snapshot()          a copy of objects
--   writer.check_history(events, start)        that they are a possible history from that state on; returns the state after them
--   writer.expect_exactly(expected, events)    event by event
local writer = {}

local Writer = {}
Writer.__index = Writer

function writer.new(cluster, namespace, options)
	return setmetatable({
		cluster = cluster, path = "/api/v1/namespaces/" .. namespace .. "/configmaps", names = options.names,
		seed = options.seed, history = {}, objects = {}, count = 0,
	}, Writer)
end

-- Lehmer's generator, so that a printed seed gives the same run whoever else draws numbers.
function Writer:random(most)
	self.seed = self.seed * 48271 % 2147483647
	return self.seed % most + 1
end

-- The next request, given what there will be by then.
function Writer:choose(present)
	self.count = self.count + 1
	local name = "item-" .. self:random(self.names)
	local data = { count = tostring(self.count) }
	if not present[name] then
		present[name] = true
		return "add", name, { "POST", self.path, { metadata = { name = name }, data = data } }
	elseif self:random(3) == 1 then
		present[name] = nil
		return "delete", name, { "DELETE", self.path .. "/" .. name }
	end
	return "update", name, { "PATCH", self.path .. "/" .. name, { data = data } }
end

function Writer:note(kind, name, answer)
	assert(answer.status < 300, ("%s of %s: %d %s"):format(kind, name, answer.status, tostring(answer.body.message)))
	local before = self.objects[name]
	local metadata = kind ~= "delete" and answer.body.metadata or nil
	local entry = {
		type = kind, name = name, uid = metadata and metadata.uid or answer.body.details.uid, version = metadata and metadata.resourceVersion,
		old = kind == "update" and before.version or nil,
	}
	self.objects[name] = metadata and { uid = entry.uid, version = entry.version } or nil
	self.history[#self.history + 1] = entry
end

function Writer:write(count)
	local present, requests, notes = {}, {}, {}
	for name in pairs(self.objects) do
		present[name] = true
	end
	for i = 1, count do
		local kind, name, request = self:choose(present)
		requests[i], notes[i] = request, { kind, name }
	end
	for i, answer in ipairs(self.cluster.send(requests)) do
		self:note(notes[i][1], notes[i][2], answer)
	end
end

function Writer:snapshot()
	local copy = {}
	for name, object in pairs(self.objects) do
		copy[name] = object
	end
	return copy
end

local function describe(event)
	return ("%s %s %s %s (old %s)%s"):format(event.type, event.name, event.uid, event.version or "-", event.old or "-",
		event.unknown and " final state unknown" or "")
end

local function check(condition, event, i, message, ...)
	if not condition then
		error(("event %d, %s: %s"):format(i, describe(event), message:format(...)), 3)
	end
end

-- Each event must follow from the state that the ones before it have left.
local function step(state, event, i)
	local before = state[event.name]
	if event.type == "add" then
		check(not before, event, i, "there is one already")
	else
		check(before, event, i, "there is none")
		check(before.uid == event.uid, event, i, "the one there is has uid %s", before and before.uid)
	end
	if event.type == "update" then
		check(event.old == before.version, event, i, "the last that was told is %s", before.version)
	end
	if before and not event.unknown then
		check(tonumber(event.version) > tonumber(before.version), event, i, "not newer than %s", before.version)
	end
	state[event.name] = event.type ~= "delete" and { uid = event.uid, version = event.version } or nil
end

function writer.check_history(events, start)
	local state = {}
	for name, object in pairs(start or {}) do
		state[name] = object
	end
	for i, event in ipairs(events) do
		step(state, event, i)
	end
	return state
end

function writer.expect_exactly(expected, events)
	for i, event in ipairs(events) do
		local wanted = expected[i]
		check(wanted, event, i, "one too many")
		check(wanted.type == event.type and wanted.name == event.name and wanted.uid == event.uid and not event.unknown, event, i,
			"expected %s", describe(wanted))
		check(not wanted.version or wanted.version == event.version, event, i, "expected %s", describe(wanted))
		check(wanted.old == event.old, event, i, "expected %s", describe(wanted))
	end
	assert(#events == #expected, ("%d events of %d"):format(#events, #expected))
end

return writer
