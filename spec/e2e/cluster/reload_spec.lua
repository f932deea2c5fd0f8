-- Many reloads in a row, of good code and of broken code, while the objects change: nothing is listed again, each generation's handlers
-- know the store's content at their end, no key is in two reconciles, what waits and what has failed goes on, the loop is free, and
-- nothing grows.
local cjson = require "cjson"
local churns = require "support.churn"
local cluster = require "support.cluster"
local files = require "support.files"
local host = require "support.host"
local process = require "support.process"
local seed_random = require "support.seed"

local EVEN_OUT = 60 -- seconds of changes, until about as many objects come as go
local SETTLE_SECONDS = 40 -- what runs in old code may end within 30 s
local GAP = 0.055         -- of ticks that are 5 ms apart, when no call holds the loop for more than 50 ms
local BASE = 0.25         -- the first delay of the key that fails, in seconds
local LATER = 2           -- seconds after which the key "later" comes back
local SLACK = 3           -- seconds that a key may be late: it waits for its turn behind others

-- One generation. GENERATION, OPTIONS, NAME and MORE are filled in.
local APP = [[
	local generation = "GENERATION"
	local maps = k8s.informer {
		apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, field_selector = "metadata.name!=kube-root-ca.crt",
		index = { count = "data.count", digit = function(map) return map.metadata.name:sub(-1) end },
	}

	-- What a handler was told against the store, when the last of it has been told. What the store knows better must be news from
	-- after that, which for an object that is gone somebody else has to say.
	local followed = {}
	local function follow(what, options)
		local mine = { what = what, held = {}, last = 0, wrong = 0, told = 0 }
		local function note(map, is_known)
			local name = map.metadata.name
			mine.told = mine.told + 1
			mine.last = math.max(mine.last, tonumber(map.metadata.resourceVersion))
			if (mine.held[name] ~= nil) ~= is_known then mine.wrong = mine.wrong + 1 end
			mine.held[name] = map.metadata.resourceVersion
		end
		function options.add(map) note(map, false) end
		function options.update(map) note(map, true) end
		function options.delete(map)
			note(map, true)
			mine.held[map.metadata.name] = nil
		end
		options.fields = { "metadata.name", "metadata.resourceVersion" }
		maps:add_event_handler(options)
		followed[#followed + 1] = mine
	end
	follow("every", { every_event = true })
	follow("merged", {})

	local function compare(mine)
		local known, gone, done = 0, {}, 0
		local function look(name)
			done = done + 1
			if done % 50 == 0 then k8s.sleep(0) end
			local map = maps:get(k8s.config.namespace, name)
			local version = map and map.metadata.resourceVersion
			if not map then
				gone[#gone + 1] = name
			elseif version ~= mine.held[name] and tonumber(version) <= mine.last then
				known = known + 1
			end
		end
		for name in pairs(mine.held) do look(name) end
		for _, key in ipairs(maps:keys()) do
			local name = key:match "/(.*)"
			if not mine.held[name] then look(name) end
		end
		print("end", k8s.json.encode { generation = generation, what = mine.what, wrong = mine.wrong, told = mine.told, known = known,
			gone = k8s.array(gone), last = mine.last })
	end
	k8s.on_shutdown(function()
		for _, mine in ipairs(followed) do compare(mine) end
	end)

	local function reconcile(controller, request, context)
		if request.name:find "[37]3$" then
			print("begin", controller, request.name, generation)
			k8s.sleep(0.2)
			print("finish", controller, request.name, generation)
		elseif request.name == "bad" then
			print("bad", k8s.now(), context.attempt)
			error "always"
		elseif request.name == "later" then
			print("later", k8s.now())
			return { requeue_after = LATER }
		end
	end

	local function controller(name, options)
		options.name, options.watch, options.rate_limit = name, maps, { base = BASE }
		function options.reconcile(request, context) return reconcile(name, request, context) end
		return k8s.controller(options)
	end
	local steady = controller("steady", { OPTIONS })
	controller("NAME", { workers = 2 })
	k8s.on_synced(function()
		if k8s.state.begun then return end
		k8s.state.begun = true
		steady:enqueue { namespace = k8s.config.namespace, name = "bad" }
		steady:enqueue { namespace = k8s.config.namespace, name = "later" }
	end)
	-- Often, as garbage that waits makes the table of all strings grow, now and then.
	k8s.every(0.5, function()
		collectgarbage()
		collectgarbage()
	end)
	MORE
]]

-- The time between two ticks tells how long the loop was held; of wall clock and processor the smaller, since others run here too.
local PROBE = [[
	local state = k8s.state
	k8s.every(0.005, function()
		local now, cpu = k8s.now(), os.clock()
		local gap = state.now and math.min(now - state.now, cpu - state.cpu) or 0
		if gap > (state.gap or 0) then
			state.gap = gap
			print("gap", gap)
		end
		state.now, state.cpu = now, cpu
	end)
]]

-- Another host, which tells when what went.
local OBSERVER = [[
	k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, field_selector = "metadata.name!=kube-root-ca.crt" }
		:add_event_handler { every_event = true, fields = { "metadata.name", "metadata.resourceVersion" }, delete = function(map)
			print("gone", map.metadata.name, map.metadata.resourceVersion)
		end }
	k8s.on_synced(function() print "synced" end)
]]

local function app(generation, change)
	local text = APP:gsub("%u%u%u%u+", {
		GENERATION = tostring(generation), OPTIONS = change.options or "workers = 3", NAME = change.name or "named",
		MORE = change.more or "", LATER = tostring(LATER), BASE = tostring(BASE),
	})
	return 'local k8s = require "perilune" ' .. text
end

-- What one reload changes, in the order in which they come, again and again.
local CHANGES = {
	{ name = "renamed" },
	{ more = "local = 1", fails = true },
	{ more = "error 'at top level'", fails = true },
	{ more = [[k8s.informer { apiVersion = "v1", kind = "Secret", namespace = k8s.config.namespace }]], secrets = 1 },
	{},
	{ options = "workers = 5, timeout = 30" },
	{},
	{},
}

local function anonymous_memory(pid)
	return tonumber(files.read("/proc/" .. pid .. "/status"):match "RssAnon:%s*(%d+)")
end

-- options: objects at the start; names (as many where it is nil), of which five in six are there in the long run; rate, changes a
-- second; settle, seconds of them before the first reload; reloads, and the pause after each in seconds; measured, from
-- the fifth on and up to the last: after how many of them memory is looked at.
local Play = {}
Play.__index = Play

local function start(server, options)
	local play = setmetatable({ churn = churns.new(server, options.objects, options.rate), server = server, generation = 1, secrets = 0 }, Play)
	play.churn:fill()
	play.churn.objects = options.names or options.objects
	local config, set = server.cluster.kubeconfig(), { namespace = server.namespace }
	play.observer = host.start { kubeconfig = config, set = set, script = OBSERVER, flags = { "--log-format", "json" } }
	play.observer.child:wait_for("synced\n", 60)
	play.run = host.start {
		kubeconfig = config, set = set, pages = true, flags = { "--log-format", "json", "--log-level", "info" },
		scripts = { app = app(1, {}):gsub('^local k8s = require "perilune" ', ""), probe = PROBE },
	}
	play.run:await_page("/readyz", 200, 60)
	return play
end

-- Lets the changes go on for so many seconds, or until that is true.
function Play:go_on(seconds, is_so)
	local deadline = process.now() + seconds
	while process.now() < deadline do
		self.churn:go_on(process.now())
		self.run.child:pump(0.05)
		self.observer.child:pump(0)
		if is_so and is_so() then
			return true
		end
	end
	return not is_so
end

-- The outcomes of the reloads of the script "app" that the log has told of.
function Play:outcomes()
	local list = {}
	for line in self.run.child:stderr():gmatch "[^\n]+" do
		if line:find('"script":"app"', 1, true) and (line:find('"reloaded"', 1, true) or line:find("reload failed", 1, true)) then
			list[#list + 1] = line
		end
	end
	return list
end

function Play:reload(change)
	local before = #self:outcomes()
	self.generation = self.generation + 1
	files.write(self.run.folder .. "/app.lua", app(self.generation, change))
	self.run.child:kill "HUP"
	local came = self:go_on(30, function()
		return #self:outcomes() > before
	end)
	if not came then
		self.run.child:fail("a reload has no outcome", 2)
	end
	local outcome = self:outcomes()[before + 1]
	assert.equal(change.fails or false, outcome:find("reload failed", 1, true) ~= nil, outcome)
	self.secrets = self.secrets + (change.secrets or 0)
end

local function script_status(status, name)
	for _, script in ipairs(status.scripts) do
		if script.script == name then
			return script
		end
	end
end

function Play:pause()
	if self.churn.batch then
		self.churn:finish_batch(60)
	end
end

-- kB of the process, bytes of the script: the least of two seconds, and of what was noted before. What a generation has not yet
-- collected comes and goes.
function Play:note_memory(least)
	for _ = 1, 8 do
		self:go_on(0.25)
		least.anonymous = math.min(least.anonymous, anonymous_memory(self.run.child.pid))
		least.script = math.min(least.script, script_status(self.run:status(), "app").memoryBytes)
	end
end

-- --- the verdict ---

local function lines_of(text, what)
	local list = {}
	for line in text:gmatch "[^\n]+" do
		local name, rest = line:match "^(%S+)\t(.*)$"
		if name == what then
			list[#list + 1] = rest
		end
	end
	return list
end

-- No key is in two reconciles of a controller, whichever generations they are of. How many there were.
local function check_keys(text)
	local running, count = {}, 0
	for line in text:gmatch "[^\n]+" do
		local what, controller, name, generation = line:match "^(%l+)\t(%S+)\t(%S+)\t(%S+)$"
		local key = what and controller .. " " .. name
		if what == "begin" then
			assert(not running[key], ("%s runs in generation %s and begins in %s"):format(key, tostring(running[key]), generation))
			running[key], count = generation, count + 1
		elseif what == "finish" then
			assert.equal(generation, running[key])
			running[key] = nil
		end
	end
	return count
end

-- Failures count on, each with twice the delay of the one before.
local function check_failures(text)
	local before
	local list = lines_of(text, "bad")
	for i, line in ipairs(list) do
		local at, attempt = line:match "(%S+)\t(%S+)"
		assert.equal(i, tonumber(attempt))
		local waited, delay = before and at - before, BASE * 2 ^ (i - 2)
		assert(not waited or (waited > delay - 0.05 and waited < delay + SLACK), ("try %d came after %s s"):format(i, tostring(waited)))
		before = at
	end
	return #list
end

local function check_later(text)
	local before
	local list = lines_of(text, "later")
	for i, at in ipairs(list) do
		local waited = before and at - before
		assert(not waited or (waited > LATER - 0.05 and waited < LATER + SLACK), ("time %d came after %s s"):format(i, tostring(waited)))
		before = at
	end
	return #list
end

-- What each handler knew at its end.
local function check_ends(text, observed, handlers)
	local went = {}
	for _, line in ipairs(lines_of(observed, "gone")) do
		local name, version = line:match "(%S+)\t(%S+)"
		went[name] = math.max(went[name] or 0, tonumber(version))
	end
	local list = lines_of(text, "end")
	for _, line in ipairs(list) do
		local one = cjson.decode(line)
		assert(one.wrong == 0 and one.known == 0, "a handler that was not told the truth: " .. line:sub(1, 400))
		for _, name in ipairs(one.gone) do
			assert((went[name] or 0) > one.last, name .. " went before the end of a handler that was not told: " .. line:sub(1, 400))
		end
	end
	assert.equal(handlers, #list)
end

-- One watch for each informer, streamed from its first object on: it is not begun anew for what stays.
local function count_reads(server, resource)
	local count = 0
	for _, entry in ipairs(server.cluster.audit(server.namespace)) do
		if entry.resource == resource and entry.stage == "ResponseStarted" and entry.agent:find "^perilune/" then
			count = count + 1
		end
	end
	return count
end

local function play_reloads(server, options)
	local seed = seed_random()
	local play = start(server, options)
	local reads = count_reads(server, "configmaps")
	local first, last = { anonymous = math.huge, script = math.huge }, { anonymous = math.huge, script = math.huge }
	local good = 0
	play:go_on(options.settle or 0)
	for i = 1, options.reloads do
		local change = CHANGES[(i - 1) % #CHANGES + 1]
		play:reload(change)
		good = good + (change.fails and 0 or 1)
		play:go_on(options.pause)
		if options.measured and i >= 5 and i < 5 + options.measured then
			play:note_memory(first)
		elseif options.measured and i > options.reloads - options.measured then
			play:note_memory(last)
		end
	end
	play:pause()
	-- The observer has heard of all when it knows of this one.
	play.churn:mark "bystander"
	play.churn:curl("--fail", "--request", "DELETE", server.url .. play.churn.path .. "/bystander")
	play.observer.child:await(SETTLE_SECONDS, "the observer is late", function()
		return play.observer.child:stdout():find("gone\tbystander", 1, true)
	end)
	assert.equal(reads, count_reads(server, "configmaps"), "configmaps were asked for again, " .. seed)
	assert.equal(play.secrets, count_reads(server, "secrets"))
	play.run:stop(SETTLE_SECONDS)
	play.observer:stop()
	local text = play.run.child:stdout()
	check_ends(text, play.observer.child:stdout(), (good + 1) * 2)
	local gaps = lines_of(text, "gap")
	return {
		keys = check_keys(text), tries = check_failures(text), times = check_later(text), gap = tonumber(gaps[#gaps]),
		first = options.measured and first, last = options.measured and last, changes = play.churn.done, failed = play.churn.failed,
	}, seed
end

local function grew(report, what)
	return report.last[what] / report.first[what] - 1
end

describe("reloads", function()
	local second = cluster.second()
	local it = second.when_up(it)

	it("under changes ask for nothing again, and lose no event and no key", function()
		local report, seed = play_reloads(churns.real_server(second), { objects = 300, rate = 60, reloads = 8, pause = 0.5 })
		assert(report.keys >= 12 and report.tries >= 4 and report.times >= 2, cjson.encode(report) .. ", " .. seed)
	end)

	it("by the dozen of 5,000 objects under 200 changes a second also hold the loop for less than 50 ms, and nothing grows #soak", function()
		local report, seed = play_reloads(churns.real_server(second), {
			objects = 5000, names = 6000, rate = 200, settle = EVEN_OUT, reloads = 50, pause = 1.5, measured = 5,
		})
		local text = cjson.encode(report) .. ", " .. seed
		print(text)
		assert(report.gap <= GAP, "the loop was held: " .. text)
		assert(grew(report, "anonymous") <= 0.03 and grew(report, "script") <= 0.03, text)
	end)
end)
