--- A real API server for specs, and an independent client of it (the curl program), to check one against the other.
--
--   cluster.kubeconfig()      path of an admin's kubeconfig: $PERILUNE_TEST_KUBECONFIG, else the one of `scripts/cluster up`
--   cluster.need()            the same; where there is none the running spec is pending with the reason. For the body of an `it`
--   local before_each, it = cluster.when_up(before_each, it)     where there is none, each such `it` is pending and nothing else runs
--   cluster.user("eve")       path of a kubeconfig for a user without rights
--   cluster.need_user()       the same for a fresh name: name and path
--   cluster.grant("eve", { { apiGroups = { "" }, resources = { "pods" }, verbs = { "list" } } })   in all namespaces; the role's path
--   cluster.server()          "https://127.0.0.1:6443"
--   cluster.curl("GET", "/api/v1/pods")            status, decoded body
--   cluster.curl("POST", "/api/v1/…", { kind = … }) a table is sent as JSON
--   cluster.raw("GET", "/version")                  status, the answer's bytes
--   cluster.send({ { "POST", "/api/v1/…", { … } }, … })  many over one connection, one after another: { status =, body = } each;
--                             with the second argument true in parallel, without bodies
--   cluster.namespace()       a fresh one
--   cluster.define()          a fresh CRD of kind Widget: its apiVersion and the path of its group
--   cluster.random_name()     for what the spec makes itself
--
-- cluster.second() is a second cluster, made for being stopped and killed: it has the same functions, and
--   second.stop_apiserver("KILL")  second.start_apiserver()  second.compact()
--   second.audit("shop")           the lists and watches of ConfigMaps and Secrets in a namespace that its admin's clients have made:
--                                  { verb =, resource =, agent =, stage = "ResponseStarted" | "ResponseComplete" } in order
--   second.writes("shop")          the writes of ConfigMaps and Leases there: { at = seconds, resource =, name =, status =, holder = } by
--                                  the time at which they came in
--
-- What was made here goes when busted ends, and so does the second cluster.
local busted = require "busted"
local cjson = require "cjson"
local files = require "support.files"
local process = require "support.process"

-- busted gives `pending` to the functions of a spec file alone; in a body of `it` this one does the same.
local give_up = require "busted.core"().pending

local START_SECONDS = 1800 -- a first start builds the servers

local function last_line(text)
	return text:match "([^\n]*)\n*$"
end

local function random_name()
	local file = assert(io.open("/dev/urandom", "rb"))
	local bytes = file:read(5)
	file:close()
	return "spec-" .. bytes:gsub(".", function(c)
		return ("%02x"):format(c:byte())
	end)
end

--- Calls try, with a short pause between, until it gives something true; an error after that many seconds.
local function await(seconds, what, try)
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

local function decode_base64(folder, name, text)
	local encoded = files.write(folder .. "/" .. name .. ".b64", text)
	return files.write(folder .. "/" .. name, files.output_of { "base64", "-d", encoded })
end

-- Reads the few lines that kind, minikube, k3s and scripts/cluster write; enough for one cluster and one user.
local function read_credentials(path)
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
	return made
end

-- A value in a file of curl's options.
local function quoted(text)
	return '"' .. text:gsub('[\\"]', "\\%0"):gsub("\n", "\\n") .. '"'
end

local LONGEST_LINE = 50000 -- half of what curl takes there

