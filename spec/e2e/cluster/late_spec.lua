-- What a script asks for after the start: it is started too, and reading a cache too early is said.
local cluster = require "support.cluster"
local files = require "support.files"
local host = require "support.host"
local k8s = require "perilune"

describe("an informer that is asked for in a handler", function()
	local namespace

	setup(function()
		cluster.need()
		namespace = cluster.namespace()
	end)

	it("starts by itself, and its handlers get what is there", function()
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), set = { namespace = namespace },
			script = [[
				k8s.on_synced(function()
					local accounts = k8s.informer { apiVersion = "v1", kind = "ServiceAccount", namespace = k8s.config.namespace }
					print("first", accounts:count())
					accounts:add_event_handler {
						add = function(account, event)
							print(account.metadata.name, event.initial, accounts:has_synced(), accounts:count())
						end,
					}
				end)
			]],
		}
		assert.equal("first\t0", run:line())
		assert.equal("default\ttrue\ttrue\t1", run:line())
		run:log_line "informer:count reads a cache that has not synced yet"
		run:stop()
	end)

	it("is never half read without a word: at the top level", function()
		local run = host.start {
			kubeconfig = cluster.kubeconfig(),
			script = [[ local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" } print(#maps:list()) ]],
		}
		assert.equal("0", run:line())
		run:log_line "informer:list reads a cache that is filled only after the script has loaded"
		run:stop()
	end)
end)

describe("a program whose caches have synced and where nothing happens", function()
	it("sleeps", function()
		local run = host.start {
			kubeconfig = cluster.need(),
			script = [[ k8s.informer { apiVersion = "v1", kind = "Namespace", label_selector = "example.com/none" } ]],
		}
		run:log_line "the cache has synced"
		local function switches()
			return tonumber(files.read("/proc/" .. run.child.owner.pid .. "/status"):match "voluntary_ctxt_switches:%s*(%d+)")
		end
		local quiet
		cluster.await(20, "a second with fewer than 20 wakes", function()
			local before = switches()
			k8s.sleep(1)
			quiet = switches() - before
			return quiet < 20
		end)
		run:stop()
	end)
end)
