--- words: the names in what a spec asks for or orders. One that nothing has would fit nothing, and look like success.
--
-- Each function gives what is wrong, or nil. nearest(word, names) finds the name that was meant.
local faults = require "perilune.sandbox.faults"

local words = {}

local function set(text)
	local names = {}
	for name in text:gmatch "%S+" do
		names[name] = true
	end
	return names
end

local METHODS = set "GET POST PUT PATCH DELETE"
local LEVELS = set "debug info warn error"
local LOG_KEYS = set "time level msg script informer controller kind namespace name attempt error file"
local ELSEWHERE = { lvl = "level", severity = "level", message = "msg" } -- what other logs call them

local function all_text(filter)
	for name, value in pairs(filter) do
		if type(value) ~= "string" then
			return ("'%s' must be a string, not a %s"):format(tostring(name), type(value))
		end
	end
end

-- "Pod" and "pod" mean pods where a resource is asked for.
local function meant(kinds, field, word, nearest)
	local names = {}
	for _, row in ipairs(kinds) do
		names[#names + 1] = row[field]
		for _, name in pairs(row) do
			if name:lower() == word:lower() then
				return row[field]
			end
		end
	end
	return nearest(word, names)
end

local function is_known(kinds, field, word)
	for _, row in ipairs(kinds) do
		if row[field] == word then
			return true
		end
	end
end

--- The kind and the resource of a filter or a fault. kinds: rows of kind, resource and singular, of all that the server has.
function words.of_kinds(named, kinds, nearest)
	for _, field in ipairs { "kind", "resource" } do
		local word = named[field]
		if word and not is_known(kinds, field, word) then
			local name = meant(kinds, field, word, nearest)
			return ("unknown %s '%s'%s"):format(field, word,
				name and (", did you mean '%s'?"):format(name) or ": a custom one is known once its definition is there")
		end
	end
end

--- A filter of requests, but for its kind and resource.
function words.of_requests(filter, nearest)
	local problem = all_text(filter)
	if problem then
		return problem
	elseif filter.verb and not faults.verbs[filter.verb] then
		return "unknown verb " .. faults.misspelt(filter.verb, faults.verbs, nearest)
	elseif filter.method and not METHODS[filter.method] then
		return "unknown method " .. faults.misspelt(filter.method, METHODS, nearest)
	end
end

--- A filter of the log. A name that is not the log's own may be a script's; so it is only wrong when no line has it and another
-- one is near.
function words.of_log(filter, lines, nearest)
	local problem = all_text(filter)
	if problem then
		return problem
	elseif filter.level and not LEVELS[filter.level] then
		return "unknown level " .. faults.misspelt(filter.level, LEVELS, nearest)
	end
	local known, names = {}, {}
	for name in pairs(LOG_KEYS) do
		known[name], names[#names + 1] = true, name
	end
	for _, line in ipairs(lines) do
		for name in pairs(line) do
			known[name] = true
		end
	end
	for name in pairs(filter) do
		local other = not known[name] and (ELSEWHERE[name] or nearest(name, names))
		if other then
			return ("no line has a field '%s', did you mean '%s'?"):format(name, other)
		end
	end
end

return words
