--- Files for specs, in a folder of their own that goes away with the Lua state.
local process = require "support.process"

local files = {}
local guards = {} -- kept for as long as this module lives

local function quoted(path)
	return "'" .. path:gsub("'", "'\\''") .. "'"
end

--- A new folder; its path.
function files.folder()
	local path = assert(io.popen("mktemp -d")):read "l"
	local guard = newproxy(true)
	getmetatable(guard).__gc = function()
		os.execute("rm -rf " .. quoted(path))
	end
	guards[#guards + 1] = guard
	return path
end

function files.write(path, text)
	local file = assert(io.open(path, "w"))
	assert(file:write(text))
	assert(file:close())
	return path
end

function files.read(path)
	local file = assert(io.open(path))
	local text = file:read "a"
	file:close()
	return text
end

--- Runs a program that has to work; its stdout.
function files.output_of(options)
	local code, out, err = process.run(options)
	assert(code == 0, ("%s failed: %s%s"):format(table.concat(options, " "), out, err))
	return out
end

return files
