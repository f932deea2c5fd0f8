-- Churn through a wire that has a fault every two seconds: at the end the cache and the handlers hold what the server holds, and
-- nothing has grown.
local cjson = require "cjson"
local churns = require "support.churn"
local cluster = require "support.cluster"
local files = require "support.files"
local host = require "support.host"
local process = require "support.process"
local proxy = require "support.proxy"
local sandbox = require "support.sandbox"
local seed_random = require "support.seed"

local SOAK_SECONDS = 600
local LONGEST = 3 -- times as long where the faults come slowly
local SHORT_SECONDS = 24
local FAULT_SECONDS = 2
local RARE_SECONDS = 130
local SETTLE_SECONDS = 150 -- the longest wait between two attempts is 60 s, and the server may be late too

local SCRIPT = [[
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, field_selector = "metadata.name!=kube-root-ca.crt" }
	local told, wrong, asked = 0, 0, {}

	-- The state of the store, and what each handler has made of the events.
	local held = { every = {}, merged = {} }
	local function answer()
		local store = {}
		for _, map in ipairs(maps:list { fields = { "metadata.name", "metadata.resourceVersion" } }) do
			store[map.metadata.name] = map.metadata.resourceVersion
		end
		print("state", k8s.json.encode { store = store, every = held.every, merged = held.merged, told = told, wrong = wrong })
	end

	local function follow(mine, options)
		local function put(is_known)
			return function(map)
				local name = map.metadata.name
				told = told + 1
				wrong = wrong + ((mine[name] ~= nil) == is_known and 0 or 1)
				mine[name] = map.metadata.resourceVersion
				if name:find "^mark" then
					asked[name] = (asked[name] or 0) + 1
					if asked[name] == 2 then answer() end
				end
			end
		end
		options.add, options.update = put(false), put(true)
		function options.delete(map)
			told = told + 1
			wrong = wrong + (mine[map.metadata.name] and 0 or 1)
			mine[map.metadata.name] = nil
		end
		options.fields = { "metadata.name", "metadata.resourceVersion" }
		maps:add_event_handler(options)
	end
	follow(held.every, { every_event = true })
	follow(held.merged, {})

	k8s.every(2, function()
		collectgarbage()
		collectgarbage()
		print("memory", collectgarbage "count")
	end)
	k8s.on_synced(function()
		assert(k8s.get { apiVersion = "v1", kind = "Namespace", name = k8s.config.namespace }) -- a connection for calls, too
		print("synced", maps:count())
	end)
]]

-- One at a time, each undone before the next.
local faults = {
	{ "cut", function(wire) wire:cut() end },
	{ "cut at a byte", function(wire) wire:cut { after = math.random(50000) } end },
	{ "reset", function(wire) wire:reset() end },
	{ "reset at a byte", function(wire) wire:reset { after = math.random(50000), direction = "down" } end },
	{ "silence", function(wire) wire:silence() end, function(wire) wire:reset() end },
	{ "one direction lost", function(wire) wire:silence { direction = "up" } end, function(wire) wire:cut() end },
	{ "slow", function(wire) wire:slow { rate = 20000 } end, function(wire) wire:heal() end },
}

-- These make an attempt fail, and each failure within two minutes of the last makes the wait before the next attempt longer.
local rare = {
	{ "refused", function(wire) wire:refuse() wire:reset() end, function(wire) wire:accept() end },
	{ "cut of the next at a byte", function(wire) wire:cut { scope = "next", after = math.random(6000) } wire:cut() end },
}

