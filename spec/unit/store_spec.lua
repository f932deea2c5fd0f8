local c = require "support.cache_units"
local ffi = c.ffi

local NAMESPACES = { "", "shop", "farm", "moon" }
local LABELS = { "web", "api", "db" }

-- The same in plain Lua: objects in the order in which their keys first came.
local function model_new()
	return { order = {}, by_key = {} }
end

local function model_put(model, key, entry)
	if not model.by_key[key] then
		model.order[#model.order + 1] = key
	end
	model.by_key[key] = entry
end

local function model_remove(model, key)
	model.by_key[key] = nil
	for i, other in ipairs(model.order) do
		if other == key then
			table.remove(model.order, i)
		end
	end
end

local function model_list(model, accept)
	local found = {}
	for _, key in ipairs(model.order) do
		local entry = model.by_key[key]
		if accept(entry) then
			found[#found + 1] = key .. " " .. entry.version
		end
	end
	return found
end

local function sorted(list)
	table.sort(list)
	return list
end

describe("store", function()
	local store, live

	before_each(function()
		live = c.live()
		store = c.store_new()
	end)

	after_each(function()
		c.store_free(store)
		assert.equal(live, c.live())
	end)

	local function put(fields)
		local before = c.store_put(store, c.object(fields))
		local was = before ~= nil and c.version(before) or nil
		c.object_unref(before)
		return was
	end

	local function remove(key)
		local before = c.store_remove(store, key, #key)
		local was = before ~= nil and c.version(before) or nil
		c.object_unref(before)
		return was
	end

	local function list(namespace)
		return c.visit(function(callback)
			c.store_each(store, namespace, callback, nil)
		end)
	end

	local function find(index, value)
		return c.visit(function(callback)
			c.store_each_index(store, index, value, #value, callback, nil)
		end)
	end

	local function path_index(name, path)
		return c.store_add_index(store, name, c.store_path_index(c.json_path_new(path, nil)))
	end

	it("gives back what it replaced and removed", function()
		assert.is_nil(put { name = "a", namespace = "shop", version = 1 })
		assert.equal("1", put { name = "a", namespace = "shop", version = 2 })
		assert.equal("2", c.version(c.store_get(store, "shop", "a")))
		assert.is_true(c.store_get(store, "farm", "a") == nil)
		assert.equal("2", remove "shop/a")
		assert.is_nil(remove "shop/a")
		assert.equal(0, tonumber(c.store_count(store)))
		assert.equal(0, tonumber(c.store_bytes(store)))
	end)

	it("lists in the order in which keys first came", function()
		for i, name in ipairs { "c", "a", "b" } do
			put { name = name, namespace = "shop", version = i }
		end
		put { name = "c", namespace = "shop", version = 9 }
		assert.same({ "shop/c 9", "shop/a 2", "shop/b 3" }, list())
		remove "shop/c"
		put { name = "c", namespace = "shop", version = 10 }
		assert.same({ "shop/a 2", "shop/b 3", "shop/c 10" }, list())
	end)

	it("stops a list when asked to", function()
		for i = 1, 5 do
			put { name = "n" .. i, version = i }
		end
		local count = 0
		local callback = ffi.cast("store_visit_fn", function()
			count = count + 1
			return count < 2
		end)
		c.store_each(store, nil, callback, nil)
		callback:free()
		assert.equal(2, count)
	end)

	it("files strings, numbers and booleans of a path, each of several, and nothing else", function()
		assert.equal(0, path_index("v", "data.v[*]"))
		assert.equal(-1, c.store_add_index(store, "v", ffi.new "struct store_index_fn"))
		put { name = "a", version = 1, data = { v = { "x", 5, true, "x" } } }
		put { name = "b", version = 2, data = { v = { "y\n", {}, "x" } } }
		assert.same({ "a 1", "b 2" }, find("v", "x"))
		assert.same({ "a 1" }, find("v", "5"))
		assert.same({ "a 1" }, find("v", "true"))
		assert.same({ "b 2" }, find("v", "y\n"))
		assert.same({}, find("v", "z"))
		assert.same({}, find("none", "x"))
	end)

	it("touches only what changed in an index", function()
		-- The order in a value's list tells whether an entry was taken out and filed again.
		path_index("v", "data.v")
		put { name = "a", version = 1, data = { v = "x" } }
		put { name = "b", version = 2, data = { v = "x" } }
		put { name = "a", version = 3, data = { v = "x", other = "1" } }
		assert.same({ "a 3", "b 2" }, find("v", "x"))
		put { name = "a", version = 4, data = { v = "y" } }
		assert.same({ "b 2" }, find("v", "x"))
		assert.same({ "a 4" }, find("v", "y"))
	end)

	it("files in turns what was there before an index, whatever leaves or comes meanwhile", function()
		for i = 1, 6 do
			put { name = "n" .. i, version = i, data = { v = "x" } }
		end
		path_index("v", "data.v")
		assert.is_false(c.store_file_index(store, "v", 0))
		remove "n2" -- the next one
		put { name = "n3", version = 7, data = { v = "y" } }
		put { name = "n7", version = 8, data = { v = "x" } }
		while not c.store_file_index(store, "v", 0) do end
		c.store_check(store)
		assert.same({ "n1 1", "n4 4", "n5 5", "n6 6", "n7 8" }, sorted(find("v", "x")))
		assert.same({ "n3 7" }, find("v", "y"))
	end)

	it("is freed in turns", function()
		for i = 1, 300 do
			put { name = "n" .. i, version = i, data = { v = "x" } }
		end
		path_index("v", "data.v")
		find("v", "x")
		local turns = 1
		while not c.store_free_some(store, 0) do
			turns = turns + 1
		end
		assert.is_true(turns > 3)
		store = nil
	end)

	it("does what a plain model does, whatever happens", function()
		local seed = c.seed()
		local model, version, indexed = model_new(), 0, false
		for step = 1, 6000 do
			local where = seed .. " step " .. step
			local namespace, name = NAMESPACES[math.random(#NAMESPACES)], "n" .. math.random(40)
			local key = namespace == "" and name or namespace .. "/" .. name
			local chance = math.random()
			version = version + 1
			if chance < 0.6 then
				local label = LABELS[math.random(#LABELS)]
				local known = model.by_key[key]
				assert.equal(known and known.version, put { name = name, namespace = namespace ~= "" and namespace or nil,
					version = version, data = { label = label } }, where)
				model_put(model, key, { version = tostring(version), namespace = namespace, label = label })
			elseif chance < 0.95 then
				local known = model.by_key[key]
				assert.equal(known and known.version, remove(key), where)
				if known then
					model_remove(model, key)
				end
			elseif indexed then
				c.store_remove_index(store, "label")
				indexed = false
			else
				assert.equal(0, path_index("label", "data.label"))
				indexed = true
			end
			if step % 50 == 0 then
				c.store_check(store)
				assert.same(model_list(model, function() return true end), list(), where)
				for _, space in ipairs(NAMESPACES) do
					assert.same(model_list(model, function(entry) return entry.namespace == space end), list(space), where)
				end
				for _, label in ipairs(LABELS) do
					local expected = indexed and model_list(model, function(entry) return entry.label == label end) or {}
					assert.same(sorted(expected), sorted(find("label", label)), where)
				end
				assert.equal(indexed, c.store_has_index(store, "label"))
				assert.equal(#model.order, tonumber(c.store_count(store)))
			end
		end
	end)
end)
