--- A TCP proxy that stands before a server and misbehaves when the spec says so: spec/drivers/proxy.c.
--
--   local wire = proxy.start("127.0.0.1:6443")       or a URL, or a port of 127.0.0.1
--   wire.port, wire.url                              where it listens; the URL has the server's scheme
--   local path = wire:kubeconfig(cluster)            as the cluster's own (support.cluster), but through the wire
--   wire:silence { after = 5000 }                    a black hole: so many bytes more; then what comes is acknowledged and lost
--   wire:slow { rate = 50000 }                       bytes a second
--   wire:cut { after = 5000 }                        … then the end of the stream to both sides
--   wire:reset { after = 5000 }                      … then a TCP reset
--   wire:heal()                                      no fault any more; but a connection that went silent stays so
--   wire:refuse()  wire:accept()                     new connections
--
-- Without "after" they strike at once. They strike the open connections and both directions, unless told otherwise:
--   scope = "open" | "new" | "all" | "next"          those there are, those to come, both, the next one alone
--   connection = 3                                   the third that came
--   direction = "up" | "down"                        from the client to the server, or back
--
--   wire:counts()              { connections =, open =, up =, down =, lost_up =, lost_down =, fired = { cut =, reset =, silence =, slow = } }:
--                              connections so far, bytes passed on and lost, how often each fault has struck
--   wire:connections()         array of { number =, up =, down =, lost_up =, lost_down = }: the open ones
--   wire:await(what, is_so)    waits until is_so(counts) is true; the counts
--   wire:close()
local cjson = require "cjson"
local files = require "support.files"
local kube = require "support.kube"
local process = require "support.process"

local proxy = {}

local SECONDS = 20

local Proxy = {}
Proxy.__index = Proxy

function proxy.start(target)
	local scheme, host, port = tostring(target):match "^(%a*:?/?/?)([^/:]-):?(%d+)/?$"
	host = host ~= "" and host or "127.0.0.1"
	local wire = setmetatable({ child = process.start { process.driver "proxy", host, port }, host = host }, Proxy)
	wire.port = wire:answer("listening").port
	wire.url = ("%s127.0.0.1:%d"):format(scheme, wire.port)
	return wire
end

function Proxy:answer(event)
	local answer = cjson.decode(self.child:line(SECONDS))
	assert(answer.event == event, ("the proxy says %s, not %s"):format(answer.event, event))
	return answer
end

function Proxy:order(verb, options, event)
	local words = { verb }
	for key, value in pairs(options or {}) do
		words[#words + 1] = ("%s=%s"):format(key == "connection" and "scope" or key, tostring(value))
	end
	self.child:write(table.concat(words, "\t") .. "\n")
	return self:answer(event or "ok")
end

for _, verb in ipairs { "silence", "slow", "cut", "reset", "heal", "refuse", "accept" } do
	Proxy[verb] = function(self, options)
		self:order(verb, options)
	end
end

function Proxy:counts()
	return self:order("counts", nil, "counts")
end

function Proxy:connections()
	return self:order("connections", nil, "connections").list
end

function Proxy:await(what, is_so, seconds)
	local deadline = process.now() + (seconds or SECONDS)
	while true do
		local counts = self:counts()
		if is_so(counts) then
			return counts
		end
		assert(process.now() < deadline, ("%s: not so, but %s"):format(what, cjson.encode(counts)))
		self.child:pump(0.02)
	end
end

function Proxy:kubeconfig(cluster)
	local with = cluster.credentials()
	return kube.write_config(files.folder() .. "/kubeconfig", {
		server = self.url, ["certificate-authority"] = with.ca, ["tls-server-name"] = self.host ~= "127.0.0.1" and self.host or nil,
	}, { ["client-certificate"] = with.cert, ["client-key"] = with.key, token = with.token })
end

--- Its connections end with it.
function Proxy:close()
	self.child:close_stdin()
	assert(self.child:wait(SECONDS) == 0, self.child:stderr())
	self.child:close()
end

return proxy
