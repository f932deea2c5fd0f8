local cli = require "support.cli"
local files = require "support.files"

local SECONDS = 20

describe("perilune run --watch #slow", function()
	local folder, host

	local function sh(script)
		files.output_of { "sh", "-ec", script, cwd = folder }
	end

	local function script(word)
		return ('require("perilune").on_synced(function() print "%s" end)'):format(word)
	end

	local function start(path, ...)
		host = cli.start { "run", path, "--sandbox", "--listen", "off", "--log-level", "debug", cwd = folder, ... }
	end

	before_each(function()
		folder = files.folder()
		sh "mkdir scripts"
	end)

	after_each(function()
		host:kill()
		assert.equal(0, (host:wait(SECONDS)), host:stderr())
	end)

	it("reloads those scripts whose files have changed, begins new ones and ends those that are gone", function()
		files.write(folder .. "/scripts/red.lua", script "red 1")
		files.write(folder .. "/scripts/blue.lua", script "blue 1")
		start("scripts", "--watch")
		host:wait_for("red 1", SECONDS)
		files.write(folder .. "/scripts/red.lua", script "red 2")
		host:wait_for("red 2", SECONDS)
		files.write(folder .. "/scripts/green.lua", script "green 1")
		host:wait_for("green 1", SECONDS)
		sh "rm scripts/blue.lua"
		host:wait_for("the script is gone, it ends script=blue", SECONDS)
		local words = {}
		for line in host:stdout():gmatch "[^\n]+" do
			words[#words + 1] = line
		end
		table.sort(words)
		assert.same({ "blue 1", "green 1", "red 1", "red 2" }, words)
	end)

	it("keeps the code that works until what was written loads", function()
		files.write(folder .. "/scripts/red.lua", script "red 1")
		start("scripts", "--watch")
		host:wait_for("red 1", SECONDS)
		files.write(folder .. "/scripts/red.lua", "this is no Lua")
		host:wait_for("ERROR reload failed, the code before goes on script=red", SECONDS)
		files.write(folder .. "/scripts/red.lua", script "red 2")
		host:wait_for("red 2", SECONDS)
	end)

	it("reloads a script of a folder when what it requires has changed", function()
		sh "mkdir scripts/lib"
		files.write(folder .. "/scripts/init.lua", [[
			local word = require "lib.word"
			require("perilune").on_synced(function() print(word) end)
		]])
		files.write(folder .. "/scripts/lib/word.lua", 'return "one"')
		start("scripts", "--watch")
		host:wait_for("one", SECONDS)
		files.write(folder .. "/scripts/lib/word.lua", 'return "two"')
		host:wait_for("two", SECONDS)
	end)

	local function mount()
		sh "mkdir scripts/..1 scripts/..2; ln -s ..1 scripts/..data; ln -s ..data/red.lua scripts/red.lua"
		files.write(folder .. "/scripts/..1/red.lua", script "red 1")
		files.write(folder .. "/scripts/..2/red.lua", script "red 2")
	end

	local function swap()
		sh "ln -s ..2 scripts/..data_tmp; mv -T scripts/..data_tmp scripts/..data; rm -r scripts/..1"
	end

	it("is not needed where a ConfigMap is mounted", function()
		mount()
		start "scripts"
		host:wait_for("red 1", SECONDS)
		swap()
		host:wait_for("red 2", SECONDS)
	end)

	it("is not needed for one file of a ConfigMap either", function()
		mount()
		start "scripts/red.lua"
		host:wait_for("red 1", SECONDS)
		swap()
		host:wait_for("red 2", SECONDS)
	end)

	it("can be refused", function()
		mount()
		start("scripts", "--watch=false")
		host:wait_for("red 1", SECONDS)
		swap()
		host:pump(1) -- several times what a reload would have taken
		assert.falsy(host:stdout():find "red 2")
		host:kill "HUP"
		host:wait_for("red 2", SECONDS)
	end)
end)
