-- What handlers are told, against a plain model: whatever happens in the store, a handler's events applied to an empty map are the store.
local c = require "support.cache_units"
local cache = require "support.cache"
local ffi = c.ffi

-- The next that the filter lets through, where there is one.
local function pop(listener, filter)
	local out = ffi.new "struct notification"
	if not c.listener_pop(listener, out) then
		return nil
	end
	if filter and not c.filter_admit(filter, out) then
		c.notification_fini(out)
		c.listener_done(listener)
		return pop(listener, filter)
	end
	local event = {
		event = c.types[out.type], key = c.key(out.object), version = c.version(out.object), uid = c.uid(out.object),
		old = out.old ~= nil and c.version(out.old) or nil, initial = out.initial, resync = out.resync,
		final_state_unknown = out.final_state_unknown,
	}
	c.notification_fini(out)
	c.listener_done(listener)
	return event
end

local function line(event)
	return event.event .. " " .. event.key .. " " .. (event.old and event.old .. "->" or "") .. event.version
		.. (event.initial and " initial" or "") .. (event.resync and " resync" or "") .. (event.final_state_unknown and " unknown" or "")
end

describe("listener", function()
	local informer, store, live

	before_each(function()
		live = c.live()
		informer = c.informer()
		store = c.informer_store(informer.pointer)
	end)

	after_each(function()
		informer.free()
		assert.equal(live, c.live())
	end)

	local function listen(options)
		return c.listener_new(informer.pointer, ffi.new("struct listener_options", options or {}))
	end

	local function drain(listener)
		local lines = {}
		for event in function() return pop(listener) end do
			lines[#lines + 1] = line(event)
		end
		return lines
	end

	describe("merging", function()
		local listener, versions

		before_each(function()
			listener = listen()
			c.listener_open(listener)
			versions = {}
		end)

		after_each(function()
			c.listener_free(listener)
		end)

		local function object(name, version)
			local id = name .. version
			versions[id] = versions[id] or c.object { name = name, version = version }
			return versions[id]
		end

		local function tell(kind, name, version, old, flags)
			local notification = ffi.new("struct notification", flags or {})
			notification.type = ({ add = 0, update = 1, delete = 2 })[kind]
			notification.object = object(name, version)
			notification.old = old and object(name, old) or nil
			c.listener_notify(listener, notification)
		end

		it("an add and an update is an add of the new", function()
			tell("add", "a", 1)
			tell("add", "b", 2)
			tell("update", "a", 3, 1)
			assert.same({ "add a 3", "add b 2" }, drain(listener))
		end)

		it("an add and a delete is nothing", function()
			tell("add", "a", 1)
			tell("update", "a", 2, 1)
			tell("delete", "a", 3)
			assert.equal(0, tonumber(c.listener_depth(listener)))
			assert.same({}, drain(listener))
		end)

		it("updates are one from the oldest to the newest", function()
			tell("update", "a", 2, 1)
			tell("update", "a", 3, 2)
			tell("update", "a", 4, 3)
			assert.same({ "update a 1->4" }, drain(listener))
		end)

		it("updates are a resync only when all parts were", function()
			tell("update", "a", 1, 1, { resync = true })
			tell("update", "a", 1, 1, { resync = true })
			tell("update", "b", 1, 1, { resync = true })
			tell("update", "b", 2, 1)
			tell("update", "c", 2, 1)
			tell("update", "c", 2, 2, { resync = true })
			assert.same({ "update a 1->1 resync", "update b 1->2", "update c 1->2" }, drain(listener))
		end)

		it("an update and a delete is a delete", function()
			tell("update", "a", 2, 1)
			tell("delete", "a", 3, nil, { final_state_unknown = true })
			assert.same({ "delete a 3 unknown" }, drain(listener))
		end)

		it("a delete and an add are both, and what follows merges with the add", function()
			tell("delete", "a", 1)
			tell("add", "a", 2)
			tell("update", "a", 3, 2)
			assert.equal(2, tonumber(c.listener_depth(listener)))
			assert.same({ "delete a 1", "add a 3" }, drain(listener))
			tell("delete", "a", 4)
			tell("add", "a", 5)
			tell("delete", "a", 6)
			tell("add", "a", 7)
			tell("delete", "a", 8)
			assert.same({ "delete a 4" }, drain(listener))
		end)

		it("leaves alone what was popped", function()
			tell("add", "a", 1)
			assert.equal("add a 1", line(pop(listener)))
			tell("update", "a", 2, 1)
			tell("delete", "a", 3)
			tell("add", "a", 4)
			assert.equal("delete a 3", line(pop(listener)))
			tell("delete", "a", 5)
			assert.same({}, drain(listener))
			tell("add", "a", 6)
			assert.same({ "add a 6" }, drain(listener))
		end)
	end)

	it("that asks for every event is given every event", function()
		local listener = listen { every_event = true }
		c.listener_open(listener)
		local one, two = c.object { name = "a", version = 1 }, c.object { name = "a", version = 2 }
		local notification = ffi.new "struct notification"
		for _, step in ipairs { { 0, one }, { 1, two, one }, { 2, two }, { 0, one }, { 2, one } } do
			notification.type, notification.object, notification.old = step[1], step[2], step[3]
			c.listener_notify(listener, notification)
		end
		assert.same({ "add a 1", "update a 1->2", "delete a 2", "add a 1", "delete a 1" }, drain(listener))
		c.listener_free(listener)
	end)

	it("gives the store's content first, in its order", function()
		for i, name in ipairs { "c", "a", "b" } do
			c.store_put(store, c.object { name = name, version = i })
		end
		local listener = listen()
		c.listener_open(listener)
		assert.same({ "add c 1 initial", "add a 2 initial", "add b 3 initial" }, drain(listener))
		c.listener_free(listener)
	end)

	it("says once that it is ready, until it was found empty", function()
		local calls = 0
		local on_ready = ffi.cast("void (*)(void *)", function()
			calls = calls + 1
		end)
		local listener = listen { on_ready = on_ready }
		c.listener_open(listener)
		local notification = ffi.new "struct notification"
		local objects = {}
		local function tell()
			objects[#objects + 1] = c.object { name = "n" .. #objects, version = 1 }
			notification.object = objects[#objects]
			c.listener_notify(listener, notification)
		end
		tell()
		assert.equal(0, calls) -- never from inside the change
		tell()
		c.loop_turn(informer.loop, 0)
		assert.equal(1, calls)
		pop(listener)
		tell()
		pop(listener)
		pop(listener)
		c.loop_turn(informer.loop, 0)
		assert.equal(1, calls)
		assert.is_nil(pop(listener))
		tell()
		c.loop_turn(informer.loop, 0)
		assert.equal(2, calls)
		c.listener_free(listener)
		on_ready:free()
	end)

	-- Random changes through the same door as the reflector's; several listeners, opened at any time, some slow, some asking for every event,
	-- some with a filter, which has no answer for some objects.
	it("tells what leads to the store, whatever happens", function()
		local seed = c.seed()
		local listeners, version = {}, 0
		local apply = ffi.new "struct apply"
		local overlay = ffi.new "struct overlay"
		c.overlay_init(overlay, store)
		apply.store, apply.overlay = store, overlay
		local notify = ffi.cast("void (*)(void *, const struct notification *)", function(_, notification)
			for _, each in ipairs(listeners) do
				c.listener_notify(each.listener, notification)
			end
		end)
		apply.notify = notify
		local uids = {}
		local function verdict(held)
			return held % 7 == 0 and c.FAILS or held % 3 == 0 and c.REFUSES or c.PASSES
		end
		local test = ffi.cast("int (*)(void *, const struct object *)", function(_, object)
			return verdict(tonumber(c.version(object)))
		end)

		local function random_object(name)
			version = version + 1
			uids[name] = math.random() < 0.15 and "uid-" .. version or uids[name] or "uid-" .. version
			return c.object { name = name, namespace = "shop", uid = uids[name], version = version }
		end

		local function random_list()
			local objects = {}
			for i = 1, 12 do
				local held = c.store_get(store, "shop", "n" .. i)
				if held ~= nil and math.random() < 0.4 then
					objects[#objects + 1] = c.hold(held)
				elseif math.random() < 0.5 then
					objects[#objects + 1] = random_object("n" .. i)
				end
			end
			return objects
		end

		local function change()
			local name, chance = "n" .. math.random(12), math.random()
			local delta
			if chance < 0.6 then
				delta = c.put_delta(random_object(name))
			elseif chance < 0.95 then
				delta = c.delete_delta(random_object(name))
			else
				delta = c.replace_delta(random_list(), "shop", { truth = math.random() < 0.3 })
			end
			c.apply_delta(apply, delta, false, math.huge)
			c.delta_free(delta)
		end

		for step = 1, 4000 do
			change()
			if #listeners < 12 and math.random() < 0.01 then
				local each = { listener = listen { every_event = #listeners % 3 == 0 }, mirror = cache.mirror(), merges = #listeners % 3 ~= 0,
					speed = math.random(), filter = #listeners % 2 == 1 and c.filter_new(test, nil) or nil }
				listeners[#listeners + 1] = each
				-- What is open already is told by apply; so is this one, from here on.
				c.visit(function(callback)
					c.store_each(store, nil, callback, nil)
				end, function(object)
					local initial = ffi.new "struct notification"
					initial.object = object
					c.listener_notify(each.listener, initial)
				end)
			end
			for _, each in ipairs(listeners) do
				for _ = 1, math.random() < each.speed and math.random(0, 4) or 0 do
					local event = pop(each.listener, each.filter)
					if event then
						local ok, why = pcall(each.mirror.apply, each.mirror, event)
						assert(ok, seed .. " step " .. step .. ": " .. tostring(why))
					end
				end
				if each.merges then
					assert(c.listener_depth(each.listener) <= 24, seed)
				end
			end
		end
		local truth = {}
		for _, text in ipairs(c.visit(function(callback) c.store_each(store, nil, callback, nil) end)) do
			local key, held = text:match "^(%S+) (%S+)$"
			truth[key] = held
		end
		for _, each in ipairs(listeners) do
			for event in function() return pop(each.listener, each.filter) end do
				each.mirror:apply(event)
			end
			local expected = {}
			for key, held in pairs(truth) do
				local answer = each.filter and verdict(tonumber(held)) or c.PASSES
				local stays = answer == c.FAILS and each.mirror.map[key] ~= nil
				expected[key] = (stays or answer == c.PASSES) and held or nil
			end
			assert.same(expected, each.mirror.map, seed)
			c.listener_free(each.listener)
			c.filter_free(each.filter)
		end
		assert(#listeners > 5)
		c.overlay_fini(overlay)
		notify:free()
		test:free()
	end)
end)
