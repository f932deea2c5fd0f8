-- globals: the whitelist of what a script finds, and strict globals.
--
-- What is not named here is taken away. The arguments are `require`, which finds perilune, cjson and the files of the script's own folder, and
-- `less`, which is the operator "<".

local require, less = ...

local error, getinfo, next, rawset, setmetatable, tostring, type = error, debug.getinfo, next, rawset, setmetatable, tostring, type
local collectgarbage, concat, huge, load, max, pcall, sort, sub = collectgarbage, table.concat, math.huge, load, math.max, pcall, table.sort, string.sub
local getfenv, setfenv = getfenv, setfenv

-- cjson ends the process when it runs out of memory, and no hook enters it; what it takes is a small multiple of what it reads or writes.
local CJSON_LIMIT = 2 * 1024 * 1024
local NUMBER_ROOM = 8
local CJSON_DEPTH = 1000

local allowed = {
	_G = {
		"_VERSION", "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "print", "rawequal", "rawget", "rawlen", "rawset",
		"select", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall",
	},
	bit = { "arshift", "band", "bnot", "bor", "bswap", "bxor", "lshift", "rol", "ror", "rshift", "tobit", "tohex" },
	coroutine = { "create", "isyieldable", "resume", "running", "status", "wrap", "yield" },
	math = {
		"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor", "fmod", "frexp", "huge", "ldexp", "log", "log10",
		"max", "min", "modf", "pi", "pow", "rad", "random", "randomseed", "sin", "sinh", "sqrt", "tan", "tanh",
	},
	os = { "clock", "date", "difftime", "getenv", "time" },
	string = {
		"byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "rep", "reverse", "sub", "upper",
	},
	table = { "concat", "foreach", "foreachi", "getn", "insert", "maxn", "move", "remove", "sort" },
}

local loaded = package.loaded
local G = _G

local unsafe = {} -- the names of globals that are taken away

-- What is taken away is named in `taken`, where that is given.
local function keep_only(library, names, taken)
	local kept = {}
	for _, name in ipairs(names) do
		kept[name] = library[name]
	end
	for name in pairs(library) do
		if kept[name] == nil then
			library[name] = nil
			if taken then
				taken[name] = true
			end
		end
	end
end

