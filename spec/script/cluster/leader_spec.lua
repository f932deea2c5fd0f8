-- Handovers between two hosts, judged by what the API server's audit log says of their writes.
local cluster = require "support.cluster"
local host = require "support.host"

local second = cluster.second()
local it = second.when_up(it)

local DURATION, DEADLINE = 3, 2 -- of the lease, in seconds

-- Many writes under way at any time, so that a host is stopped in the middle of some.
local SCRIPT = [[
	local map = { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, name = k8s.config.name }
	for i = 1, 8 do
		k8s.every(0.02, function() k8s.patch(map, { data = { ["k" .. i] = tostring(k8s.now()) } }) end, { leader = true })
	end
	k8s.on_synced(function() print "synced" end)
]]

describe("leader election on a real API server", function()
	local namespace, hosts

	local function start()
		local name = ("host-%d"):format(#hosts + 1)
		second.send { { "POST", ("/api/v1/namespaces/%s/configmaps"):format(namespace), {
			apiVersion = "v1", kind = "ConfigMap", metadata = { name = name } } } }
		local run = host.start {
			kubeconfig = second.kubeconfig(), script = SCRIPT, set = { namespace = namespace, name = name },
			flags = { "--leader-elect", "--lease", namespace .. "/team", "--lease-duration", DURATION .. "s",
				"--renew-deadline", DEADLINE .. "s", "--retry-period", "500ms" },
		}
		run.name = name
		hosts[#hosts + 1] = run
		assert.equal("synced", run:line())
		return run
	end

	local function await_leading(run)
		run.identity = run:log_line("became the leader", 30):match "identity=(%S+)"
	end

	local function await_write(run)
		cluster.await(20, "a write of " .. run.name, function()
			for _, write in ipairs(second.writes(namespace)) do
				if write.name == run.name and write.status == 200 then
					return true
				end
			end
		end)
	end

	-- How each kind of handover goes on once the other one leads.
	local ends = {
		TERM = function(old)
			assert.equal(0, old:wait())
		end,
		KILL = function(old)
			assert.equal(9, select(2, old.child:wait(20)))
		end,
		STOP = function(old, new)
			await_write(new)
			old.child:kill "CONT"
			assert.equal(4, old:wait())
			old:log_line "lost the lease"
		end,
	}

	-- Per host: the times of its first and last write, and of its last renewal.
	local function times_of(run, writes)
		local times = {}
		for _, write in ipairs(writes) do
			if write.name == run.name and write.status == 200 then
				times.first = times.first or write.at
				times.last = write.at
			elseif write.resource == "leases" and write.holder == run.identity and write.status < 300 then
				times.renewed = write.at
			end
		end
		return times
	end

	-- Runs the signals in turn, each on whoever leads, and judges all writes at the end.
	local function hand_over(signals)
		namespace, hosts = second.namespace(), {}
		local leader = start()
		await_leading(leader)
		local other = start()
		for _, signal in ipairs(signals) do
			other:log_line "another process leads"
			await_write(leader)
			leader.child:kill(signal)
			leader.ended_by = signal
			await_leading(other)
			ends[signal](leader, other)
			leader, other = other, start()
		end
		other:stop()
		await_write(leader)
		leader:stop()

		local writes, before = second.writes(namespace), nil
		for i = 1, #signals + 1 do
			local run = hosts[i]
			local times = times_of(run, writes)
			local what = ("%s, ended by %s"):format(run.name, run.ended_by or "its stop")
			assert.is_true(times.last <= times.renewed + DEADLINE + 1, what .. ": wrote too late")
			if before and before.run.ended_by ~= "STOP" then
				assert.is_true(before.last < times.first, what .. ": wrote before the one ahead of it had ended")
			end
			before = { run = run, last = times.last }
		end
		assert.same({}, times_of(other, writes), "a host that never led wrote")
	end

	it("lets one host write at a time, over stops, kills and pauses", function()
		hand_over { "TERM", "STOP", "KILL" }
	end)

	it("does so over many handovers #soak", function()
		local signals, kinds = {}, { "TERM", "KILL", "STOP" }
		for i = 1, 20 do
			signals[i] = kinds[i % 3 + 1]
		end
		hand_over(signals)
	end)
end)
