local cli = require "support.cli"
local files = require "support.files"

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
end)
