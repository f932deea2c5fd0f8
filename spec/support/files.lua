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

--- Makes a certificate for 127.0.0.1, signed by itself; its path, and that of its key.
function files.certificate(folder)
	local cert, key = folder .. "/one.crt", folder .. "/one.key"
	files.output_of {
		"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
		"-subj", "/CN=one", "-addext", "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key,
	}
	return cert, key
end

return files
