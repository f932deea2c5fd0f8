-- Each fault on its whole way: from the spec through the sandbox and the wire to an informer, which gets over it.
local files = require "support.files"
local testing = require "perilune.testing"

-- Keeps in the map default/seen what its handlers were told: a name and its version for each object. With a page_size it
-- lists and then watches; without one its first watch brings the initial state.
local SCRIPT = [[
local k8s = require "perilune"
local seen = { apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "seen" }
local function note(map, version)
	assert(k8s.patch(seen, { data = { [map.metadata.name] = version } }))
end
local function keep(map)
	note(map, map.metadata.resourceVersion)
end
k8s.informer({ apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = tonumber(k8s.config.page_size) }):add_event_handler {
	add = keep, update = keep, delete = function(map) note(map, k8s.null) end,
}
]]

local LONG = 1200 -- seconds: beyond every deadline of a watch

local function map(namespace, name, data)
	return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = namespace, name = name }, data = data }
end

local ROWS = {
	list = {
		{ action = "status", code = 500 },
		{ action = "status", code = 429, retry_after = 7, times = 2 },
		{ action = "status", code = 403, reason = "Forbidden" },
		{ action = "expire" },
		{ action = "cut", bytes = 40 },
		{ action = "reset" },
		{ action = "silence" },
		{ action = "slow", bytes_per_second = 200 },
		{ action = "garbage", times = 2 },
		{ action = "wrong_kind" },
		{ action = "duplicate" },
		{ action = "unauthorized" },
		{ action = "restart" },
	},
	watch = {
		{ action = "status", code = 503, retry_after = 2 },
		{ action = "status", code = 500, after = 1 },
		{ action = "status", code = 429, after = 1, retry_after = 3 },
		{ action = "expire" },
		{ action = "expire", after = 1 },
		{ action = "cut", bytes = 40 },
		{ action = "cut", bytes = 40, after = 2 },
		{ action = "reset" },
		{ action = "reset", after = 1 },
		{ action = "silence" },
		{ action = "silence", after = 1 },
		{ action = "slow", bytes_per_second = 100 },
		{ action = "slow", bytes_per_second = 100, after = 1 },
		{ action = "garbage", times = 3 },
		{ action = "wrong_kind" },
		{ action = "duplicate", times = 2 },
		{ action = "unauthorized" },
		{ action = "restart" },
		{ action = "restart", after = 1 },
	},
	["watch from the beginning"] = {
		{ action = "no_end_bookmark" },
		{ action = "status", code = 422, reason = "Invalid" },
		{ action = "status", code = 503, retry_after = 2 },
		{ action = "status", code = 500, after = 2 },
		{ action = "expire" },
		{ action = "expire", after = 2 },
		{ action = "cut", bytes = 40, after = 2, times = 2 },
		{ action = "reset", after = 2 },
		{ action = "silence", after = 2 },
		{ action = "slow", bytes_per_second = 100 },
		{ action = "garbage", after = 2 },
		{ action = "duplicate", times = 2 },
		{ action = "unauthorized" },
		{ action = "restart", after = 2 },
	},
}

local function title(order)
	local words = {}
	for name, value in pairs(order) do
		words[#words + 1] = name ~= "action" and ("%s = %s"):format(name, value) or nil
	end
	table.sort(words)
	return order.action .. (#words > 0 and " with " or "") .. table.concat(words, ", ")
end

local function versions(cluster)
	local found = {}
	for _, one in ipairs(assert(cluster:list { apiVersion = "v1", kind = "ConfigMap", namespace = "shop" })) do
		found[one.metadata.name] = one.metadata.resourceVersion
	end
	return found
end

describe("a fault of", function()
	local cluster

	before_each(function()
		cluster = testing.cluster()
		assert(cluster:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "shop" } })
		assert(cluster:create(map("default", "seen")))
		for _, name in ipairs { "a", "b", "c", "d", "e" } do
			assert(cluster:create(map("shop", name)))
		end
	end)

	local function load(page_size)
		cluster:load(files.write(files.folder() .. "/notes.lua", SCRIPT), { config = { page_size = page_size } })
		cluster:settle()
	end

	local function agree()
		local seen = assert(cluster:get(map("default", "seen"))).data
		assert.same(versions(cluster), seen)
	end

	-- The first list comes whole from the server's cache; after a gap it comes in pages.
	for _, action in ipairs { "expire", "cut", "status", "reset", "garbage" } do
		it("the second page of a list: " .. action, function()
			local fault = cluster:fault { verb = "list", resource = "configmaps", page = 2, action = action, code = action == "status" and 500 or nil }
			load(2)
			local gap = cluster:fault { verb = "watch", resource = "configmaps", action = "expire" }
			cluster:restart()
			assert(cluster:delete(map("shop", "b")))
			cluster:advance(LONG)
			assert.equal(1, gap.fired)
			assert.equal(1, fault.fired)
			agree()
		end)
	end

	for what, orders in pairs(ROWS) do
		describe("a " .. what, function()
			for _, order in ipairs(orders) do
				it(title(order), function()
					local whole = { verb = what:match "^%l+", resource = "configmaps" }
					for name, value in pairs(order) do
						whole[name] = value
					end
					local fault = cluster:fault(whole)
					load(what ~= "watch from the beginning" and 2 or nil)
					assert(cluster:update(map("shop", "a", { one = "1" })))
					assert(cluster:delete(map("shop", "b")))
					cluster:advance(LONG)
					for name, value in pairs { a = "2", c = "1" } do
						assert(cluster:update(map("shop", name, { one = value }))) -- a once more: an event of another kind is skipped
					end
					assert(cluster:create(map("shop", "f")))
					assert(cluster:delete(map("shop", "d")))
					cluster:advance(LONG)
					assert.equal(order.times or 1, fault.fired)
					agree()
				end)
			end
		end)
	end
end)
