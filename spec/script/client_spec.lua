-- The API client as a script sees it: what it sends, and what it gives back.
local client = require "support.client"
local testing = require "perilune.testing"

local function map(name, data)
	return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = name }, data = data }
end

-- As a script writes it.
local MAP = 'apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "a" }'

-- Which manager set what, by operation: { Apply = { "perilune/script" } }.
local function managers(object)
	local found = {}
	for _, entry in ipairs(object.metadata.managedFields) do
		found[entry.operation] = found[entry.operation] or {}
		table.insert(found[entry.operation], entry.manager)
	end
	return found
end

describe("the API client", function()
	local cluster

	before_each(function()
		cluster = testing.cluster()
	end)

	local function run(body, options)
		return assert(client.run(cluster, body, options), "it has not ended")
	end

	describe("k8s.apply", function()
		it("makes an object and changes it, as the script", function()
			local made = run(('return k8s.apply { %s, data = { x = "1", y = "1" } }'):format(MAP))
			assert.same({ x = "1", y = "1" }, made.value.data)
			run(('return k8s.apply { %s, data = { x = "2" } }'):format(MAP))
			local now = assert(cluster:get(map "a"))
			assert.same({ x = "2" }, now.data)
			assert.same({ Apply = { "perilune/script" } }, managers(now))
		end)

		it("does not take another's field unless it is told to", function()
			assert(cluster:apply(map("a", { x = "theirs" }), { field_manager = "other" }))
			local refused = run(('return k8s.apply { %s, data = { x = "ours" } }'):format(MAP))
			assert.same({ 409, "Conflict" }, { refused.err.code, refused.err.reason })
			assert.equal(".data.x", refused.err.causes[1].field)
			local forced = run(('return k8s.apply({ %s, data = { x = "ours" } }, { force = true, field_manager = "me" })'):format(MAP))
			assert.same({ x = "ours" }, forced.value.data)
			assert.same({ Apply = { "me" } }, managers(assert(cluster:get(map "a"))))
		end)

		it("of a status leaves the rest alone", function()
			local pod = { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "p" },
				spec = { containers = { { name = "c", image = "i" } } } }
			assert(cluster:create(pod))
			local outcome = run [[
				return k8s.status.apply { apiVersion = "v1", kind = "Pod", metadata = { namespace = "default", name = "p" },
					status = { message = "here" } }
			]]
			assert.equal("here", outcome.value.status.message)
			assert.equal("i", outcome.value.spec.containers[1].image)
		end)

		it("tells long names of scripts apart", function()
			local long = ("a"):rep(150)
			for i = 1, 2 do
				run(('return k8s.apply { %s, data = { ["%d"] = "x" } }'):format(MAP, i), { name = long .. i })
			end
			local names = managers(assert(cluster:get(map "a"))).Apply
			assert.same({ 2, 128, 128 }, { #names, #names[1], #names[2] })
			assert.not_equal(names[1], names[2])
		end)
	end)

	it("names the script in every write", function()
		run(([[
			local map = assert(k8s.create { %s })
			map.data = { x = "1" }
			map = assert(k8s.update(map))
			return k8s.patch(map, { data = { y = "1" } })
		]]):format(MAP))
		assert.same({ Update = { "perilune/script" } }, managers(assert(cluster:get(map "a"))))
	end)
end)
