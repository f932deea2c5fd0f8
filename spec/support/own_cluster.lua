--- A second API server, of the spec's own, which it may stop, kill and start again. Made on the first call, ended with the Lua state.
--
--   local own = own_cluster.start()            pending where no server can be started
--   own.kubeconfig
--   own:run("stop-apiserver", "KILL")          a verb of scripts/cluster
--   own:curl("GET", "/api/v1/pods")            status, decoded body
--   own:create_many(count, path, body)         POSTs the body (with generateName) so often, on few connections
local cjson = require "cjson"
local files = require "support.files"
local process = require "support.process"

local own_cluster = {}

local START_SECONDS = 1800 -- a first start builds the servers

local Own = {}
Own.__index = Own

function Own:run(...)
	local code, stdout, stderr = process.run { "scripts/cluster", ..., seconds = START_SECONDS, env = self.env }
	return code == 0, stdout .. stderr
end

local function must(ok, what)
	assert(ok, what)
	return what
end

-- One for the process, however often busted loads this module.
local KEY = "perilune.own_cluster"

function own_cluster.start()
	local made = debug.getregistry()[KEY]
	if made then
		return made
	end
	if os.getenv "PERILUNE_TEST_KUBECONFIG" then
		pending "needs an API server of its own, which it may kill"
	end
	local folder = files.folder() .. "/cluster"
	local own = setmetatable({ folder = folder, env = { PERILUNE_CLUSTER_DIR = folder }, kubeconfig = folder .. "/kubeconfig" }, Own)
	local ok, why = own:run "up"
	if not ok then
		pending("no API server: " .. why:match "([^\n]*)\n*$")
	end
	own.guard = newproxy(true)
	getmetatable(own.guard).__gc = function()
		os.execute(("PERILUNE_CLUSTER_DIR='%s' scripts/cluster down >/dev/null 2>&1"):format(folder))
	end
	own.server = files.read(own.kubeconfig):match "server: *(%S+)"
	debug.getregistry()[KEY] = own
	return own
end

function Own:command(method, path)
	return { "curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", "60", "--request", method,
		"--cacert", self.folder .. "/ca.crt", "--cert", self.folder .. "/admin.crt", "--key", self.folder .. "/admin.key",
		"--header", "Content-Type: " .. (method == "PATCH" and "application/merge-patch+json" or "application/json"),
		self.server .. path }
end

local function add_body(command, folder, body)
	if body then
		command[#command + 1] = "--data-binary"
		command[#command + 1] = "@" .. files.write(folder .. "/body", type(body) == "table" and cjson.encode(body) or body)
	end
end

--- Status (0 when the server was not reached) and decoded body.
function Own:curl(method, path, body)
	local command = self:command(method, path)
	add_body(command, self.folder, body)
	command[#command + 1] = "--write-out"
	command[#command + 1] = "\n%{http_code}"
	command.seconds = 70
	local _, stdout = process.run(command)
	local answer, status = stdout:match "^(.*)\n(%d+)$"
	local ok, decoded = pcall(cjson.decode, answer)
	return tonumber(status), ok and decoded or answer
end

function Own:create(path, body)
	local status, made = self:curl("POST", path, body)
	must(status == 201, "not created: " .. tostring(type(made) == "table" and made.message or made))
	return made
end

function Own:create_many(count, path, body)
	local command = self:command("POST", path .. "?fieldManager=n[1-" .. count .. "]")
	add_body(command, self.folder, body)
	for _, word in ipairs { "--parallel", "--parallel-max", "40", "--no-progress-meter", "--output", "/dev/null", "--write-out", "%{http_code}\n" } do
		command[#command + 1] = word
	end
	command[7] = "300" -- --max-time
	command.seconds = 310
	local _, stdout, stderr = process.run(command)
	local made = select(2, stdout:gsub("201", ""))
	must(made == count, ("only %d of %d were made: %s"):format(made, count, stderr))
end

--- A fresh namespace, by name.
function Own:namespace()
	return self:create("/api/v1/namespaces", { apiVersion = "v1", kind = "Namespace", metadata = { generateName = "spec-" } }).metadata.name
end

return own_cluster
