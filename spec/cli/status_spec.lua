local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"
local process = require "support.process"

local SECONDS = 20

describe("perilune status", function()
	local folder, children

	before_each(function()
		folder, children = files.folder(), {}
	end)

	after_each(function()
		for _, child in ipairs(children) do
			child:kill()
			assert.equal(0, (child:wait(SECONDS)))
		end
	end)

	-- In a world where no other host runs.
	local function options(arguments)
		arguments.env = arguments.env or { XDG_RUNTIME_DIR = folder, TMPDIR = folder }
		return arguments
	end

	local function start(name, text, arguments)
		local script = files.write(("%s/%s.lua"):format(folder, name), 'local k8s = require "perilune"\n' .. text)
		local all = options(arguments or {})
		local words = { "run", script, "--kubeconfig", cli.kubeconfig(folder), "--listen", "off", "--log-level", "debug" }
		if not arguments then
			words[3], words[4] = "--sandbox", "--sandbox"
		end
		for i, word in ipairs(words) do
			table.insert(all, i, word)
		end
		local child = cli.start(all)
		children[#children + 1] = child
		child:wait_for("control socket", SECONDS)
		return child
	end

	local function status(...)
		return cli.run(options { "status", ... })
	end

	-- One row of a table: "title" at the head of a column to its text.
	local function row(text, title, name)
		local titles, line = text:match("\n(" .. title .. " [^\n]*)\n.-(%f[^\n]" .. name:gsub("%p", "%%%0") .. " [^\n]*)")
		assert.truthy(line, text)
		local cells = {}
		local function columns(source)
			return (source .. "   "):gmatch "(%S.-)%s%s%s+"
		end
		local values = {}
		for value in columns(line) do
			values[#values + 1] = value
		end
		for heading in columns(titles) do
			cells[heading] = table.remove(values, 1)
		end
		return cells
	end

	it("shows informers, scripts and queues", function()
		start("team", [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
			local pods = k8s.informer { apiVersion = "v1", kind = "Pod" }
			maps:add_event_handler { add = function() error "never" end }
			k8s.controller { name = "busy", watch = pods, workers = 3, reconcile = function() end }
			k8s.every(0.01, function()
				k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "one" } }
			end)
		]])
		local out
		local deadline = process.now() + SECONDS
		repeat
			local code, text, err = status()
			assert.equal(0, code, err)
			out = text
		until row(out, "SCRIPT", "team").ERRORS == "1" or process.now() > deadline
		assert.equal("ready, 2 of 2 informers synced", out:match "^[^\n]*")
		local maps = row(out, "INFORMER", "v1/ConfigMap")
		assert.same({ "yes", "1", "streaming" }, { maps.SYNCED, maps.OBJECTS, maps.STATE })
		assert.truthy(maps["LAST EVENT"]:match "^%d+%.%ds$", maps["LAST EVENT"])
		local script = row(out, "SCRIPT", "team")
		assert.same({ "1", "1", folder .. "/team.lua", "running" }, { script.EVENTS, script.ERRORS, script.FILE, script.STATE })
		local handler = row(out, "HANDLER", "team.lua:4")
		assert.same({ "team", "v1/ConfigMap", "yes", "0", "-" },
			{ handler.SCRIPT, handler.INFORMER, handler.SYNCED, handler.DEPTH, handler.OLDEST })
		local controller = row(out, "CONTROLLER", "busy")
		assert.same({ "team", "yes", "3", "0", "0", "0" }, {
			controller.SCRIPT, controller.STARTED, controller.WORKERS, controller.RUNNING, controller.DEPTH, controller.DELAYED,
		})
	end)

	it("tells of a script that is parked, and why", function()
		local scripts = folder .. "/scripts"
		files.output_of { "mkdir", scripts }
		files.write(scripts .. "/good.lua", "")
		files.write(scripts .. "/bad.lua", 'require("perilune").every(0.01, function() while true do end end)')
		local child = cli.start(options { "run", scripts, "--sandbox", "--listen", "off", "--time-limit", "50ms" })
		children[#children + 1] = child
		child:wait_for("the script is parked", SECONDS)
		local code, out, err = status()
		assert.equal(0, code, err)
		assert.equal("ready, 0 of 0 informers synced, 1 script parked", out:match "^[^\n]*")
		assert.equal("running", row(out, "SCRIPT", "good").STATE)
		assert.matches("^parked: it was stopped 3 times within 60 s", row(out, "SCRIPT", "bad").STATE)
	end)

	it("gives what /status gives, as JSON", function()
		local child = start("team", 'k8s.informer { apiVersion = "v1", kind = "Pod" }')
		child:wait_for("synced, after", SECONDS)
		local code, out, err = status("-o", "json")
		assert.equal(0, code, err)
		local value = cjson.decode(out)
		assert.is_true(value.ready)
		assert.equal("v1/Pod", value.informers[1].informer)
		assert.equal("team", value.scripts[1].script)
	end)

	it("tells of caches that have not synced, and why", function()
		start("late", 'k8s.informer { apiVersion = "v1", kind = "Pod" }', {})
		local _, out = status()
		assert.equal("not ready, 0 of 1 informer synced", out:match "^[^\n]*")
		assert.equal("no", row(out, "INFORMER", "v1/Pod").SYNCED)
	end)

	it("fails where no host runs, and says what to do", function()
		local code, out, err = status()
		assert.same({ 1, "" }, { code, out })
		assert.truthy(err:find("start one with `perilune run`", 1, true), err)
		assert.truthy(err:find(folder .. "/perilune", 1, true), err)
		code, out, err = status("--socket", folder .. "/nobody")
		assert.same({ 1, "" }, { code, out })
		assert.truthy(err:find(folder .. "/nobody: no host listens there", 1, true), err)
	end)

	it("asks which one where several run, and takes the answer", function()
		start("red", "")
		start("blue", "", { "--socket", folder .. "/perilune/blue.sock" })
		local code, out, err = status()
		assert.same({ 2, "" }, { code, out })
		assert.truthy(err:find("--socket " .. folder .. "/perilune/blue.sock : blue", 1, true), err)
		local path = err:match "%-%-socket (%S+) : red"
		assert.truthy(path, err)
		code, out, err = status("--socket", path)
		assert.equal(0, code, err)
		assert.equal("red", row(out, "SCRIPT", "red").SCRIPT)
	end)

	it("takes no notice of a host that was killed, and the next one sweeps up", function()
		start("red", ""):kill "KILL"
		table.remove(children):wait(SECONDS)
		assert.equal(1, (status()))
		start("blue", "")
		local code, out, err = status()
		assert.equal(0, code, err)
		assert.equal("blue", row(out, "SCRIPT", "blue").SCRIPT)
		local left = files.output_of { "ls", folder .. "/perilune" }
		assert.equal(1, select(2, left:gsub("\n", "")), left)
	end)

	it("is not to be had where there is no place for a socket, and the host runs all the same", function()
		local child = start("team", "", { env = { XDG_RUNTIME_DIR = false, TMPDIR = folder .. "/not-there" } })
		assert.truthy(child:stderr():find("INFO  no control socket", 1, true), child:stderr())
		files.output_of { "mkdir", "--mode=0755", folder .. "/perilune" } -- which others can look into
		child = start("other", "", { env = { XDG_RUNTIME_DIR = folder, TMPDIR = folder .. "/not-there" } })
		assert.truthy(child:stderr():find("no control socket", 1, true), child:stderr())
		assert.equal(1, (status()))
		files.output_of { "rmdir", folder .. "/perilune" }
		files.output_of { "ln", "-s", files.folder(), folder .. "/perilune" }
		child = start("third", "", { env = { XDG_RUNTIME_DIR = folder, TMPDIR = folder .. "/not-there" } })
		assert.truthy(child:stderr():find("no control socket", 1, true), child:stderr())
	end)

	it("fails where a path was asked for and can't be had", function()
		local script = files.write(folder .. "/a.lua", "")
		local code, _, err = cli.run(options {
			"run", script, "--sandbox", "--listen", "off", "--socket", folder .. "/none/here",
		})
		assert.equal(1, code)
		assert.truthy(err:find("--socket: " .. folder .. "/none/here: No such file or directory", 1, true), err)
	end)

	it("lets names of objects and texts of servers not steer the terminal", function()
		start("\27[31mred", "")
		local code, out, err = status()
		assert.equal(0, code, err)
		assert.falsy(out:find("\27", 1, true))
		assert.truthy(out:find("?[31mred", 1, true), out)
	end)
end)
