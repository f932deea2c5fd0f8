-- No memory is lost and none is read before it is written, from start to shutdown, under valgrind. Not for a build with sanitizers.
local cluster = require "support.cluster"
local files = require "support.files"
local host = require "support.host"
local process = require "support.process"
local writer = require "support.writer"

local EVENTS = 1000
local FOUND = 99 -- valgrind's exit code when it has found something

local function why_not()
	if process.run { "sh", "-c", "command -v valgrind" } ~= 0 then
		return "valgrind is missing (Debian package valgrind)"
	end
	if files.output_of({ "ldd", process.build() .. "/perilune" }):find "lib[at]san" then
		return "valgrind can't run a build with sanitizers"
	end
end

describe("under valgrind, the program #valgrind", function()
	it("starts, syncs, handles 1,000 events, makes API calls, shuts a factory down and stops without an error or a leak", function()
		cluster.need()
		local reason = why_not()
		if reason then
			pending(reason)
		end
		local namespace = cluster.namespace()
		local run = host.start {
			wrapper = {
				"valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite",
				"--error-exitcode=" .. FOUND,
			},
			kubeconfig = cluster.kubeconfig(), set = { namespace = namespace }, pages = true, flags = { "--time-limit", "30s" },
			script = [[
				local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, index = { count = "data.count" } }
				local count = 0
				local function log(map, event)
					if map.metadata.name == "kube-root-ca.crt" then return end
					count = count + 1
					local old = event.type == "update" and event.old.data.count
					if count % 100 == 0 then print("handled", count, old) error "an error now and then" end
				end
				maps:add_event_handler { add = log, update = log, delete = log, every_event = true }
				maps:add_event_handler { add = function() k8s.sleep(0.01) end, update = function() end, resync = 1, fields = { "data" } }
				k8s.every(0.2, function() maps:list { label_selector = "a!=b", fields = { "metadata.name" } } end)
				k8s.on_synced(function()
					local factory = k8s.factory { namespace = k8s.config.namespace }
					factory:informer { apiVersion = "v1", kind = "ServiceAccount" }:add_event_handler { add = function() end }
					factory:informer { apiVersion = "example.com/v1", kind = "Nothing" }
					factory:start()
					print("waited", factory:wait_for_cache_sync { timeout = 1 }.synced)
					factory:shutdown()
					local map = assert(k8s.create { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = k8s.config.namespace } })
					map.stringData = { x = "1" }
					assert(k8s.update(map))
					local _, err = k8s.get { apiVersion = "v1", kind = "ConfigMap", name = "none", namespace = k8s.config.namespace }
					assert(k8s.delete(map))
					print("called", err.reason)
				end)
				k8s.on_shutdown(function() k8s.sleep(0.1) print "shutdown" end)
			]],
		}
		run:await_page("/readyz", 200, 60)
		assert.equal("waited\tfalse", run:line(60))
		assert.equal("called\tNotFound", run:line(60))
		local write = writer.new(cluster, namespace, { names = 40, seed = 1 })
		for _ = 1, EVENTS / 100 do
			write:write(100)
		end
		for i = 100, EVENTS, 100 do
			assert.truthy(run:line(60):find("^handled\t" .. i))
		end
		run:page "/readyz?verbose"
		run:status()
		run.child:kill "TERM"
		local code = run:wait(60)
		assert.equal(0, code, code == FOUND and run.child:stderr() or nil)
		assert.equal("shutdown", run:line())
	end)
end)
