local process = require "support.process"

describe("a child process of a spec", function()
	local function shell(script, options)
		options = options or {}
		options[1], options[2], options[3] = "sh", "-c", script
		return process.start(options)
	end

	it("has arguments, environment, folder, input and exit code", function()
		local child = shell('read line; echo "$line|$ADDED|${HOME-none}|$PWD"; exit 3',
			{ env = { ADDED = "a b", HOME = false }, cwd = "/" })
		child:write "input\n"
		assert.equal("input|a b|none|/", child:line(10))
		assert.equal(3, (child:wait(10)))
	end)

	it("says by which signal it was ended", function()
		local child = shell "kill -TERM $$"
		local code, signal = child:wait(10)
		assert.is_nil(code)
		assert.equal(15, signal)
		child = process.start { "sleep", "100" }
		child:kill "KILL"
		assert.equal(9, select(2, child:wait(10)))
	end)

	it("is read line by line, and by patterns in either stream", function()
		local child = shell "echo one; echo two; echo port 80 >&2; echo port 81 >&2; exec sleep 100"
		assert.equal("one", child:line(10))
		assert.equal("two", child:line(10))
		assert.equal("80", child:wait_for("port (%d+)", 10))
		assert.equal("port 81", child:wait_for("port %d+", 10))
		assert.equal("one\ntwo\n", child:stdout())
		assert.equal("port 80\nport 81\n", child:stderr())
		child:close()
	end)

	it("takes and gives more than a pipe holds", function()
		local child = process.start { "cat" }
		local text = ("x"):rep(300000) .. "\n"
		child:write(text)
		child:close_stdin()
		assert.equal(0, (child:wait(10)))
		assert.equal(text, child:stdout())
	end)

	it("fails with the end of both streams, at the deadline or once nothing more can come", function()
		local child = shell "echo out; echo err >&2; exec sleep 100"
		child:wait_for("err", 10)
		for _, wait in ipairs {
			function() child:line(10) child:line(0.05) end,
			function() child:wait_for("never", 0.05) end,
			function() child:wait(0.05) end,
		} do
			local ok, message = pcall(wait)
			assert.is_false(ok)
			assert.matches("within 0.05 s; it runs", message, 1, true)
			assert.matches("out", message, 1, true)
			assert.matches("err", message, 1, true)
			child.out.line_at = 1
		end
		child:close()
		local before = process.now()
		local ok, message = pcall(function()
			shell("echo gone; exit 2"):wait_for("never", 60)
		end)
		assert.is_false(ok)
		assert.matches("it ended with code 2", message, 1, true)
		assert.matches("gone", message, 1, true)
		assert.is_true(process.now() - before < 10)
	end)

	it("fails when the program is not there, or takes no input", function()
		local ok, message = pcall(process.start, { "/no/such/program" })
		assert.is_false(ok)
		assert.matches("/no/such/program: No such file", message, 1, true)
		local child = shell "exec <&-; echo closed; exec sleep 100"
		child:wait_for("closed", 10)
		assert.has_error(function()
			child:write "x"
		end)
		child:close()
	end)

	it("is killed when its handle is collected", function()
		local pid = process.start({ "sleep", "100" }).pid
		collectgarbage()
		collectgarbage()
		assert.equal(1, (process.run { "kill", "-0", pid }))
	end)

	it("gets SIGPIPE as programs usually do", function()
		assert.equal(13, select(2, shell("kill -PIPE $$"):wait(10)))
	end)

	it("can be run to its end", function()
		local code, out, err = process.run { "sh", "-c", "echo a; echo b >&2; exit 7" }
		assert.equal(7, code)
		assert.equal("a\n", out)
		assert.equal("b\n", err)
	end)
end)
