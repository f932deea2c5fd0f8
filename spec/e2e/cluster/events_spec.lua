-- What handlers are told of another client's writes, judged from their own log: in order, nothing missing, nothing twice; also over a gap in
-- which the API server is killed.
local cluster = require "support.cluster"
local host = require "support.host"
local writer = require "support.writer"

-- One handler that is told each event, and a slow one whose events are merged. The object named "end" ends the log of both.
local script = [[
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, label_selector = "!root" }

	local function log(map, event)
		local meta = map.metadata
		if meta.name == "kube-root-ca.crt" then return end
		if meta.name == "end" then print "end of events" return end
		print("event", event.type, meta.name, meta.uid, meta.resourceVersion,
			event.type == "update" and event.old.metadata.resourceVersion or "-", event.final_state_unknown or "-")
	end
	maps:add_event_handler { add = log, update = log, delete = log, every_event = true }

	local state, calls = {}, 0
	local function merge(map, event)
		local meta = map.metadata
		if meta.name == "end" then
			for name, version in pairs(state) do print("merged", name, version) end
			print("end of merged", calls)
			return
		end
		calls = calls + 1
		state[meta.name] = event.type ~= "delete" and meta.resourceVersion or nil
		k8s.sleep(0.05)
	end
	maps:add_event_handler { add = merge, update = merge, delete = merge }
]]

local function seed()
	local chosen = tonumber(os.getenv "SEED") or os.time() % 1000000 + 1
	print("SEED=" .. chosen)
	return chosen
end

local function parse(line)
	local words = {}
	for word in line:gmatch "[^\t]+" do
		words[#words + 1] = word ~= "-" and word
	end
	if words[1] == "event" then
		return {
			type = words[2], name = words[3], uid = words[4], version = words[5], old = words[6] or nil, unknown = words[7] == "true",
		}
	end
	return nil, words
end

describe("a handler", function()
	local run, where, namespace, write, merged, calls

	local function begin(on)
		where = on
		where.need()
		namespace = where.namespace()
		write = writer.new(where, namespace, { names = 12, seed = seed() })
		merged, calls = {}, nil
		run = host.start { kubeconfig = where.kubeconfig(), script = script, set = { namespace = namespace }, pages = true }
		run:await_page("/readyz", 200)
	end

	after_each(function()
		if run then
			run:stop()
			run = nil
		end
	end)

	local function take(line, events)
		local event, words = parse(line)
		if event then
			events[#events + 1] = event
		elseif words[1] == "merged" then
			merged[words[2]] = words[3]
		else
			calls = words[2]
		end
	end

	-- The next so many events.
	local function next_events(count)
		local events = {}
		while #events < count do
			take(run:line(), events)
		end
		return events
	end

	-- Both logs to their ends.
	local function end_logs()
		where.send { { "POST", write.path, { metadata = { name = "end" } } } }
		local events, ended = {}, false
		while not (ended and calls) do
			local line = run:line()
			if line == "end of events" then
				ended = true
			else
				take(line, events)
			end
		end
		return events
	end

	local function last_part(from)
		return { unpack(write.history, from + 1) }
	end

	-- The slow handler ends at what the server has.
	local function check_merged(all_events)
		local expected = {}
		for _, item in ipairs(select(2, where.curl("GET", write.path)).items) do
			if item.metadata.name ~= "end" then
				expected[item.metadata.name] = item.metadata.resourceVersion
			end
		end
		assert.same(expected, merged)
		assert(tonumber(calls) < all_events, "nothing was merged")
	end

	it("is told each of another client's writes in order with every_event, and their sum without", function()
		begin(cluster)
		write:write(150)
		local events = end_logs()
		writer.expect_exactly(write.history, events)
		writer.check_history(events)
		check_merged(#events)
	end)

	-- What a relist has to tell of the way from one state to another.
	local function expect_gap(before, after)
		local expected = { delete = {}, add = {}, update = {} }
		for name, object in pairs(before) do
			local now = after[name]
			if not now or now.uid ~= object.uid then
				expected.delete[name] = object.uid .. " " .. object.version .. " unknown"
			elseif now.version ~= object.version then
				expected.update[name] = now.uid .. " " .. now.version .. " from " .. object.version
			end
		end
		for name, object in pairs(after) do
			if not before[name] or before[name].uid ~= object.uid then
				expected.add[name] = object.uid .. " " .. object.version
			end
		end
		return expected
	end

	local function as_gap(events)
		local seen = { delete = {}, add = {}, update = {} }
		for _, event in ipairs(events) do
			assert.is_nil(seen[event.type][event.name])
			seen[event.type][event.name] = event.uid .. " " .. event.version .. (event.unknown and " unknown" or "")
				.. (event.old and " from " .. event.old or "")
		end
		return seen
	end

	local function count_changes(changes)
		local count = 0
		for _, kind in pairs(changes) do
			for _ in pairs(kind) do
				count = count + 1
			end
		end
		return count
	end

	local function informer()
		return run:status().informers[1]
	end

	it("is told in the right form what changed while the API server was gone", function()
		local second = cluster.second()
		begin(second)
		write:write(100)
		writer.expect_exactly(write.history, next_events(100))
		local before = write:snapshot()

		-- Held still, so that all that follows is in the gap.
		run.child:kill "STOP"
		second.stop_apiserver "KILL"
		second.start_apiserver()
		local expected
		repeat
			write:write(10)
			expected = expect_gap(before, write.objects)
		until next(expected.delete) and next(expected.add) and next(expected.update)
		second.compact()
		second.stop_apiserver "KILL"
		second.start_apiserver()
		run.child:kill "CONT"
		local events = next_events(count_changes(expected))
		assert.same(expected, as_gap(events))
		assert.same(write.objects, writer.check_history(events, before))
		local added = false
		for _, event in ipairs(events) do
			assert(not (added and event.type == "delete"), "a delete after an add")
			added = added or event.type ~= "delete"
		end

		local written = #write.history
		write:write(100)
		writer.expect_exactly(last_part(written), end_logs())
		check_merged(#write.history)
	end)

	it("loses and repeats nothing when the API server is killed and comes back", function()
		local second = cluster.second()
		begin(second)
		write:write(80)
		local events = next_events(80)
		writer.expect_exactly(write.history, events)
		local watches = informer().watches

		second.stop_apiserver "KILL"
		second.start_apiserver()
		write:write(40)
		cluster.await(30, "another watch", function()
			local now = informer()
			return now.watches > watches and now.state == "streaming"
		end)
		local written = #write.history
		local state = write:snapshot()
		write:write(80)

		local tail = end_logs()
		local gap = {}
		for i = 1, #tail - 80 do
			gap[i] = tail[i]
		end
		-- Nothing is told that was not written, and the way leads to where the writer was.
		local written_versions = {}
		for _, entry in ipairs(write.history) do
			written_versions[entry.version or "-"] = entry.uid
		end
		for _, event in ipairs(gap) do
			assert(event.type == "delete" or written_versions[event.version] == event.uid, event.name .. " " .. event.version)
		end
		assert.same(state, writer.check_history(gap, writer.check_history(events)))
		writer.expect_exactly(last_part(written), { unpack(tail, #gap + 1) })
		check_merged(#write.history)
	end)
end)
