--- A TCP server in the spec's own hands: it accepts, reads, writes and breaks off exactly when the spec says.
--
--   local server = tcp.listen()            on a free loopback port: server.port
--   local peer = server:accept(5)
--   peer:read_until("\r\n\r\n", 5)         all that came, up to and with the plain text
--   peer:write(...)  peer:close()  peer:reset()
--   local peer = tcp.connect(port)         the other end
--   peer:take(0.1)  peer:give(text)        what can be read or written now
local bit = require "bit"
local ffi = require "ffi"
local process = require "support.process"

local tcp = {}

if not pcall(ffi.typeof, "struct tcp_address") then
	ffi.cdef [[
		struct tcp_address { unsigned short family, port; unsigned char ip[4]; char zero[8]; };
		struct tcp_unix_address { unsigned short family; char path[108]; };
		struct tcp_linger { int on, seconds; };
		struct tcp_fd { int fd; };
	]]
end
ffi.cdef [[
	int socket(int domain, int type, int protocol);
	int bind(int fd, const void *address, unsigned length);
	int connect(int fd, const void *address, unsigned length);
	int shutdown(int fd, int how);
	int listen(int fd, int backlog);
	int accept4(int fd, struct tcp_address *address, unsigned *length, int flags);
	int getsockname(int fd, struct tcp_address *address, unsigned *length);
	int setsockopt(int fd, int level, int name, const void *value, unsigned length);
	long send(int fd, const void *bytes, size_t size, int flags);
	long recv(int fd, void *bytes, size_t size, int flags);
]]
local C = ffi.C

local AF_UNIX, AF_INET, SOCK_STREAM, SOCK_CLOEXEC = 1, 2, 1, 0x80000
local SOL_SOCKET, SO_LINGER, MSG_NOSIGNAL, MSG_DONTWAIT, SHUT_WR = 1, 13, 0x4000, 0x40, 1
local EINTR = 4
local POLLIN = 1
local ECONNRESET, ECONNREFUSED = 104, 111

-- A descriptor that is closed when it is collected.
local function own(fd)
	assert(fd >= 0, "no socket")
	return ffi.gc(ffi.new("struct tcp_fd", fd), function(owner)
		if owner.fd >= 0 then
			C.close(owner.fd)
			owner.fd = -1
		end
	end)
end

-- A signal, such as the timer's of a script's time limit, ends poll early.
local function is_ready(owner, seconds)
	local waiting = ffi.new("struct process_pollfd[1]", { { owner.fd, POLLIN } })
	local deadline = process.now() + seconds
	while true do
		local count = C.poll(waiting, 1, math.max(0, math.ceil((deadline - process.now()) * 1000)))
		if count >= 0 or ffi.errno() ~= EINTR then
			return count > 0
		end
	end
end

--- Whether something can be read from a socket's owner within so many seconds.
tcp.is_ready = is_ready

local function await(owner, seconds, what)
	if not is_ready(owner, seconds) then
		error(("%s within %g s"):format(what, seconds), 3)
	end
end

-- A port as the network orders its bytes, and back.
local function swapped(port)
	return bit.bor(bit.lshift(bit.band(port, 0xff), 8), bit.rshift(port, 8))
end

local function loopback(port)
	local address = ffi.new("struct tcp_address", { family = AF_INET, port = swapped(port), ip = { 127, 0, 0, 1 } })
	return address, ffi.sizeof(address)
end

local Peer = {}
Peer.__index = Peer

local Server = {}
Server.__index = Server

--- backlog: how many connections the system takes before they are accepted.
function tcp.listen(backlog)
	local owner = own(C.socket(AF_INET, bit.bor(SOCK_STREAM, SOCK_CLOEXEC), 0))
	local address, size = loopback(0)
	assert(C.bind(owner.fd, address, size) == 0, "bind")
	assert(C.listen(owner.fd, backlog or 64) == 0, "listen")
	C.getsockname(owner.fd, address, ffi.new("unsigned[1]", size))
	local port = swapped(address.port)
	return setmetatable({ owner = owner, port = port, url = "http://127.0.0.1:" .. port }, Server)
end

