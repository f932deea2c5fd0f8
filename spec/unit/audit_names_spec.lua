-- The reader of names holds for all that LuaJIT compiles; here for each Lua file of the project.
local files = require "support.files"
local names = require "perilune.audit.names"

describe("perilune.audit.names", function()
	it("reads every file to its end", function()
		local count = 0
		for path in files.output_of({ "find", "lua", "spec", "examples", "-name", "*.lua" }):gmatch "[^\n]+" do
			local text = files.read(path)
			if load(text, "=", "t") then
				local read, problem = pcall(names.read, text)
				assert.is_true(read, path .. ": " .. tostring(problem))
				count = count + 1
			end
		end
		assert.is_true(count > 100, count .. " files")
	end)

	local function uses_of(text)
		local found = {}
		for _, use in ipairs(names.read(text).uses) do
			local root = use.root.module or use.root
			found[#found + 1] = ("%d %s%s"):format(use.line, table.concat({ root, unpack(use.names) }, "."), use.set and "=" or "")
		end
		return found
	end

	it("follows locals that are never set again, and gives lines of the last name", function()
		assert.same({ "1 require", "1 m.a.b", "2 m.a.b.c.d", "4 m.a.b.e" },
			uses_of 'local x = require "m".a.b\nlocal z = 1 .. x.c.d\nlocal y = z\nx.e(y, z.f)')
		assert.same({}, uses_of "local x, y = 1, ... x.a = y.b local function f(a, ...) f(a.b) end")
		assert.same({ "1 g", "1 g.h=", "2 t.f=" }, uses_of "local x = g; x.h = 1\nfunction t.f() end")
	end)

	it("tells numbers, strings and comments from names", function()
		assert.same({ "1 a", "2 b", "4 c", "6 d" }, uses_of [==[
			a(0x1fULL, 0x.8p-3, 1e+5, 3., .5, 1LL, 0b101, 'x\'y', "\z
			  x", b) -- x
			--[[ x
			]] c "x" --[=[ x ]]
			x
			]=] d [[ x ]]]==])
	end)
end)
