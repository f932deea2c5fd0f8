-- Connections to a real API server that break off at any byte: of the TLS handshake, HTTP/2's preface, a list, a watch. What an
-- informer and its handler hold afterwards is what the server holds.
local cache = require "support.cache"
local cluster = require "support.cluster"
local kube = require "support.kube"
local process = require "support.process"
local proxy = require "support.proxy"
local seed_random = require "support.seed"

local it = cluster.when_up(it)

local OBJECTS = 40
local ROUNDS = 200
local SECONDS = 60

describe("a connection that breaks off at any byte", function()
	local seed = seed_random()

	-- Writes ConfigMaps around the wire, over a connection of its own; `held` is what the server then holds.
	local function new_writer(namespace)
		local path, driver = "/api/v1/namespaces/" .. namespace .. "/configmaps", kube.start { kubeconfig = cluster.kubeconfig() }
		local writer = { held = {}, count = 0 }

		local function send(method, name, body)
			local done = driver:request { method = method, path = method == "POST" and path or path .. "/" .. name, body = body,
				content_type = method == "PATCH" and "application/merge-patch+json" or nil }
			assert.is_nil(done.err, done.err and done.err.message)
			return done
		end

		function writer.write(name)
			writer.count = writer.count + 1
			local key = namespace .. "/" .. name
			local data = { count = tostring(writer.count), text = ("x"):rep(1500) }
			if not writer.held[key] then
				writer.held[key] = send("POST", name, { metadata = { name = name }, data = data }).body.metadata.resourceVersion
			elseif math.random(4) == 1 then
				send("DELETE", name)
				writer.held[key] = nil
			else
				writer.held[key] = send("PATCH", name, { data = data }).body.metadata.resourceVersion
			end
		end

		function writer.finish()
			driver:finish()
		end

		return writer
	end

	-- From the first bytes of a handshake to the last of a list.
	local function random_place()
		local direction = math.random(4) == 1 and "up" or "down"
		local most = direction == "up" and 5000 or 100000
		return direction, math.floor(math.exp(math.random() * math.log(most)))
	end

	it("leaves store and handler as the server is, after each of " .. ROUNDS, function()
		local namespace = cluster.namespace()
		local wire = proxy.start(cluster.server())
		local writer = new_writer(namespace)
		for i = 1, OBJECTS do
			writer.write("item-" .. i)
		end
		local driver, mirror = cache.start(wire:kubeconfig(cluster)), cache.mirror()
		driver:follow { id = "i", apiVersion = "v1", kind = "ConfigMap", namespaces = namespace, fields = "metadata.name!=kube-root-ca.crt" }

		local function is_equal()
			local store = driver:store "i"
			for _, event in ipairs(driver:rest "h") do
				if event.key then
					mirror:apply(event)
				end
			end
			return pcall(assert.same, writer.held, store) and pcall(assert.same, writer.held, mirror.map)
		end

		-- Lets the time between two attempts pass.
		local function expect_equal(what)
			local deadline = process.now() + SECONDS
			while not is_equal() do
				local wait = driver:ask("report", { id = "i" }).wait
				if wait and wait > 0 then
					driver:advance(wait)
				else
					driver.child:pump(0.01)
				end
				assert(process.now() < deadline, ("%s: not what the server holds, %s"):format(what, seed))
			end
		end

		expect_equal "at first"
		local planned = 0
		for round = 1, ROUNDS do
			local direction, after = random_place()
			wire:cut { scope = "next", after = after, direction = direction }
			local open, cut = #wire:connections(), wire:counts().fired.cut
			wire[round % 2 == 0 and "cut" or "reset"](wire)
			writer.write("item-" .. math.random(OBJECTS))
			expect_equal(("round %d, cut at byte %d %s"):format(round, after, direction))
			planned = planned + wire:counts().fired.cut - cut - (round % 2 == 0 and open or 0)
		end
		local report = driver:ask("report", { id = "i" })
		assert(planned > ROUNDS / 2, ("only %d of %d cuts have struck, %s"):format(planned, ROUNDS, seed))
		assert(report.lists > 1, "no cut has led to another list, " .. seed)
		driver:finish()
		writer.finish()
		wire:close()
	end)
end)
