-- Indexes by function: what a script files each object of an informer under.
local cache = require "support.cache"
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"
local script = require "support.script"

-- A ConfigMap whose owners are words.
local function object(name, version, owners)
	return script.object(name, version, { data = { owners = owners } })
end

local FIND = [[
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
	local function words(map)
		local found = {}
		for word in map.data.owners:gmatch "%S+" do found[#found + 1] = word end
		return found
	end
	local function find(name, value)
		local found = {}
		for i, map in ipairs(maps:list { index = { [name] = value } }) do found[i] = map.metadata.name end
		table.sort(found)
		return table.concat(found, " ")
	end
]]

describe("an index by function", function()
	local server, run

	before_each(function()
		server = script.start()
	end)

	local function start(text, items)
		run = host.start { kubeconfig = cache.config(server.url), script = FIND .. text }
		server:discover()
		server:list({ resourceVersion = "0", limit = "500" }):items(items, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		return stream
	end

	local SHOW = [[
		local function show() print(find("owner", "x") .. "|" .. find("owner", "y") .. "|" .. find("owner", "z")) end
		maps:add_event_handler { add = function(_, event) if not event.initial then show() end end, update = show, delete = show }
	]]

	it("files each object under all that it returns, and follows updates and deletes", function()
		local stream = start([[maps:add_index { owner = words } k8s.on_synced(function()
			print(find("owner", "x") .. "|" .. find("owner", "y"))
		end)]] .. SHOW, { object("a", 5, "x y"), object("b", 6, "y y"), object("c", 7, "") })
		assert.equal("a|a b", run:line())
		stream:event("MODIFIED", "a", 11, { data = { owners = "y z" } })
		assert.equal("|a b|a", run:line())
		stream:event("ADDED", "d", 12, { data = { owners = "z" } })
		assert.equal("|a b|a d", run:line())
		stream:event("DELETED", "a", 13, { data = { owners = "x" } })
		assert.equal("|b|d", run:line())
		stream:error(410, "Expired", "too old")
		server:list({ resourceVersion = "13" }):items({ object("b", 21, "x"), object("d", 12, "z") }, { version = "30" })
		server:watch("30"):open()
		assert.equal("b||d", run:line())
		run:stop()
	end)

	it("may return one string, or nothing", function()
		start([[maps:add_index { owner = function(map) return map.data.owners:match "^%w+$" end }
			k8s.on_synced(function() print(find("owner", "x") .. "|" .. find("owner", "x y")) end)]],
			{ object("a", 5, "x"), object("b", 6, "x y") })
		assert.equal("a|", run:line())
		run:stop()
	end)

	it("added late is built over what is there, and sees one object an event from then on", function()
		local stream = start([[
			local calls, late = 0, false
			local function add()
				if late then return end
				late = true
				maps:add_index { owner = function(map) calls = calls + 1 return words(map) end }
			end
			maps:add_event_handler { add = function(_, event)
				if event.initial then k8s.sleep(0.001) add() end
				local found = find("owner", "x")
				print(calls, found)
			end }]], { object("a", 5, "x"), object("b", 6, "y x"), object("c", 7, "y") })
		for _ = 1, 3 do
			assert.equal("3\ta b", run:line())
		end
		stream:event("ADDED", "d", 11, { data = { owners = "x" } })
		assert.equal("4\ta b d", run:line())
		run:stop()
	end)

	it("is the script's own: two scripts may use one name for different things", function()
		run = host.start {
			flags = { "--sandbox" }, pages = true,
			scripts = {
				one = FIND .. [[ maps:add_index { owner = "data.owners" } k8s.on_synced(function()
					k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m", namespace = "default" }, data = { owners = "x y" } }
					while find("owner", "x y") == "" do k8s.sleep(0.01) end
					print("one", find("owner", "x"))
				end) ]],
				two = FIND .. [[ maps:add_index { owner = words } k8s.on_synced(function()
					while find("owner", "x") == "" do k8s.sleep(0.01) end
					print("two", find("owner", "x y"))
				end) ]],
			},
		}
		local lines = { run:line(), run:line() }
		table.sort(lines)
		assert.same({ "one\t", "two\t" }, lines)
		assert.equal(1, #run:status().informers)
		run:stop()
	end)

	it("ends with the informer that it was asked of, also where another goes on with the same watch", function()
		local stream = start([[
			local calls, rounds = 0, nil
			maps:add_index { owner = words }
			maps:add_event_handler { add = function(_, event)
				if not event.initial then print(calls, find("owner", "x")) end
			end }
			k8s.on_synced(function()
				local factory = k8s.factory()
				local other = factory:informer { apiVersion = "v1", resource = "configmaps", index = { owner = function()
					calls = calls + 1
					return "gone"
				end } }
				factory:start()
				factory:wait_for_cache_sync()
				local found = #other:list { index = { owner = "gone" } }
				print(calls, found)
				factory:shutdown()
				rounds = 0
			end)
			k8s.every(0.01, function()
				collectgarbage() -- the handle, which may still be read
				rounds = rounds and rounds + 1
				if rounds == 3 then print "collected" end
			end)
		]], { object("a", 5, "x"), object("b", 6, "y") })
		assert.equal("2\t2", run:line())
		assert.equal("collected", run:line())
		stream:event("ADDED", "c", 11, { data = { owners = "x" } })
		assert.equal("2\ta c", run:line())
		run:stop()
	end)

	it("bears that another one's informer is collected while it runs", function()
		local stream = start([[
			local shut = false
			maps:add_index { owner = function(map)
				if shut then collectgarbage() end
				return words(map)
			end }
			maps:add_event_handler { add = function(_, event)
				if not event.initial then print(find("owner", "x")) end
			end }
			k8s.on_synced(function()
				local factory = k8s.factory()
				factory:informer { apiVersion = "v1", resource = "configmaps", index = { owner = "data.owners" } }
				factory:start()
				factory:wait_for_cache_sync()
				factory:shutdown()
				shut = true
				print "shut"
			end)
		]], { object("a", 5, "x") })
		assert.equal("shut", run:line())
		stream:event("ADDED", "b", 11, { data = { owners = "x" } })
		assert.equal("a b", run:line())
		stream:event("ADDED", "c", 12, { data = { owners = "x" } })
		assert.equal("a b c", run:line())
		run:stop()
	end)

	describe("that fails for an object", function()
		local wrong = {
			["by an error"] = { "error 'no'", "script%.lua:%d+: no" },
			["by returning what is no string"] = { "return 7", "script%.lua:%d+: the index function returned a number, not a string" },
			["by returning a list with something else in it"] = { "return { 'x', 7 }", "returned a table with number in it, not strings alone" },
			["by returning names"] = { "return { owner = 'x' }", "returned a table with names for keys in it" },
			["by waiting"] = { "k8s.sleep(1)", "k8s%.sleep waits for the host, which does not work inside the script's index function" },
			["by adding an index"] = { "maps:add_index { more = 'data.x' }", "informer:add_index does not work inside the script's index function" },
		}
		for how, case in pairs(wrong) do
			for when, add in pairs { first = "%s", late = "k8s.on_synced(function() %s end)" } do
				it(how .. " leaves it out of that index, added " .. when, function()
					local stream = start(([[
						local function owner(map) if map.data.owners == "bad" then %s end return words(map) end
						]] .. add .. [[ k8s.on_synced(function() print(find("owner", "x") .. "|" .. maps:count()) end)]])
						:format(case[1], "maps:add_index { owner = owner }") .. SHOW, { object("a", 5, "x"), object("b", 6, "x"), object("bad", 7, "bad") })
					assert.equal("a b|3", run:line())
					stream:event("MODIFIED", "a", 11, { data = { owners = "bad" } })
					assert.equal("b||", run:line())
					stream:event("MODIFIED", "a", 12, { data = { owners = "y" } })
					assert.equal("b|a|", run:line())
					local line = run:log_line "index function failed"
					assert.matches(case[2], line)
					assert.matches("name=bad", line)
					run:stop()
				end)
			end
		end
	end)

	it("that never ends is stopped where it is added late, and the host goes on", function()
		run = host.start { flags = { "--sandbox", "--time-limit", "200ms" }, script = FIND .. [[
			k8s.on_synced(function()
				k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m", namespace = "default" }, data = { owners = "x" } }
				while maps:count() == 0 do k8s.sleep(0.01) end
				maps:add_index { owner = function() while true do end end }
				pcall(maps.list, maps, { index = { owner = "x" } })
				print "not stopped"
			end)
			local said
			k8s.every(0.05, function() if maps:count() > 0 and not said then said = true k8s.sleep(1) print "alive" end end)
		]] }
		assert.matches("ran longer than 0%.2 s", run:log_line "k8s.on_synced failed")
		assert.equal("alive", run:line())
		run:stop()
	end)

	it("is one where the same function is named again, and misuse where another is", function()
		local path = files.write(files.folder() .. "/script.lua", 'local k8s = require "perilune" ' .. FIND .. [[
			maps:add_index { owner = words, node = "data.node" }
			k8s.informer { apiVersion = "v1", kind = "ConfigMap", index = { owner = words, node = "data.node" } }
			for _, other in ipairs { function() end, "data.owner" } do
				local ok, err = pcall(maps.add_index, maps, { owner = other })
				assert(not ok and err:find("index 'owner' of v1/ConfigMap is there already, over another path or function", 1, true), err)
			end
			local ok, err = pcall(maps.add_index, maps, { owner = true })
			assert(not ok and err:find('an index is name = "path" or a function', 1, true), err)]])
		local code, _, err = cli.run { "check", path }
		assert.equal(0, code, err)
	end)
end)
