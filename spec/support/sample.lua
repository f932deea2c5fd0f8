--- A sample's story, told in the sandbox and on a real API server, and again while the sample's host is killed at random points.
--
--   sample.tell(it, {
--       folder = "examples/mirror",
--       config = { … },                                  k8s.config, on both
--       error = "not a selector",                        what may be logged as an error: a text that is in it
--       setup = function(world) world.config.url = … end,     before the host starts
--       steps = {
--           { "a source is copied",
--             act = function(world) world:create { … } end,
--             holds = function(world) return world:get(reference) ~= nil end },   in the end; it may raise, as assert.same does
--       },
--   })
--
-- Told without kills, nothing else may be logged as an error; in the sandbox the role in manifests/rbac.yaml is what was needed, no more
-- and no less, and the log says what the sample did. Always: when all steps hold the sample writes nothing any more; then what the story
-- made and did not delete is deleted, goes, and again nothing is written.
--
-- The world is a cluster and a host in it, either of spec/support/sample/; a word such as "shop" stands for a name of its own in each:
--   world:namespace("shop", labels)          makes one; its name, which world:name "shop" gives as well
--   world:create(object)  world:get(reference)  world:list { apiVersion =, kind =, namespace =, label_selector = }
--   world:patch(reference, change)  world:patch_status(reference, change)  world:delete(reference)
--                                            as an admin; get gives nil where there is none, all else must work
--   world:await(what, holds)                 with a deadline; time passes in the sandbox
--   world:pass(seconds)                      lets so much time pass
--   world:start()  world:kill()              the host
--   world:writes()                           how many requests that write have come to the server: compare two
--   world.config                             k8s.config of the next start
--   world.is_real                            whether it has kube-controller-manager's garbage collector, and a clock that can't be moved
local role = require "support.sample.role"
local seed = require "support.seed"

local sample = {}

-- quiet: seconds in which a controller that fights with itself, or with somebody else, would show.
local SUITE = { kills = 2, quiet = 2 }
local SOAK = { kills = 20, quiet = 20 }

local function coin()
	return math.random() < 0.5
end

-- How many of the kills each step gets.
local function spread(steps, kills)
	local plan = {}
	for i = 1, steps do
		plan[i] = 0
	end
	for _ = 1, kills do
		local i = math.random(steps)
		plan[i] = plan[i] + 1
	end
	return plan
end

-- The first of the kills is either before the step, which so happens while no host is there, or in the midst of the work that follows.
local function act(world, step, kills)
	local absent = kills > 0 and coin()
	if absent then
		world:kill()
	end
	if kills > 0 then
		world:doom()
	end
	step.act(world)
	for i = 1, kills do
		if i > 1 then
			world:doom()
		end
		if absent or i > 1 then
			world:start()
		end
		world:die()
	end
	if kills > 0 then
		world:start()
	end
end

-- What holds may do so before the last of the work is done: so first there is to be one second without a write.
local function check_quiet(world, seconds)
	local before
	local function is_quiet()
		local last = before
		before = world:writes()
		return last == before
	end
	world:await("the end of all writes", function()
		return is_quiet() or world:pass(1)
	end)
	world:pass(seconds)
	assert(is_quiet(), ("writes went on although all was right, within %d s"):format(seconds))
end

-- A finalizer that nobody takes away would keep it.
local function delete_all(world)
	for i = #world.made, 1, -1 do
		local object = world.made[i]
		local function is_gone()
			local found = world:get(object)
			return not found or found.metadata.uid ~= object.metadata.uid
		end
		if not is_gone() then
			world:delete(object)
		end
		world:await(("the end of %s %s"):format(object.kind, object.metadata.name), is_gone)
	end
end

local function tell(world, story, times)
	for key, value in pairs(story.config or {}) do
		world.config[key] = value
	end
	if story.setup then
		story.setup(world)
	end
	world:start()
	local plan = spread(#story.steps, times.kills)
	for i, step in ipairs(story.steps) do
		act(world, step, plan[i])
		world:await(step[1], function()
			return step.holds(world)
		end)
	end
	check_quiet(world, times.quiet)
	delete_all(world)
	check_quiet(world, times.quiet)
end

local function told(story, open, times, check)
	return function()
		local said = seed()
		local world = open(story)
		local ok, why = pcall(tell, world, story, times)
		if ok and times.kills == 0 then
			ok, why = pcall(check, world, story)
		end
		world:close()
		assert(ok, ok or said .. ": " .. tostring(why))
	end
end

local function check_errors(world, story)
	for _, line in ipairs(world:errors()) do
		assert(story.error and line:find(story.error, 1, true), "it logged an error: " .. line)
	end
end

-- Whoever tries it sees in its log that something is done.
local function check_shown(world)
	for _, line in ipairs(world:log "info") do
		if line:find('"controller":"', 1, true) then
			return
		end
	end
	error("it logged nothing of what it did", 0)
end

local function check_all(world, story)
	check_errors(world, story)
	check_shown(world)
	role.check(world.role, world:requests())
end

function sample.tell(it, story)
	local sandbox = require("support.sample.sandbox").open
	local server = require("support.sample.server").open
	local once = { kills = 0, quiet = 20 }
	it("does its work in the sandbox, with just the rights that it has", told(story, sandbox, once, check_all))
	it("does its work on an API server", told(story, server, { kills = 0, quiet = SUITE.quiet }, check_errors))
	it("does it in the sandbox though its host is killed", told(story, sandbox, SUITE))
	it("does it on an API server though its host is killed", told(story, server, SUITE))
	it("does it in the sandbox though its host is killed again and again #soak", told(story, sandbox, SOAK))
	it("does it on an API server though its host is killed again and again #soak", told(story, server, SOAK))
end

return sample
