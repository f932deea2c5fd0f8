--- The world of a sample's story on a real API server: what spec/support/sample.lua says. The sample is a child that may do what its role
-- says; the admin's part is played by the curl program. All that is there is left to support.cluster to delete.
local cli = require "support.cli"
local cluster = require "support.cluster"
local k8s = require "perilune"
local manifests = require "support.manifests"
local process = require "support.process"

local server = {}

local World = {}
World.__index = World

local PATIENCE = 60 -- seconds
local WRITES = { POST = true, PUT = true, PATCH = true, APPLY = true, DELETE = true, DELETECOLLECTION = true }
local READS = { get = true, list = true, watch = true }

-- A host has synced some 200 ms after its start, and then works for some 50 ms.
local LONGEST_LIFE = 0.4

local function define(folder)
	local path = manifests.definition(folder)
	local definition = path and manifests.read(path)[1]
	if not definition or cluster.curl("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" .. definition.metadata.name) == 200 then
		return
	end
	cluster.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
	local spec = definition.spec
	cluster.await(20, "the kind " .. spec.names.kind, function()
		return cluster.curl("GET", ("/apis/%s/%s/%s"):format(spec.group, spec.versions[1].name, spec.names.plural)) == 200
	end)
end

function server.open(story)
	cluster.need()
	define(story.folder)
	local role = manifests.read(story.folder .. "/manifests/rbac.yaml")
	return setmetatable({
		folder = story.folder, role = role, kubeconfig = manifests.kubeconfig(role, cluster), config = {}, made = {}, names = {}, kinds = {},
		is_real = true,
	}, World)
end

function World:close()
	if self.child then
		self.child:close()
	end
end

-- --- the cluster ---

function World:name(word)
	self.names[word] = self.names[word] or cluster.random_name() .. "-" .. word
	return self.names[word]
end

function World:namespace(word, labels)
	self.names[word] = cluster.namespace()
	if labels then
		self:patch({ apiVersion = "v1", kind = "Namespace", name = self.names[word] }, { metadata = { labels = labels } })
	end
	return self.names[word]
end

local function root_of(api_version)
	return (api_version:find("/", 1, true) and "/apis/" or "/api/") .. api_version
end

function World:resource(reference)
	local root = root_of(reference.apiVersion)
	local key = root .. " " .. reference.kind
	if not self.kinds[key] then
		local _, answer = cluster.curl("GET", root)
		for _, resource in ipairs(answer.resources) do
			if resource.kind == reference.kind and not resource.name:find("/", 1, true) then
				self.kinds[key] = resource
			end
		end
	end
	return assert(self.kinds[key], "no kind " .. reference.kind), root
end

-- Of all objects of the kind, in the namespace where there is one; with a name of that one.
function World:path(reference, with_name)
	local metadata = reference.metadata or reference
	local resource, root = self:resource(reference)
	return root .. (resource.namespaced and metadata.namespace and "/namespaces/" .. metadata.namespace or "") .. "/" .. resource.name
		.. (with_name and "/" .. metadata.name or "")
end

local function ask(method, path, body)
	local status, answer = cluster.curl(method, path, body and k8s.json.encode(body))
	assert(status < 300, ("%s %s: %s"):format(method, path, tostring(type(answer) == "table" and answer.message or answer)))
	return answer
end

function World:create(object)
	local made = ask("POST", self:path(object), object)
	table.insert(self.made, made)
	return made
end

function World:get(reference)
	local path = self:path(reference, true)
	local status, answer = cluster.curl("GET", path)
	assert(status == 200 or status == 404, path)
	return status == 200 and answer or nil
end

local function escape(text)
	return (text:gsub("[^%w.-]", function(c)
		return ("%%%02X"):format(c:byte())
	end))
end

function World:list(options)
	local query = options.label_selector and "?labelSelector=" .. escape(options.label_selector) or ""
	return ask("GET", self:path(options) .. query).items
end

function World:patch(reference, change)
	return ask("PATCH", self:path(reference, true), change)
end

function World:patch_status(reference, change)
	return ask("PATCH", self:path(reference, true) .. "/status", change)
end

function World:delete(reference)
	ask("DELETE", self:path(reference, true) .. "?propagationPolicy=Background")
end

-- --- the host ---

function World:start()
	local command = { "run", self.folder, "--kubeconfig", self.kubeconfig, "--listen", "off" }
	for key, value in pairs(self.config) do
		command[#command + 1] = "--set"
		command[#command + 1] = ("%s=%s"):format(key, tostring(value))
	end
	self.child = cli.start(command)
end

function World:kill()
	self.child:kill "KILL"
	self.child:wait(10)
	self.child:close()
end

function World:doom() end

function World:die()
	self:pass(math.random() * LONGEST_LIFE)
	self:kill()
end

-- --- time ---

-- While it sleeps the loop turns, and with it the HTTP servers of the story.
function World:await(what, holds)
	local deadline = process.now() + PATIENCE
	while true do
		local ok, held = pcall(holds)
		if ok and held then
			return
		elseif process.now() > deadline then
			self.child:fail(("%s: not within %d s: %s"):format(what, PATIENCE, tostring(held)), 0)
		end
		self:pass(0.05)
	end
end

function World:pass(seconds)
	k8s.sleep(seconds)
end

-- --- what came of it ---

-- "/configmaps": of those that the sample may write, so that what others do does not count.
local function written_resources(role)
	local resources = {}
	for _, rule in ipairs(manifests.find(role, "ClusterRole").rules) do
		for _, verb in ipairs(rule.verbs) do
			for _, resource in ipairs(READS[verb] and {} or rule.resources) do
				resources[resource:match "^[^/]+"] = true
			end
		end
	end
	return resources
end

--- As the API server itself counts them.
function World:writes()
	local _, page = cluster.raw("GET", "/metrics")
	local resources, count = written_resources(self.role), 0
	for labels, value in page:gmatch "\napiserver_request_total{([^\n}]*)} (%S+)" do
		if WRITES[labels:match 'verb="(%u+)"'] and resources[labels:match 'resource="([^"]*)"'] then
			count = count + tonumber(value)
		end
	end
	return count
end

function World:errors()
	local lines = {}
	for line in self.child:stderr():gmatch "[^\n]*ERROR[^\n]*" do
		lines[#lines + 1] = line
	end
	return lines
end

return server
