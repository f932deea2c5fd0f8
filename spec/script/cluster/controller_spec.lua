-- k8s.controller on a real API server: children that are made once, keys that are not behind others, and the end of a program.
local cluster = require "support.cluster"
local host = require "support.host"
local process = require "support.process"

local _, it = cluster.when_up(before_each, it)

local function fill(path, count)
	local requests = {}
	for i = 1, count do
		requests[i] = { "POST", path, { metadata = { name = ("map-%04d"):format(i) } } }
	end
	cluster.send(requests, true)
end

local function items(path)
	local status, list = cluster.curl("GET", path)
	assert.equal(200, status)
	return list.items
end

-- kube-controller-manager puts one into each namespace.
local NOT_THE_ROOT = ", field_selector = \"metadata.name!=kube-root-ca.crt\""

describe("a controller of a real API server", function()
	local run, namespace, maps

	before_each(function()
		namespace = cluster.namespace()
		maps = "/api/v1/namespaces/" .. namespace .. "/configmaps"
	end)

	local function start(text, ...)
		run = host.start { kubeconfig = cluster.kubeconfig(), set = { namespace = namespace }, flags = { ... }, script = [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace]] .. NOT_THE_ROOT .. [[ }
		]] .. text }
	end

	-- One child for each of so many objects, by a reconcile that makes one where it finds none, brought back by its own write.
	local function makes_one_each(count, seconds)
		fill(maps, count)
		start [[
			local secrets = k8s.informer { apiVersion = "v1", kind = "Secret", namespace = k8s.config.namespace,
				index = { owner = "metadata.ownerReferences[*].uid" } }
			local done, left = {}, 0
			k8s.controller { name = "one-each", watch = maps, owns = { secrets }, workers = 4, reconcile = function(request)
				local map = maps:get(request)
				if #secrets:list { index = { owner = map.metadata.uid } } == 0 then
					local child = { apiVersion = "v1", kind = "Secret", metadata = { generateName = request.name .. "-", namespace = request.namespace } }
					k8s.set_owner(child, map)
					assert(k8s.create(child))
				end
				if not done[request.name] then
					done[request.name], left = true, left + 1
					if left == tonumber(maps:count()) then print "all" end
				end
			end }]]
		assert.equal("all", run:line(seconds))
		run:stop()
		local children = {}
		for _, secret in ipairs(items("/api/v1/namespaces/" .. namespace .. "/secrets")) do
			local owner = secret.metadata.ownerReferences[1].name
			children[owner] = (children[owner] or 0) + 1
		end
		for i = 1, count do
			assert.equal(1, children[("map-%04d"):format(i)], "children of object " .. i)
		end
	end

	it("makes exactly one child of a generated name each", function()
		makes_one_each(60, 60)
	end)

	it("makes exactly one child of a generated name each, of 1,000 #soak", function()
		makes_one_each(1000, 300)
	end)

	-- A reconcile takes 20 ms, so the ones that were there would take long.
	local function serves_new_first(count)
		fill(maps, count)
		start [[
			local first
			k8s.controller { name = "new-first", watch = maps, workers = 2, reconcile = function(request)
				if not first then first = true print "begun" end
				k8s.sleep(0.02)
				if request.name == "new" then print("new") end
			end }]]
		assert.equal("begun", run:line(60))
		local at = process.now()
		assert.equal(201, (cluster.curl("POST", maps, { metadata = { name = "new" } })))
		assert.equal("new", run:line(30))
		local seconds = process.now() - at
		run:stop()
		return seconds
	end

	it("reconciles a new object before those that were there", function()
		assert.is_true(serves_new_first(1000) < 5) -- of 10 s, on a slow machine
	end)

	it("reconciles a new object within 1 s beside 6,000 that were there #soak", function()
		local seconds = serves_new_first(6000)
		print(("a new object beside 6,000: %.3f s"):format(seconds))
		assert.is_true(seconds < 1)
	end)

	it("lets a reconcile end when the program stops, and begins no other", function()
		fill(maps, 3)
		start [[
			k8s.controller { name = "slow", watch = maps, reconcile = function(request)
				print "begun"
				k8s.sleep(1)
				assert(k8s.patch(request, { data = { done = "yes" } }))
				print "ended"
			end }]]
		assert.equal("begun", run:line(30))
		run:stop()
		assert.equal("ended\n", run.child:stdout():match "ended\n.*$")
		local done = 0
		for _, map in ipairs(items(maps)) do
			done = done + (map.data and map.data.done and 1 or 0)
		end
		assert.equal(1, done)
	end)

	it("cancels a reconcile that is not done within the grace period", function()
		fill(maps, 1)
		start([[
			k8s.controller { name = "slow", watch = maps, timeout = 600, reconcile = function()
				print "begun"
				k8s.sleep(300)
			end }]], "--grace-period", "0.2s")
		assert.equal("begun", run:line(30))
		run:stop()
		run:log_line "1 calls were still running after 0.2 s and are cancelled"
	end)
end)
