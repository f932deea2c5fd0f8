--- A program under measurement, and the server that it watches.
--
-- A subject prints a line of JSON when its cache has filled, one with the counts when the update of the object "mark"
-- has come, and perhaps one when it has collected its garbage; see spec/bench/peers. All else is read from outside, the
-- same way for all: time on this process's clock, CPU time on the kernel's clock of the process, memory from /proc.
local bit = require "bit"
local cjson = require "cjson"
local ffi = require "ffi"
local process = require "support.process"

local QUIET_SECONDS, QUIET_CPU = 0.3, 0.004 -- so little CPU time in so long: it rests
local SETTLING = 2.5 -- seconds after which what waits until nobody is in a hurry has begun
local PATIENCE = 900

local CPU_CLOCK_OF_PROCESS = 2

local subject = {}

local Server = {}
Server.__index = Server

--- Starts the server with these flags; its folder gets the kubeconfig.
function subject.serve(program, folder, ...)
	local child = process.start { program, "-dir", folder, ... }
	local port = child:wait_for("listening (%d+)\n", PATIENCE)
	child:line(1)
	return setmetatable({
		child = child, kubeconfig = folder .. "/kubeconfig", ca = folder .. "/ca.pem", url = "https://127.0.0.1:" .. port,
	}, Server)
end

--- Sends a command; returns its answer, which for a burst or a rate comes when all is sent.
function Server:ask(...)
	self.child:write(table.concat({ ... }, " ") .. "\n")
	local answer = cjson.decode(self.child:line(PATIENCE))
	assert(not answer.error, answer.error)
	return answer
end

function Server:close()
	self.child:close()
end

local Subject = {}
Subject.__index = Subject

--- Starts a program, a list of words, and waits until its cache has filled: `synced` and `cpu` are then the seconds that
-- this took.
function subject.start(words, server, kind)
	local started = process.now()
	local child = process.start(words)
	local self = setmetatable({ child = child, server = server, kind = kind }, Subject)
	self.objects = self:await("synced").synced
	self.synced, self.cpu = process.now() - started, self:cpu_seconds()
	return self
end

--- The next line of JSON that has the key.
function Subject:await(key)
	while true do
		local line = self.child:line(PATIENCE)
		local ok, what = pcall(cjson.decode, line)
		if ok and what[key] then
			return what
		end
	end
end

--- CPU time of all its threads so far.
function Subject:cpu_seconds()
	local time = ffi.new "struct process_timespec"
	local clock = bit.bor(bit.lshift(bit.bnot(self.child.pid), 3), CPU_CLOCK_OF_PROCESS)
	assert(ffi.C.clock_gettime(clock, time) == 0, "no CPU clock: the program has ended")
	return tonumber(time.sec) + tonumber(time.nsec) / 1e9
end

local function sleep(child, seconds)
	local deadline = process.now() + seconds
	while process.now() < deadline do
		child:pump(deadline - process.now())
	end
end

--- Waits until the program does nothing.
function Subject:rest()
	local deadline = process.now() + PATIENCE
	local before
	repeat
		before = self:cpu_seconds()
		sleep(self.child, QUIET_SECONDS)
		assert(process.now() < deadline, "it does not come to rest")
	until self:cpu_seconds() - before < QUIET_CPU
end

--- Bytes of memory: resident, of these anonymous, and the most that ever was resident.
function Subject:memory()
	local file = assert(io.open(("/proc/%d/status"):format(self.child.pid)))
	local text = file:read "*a"
	file:close()
	local function bytes(name)
		return tonumber(text:match(name .. ":%s*(%d+) kB")) * 1024
	end
	return { rss = bytes "VmRSS", anonymous = bytes "RssAnon", peak = bytes "VmHWM" }
end

--- Waits until what has come is packed; not so long that Perilune gives up what it needs for that.
function Subject:rest_after_packing()
	sleep(self.child, SETTLING)
	self:rest()
end

--- Memory, and CPU time since the start, when it has rested for a while; a program that collects its garbage has.
function Subject:settle(collects)
	if collects then
		self:await "settled"
	end
	for _ = 1, 2 do
		self:rest_after_packing()
	end
	return self:memory(), self:cpu_seconds()
end

function Subject:await_watch()
	local deadline = process.now() + PATIENCE
	while self.server:ask("watches", self.kind).watches == 0 do
		assert(process.now() < deadline, "no watch was opened")
		sleep(self.child, 0.05)
	end
end

--- What came since the mark before. It is at rest by then: a work queue need not keep the order.
function Subject:mark()
	self:rest()
	self.server:ask("mark", self.kind)
	return self:await "events"
end

--- Events per second, from the first send to the last that was handled; and how many were handled.
function Subject:burst(count)
	local sent = self.server:ask("burst", self.kind, count)
	local got = self:mark()
	return count / ((tonumber(got.last) - tonumber(sent.first)) / 1e9), got.events
end

--- So many updates a second: the share of a CPU that they take, and milliseconds from send to handler (p50 and p99).
function Subject:rate(per_second, count)
	local cpu, begun = self:cpu_seconds(), process.now()
	self.server:ask("rate", self.kind, per_second, count)
	local share = (self:cpu_seconds() - cpu) / (process.now() - begun)
	return share, self:mark().latencies
end

function Subject:close()
	self.child:kill()
	self.child:close()
end

return subject
