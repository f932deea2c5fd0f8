local cli = require "support.cli"
local k8s = require "perilune"
local manifests = require "support.manifests"
local sample = require "support.sample"

local TTL = 2 -- seconds; lastTransitionTime has no fractions

local function reference(world, name)
	return { apiVersion = "batch/v1", kind = "Job", namespace = world:name "jobs", name = name }
end

local function create(world, name, ttl)
	world:create {
		apiVersion = "batch/v1", kind = "Job",
		metadata = { namespace = world:name "jobs", name = name, annotations = { ["example.com/ttl"] = ttl } },
		spec = { template = { spec = { restartPolicy = "Never", containers = { { name = "main", image = "example.com/main:1" } } } } },
	}
end

-- As the Job controller does, in two steps that the API server wants to see.
local FINISHED = { Complete = "SuccessCriteriaMet", Failed = "FailureTarget" }

local function finish(world, name, kind)
	local now = os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(k8s.now()))
	local function condition(of)
		return { type = of, status = "True", reason = "Spec", message = "", lastProbeTime = now, lastTransitionTime = now }
	end
	world:patch_status(reference(world, name), { status = { startTime = now, conditions = { condition(FINISHED[kind]) } } })
	world:patch_status(reference(world, name), { status = {
		completionTime = kind == "Complete" and now or nil, conditions = { condition(FINISHED[kind]), condition(kind) },
	} })
end

-- Whether it is gone, and was still there until so long after that time. The world keeps when it was first found to be gone.
local function went_after(world, name, seconds, since)
	world.gone = world.gone or {}
	if not world.gone[name] and not world:get(reference(world, name)) then
		world.gone[name] = k8s.now()
	end
	local age = world.gone[name] and world.gone[name] - since
	assert(not age or age >= seconds, ("%s went after %.1f s"):format(name, age or 0))
	return age ~= nil
end

local function are_there(world, ...)
	for _, name in ipairs { ... } do
		assert(world:get(reference(world, name)), name .. " is gone")
	end
end

describe("examples/ttl", function()
	sample.tell(it, {
		folder = "examples/ttl",
		config = { ttl = TTL },
		error = "not soon",
		setup = function(world)
			world:namespace "jobs"
		end,
		steps = {
			{
				"Jobs go some time after their end",
				act = function(world)
					for name, ttl in pairs { done = false, failed = false, slow = "3", kept = "never", late = "1000000", odd = "soon", running = false } do
						create(world, name, ttl or nil)
					end
					world.since = math.floor(k8s.now())
					for _, name in ipairs { "done", "slow", "kept", "late", "odd" } do
						finish(world, name, "Complete")
					end
					finish(world, "failed", "Failed")
				end,
				holds = function(world)
					return went_after(world, "done", TTL, world.since) and went_after(world, "failed", TTL, world.since)
						and went_after(world, "slow", 3, world.since)
				end,
			},
			{
				"a Job that gets less time, and others that have none yet or all of it",
				act = function(world)
					are_there(world, "kept", "late", "odd", "running")
					world:patch(reference(world, "late"), { metadata = { annotations = { ["example.com/ttl"] = "1" } } })
				end,
				holds = function(world)
					return world:get(reference(world, "late")) == nil
				end,
			},
			{
				"one that somebody mends, and one that ends at last",
				act = function(world)
					are_there(world, "kept", "odd", "running")
					world:patch(reference(world, "odd"), { metadata = { annotations = { ["example.com/ttl"] = k8s.null } } })
					world.since = math.floor(k8s.now())
					finish(world, "running", "Complete")
				end,
				holds = function(world)
					return world:get(reference(world, "odd")) == nil and went_after(world, "running", TTL, world.since)
				end,
			},
			{
				"one that was not to go",
				act = function(world)
					are_there(world, "kept")
				end,
				holds = function()
					return true
				end,
			},
		},
	})

	it("has a role that is bound to its service account", function()
		manifests.check_binding(manifests.read "examples/ttl/manifests/rbac.yaml")
	end)

	it("refuses a time that is none", function()
		for _, bad in ipairs { "soon", "-1", "1e9", "" } do
			local code, _, err = cli.run { "check", "examples/ttl", "--set", "ttl=" .. bad }
			assert.equal(1, code)
			assert.truthy(err:find("ttl must be a number of seconds", 1, true), err)
		end
	end)
end)
