-- mirror in the sandbox: what is not told in the story of mirror_spec.lua.
local testing = require "perilune.testing"

describe("examples/mirror in the sandbox", function()
	local cluster

	local function namespace(name, labels)
		return { apiVersion = "v1", kind = "Namespace", metadata = { name = name, labels = labels } }
	end

	local function configmap(where, data)
		return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = where, name = "settings" }, data = data }
	end

	local function source(where, selector)
		local map = configmap(where, { from = where })
		map.metadata.labels = { ["example.com/mirror"] = "yes" }
		map.metadata.annotations = { ["example.com/mirror-to"] = selector }
		return map
	end

	local function from(where)
		local map = cluster:get(configmap(where))
		return map and map.data.from
	end

	local function writes_of(verb, where)
		return #cluster:requests { verb = verb, kind = "ConfigMap", namespace = where }
	end

	local function run()
		local program = cluster:load "examples/mirror"
		cluster:settle()
		return program
	end

	before_each(function()
		cluster = testing.cluster { quiet = true }
		for name, team in pairs { home = "none", one = "web", two = "web" } do
			assert(cluster:create(namespace(name, { team = team })))
		end
	end)

	it("writes over no ConfigMap that is no copy, and makes its own once that is gone", function()
		assert(cluster:create(configmap("one", { from = "somebody" })))
		assert(cluster:create(source("home", "team=web")))
		run()
		assert.equal("somebody", from "one")
		assert.equal("home", from "two")
		local warning = cluster:logs({ level = "warn", msg = "a copy is not as it should be" })[1]
		assert.equal("one", warning.target)
		assert.matches("already exists", warning.error)
		assert(cluster:delete(configmap "one"))
		cluster:advance(600)
		assert.equal("home", from "one")
	end)

	it("leaves a copy to the source whose copy it is", function()
		assert(cluster:create(source("home", "team=web")))
		run()
		assert(cluster:create(namespace "other"))
		assert(cluster:create(source("other", "team=web")))
		cluster:settle()
		assert.equal("home", from "one")
		assert(cluster:delete(configmap "home"))
		cluster:advance(600)
		assert.equal("other", from "one")
		assert.equal("other", from "two")
	end)

	it("deletes the copies of a source that went while it did not run", function()
		assert(cluster:create(source("home", "team=web")))
		run():kill()
		assert(cluster:delete(configmap "home"))
		run()
		assert.is_nil(from "one")
		assert.is_nil(from "two")
	end)

	it("writes nothing after a restart, when all is right", function()
		assert(cluster:create(source("home", "team=web")))
		run():kill()
		local created = writes_of "create"
		run()
		assert.equal(created, writes_of "create")
		assert.equal(0, writes_of "update" + writes_of "delete")
	end)

	it("says once that a selector is none, and goes on when it is one", function()
		assert(cluster:create(source("home", "team=(web")))
		run()
		cluster:advance(3600)
		local errors = cluster:logs { level = "error" }
		assert.equal(1, #errors)
		assert.matches("selector", errors[1].error)
		assert(cluster:patch(configmap "home", { metadata = { annotations = { ["example.com/mirror-to"] = "team=web" } } }))
		cluster:settle()
		assert.equal("home", from "one")
	end)

	it("puts nothing into a namespace that is being deleted", function()
		local held = configmap "one"
		held.metadata.name, held.metadata.finalizers = "held", { "example.com/hold" }
		assert(cluster:create(held))
		assert(cluster:create(source("home", "team=web")))
		run()
		assert(cluster:delete(namespace "one"))
		cluster:advance(60)
		assert.is_nil(from "one")
		assert.equal(1, writes_of("create", "one"))
		assert.same({}, cluster:logs { level = "error" })
	end)
end)
