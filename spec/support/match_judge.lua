-- Run by script_driver: holds the string functions of scripts against LuaJIT's own, on COUNT generated cases from SEED on.
local open, seed, count = ...

local NAMES = { "find", "match", "gmatch", "gsub" }

local function functions()
	local copy = {}
	for _, name in ipairs(NAMES) do
		copy[name] = string[name]
	end
	return copy
end

local theirs = functions()
open()
local ours = functions()

local random = math.random
math.randomseed(tonumber(seed))

local function one_of(list)
	return list[random(#list)]
end

local BYTES = { "a", "a", "a", "b", "b", "c", "A", "1", " ", ".", "%", "-", "]", "[", "^", "$", "(", ")", "\0", "\n", "_", "\127", "\200" }
local CLASSES = { "a", "c", "d", "g", "l", "p", "s", "u", "w", "x", "z", "A", "D", "L", "S", "W", "Z", "h", ".", "%", "]", "0", "1" }
local FEW = { "a", "b" }

local function text(most, bytes)
	local out = {}
	for i = 1, random(0, most) do
		out[i] = one_of(bytes)
	end
	return table.concat(out)
end

local function subject()
	return text(random(3) == 1 and 40 or 10, random(2) == 1 and FEW or BYTES)
end

local function class()
	return "%" .. one_of(CLASSES)
end

local function set()
	local out = { random(4) == 1 and "[^" or "[" }
	for _ = 1, random(0, 4) do
		local kind = random(4)
		out[#out + 1] = kind == 1 and class() or kind == 2 and one_of(BYTES) .. "-" .. one_of(BYTES) or one_of(BYTES)
	end
	return table.concat(out) .. (random(30) == 1 and "" or "]")
end

local left -- quantifiers that the pattern may still have: each multiplies the time

local function single()
	local kind = random(10)
	local item = kind <= 4 and one_of(FEW) or kind == 5 and one_of(BYTES) or kind == 6 and "." or kind <= 8 and class() or set()
	if left > 0 and random(2) == 1 then
		left = left - 1
		return item .. one_of { "*", "+", "-", "?" }
	end
	return item
end

local items

local function item(depth)
	local kind = random(24)
	if kind == 1 then
		return "%b" .. one_of { "()", "ab", "aa", "[]", "", "a" }
	elseif kind == 2 then
		return "%f" .. (random(20) == 1 and "" or set())
	elseif kind == 3 then
		return "%" .. random(0, 3)
	elseif kind == 4 then
		return "()"
	elseif kind <= 7 and depth < 3 then
		return "(" .. items(depth + 1) .. ")"
	elseif kind == 8 then
		return one_of { "(", ")", "$", "^", "%", "\0", "*", "-" }
	end
	return single()
end

function items(depth)
	local out = {}
	for i = 1, random(0, 4) do
		out[i] = item(depth)
	end
	return table.concat(out)
end

local function pattern()
	left = 4
	if random(200) == 1 then
		return ("a?"):rep(random(197, 203)) .. ("()"):rep(random(0, 34))
	elseif random(200) == 1 then
		return ("()"):rep(random(30, 34))
	end
	return (random(6) == 1 and "^" or "") .. items(0) .. (random(8) == 1 and "$" or "")
end

local function number()
	return one_of { nil, 0, 1, 2, 3, 7, 50, -1, -2, -5, -50, 1.5, -1.5, "2", 2 ^ 31, 2 ^ 40, 1e300, math.huge, -math.huge, {} }
end

-- As often as not none at all, and not a nil.
local function start()
	return random(2) == 1 and number() or nil
end

local function replacement_text()
	local out = {}
	for i = 1, random(0, 4) do
		out[i] = random(2) == 1 and one_of { "%0", "%1", "%2", "%%", "%a", "%" } or one_of(BYTES)
	end
	return table.concat(out)
end

local REPLACEMENTS = {
	replacement_text,
	replacement_text,
	function()
		return { a = "x", b = false, [1] = "place", [3] = 7, ab = random(9) == 1 and {} or "y" }
	end,
	function()
		return function(first, second)
			return first == "a" and "<" .. tostring(second) .. ">" or first == 2 and 1.5 or first == "b" and nil
		end
	end,
	function()
		return one_of { 12, true, false, type }
	end,
}

local function all_of(iterator)
	local out = {}
	for _ = 1, 100 do
		local found = { iterator() }
		if #found == 0 then
			return out
		end
		out[#out + 1] = found
	end
end

local CALLS = {
	find = function(library, case)
		return library.find(case.subject, case.pattern, case.start, case.plain)
	end,
	match = function(library, case)
		return library.match(case.subject, case.pattern, case.start)
	end,
	gmatch = function(library, case)
		return all_of(library.gmatch(case.subject, case.pattern))
	end,
	gsub = function(library, case)
		return library.gsub(case.subject, case.pattern, case.replacement, case.start)
	end,
}

local function show(value)
	if type(value) ~= "table" then
		return type(value) == "string" and theirs.gsub(string.format("%q", value), "%z", "\\0") or tostring(value)
	end
	local out = {}
	for i, inner in ipairs(value) do
		out[i] = show(inner)
	end
	return "{" .. table.concat(out, ", ") .. "}"
end

local function shown(...)
	local out = {}
	for i = 1, select("#", ...) do
		out[i] = show((select(i, ...)))
	end
	return table.concat(out, " ")
end

local function outcome(library, name, case)
	return shown(pcall(CALLS[name], library, case))
end

local function describe(name, case)
	return ("%s(%s, %s, %s, %s, %s)"):format(name, show(case.subject), show(case.pattern), show(case.start), show(case.plain), show(case.replacement))
end

local matches, errors = 0, 0
for i = 1, tonumber(count) do
	local case = { subject = subject(), pattern = pattern(), start = start(), plain = random(10) == 1, replacement = one_of(REPLACEMENTS)() }
	local name = one_of(NAMES)
	local want, got = outcome(theirs, name, case), outcome(ours, name, case)
	if want ~= got then
		error(("case %d: %s\nLuaJIT: %s\nours:   %s"):format(i, describe(name, case), want, got), 0)
	end
	if theirs.find(want, "^false") then
		errors = errors + 1
	elseif not theirs.find(want, "^true nil") and not theirs.find(want, "^true {}") then
		matches = matches + 1
	end
end
print(("%d matches, %d errors"):format(matches, errors))
