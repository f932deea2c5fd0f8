local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"
local process = require "support.process"

describe("the pages of --listen #slow", function()
	local folder = files.folder()
	local kubeconfig = cli.kubeconfig(folder)

	local function start(text, ...)
		local script = files.write(folder .. "/a.lua", 'local k8s = require "perilune"\n' .. text)
		local child = cli.start { "run", script, "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0", ... }
		return child, "http://127.0.0.1:" .. child:wait_for("listening .*port=(%d+)", 10)
	end

	-- Status, body.
	local function get(url)
		local out = files.output_of {
			"curl", "--silent", "--noproxy", "*", "--max-time", "10", "--write-out", "\n%{http_code}", url,
		}
		local body, status = out:match "^(.*)\n(%d+)$"
		return tonumber(status), body
	end

	local function await(status, url)
		local deadline, seen = process.now() + 10
		repeat
			seen = get(url)
		until seen == status or process.now() > deadline
		assert.equal(status, seen)
	end

	it("say why the caches have not filled", function()
		local child, url = start 'k8s.informer { apiVersion = "v1", kind = "Pod" }'
		assert.same({ 200, "ok\n" }, { get(url .. "/healthz") })
		assert.same({ 200, "ok\n" }, { get(url .. "/livez") })
		local status, body = get(url .. "/readyz")
		assert.equal(503, status)
		assert.truthy(body:find("[-]v1/Pod", 1, true), body)
		child:kill()
		assert.equal(0, (child:wait(10)))
	end)

	it("say that a host with nothing to wait for is ready", function()
		local child, url = start ""
		await(200, url .. "/readyz")
		assert.same({ 200, "ok\n" }, { get(url .. "/readyz") })
		local _, body = get(url .. "/readyz?verbose")
		assert.truthy(body:find("readyz check passed", 1, true), body)
		child:kill()
		assert.equal(0, (child:wait(10)))
	end)

	it("give the status as JSON", function()
		local child, url = start 'k8s.informer { apiVersion = "v1", kind = "Pod" }'
		local status, body = get(url .. "/status")
		assert.equal(200, status)
		assert.equal("table", type(cjson.decode(body)))
		child:kill()
		assert.equal(0, (child:wait(10)))
	end)

	it("say that a stuck loop is stuck, also when idleness came before #soak", function()
		local child, url = start("k8s.on_synced(function() k8s.sleep(12) while true do end end)", "--time-limit", "0")
		await(200, url .. "/readyz")
		local idle_until = process.now() + 11
		while process.now() < idle_until do
			assert.equal(200, (get(url .. "/livez")))
			child:pump(0.5)
		end
		await(503, url .. "/livez")
		child:kill "KILL"
	end)

	-- Until /livez says no; its last answer.
	local function stuck(text, ...)
		local child, url = start(text, ...)
		local deadline, status, body = process.now() + 20
		repeat
			child:pump(0.2)
			status, body = get(url .. "/livez")
		until status == 503 or process.now() > deadline
		assert.equal(503, status)
		assert.equal(503, (get(url .. "/healthz")))
		assert.equal(503, (get(url .. "/status")))
		child:kill "KILL"
		return body, child:stderr()
	end

	it("name the script that keeps the loop, what it does and where, and so does the log", function()
		local body, log = stuck("k8s.on_synced(function() end)\nk8s.every(0.1, function()\nwhile true do end end)", "--time-limit", "0")
		assert.matches("^the event loop has been stuck for %d s: script a, k8s%.every, seen at %S*a%.lua:4\n$", body)
		assert.matches("k8s%.every has run for 1%.0 s without yielding script=a file=%S*a%.lua:4\n", log)
	end)

	it("name it also where no hook of Lua can come", function()
		local body = stuck("k8s.on_synced(function() local i = 0 while true do i = i + 1 end end)", "--jit", "--time-limit", "200ms")
		assert.matches("^the event loop has been stuck for %d s: script a, k8s%.on_synced\n$", body)
	end)
end)
