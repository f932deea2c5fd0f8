-- Several hosts against one in-memory API server: what runs where, and how each of them ends.
local files = require "support.files"
local host = require "support.host"
local sandbox = require "support.sandbox"

local LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/perilune"

local SCRIPT = [[
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default" }
	maps:add_event_handler { add = function(map) print("handler " .. map.metadata.name) end }
	k8s.controller { name = "mirror", watch = maps, leader = true, reconcile = function(request) print("reconcile " .. request.name) end }
	k8s.every(0.01, function() if not ticked then ticked = true print "tick" end end, { leader = true })
	k8s.every(0.01, function() if not everywhere then everywhere = true print "everywhere" end end)
	ticked, everywhere = false, false
]]

describe("leader election #slow", function()
	local server, runs

	before_each(function()
		server, runs = sandbox.start(), {}
	end)

	after_each(function()
		for _, run in ipairs(runs) do
			run.child:close()
		end
		server:stop()
	end)

	local function start(options)
		options.kubeconfig, options.script = server.kubeconfig, options.script or SCRIPT
		local flags = { "--leader-elect", "--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "100ms" }
		for _, flag in ipairs(options.flags or {}) do
			flags[#flags + 1] = flag
		end
		options.flags = flags
		runs[#runs + 1] = host.start(options)
		return runs[#runs]
	end

	local function lease()
		local status, found = server:curl("GET", LEASE)
		return status == 200 and found or nil
	end

	local function make_map(name)
		assert.equal(201, (server:curl("POST", "/api/v1/namespaces/default/configmaps",
			('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"}}'):format(name))))
	end

	local function lines(run, count)
		local found = {}
		for i = 1, count do
			found[i] = run:line()
		end
		table.sort(found)
		return found
	end

	it("has nothing to do where nothing is marked, which is said once", function()
		local run = start { script = "k8s.every(0.01, function() end)" }
		local line = run:log_line "nothing is marked"
		assert.matches("WARN", line)
		run:log_line "became the leader"
		assert.equal(1, select(2, run.child:stderr():gsub("nothing is marked", "")))
		run:stop()
	end)

	it("runs what is marked on one host, and all the rest on each", function()
		make_map "a"
		local first = start { pages = true }
		assert.same({ "everywhere", "handler a", "reconcile a", "tick" }, lines(first, 4))
		assert.is_nil(first.child:stderr():find("marked", 1, true))
		local second = start { pages = true }
		second:log_line "another process leads"
		assert.same({ "everywhere", "handler a" }, lines(second, 2))
		second:await_page("/readyz", 200)
		local mine, other = first:status().election, second:status().election
		assert.same({ true, false }, { mine.leading, other.leading })
		assert.same({ "default/perilune", mine.identity }, { mine.lease, mine.leader })
		assert.same({ "default/perilune", mine.identity }, { other.lease, other.leader })
		assert.truthy(select(2, first:page "/metrics"):find('leader_election_master_status{name="perilune"} 1', 1, true))
		assert.truthy(select(2, second:page "/metrics"):find('leader_election_master_status{name="perilune"} 0', 1, true))
		make_map "b"
		assert.same({ "handler b", "reconcile b" }, lines(first, 2))
		assert.equal("handler b", second:line())
		first:stop()
		assert.same({ "reconcile a", "reconcile b", "tick" }, lines(second, 3))
		second:stop()
		assert.equal(1, lease().spec.leaseTransitions)
		assert.is_true((lease().spec.holderIdentity or "") == "")
	end)

	it("lets the next one begin when the lease of one that was killed is over", function()
		local first = start {}
		first:log_line "became the leader"
		local second = start {}
		second:log_line "another process leads"
		first.child:kill "KILL"
		second:log_line "became the leader"
		second:stop()
	end)

	it("ends a host that has lost, with all its calls, and calls nothing more", function()
		local run = start { script = [[
			k8s.every(0.01, function() print "begun" k8s.sleep(60) print "not cancelled" end, { leader = true })
			k8s.on_shutdown(function() print "not this either" end)
		]] }
		assert.equal("begun", run:line())
		assert.equal(200, (server:curl("PATCH", LEASE, '{"spec":{"holderIdentity":"somebody"}}')))
		assert.equal(4, run:wait())
		run:log_line "lost the lease: somebody has it"
		assert.equal("begun\n", run.child:stdout())
		assert.equal("somebody", lease().spec.holderIdentity)
	end)

	it("ends a host that has lost in the middle of a reload, and no code takes another's place any more", function()
		local text = [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default" }
			maps:add_event_handler { add = function() print "handler" k8s.sleep(60) end }
			k8s.on_shutdown(function() print "not this" end)
			k8s.on_synced(function() print "synced" end)
		]]
		local run = start { script = text }
		run:log_line "became the leader"
		make_map "a"
		run:lines_until "handler"
		files.write(run.folder .. "/script.lua", 'local k8s = require "perilune" print "loaded"' .. text)
		run.child:kill "HUP"
		run:lines_until "loaded"
		assert.equal(200, (server:curl("PATCH", LEASE, '{"spec":{"holderIdentity":"somebody"}}')))
		assert.equal(4, run:wait())
		assert.equal("synced\nhandler\nloaded\n", run.child:stdout())
	end)

	it("calls nothing of a leader that was stopped for longer than its lease, not even what waited", function()
		local run = start { script = [[
			for _ = 1, 3 do
				k8s.every(0.01, function() print "timer" k8s.sleep(0.01) print "call" end, { leader = true })
			end
		]] }
		run:lines_until "call"
		local second = start {}
		second:log_line "another process leads"
		run.child:kill "STOP"
		second:log_line "became the leader"
		local before = run.child:stdout()
		run.child:kill "CONT"
		assert.equal(4, run:wait())
		assert.equal(before, run.child:stdout())
		second:stop()
	end)

	it("gives the lease back only when nothing runs any more", function()
		local run = start { script = [[
			k8s.every(0.01, function()
				print "begun"
				k8s.sleep(0.5)
				local lease = assert(k8s.get { apiVersion = "coordination.k8s.io/v1", kind = "Lease", namespace = "default", name = "perilune" })
				print(lease.spec.holderIdentity ~= "" and "held" or "given back")
			end, { leader = true })
		]] }
		assert.equal("begun", run:line())
		run:stop()
		assert.equal("begun\nheld\n", run.child:stdout())
		assert.is_true((lease().spec.holderIdentity or "") == "")
	end)

	it("cancels what runs beyond the grace period before it gives the lease back", function()
		local run = start { flags = { "--grace-period", "100ms" }, script = [[
			k8s.every(0.01, function() print "begun" k8s.sleep(60) end, { leader = true })
		]] }
		assert.equal("begun", run:line())
		run:stop()
		run:log_line "gave the lease back"
	end)

	it("does not become the leader while it stops", function()
		local first = start {}
		first:log_line "became the leader"
		local second = start { script = [[
			k8s.on_synced(function() print "here" end)
			k8s.every(0.01, function() print "led" end, { leader = true })
			k8s.on_shutdown(function() print "stopping" k8s.sleep(1) end)
		]] }
		second:log_line "another process leads"
		second.child:kill "TERM"
		assert.same({ "here" }, second:lines_until "stopping")
		first:stop()
		assert.equal(0, second:wait())
		assert.equal("here\nstopping\n", second.child:stdout())
	end)

	it("takes no part before its caches have synced", function()
		local run = start { pages = true, script = [[
			k8s.informer { apiVersion = "v1", kind = "Pod" }
			k8s.informer { apiVersion = "example.com/v1", kind = "Gone" }
		]] }
		run:log_line "Gone"
		run:await_page("/readyz", 503)
		assert.is_nil(lease())
		run:stop()
	end)

	it("is not part of a dry run's trying, and uses the context's own namespace or the Lease that is named", function()
		local run = start { flags = { "--dry-run", "-n", "kube-system" } }
		run:log_line "became the leader"
		assert.truthy(lease())
		run:stop()
		run = start { flags = { "--lease", "kube-system/team" } }
		run:log_line "lease=kube-system/team"
		run:stop()
	end)

	it("goes on over a reload, on the leader and on one that leads later", function()
		local function text(word)
			return ('k8s.every(0.01, function() print "%s" end, { leader = true })'):format(word)
		end
		local first = start { script = text "one" }
		first:lines_until "one"
		local second = start { script = text "one" }
		second:log_line "another process leads"
		for _, run in ipairs { first, second } do
			files.write(run.folder .. "/script.lua", 'local k8s = require "perilune" ' .. text "two")
			run.child:kill "HUP"
			run:log_line "reloaded"
		end
		first:lines_until "two"
		assert.equal("", second.child:stdout())
		first:stop()
		assert.equal("two", second:line())
		second:stop()
	end)

	it("leaves a host without it to run everything", function()
		local run = host.start { kubeconfig = server.kubeconfig, script = SCRIPT }
		assert.same({ "everywhere", "tick" }, lines(run, 2))
		run:stop()
		assert.is_nil(lease())
	end)
end)
