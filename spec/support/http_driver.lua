--- core/net under orders: spec/drivers/http_driver.c says what can be ordered and what it tells.
--
--   local driver = http_driver.start()
--   driver:start { id = "a", url = "https://…", tls = "t" }
--   local done = driver:done("a")
--   driver:quit()                          ends it and fails when an object was left
local cjson = require "cjson"
local process = require "support.process"

local http_driver = {}

local Driver = {}
Driver.__index = Driver

local SECONDS = 20 -- more than anything here takes, on a slow machine with sanitizers

--- With one mux, "m", unless options.bare. options.env goes to the process.
function http_driver.start(options)
	options = options or {}
	local child = process.start { process.driver "http_driver", env = options.env }
	local driver = setmetatable({ child = child, events = {}, ids = 0 }, Driver)
	if not options.bare then
		driver:order("mux", { name = "m" })
	end
	return driver
end

local function add_field(parts, key, value)
	if type(value) == "table" then
		for _, item in ipairs(value) do
			add_field(parts, key, item)
		end
	else
		parts[#parts + 1] = ("\t%s=%s"):format(key, value == true and 1 or tostring(value))
	end
end

--- Gives an order and waits until it is carried out.
function Driver:order(verb, fields)
	local parts = { verb }
	for key, value in pairs(fields or {}) do
		add_field(parts, key, value)
	end
	self.child:write(table.concat(parts) .. "\n")
	local answer = self:event(function(event)
		return event.event == "ok" or event.event == "bad"
	end)
	assert(answer.event == "ok", "unknown order " .. verb)
end

--- Starts a request and returns its id.
function Driver:start(fields)
	self.ids = self.ids + 1
	fields.id = fields.id or "request" .. self.ids
	self:order("start", fields)
	return fields.id
end

--- The first event, not yet taken, for which match is true. Waits for it.
function Driver:event(match, seconds)
	for i, event in ipairs(self.events) do
		if match(event) then
			return table.remove(self.events, i)
		end
	end
	local deadline = process.now() + (seconds or SECONDS)
	while true do
		local event = cjson.decode(self.child:line(math.max(0, deadline - process.now())))
		if match(event) then
			return event
		end
		self.events[#self.events + 1] = event
	end
end

--- The next event of that name and request.
function Driver:next(name, id, seconds)
	return self:event(function(event)
		return event.event == name and event.id == id
	end, seconds)
end

function Driver:done(id, seconds)
	return self:next("done", id, seconds)
end

--- Starts a request and waits for its end.
function Driver:fetch(fields)
	return self:done(self:start(fields))
end

--- True when such an event waits, without waiting for one.
function Driver:has(name, id)
	for _, event in ipairs(self.events) do
		if event.event == name and event.id == id then
			return true
		end
	end
	return false
end

function Driver:running(mux)
	self:order("running", { mux = mux })
	return self:next("running").count
end

--- Ends the driver. Fails when it did not end well or an object of core/ still lived. Returns its last event.
function Driver:quit(seconds)
	self.child:write "quit\n"
	local last = self:next("end", nil, seconds)
	local code, signal = self.child:wait(SECONDS)
	assert(code == 0, ("http_driver ended with %s\n%s"):format(tostring(code or signal), self.child:stderr()))
	assert(last.live == 0, "objects are left:\n" .. self.child:stderr())
	return last
end

return http_driver
