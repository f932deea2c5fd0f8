local cli = require "support.cli"
local files = require "support.files"
local k8s = require "perilune"
local stub = require "support.stub"

describe("perilune check", function()
	local folder, scripts = nil, 0

	setup(function()
		folder = files.folder()
	end)

	local function script(text)
		scripts = scripts + 1
		return files.write(("%s/s%d.lua"):format(folder, scripts), text)
	end

	local function fails(path, ...)
		local code, out, err = cli.run { "check", path }
		assert.equal(1, code, err)
		assert.equal("", out)
		for _, text in ipairs { ... } do
			assert.truthy(err:find(text, 1, true), ("no %q in: %s"):format(text, err))
		end
	end

	it("says where a script is malformed, as editors read it", function()
		local path = script "local x =\nlocal y = 1\n"
		fails(path, path .. ":2: ", "unexpected symbol")
		assert.truthy((select(3, cli.run { "check", path })):find("^" .. path:gsub("%p", "%%%0") .. ":2: "))
	end)

	it("says where a script fails at top level", function()
		local path = script '\n\nerror "no luck"\n'
		fails(path, path .. ":3: no luck")
	end)

	it("lists what a controller watches, owns and maps", function()
		local path = script [[
			local k8s = require "perilune"
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
			local pods = k8s.informer { apiVersion = "v1", kind = "Pod" }
			k8s.controller { name = "keys", watch = maps, owns = { pods }, map = { [pods] = print }, workers = 3, reconcile = print }
		]]
		local code, out, err = cli.run { "check", path }
		assert.equal(0, code, err)
		assert.truthy(out:find("  controller keys, 3 workers, watches v1/ConfigMap, owns v1/Pod, maps v1/Pod\n", 1, true), out)
	end)

	it("tells of every script that fails", function()
		local first, second = script "error 'one'", script "error 'two'"
		local code, _, err = cli.run { "check", first, second }
		assert.equal(1, code)
		assert.truthy(err:find(first .. ":1: one", 1, true), err)
		assert.truthy(err:find(second .. ":1: two", 1, true), err)
	end)

	it("prints what a script registers", function()
		local code, out, err = cli.run { "check", script [[
			local k8s = require "perilune"
			local pods = k8s.informer { apiVersion = "v1", kind = "Pod" }
			pods:add_event_handler { add = function() end }
		]] }
		assert.equal(0, code, err)
		assert.truthy(out:find("v1/Pod", 1, true), out)
	end)

	it("bears a handler that is removed at top level, whether or not the script loads", function()
		local ways = { "registration:remove()", "factory:shutdown()" }
		for _, way in ipairs(ways) do
			local text = [[
				local factory = require("perilune").factory()
				local maps = factory:informer { apiVersion = "v1", kind = "ConfigMap" }
				local registration = maps:add_event_handler { add = function() end }
				]] .. way .. "\n"
			local code, _, err = cli.run { "check", script(text) }
			assert.equal(0, code, err)
			fails(script(text .. 'error "no luck"'), "no luck")
		end
	end)

	it("names the file that holds no text", function()
		local path = script "\27LJ\2\0"
		fails(path, path .. ": ")
	end)

	it("says when a script registers nothing", function()
		local code, out, err = cli.run { "check", script "local x = 1" }
		assert.equal(0, code, err)
		assert.truthy(out:find(": registers nothing\n", 1, true), out)
	end)

	it("ends a script that does not come to its end", function()
		local path = script "while true do end"
		fails(path, path .. ":1: ")
	end)

	-- --- what has yet to run ---

	local function lines_of(path, ...)
		local code, out, err = cli.run { "check", path, ... }
		assert.equal(1, code, err)
		assert.equal("", out)
		return (err:gsub(path:gsub("%p", "%%%0") .. ":", ""))
	end

	it("tells of all unknown names in functions, each with its line, and what was meant", function()
		assert.equal([[
5: unknown global 'prnt', did you mean 'print'?
6: assignment to unknown global 'total': make it local, or define it at the top level of the file
7: perilune has no 'patchh', did you mean 'patch'?
8: k8s.status has no 'updat', did you mean 'update'?
9: k8s.log has no 'inform', did you mean 'info'?
10: os has no 'exit': --unsafe-libs gives it
11: unknown global 'undefined'
12: perilune can't be changed
13: module 'nowhere' not found: scripts can require perilune, cjson and the files of their own folder
]], lines_of(script [[
local k8s = require("perilune")
local status, log = k8s.status, k8s["log"]
k8s.on_shutdown(function()
	return function()
		prnt "x"
		total = 1
		k8s.patchh({}, {})
		local _, err = status.updat {}
		if not err then log["inform"] "x" end
		os.exit(1)
		_G.undefined()
		k8s.sleep = nil
		require "nowhere"
	end
end)
]]))
	end)

	it("says once what the script fails with at its top level, and the rest as well", function()
		assert.equal("1: unknown global 'prnt', did you mean 'print'?\n2: unknown global 'fob'\n",
			lines_of(script "prnt(1)\nlocal function f() fob() end\n"))
		assert.equal("1: unknown global 'k8s': begin with local k8s = require \"perilune\"\n", lines_of(script "k8s.informer {}\n"))
	end)

	it("says which libraries a flag gives", function()
		assert.equal("1: unknown global 'io': --unsafe-libs gives it\n", lines_of(script "io.open 'x'\n"))
		assert.equal("2: os has no 'execute': --unsafe-libs gives it\n", lines_of(script "function f()\nos.execute 'x'\nend\n"))
	end)

	it("looks into the modules that a script requires, at once or later", function()
		local place = files.folder()
		files.write(place .. "/init.lua", 'shared = require "now"\nlocal function f() require("a.b") end\n')
		local now = files.write(place .. "/now.lua", "return { f = function() fob() end }\n")
		assert(os.execute("mkdir " .. place .. "/a"))
		local later = files.write(place .. "/a/b.lua", "local function f() shared.x() end\nlocal =\n")
		local code, _, err = cli.run { "check", place }
		assert.equal(1, code)
		assert.equal(("%s:2: '<name>' expected near '='\n%s:1: unknown global 'fob'\n"):format(later, now), err)
	end)

	it("knows what is a local, a field or a global of the script's own", function()
		local code, _, err = cli.run { "check", script [===[
			local k8s = require "perilune"
			if k8s then helper = function() return later() end end
			function later() return helper, table.mine() end
			table.mine = function() end
			local function shadows(k8s) k8s.nothing() end
			local function shadowed() local k8s = {} k8s.nothing() end
			local other = k8s
			other = { nothing = 1 }
			local function f(a, ...)
				local prnt = { prnt = 1, ["x"] = a, ... ; function() return a end }
				for i, v in pairs { k8s.now() } do a = i .. v end
				for i = 1, #prnt do a = -i ^ 2 end
				repeat local inside = a until inside
				goto done
				while a do break end
				::done::
				return other.nothing, prnt.prnt:prnt(), k8s.config.anything, k8s.state.anything, ("%s"):format(1), a.b.c
			end
			k8s.state.mine = f
			local long = [==[ fob() ]==] -- fob()
			--[[ fob() ]] local text = 'fob()\'' .. "\"fob()"
		]===] }
		assert.equal(0, code, err)
	end)

	it("says nothing of globals that a script defines by means of its own, nor with --unsafe-libs", function()
		for _, text in ipairs { "local function f() fob() end setfenv(f, {})", "rawset(_G, 'fob', 1) local function f() fob() end" } do
			assert.equal(0, (cli.run { "check", script(text) }))
		end
		assert.equal(0, (cli.run { "check", script "local function f() io.open(fob) end", "--unsafe-libs" }))
		fails(script "local function f() io.open(fob) end", ":1: unknown global 'io'", ":1: unknown global 'fob'")
	end)

	it("tells of each script of a folder", function()
		local place = files.folder()
		files.write(place .. "/a.lua", "error 'one'")
		files.write(place .. "/b.lua", "error 'two'")
		fails(place, "/a.lua:1: one", "/b.lua:1: two")
	end)

	-- --- with a cluster ---

	it("asks a cluster for the kinds, but not for optional ones", function()
		local path = script [[
			local k8s = require "perilune"
			k8s.informer { apiVersion = "apps/v1", kind = "Deploymnt" }
			k8s.informer { apiVersion = "v1", resource = "secret" }
			k8s.informer { apiVersion = "example.com/v1", kind = "Widget", optional = true }
		]]
		assert.equal(0, (cli.run { "check", path }))
		local code, _, err = cli.run { "check", path, "--sandbox" }
		assert.equal(1, code)
		assert.truthy(err:find('"Deploymnt" in apps/v1; did you mean kind Deployment in apps/v1', 1, true), err)
		assert.truthy(err:find('"secret" in v1; did you mean resource secrets in v1', 1, true), err)
		assert.falsy(err:find("Widget", 1, true), err)
	end)

	it("says once that the cluster can't be reached", function()
		local path = script 'local k8s = require "perilune" k8s.informer { apiVersion = "v1", kind = "Pod" }'
		local code, _, err = cli.run { "check", path, "--kubeconfig", cli.kubeconfig(folder) }
		assert.equal(1, code)
		assert.truthy(err:find "^cannot reach http://127.0.0.1:1[^\n]*\n$", err)
	end)

	local RESOURCES = { kind = "APIResourceList", apiVersion = "v1", groupVersion = "v1", resources = {
		{ name = "pods", kind = "Pod", namespaced = true, verbs = { "list", "watch" } },
		{ name = "secrets", kind = "Secret", namespaced = true, verbs = { "list", "watch" } },
	} }

	-- Answers so many requests; is_allowed is asked with the attributes of each review. Those, by verb and resource.
	local function serve(server, count, is_allowed)
		local asked = {}
		for _ = 1, count do
			local request = server:accept()
			local answer = RESOURCES
			if request.method == "POST" then
				assert.equal("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", request.target)
				answer = k8s.json.decode(request.body)
				local attributes = answer.spec.resourceAttributes
				asked[attributes.verb .. " " .. attributes.resource] = attributes
				answer.status = { allowed = is_allowed(attributes) }
			end
			request:reply(request.method == "POST" and 201 or 200, { ["content-type"] = "application/json" }, k8s.json.encode(answer))
		end
		return asked
	end

	it("asks for each right, and names those that are missing", function()
		local server = stub.listen()
		local child = cli.start { "check", script [[
			local k8s = require "perilune"
			k8s.informer { apiVersion = "v1", kind = "Pod", namespace = "shop" }
			k8s.informer { apiVersion = "v1", kind = "Secret", namespace = "shop" }
			k8s.needs { { apiGroups = "apps", resources = "deployments/scale", verbs = "patch" } }
		]], "--kubeconfig", cli.kubeconfig(folder, server.url) }
		local asked = serve(server, 6, function(attributes)
			return attributes.resource == "pods"
		end)
		assert.equal(1, (child:wait(10)))
		assert.equal("missing: list, watch on secrets in namespace shop\nmissing: patch on deployments.apps/scale in namespace shop\n", child:stderr())
		assert.equal("", child:stdout())
		assert.same({ verb = "list", resource = "secrets", namespace = "shop" }, asked["list secrets"])
		assert.same({ verb = "patch", group = "apps", resource = "deployments", subresource = "scale", namespace = "shop" }, asked["patch deployments"])
	end)

	it("prints what scripts register where all is allowed", function()
		local server = stub.listen()
		local child = cli.start { "check", script 'local k8s = require "perilune" k8s.informer { apiVersion = "v1", kind = "Pod" }',
			"--kubeconfig", cli.kubeconfig(folder, server.url) }
		serve(server, 3, function()
			return true
		end)
		assert.equal(0, (child:wait(10)))
		assert.truthy(child:stdout():find("informer v1/Pod", 1, true))
	end)
end)
