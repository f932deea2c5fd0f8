--- The paths that custom resources' columns use: .spec.size, .status.conditions[0].type,
-- .status.conditions[?(@.type=="Ready")].status, .metadata.labels['a\.b'].
local tree = require "perilune.sandbox.tree"

local jsonpath = {}

local function member(name)
	return function(value)
		return tree.at(value, name)
	end
end

local function where(path, wanted)
	local read = jsonpath.compile(path)
	return function(value)
		for _, item in ipairs(type(value) == "table" and value or {}) do
			if tostring(read(item)) == wanted then
				return item
			end
		end
	end
end

-- One step at the start of the text, and what follows it.
local function step(text)
	local name, rest = text:match "^%.([^.%[]+)(.*)$"
	if name then
		return member((name:gsub("\1", "."))), rest
	end
	local path, wanted
	path, wanted, rest = text:match "^%[%?%(@([^=]-)%s*==%s*[\"']?([^\"')]*)[\"']?%)%](.*)$"
	if path then
		return where(path, wanted), rest
	end
	name, rest = text:match "^%['(.-)'%](.*)$"
	if name then
		return member((name:gsub("\\%.", "."))), rest
	end
	name, rest = text:match "^%[(%d+)%](.*)$"
	if name then
		return member(tonumber(name) + 1), rest
	end
end

--- A function of an object that gives the value there, or nil. A path that is not understood gives nil always.
function jsonpath.compile(path)
	local steps, rest = {}, path:gsub("\\%.", "\1")
	while rest ~= "" do
		local one
		one, rest = step(rest)
		if not one then
			return function() end
		end
		steps[#steps + 1] = one
	end
	return function(object)
		local value = object
		for _, one in ipairs(steps) do
			value = one(value)
		end
		return value
	end
end

return jsonpath
