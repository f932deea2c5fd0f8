local cli = require "support.cli"
local files = require "support.files"
local process = require "support.process"
local tcp = require "support.tcp"

describe("perilune run", function()
	local folder = files.folder()
	local kubeconfig = cli.kubeconfig(folder)
	local watcher = files.write(folder .. "/watcher.lua", [[
		local k8s = require "perilune"
		k8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler { add = function() end }
	]])

	local function start(...)
		return cli.start { "run", watcher, "--kubeconfig", kubeconfig, "--listen", "off", ... }
	end

	it("stops as asked", function()
		for _, signal in ipairs { "TERM", "INT" } do
			local child = start()
			child:wait_for("http://127.0.0.1:1", 10)
			child:kill(signal)
			assert.equal(0, (child:wait(10)))
		end
	end)

	it("says at the start that it is a dry run", function()
		for _, case in ipairs { { "--dry-run", true }, { "--jit", false } } do
			local child = start("--log-format", "json", case[1])
			child:wait_for('"msg":"perilune ', 10)
			child:kill "TERM"
			assert.equal(0, (child:wait(10)))
			assert.equal(case[2], child:stderr():match('[^\n]*"msg":"perilune [^\n]*'):find('"dry_run":"true"', 1, true) ~= nil)
		end
	end)

	it("ends with the late caches and exit code 3", function()
		local child = start("--sync-timeout", "300ms")
		assert.equal(3, (child:wait(20)))
		local err = child:stderr()
		assert.truthy(err:find("caches did not sync", 1, true), err)
		assert.truthy(err:find("[-]v1/Pod", 1, true), err)
	end)

	it("stays JSON to the end", function()
		local child = start("--sync-timeout", "300ms", "--log-format", "json")
		assert.equal(3, (child:wait(20)))
		for line in child:stderr():gmatch "[^\n]+" do
			assert.equal("string", type(require("cjson").decode(line).msg))
		end
	end)

	it("takes new code after SIGHUP, once its caches have synced", function()
		local child = start()
		child:wait_for("http://127.0.0.1:1", 10)
		child:kill "HUP"
		child:wait_for("the reload waits until the caches have synced", 10)
		child:kill "TERM"
		assert.equal(0, (child:wait(10)))
	end)

	it("takes new code after SIGHUP, and keeps the old where it is broken", function()
		local path = files.folder() .. "/script.lua"
		local function write(text)
			files.write(path, ('local k8s = require "perilune" k8s.on_synced(function() print "%s" end) %s'):format(text, text))
		end
		write "-- one"
		local child = cli.start { "run", "--sandbox", "--listen", "off", path }
		assert.equal("-- one", child:line(10))
		write "oops("
		child:kill "HUP"
		child:wait_for("ERROR reload failed, the code before goes on script=script file=[^\n]*script.lua:1 ", 10)
		write "-- two"
		child:kill "HUP"
		assert.equal("-- two", child:line(10))
		child:wait_for("INFO  reloaded script=script generation=2\n", 10)
		child:kill "TERM"
		assert.equal(0, (child:wait(10)))
	end)

	it("fails when the address it was given is taken", function()
		local server = tcp.listen()
		local port = server.port
		local code, _, err = cli.run { "run", watcher, "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:" .. port }
		assert.equal(1, code)
		assert.truthy(err:find("127.0.0.1:" .. port, 1, true), err)
		assert.truthy(err:find("in use", 1, true), err)
	end)

	-- Signals until the child gives in.
	local function insist(child, signal)
		local deadline = process.now() + 5
		repeat
			child:pump(0.1)
			child:kill(signal)
		until child:has_ended() or process.now() > deadline
		assert.equal(1, (child:wait(1)))
		assert.truthy(child:stderr():find("second signal", 1, true))
	end

	it("ends at once at the second signal, with exit code 1", function()
		local slow = files.write(folder .. "/slow.lua", [[
			local k8s = require "perilune"
			k8s.on_shutdown(function() k8s.sleep(60) end)
		]])
		local child = cli.start { "run", slow, "--kubeconfig", kubeconfig, "--listen", "off" }
		child:wait_for("http://127.0.0.1:1", 10)
		child:kill "TERM"
		child:wait_for("stopping", 10)
		child:kill "INT" -- so soon after the first it is no second request
		child:pump(0.2)
		assert.is_false(child:has_ended())
		insist(child, "INT")
	end)

	it("ends at the second signal while a script holds up the loop", function()
		local stuck = files.write(folder .. "/stuck.lua", [[
			local k8s = require "perilune"
			k8s.main(function() print "stuck" io.stdout:flush() while true do end end)
		]])
		local child = cli.start {
			"run", stuck, "--kubeconfig", kubeconfig, "--listen", "off", "--time-limit", "0", "--unsafe-libs",
		}
		child:wait_for("stuck", 10)
		child:kill "TERM"
		insist(child, "TERM")
	end)
end)
