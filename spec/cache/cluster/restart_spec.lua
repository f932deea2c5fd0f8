-- A real API server is killed and comes back while objects change: no handler misses anything, or hears it twice.
local cache = require "support.cache"
local own_cluster = require "support.own_cluster"
local process = require "support.process"

local NAMES = 20
local KILLS = 2

describe("an informer of a server that is killed", function()
	local own, driver, path

	before_each(function()
		own = own_cluster.start()
		path = "/api/v1/namespaces/" .. own:namespace() .. "/configmaps"
		driver = cache.start(own.kubeconfig)
	end)

	after_each(function()
		driver:finish()
	end)

	local round = 0

	-- Creates, changes or deletes; what the server said yes to goes into `state`, and each version into `written`.
	local function write(state, written)
		round = round + 1
		local name = "m" .. round % NAMES
		local status, answer
		if not state[name] then
			status, answer = own:curl("POST", path, { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name } })
		elseif round % 7 == 0 then
			status = own:curl("DELETE", path .. "/" .. name)
		else
			status, answer = own:curl("PATCH", path .. "/" .. name, { data = { round = tostring(round) } })
		end
		if status == 200 or status == 201 then
			state[name] = answer and answer.metadata.resourceVersion or nil
			written[#written + 1] = answer and name .. " " .. answer.metadata.resourceVersion
		end
		return status
	end

	-- The truth, asked of the server itself.
	local function listed()
		local _, list = own:curl("GET", path)
		local map = {}
		for _, item in ipairs(list.items) do
			map[item.metadata.namespace .. "/" .. item.metadata.name] = item.metadata.resourceVersion
		end
		return map
	end

	local function apply_rest(mirror, handler)
		for _, event in ipairs(driver:rest(handler)) do
			if event.key then
				mirror:apply(event)
			end
		end
	end

	local function await_equal(informer, seconds)
		local deadline = process.now() + seconds
		while true do
			local truth, held = listed(), driver:store(informer)
			if pcall(assert.same, truth, held) then
				return truth
			end
			assert(process.now() < deadline, "the cache does not become what the server has")
		end
	end

	it("tells each change once, and holds what the server holds", function()
		local namespace = path:match "/namespaces/([^/]+)"
		driver:order("informer", { id = "i", apiVersion = "v1", kind = "ConfigMap", namespaces = namespace })
		driver:order("listen", { id = "every", informer = "i", open = 1, every = 1 })
		driver:order("listen", { id = "merged", informer = "i", open = 1, hold = 1 })
		driver:order "start"
		driver:event("synced", "every")
		local state, written, mirror, merged = {}, {}, cache.mirror(), cache.mirror()
		for kill = 1, KILLS do
			for _ = 1, 25 do
				assert.not_equal(0, write(state, written))
			end
			own:run("stop-apiserver", "KILL")
			assert.equal(0, write(state, written))
			driver:event("change", "i", 10, function(event)
				return event.wait ~= nil
			end)
			assert(own:run "start-apiserver")
			driver:advance(60)
			for _ = 1, 25 do
				write(state, written)
			end
			local truth = await_equal("i", 60)
			apply_rest(mirror, "every")
			assert.same(truth, mirror.map, "after kill " .. kill)
		end
		-- All that the server said yes to was told, unless it was overtaken while nobody could watch.
		local told = 0
		for _, one in ipairs(written) do
			local key, version = one:match "^(%S+) (%S+)$"
			for seen in pairs(mirror.seen) do
				local seen_key, seen_version = seen:match "^(%S+) %S+ (%S+)$"
				told = told + (seen_key == namespace .. "/" .. key and seen_version == version and 1 or 0)
			end
		end
		assert(told >= #written - KILLS * NAMES, ("%d of %d were told"):format(told, #written))
		driver:order("drain", { id = "merged" })
		driver:ask("stats", { id = "merged" })
		apply_rest(merged, "merged")
		assert.same(mirror.map, merged.map)
	end)
end)
