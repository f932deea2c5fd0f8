-- The watcher of files (core/net/watch.h).
local files = require "support.files"
local new_seed = require "support.seed"
local process = require "support.process"

local SECONDS = 20
local QUIET = 0.2 -- as there; here only to see that nothing comes

describe("the watcher of files #slow", function()
	local top, folder, watcher, expected

	local function sh(script)
		files.output_of { "sh", "-ec", script, cwd = top }
	end

	local function watch(...)
		local command = { process.driver "watch_driver", ... }
		command.cwd = top
		watcher = process.start(command)
		assert.equal("watching", watcher:line(SECONDS))
	end

	local function told()
		return select(2, watcher:stdout():gsub("changed\n", ""))
	end

	-- The change is told; that it is told once only shows in the count at the end.
	local function sees(what, change)
		expected = expected + 1
		if type(change) == "string" then
			sh(change)
		else
			change()
		end
		assert.equal("changed", watcher:line(SECONDS), what)
	end

	local function sees_nothing(what, change)
		local before = told()
		sh(change)
		local deadline = process.now() + 2 * QUIET
		while process.now() < deadline do
			watcher:pump(0.05)
		end
		assert.equal(before, told(), what)
	end

	before_each(function()
		top, expected = files.folder(), 0
		folder = top .. "/a/scripts"
		files.output_of { "mkdir", "-p", folder .. "/lib" }
		files.write(folder .. "/one.lua", "1")
		files.write(folder .. "/lib/part.lua", "1")
	end)

	after_each(function()
		watcher:pump(1.5 * QUIET)
		assert.equal(expected, told())
		watcher:kill()
		assert.equal(0, (watcher:wait(SECONDS)), watcher:stderr())
	end)

	it("sees what happens in a folder", function()
		watch(folder)
		sees("written in place", function() files.write(folder .. "/one.lua", "2") end)
		sees("by rename", "echo 3 >a/scripts/.one.lua.tmp; mv a/scripts/.one.lua.tmp a/scripts/one.lua")
		sees("by backup and a new file", "mv a/scripts/one.lua a/scripts/one.lua~; echo 4 >a/scripts/one.lua; rm a/scripts/one.lua~")
		sees("a new file", "echo 1 >a/scripts/two.lua")
		sees("a removed file", "rm a/scripts/two.lua")
		sees("moved away", "mv a/scripts/one.lua one.lua")
		sees("moved in", "mv one.lua a/scripts/one.lua")
		sees("a link", "ln -s one.lua a/scripts/three.lua")
		sees("a right", "chmod a-r a/scripts/one.lua")
		sees("a file below", "echo 2 >a/scripts/lib/part.lua")
	end)

	it("sees folders that come while it runs, and what comes in them", function()
		watch(folder)
		sees("a folder", "mkdir -p a/scripts/more/deep; echo 1 >a/scripts/more/deep/x.lua")
		sees("a file in it", "echo 2 >a/scripts/more/deep/x.lua")
		sees("a link to a folder", "mkdir shared; ln -s ../../shared a/scripts/shared")
		sees("a file behind it", "echo 1 >shared/x.lua")
		sees("its end", "rm -r a/scripts/more")
	end)

	it("does not see what is elsewhere, nor editors' hidden files", function()
		watch(folder)
		sees_nothing("elsewhere", "echo 1 >other; mkdir a/neighbour; echo 1 >a/neighbour/x.lua; mv a/neighbour gone")
		sees_nothing("hidden", "echo 1 >a/scripts/.one.lua.swp; rm a/scripts/.one.lua.swp; mkdir a/scripts/.git; echo 1 >a/scripts/.git/x")
		sees_nothing("no code", "echo 1 >a/scripts/notes.txt; mv a/scripts/notes.txt a/scripts/lib/one.lua~")
		sees_nothing("reading", "cat a/scripts/one.lua a/scripts/lib/part.lua; ls a/scripts")
		sees("but a file", "echo 2 >a/scripts/one.lua")
	end)

	it("sees a file, and what it may require", function()
		watch(folder .. "/one.lua")
		sees("in place", "echo 2 >a/scripts/one.lua")
		sees("by rename", "echo 3 >new; mv new a/scripts/one.lua")
		sees("gone", "rm a/scripts/one.lua")
		sees_nothing("what it would require", "echo 2 >a/scripts/lib/part.lua")
		sees("back", "echo 4 >a/scripts/one.lua")
		sees("what it may require", "echo 3 >a/scripts/lib/part.lua")
	end)

	it("sees a mount's link that is swapped", function()
		sh [[
			mkdir -p mount/..one mount/..two
			echo 1 >mount/..one/x.lua
			echo 2 >mount/..two/x.lua
			ln -s ..one mount/..data
			ln -s ..data/x.lua mount/x.lua
		]]
		watch("mount")
		sees("the swap", "ln -s ..two mount/..data_tmp; mv -T mount/..data_tmp mount/..data; rm -r mount/..one")
		sees("back", "mkdir mount/..one; echo 3 >mount/..one/x.lua; ln -s ..one mount/..data_tmp; mv -T mount/..data_tmp mount/..data")
	end)

	it("sees the same for one file of a mount", function()
		sh "mkdir -p mount/..one mount/..two; echo 1 >mount/..one/x.lua; echo 2 >mount/..two/x.lua"
		sh "ln -s ..one mount/..data; ln -s ..data/x.lua mount/x.lua"
		watch("mount/x.lua")
		sees("the swap", "ln -s ..two mount/..data_tmp; mv -T mount/..data_tmp mount/..data")
	end)

	it("follows a link on the way to it", function()
		sh "mkdir -p releases/1/scripts releases/2/scripts; ln -s releases/1 current"
		watch("current/scripts")
		sees("the first", "echo 1 >releases/1/scripts/x.lua")
		sees("the swap", "ln -s releases/2 next; mv -T next current")
		sees("the second", "echo 1 >releases/2/scripts/x.lua")
		sees_nothing("the first, which is no more", "echo 2 >releases/1/scripts/x.lua")
	end)

	it("sees folders that go and come back, at any height", function()
		watch(folder)
		sees("replaced", "mv a/scripts old; mkdir a/scripts; echo 1 >a/scripts/one.lua")
		sees("in the new one", "echo 2 >a/scripts/one.lua")
		sees_nothing("in the old one", "echo 2 >old/one.lua")
		sees("gone", "rm -r a/scripts")
		sees("back", "mkdir a/scripts")
		sees("its parent gone", "rm -r a")
		sees("another name", "mkdir b; mkdir a")
		sees("back", "mkdir a/scripts")
		sees("in it", "echo 1 >a/scripts/one.lua")
	end)

	it("takes a path that is not there yet, and several at once", function()
		watch("later/x.lua", "a/scripts", "a")
		sees("the folder", "mkdir later")
		sees("the file", "echo 1 >later/x.lua")
		sees("another", "echo 2 >a/scripts/one.lua")
	end)

	-- A reader who looks whenever it is told has, in the end, seen what is there.
	it("leaves no change untold, whatever happens", function()
		local seed = new_seed()
		local steps = {
			"mkdir -p a/scripts/$x; echo $n >a/scripts/$x/$y.lua", "echo $n >a/scripts/$x.lua",
			"echo $n >a/scripts/$x/$y.lua", "echo $n >new; mv new a/scripts/$x.lua", "rm -rf a/scripts/$x.lua a/scripts/$y",
			"mv -T a/scripts/$x a/scripts/$y", "mv -T a/scripts spare; mkdir -p a/scripts/$x; echo $n >a/scripts/$x/$y.lua",
			"rm -rf spare; mv -T a/scripts spare", "mv -T spare a/scripts", "rm -rf a; mkdir -p a/scripts; echo $n >a/scripts/$x.lua",
			"mv -T a b; mkdir a", "rm -rf a; mv -T b a", "mkdir -p far/$y; ln -sfn ../../far/$y a/scripts/$x; echo $n >far/$y/$x.lua",
			"echo $n >far/$y/$x.lua", "rm -rf a/scripts; ln -sfn ../spare a/scripts",
		}
		local function look()
			return files.output_of { "sh", "-c", "find -L a/scripts -name '*.lua' -type f 2>/dev/null | sort | xargs -r tail -v -n +1", cwd = top }
		end
		watch("a/scripts")
		local seen, names, log = look(), { "x", "y", "z" }, {}
		local lines = 0
		local function read(seconds)
			watcher:pump(seconds)
			if told() > lines then
				lines = told()
				seen = look()
			end
		end
		for n = 1, 120 do
			local values = { n = n, x = names[math.random(3)], y = names[math.random(3)] }
			log[n] = steps[math.random(#steps)]:gsub("%$(%l)", values)
			process.run { "sh", "-c", log[n], cwd = top } -- many can't be done, as things stand
			read(math.random() < 0.1 and 0.3 or 0)
		end
		local deadline = process.now() + 5
		repeat
			read(0.1)
		until seen == look() or process.now() > deadline
		assert.equal(look(), seen, seed .. "\n" .. table.concat(log, "\n"))
		read(2 * QUIET)
		expected = told()
	end)

	it("tells of a burst once, and of one without an end now and then", function()
		watch(folder)
		sees("a burst", function()
			for i = 1, 50 do
				files.write(folder .. "/one.lua", tostring(i))
			end
		end)
		local first = process.now()
		repeat
			files.write(folder .. "/one.lua", "x")
			watcher:pump(0.02)
		until told() == 2 or process.now() > first + SECONDS
		local took = process.now() - first
		expected = 2
		sees("the rest of it", function() files.write(folder .. "/one.lua", "y") end)
		assert.is_true(took > 1.5 and took < 10, took)
	end)

	it("sees all again when the system has dropped events", function()
		local limit = tonumber(files.read "/proc/sys/fs/inotify/max_queued_events")
		watch(folder)
		watcher:kill "STOP"
		for i = 1, limit / 2 + 100 do
			files.write(("%s/%d.lua"):format(folder, i % 100), "x") -- equal events in a row count as one
		end
		sh "mv a old; mkdir -p a/scripts"
		watcher:kill "CONT"
		assert.equal("changed", watcher:line(SECONDS))
		expected = told()
		sees("in the new folder", "echo 1 >a/scripts/one.lua")
	end)
end)
