-- state: k8s.state, and what becomes of it when other code takes the script's place.
--
-- That code gets all of it when it is loaded, and when it takes the place what has changed since then: what it made of
-- the rest meanwhile stays. A table that it holds is still the one in k8s.state after that.

local k8s, core = ...

local getmetatable, next, rawget, rawset, type = getmetatable, next, rawget, rawset, type
local equal = k8s.equal

local state = {}
local given = {} -- as it was at the load; nothing of it is in state

local function is_array(value)
	return getmetatable(value) == "array"
end

local function fill(array, values)
	for i in next, array do
		rawset(array, i, nil)
	end
	for i, value in next, values do
		rawset(array, i, value)
	end
end

local follow

-- The value of one name is now this, and was before that.
local function follow_value(held, name, before, now)
	local mine = rawget(held, name)
	if type(mine) ~= "table" or type(now) ~= "table" or is_array(mine) ~= is_array(now) then
		if not equal(before, now) then
			rawset(held, name, now)
		end
	elseif not is_array(now) then
		follow(mine, type(before) == "table" and before or {}, now)
	elseif not equal(before, now) then
		fill(mine, now)
	end
end

function follow(held, before, now)
	for name in next, before do
		if rawget(now, name) == nil then
			rawset(held, name, nil)
		end
	end
	for name, value in next, now do
		follow_value(held, name, rawget(before, name), value)
	end
end

-- now: what the code before holds. copy: the same again where that goes on; nil in the end.
function core.take(now, copy)
	follow(state, given, now)
	given = copy
end

k8s.state, core.state = state, state
