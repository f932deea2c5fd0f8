-- label-sync in the sandbox, where time is the spec's and the server fails on request; label-sync_spec.lua has a real one.
local testing = require "perilune.testing"

describe("examples/label-sync in the sandbox", function()
	local cluster

	local function namespace(labels)
		return { apiVersion = "v1", kind = "Namespace", metadata = { name = "shop", labels = labels } }
	end

	local function configmap(name, labels)
		return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "shop", name = name, labels = labels } }
	end

	local function labels_of(name)
		return assert(cluster:get(configmap(name))).metadata.labels
	end

	before_each(function()
		cluster = testing.cluster()
		assert(cluster:create(namespace { ["example.com/team"] = "web", ["other.example.com/team"] = "ops" }))
		assert(cluster:create(configmap("settings", { ["example.com/gone"] = "yes", ["a/b"] = "c" })))
	end)

	local function run()
		cluster:load "examples/label-sync"
		cluster:settle()
	end

	it("gives the namespace's labels to what is there, and to what comes", function()
		run()
		assert.same({ ["example.com/team"] = "web", ["a/b"] = "c" }, labels_of "settings")
		assert(cluster:create(configmap "late"))
		assert(cluster:patch(namespace(), { metadata = { labels = { ["example.com/team"] = "ops" } } }))
		cluster:settle()
		for _, name in ipairs { "settings", "late" } do
			assert.equal("ops", labels_of(name)["example.com/team"])
		end
	end)

	it("writes nothing when all is right, at a resync neither", function()
		run()
		local written = #cluster:requests { verb = "patch" }
		cluster:advance(3600)
		assert.equal(written, #cluster:requests { verb = "patch" })
	end)

	it("leaves a conflict to the event that follows it", function()
		local fault = cluster:fault { verb = "patch", resource = "configmaps", name = "settings", action = "conflict" }
		run()
		assert.equal(1, fault.fired)
		assert.same({}, cluster:logs { level = "error" })
		assert(cluster:patch(configmap "settings", { metadata = { labels = { ["a/b"] = "d" } } }))
		cluster:settle()
		assert.same({ ["example.com/team"] = "web", ["a/b"] = "d" }, labels_of "settings")
	end)

	it("tries what failed again with the resync", function()
		cluster:fault { verb = "patch", name = "settings", action = "status", code = 403, message = "not yours" }
		run()
		assert.equal("settings", cluster:logs({ level = "error" })[1].name)
		cluster:advance(290)
		assert.equal("yes", labels_of "settings" ["example.com/gone"])
		cluster:advance(20)
		assert.same({ ["example.com/team"] = "web", ["a/b"] = "c" }, labels_of "settings")
	end)

	it("catches up after a gap", function()
		run()
		cluster:fault { verb = "watch", resource = "namespaces", action = "reset", times = 2 }
		cluster:restart()
		assert(cluster:patch(namespace(), { metadata = { labels = { ["example.com/team"] = "ops" } } }))
		cluster:advance(60)
		assert.equal("ops", labels_of "settings" ["example.com/team"])
	end)
end)
