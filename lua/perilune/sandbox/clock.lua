--- The time, from one place: the host's clock, which tests can move. And what is to be done at some later time.
local clock = {}
clock.__index = clock

--- io: now() in seconds, wall() in seconds since 1970, alarm(seconds or nil): calls clock:ring() once after that long.
function clock.new(io)
	return setmetatable({ io = io, timers = {} }, clock)
end

function clock:now()
	return self.io.now()
end

--- As the API server writes times: whole seconds in UTC.
function clock:timestamp()
	return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(self.io.wall()))
end

local function set_alarm(self)
	local first
	for timer in pairs(self.timers) do
		first = math.min(first or timer.at, timer.at)
	end
	self.io.alarm(first and math.max(0, first - self.io.now()))
end

--- Calls fn once after that many seconds. Returns a timer for clock:cancel.
function clock:after(seconds, fn)
	local timer = { at = self.io.now() + seconds, fn = fn }
	self.timers[timer] = true
	set_alarm(self)
	return timer
end

--- Harmless for nil and for one that has run.
function clock:cancel(timer)
	if timer and self.timers[timer] then
		self.timers[timer] = nil
		set_alarm(self)
	end
end

local function due(self)
	local now, found = self.io.now(), {}
	for timer in pairs(self.timers) do
		if timer.at <= now then
			found[#found + 1] = timer
		end
	end
	table.sort(found, function(a, b)
		return a.at < b.at
	end)
	return found
end

function clock:ring()
	for _, timer in ipairs(due(self)) do
		if self.timers[timer] then
			self.timers[timer] = nil
			timer.fn()
		end
	end
	set_alarm(self)
end

return clock