-- Gives them out in a random order, each once before any comes again.
local function bag_of(all)
	local left = {}
	return function()
		if #left == 0 then
			left = { unpack(all) }
		end
		return unpack(table.remove(left, math.random(#left)))
	end
end

-- A fault lasts two seconds, and the next one waits until something has come through again: one that strikes nothing is none.
local function fault_source(wire, start)
	local next_at, next_rare_at, undo, source = start, start + 10, nil, { struck = {}, count = 0 }
	local draw, draw_rare = bag_of(faults), bag_of(rare)
	local healthy_at = 0 -- bytes that had come down when the last fault was undone
	function source.stop()
		if undo then
			undo(wire)
		end
		wire:heal { scope = "all" }
		undo = nil
	end
	local function strike(now)
		local from = draw
		if now >= next_rare_at then
			from, next_rare_at = draw_rare, now + RARE_SECONDS
		end
		local name, fault, after = from()
		source.count = source.count + 1
		fault(wire)
		next_at, healthy_at, undo, source.struck[name] = now + FAULT_SECONDS, nil, after, (source.struck[name] or 0) + 1
	end
	function source.go_on(now)
		if now < next_at then
			return
		end
		local down = wire:counts().down
		if not healthy_at then
			source.stop()
			healthy_at = down
		elseif down > healthy_at then
			strike(now)
		end
	end
	return source
end

local function anonymous_memory(pid)
	return tonumber(files.read("/proc/" .. pid .. "/status"):match "RssAnon:%s*(%d+)")
end

local function open_files(pid)
	return select(2, files.output_of({ "ls", "/proc/" .. pid .. "/fd" }):gsub("\n", ""))
end

-- The mean of the last third of the values against that of the middle one.
local function growth(values)
	local third = math.floor(#values / 3)
	local function mean(first)
		local sum = 0
		for i = first, first + third - 1 do
			sum = sum + values[i]
		end
		return sum / third
	end
	return mean(#values - third + 1) / mean(third + 1) - 1
end

local function memory_lines(text)
	local values = {}
	for value in text:gmatch "memory\t([%d.]+)\n" do
		values[#values + 1] = tonumber(value)
	end
	return values
end

-- nil, or what differs.
local function difference(truth, held)
	local wrong = {}
	for name, version in pairs(truth) do
		wrong[#wrong + 1] = held[name] ~= version and ("%s is %s, not %s"):format(name, held[name], version) or nil
	end
	for name, version in pairs(held) do
		wrong[#wrong + 1] = not truth[name] and ("%s %s is not there"):format(name, version) or nil
	end
	return #wrong > 0 and ("%d differ: %s"):format(#wrong, table.concat(wrong, "; ", 1, math.min(#wrong, 10))) or nil
end

-- Asks the host, by an object that it is to hear of, until it holds what the server holds; what it says then.
local function settle(churn, run, seed)
	local deadline, asked, wrong = process.now() + SETTLE_SECONDS, 0, nil
	local state
	repeat
		assert(process.now() < deadline, ("%s, %s"):format(wrong, seed))
		asked = asked + 1
		churn:mark("mark-" .. asked)
		local truth
		state, truth = cjson.decode((run.child:wait_for("state\t(%b{})\n", SETTLE_SECONDS))), churn:truth()
		wrong = nil
		for _, held in ipairs { "store", "every", "merged" } do
			local found = difference(truth, state[held])
			wrong = wrong or found and held .. ": " .. found
		end
	until not wrong
	return state
end

-- options: seconds, objects, rate, each_minute (called now and then).
local function run_churn(server, options)
	local seed = seed_random()
	local wire, churn = proxy.start(server.url), churns.new(server, options.objects, options.rate)
	churn:fill()
	local run = host.start { kubeconfig = server.kubeconfig(wire), set = { namespace = server.namespace }, script = SCRIPT }
	run.child:wait_for("synced\t(%d+)", 60)
	local pid, files_before = run.child.pid, open_files(run.child.pid)
	local start, filled = process.now(), churn.done
	local source, memory, sampled_at = fault_source(wire, start), {}, 0
	local now = start
	local function is_over()
		local enough = source.count > #faults + #rare -- each kind has had its turn
		return now >= start + options.seconds * (enough and 1 or LONGEST)
	end
	while not is_over() do
		churn:go_on(now)
		source.go_on(now)
		if now >= sampled_at + 2 then
			memory[#memory + 1], sampled_at = anonymous_memory(pid), now
		end
		if options.on_turn then
			options.on_turn(now - start)
		end
		run.child:pump(0.05)
		now = process.now()
	end
	churn:finish_batch(120)
	local rate = (churn.done - filled) / (process.now() - start)
	source.stop()
	local state = settle(churn, run, seed)
	assert.equal(0, state.wrong, "events that do not follow from those before, " .. seed)
	cluster.await(60, "as many open files as before", function()
		return open_files(pid) == files_before
	end)
	local counts = wire:counts()
	local script_memory = memory_lines(run.child:stdout())
	local report = {
		rate = rate, told = state.told, failed = churn.failed, struck = source.struck, fired = counts.fired, connections = counts.connections,
		memory = growth(memory), memory_kb = memory[#memory], script_memory = growth(script_memory),
		script_memory_kb = script_memory[#script_memory], files = files_before,
	}
	run:stop()
	wire:close()
	return report, seed
end

-- A connection and a fault of most kinds every few seconds.
local function expect_struck(report, seed, seconds)
	local least = seconds / FAULT_SECONDS / #faults / 3
	for _, kind in ipairs { "cut", "reset", "silence", "slow" } do
		assert(report.fired[kind] > least, ("too few %s, %s, %s"):format(kind, cjson.encode(report), seed))
	end
end

local function expect_flat(report, seed)
	assert(math.abs(report.memory) <= 0.03 and math.abs(report.script_memory) <= 0.03, cjson.encode(report) .. ", " .. seed)
end

describe("churn", function()
	local it = cluster.when_up(it)

	it("with faults on the wire leaves cache and handlers as the server is", function()
		local report, seed = run_churn(churns.real_server(cluster), { seconds = SHORT_SECONDS, objects = 500, rate = 100 })
		expect_struck(report, seed, SHORT_SECONDS)
	end)
end)

describe("ten minutes of churn #soak", function()
	local second = cluster.second()
	local it = second.when_up(it)

	it("with faults on the wire and restarts of the API server leave cache and handlers as the server is, and nothing grows", function()
		local restarts = 0
		local report, seed = run_churn(churns.real_server(second), {
			seconds = SOAK_SECONDS, objects = 5000, rate = 1000,
			on_turn = function(seconds)
				if seconds > (restarts + 1) * SOAK_SECONDS / 4 then
					restarts = restarts + 1
					second.stop_apiserver(restarts % 2 == 0 and "KILL" or "TERM")
					second.start_apiserver()
				end
			end,
		})
		print(cjson.encode(report))
		expect_struck(report, seed, SOAK_SECONDS)
		expect_flat(report, seed)
	end)
end)

describe("ten minutes of churn of 1,000 changes a second #soak", function()
	it("with faults on the wire leave cache and handlers as the sandbox is, and nothing grows", function()
		local server = sandbox.start()
		local report, seed = run_churn(churns.sandbox_server(server), { seconds = SOAK_SECONDS, objects = 5000, rate = 1000 })
		print(cjson.encode(report))
		assert(report.rate > 900, "the writer was too slow: " .. cjson.encode(report))
		expect_struck(report, seed, SOAK_SECONDS)
		expect_flat(report, seed)
		server:stop()
	end)
end)