--- A unix socket.
function tcp.listen_unix(path)
	local owner = own(C.socket(AF_UNIX, bit.bor(SOCK_STREAM, SOCK_CLOEXEC), 0))
	local address = ffi.new("struct tcp_unix_address", { family = AF_UNIX, path = path })
	assert(C.bind(owner.fd, address, ffi.sizeof(address)) == 0, "bind")
	assert(C.listen(owner.fd, 64) == 0, "listen")
	return setmetatable({ owner = owner }, Server)
end

--- A connection to that loopback port; nil and "refused" when nobody takes it.
function tcp.connect(port)
	local owner = own(C.socket(AF_INET, bit.bor(SOCK_STREAM, SOCK_CLOEXEC), 0))
	if C.connect(owner.fd, loopback(port)) ~= 0 then
		assert(ffi.errno() == ECONNREFUSED, "connect")
		return nil, "refused"
	end
	return setmetatable({ owner = owner, received = "" }, Peer)
end

--- A connection to a unix socket.
function tcp.connect_unix(path)
	local owner = own(C.socket(AF_UNIX, bit.bor(SOCK_STREAM, SOCK_CLOEXEC), 0))
	local address = ffi.new("struct tcp_unix_address", { family = AF_UNIX, path = path })
	assert(C.connect(owner.fd, address, ffi.sizeof(address)) == 0, "connect")
	return setmetatable({ owner = owner, received = "" }, Peer)
end

--- True when a connection waits, or comes within a short while (0.2 s).
function Server:has_connection()
	return is_ready(self.owner, 0.2)
end

function Server:accept(seconds)
	await(self.owner, seconds, "no connection")
	local owner = own(C.accept4(self.owner.fd, nil, nil, SOCK_CLOEXEC))
	return setmetatable({ owner = owner, received = "" }, Peer)
end

function Server:close()
	ffi.gc(self.owner, nil)
	C.close(self.owner.fd)
end

--- All up to and with the text; what is behind it waits for the next call. Nil when the peer has closed before.
function Peer:read_until(text, seconds)
	local deadline = process.now() + seconds
	local buffer = ffi.new "char[65536]"
	while true do
		local _, last = self.received:find(text, 1, true)
		if last then
			local taken = self.received:sub(1, last)
			self.received = self.received:sub(last + 1)
			return taken
		end
		await(self.owner, math.max(0, deadline - process.now()), ("no %q after %q"):format(text, self.received))
		local length = tonumber(C.recv(self.owner.fd, buffer, ffi.sizeof(buffer), 0))
		if length <= 0 then
			return nil
		end
		self.received = self.received .. ffi.string(buffer, length)
	end
end

--- Reads the head of a request, and nothing of its body.
function Peer:request(seconds)
	return self:read_until("\r\n\r\n", seconds or 10)
end

--- Waits until the peer has closed.
function Peer:wait_closed(seconds)
	return self:read_until("\0never\0", seconds) == nil
end

function Peer:write(text)
	while #text > 0 do
		local length = tonumber(C.send(self.owner.fd, text, #text, MSG_NOSIGNAL))
		assert(length > 0, "the peer takes nothing")
		text = text:sub(length + 1)
	end
end

--- What has come, or comes within that time: "" for nothing, nil and "end" or "reset" when no more can come.
function Peer:take(seconds)
	if not is_ready(self.owner, seconds or 0) then
		return ""
	end
	local buffer = ffi.new "char[65536]"
	local length = tonumber(C.recv(self.owner.fd, buffer, ffi.sizeof(buffer), 0))
	if length > 0 then
		return ffi.string(buffer, length)
	end
	return nil, length < 0 and ffi.errno() == ECONNRESET and "reset" or "end"
end

--- Writes what the system takes at once; how many bytes that was.
function Peer:give(text)
	return math.max(0, tonumber(C.send(self.owner.fd, text, #text, MSG_NOSIGNAL + MSG_DONTWAIT)))
end

--- Nothing more will be written.
function Peer:finish()
	C.shutdown(self.owner.fd, SHUT_WR)
end

--- Answers with a body and its length.
function Peer:answer(body, headers)
	self:write(("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s"):format(headers or "", #body, body))
end

function Peer:close()
	ffi.gc(self.owner, nil)
	C.close(self.owner.fd)
end

--- Closes with a TCP reset.
function Peer:reset()
	C.setsockopt(self.owner.fd, SOL_SOCKET, SO_LINGER, ffi.new("struct tcp_linger", 1, 0), 8)
	self:close()
end

return tcp
