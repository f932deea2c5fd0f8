--- lexer: the text of a script as tokens.
--
-- Takes only what LuaJIT has compiled: nothing here checks what is well formed. Comments are left out.
local find, match, sub = string.find, string.match, string.sub

local KEYWORDS = {}
for word in ("and break do else elseif end false for function if in local nil not or repeat return then true until while"):gmatch "%a+" do
	KEYWORDS[word] = true
end

local lexer = {}

local function count_lines(text, from, to)
	local count, at = 0, find(text, "\n", from, true)
	while at and at <= to do
		count, at = count + 1, find(text, "\n", at + 1, true)
	end
	return count
end

-- The last byte of the long bracket that opens at `at`, and where its text begins; nil when none does.
local function long_bracket(text, at)
	local level = match(text, "^%[(=*)%[", at)
	if level then
		local _, last = find(text, "]" .. level .. "]", at + #level + 2, true)
		return last or #text, at + #level + 2
	end
end

local function short_string(text, at)
	local quote, here = sub(text, at, at), at + 1
	while true do
		here = find(text, "[\\" .. quote .. "]", here)
		if not here or sub(text, here, here) == quote then
			return here or #text
		end
		here = here + 2
		if sub(text, here - 1, here - 1) == "z" then
			here = find(text, "%S", here) or #text
		end
	end
end

local function number(text, at)
	local hexadecimal = match(text, "^0[xX][%x.]*[pP]?()", at)
	local last = hexadecimal and match(text, "^[+-]?%w*()", hexadecimal) or match(text, "^[%d.]*()", at)
	if not hexadecimal then
		last = match(text, "^[eE][+-]?%d+()", last) or last
		last = match(text, "^%w*()", last)
	end
	return last - 1
end

-- The place behind blanks and comments.
local function skip(text, at)
	while true do
		at = find(text, "%S", at)
		if not at or sub(text, at, at + 1) ~= "--" then
			return at
		end
		local last = long_bracket(text, at + 2)
		at = (last or (find(text, "\n", at, true) or #text)) + 1
	end
end

local OPERATORS = { ["..."] = true, [".."] = true, ["=="] = true, ["~="] = true, ["<="] = true, [">="] = true, ["::"] = true }

local function operator(text, at)
	for length = 3, 2, -1 do
		if OPERATORS[sub(text, at, at + length - 1)] then
			return at + length - 1
		end
	end
	return at
end

-- The last byte of the token at `at`, its type, and its value.
local function token(text, at)
	local first = sub(text, at, at)
	local word = match(text, "^[%a_\128-\255][%w_\128-\255]*", at)
	if word then
		return at + #word - 1, KEYWORDS[word] and "keyword" or "name", word
	elseif find(text, "^%.?%d", at) then
		return number(text, at), "number", ""
	elseif first == '"' or first == "'" then
		local last = short_string(text, at)
		return last, "string", sub(text, at + 1, last - 1)
	end
	local last, from = long_bracket(text, at)
	if last then
		return last, "string", sub(text, from, last - (from - at))
	end
	last = operator(text, at)
	return last, "operator", sub(text, at, last)
end

--- The tokens: { types = { "name", ... }, values = { "k8s", ... }, lines = { 1, ... } }. The type of the last is "end".
function lexer.read(text)
	local types, values, lines = {}, {}, {}
	local line, counted, count = 1, 1, 0
	local at = skip(text, (match(text, "^#[^\n]*()") or 1))
	while at do
		local last
		count = count + 1
		line, counted = line + count_lines(text, counted, at - 1), at
		lines[count] = line
		last, types[count], values[count] = token(text, at)
		at = skip(text, last + 1)
	end
	types[count + 1], values[count + 1], lines[count + 1] = "end", "", line
	return { types = types, values = values, lines = lines }
end

return lexer