-- One request as lines of such a file.
local function request_lines(with, request, out)
	local method, path, body = unpack(request)
	local function add(name, value)
		out[#out + 1] = value and name .. " = " .. quoted(value) or name
	end
	add("request", method)
	add("url", with.server .. path)
	add("user-agent", "spec") -- curl's own would have the answer indented
	add("header", "Accept: application/json")
	add("noproxy", "*")
	if with.ca then add("cacert", with.ca) end
	if with.cert then add("cert", with.cert) add("key", with.key) end
	if with.token then add("header", "Authorization: Bearer " .. with.token) end
	if body then
		add("header", "Content-Type: " .. (method == "PATCH" and "application/merge-patch+json" or "application/json"))
		local text = type(body) == "table" and cjson.encode(body) or body
		add("data-binary", #text < LONGEST_LINE and text or "@" .. files.write(("%s/body-%d"):format(with.folder, #out), text))
	end
end

-- folder: the state folder of scripts/cluster; nil for the one of the environment.
local Cluster = {}
Cluster.__index = Cluster

function Cluster:script(...)
	local options = { "scripts/cluster", ... }
	options.seconds = START_SECONDS
	options.env = self.folder and { PERILUNE_CLUSTER_DIR = self.folder, PERILUNE_TEST_KUBECONFIG = false } or nil
	return process.run(options)
end

function Cluster:given()
	local given = not self.folder and os.getenv "PERILUNE_TEST_KUBECONFIG"
	return given and given ~= "" and given or nil
end

-- { path = } or { reason = }
function Cluster:find()
	if self:given() then
		return { path = self:given() }
	end
	local ok, code, _, stderr = pcall(self.script, self, "up", unpack(self.flags))
	if not ok or code ~= 0 then
		return { reason = "no API server: " .. last_line(ok and stderr or tostring(code)) }
	end
	local _, env = self:script "env"
	local path = env:match "^export KUBECONFIG=(.-)\n"
	return path and { path = path } or { reason = "no API server: scripts/cluster env says " .. env }
end

function Cluster:kubeconfig()
	self.found = self.found or self:find()
	return self.found.path, self.found.reason
end

function Cluster:need()
	local path, reason = self:kubeconfig()
	if not path then
		give_up(reason)
	end
	return path
end

-- register: before_each, it and the like, which take a name at most and a function.
local function guarded(self, register)
	local function guard(body, is_spec)
		return function()
			if is_spec then
				self:need()
			end
			return self:kubeconfig() and body()
		end
	end
	return function(name, body)
		if body then
			return register(name, guard(body, true))
		end
		return register(guard(name, false))
	end
end

function Cluster:when_up(...)
	local wrapped = {}
	for i, register in ipairs { ... } do
		wrapped[i] = guarded(self, register)
	end
	return unpack(wrapped)
end

--- nil and a reason for a cluster that was only given, since no certificate can be issued there.
function Cluster:user(name)
	local code, stdout, stderr = self:script("user", name)
	if code ~= 0 or self:given() then
		return nil, "no user can be made: " .. last_line(stderr)
	end
	return stdout:match "^(.-)\n"
end

--- A fresh name and its kubeconfig. For the body of an `it`, which is pending where no user can be made.
function Cluster:need_user()
	local name = random_name()
	local path, reason = self:user(name)
	return name, path or give_up(reason)
end

function Cluster:credentials()
	self.read = self.read or read_credentials(assert(self:kubeconfig()))
	return self.read
end

function Cluster:server()
	return self:credentials().server
end

--- The path of the cluster's CA certificate.
function Cluster:ca()
	return self:credentials().ca
end

--- One curl for all requests.
function Cluster:send(requests, parallel)
	local with, lines = self:credentials(), {}
	for i, request in ipairs(requests) do
		request_lines(with, request, lines)
		lines[#lines + 1] = "write-out = " .. quoted "\n%{http_code}\n"
		lines[#lines + 1] = parallel and 'output = "/dev/null"' or nil
		lines[#lines + 1] = i < #requests and "next" or nil
	end
	local code, stdout, stderr = process.run {
		"curl", "--silent", "--show-error", "--max-time", 20 + #requests / 20, seconds = 60 + #requests / 10,
		parallel and "--parallel" or "--no-parallel", "--config", files.write(with.folder .. "/requests", table.concat(lines, "\n")),
	}
	assert(code == 0, "curl: " .. stderr)
	local answers = {}
	for body, status in stdout:gmatch "([^\n]*)\n+(%d+)\n" do
		answers[#answers + 1] = { status = tonumber(status), body = not parallel and cjson.decode(body) or nil }
	end
	assert(#answers == #requests, "curl answered " .. #answers .. " of " .. #requests .. " requests")
	return answers
end

--- The answer's bytes as they came.
function Cluster:raw(method, path, body)
	local with, lines = self:credentials(), {}
	request_lines(with, { method, path, body }, lines)
	local code, stdout, stderr = process.run {
		"curl", "--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}",
		"--config", files.write(with.folder .. "/request", table.concat(lines, "\n")),
	}
	assert(code == 0, "curl: " .. stderr)
	local answer, status = stdout:match "^(.*)\n(%d+)$"
	return tonumber(status), answer
end

function Cluster:curl(method, path, body)
	local status, answer = self:raw(method, path, body)
	local ok, decoded = pcall(cjson.decode, answer)
	return status, ok and decoded or answer
end

-- Creates something that goes when busted ends.
function Cluster:make(path, object)
	local status, body = self:curl("POST", path, object)
	assert(status == 201, ("no %s: %s"):format(object.kind, tostring(body.message or body)))
	table.insert(self.leftovers, path .. "/" .. object.metadata.name)
end

--- What controllers put into each namespace is there when this returns: the service account default and the ConfigMap kube-root-ca.crt.
--- But not in a second cluster, whose controllers come back late after a stop of the API server.
function Cluster:namespace()
	local name = random_name()
	local path = "/api/v1/namespaces/" .. name
	self:make("/api/v1/namespaces", { apiVersion = "v1", kind = "Namespace", metadata = { name = name } })
	if not self.folder then
		await(20, "what controllers put into " .. name, function()
			local answers = self:send { { "GET", path .. "/serviceaccounts/default" }, { "GET", path .. "/configmaps/kube-root-ca.crt" } }
			return answers[1].status == 200 and answers[2].status == 200
		end)
	end
	return name
end

function Cluster:grant(user, rules)
	local rbac, name = "/apis/rbac.authorization.k8s.io/v1/", random_name()
	self:make(rbac .. "clusterroles", {
		apiVersion = "rbac.authorization.k8s.io/v1", kind = "ClusterRole", metadata = { name = name }, rules = rules,
	})
	self:make(rbac .. "clusterrolebindings", {
		apiVersion = "rbac.authorization.k8s.io/v1", kind = "ClusterRoleBinding", metadata = { name = name },
		roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = name },
		subjects = { { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = user } },
	})
	return rbac .. "clusterroles/" .. name
end

--- Namespaced, with any fields. group: one that is not there yet; a fresh one where none is given.
function Cluster:define(group)
	group = group or random_name() .. ".example.com"
	self:make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
		apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition", metadata = { name = "widgets." .. group },
		spec = {
			group = group, scope = "Namespaced",
			names = { kind = "Widget", listKind = "WidgetList", plural = "widgets", singular = "widget" },
			versions = { {
				name = "v1", served = true, storage = true,
				schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
			} },
		},
	})
	await(20, "the kind Widget", function()
		return self:curl("GET", "/apis/" .. group .. "/v1/widgets") == 200
	end)
	return group .. "/v1", "/apis/" .. group .. "/v1"
end

function Cluster:stop_apiserver(signal)
	assert(self.folder, "only a second cluster may be stopped")
	assert(self:script("stop-apiserver", signal or "TERM") == 0)
end

function Cluster:start_apiserver()
	local code, _, stderr = self:script "start-apiserver"
	assert(code == 0, stderr)
end

function Cluster:compact()
	local code, _, stderr = self:script "compact"
	assert(code == 0, stderr)
end

-- What take makes of each entry of the audit log in a namespace. The last line may not be whole yet.
local function audited(folder, namespace, take)
	local entries = {}
	for line in files.read(folder .. "/audit.log"):gmatch "([^\n]+)\n" do
		local entry = cjson.decode(line)
		entries[#entries + 1] = entry.objectRef.namespace == namespace and take(entry) or nil
	end
	return entries
end

local READS = { list = true, watch = true }

function Cluster:audit(namespace)
	return audited(self.folder, namespace, function(entry)
		return READS[entry.verb] and {
			verb = entry.verb, resource = entry.objectRef.resource, agent = entry.userAgent, stage = entry.stage,
		}
	end)
end

-- Seconds of the day that the text's month began with; a spec that runs over its end is out of luck.
local function seconds_of(time)
	local day, hour, minute, second = time:match "^%d+%-%d+%-(%d+)T(%d+):(%d+):([%d.]+)Z$"
	return ((day * 24 + hour) * 60 + minute) * 60 + second
end

function Cluster:writes(namespace)
	local entries = audited(self.folder, namespace, function(entry)
		return not READS[entry.verb] and entry.stage == "ResponseComplete" and {
			at = seconds_of(entry.requestReceivedTimestamp), resource = entry.objectRef.resource, name = entry.objectRef.name,
			status = entry.responseStatus.code, holder = entry.requestObject and entry.requestObject.spec.holderIdentity,
		}
	end)
	table.sort(entries, function(a, b)
		return a.at < b.at
	end)
	return entries
end

function Cluster:clean()
	if self.folder and self.found and self.found.path then
		pcall(self.script, self, "down")
	end
	for i = self.folder and 0 or #self.leftovers, 1, -1 do
		pcall(self.curl, self, "DELETE", self.leftovers[i])
	end
	self.leftovers = {}
end

-- The functions of one cluster, to be called with a dot.
local function open(folder, flags)
	local self = setmetatable({ folder = folder, flags = flags or {}, leftovers = {} }, Cluster)
	local functions = { await = await, random_name = random_name }
	for name, method in pairs(Cluster) do
		functions[name] = name ~= "__index" and function(...)
			return method(self, ...)
		end or nil
	end
	busted.subscribe({ "suite", "end" }, function()
		self:clean()
		return nil, true
	end)
	return functions
end

local common = open()

function common.second()
	local first = os.getenv "PERILUNE_CLUSTER_DIR"
	local policy = os.getenv "PWD" .. "/spec/support/audit.yaml"
	return open((first and first ~= "" and first or ".cache/cluster/run") .. "-second", {
		"--audit-policy-file=" .. policy, "--audit-log-path=audit.log",
	})
end

return common
