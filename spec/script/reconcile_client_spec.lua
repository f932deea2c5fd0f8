-- The API client inside a reconcile: under which name it writes, and what becomes of its requests.
local files = require "support.files"
local testing = require "perilune.testing"

local function map(namespace, name, data)
	return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = namespace, name = name }, data = data }
end

describe("inside a reconcile", function()
	local cluster

	before_each(function()
		cluster = testing.cluster { quiet = true }
		assert(cluster:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "shop" } })
	end)

	local function load(text)
		return cluster:load(files.write(files.folder() .. "/mirror.lua", 'local k8s = require "perilune"\n' .. text))
	end

	local function managers(object)
		local found = {}
		for i, entry in ipairs(object.metadata.managedFields) do
			found[i] = entry.operation .. " " .. entry.manager
		end
		table.sort(found)
		return found
	end

	it("writes are the controller's, and apply takes what it needs", function()
		assert(cluster:create(map("shop", "a", { x = "theirs" })))
		assert(cluster:apply(map("default", "applied", { x = "theirs" }), { field_manager = "other" }))
		assert(cluster:apply(map("default", "ensured", { x = "theirs" }), { field_manager = "other" }))
		load [[
			local function map(name)
				return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = name }, data = { x = "ours" } }
			end
			k8s.controller {
				name = "copy", watch = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop" },
				reconcile = function()
					assert(k8s.apply(map "applied"))
					assert(k8s.ensure(map "ensured"))
					assert(k8s.create(map "created"))
					local _, err = k8s.apply(map "created", { force = false, field_manager = "third" })
					assert(not err, tostring(err))
				end,
			}
		]]
		cluster:settle()
		assert.same({ "Apply perilune/mirror/copy" }, managers(assert(cluster:get(map("default", "applied")))))
		assert.same({ "Apply perilune/mirror/copy" }, managers(assert(cluster:get(map("default", "ensured")))))
		assert.same({ "Apply third", "Update perilune/mirror/copy" }, managers(assert(cluster:get(map("default", "created")))))
		assert.equal("ours", assert(cluster:get(map("default", "applied"))).data.x)
	end)

	it("a deadline that passes cancels the request under way, and the key is tried again", function()
		assert(cluster:create(map("shop", "a")))
		local fault = cluster:fault { verb = "create", action = "silence" }
		load [[
			k8s.controller {
				name = "copy", timeout = 5, watch = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop" },
				reconcile = function(request)
					local _, err = k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = request.name } }
					return nil, err
				end,
			}
		]]
		cluster:advance(4)
		assert.equal(1, #cluster:requests { verb = "create" })
		cluster:advance(2)
		assert.equal(1, fault.fired)
		assert.equal(2, #cluster:requests { verb = "create" })
		assert(cluster:get(map("default", "a")))
	end)

	it("a child is created once for each object, also when its name is the server's choice", function()
		for i = 1, 200 do
			assert(cluster:create(map("shop", ("o-%03d"):format(i))))
		end
		for _, order in ipairs { { action = "status", code = 429, retry_after = 1 }, { action = "unauthorized" }, { action = "status", code = 503 } } do
			order.verb, order.times, order.after = "create", 5, 20
			cluster:fault(order)
		end
		load [[
			local children = k8s.informer { apiVersion = "v1", kind = "Secret", namespace = "shop", index = { of = "metadata.labels.of" } }
			k8s.controller {
				name = "children", workers = 4, watch = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop" }, owns = { children },
				reconcile = function(request)
					if #children:list { index = { of = request.name } } == 0 then
						assert(k8s.create { apiVersion = "v1", kind = "Secret",
							metadata = { namespace = "shop", generateName = "child-", labels = { of = request.name } } })
					end
				end,
			}
		]]
		cluster:advance(60)
		local seen, count = {}, 0
		for _, child in ipairs(assert(cluster:list { apiVersion = "v1", kind = "Secret", namespace = "shop" })) do
			local of = child.metadata.labels.of
			assert.is_nil(seen[of], of .. " has two")
			seen[of], count = true, count + 1
		end
		assert.equal(200, count)
	end)
end)
