-- Running another program: what it gets, what comes of it, and that nothing of it is left.
local cjson = require "cjson"
local files = require "support.files"
local process = require "support.process"

local SECONDS = 30

local function shell(script, options)
	options = options or {}
	local command = { process.driver "child_driver" }
	for key, value in pairs(options) do
		command[#command + 1] = "-" .. key
		command[#command + 1] = tostring(value)
	end
	for _, word in ipairs { "sh", "-c", script } do
		command[#command + 1] = word
	end
	return process.start(command)
end

-- The driver's account of what it holds afterwards.
local function leaves_nothing(child)
	assert.same({ reaped = true, descriptors = 0, live = 0 }, cjson.decode(child:line(SECONDS)))
	assert.equal(0, (child:wait(SECONDS)))
end

local function run(script, options)
	local child = shell(script, options)
	local result = cjson.decode(child:line(SECONDS))
	leaves_nothing(child)
	return result
end

local function await(what, is_so)
	local deadline = process.now() + SECONDS
	while true do
		local result = is_so()
		if result then
			return result
		end
		assert(process.now() < deadline, "not in time: " .. what)
		process.run { "sleep", "0.02" }
	end
end

-- What a script that says `echo $$ > FILE` wrote, once it is whole.
local function pid_in(path)
	return await("a pid in " .. path, function()
		local file = io.open(path)
		local pid = file and file:read "a":match "^(%d+)\n"
		if file then
			file:close()
		end
		return pid
	end)
end

-- Gone, or a zombie of somebody else's.
local function is_dead(pid)
	local file = io.open("/proc/" .. pid .. "/stat")
	local state = file and file:read "a":match "%) (%a)"
	if file then
		file:close()
	end
	return not state or state == "Z" or state == "X"
end

describe("a child process of the host", function()
	local folder

	before_each(function()
		folder = files.folder()
	end)

	it("gives its exit code, its output and the end of its errors", function()
		assert.same({ ["end"] = "exited", code = 3, output = "out\n", errors = "err\n" }, run "echo out; echo err >&2; exit 3")
		local result = run "kill -TERM $$"
		assert.same({ "signaled", 15 }, { result["end"], result.code })
		result = run("head -c 3000000 /dev/zero | tr '\\0' x >&2; printf end >&2", { e = 10 })
		assert.same({ 0, "xxxxxxxend" }, { result.code, result.errors })
	end)

	it("has the environment that it was given, and nothing to read", function()
		assert.equal("b||\n", run 'echo "$A|$HOME|$(cat)"'.output)
	end)

	it("has default signals, none of them blocked", function()
		local output = run "grep '^Sig[BI]' /proc/self/status".output
		local blocked, ignored = output:match "SigBlk:%s(%x+)\nSigIgn:%s(%x+)\n"
		assert.equal(("0"):rep(16), blocked)
		assert.equal(0, tonumber(ignored, 16) % 2 ^ 31) -- glibc ignores two of its own, 32 and 33
	end)

	it("has no descriptors but 0, 1 and 2, the first of which is empty, and a group of its own", function()
		local child = shell("echo $$ > " .. folder .. "/pid; exec sleep 1000")
		local pid = pid_in(folder .. "/pid")
		await("sleep in place of the shell, which has descriptors of its own", function()
			return files.read("/proc/" .. pid .. "/comm") == "sleep\n"
		end)
		assert.equal("0\n1\n2\n", files.output_of { "ls", "/proc/" .. pid .. "/fd" })
		assert.equal("/dev/null\n", files.output_of { "readlink", "/proc/" .. pid .. "/fd/0" })
		assert.equal(pid, files.read("/proc/" .. pid .. "/stat"):match "%) %a %d+ (%d+)")
		child:kill "USR1"
		leaves_nothing(child)
		assert.is_true(is_dead(pid))
	end)

	it("is killed with all its group when its time is over", function()
		local began = process.now()
		local result = run(("trap '' TERM; sleep 1000 & echo $! > %s/pid; wait"):format(folder), { t = 1 })
		assert.equal("timeout", result["end"])
		assert(process.now() - began < 20, "it took too long")
		local pid = pid_in(folder .. "/pid")
		await("the end of the group", function()
			return is_dead(pid)
		end)
	end)

	it("is killed with all its group when it says too much", function()
		local result = run(("sleep 1000 & echo $! > %s/pid; head -c 100000000 /dev/zero; wait"):format(folder), { o = 1000 })
		assert.equal("too large", result["end"])
		local pid = pid_in(folder .. "/pid")
		await("the end of the group", function()
			return is_dead(pid)
		end)
	end)

	it("may say just as much as is allowed", function()
		assert.equal(1000, #run("head -c 1000 /dev/zero | tr '\\0' x", { o = 1000 }).output)
		assert.equal("too large", run("head -c 1001 /dev/zero", { o = 1000 })["end"])
	end)

	it("is over when it has ended, though something of it runs on and holds its streams", function()
		local result = run("sleep 1000 & echo $!", { t = 60 })
		assert.equal("exited", result["end"])
		local pid = result.output:match "%d+"
		assert.is_false(is_dead(pid))
		process.run { "kill", pid }
	end)

	it("may close its streams and run on", function()
		local result = run "exec >&- 2>&-; sleep 0.2; exit 4"
		assert.same({ "exited", 4 }, { result["end"], result.code })
	end)

	it("that can't be started says why", function()
		local child = process.start { process.driver "child_driver", "/no/such/program" }
		local result = cjson.decode(child:line(SECONDS))
		assert.is_true(result.absent)
		assert.matches("cannot run /no/such/program: No such file", result.err, 1, true)
		leaves_nothing(child)
		child = process.start { process.driver "child_driver", folder }
		assert.is_false(cjson.decode(child:line(SECONDS)).absent)
		leaves_nothing(child)
	end)

	it("leaves nothing, however many there are", function()
		assert.equal("x\n", run("echo x", { n = 200 }).output)
	end)
end)
