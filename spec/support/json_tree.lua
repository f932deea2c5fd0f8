--- An independent reading of JSON for specs, to hold the program's own against: text in, a tree out in which nothing is lost.
--
-- Objects are { o = { [name] = value } }, arrays { a = { ... } }, strings { s = text }, numbers { n = text } in one spelling (integers as written, others
-- by value), true, false and null as { w = word }. The text is taken to be valid.
local json_tree = {}

local function utf8(code)
	local char, floor = string.char, math.floor
	if code < 0x80 then
		return char(code)
	elseif code < 0x800 then
		return char(0xC0 + floor(code / 64), 0x80 + code % 64)
	elseif code < 0x10000 then
		return char(0xE0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64)
	end
	return char(0xF0 + floor(code / 262144), 0x80 + floor(code / 4096) % 64, 0x80 + floor(code / 64) % 64, 0x80 + code % 64)
end

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function unescape(text)
	text = text:gsub("\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)", function(high, low)
		return utf8(0x10000 + (tonumber(high, 16) - 0xD800) * 1024 + tonumber(low, 16) - 0xDC00)
	end)
	-- From the left, so that an escaped backslash never starts another escape.
	return (text:gsub("\\(.)(%x?%x?%x?%x?)", function(kind, digits)
		if kind == "u" then
			return utf8(tonumber(digits, 16))
		end
		return (escapes[kind] or kind) .. digits
	end))
end

local function number(text)
	if text:match "^%-?%d+$" and text ~= "-0" then
		return text
	end
	return ("%.17g"):format(tonumber(text))
end

local value

local function skip(text, at)
	return text:match("^[ \t\r\n]*()", at)
end

local function string_at(text, at)
	local from = at + 1
	while true do
		local stop = text:find('["\\]', at + 1)
		if text:sub(stop, stop) == '"' then
			return unescape(text:sub(from, stop - 1)), stop + 1
		end
		at = stop + 1
	end
end

local function members(text, at, close, one)
	at = skip(text, at)
	while text:sub(at, at) ~= close do
		at = skip(text, one(at))
		if text:sub(at, at) == "," then
			at = skip(text, at + 1)
		end
	end
	return at + 1
end

function value(text, at)
	local first = text:sub(at, at)
	if first == "{" then
		local object = {}
		return { o = object }, members(text, at + 1, "}", function(from)
			local name, colon = string_at(text, from)
			object[name], from = value(text, skip(text, skip(text, colon) + 1))
			return from
		end)
	elseif first == "[" then
		local array = {}
		return { a = array }, members(text, at + 1, "]", function(from)
			array[#array + 1], from = value(text, from)
			return from
		end)
	elseif first == '"' then
		local content, behind = string_at(text, at)
		return { s = content }, behind
	end
	local word, behind = text:match("^([%w%+%-%.]+)()", at)
	return word:match "^[%d%-]" and { n = number(word) } or { w = word }, behind
end

function json_tree.read(text)
	return (value(text, skip(text, 1)))
end

--- nil when they mean the same, else the path of the first difference.
function json_tree.difference(a, b, path)
	path = path or "$"
	for _, kind in ipairs { "s", "n", "w" } do
		if a[kind] ~= b[kind] then
			return ("%s: %s, not %s"):format(path, tostring(b[kind]), tostring(a[kind]))
		end
	end
	for _, kind in ipairs { "o", "a" } do
		if (a[kind] == nil) ~= (b[kind] == nil) then
			return path .. ": an object is no array"
		end
		for key, inner in pairs(a[kind] or {}) do
			if not b[kind][key] then
				return path .. "." .. key .. ": lost"
			end
			local found = json_tree.difference(inner, b[kind][key], path .. "." .. key)
			if found then
				return found
			end
		end
		for key in pairs(b[kind] or {}) do
			if not a[kind][key] then
				return path .. "." .. key .. ": appeared"
			end
		end
	end
end

return json_tree
