--- The world of a sample's story in memory, where time is the spec's: what spec/support/sample.lua says.
local manifests = require "support.manifests"
local testing = require "perilune.testing"

local sandbox = {}

local World = {}
World.__index = World

local PATIENCE = 1200 -- seconds of the clock that is moved
local WRITES = { "create", "update", "patch", "delete", "deletecollection" }

-- About as many requests as a sample makes in answer to what one step brings, and to start before that.
local MOST_RUNNING, MOST_STARTING = 4, 12

function sandbox.open(story)
	return setmetatable({
		cluster = testing.cluster { quiet = true, manifests = manifests.definition(story.folder) },
		folder = story.folder, role = manifests.read(story.folder .. "/manifests/rbac.yaml"), config = {}, made = {}, is_real = false,
	}, World)
end

function World:close()
	self.cluster:close()
end

-- --- the cluster ---

function World:name(word)
	return word
end

function World:namespace(word, labels)
	assert(self.cluster:create { apiVersion = "v1", kind = "Namespace", metadata = { name = word, labels = labels } })
	return word
end

function World:create(object)
	local made = assert(self.cluster:create(object))
	table.insert(self.made, made)
	return made
end

function World:get(reference)
	local object, err = self.cluster:get(reference)
	assert(object or err.reason == "NotFound", err)
	return object
end

function World:list(options)
	return assert(self.cluster:list(options))
end

function World:patch(reference, change)
	return assert(self.cluster:patch(reference, change))
end

function World:patch_status(reference, change)
	return assert(self.cluster.status.patch(reference, change))
end

function World:delete(reference)
	assert(self.cluster:delete(reference))
end

-- --- the host ---

function World:start()
	self.program = self.cluster:load(self.folder, { config = self.config })
	self.runs = true
end

function World:kill()
	self.program:kill()
	self.runs = false
	self.cluster:settle() -- the server sees that the connections have ended
end

--- From some request on the server is as silent as if nobody had asked: all that the server sees of a host that is killed there.
function World:doom()
	local after = math.random(0, self.runs and MOST_RUNNING or MOST_STARTING)
	self.fault = self.cluster:fault { action = "silence", after = after, times = 1e6 }
end

function World:die()
	self.cluster:settle()
	self:kill()
	self.fault:remove()
end

-- --- time ---

function World:await(what, holds)
	local ok, held
	for _ = 1, PATIENCE do
		self.cluster:settle()
		ok, held = pcall(holds)
		if ok and held then
			return
		end
		self.cluster:advance(1)
	end
	error(("%s: not within %d s: %s\nits log:\n%s"):format(what, PATIENCE, tostring(held), table.concat(self:log(), "\n")), 0)
end

function World:pass(seconds)
	self.cluster:advance(seconds)
end

-- --- what came of it ---

function World:requests(filter)
	return self.cluster:requests(filter)
end

function World:writes()
	local count = 0
	for _, verb in ipairs(WRITES) do
		count = count + #self.cluster:requests { verb = verb }
	end
	return count
end

function World:log(level)
	local lines = {}
	for i, line in ipairs(self.cluster:logs { level = level }) do
		lines[i] = require("cjson").encode(line)
	end
	return lines
end

function World:errors()
	return self:log "error"
end

return sandbox
