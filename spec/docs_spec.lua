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

	-- The file named last before a function defines it; one that is called across files is in no static function's way.
	it("names functions where they are", function()
		local path
		for word in text:gmatch "`([^`\n]+)`" do
			local name = word:match "^([%w_]+)%(%)$"
			if word:match "^core/.*%.[ch]$" and not is_placeholder(word) then
				path = word
			elseif name then
				local here = ("\n" .. files.read(path)):match("\n%l[^\n;=]-[%s*]" .. name .. "%(")
				local found = here or #lines_of("sh", "-c", ("grep -rhE '^[a-z][^;=]*[ *]%s[(]' core | grep -v '^static' || true"):format(name)) > 0
				assert.truthy(found, name .. "() is neither in " .. path .. " nor a function for all")
			end
		end
	end)
end)
