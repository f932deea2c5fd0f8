-- ttl in the sandbox, by the clock that is moved: what is not told in the story of ttl_spec.lua.
local k8s = require "perilune"
local testing = require "perilune.testing"

describe("examples/ttl in the sandbox", function()
	local cluster

	local function job(annotations)
		return { apiVersion = "batch/v1", kind = "Job", metadata = { namespace = "default", name = "one", annotations = annotations },
			spec = { template = { spec = { restartPolicy = "Never", containers = { { name = "main", image = "example.com/main:1" } } } } } }
	end

	-- A Job that has been finished for so many seconds.
	local function finished(seconds, annotations)
		assert(cluster:create(job(annotations)))
		local time = os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(k8s.now() - seconds))
		assert(cluster.status.patch(job(), { status = { startTime = time, completionTime = time,
			conditions = { { type = "Complete", status = "True", reason = "Spec", lastTransitionTime = time } } } }))
	end

	local function is_there()
		return cluster:get(job()) ~= nil
	end

	local function run(config)
		cluster:load("examples/ttl", { config = config })
		cluster:settle()
	end

	before_each(function()
		cluster = testing.cluster()
	end)

	it("gives a Job an hour", function()
		finished(0)
		run()
		cluster:advance(3598)
		assert.is_true(is_there())
		cluster:advance(2)
		assert.is_false(is_there())
		assert.equal(1, #cluster:requests { verb = "delete" })
	end)

	it("counts the time in which it did not run", function()
		finished(3000)
		run()
		cluster:advance(590)
		assert.is_true(is_there())
		cluster:advance(20)
		assert.is_false(is_there())
	end)

	it("asks for the pods' deletion too, and for that of no other Job of the name", function()
		finished(10)
		local version = cluster:get(job()).metadata
		run { ttl = 5 }
		local request = cluster:requests({ verb = "delete" })[1]
		assert.equal("Background", request.body.propagationPolicy)
		assert.same({ uid = version.uid, resourceVersion = version.resourceVersion }, request.body.preconditions)
	end)

	it("looks at a Job again that was changed at the last moment", function()
		finished(0)
		run { ttl = 60 }
		local fault = cluster:fault { verb = "delete", action = "conflict" }
		cluster:advance(61)
		assert.equal(1, fault.fired)
		assert.is_false(is_there())
		assert.same({}, cluster:logs { level = "error" })
	end)

	it("keeps a Job that was given more time while it waited", function()
		finished(0)
		run { ttl = 60 }
		cluster:advance(30)
		assert(cluster:patch(job(), { metadata = { annotations = { ["example.com/ttl"] = "200000" } } }))
		cluster:advance(199960)
		assert.is_true(is_there())
		cluster:advance(20)
		assert.is_false(is_there())
	end)
end)
