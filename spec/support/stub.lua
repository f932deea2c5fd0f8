--- A plain HTTP/1.1 server in the spec's own hands: it shows each request as it came and answers what the spec says.
--
--   local server = stub.listen()
--   server.url                        "http://127.0.0.1:12345"
--   local request = server:accept()   method, target, headers (names in lower case), body, raw
--   request:reply(200, { ["content-type"] = "application/json" }, "{}")   a header may be a list; closes
--   request.peer                      to write, close or reset by hand
local ffi = require "ffi"
local tcp = require "support.tcp"

local stub = {}

local SECONDS = 20

local Server, Request = {}, {}
Server.__index, Request.__index = Server, Request

function stub.listen()
	local server = tcp.listen()
	return setmetatable({ tcp = server, url = server.url, port = server.port }, Server)
end

local function parse(head)
	local request = setmetatable({ headers = {} }, Request)
	request.method, request.target = head:match "^(%S+) (%S+)"
	for name, value in head:gmatch "\r\n([^:\r]+): *([^\r]*)" do
		request.headers[name:lower()] = value
	end
	return request
end

-- As Peer:read_until, but so many bytes.
local function read_bytes(peer, length)
	local fd, room = peer.owner.fd, ffi.new "char[65536]"
	while #peer.received < length do
		assert(tcp.is_ready(peer.owner, SECONDS), "the rest of a body did not come")
		local got = tonumber(ffi.C.recv(fd, room, ffi.sizeof(room), 0))
		assert(got > 0, "the client closed inside a body")
		peer.received = peer.received .. ffi.string(room, got)
	end
	local taken = peer.received:sub(1, length)
	peer.received = peer.received:sub(length + 1)
	return taken
end

--- One connection and the one request on it. A client that leaves before it has asked anything is passed over.
function Server:accept(seconds)
	local peer, head
	repeat
		peer = self.tcp:accept(seconds or SECONDS)
		head = peer:request(SECONDS)
	until head
	local request = parse(head)
	request.peer = peer
	request.body = read_bytes(peer, tonumber(request.headers["content-length"]) or 0)
	request.raw = head .. request.body
	return request
end

function Server:close()
	self.tcp:close()
end

function Request:reply(status, headers, body)
	local lines = { ("HTTP/1.1 %d Answer"):format(status) }
	for name, value in pairs(headers or {}) do
		for _, one in ipairs(type(value) == "table" and value or { value }) do
			lines[#lines + 1] = name .. ": " .. one
		end
	end
	lines[#lines + 1] = "content-length: " .. #(body or "")
	lines[#lines + 1] = "connection: close"
	self.peer:write(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or ""))
	self.peer:close()
end

return stub
