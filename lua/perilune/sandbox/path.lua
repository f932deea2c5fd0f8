--- A request's path to what it is about.
local path = {}

local function segments(text)
	local found = {}
	for segment in text:gmatch "[^/]+" do
		found[#found + 1] = segment
	end
	return found
end

-- What stands behind a namespace's name and is no resource in it.
local OWN = { status = true, finalize = true }

-- Behind the version: namespaces/NS/PLURAL/NAME/SUB, or PLURAL/NAME/SUB.
local function read_resource(parts, at, found)
	if parts[at] == "namespaces" and parts[at + 2] and not OWN[parts[at + 2]] then
		found.namespace = parts[at + 1]
		at = at + 2
	end
	found.plural, found.name = parts[at], parts[at + 1]
	found.subresource = parts[at + 2] and table.concat(parts, "/", at + 2)
	return found
end

--- For a path below /api or /apis: { group =, version =, plural =, namespace =, name =, subresource = }, as far as it
-- goes; nil for any other.
function path.parse(text)
	local parts = segments(text)
	if parts[1] == "api" then
		return read_resource(parts, 3, { group = "", version = parts[2] })
	elseif parts[1] == "apis" then
		return read_resource(parts, 4, { group = parts[2], version = parts[3] })
	end
end

return path
