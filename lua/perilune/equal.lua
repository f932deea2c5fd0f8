-- equal: k8s.equal(a, b): whether two values mean the same as JSON.

local k8s, core = ...

local getmetatable, next, rawequal, rawget, tostring, type = getmetatable, next, rawequal, rawget, tostring, type
local format, gsub = string.format, string.gsub

local DEEPEST = 512 -- as JSON may nest

-- The decimal digits of an integer, all of them; nil for what is none.
local function digits_of(value)
	if type(value) == "cdata" then
		return (gsub(tostring(value), "U?LL$", ""))
	end
	-- Adding 0 makes -0 a 0.
	return value % 1 == 0 and format("%.0f", value + 0) or nil
end

-- LuaJIT's own comparison of an int64_t with a double cuts the double's fraction off.
local function same_number(a, b)
	local digits = digits_of(a)
	return digits ~= nil and digits == digits_of(b)
end

-- As k8s.json.encode takes them.
local function is_array(value)
	local mark = getmetatable(value)
	return mark == "array" or (mark ~= "object" and rawget(value, 1) ~= nil)
end

local same

local function same_table(a, b, depth)
	if depth > DEEPEST then
		core.misuse "k8s.equal: nested deeper than 512, or a table that contains itself"
	end
	if is_array(a) ~= is_array(b) then
		return false
	end
	for key, value in next, a do
		local other = rawget(b, key)
		if other == nil or not same(value, other, depth + 1) then
			return false
		end
	end
	for key in next, b do
		if rawget(a, key) == nil then
			return false
		end
	end
	return true
end

local IS_NUMBER = { number = true, cdata = true }

function same(a, b, depth)
	local of_a, of_b = type(a), type(b)
	if rawequal(a, b) then
		return true
	elseif of_a == "table" and of_b == "table" then
		if getmetatable(a) == "quantity" or getmetatable(b) == "quantity" then
			return a == b
		end
		return same_table(a, b, depth)
	elseif of_a == "cdata" and IS_NUMBER[of_b] or of_b == "cdata" and IS_NUMBER[of_a] then
		return same_number(a, b)
	end
	return a == b
end

function k8s.equal(a, b)
	return same(a, b, 1)
end
