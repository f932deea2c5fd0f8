-- path: k8s.path(object, path, default): what lies at a path of a table, whatever on the way there is absent or null.
--
-- The paths are those of core/json/path.c, without [*], as one value is asked for.

local k8s, core = ...

local rawget, tonumber, type = rawget, tonumber, type
local find, gsub, match, sub = string.find, string.gsub, string.match, string.sub
local misuse, null = core.misuse, k8s.null

-- Scripts write few paths and read them often. One that makes up new ones without end begins anew with each so many.
local MOST_KEPT = 256
local kept, kept_count = {}, 0

local function malformed(text, at, expected)
	misuse(("k8s.path: path \"%s\": expected %s at character %d"):format(text, expected, at))
end

-- All return the step, a key or a place in a Lua array, and where the text goes on.
local function read_bare(text, at)
	local key = match(text, "^[^.%[%]'\"*]+", at)
	if not key then
		malformed(text, at, "a key")
	end
	at = at + #key
	if at <= #text and not find(text, "^[.%[]", at) then
		malformed(text, at, "'.' or '['")
	end
	return key, at
end

-- A backslash takes the next character as it is.
local function read_quoted(text, at)
	local quote, from = sub(text, at, at), at + 1
	at = from
	while sub(text, at, at) ~= quote do
		at = at + (sub(text, at, at) == "\\" and 2 or 1)
		if at > #text then
			malformed(text, #text + 1, "the closing quote")
		end
	end
	return gsub(sub(text, from, at - 1), "\\(.)", "%1"), at + 1
end

local function read_index(text, at)
	local digits = match(text, "^%d+", at)
	if not digits then
		malformed(text, at, "an index or a key in quotes")
	end
	return tonumber(digits) + 1, at + #digits
end

local function read_bracket(text, at)
	local step
	if find(text, "^['\"]", at + 1) then
		step, at = read_quoted(text, at + 1)
	else
		step, at = read_index(text, at + 1)
	end
	if sub(text, at, at) ~= "]" then
		malformed(text, at, "']'")
	end
	return step, at + 1
end

local function parse(text)
	local steps, at = {}, 1
	repeat
		local is_bracket = sub(text, at, at) == "["
		if #steps > 0 and not is_bracket then
			if sub(text, at, at) ~= "." then
				malformed(text, at, "'.' or '['")
			end
			at = at + 1
		end
		steps[#steps + 1], at = (is_bracket and read_bracket or read_bare)(text, at)
	until at > #text
	return steps
end

local function steps_of(text)
	local steps = kept[text]
	if steps then
		return steps
	end
	steps = parse(text)
	if kept_count == MOST_KEPT then
		kept, kept_count = {}, 0
	end
	kept[text], kept_count = steps, kept_count + 1
	return steps
end

function k8s.path(object, path, default)
	if type(path) ~= "string" then
		misuse("k8s.path takes a path such as \"spec.replicas\", not a " .. type(path))
	end
	local steps, value = steps_of(path), object
	for i = 1, #steps do
		if type(value) ~= "table" then
			return default
		end
		value = rawget(value, steps[i])
	end
	if value == nil or value == null then
		return default
	end
	return value
end
