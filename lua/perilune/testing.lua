--- testing: what specs use: an in-memory API server, programs that run against it, and a time that only the spec moves.
--
--   local cluster = require("perilune.testing").cluster()
--   cluster:load "examples/label-sync"
--   cluster:create(object)
--   cluster:settle()
--   local server = testing.http_server(function(request) return { status = 200, body = "hello" } end)      for k8s.http; server.url
--
-- While a cluster is open the clock of the process stands still. One that is not closed is closed at the end of the test
-- that opened it, or of the describe or file where it was opened outside of a test.
local k8s = require "perilune"

local has_core, core = pcall(require, "perilune.testing.core")
if not has_core then
	error("perilune.testing is for specs: run them with `perilune test`", 2)
end

local faults = require "perilune.sandbox.faults"
local rights = require "perilune.testing.rights"
local scope = require "perilune.testing.scope"
local words = require "perilune.testing.words"

local PATIENCE = 30 -- real seconds

local testing = {}

-- --- programs ---

local Program = {}
Program.__index = Program

--- Ends it at once, as a killed process ends. Harmless again.
function Program:kill()
	if self.handle then
		core.kill(self.cluster.handle, self.handle)
	end
	self.handle = nil
end

--- Loads its scripts anew, as SIGHUP does.
function Program:reload()
	if not self.handle then
		core.misuse "program:reload: it has been killed"
	end
	core.reload(self.cluster.handle, self.handle)
end

-- --- faults ---

local Fault = {}

function Fault.__index(fault, name)
	if name == "fired" then
		return core.ask(fault.cluster.handle, "fired", fault.number)
	end
	return Fault[name]
end

--- It does not happen any more.
function Fault:remove()
	core.ask(self.cluster.handle, "remove_fault", self.number)
end

-- --- the cluster ---

local Cluster = {}

local closed = setmetatable({}, { __mode = "k" })

