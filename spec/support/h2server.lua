--- The HTTP/2 server of spec/h2server; its routes.go lists what each path does.
local cjson = require "cjson"
local files = require "support.files"
local process = require "support.process"

local h2server = {}

local Server = {}
Server.__index = Server

local program

-- The path of the program; nil and why where it can't be built.
local function find()
	if not program then
		local code, out, err = process.run { "scripts/cluster", "h2server", seconds = 600 }
		program = { code == 0 and out:match "[^\n]+", err }
	end
	return program[1], program[2]
end

--- Starts a server. Options: dir (of the PEM files; a new one when absent) and flags of h2server. nil and why when there is no Go to build it with.
function h2server.start(options)
	options = options or {}
	local path, why = find()
	if not path then
		return nil, why
	end
	local dir = options.dir or files.folder()
	local child = process.start { path, "-dir", dir, unpack(options) }
	local port = child:wait_for("listening (%d+)", 20)
	return setmetatable({
		child = child, dir = dir, port = tonumber(port), url = "https://127.0.0.1:" .. port,
		ca = dir .. "/ca.pem", cert = dir .. "/client.pem", key = dir .. "/client.key",
	}, Server)
end

--- Makes new certificates and has the server take them for new connections.
function Server:renew()
	files.output_of { find(), "-dir", self.dir, "-renew" }
	self.child:kill "HUP"
	self.child:wait_for("reloaded", 10)
end

--- The server's counts, asked for through a driver.
function Server:stats(driver, tls, mux)
	return cjson.decode(driver:fetch({ url = self.url .. "/stats", tls = tls or "t", mux = mux }).body)
end

--- Waits until the counts are as wished, asking through the mux "aside".
function Server:wait_until(driver, wish, is_so)
	local deadline = process.now() + 20
	while true do
		local stats = self:stats(driver, nil, "aside")
		if is_so(stats) then
			return
		end
		assert(process.now() < deadline, wish .. ": not so, but " .. cjson.encode(stats))
	end
end

function Server:close()
	self.child:close()
end

return h2server
