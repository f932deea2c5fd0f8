--- Child processes for specs: every wait has a deadline, and a failure shows the end of both streams.
--
--   local child = process.start { "build/debug/perilune", "run", "x.lua", env = { A = "b", KUBECONFIG = false }, cwd = "/" }
--   child:wait_for("listening (%d+)", 5)   a Lua pattern in stdout or stderr, behind what the last wait_for found there;
--                                          returns its captures, or the match
--   child:line(5)                          the next line of stdout
--   child:write("text\n")  child:close_stdin()
--   child:kill("TERM")                     or a number
--   child:wait(5)                          exit code; or nil and the signal's number
--   child:stdout(), child:stderr()         all so far
--   process.run { "true" }                 start, wait (`seconds`, default 30): code or nil, stdout, stderr
--
-- A child that still runs when its handle is collected, or when the Lua state closes, is killed.
local bit = require "bit"
local ffi = require "ffi"

local process = {}

-- busted loads a module anew for each file, and a struct can be declared once in a process.
if not pcall(ffi.typeof, "struct process_pollfd") then
	ffi.cdef [[
		struct process_pollfd { int fd; short events, revents; };
		struct process_timespec { long sec, nsec; };
		struct process_owner { int pid, fds[3]; }; /* stdin, stdout, stderr; -1 when closed */
		typedef struct { char room[128]; } process_sigset;
		typedef struct { char room[512]; } process_spawnattr; /* glibc's is 336 bytes */
		typedef struct { char room[128]; } process_file_actions; /* glibc's is 80 bytes */
	]]
end
ffi.cdef [[
	int pipe2(int *fds, int flags);
	int close(int fd);
	int fcntl(int fd, int command, ...);
	int poll(struct process_pollfd *fds, unsigned long count, int milliseconds);
	long read(int fd, void *bytes, size_t size);
	long write(int fd, const void *bytes, size_t size);
	int kill(int pid, int signo);
	int waitpid(int pid, int *status, int options);
	void *signal(int signo, void *handler);
	char *strerror(int code);
	int clock_gettime(int id, struct process_timespec *time);
	int sigemptyset(process_sigset *set);
	int sigaddset(process_sigset *set, int signo);
	int posix_spawnattr_init(process_spawnattr *attr);
	int posix_spawnattr_setflags(process_spawnattr *attr, short flags);
	int posix_spawnattr_setsigdefault(process_spawnattr *attr, const process_sigset *set);
	int posix_spawnattr_setsigmask(process_spawnattr *attr, const process_sigset *set);
	int posix_spawn_file_actions_init(process_file_actions *actions);
	int posix_spawn_file_actions_adddup2(process_file_actions *actions, int fd, int new_fd);
	int posix_spawn_file_actions_addchdir_np(process_file_actions *actions, const char *path);
	int posix_spawn_file_actions_destroy(process_file_actions *actions);
	int posix_spawnp(int *pid, const char *file, const process_file_actions *actions, const process_spawnattr *attr,
	                 const char *const *argv, const char *const *envp);
	extern char **environ;
]]
local C = ffi.C

local O_CLOEXEC, O_NONBLOCK, F_SETFL = 0x80000, 0x800, 4
local EAGAIN, EINTR = 11, 4
local POLLIN, POLLOUT = 1, 4
local WNOHANG = 1
local SPAWN_SETSIGDEF, SPAWN_SETSIGMASK = 4, 8
local TAIL = 4000
local signals = { HUP = 1, INT = 2, QUIT = 3, ABRT = 6, KILL = 9, USR1 = 10, SEGV = 11, USR2 = 12, PIPE = 13, TERM = 15,
	CONT = 18, STOP = 19 }

-- A write to a child that has gone is an error here, not the end of all specs.
C.signal(signals.PIPE, ffi.cast("void *", 1))

--- Seconds of a clock that only moves forward.
function process.now()
	local time = ffi.new "struct process_timespec"
	C.clock_gettime(1, time)
	return tonumber(time.sec) + tonumber(time.nsec) / 1e9
end

--- The folder that was built: $PERILUNE_BUILD or build/debug.
function process.build()
	return os.getenv "PERILUNE_BUILD" or "build/debug"
end

--- The path of a program of spec/drivers. A release build has none: then it is the debug build's.
function process.driver(name)
	local path = ("%s/drivers/%s"):format(process.build(), name)
	local file = io.open(path)
	if not file then
		return "build/debug/drivers/" .. name
	end
	file:close()
	return path
end

local function check(result, what)
	if result < 0 then
		error(what .. ": " .. ffi.string(C.strerror(ffi.errno())), 3)
	end
	return result
end