local function names_of(cluster)
	local names = {}
	for _, functions in ipairs { Cluster, cluster } do
		for name in pairs(functions) do
			names[#names + 1] = name
		end
	end
	return names
end

function Cluster.__index(cluster, name)
	if Cluster[name] then
		return Cluster[name]
	end
	local meant = core.nearest(tostring(name), names_of(cluster))
	core.misuse(("a testing cluster has no '%s'%s"):format(tostring(name), meant and (", did you mean '%s'?"):format(meant) or ""))
end

local function check_self(self, name)
	if getmetatable(self) ~= Cluster then
		core.misuse(("this is a method of a cluster: call it with a colon, such as cluster:%s()"):format(name))
	end
end

-- The API client's errors say what the spec called.
local function renamed(text)
	return (text:gsub("^k8s%.", "cluster:"))
end

-- The API client, whose calls are made past the wire and past all faults.
local function add_calls(cluster)
	local calls = setmetatable({}, { __index = k8s })
	core.client(calls, setmetatable({
		request = function(call)
			return core.request(cluster.handle, call)
		end,
		check_options = function(options, what, known)
			core.check_options(options, renamed(what), known)
		end,
		misuse = function(message)
			core.misuse(renamed(message))
		end,
		default_namespace = function() end,
		field_manager = function()
			return "spec", false
		end,
	}, { __index = core }))
	for name, call in pairs(calls) do
		cluster[name] = type(call) ~= "function" and call or function(self, ...)
			check_self(self, name)
			return call(...)
		end
	end
end

local function settings_of(config)
	if config == nil then
		return nil
	end
	local settings = {}
	for key, value in pairs(config) do
		settings[#settings + 1] = ("%s=%s"):format(key, tostring(value))
	end
	return settings
end

--- Starts the scripts at a path as `perilune run` would. options: config (k8s.config), namespace. The program, for kill().
function Cluster:load(path, options)
	check_self(self, "load")
	options = options or {}
	core.check_options(options, "cluster:load", { "config", "namespace" })
	if type(path) ~= "string" then
		core.misuse("cluster:load takes the path of a script, not a " .. type(path))
	end
	local handle = core.load(self.handle, path, { namespace = options.namespace, settings = settings_of(options.config) })
	return setmetatable({ cluster = self, handle = handle }, Program)
end

local function patience_of(options, what)
	options = options or {}
	core.check_options(options, what, { "timeout" })
	return options.timeout or PATIENCE
end

local function move(self, what, seconds, options)
	local problem = core.move(self.handle, what, seconds, patience_of(options, what))
	if problem then
		core.misuse(what .. ": " .. problem)
	end
end

--- Waits until nothing is under way: no request, no event, no handler that does not wait for time. options: timeout, in
-- real seconds.
function Cluster:settle(options)
	check_self(self, "settle")
	move(self, "cluster:settle", 0, options)
end

--- Lets so many seconds pass: all that is due happens at its time, and is settled before the next.
function Cluster:advance(seconds, options)
	check_self(self, "advance")
	if type(seconds) ~= "number" or not (seconds >= 0 and seconds < 1e9) then
		core.misuse("cluster:advance takes seconds, from 0 on, not " .. tostring(seconds))
	end
	move(self, "cluster:advance", seconds, options)
end

local REQUEST_FIELDS = { "method", "path", "verb", "kind", "resource", "namespace", "name", "subresource" }

local function refuse(what, problem)
	if problem then
		core.misuse(("cluster:%s: %s"):format(what, problem))
	end
end

-- What is wrong with the kind and the resource of a filter or a fault, or nil.
local function unknown_kind(self, named)
	if named.kind or named.resource then
		return words.of_kinds(named, core.ask(self.handle, "kinds", k8s.object {}), core.nearest)
	end
end

--- What programs asked of the server, in order: those with these fields.
function Cluster:requests(filter)
	check_self(self, "requests")
	filter = filter or {}
	core.check_options(filter, "cluster:requests", REQUEST_FIELDS)
	refuse("requests", words.of_requests(filter, core.nearest) or unknown_kind(self, filter))
	return core.ask(self.handle, "requests", k8s.object(filter))
end

--- The rights that the requests of programs needed: rules, in order, as k8s.needs takes them.
function Cluster:rules()
	check_self(self, "rules")
	return core.ask(self.handle, "rules", k8s.object {})
end

--- What was logged since the cluster was opened, as tables of what `--log-format json` writes: those with these fields.
function Cluster:logs(filter)
	check_self(self, "logs")
	filter = filter or {}
	local lines, found = core.logs(self.handle), {}
	refuse("logs", type(filter) ~= "table" and "takes a table, such as { level = \"warn\" }"
		or words.of_log(filter, lines, core.nearest))
	for _, line in ipairs(lines) do
		local fits = true
		for name, value in pairs(filter) do
			fits = fits and line[name] == value
		end
		found[#found + 1] = fits and line or nil
	end
	return found
end

--- Orders a fault for requests of programs. The result has `fired`, how often it has happened, and remove().
function Cluster:fault(order)
	check_self(self, "fault")
	refuse("fault", type(order) ~= "table" and "takes a table, such as { verb = \"watch\", action = \"expire\" }"
		or faults.problem(order, core.nearest) or unknown_kind(self, order))
	return setmetatable({ cluster = self, number = core.ask(self.handle, "fault", order) }, Fault)
end

--- The server starts again: streams are reset, and history is forgotten.
function Cluster:restart()
	check_self(self, "restart")
	core.ask(self.handle, "restart", k8s.object {})
end

--- History is forgotten, as when etcd is compacted; open streams go on.
function Cluster:compact()
	check_self(self, "compact")
	core.ask(self.handle, "compact", k8s.object {})
end

--- Ends all programs, and time goes on. Harmless again.
function Cluster:close()
	check_self(self, "close")
	scope.leave(self)
	if not closed[self] then
		rights.note(self:rules())
	end
	closed[self] = true
	core.close(self.handle)
end

-- --- other servers ---

local Server = {}
Server.__index = Server

--- Ends it and its connections. Harmless again; not inside its own handler.
function Server:close()
	self.handle:close()
end

local function lines_of(headers)
	local lines = {}
	for name, value in pairs(headers or {}) do
		lines[#lines + 1] = ("%s: %s"):format(name, value)
	end
	return lines
end

local ANSWER = { "status", "headers", "body" }

--- Opens an HTTP server of the spec's own, for scripts that ask others than the API server: handler is called with each request,
-- { method =, path =, query =, headers =, body = }, and returns { status = 200, headers = {}, body = "" }.
function testing.http_server(handler)
	if type(handler) ~= "function" then
		core.misuse("testing.http_server takes a function, not a " .. type(handler))
	end
	local handle, port = core.serve(function(request)
		local answer = handler(request) or {}
		core.check_options(answer, "the answer of testing.http_server's function", ANSWER)
		return answer.status or 200, lines_of(answer.headers), answer.body or ""
	end)
	return setmetatable({ handle = handle, url = "http://127.0.0.1:" .. port }, Server)
end

--- Opens a cluster. options: manifests, a file or folder of YAML, or a list of them; quiet:
-- errors of scripts are not on stderr, only in logs().
function testing.cluster(options)
	scope.check(core.misuse)
	local cluster = { handle = core.open(options or {}) }
	add_calls(cluster)
	setmetatable(cluster, Cluster)
	scope.enter(cluster)
	return cluster
end

return testing
