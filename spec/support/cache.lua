--- The driver of core/cache: orders in, events out, each awaited with a deadline.
--
--   local driver = cache.start(kubeconfig_path)
--   driver:order("informer", { id = "pods", apiVersion = "v1", kind = "Pod" })
--   driver:event("add", "handler")              the oldest event of that name and id not yet given out
--   driver:event("change", "pods", accept)      … that the function accepts
--   driver:ask("report", { id = "pods" })       the event that answers an order of that name
--   driver:change("pods", "streaming")          waits until the informer's state begins so
--   driver:finish()                             ends it: exit code 0, no object left alive
--
--   cache.mirror()                              applies a handler's events to a map, and objects to what can't be
local cjson = require "cjson"
local files = require "support.files"
local process = require "support.process"

local cache = {}

local SECONDS = 20

local Driver = {}
Driver.__index = Driver

function cache.start(kubeconfig)
	local env = { KUBECONFIG = false, KUBERNETES_SERVICE_HOST = false, HTTPS_PROXY = false, https_proxy = false }
	local child = process.start { process.driver "cache_driver", "--kubeconfig", kubeconfig, env = env }
	local driver = setmetatable({ child = child, pid = child.pid, events = {}, first = 1, last = 0 }, Driver)
	driver:event("ready")
	return driver
end

--- A kubeconfig for a server that speaks plain HTTP. Returns its path.
function cache.config(url)
	return files.write(files.folder() .. "/config", cjson.encode {
		["apiVersion"] = "v1", kind = "Config", ["current-context"] = "x",
		clusters = { { name = "c", cluster = { server = url } } },
		users = { { name = "u" } },
		contexts = { { name = "x", context = { cluster = "c", user = "u" } } },
	})
end

-- Takes the event at that place out; the places before it move, since most are given out from the front.
function Driver:take(at)
	local event = self.events[at]
	for i = at, self.first + 1, -1 do
		self.events[i] = self.events[i - 1]
	end
	self.events[self.first] = nil
	self.first = self.first + 1
	return event
end

function Driver:event(name, id, seconds, accept)
	if type(seconds) == "function" then
		seconds, accept = nil, seconds
	end
	local deadline = process.now() + (seconds or SECONDS)
	local at = self.first
	while true do
		if at > self.last then
			local line = self.child:line(math.max(deadline - process.now(), 0))
			self.last = self.last + 1
			self.events[self.last] = cjson.decode(line)
		end
		local event = self.events[at]
		if event.event == name and (not id or event.id == id) and (not accept or accept(event)) then
			return self:take(at)
		end
		at = at + 1
	end
end

--- Those events of that id that have come and were not given out, in order; they are given out by this.
function Driver:rest(id)
	local found = {}
	for at = self.first, self.last do
		if self.events[at].id == id then
			found[#found + 1] = at
		end
	end
	for i, at in ipairs(found) do
		found[i] = self:take(at)
	end
	return found
end

function Driver:order(verb, fields)
	local words = { verb }
	for key, value in pairs(fields or {}) do
		words[#words + 1] = key .. "=" .. tostring(value)
	end
	self.child:write(table.concat(words, "\t") .. "\n")
	local answer = self:event_of { ok = true, bad = true }
	assert(answer == "ok", "bad order: " .. table.concat(words, " "))
end

function Driver:event_of(names)
	local at = self.first
	while true do
		if at > self.last then
			self.last = self.last + 1
			self.events[self.last] = cjson.decode(self.child:line(SECONDS))
		end
		if names[self.events[at].event] then
			return self:take(at).event
		end
		at = at + 1
	end
end

local answers = { get = "object", find = "found" }

function Driver:ask(verb, fields)
	self:order(verb, fields)
	return self:event(answers[verb] or verb, fields.id)
end

--- One informer, one listener that was opened before the start ("h"), started.
function Driver:follow(spec, listen)
	spec.id = spec.id or "i"
	self:order("informer", spec)
	local fields = { id = "h", informer = spec.id, open = 1, every = 1 }
	for key, value in pairs(listen or {}) do
		fields[key] = value
	end
	self:order("listen", fields)
	self:order "start"
end

function Driver:change(id, state, seconds)
	return self:event("change", id, seconds, function(event)
		return event.state:sub(1, #state) == state
	end)
end

function Driver:wait_synced(id, seconds)
	return self:event("change", id, seconds, function(event)
		return event.synced
	end)
end

--- Key to resourceVersion, and the keys in order.
function Driver:store(id)
	local map, keys = {}, {}
	for i, object in ipairs(self:ask("store", { id = id }).objects) do
		map[object[1]] = object[2]
		keys[i] = object[1]
	end
	return map, keys
end

function Driver:advance(seconds)
	self:order("advance", { seconds = seconds })
end

function Driver:finish()
	self.child:close_stdin()
	local last = self:event "end"
	local code = self.child:wait(SECONDS)
	assert(code == 0, "the driver's exit code is " .. tostring(code) .. ": " .. self.child:stderr())
	assert(last.live == 0, "objects left alive: " .. self.child:stderr())
	self.child:close()
end

local Mirror = {}
Mirror.__index = Mirror

function cache.mirror()
	return setmetatable({ map = {}, count = 0, seen = {} }, Mirror)
end

--- What a handler would hold after the event. An add of a known key, an update or delete of an unknown one, an update whose old is not
-- the last one, and a version that was told before are errors.
function Mirror:apply(event)
	local key, held = event.key, self.map[event.key]
	self.count = self.count + 1
	if event.event == "add" then
		assert(not held, "an add of a known key: " .. key)
		self.map[key] = event.version
	elseif event.event == "update" then
		assert(held, "an update of an unknown key: " .. key)
		assert(held == event.old, ("%s: the update's old is %s, not %s"):format(key, tostring(event.old), held))
		self.map[key] = event.version
	else
		assert(held, "a delete of an unknown key: " .. key)
		self.map[key] = nil
	end
	if event.event ~= "delete" and not event.resync then
		local identity = key .. " " .. event.uid .. " " .. event.version
		assert(not self.seen[identity], "told twice: " .. identity)
		self.seen[identity] = true
	end
end

return cache
