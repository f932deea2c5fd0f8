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

	describe("k8s.modify", function()
		local ADD = [[
			return k8s.modify({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "a" }, function(map)
				map.data.count = tostring(tonumber(map.data.count) + 1)
			end)
		]]

		before_each(function()
			assert(cluster:create(map("a", { count = "1" })))
		end)

		it("begins again where somebody else was faster, until it is not", function()
			local fault = cluster:fault { verb = "update", action = "conflict", times = 4 }
			client.start(cluster, ADD)
			cluster:advance(1)
			assert.equal("2", client.outcome(cluster).value.data.count)
			assert.equal(4, fault.fired)
			assert.equal(5, #cluster:requests { verb = "get", name = "a" })
			assert.same({ Update = { "perilune/script", "spec" } }, managers(assert(cluster:get(map "a"))))
		end)

		it("sees what the other wrote", function()
			client.start(cluster, [[
				local tries = 0
				return k8s.modify({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "a" }, function(map)
					tries = tries + 1
					if tries == 1 then
						assert(k8s.patch(map, { data = { count = "10" } }))
					end
					map.data.count = map.data.count + 1
					map.data.count = ("%d"):format(map.data.count)
				end)
			]])
			cluster:settle()
			assert.equal("11", assert(cluster:get(map "a")).data.count)
		end)

		it("gives up in the end", function()
			local fault = cluster:fault { verb = "update", action = "conflict", times = 100 }
			client.start(cluster, ADD)
			cluster:advance(20)
			assert.equal("Conflict", client.outcome(cluster).err.reason)
			assert.equal(10, fault.fired)
		end)

		it("does not count twice where the answer to its own write was lost", function()
			cluster:fault { verb = "update", action = "cut", bytes = 10 }
			local outcome = run(ADD)
			assert.is_true(outcome.err.outcome_unknown)
			assert.equal("2", assert(cluster:get(map "a")).data.count)
		end)

		it("does not take a conflict for another's where its own write may be the cause", function()
			cluster:fault { verb = "update", action = "status", code = 504, retry_after = 1 }
			cluster:fault { verb = "update", action = "conflict" }
			client.start(cluster, ADD)
			cluster:advance(2)
			local err = client.outcome(cluster).err
			assert.same({ "Conflict", true }, { err.reason, err.outcome_unknown })
			assert.equal(1, #cluster:requests { verb = "get", name = "a" })
		end)

		it("sends nothing where nothing is to change", function()
			local same = run 'return k8s.modify({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "a" }, function() end)'
			local left = run [[
				return k8s.modify({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "a" }, function(map)
					map.data.count = "7"
					return false
				end)
			]]
			assert.same({ "1", "a" }, { same.value.data.count, left.value.metadata.name })
			assert.equal(0, #cluster:requests { verb = "update" })
		end)

		it("says that there is no such object, without calling the function", function()
			local outcome = run [[
				return k8s.modify({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "gone" }, function() error "called" end)
			]]
			assert.equal("NotFound", outcome.err.reason)
		end)

		it("hands on what the function raises", function()
			local outcome = run [[
				return k8s.modify({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "a" }, function() error("so", 0) end)
			]]
			assert.equal("so", outcome.raised)
		end)
	end)

	it("k8s.scale sets the replicas", function()
		local deployment = { apiVersion = "apps/v1", kind = "Deployment", metadata = { namespace = "default", name = "web" }, spec = {
			selector = { matchLabels = { a = "b" } },
			template = { metadata = { labels = { a = "b" } }, spec = { containers = { { name = "c", image = "i" } } } },
		} }
		assert(cluster:create(deployment))
		local outcome = run [[
			local web = { apiVersion = "apps/v1", kind = "Deployment", namespace = "default", name = "web" }
			assert(k8s.scale(web, 7, { dry_run = true }))
			return k8s.scale(web, 5)
		]]
		assert.same({ "Scale", 5 }, { outcome.value.kind, outcome.value.spec.replicas })
		assert.equal(5, assert(cluster:get(deployment)).spec.replicas)
	end)

	it("k8s.set_owner goes by --namespace, and by what is known of a kind", function()
		local OWNER = 'local owner = { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "shop", name = "o", uid = "u" } } '
		local child = run(OWNER .. 'return k8s.set_owner({ apiVersion = "v1", kind = "Secret", metadata = { name = "s" } }, owner)',
			{ namespace = "shop" })
		assert.equal("u", child.value.metadata.ownerReferences[1].uid)
		local node = run(OWNER .. [[
			k8s.get { apiVersion = "v1", kind = "Node", name = "n" }
			local node = k8s.set_owner({ apiVersion = "v1", kind = "Node", metadata = { name = "n" } }, owner)
			return node
		]], { namespace = "shop" })
		assert.matches("ConfigMap shop/o can't be the owner of Node n, which has no namespace", node.raised, 1, true)
	end)

	for what, chunk in pairs {
		["k8s.apply: name is missing"] = 'k8s.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { generateName = "a" } }',
		["k8s.apply: force must be a boolean, not yes"] = 'k8s.apply({ apiVersion = "v1", kind = "ConfigMap", name = "a" }, { force = "yes" })',
		["k8s.apply: field_manager must not be empty"] =
			'k8s.apply({ apiVersion = "v1", kind = "ConfigMap", name = "a" }, { field_manager = "" })',
		["k8s.ensure: unknown option 'forced', did you mean 'force'?"] =
			'k8s.ensure({ apiVersion = "v1", kind = "ConfigMap", name = "a" }, { forced = true })',
		["k8s.patch: field_validation must be Ignore, Warn or Strict"] =
			'k8s.patch({ apiVersion = "v1", kind = "ConfigMap", name = "a" }, {}, { field_validation = "strict" })',
		["k8s.modify takes a function, not a table"] = 'k8s.modify({ apiVersion = "v1", kind = "ConfigMap", name = "a" }, {})',
		["k8s.scale takes a whole number from 0 on, not -1"] = 'k8s.scale({ apiVersion = "apps/v1", kind = "Deployment", name = "a" }, -1)',
		["k8s.scale takes a whole number from 0 on, not 1.5"] = 'k8s.scale({ apiVersion = "apps/v1", kind = "Deployment", name = "a" }, 1.5)',
		["k8s.scale takes a whole number from 0 on, not inf"] =
			'k8s.scale({ apiVersion = "apps/v1", kind = "Deployment", name = "a" }, math.huge)',
	} do
		it("misused: " .. what, function()
			local outcome = run("\nlocal value, err = " .. chunk .. "\nreturn value, err")
			assert.matches(":5: " .. what:gsub("%p", "%%%0") .. "$", outcome.raised)
		end)
	end
end)
