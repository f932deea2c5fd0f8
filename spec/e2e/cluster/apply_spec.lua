-- apply, ensure, modify, scale and owners, against a real API server.
local cluster = require "support.cluster"
local host = require "support.host"

local before_each, it = cluster.when_up(before_each, it)

-- What the bodies below can name.
local PREAMBLE = [[
	local ns = k8s.config.namespace
	local function map(name, data)
		return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = ns }, data = data }
	end
	local function deployment(name, changes)
		local container = { name = "c", image = "example.com/c:1", resources = { requests = { cpu = "1000m", memory = "1024Mi" } },
			ports = { { containerPort = 80 } } }
		for key, value in pairs(changes or {}) do container[key] = value end
		return { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name, namespace = ns }, spec = { replicas = 1,
			selector = { matchLabels = { app = "a" } },
			template = { metadata = { labels = { app = "a" } }, spec = { containers = { container }, nodeName = "nowhere" } } } }
	end
	local function sync(options)
		options.namespace = ns
		local informer = k8s.informer(options)
		repeat k8s.sleep(0.01) until informer:has_synced()
		return informer
	end
	local function left_out(object) -- caches have no managedFields, answers do
		return assert(object).metadata.managedFields == nil
	end
]]

describe("the API client", function()
	local namespace

	before_each(function()
		namespace = cluster.namespace()
	end)

	local function ask(text)
		return host.ask { kubeconfig = cluster.kubeconfig(), set = { namespace = namespace }, PREAMBLE:gsub("%-%- [^\n]*", ""):gsub("%s+", " ") .. text }
	end

	local function get(path)
		local status, object = cluster.curl("GET", path)
		assert.equal(200, status)
		return object
	end

	local function map_path(name)
		return ("/api/v1/namespaces/%s/configmaps/%s"):format(namespace, name)
	end

	it("applies: as the script, with a conflict where another has set the field, by force where told to", function()
		local answer = ask [[
			assert(k8s.apply(map("a", { x = "1", y = "1" })))
			assert(k8s.apply(map("a", { x = "1" })))
			local value, err = k8s.apply(map("a", { x = "2" }), { field_manager = "other" })
			local forced = assert(k8s.apply(map("a", { x = "3" }), { field_manager = "other", force = true }))
			local tried = assert(k8s.apply(map("a", { x = "4" }), { force = true, dry_run = true }))
			return { none = value == nil, err = err, forced = forced.data, tried = tried.data }
		]]
		assert.is_true(answer.none)
		assert.same({ 409, "Conflict", ".data.x" }, { answer.err.code, answer.err.reason, answer.err.causes[1].field })
		assert.matches('"perilune/script"', answer.err.message, 1, true)
		assert.same({ { x = "3" }, { x = "4" } }, { answer.forced, answer.tried })
		local seen = get(map_path "a")
		assert.same({ x = "3" }, seen.data)
		assert.same({ "other", "Apply" }, { seen.metadata.managedFields[1].manager, seen.metadata.managedFields[1].operation })
	end)

	it("applies a status, and nothing but it", function()
		local answer = ask [[
			assert(k8s.apply(deployment "d"))
			local object = deployment "d"
			object.spec = nil
			object.status = { readyReplicas = 1, replicas = 1 }
			return assert(k8s.status.apply(object, { force = true }))
		]]
		assert.same({ 1, 1 }, { answer.spec.replicas, answer.status.readyReplicas })
	end)

	it("is known by its script's name in every write", function()
		ask [[
			local a = assert(k8s.create(map("a", { x = "1" })))
			a.data.x = "2"
			assert(k8s.update(a))
			assert(k8s.patch(map "a", { data = { y = "1" } }))
			assert(k8s.modify(map "a", function(object) object.data.z = "1" end))
			return {}
		]]
		local managers = get(map_path "a").metadata.managedFields
		assert.same({ 1, "perilune/script", "Update" }, { #managers, managers[1].manager, managers[1].operation })
	end)

	it("ensures: leaves out an apply that would change nothing, whatever the server made of the content", function()
		local answer = ask [[
			local deployments = sync { apiVersion = "apps/v1", kind = "Deployment" }
			local first = assert(k8s.ensure(deployment "d", { force = true }))
			local again = left_out(k8s.ensure(deployment "d", { force = true }))
			local other = left_out(k8s.ensure(deployment("d", { image = "example.com/c:2" }), { force = true }))
			local back = left_out(k8s.ensure(deployment "d", { force = true }))
			local at_last = left_out(k8s.ensure(deployment "d", { force = true }))
			return { first = first, again = again, other = other, back = back, at_last = at_last }
		]]
		assert.equal("1", answer.first.spec.template.spec.containers[1].resources.requests.cpu)
		assert.same({ true, false, false, true }, { answer.again, answer.other, answer.back, answer.at_last })
	end)

	it("ensures: repairs what others change, take away and delete", function()
		local answer = ask [[
			local maps = sync { apiVersion = "v1", kind = "ConfigMap" }
			local content = { x = "1", y = "1" }
			local function ensure() return left_out(k8s.ensure(map("a", content), { force = true })) end
			local function told(check) repeat k8s.sleep(0.01) until check(maps:get(ns, "a")) end
			local answer = { ensure(), ensure() }
			assert(k8s.patch(map "a", { data = { x = "2", z = "1" } }))
			told(function(a) return a and a.data.x == "2" end)
			answer[3], answer[4] = ensure(), ensure()
			assert(k8s.patch(map "a", { data = { y = k8s.null } }))
			told(function(a) return a and not a.data.y end)
			answer[5], answer[6] = ensure(), ensure()
			assert(k8s.delete(map "a"))
			told(function(a) return not a end)
			answer[7], answer[8] = ensure(), ensure()
			return answer
		]]
		assert.same({ false, true, false, true, false, true, false, true }, answer)
		assert.same({ x = "1", y = "1" }, get(map_path "a").data)
	end)

	it("ensures: repairs a field that an answer leaves out, and content that no answer shows", function()
		local answer = ask [[
			local deployments = sync { apiVersion = "apps/v1", kind = "Deployment" }
			local function ensure()
				local object = deployment "d"
				object.spec.paused = false
				return left_out(k8s.ensure(object, { force = true }))
			end
			local answer = { ensure(), ensure() }
			assert(k8s.patch(deployment "d", { spec = { paused = true } }))
			repeat k8s.sleep(0.01) until deployments:get(ns, "d").spec.paused
			answer[3], answer[4] = ensure(), ensure()
			local secrets = sync { apiVersion = "v1", kind = "Secret" }
			local function secret(text)
				return { apiVersion = "v1", kind = "Secret", metadata = { namespace = ns, name = "s" }, stringData = { a = text } }
			end
			answer[5], answer[6] = left_out(k8s.ensure(secret "b", { force = true })), left_out(k8s.ensure(secret "b", { force = true }))
			assert(k8s.patch(secret "c", { stringData = { a = "c" } }))
			assert(k8s.ensure(secret "b", { force = true }))
			return { answer, assert(k8s.get(secret "b")).data.a, assert(k8s.get(deployment "d")).spec.paused or false }
		]]
		assert.same({ { false, true, false, true, false, false }, "Yg==", false }, answer)
	end)

	it("modifies while others do the same, and loses nothing", function()
		ask [[
			assert(k8s.create(map("counter", { n = "0" })))
			local left, problem = 20, nil
			for _ = 1, 20 do
				k8s.on_synced(function()
					for _ = 1, 3 do
						local _, err
						repeat
							_, err = k8s.modify(map "counter", function(object)
								object.data.n = ("%d"):format(object.data.n + 1)
							end)
						until not err or err.reason ~= "Conflict"
						problem = problem or err
					end
					left = left - 1
				end)
			end
			repeat k8s.sleep(0.02) until left == 0
			assert(not problem, tostring(problem))
			return {}
		]]
		assert.equal("60", get(map_path "counter").data.n)
	end)

	it("scales", function()
		local answer = ask [[
			assert(k8s.create(deployment "d"))
			local scale = assert(k8s.scale({ apiVersion = "apps/v1", kind = "Deployment", namespace = ns, name = "d" }, 3))
			local _, err = k8s.scale(map "a", 3)
			return { scale.kind, scale.spec.replicas, assert(k8s.get(deployment "d")).spec.replicas, err.reason }
		]]
		assert.same({ "Scale", 3, 3, "NotFound" }, answer)
	end)

	it("sets an owner that the garbage collector goes by", function()
		ask [[
			local owner = assert(k8s.create(map "owner"))
			assert(k8s.create(k8s.set_owner(map "child", owner)))
			assert(k8s.apply(k8s.set_owner(map "applied", owner)))
			assert(k8s.delete(owner, { propagation = "Background" }))
			return {}
		]]
		cluster.await(30, "the children are gone", function()
			return cluster.curl("GET", map_path "child") == 404 and cluster.curl("GET", map_path "applied") == 404
		end)
	end)
end)
