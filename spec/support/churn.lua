--- ConfigMaps of one namespace that change at random, a batch a second, each batch by a curl program of its own.
--
--   local churn = churns.new(churns.real_server(cluster), 5000, 200)      so many objects, so many changes a second
--   churn:fill()                      creates them all
--   churn:go_on(process.now())        the next batch when its time has come; call it often
--   churn:finish_batch(20)            waits for the one under way
--   churn:truth()                     what the server holds: name to resourceVersion
--   churn:mark("mark-1")              creates one object
--   churn.done, churn.failed          requests that were answered well; the others by their status
--
-- A server is { url =, namespace =, settings = lines for curl, kubeconfig = function(wire) }: cluster is support.cluster or its second().
local cjson = require "cjson"
local files = require "support.files"
local kube = require "support.kube"
local process = require "support.process"

local churns = {}

local TEXT = ("x"):rep(200)
local FILL_SECONDS, BATCH = 300, 1000

-- As curl's configuration takes it.
local function setting(name, value)
	return ('%s = "%s"'):format(name, (value:gsub('[\\"]', "\\%0")))
end

-- A server to churn: how to reach it around the wire, and its kubeconfig through it.
function churns.real_server(where)
	local with = where.credentials()
	return {
		url = where.server(), namespace = where.namespace(), cluster = where,
		settings = { setting("cacert", with.ca), setting("cert", with.cert), setting("key", with.key) },
		kubeconfig = function(wire)
			return wire:kubeconfig(where)
		end,
	}
end

function churns.sandbox_server(server)
	return {
		url = server.url, namespace = "default", settings = {},
		kubeconfig = function(wire)
			return kube.write_config(files.folder() .. "/kubeconfig", { server = wire.url }, {})
		end,
	}
end

-- Changes objects at random, a batch a second, each with a curl program of its own.
local Churn = {}
Churn.__index = Churn

function churns.new(server, objects, rate)
	return setmetatable({
		server = server, objects = objects, rate = rate, present = {}, folder = files.folder(), count = 0, done = 0, failed = {},
		path = "/api/v1/namespaces/" .. server.namespace .. "/configmaps",
	}, Churn)
end

function Churn:request(name)
	self.count = self.count + 1
	local method, path, body = "POST", self.path, { metadata = { name = name }, data = { count = tostring(self.count), text = TEXT } }
	if self.present[name] then
		path = path .. "/" .. name
		method = math.random(5) == 1 and "DELETE" or "PATCH"
	end
	local lines = {
		setting("url", self.server.url .. path), setting("request", method), setting("user-agent", "spec"), setting("output", "/dev/null"),
		setting("header", "Content-Type: " .. (method == "PATCH" and "application/merge-patch+json" or "application/json")),
		('write-out = "%s %s %%{http_code}\\n"'):format(method, name),
	}
	for _, line in ipairs(self.server.settings) do
		lines[#lines + 1] = line
	end
	if method ~= "DELETE" then
		lines[#lines + 1] = setting("data", cjson.encode(body))
	end
	return table.concat(lines, "\n")
end

-- No name twice, since the requests of a batch overtake each other.
function Churn:start_batch(names)
	local requests = {}
	for i, name in ipairs(names) do
		requests[i] = self:request(name)
	end
	self.batch = process.start { "curl", "--silent", "--no-progress-meter", "--noproxy", "*", "--parallel", "--parallel-max", "50",
		"--max-time", "60", "--config", files.write(self.folder .. "/batch", table.concat(requests, "\nnext\n")) }
end

function Churn:random_names()
	local names, first = {}, math.random(self.objects)
	for i = 1, math.min(self.rate, self.objects) do
		names[i] = "item-" .. (first + i * 7919) % self.objects
	end
	return names
end

-- What the server has said; what it has not said is found out by the next request for that name.
function Churn:finish_batch(seconds)
	self.batch:wait(seconds)
	for method, name, status in self.batch:stdout():gmatch "(%u+) (%S+) (%d+)\n" do
		local ok = status == "200" or status == "201"
		self.done = self.done + (ok and 1 or 0)
		if not ok then
			self.failed[status] = (self.failed[status] or 0) + 1
		end
		if ok or status == "409" or status == "404" then
			self.present[name] = method ~= "DELETE" and status ~= "404" or nil
		end
	end
	self.batch:close()
	self.batch = nil
end

function Churn:is_ready()
	return not self.batch or self.batch:has_ended()
end

-- The next batch when its time has come and the last one is done.
function Churn:go_on(now)
	if self:is_ready() and now >= (self.next_at or 0) then
		if self.batch then
			self:finish_batch(1)
		end
		self.next_at = now + 1
		self:start_batch(self:random_names())
	end
end

-- All objects, for a start.
function Churn:fill()
	local deadline = process.now() + FILL_SECONDS
	while true do
		local absent = {}
		for i = 0, self.objects - 1 do
			absent[#absent + 1] = #absent < BATCH and not self.present["item-" .. i] and "item-" .. i or nil
		end
		if #absent == 0 then
			return
		end
		assert(process.now() < deadline, "the server does not take so many objects: " .. cjson.encode(self.failed))
		self:start_batch(absent)
		self:finish_batch(FILL_SECONDS)
	end
end

function Churn:curl(...)
	return files.output_of { "curl", "--silent", "--show-error", "--noproxy", "*", "--user-agent", "spec", "--max-time", "60",
		"--config", files.write(self.folder .. "/settings", table.concat(self.server.settings, "\n")), seconds = 70, ... }
end

-- All of the server's objects: name to resourceVersion.
function Churn:truth()
	local map = {}
	for _, item in ipairs(cjson.decode(self:curl(self.server.url .. self.path)).items) do
		if item.metadata.name ~= "kube-root-ca.crt" then
			map[item.metadata.name] = item.metadata.resourceVersion
		end
	end
	return map
end

function Churn:mark(name)
	self:curl("--fail", "--header", "Content-Type: application/json", "--data", cjson.encode { metadata = { name = name } },
		self.server.url .. self.path)
end

return churns
