-- core/README.md names files and functions; here they are looked for.
local files = require "support.files"

local function lines_of(...)
	local lines = {}
	for line in files.output_of({ ... }):gmatch "[^\n]+" do
		lines[#lines + 1] = line
	end
	return lines
end

local function exists(path)
	local file = io.open(path)
	return file and file:close() and true or false
end

-- Placeholders, in capitals, stand for any name.
local function is_placeholder(path)
	return path:match "[A-Z][A-Z]" and not path:match "README"
end

describe("core/README.md", function()
	local text = files.read "core/README.md"

	it("names paths that exist", function()
		for path in text:gmatch "`([%w_./]+/[%w_./]*)`" do
			if not is_placeholder(path) and not path:match "^/" and not path:match "^curl/" then
				assert.is_true(exists(path), path .. " is not there")
			end
		end
	end)

	it("names every source file", function()
		for _, path in ipairs(lines_of("find", "core", "-name", "*.c")) do
			assert.truthy(text:find("`" .. path .. "`", 1, true), path .. " is not named")
		end
	end)

	-- What a source file defines: name to true, or to "static".
	local function definitions(path)
		local found = {}
		for head in ("\n" .. files.read(path)):gmatch "\n(%l[^\n;={]-[%s*][%w_]+)%(" do
			found[head:match "[%w_]+$"] = head:match "^static" or true
		end
		return found
	end

	-- In the file that follows ("`act()` in `core/net/mux.c`"), else in the last one named, else a function for all.
	it("names functions where they are", function()
		local global, path, checked = {}, nil, 0
		for _, source in ipairs(lines_of("find", "core", "-name", "*.c")) do
			for name, kind in pairs(definitions(source)) do
				global[name] = global[name] or kind == true
			end
		end
		for word, behind in text:gmatch "`([^`\n]+)`()" do
			local name = word:match "^([%w_]+)%(%)$"
			if word:match "^core/.*%.c$" and not is_placeholder(word) then
				path = word
			elseif name then
				path = text:match("^%s+in%s+`(core/[^`]+%.c)`", behind) or path
				assert.truthy(global[name] or definitions(path)[name], ("%s() is not in %s"):format(name, path))
				checked = checked + 1
			end
		end
		assert.is_true(checked > 30, "only " .. checked .. " functions were found in the text")
	end)
end)
