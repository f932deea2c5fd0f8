--- `perilune sandbox` for specs, and the curl program as its client.
--
--   local server = sandbox.start { "--manifests", path }
--   server.url, server.kubeconfig
--   server:curl("GET", "/api/v1/pods", body_text, { "Accept: …" })   status, decoded body, content type
--   server:stop()                                                    fails unless the exit code is 0
local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"
local process = require "support.process"

local sandbox = {}

local SECONDS = 20

local Server = {}
Server.__index = Server

function sandbox.start(flags)
	local child = cli.start { "sandbox", unpack(flags or {}) }
	local kubeconfig = child:line(SECONDS)
	return setmetatable({
		child = child, kubeconfig = kubeconfig, url = files.read(kubeconfig):match "server: (%S+)",
	}, Server)
end

--- One request with curl: status, body (decoded where it is JSON), content type. with: server, ca, cert, key, token.
function sandbox.request(with, method, path, body, headers)
	local command = {
		"curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", SECONDS, "--user-agent", "spec", "--request", method,
		"--write-out", "\n%{http_code} %{content_type}", with.server .. path,
	}
	local function add(...)
		for _, word in ipairs { ... } do
			command[#command + 1] = word
		end
	end
	for name, value in pairs { cacert = with.ca, cert = with.cert, key = with.key } do
		add("--" .. name, value)
	end
	for _, header in ipairs(headers or {}) do
		add("--header", header)
	end
	if body then
		add("--data-binary", body)
	end
	local text, status, content_type = files.output_of(command):match "^(.*)\n(%d+) (.-)$"
	local ok, decoded = pcall(cjson.decode, text)
	return tonumber(status), ok and decoded or text, content_type
end

function Server:curl(method, path, body, headers)
	return sandbox.request({ server = self.url }, method, path, body,
		headers or { "Content-Type: application/" .. (method == "PATCH" and "merge-patch+" or "") .. "json" })
end

function Server:stop()
	self.child:kill "TERM"
	assert(self.child:wait(SECONDS) == 0, self.child:stderr())
end

--- The path of kubectl, installed where it is not there yet; or nil and why not.
function sandbox.kubectl()
	local code, stdout, stderr = process.run { "bash", "-c", [[
		. scripts/lib/say.sh && . scripts/lib/kubectl.sh && find_kubectl "${PERILUNE_CACHE:-.cache}" && echo "$KUBECTL"]],
		seconds = 300 }
	if code ~= 0 then
		return nil, stderr:match "([^\n]*)\n*$"
	end
	return stdout:match "^(.-)\n"
end

return sandbox
