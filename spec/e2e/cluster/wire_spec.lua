-- A wire between the program and a real API server that loses, breaks and slows down: what scripts are told of it.
local cjson = require "cjson"
local cluster = require "support.cluster"
local host = require "support.host"
local proxy = require "support.proxy"

local before_each, after_each, it = cluster.when_up(before_each, after_each, it)

describe("through a wire", function()
	local wire, namespace, path

	before_each(function()
		namespace = cluster.namespace()
		path = "/api/v1/namespaces/" .. namespace .. "/configmaps"
		wire = proxy.start(cluster.server())
	end)

	after_each(function()
		wire:close()
	end)

	local function start(script, flags)
		return host.start {
			kubeconfig = wire:kubeconfig(cluster), set = { namespace = namespace }, flags = flags, pages = true,
			script = [[
				local function map(name, data)
					return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = k8s.config.namespace }, data = data }
				end
				local function say(word, err)
					print(word, k8s.json.encode(err and { reason = err.reason, outcome_unknown = err.outcome_unknown or false } or { none = true }))
				end
			]] .. script,
		}
	end

	local function expect_line(run, word, expected)
		local line = run:line(40)
		local found, text = line:match "^(%S+)\t(.*)$"
		assert.equal(word, found, line)
		assert.same(expected, cjson.decode(text))
	end

	it("that goes silent, a script's writes fail within their deadline and say that they may have happened", function()
		local run = start [[
			k8s.main(function()
				assert(k8s.create(map "a"))
				print "connected"
				local _, err
				repeat _, err = k8s.patch(map "a", { data = { x = "1" } }, { timeout = 1 }) until err
				say("patch", err)
				_, err = k8s.create(map "b", { timeout = 1 })
				say("create", err)
				_, err = k8s.delete(map "a", { timeout = 1 })
				say("delete", err)
				repeat _, err = k8s.create(map "c", { timeout = 5 }) until not err
				say("again", err)
			end)
		]]
		assert.equal("connected", run:line())
		wire:silence { scope = "all" }
		expect_line(run, "patch", { reason = "Timeout", outcome_unknown = true })
		expect_line(run, "create", { reason = "Timeout", outcome_unknown = false }) -- it got no connection
		expect_line(run, "delete", { reason = "Timeout", outcome_unknown = false })
		wire:heal { scope = "all" }
		expect_line(run, "again", { none = true })
		assert.equal(200, (cluster.curl("GET", path .. "/c")))
		assert(wire:counts().lost_up > 0)
		run:stop()
	end)

	it("that goes silent, the call after one with a short deadline goes through", function()
		local run = start [[
			k8s.main(function()
				assert(k8s.create(map "a"))
				print "connected"
				local _, err
				repeat _, err = k8s.patch(map "a", { data = { x = "1" } }, { timeout = 1.5 }) until err
				say("patch", err)
				_, err = k8s.create(map "b")
				say("create", err)
			end)
		]]
		assert.equal("connected", run:line())
		wire:silence()
		expect_line(run, "patch", { reason = "Timeout", outcome_unknown = true })
		expect_line(run, "create", { none = true })
		assert.equal(200, (cluster.curl("GET", path .. "/b")))
		run:stop()
	end)

	it("that breaks, a script's write whose answer was lost says that it may have happened, as it has", function()
		local run = start [[
			k8s.main(function()
				assert(k8s.create(map "a"))
				print "connected"
				local count, _, err = 0
				repeat
					count = count + 1
					_, err = k8s.patch(map "a", { data = { count = tostring(count) } })
				until err
				say("patch", err)
				print(count)
				_, err = k8s.create(map "b")
				say("again", err)
			end)
		]]
		assert.equal("connected", run:line())
		wire:silence { direction = "down" }
		wire:await("an answer is lost", function(counts)
			return counts.lost_down > 0
		end)
		wire:reset()
		expect_line(run, "patch", { reason = "Connection", outcome_unknown = true })
		local _, seen = cluster.curl("GET", path .. "/a")
		assert.equal(run:line(), seen.data.count)
		expect_line(run, "again", { none = true })
		run:stop()
	end)

	it("that is slow, a list takes long, is told of and is no time-out", function()
		local requests = {}
		for i = 1, 75 do
			requests[i] = { "POST", path, { metadata = { name = "item-" .. i }, data = { text = ("x"):rep(2000) } } }
		end
		cluster.send(requests)
		wire:slow { scope = "new", rate = 50000, direction = "down" }
		local run = start([[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace }
			k8s.on_synced(function() print("synced", k8s.json.encode { count = maps:count() }) end)
		]], { "--sync-timeout", "2s" })
		expect_line(run, "synced", { count = 76 })
		local counts = wire:counts()
		assert(counts.fired.slow > 0 and counts.down > 150000, cjson.encode(counts))
		run:stop()
	end)
end)
