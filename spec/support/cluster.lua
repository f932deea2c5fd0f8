--- A real API server for specs, and an independent client of it (the curl program), to check one against the other.
--
--   cluster.kubeconfig()      path of an admin's kubeconfig: $PERILUNE_TEST_KUBECONFIG, else the one of `scripts/cluster up`
--   cluster.need()            the same; where there is none the running spec is pending with the reason
--   cluster.user("eve")       path of a kubeconfig for a user without rights
--   cluster.server()          "https://127.0.0.1:6443"
--   cluster.curl("GET", "/api/v1/pods")            status, decoded body
--   cluster.curl("POST", "/api/v1/…", { kind = … }) a table is sent as JSON
--   cluster.namespace()       a fresh one, deleted when busted ends
local busted = require "busted"
local cjson = require "cjson"
local files = require "support.files"
local process = require "support.process"

local cluster = {}

local START_SECONDS = 1800 -- a first start builds the servers

local found -- { path = } or { reason = }
local credentials
local namespaces = {}

local function last_line(text)
	return text:match "([^\n]*)\n*$"
end

local function find()
	local given = os.getenv "PERILUNE_TEST_KUBECONFIG"
	if given and given ~= "" then
		return { path = given }
	end
	local ok, code, _, stderr = pcall(process.run, { "scripts/cluster", "up", seconds = START_SECONDS })
	if not ok or code ~= 0 then
		return { reason = "no API server: " .. last_line(ok and stderr or tostring(code)) }
	end
	local _, env = process.run { "scripts/cluster", "env" }
	local path = env:match "^export KUBECONFIG=(.-)\n"
	return path and { path = path } or { reason = "no API server: scripts/cluster env says " .. env }
end

function cluster.kubeconfig()
	found = found or find()
	return found.path, found.reason
end

function cluster.need()
	local path, reason = cluster.kubeconfig()
	if not path then
		pending(reason)
	end
	return path
end

--- nil and a reason for a cluster that was only given, since no certificate can be issued there.
function cluster.user(name)
	local code, stdout, stderr = process.run { "scripts/cluster", "user", name }
	if code ~= 0 or os.getenv "PERILUNE_TEST_KUBECONFIG" then
		return nil, "no user can be made: " .. last_line(stderr)
	end
	return stdout:match "^(.-)\n"
end

local function decode_base64(folder, name, text)
	local encoded = files.write(folder .. "/" .. name .. ".b64", text)
	return files.write(folder .. "/" .. name, files.output_of { "base64", "-d", encoded })
end

-- Reads the few lines that kind, minikube, k3s and scripts/cluster write; enough for one cluster and one user.
local function load_credentials()
	if credentials then
		return credentials
	end
	local path = assert(cluster.kubeconfig())
	local text = files.read(path)
	local made = { folder = files.folder(), server = assert(text:match "server: *(%S+)", "the kubeconfig has no server") }
	local function pem(key)
		local pattern = key:gsub("%-", "%%-")
		local data = text:match(pattern .. "%-data: *(%S+)")
		if data then
			return decode_base64(made.folder, key, data)
		end
		local file = text:match(pattern .. ": *(%S+)")
		return file and (file:match "^/" and file or path:match "^(.*/)" .. file)
	end
	made.ca, made.cert, made.key = pem "certificate-authority", pem "client-certificate", pem "client-key"
	made.token = text:match "token: *(%S+)"
	credentials = made
	return made
end

function cluster.server()
	return load_credentials().server
end

--- The path of the cluster's CA certificate.
function cluster.ca()
	return load_credentials().ca
end

function cluster.curl(method, path, body)
	local with = load_credentials()
	local command = { "curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", "20", "--request", method,
		"--write-out", "\n%{http_code}", with.server .. path, "--header", "Accept: application/json" }
	local function add(...)
		for _, word in ipairs { ... } do
			command[#command + 1] = word
		end
	end
	if with.ca then add("--cacert", with.ca) end
	if with.cert then add("--cert", with.cert, "--key", with.key) end
	if with.token then add("--header", "Authorization: Bearer " .. with.token) end
	if body then
		local text = type(body) == "table" and cjson.encode(body) or body
		local kind = method == "PATCH" and "application/merge-patch+json" or "application/json"
		add("--header", "Content-Type: " .. kind, "--data-binary", "@" .. files.write(with.folder .. "/body", text))
	end
	local code, stdout, stderr = process.run(command)
	assert(code == 0, "curl: " .. stderr)
	local answer, status = stdout:match "^(.*)\n(%d+)$"
	local ok, decoded = pcall(cjson.decode, answer)
	return tonumber(status), ok and decoded or answer
end

local function random_name()
	local file = assert(io.open("/dev/urandom", "rb"))
	local bytes = file:read(5)
	file:close()
	return "spec-" .. bytes:gsub(".", function(c)
		return ("%02x"):format(c:byte())
	end)
end

--- The service account controller has made the namespace's default account when this returns.
function cluster.namespace()
	local name = random_name()
	local status, body = cluster.curl("POST", "/api/v1/namespaces", { apiVersion = "v1", kind = "Namespace", metadata = { name = name } })
	assert(status == 201, "no namespace: " .. tostring(body.message))
	namespaces[#namespaces + 1] = name
	cluster.await(20, "the default service account of " .. name, function()
		return cluster.curl("GET", "/api/v1/namespaces/" .. name .. "/serviceaccounts/default") == 200
	end)
	return name
end

--- Calls try, with a short pause between, until it gives something true; an error after that many seconds.
function cluster.await(seconds, what, try)
	local deadline = process.now() + seconds
	while true do
		local result = try()
		if result then
			return result
		end
		if process.now() > deadline then
			error(("%s: not within %g s"):format(what, seconds), 2)
		end
		process.run { "sleep", "0.05" }
	end
end

busted.subscribe({ "suite", "end" }, function()
	for _, name in ipairs(namespaces) do
		pcall(cluster.curl, "DELETE", "/api/v1/namespaces/" .. name)
	end
	namespaces = {}
	return nil, true
end)

return cluster
