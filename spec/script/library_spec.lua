-- What a script finds in its globals: the whitelist, strict globals and its own modules.
local cli = require "support.cli"
local files = require "support.files"

-- Runs the chunk as a script's top level; exit code, stdout and stderr.
local function check(chunk, modules)
	local folder = files.folder()
	for name, text in pairs(modules or {}) do
		files.write(folder .. "/" .. name, text)
	end
	return cli.run { "check", files.write(folder .. "/script.lua", chunk) }
end

local function passes(chunk, modules)
	local code, _, err = check(chunk, modules)
	assert.equal(0, code, err)
end

local function fails(pattern, chunk, modules)
	local code, _, err = check(chunk, modules)
	assert.equal(1, code)
	assert.matches(pattern, err)
end

describe("a script's library", function()
	it("has none of the forbidden names", function()
		passes [[
			local forbidden = {
				"ffi", "jit", "debug", "io", "package", "dofile", "loadfile", "newproxy", "gcinfo", "module",
				"os.execute", "os.exit", "os.remove", "os.rename", "os.setlocale", "os.tmpname", "string.dump",
			}
			for _, path in ipairs(forbidden) do
				local value = _G
				for name in path:gmatch "[^.]+" do value = rawget(value, name) end
				assert(value == nil, path)
			end
			for _, name in ipairs { "ffi", "jit", "debug", "io", "package", "os", "lfs", "jit.util" } do
				assert(name == "os" or not pcall(require, name), name)
			end
			assert(not pcall(require, "../outside") and not pcall(require, "/etc/passwd"))
		]]
	end)

	it("loads text only", function()
		passes [[
			local bytecode = "\27LJ\2\0"
			assert(not loadstring(bytecode))
			assert(not load(function() local b = bytecode bytecode = nil return b end))
			assert(not load("return 1", "x", "b"))
			assert(loadstring("return 1")() == 1)
			assert(load("return x", "x", "t", { x = 2 })() == 2)
		]]
	end)

	it("loads text that comes in pieces, and not too much", function()
		passes [[
			local pieces = { "return ", "1, ", "...", "", "never" }
			local function reader() return table.remove(pieces, 1) end
			assert(select("#", load(reader)(2, 3)) == 3 and #pieces == 1)
			assert(select(2, load(function() error("no luck", 0) end)) == "no luck")
			assert(select(2, load(function() return {} end)) == "reader function must return a string")
			assert(select(2, load("return (")):find '^%[string "return %("%]:1: ')
			assert(select(2, load(("return ("):gmatch ".+")):find "^%(load%):1: ")
			local long = "return '" .. ("x"):rep(32 * 1024) .. "'"
			assert(select(2, load(long)) == "load takes at most 32 KiB" and not loadstring(long))
			assert(select(2, load(long:gmatch ".")) == "load takes at most 32 KiB")
		]]
	end)

	it("sorts as LuaJIT does", function()
		passes [[
			local list = { 3, 1, 2 }
			table.sort(list)
			assert(table.concat(list) == "123")
			table.sort(list, function(a, b) return a > b end)
			assert(table.concat(list) == "321")
			table.sort(list, rawequal)
			assert(select(2, pcall(table.sort, { 1, "x" })):find "attempt to compare")
			local _, no_table = pcall(function() table.sort(nil) end)
			assert(no_table:find("script.lua:8: bad argument #1 to 'sort' (table expected, got nil)", 1, true))
			local _, no_function = pcall(function() table.sort({}, 1) end)
			assert(no_function:find("script.lua:10: bad argument #2 to 'sort' (function expected, got number)", 1, true))
		]]
	end)

	it("does not let the collector be stopped", function()
		fails("script%.lua:1: collectgarbage takes only collect, count and step here", "collectgarbage 'stop'")
		passes "assert(collectgarbage('count') > 0) collectgarbage()"
	end)

	it("closes the host's metatables and functions", function()
		passes [[
			local k8s = require "perilune"
			assert(not pcall(setmetatable, k8s, {}))
			local function change(module) module.get = nil end
			assert(not pcall(change, k8s)) -- check would see through what names k8s itself
			assert(type(getmetatable(k8s.array {})) == "string")
			assert(type(getmetatable(k8s.informer { apiVersion = "v1", kind = "Pod" })) == "string")
			assert(not pcall(setfenv, k8s.get, {}))
			assert(not pcall(setfenv, pcall, {}))
			local function own() return x end
			setfenv(own, { x = 3 })
			assert(own() == 3)
			string.sub = function() return "" end
			assert(not pcall(setfenv, k8s.get, {}))
		]]
	end)

	it("keeps 64-bit integers without the ffi library, whatever is collected", function()
		passes [[
			local json = require "perilune".json
			local big = json.decode "9223372036854775807"
			collectgarbage() collectgarbage()
			assert(json.encode(big) == "9223372036854775807")
			assert(tostring(big) == "9223372036854775807LL" and big > json.decode "9223372036854775806")
			assert(json.encode(json.decode "-9223372036854775808") == "-9223372036854775808")
		]]
	end)

	it("bounds what cjson reads", function()
		fails("script%.lua:1: cjson%.decode takes at most 2 MiB",
			"require('cjson').decode('\"' .. ('x'):rep(3 * 1024 * 1024) .. '\"')")
		passes "local cjson = require 'cjson' assert(cjson.decode('{\"a\":null}').a == require('perilune').null)"
	end)

	it("bounds what cjson writes", function()
		passes [[
			local cjson = require "cjson"
			local bush = {}
			for _ = 1, 40 do bush = { bush, bush } end
			cjson.encode_sparse_array(true, 0, 0)
			local loop = {}
			loop.again = loop
			local long = ("x"):rep(3 * 1024 * 1024)
			for i, value in ipairs { bush, { [1e9] = 1 }, long, { [long] = 1 } } do
				local encode = i % 2 == 0 and cjson.encode or cjson.new().encode
				local ok, err = pcall(function() encode(value) end)
				assert(not ok and err:find("script.lua:10: cjson.encode writes at most 2 MiB", 1, true), err)
			end
			assert(select(2, pcall(cjson.encode, loop)):find("cjson.encode: nested deeper than 1000", 1, true))
			assert(not pcall(cjson.encode))
			assert(cjson.encode { a = { 1, 2, cjson.null }, b = "x" } and cjson.encode(5) == "5" and cjson.encode {} == "{}")
		]]
	end)
end)

describe("strict globals", function()
	it("make a misspelt name an error with its line", function()
		fails("script%.lua:2: unknown global 'pirnt'", "\npirnt('x')")
		fails("unknown global 'k8s': begin with local k8s = require \"perilune\"", "k8s.informer {}")
		fails("unknown global 'io': %-%-unsafe%-libs gives it", "io.open 'x'")
	end)

	it("may be defined at a file's top level and nowhere else", function()
		passes "function helper() return 1 end assert(helper() == 1)"
		fails("script%.lua:1: assignment to unknown global 'leak'", "local function f() leak = 1 end f()")
	end)

	it("cover the API's names and options", function()
		fails("script%.lua:1: perilune has no 'informers', did you mean 'informer'%?", "local i = require('perilune').informers")
		fails("script%.lua:1: k8s%.log has no 'warning', did you mean 'warn'%?", "require('perilune').log.warning('x')")
		fails("script%.lua:1: k8s%.json can't be changed", "require('perilune').json.encode = print")
		fails("script%.lua:1: informer: unknown option 'label_selektor', did you mean 'label_selector'%?",
			"require('perilune').informer { apiVersion = 'v1', kind = 'Pod', label_selektor = 'a=b' }")
		fails("script%.lua:2: informer has no 'lst'", "local i = require('perilune').informer { apiVersion = 'v1', kind = 'Pod' }\ni:lst()")
	end)
end)

describe("require", function()
	it("finds the files of the script's own folder, each loaded once", function()
		passes([[
			local helper = require "_helper"
			assert(helper.answer == 42 and require "_helper" == helper)
		]], { ["_helper.lua"] = "assert(not rawget(_G, 'loaded')) loaded = true return { answer = 42 }" })
	end)

	it("names the file and line of a module that fails", function()
		fails("_helper%.lua:2: no luck", "require '_helper'", { ["_helper.lua"] = "\nerror 'no luck'" })
		fails("_helper%.lua:1: .* near", "require '_helper'", { ["_helper.lua"] = "local = 1" })
	end)

	it("says where it looked", function()
		fails("script%.lua:1: module 'lfs' not found: scripts can require perilune, cjson and the files of their own folder",
			"require 'lfs'")
	end)
end)
