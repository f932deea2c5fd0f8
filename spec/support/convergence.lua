--- convergence: stories of spec/testing/convergence, played on a testing cluster and judged.
--
--   convergence.check(seed)       plays the story; raises with its seed, its parts, the faults that fired, and what differed;
--                                 where the environment asks for this seed alone, also with fewer steps that fail too
--   convergence.fired             how often each fault has fired in all stories so far: "watch expire" to count
--
-- When the story is over, what was ordered and has not fired is taken back. Then each cache, and what each handler was told,
-- must come to be what the server has, within TIME_TO_HEAL of the cluster's time; and bookmarks must take each informer's
-- resourceVersion to the server's.
local k8s = require "perilune"
local schedule = require "testing.convergence.schedule"
local testing = require "perilune.testing"

local convergence = { fired = {} }

-- Where a failing story is made smaller, so many plays are tried.
local MOST_SHRINKING = 80

local SCRIPT = "spec/testing/convergence"
local LOOK_SECONDS = 21 -- the script looks for a question as often
local LEAST_FIRED = 3
local TIME_TO_HEAL = 1500 -- seconds: a silent stream lasts until its time is over, 610 at most, and may be followed by a wait
local STREAM_SECONDS = 611 -- no stream is open for longer

local function account(name, annotations)
	return {
		apiVersion = "v1", kind = "ServiceAccount", metadata = { namespace = "stage", name = name, annotations = annotations },
	}
end

local Play = {}
Play.__index = Play

-- --- steps ---

local STEPS = {}

function STEPS.create(cluster, object)
	assert(cluster:create(object))
end

function STEPS.delete(cluster, object)
	assert(cluster:delete(object))
end

function STEPS.update(cluster, object)
	local now = assert(cluster:get(object))
	now.metadata.labels, now.metadata.annotations = object.metadata.labels, object.metadata.annotations
	now.data, now.spec = object.data, object.spec or now.spec
	assert(cluster:update(now))
end

function STEPS.recreate(cluster, object)
	STEPS.delete(cluster, object)
	STEPS.create(cluster, object)
end

function STEPS.restart(cluster)
	cluster:restart()
end

function STEPS.compact(cluster)
	cluster:compact()
end

-- What one step left out may make a later one impossible, when a story is made smaller.
local function is_possible(cluster, step)
	if not step.object then
		return true
	end
	return (step.verb == "create") == (cluster:get(step.object) == nil)
end

function Play:order(order)
	table.insert(self.faults, { order = order, fault = self.cluster:fault(order) })
end

function Play:step(step)
	if step.verb == "fault" then
		self:order(step.order)
	elseif is_possible(self.cluster, step) then
		STEPS[step.verb](self.cluster, step.object)
	end
end

function Play:go_to(at)
	if at > self.now then
		self.cluster:advance(at - self.now)
		self.now = at
	end
end

-- --- faults ---

function Play:fired()
	local sum = 0
	for _, one in ipairs(self.faults) do
		sum = sum + one.fault.fired
	end
	return sum
end

-- A watch is begun again when its time is over, and there it can be refused.
function Play:have_enough_faults()
	local tries = 0
	while self:fired() < LEAST_FIRED do
		tries = tries + 1
		assert(tries <= 10, "faults do not fire")
		self:order { verb = "watch", resource = self.story.informers[1].resource, action = "status", code = 503 }
		self:go_to(self.now + STREAM_SECONDS)
	end
end

function Play:heal()
	for _, one in ipairs(self.faults) do
		one.fault:remove()
	end
end

-- --- the verdict ---

-- The script's verdict on how things are now; nil while it has none.
function Play:ask()
	local cluster = self.cluster
	self.round = self.round + 1
	local round = tostring(self.round)
	assert(cluster:apply(account("question", { round = round })))
	self:go_to(self.now + LOOK_SECONDS)
	local verdict = cluster:get(account "verdict")
	local found = verdict and verdict.metadata.annotations
	if found and found.round == round then
		found.resource_version = tonumber(verdict.metadata.resourceVersion)
		return found
	end
end

-- Waits, at growing intervals, for a verdict that is accepted. The last verdict, and whether it was.
function Play:await(accept)
	local limit, pause, verdict = self.now + TIME_TO_HEAL, 1, nil
	repeat
		verdict = self:ask() or verdict
		if verdict and accept(verdict) then
			return verdict, true
		end
		self:go_to(self.now + pause)
		pause = pause * 2
	until self.now > limit
	return verdict or { problems = "", differences = "the script gives no verdict" }, false
end

local function is_equal(verdict)
	return verdict.differences == "" or verdict.problems ~= ""
end

-- Bookmarks come once a minute. A handler that writes at its resyncs may do so still.
function Play:await_versions(reached)
	return self:await(function(verdict)
		if not is_equal(verdict) then
			return false
		end
		for _, versions in ipairs(k8s.json.decode(verdict.versions)) do
			for _, version in ipairs(versions) do
				if tonumber(version) < reached then
					return false
				end
			end
		end
		return true
	end)
