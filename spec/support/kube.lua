--- The driver of core/kube: orders in, events out, each awaited with a deadline.
--
--   local driver = kube.start { kubeconfig = path, context =, namespace =, dry_run = true, env = {}, descriptors = 40 }
--   driver.ready                      the event "ready", or nil and driver.fatal the error
--   driver:start { path = "/version" }          an order with an id of its own; returns the id
--   driver:event("done", id)          the next event of that name and id, nothing skipped for other waits
--   driver:get("/version")            start and done in one
--   driver:order("advance", { seconds = 61 })
--   driver:finish()                   ends it: exit code 0, no object left alive
local cjson = require "cjson"
local files = require "support.files"
local process = require "support.process"

local kube = {}

local SECONDS = 20

local Driver = {}
Driver.__index = Driver

-- Nothing of the environment that specs run in may change what the driver finds.
local function clean_environment(changes, home)
	local env = { KUBECONFIG = false, KUBERNETES_SERVICE_HOST = false, KUBERNETES_SERVICE_PORT = false,
		PERILUNE_SERVICEACCOUNT_DIR = home .. "/none", HOME = home, HTTPS_PROXY = false, https_proxy = false }
	for name, value in pairs(changes or {}) do
		env[name] = value
	end
	return env
end

function kube.start(options)
	local home = files.folder()
	local command = { process.driver "kube_driver", env = clean_environment(options.env, home), cwd = options.cwd }
	if options.cwd and not command[1]:match "^/" then
		command[1] = os.getenv "PWD" .. "/" .. command[1]
	end
	for _, name in ipairs { "kubeconfig", "context", "namespace" } do
		if options[name] then
			command[#command + 1] = "--" .. name
			command[#command + 1] = options[name]
		end
	end
	if options.dry_run then
		command[#command + 1] = "--dry-run"
	end
	if options.descriptors then
		local limit = ('ulimit -n %d; exec "$0" "$@"'):format(options.descriptors)
		command = { env = command.env, cwd = command.cwd, "sh", "-c", limit, unpack(command) }
	end
	local driver = setmetatable({ child = process.start(command), home = home, events = {}, count = 0 }, Driver)
	local first = driver:read(SECONDS)
	driver.ready = first.event == "ready" and first or nil
	driver.fatal = first.event == "fatal" and first.err or nil
	return driver
end

function Driver:read(seconds)
	return cjson.decode(self.child:line(seconds))
end

--- The oldest event not yet given out of that name (and id); the others stay for later.
function Driver:event(name, id, seconds)
	local deadline = process.now() + (seconds or SECONDS)
	local at = 1
	while true do
		local event = self.events[at]
		if not event then
			event = self:read(math.max(deadline - process.now(), 0))
			self.events[at] = event
		end
		if event.event == name and (not id or event.id == id) then
			return table.remove(self.events, at)
		end
		at = at + 1
	end
end

--- Whether such an event has come and was not given out.
function Driver:has(name, id)
	for _, event in ipairs(self.events) do
		if event.event == name and (not id or event.id == id) then
			return true
		end
	end
	return false
end

function Driver:order(verb, fields)
	local words = { verb }
	for key, value in pairs(fields or {}) do
		words[#words + 1] = key .. "=" .. tostring(value)
	end
	self.child:write(table.concat(words, "\t") .. "\n")
	self:event "ok"
end

function Driver:start(fields)
	self.count = self.count + 1
	fields.id = fields.id or tostring(self.count)
	if type(fields.body) == "table" then
		fields.body = cjson.encode(fields.body)
	end
	self:order("start", fields)
	return fields.id
end

function Driver:request(fields)
	return self:event("done", self:start(fields))
end

function Driver:get(path)
	return self:request { path = path }
end

function Driver:find(fields)
	self.count = self.count + 1
	fields.id = tostring(self.count)
	self:order("find", fields)
	return self:event("found", fields.id)
end

--- Everything that the driver wrote: for promises about what must never be written.
function Driver:output()
	return self.child:stdout() .. self.child:stderr()
end

function Driver:finish()
	self.child:close_stdin()
	local last = self:event "end"
	local code = self.child:wait(SECONDS)
	assert(code == 0, "the driver's exit code is " .. tostring(code) .. ": " .. self.child:stderr())
	assert(last.live == 0, "objects left alive: " .. self.child:stderr())
	self.child:close()
end

--- Writes a kubeconfig with one cluster and one user, as JSON, which is YAML too. Returns its path.
function kube.write_config(path, cluster, user, context)
	context = context or {}
	context.cluster, context.user = "c", "u"
	return files.write(path, cjson.encode {
		["apiVersion"] = "v1", kind = "Config", ["current-context"] = "x",
		clusters = { { name = "c", cluster = cluster } },
		users = { { name = "u", user = next(user) and user or nil } },
		contexts = { { name = "x", context = context } },
	})
end

return kube
