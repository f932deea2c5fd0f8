-- The judge of the convergence specs sees each lie that a handler can be told.
local judges = require "testing.convergence.judge"

local function pod(name, version, uid)
	return { metadata = { namespace = "red", name = name, resourceVersion = tostring(version), uid = uid or "uid-" .. name } }
end

local function event(kind, fields)
	fields = fields or {}
	fields.type = kind
	return fields
end

-- Each call: { object, event }.
local function problems_of(calls, synced)
	local judge = judges.new { has_synced = function() return synced end }
	for _, call in ipairs(calls) do
		judge:event(call[1], call[2])
	end
	return judge.problems
end

local ADDED = { pod("a", 5), event "add" }

describe("the judge", function()
	it("has nothing against a life from the initial add to the next uid", function()
		assert.same({}, problems_of {
			{ pod("a", 5), event("add", { initial = true }) },
			{ pod("a", 6), event("update", { old = pod("a", 5) }) },
			{ pod("a", 6), event("update", { old = pod("a", 6), resync = true }) },
			{ pod("a", 7), event "delete" },
			{ pod("a", 9, "uid-other"), event "add" },
		})
	end)

	local lies = {
		["an add of what is known"] = { ADDED, { pod("a", 6), event "add" } },
		["an update of what is not known"] = { { pod("a", 5), event("update", { old = pod("a", 4) }) } },
		["a delete of what is not known"] = { ADDED, { pod("b", 6), event "delete" } },
		["a second delete"] = { ADDED, { pod("a", 6), event "delete" }, { pod("a", 6), event "delete" } },
		["an old that was not told last"] = { ADDED, { pod("a", 7), event("update", { old = pod("a", 6) }) } },
		["a version that goes back"] = { ADDED, { pod("a", 4), event("update", { old = pod("a", 5) }) } },
		["a version that goes back after a delete"] = { ADDED, { pod("a", 6), event "delete" }, { pod("a", 5), event "add" } },
		["an update that changes nothing"] = { ADDED, { pod("a", 5), event("update", { old = pod("a", 5) }) } },
		["a resync that changes something"] = { ADDED, { pod("a", 6), event("update", { old = pod("a", 5), resync = true }) } },
		["another uid without a delete"] = { ADDED, { pod("a", 6, "uid-other"), event("update", { old = pod("a", 5) }) } },
		["a delete of another uid"] = { ADDED, { pod("a", 6, "uid-other"), event "delete" } },
		["an initial update"] = { ADDED, { pod("a", 6), event("update", { old = pod("a", 5), initial = true }) } },
		["a resync that is an add"] = { { pod("a", 5), event("add", { resync = true }) } },
	}
	for what, calls in pairs(lies) do
		it("sees " .. what, function()
			assert.equal(1, #problems_of(calls))
		end)
	end

	it("sees an initial add after the handler had synced", function()
		assert.equal(1, #problems_of({ { pod("a", 5), event("add", { initial = true }) } }, true))
	end)

	it("sees what differs between two maps, on either side", function()
		local texts = judges.differences({ x = pod("x", 1), y = pod("y", 1) }, "one", { y = pod("y", 2), z = pod("z", 1) }, "two")
		table.sort(texts)
		assert.equal(3, #texts)
		assert.truthy(texts[1]:find "red/x.*is in one and not in two")
		assert.truthy(texts[2]:find "red/y.*differs")
		assert.truthy(texts[3]:find "red/z.*is in two and not in one")
		assert.same({}, judges.differences({ x = pod("x", 1) }, "one", { x = pod("x", 1) }, "two"))
	end)
end)