end

function Play:judge()
	local verdict, equal = self:await(is_equal)
	if not equal or verdict.problems ~= "" then
		return verdict.problems .. "\n" .. verdict.differences
	end
	local reached = verdict.resource_version
	local last, moved = self:await_versions(reached)
	if last.problems ~= "" or last.differences ~= "" then
		return "later: " .. last.problems .. "\n" .. last.differences
	elseif not moved then
		return ("bookmarks do not take the informers to resourceVersion %d: %s"):format(reached, last.versions)
	end
end

-- --- a story ---

local function setting(cluster)
	for _, name in ipairs { "stage", unpack(schedule.namespaces) } do
		assert(cluster:create { apiVersion = "v1", kind = "Namespace", metadata = { name = name } })
	end
end

function Play:perform(steps)
	setting(self.cluster)
	if self.story.server then
		self.cluster:fault(self.story.server)
	end
	local loaded = false
	for _, step in ipairs(steps) do
		if step.at > 0 and not loaded then
			self.cluster:load(SCRIPT, { config = { seed = self.story.seed } })
			loaded = true
		end
		self:go_to(step.at)
		self:step(step)
	end
	if not loaded then
		self.cluster:load(SCRIPT, { config = { seed = self.story.seed } })
	end
	self:go_to(self.story.seconds)
end

-- Plays these of the story's steps: nil, or what went wrong; and the play.
local function play(story, steps, least)
	local self = setmetatable({ story = story, cluster = testing.cluster { quiet = true }, faults = {}, now = 0, round = 0 }, Play)
	local worked, problem = pcall(function()
		self:perform(steps)
		if least then
			self:have_enough_faults()
		end
		self:heal()
		return self:judge()
	end)
	if not worked then
		problem = "the play broke off: " .. tostring(problem)
	end
	self.counts = {}
	for i, one in ipairs(self.faults) do
		self.counts[i] = { order = one.order, fired = one.fault.fired }
	end
	self.cluster:close()
	return problem, self
end

-- --- a smaller one that fails too ---

local function without(steps, from, count)
	local left = {}
	for i, step in ipairs(steps) do
		if i < from or i >= from + count then
			left[#left + 1] = step
		end
	end
	return left
end

local function shrink(story)
	local steps, runs = story.steps, 0
	local size = math.ceil(#steps / 2)
	while size >= 1 and runs < MOST_SHRINKING do
		local from = 1
		while from <= #steps and runs < MOST_SHRINKING do
			local fewer = without(steps, from, size)
			runs = runs + 1
			if play(story, fewer) then
				steps = fewer
			else
				from = from + size
			end
		end
		size = size == 1 and 0 or math.ceil(size / 2)
	end
	return steps
end

-- --- the report ---

local function fault_name(order)
	return ("%s %s%s"):format(order.verb, order.action, order.code and " " .. order.code or "")
end

local function count_fired(counts)
	for _, one in ipairs(counts) do
		local name = fault_name(one.order)
		convergence.fired[name] = (convergence.fired[name] or 0) + one.fired
	end
end

local function report(story, problem, counts)
	local lines = { problem, "", schedule.text(story), "", "fired:" }
	for _, one in ipairs(counts) do
		lines[#lines + 1] = ("  %s: %d"):format(fault_name(one.order), one.fired)
	end
	if os.getenv "CONVERGENCE" == tostring(story.seed) then
		local smaller = { seed = story.seed, server = story.server, informers = {}, handlers = {}, steps = shrink(story) }
		lines[#lines + 1] = "\nof these steps it is enough to play:\n" .. schedule.text(smaller)
	end
	lines[#lines + 1] = ("\nto play it alone: CONVERGENCE=%d scripts/test spec/testing/convergence_spec.lua"):format(story.seed)
	return table.concat(lines, "\n")
end

function convergence.check(seed)
	local story = schedule.new(seed)
	local problem, done = play(story, story.steps, LEAST_FIRED)
	count_fired(done.counts)
	if problem then
		error(report(story, problem, done.counts), 0)
	end
end

--- The seeds that the environment asks for in place of first to last: CONVERGENCE=17 or CONVERGENCE=17-90.
function convergence.range(first, last)
	local asked = os.getenv "CONVERGENCE"
	if not asked then
		return first, last
	end
	local from, to = asked:match "^(%d+)%-?(%d*)$"
	assert(from, "CONVERGENCE is a seed, or two with a - between them")
	return tonumber(from), tonumber(to ~= "" and to or from)
end

--- The table of what has fired, as lines.
function convergence.histogram()
	local names, lines = {}, {}
	for name in pairs(convergence.fired) do
		names[#names + 1] = name
	end
	table.sort(names)
	for i, name in ipairs(names) do
		lines[i] = ("%8d  %s"):format(convergence.fired[name], name)
	end
	return table.concat(lines, "\n")
end

return convergence
