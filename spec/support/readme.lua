--- The README's fenced blocks, which specs run.
--
--   readme.text                          all of it
--   readme.blocks("sh", "run")           the texts of the blocks with that language and info word, in order
--   readme.block("lua", "team.lua")      the only one
--   readme.lines(text)                   its lines, without empty ones
--   readme.names()                       "sh run" and the like: each that occurs, once
--   readme.alike(text)                   without what differs from run to run: numbers and times, and where the server is
--   readme.folder("pod-log", files)      a folder laid out as a mounted ConfigMap with these files; its path
local files = require "support.files"
local process = require "support.process"

local readme = { text = files.read "README.md" }

local all = {}
for name, text in readme.text:gmatch "\n```(%l[^\n]*)\n(.-\n)```\n" do
	all[#all + 1] = { name = name, text = text }
end

function readme.blocks(language, info)
	local found = {}
	for _, block in ipairs(all) do
		if block.name == language .. (info and " " .. info or "") then
			found[#found + 1] = block.text
		end
	end
	return found
end

function readme.block(language, info)
	local found = readme.blocks(language, info)
	assert(#found == 1, ("%d blocks %s %s in the README"):format(#found, language, info or ""))
	return found[1]
end

function readme.names()
	local found, seen = {}, {}
	for _, block in ipairs(all) do
		if not seen[block.name] then
			found[#found + 1] = block.name
		end
		seen[block.name] = true
	end
	return found
end

function readme.lines(text)
	local lines = {}
	for line in text:gmatch "[^\n]+" do
		lines[#lines + 1] = line
	end
	return lines
end

function readme.alike(text)
	for _, key in ipairs { "server", "config", "context" } do
		text = text:gsub("%f[%w]" .. key .. "=%S+", key .. "=HERE")
	end
	return (text:gsub("%d+", "N"):gsub("objects", "object"))
end

function readme.folder(name, contents)
	local folder = files.folder() .. "/" .. name
	local version = folder .. "/..2026_01_02_03_04_05.123456789"
	files.output_of { "mkdir", "-p", version }
	files.output_of { "ln", "-s", version:match "[^/]*$", folder .. "/..data" }
	for file, text in pairs(contents) do
		files.write(version .. "/" .. file, text)
		files.output_of { "ln", "-s", "..data/" .. file, folder .. "/" .. file }
	end
	return folder
end

--- The words of a command, with the program that is under test.
function readme.words(line)
	local words = {}
	for word in line:gsub("%s+#.*$", ""):gmatch "%S+" do
		words[#words + 1] = word:gsub("^build/%l+/", process.build() .. "/")
	end
	if words[1] == "perilune" then
		words[1] = process.build() .. "/perilune"
	end
	return words
end

return readme