-- How many of `left` bytes are left when value has been written, roughly: a table counts wherever it stands, and a sparse array for all of its length.
-- Negative when there are too few; -huge when it nests too deep.
local function room_after(value, left, depth)
	if type(value) == "string" then
		return left - #value
	elseif type(value) ~= "table" then
		return left - (type(value) == "number" and NUMBER_ROOM or 1)
	elseif depth == CJSON_DEPTH then
		return -huge
	end
	local length = 0
	left = left - 2
	for key, inner in next, value do
		left = room_after(inner, left - (type(key) == "string" and #key or 1), depth + 1)
		length = type(key) == "number" and max(length, key) or length
		if left < 0 then
			return left
		end
	end
	return left - length
end

local function bound(module)
	local decode, encode, new = module.decode, module.encode, module.new
	function module.decode(text)
		if type(text) == "string" and #text > CJSON_LIMIT then
			error("cjson.decode takes at most 2 MiB", 2)
		end
		return decode(text)
	end
	function module.encode(...)
		local left = room_after((...), CJSON_LIMIT, 0)
		if left < 0 then
			error(left == -huge and "cjson.encode: nested deeper than 1000" or "cjson.encode writes at most 2 MiB", 2)
		end
		return encode(...)
	end
	function module.new()
		return bound(new())
	end
	return module
end
bound(loaded.cjson)

for name, names in pairs(allowed) do
	if name ~= "_G" then
		keep_only(G[name], names)
	end
end
local libraries = {}
for name in pairs(allowed) do
	libraries[name] = G[name]
end
keep_only(G, allowed._G, unsafe)
for name, library in pairs(libraries) do
	G[name] = library
end

-- The time is the host's, which stands still in specs.
local DATE_LIMIT = 1000 -- bytes: a long format takes many tries, each with more room
local date, floor, now, time = G.os.date, math.floor, loaded.perilune.now, G.os.time

function G.os.time(parts)
	if parts == nil then
		return floor(now())
	end
	return time(parts)
end

function G.os.date(format, at)
	if type(format) == "string" and #format > DATE_LIMIT then
		error("os.date: a format has " .. DATE_LIMIT .. " bytes at most", 2)
	end
	return date(format or "%c", at or floor(now()))
end

for name in pairs(loaded) do
	if not libraries[name] and name ~= "cjson" and name ~= "perilune" then
		loaded[name] = nil
	end
end

G.require = require

function G.collectgarbage(what, value)
	if what == nil or what == "collect" or what == "count" or what == "step" then
		return collectgarbage(what or "collect", value)
	end
	error("collectgarbage takes only collect, count and step here", 2)
end

-- No hook enters the parser, which takes quadratic time for a long chain of `or`: so many bytes take a tenth of a second at most.
local LOAD_LIMIT = 32 * 1024

-- Text only: bytecode could be made to break out of the state.
local function load_text(text, name, ...)
	if #text > LOAD_LIMIT then
		return nil, "load takes at most 32 KiB"
	end
	return load(text, name, "t", ...)
end

function G.loadstring(text, name)
	if type(text) ~= "string" then
		error("loadstring takes a string", 2)
	end
	return load_text(text, name)
end

-- The pieces until there is no more, or too much.
local function read_all(reader)
	local pieces, length = {}, 0
	repeat
		local piece = reader()
		if piece ~= nil and type(piece) ~= "string" then
			error("reader function must return a string", 0)
		end
		pieces[#pieces + 1] = piece
		length = length + #(piece or "")
	until piece == nil or piece == "" or length > LOAD_LIMIT
	return concat(pieces)
end

function G.load(source, name, mode, env)
	if mode ~= nil and mode ~= "t" then
		return nil, "only text can be loaded here"
	end
	if type(source) == "function" then
		local ok, text = pcall(read_all, source)
		if not ok then
			return nil, text
		end
		source, name = text, name or "=(load)"
	elseif type(source) ~= "string" then
		error("load takes a string or a function", 2)
	end
	if env ~= nil then
		return load_text(source, name, env)
	end
	return load_text(source, name)
end

-- No hook enters table.sort either, but for the functions of Lua that it calls.
function G.table.sort(list, less_than)
	if less_than == nil then
		return sort(list, less)
	elseif type(less_than) == "function" and getinfo(less_than, "S").what == "C" then
		return sort(list, function(a, b)
			return less_than(a, b)
		end)
	end
	return sort(list, less_than)
end

-- The host's own functions keep their environment.
local function own(f)
	local level = f == nil and 1 or f
	if type(level) == "number" then
		local info = level > 0 and getinfo(level + 2, "f")
		f = info and info.func
	end
	if type(f) ~= "function" then
		error("no function at that level", 3)
	end
	local info = getinfo(f, "S")
	if info.what == "C" or sub(info.source, 1, 10) == "=perilune." then
		error("the environment of the host's functions is closed", 3)
	end
	return f
end

function G.getfenv(f)
	return getfenv(own(f))
end

function G.setfenv(f, env)
	return setfenv(own(f), env)
end

local function hint(name)
	if name == "k8s" then
		return ': begin with local k8s = require "perilune"'
	end
	return unsafe[name] and ": --unsafe-libs gives it" or ""
end

-- A misspelt global is an error with its line, not a nil that fails elsewhere. A file's top level may define globals.
setmetatable(G, {
	__index = function(_, name)
		error("unknown global '" .. tostring(name) .. "'" .. hint(name), 2)
	end,
	__newindex = function(t, name, value)
		local where = getinfo(2, "S")
		if where and where.what ~= "main" and where.what ~= "C" then
			error("assignment to unknown global '" .. tostring(name) .. "': make it local, or define it at the top level of the file", 2)
		end
		rawset(t, name, value)
	end,
	__metatable = "globals",
})
loaded._G = G