local function make_pipe()
	local fds = ffi.new "int[2]"
	check(C.pipe2(fds, O_CLOEXEC), "pipe")
	return fds[0], fds[1]
end

-- The strings are kept in the second result: the array only points to them.
local function string_array(strings)
	local array = ffi.new("const char *[?]", #strings + 1)
	for i, text in ipairs(strings) do
		array[i - 1] = text
	end
	return array, strings
end

-- This process's environment with the changes; false takes a name away.
local function environment(changes)
	local strings = {}
	local i = 0
	while C.environ[i] ~= nil do
		local entry = ffi.string(C.environ[i])
		if changes[entry:match "^[^=]*"] == nil then
			strings[#strings + 1] = entry
		end
		i = i + 1
	end
	for name, value in pairs(changes) do
		if value then
			strings[#strings + 1] = name .. "=" .. tostring(value)
		end
	end
	return strings
end

local function spawn_attributes()
	local attr, set = ffi.new "process_spawnattr", ffi.new "process_sigset"
	C.posix_spawnattr_init(attr)
	C.posix_spawnattr_setflags(attr, bit.bor(SPAWN_SETSIGDEF, SPAWN_SETSIGMASK))
	C.sigemptyset(set)
	C.posix_spawnattr_setsigmask(attr, set)
	C.sigaddset(set, signals.PIPE)
	C.posix_spawnattr_setsigdefault(attr, set)
	return attr
end

local function spawn(options, stdin, stdout, stderr)
	local actions = ffi.new "process_file_actions"
	C.posix_spawn_file_actions_init(actions)
	C.posix_spawn_file_actions_adddup2(actions, stdin, 0)
	C.posix_spawn_file_actions_adddup2(actions, stdout, 1)
	C.posix_spawn_file_actions_adddup2(actions, stderr, 2)
	if options.cwd then
		C.posix_spawn_file_actions_addchdir_np(actions, options.cwd)
	end
	local arguments = {}
	for i, argument in ipairs(options) do
		arguments[i] = tostring(argument)
	end
	local argv, argv_strings = string_array(arguments)
	local envp, envp_strings = string_array(environment(options.env or {}))
	local pid = ffi.new "int[1]"
	local code = C.posix_spawnp(pid, arguments[1], actions, spawn_attributes(), argv, envp)
	C.posix_spawn_file_actions_destroy(actions)
	assert(argv_strings and envp_strings)
	return code == 0 and pid[0] or nil, code
end

local IN, OUT, ERR = 0, 1, 2

local function close_end(owner, which)
	if owner.fds[which] >= 0 then
		C.close(owner.fds[which])
		owner.fds[which] = -1
	end
end

local function reap(owner)
	if owner.pid > 0 then
		C.kill(owner.pid, signals.KILL)
		C.waitpid(owner.pid, nil, 0)
		owner.pid = 0
	end
	for which = IN, ERR do
		close_end(owner, which)
	end
end

local Process = {}
Process.__index = Process

--- Starts a program: the array part is its name (looked for in PATH when it has no slash) and arguments.
function process.start(options)
	local child_in, stdin = make_pipe()
	local stdout, child_out = make_pipe()
	local stderr, child_err = make_pipe()
	local pid, code = spawn(options, child_in, child_out, child_err)
	C.close(child_in)
	C.close(child_out)
	C.close(child_err)
	local owner = ffi.gc(ffi.new("struct process_owner", pid or 0, { stdin, stdout, stderr }), reap)
	if not pid then
		reap(owner)
		local missing = options[1] == process.build() .. "/perilune" and "; scripts/build debug makes it" or ""
		error(("can't start %s: %s%s"):format(options[1], ffi.string(C.strerror(code)), missing), 2)
	end
	for which = IN, ERR do
		C.fcntl(owner.fds[which], F_SETFL, ffi.cast("int", O_NONBLOCK))
	end
	return setmetatable({
		name = options[1]:match "[^/]*$", pid = pid, owner = owner,
		out = { which = OUT, text = "", line_at = 1, searched = 1 },
		err = { which = ERR, text = "", searched = 1 },
		buffer = ffi.new "char[65536]",
	}, Process)
end

--- Runs a program to its end.
function process.run(options)
	local child = process.start(options)
	child:close_stdin()
	local code = child:wait(options.seconds or 30)
	return code, child:stdout(), child:stderr()
end

local function tail(text)
	return #text > TAIL and "…" .. text:sub(-TAIL) or text
end

function Process:fail(message, level)
	local state = "it runs"
	if self.signal then
		state = "it was ended by signal " .. self.signal
	elseif self.code then
		state = "it ended with code " .. self.code
	end
	error(("%s (pid %d): %s; %s\n--- its stdout\n%s\n--- its stderr\n%s\n---"):format(
		self.name, self.pid, message, state, tail(self.out.text), tail(self.err.text)), level + 1)
end

-- Takes what has come on one stream.
function Process:take(stream)
	local fds = self.owner.fds
	while fds[stream.which] >= 0 do
		local length = tonumber(C.read(fds[stream.which], self.buffer, ffi.sizeof(self.buffer)))
		if length > 0 then
			stream.text = stream.text .. ffi.string(self.buffer, length)
		elseif length < 0 and ffi.errno() == EAGAIN then
			break
		elseif length == 0 or ffi.errno() ~= EINTR then
			close_end(self.owner, stream.which)
		end
	end
end

function Process:check_end()
	if self.owner.pid == 0 then
		return
	end
	local status = ffi.new "int[1]"
	if C.waitpid(self.pid, status, WNOHANG) ~= self.pid then
		return
	end
	self.owner.pid = 0
	local signo = bit.band(status[0], 0x7f)
	if signo == 0 then
		self.code = bit.band(bit.rshift(status[0], 8), 0xff)
	else
		self.signal = signo
	end
end

function Process:has_ended()
	self:check_end()
	return self.owner.pid == 0
end

-- Waits for at most that many seconds until a stream has something (or, with `writing`, stdin has room), and takes it.
function Process:pump(seconds, writing)
	local fds = ffi.new "struct process_pollfd[3]" -- poll passes over a negative descriptor
	for which = IN, ERR do
		fds[which].fd, fds[which].events = self.owner.fds[which], POLLIN
	end
	fds[IN].events = POLLOUT
	if not writing then
		fds[IN].fd = -1
	end
	C.poll(fds, 3, math.max(0, math.ceil(seconds * 1000)))
	self:take(self.out)
	self:take(self.err)
end

-- Calls try until it gives something, or fails with the message after that many seconds.
function Process:await(seconds, message, try)
	local deadline = process.now() + seconds
	while true do
		local ended = self:has_ended()
		self:pump(0)
		local result = try(ended)
		if result ~= nil then
			return result
		end
		local left = deadline - process.now()
		if left <= 0 or (ended and self.owner.fds[OUT] < 0 and self.owner.fds[ERR] < 0) then
			self:fail(("%s within %g s"):format(message, seconds), 3)
		end
		-- The end of a child shows on no stream when a grandchild holds them; so look for it now and then.
		self:pump(math.min(left, self.owner.pid == 0 and left or 0.02))
	end
end

--- The next line of stdout, without its newline.
function Process:line(seconds)
	return self:await(seconds, "no line on stdout", function()
		local out = self.out
		local newline = out.text:find("\n", out.line_at, true)
		if newline then
			local line = out.text:sub(out.line_at, newline - 1)
			out.line_at = newline + 1
			return line
		end
	end)
end

--- Waits for a Lua pattern in stdout or stderr; returns its captures (or the match).
function Process:wait_for(pattern, seconds)
	local found = self:await(seconds, ("nothing that matches %q"):format(pattern), function()
		for _, stream in ipairs { self.out, self.err } do
			local result = { stream.text:find(pattern, stream.searched) }
			if result[1] then
				stream.searched = result[2] + 1
				return result[3] and { unpack(result, 3) } or { stream.text:sub(result[1], result[2]) }
			end
		end
	end)
	return unpack(found)
end

--- Writes to the child's stdin.
function Process:write(text, seconds)
	local deadline = process.now() + (seconds or 10)
	while #text > 0 do
		local length = tonumber(C.write(self.owner.fds[IN], text, #text))
		if length >= 0 then
			text = text:sub(length + 1)
		elseif ffi.errno() ~= EAGAIN and ffi.errno() ~= EINTR then
			self:check_end()
			self:fail("it takes no more input", 2)
		elseif process.now() > deadline then
			self:fail("it does not read its input", 2)
		else
			self:pump(0.05, true)
		end
	end
end

function Process:close_stdin()
	close_end(self.owner, IN)
end

--- Sends a signal, by name or number (TERM when none is given). Harmless after the end.
function Process:kill(signal)
	if self.owner.pid ~= 0 then
		C.kill(self.pid, signals[signal or "TERM"] or tonumber(signal) or error("unknown signal " .. tostring(signal), 2))
	end
end

--- Waits for the end: its exit code, or nil and the number of the signal.
function Process:wait(seconds)
	self:await(seconds, "it did not end", function(ended)
		return ended or nil
	end)
	return self.code, self.signal
end

--- Ends the child for good and lets go of its pipes. Harmless when it has ended.
function Process:close()
	self:pump(0)
	reap(self.owner)
end

function Process:stdout()
	self:pump(0)
	return self.out.text
end

function Process:stderr()
	self:pump(0)
	return self.err.text
end

return process
