local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"

local SECONDS = 20

describe("perilune reload", function()
	local folder, host

	local function write(name, text)
		return files.write(("%s/scripts/%s.lua"):format(folder, name), 'local k8s = require "perilune"\n' .. text)
	end

	local function start(...)
		host = cli.start {
			"run", folder .. "/scripts", "--sandbox", "--listen", "off", "--log-level", "debug", "--socket", folder .. "/socket", ...,
		}
		host:wait_for("control socket", SECONDS)
	end

	local function reload(...)
		return cli.run { "reload", "--socket", folder .. "/socket", ... }
	end

	local function done(counts)
		return { 0, ("%s, by the host at %s/socket\n"):format(counts, folder), "" }
	end

	before_each(function()
		folder = files.folder()
		files.output_of { "mkdir", folder .. "/scripts" }
		write("red", 'k8s.on_synced(function() print "red 1" end)')
		write("blue", 'k8s.on_synced(function() print "blue 1" end)')
	end)

	local function stop()
		host:kill()
		assert.equal(0, (host:wait(SECONDS)), host:stderr())
		host = nil
	end

	after_each(function()
		if host then
			stop()
		end
	end)

	it("comes back when the new code has taken its place", function()
		start()
		host:wait_for("red 1", SECONDS)
		write("red", 'k8s.on_synced(function() print "red 2" end)')
		assert.same(done "2 scripts reloaded", { reload() })
		host:wait_for("red 2", SECONDS)
		files.output_of { "rm", folder .. "/scripts/blue.lua" }
		write("green", "")
		assert.same(done "1 script reloaded, 1 new, 1 gone", { reload() })
		local code, out = reload("-o", "json")
		assert.equal(0, code)
		assert.same({ replaced = 2, started = 0, stopped = 0, failed = 0, error = "" }, cjson.decode(out))
		local _, text = cli.run { "status", "--socket", folder .. "/socket" }
		assert.truthy(text:find("\nred +4 "), text)
	end)

	it("waits where the caches have yet to fill", function()
		start()
		write("red", [[
			k8s.informer { apiVersion = "v1", kind = "Pod" }
			k8s.on_synced(function() print "red 2" end)
		]])
		assert.same(done "2 scripts reloaded", { reload() })
		host:wait_for("red 2", SECONDS)
	end)

	it("fails where a script does not load, and says why", function()
		start()
		write("red", "k8s.informr {}")
		local code, out, err = reload()
		assert.same({ 1, done("1 script reloaded")[2] }, { code, out })
		assert.truthy(err:find(("perilune: %s/socket: 1 script failed, the code before goes on: "):format(folder), 1, true), err)
		assert.truthy(err:find("red.lua:2:", 1, true), err)
	end)

	it("fails where the host ends before its caches have filled", function()
		write("red", 'k8s.informer { apiVersion = "v1", kind = "Nothing" }')
		start()
		local child = cli.start { "reload", "--socket", folder .. "/socket" }
		host:wait_for("the reload waits until the caches have synced", SECONDS)
		stop()
		assert.equal(1, (child:wait(SECONDS)))
		assert.truthy(child:stderr():find(folder .. "/socket: the program is stopping", 1, true), child:stderr())
	end)

	it("says where to look while it takes long", function()
		start()
		write("red", 'k8s.informer { apiVersion = "v1", kind = "Nothing" }')
		local child = cli.start { "reload", "--socket", folder .. "/socket" }
		child:wait_for("perilune: not done yet; `perilune status` shows", SECONDS)
		stop()
		assert.equal(1, (child:wait(SECONDS)))
		assert.equal(1, select(2, child:stderr():gsub("not done yet", "")))
	end)

	it("may be given up, and the host reloads all the same", function()
		write("red", 'k8s.informer { apiVersion = "v1", kind = "Nothing", optional = false }')
		start()
		local child = cli.start { "reload", "--socket", folder .. "/socket" }
		host:wait_for("the reload waits until the caches have synced", SECONDS)
		child:kill "KILL"
		child:wait(SECONDS)
		local code, _, err = cli.run { "status", "--socket", folder .. "/socket" }
		assert.equal(0, code, err)
		stop()
	end)

	it("fails where no host runs", function()
		local code, out, err = reload()
		assert.same({ 1, "" }, { code, out })
		assert.truthy(err:find("no host listens there", 1, true), err)
	end)
end)
