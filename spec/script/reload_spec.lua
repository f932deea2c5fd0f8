-- New generations of a script while it runs: what goes on, what begins anew, and what a broken file changes: nothing.
local files = require "support.files"
local testing = require "perilune.testing"

local HEAD = [[local k8s = require "perilune" local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" } ]]

describe("a reload", function()
	local cluster, program, folder

	before_each(function()
		cluster = testing.cluster { quiet = true }
		folder = files.folder() .. "/app"
		os.execute("mkdir " .. folder)
	end)

	local function write(text, name)
		files.write(folder .. "/" .. (name or "init.lua"), HEAD .. text)
	end

	local function load(text)
		write(text)
		program = cluster:load(folder)
		cluster:settle()
	end

	local function reload(text)
		write(text)
		program:reload()
		cluster:settle()
	end

	local function map(name, data)
		return { apiVersion = "v1", kind = "ConfigMap", data = data, metadata = { namespace = "default", name = name } }
	end

	local function told(what, field)
		local values = {}
		for _, line in ipairs(cluster:logs { msg = what }) do
			values[#values + 1] = line[field or "name"]
		end
		return values
	end

	local function handler(generation)
		return ([[maps:add_event_handler {
			add = function(map, event) k8s.log.info("add", { name = map.metadata.name .. "%s" .. (event.initial and "i" or "") }) end,
			delete = function(map) k8s.log.info("delete", { name = map.metadata.name .. "%s" }) end }]]):format(generation, generation)
	end

	local function watched()
		return #cluster:requests { verb = "watch", resource = "configmaps" }
	end

	-- A kind that was not there.
	local function define_moon()
		assert(cluster:create { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition", metadata = { name = "moons.example.com" },
			spec = { group = "example.com", scope = "Namespaced", names = { plural = "moons", kind = "Moon" }, versions = { {
				name = "v1", served = true, storage = true, schema = { openAPIV3Schema = { type = "object" } } } } } })
	end

	local MOONS = [[ k8s.informer { apiVersion = "example.com/v1", kind = "Moon" } ]]

	describe("of working code", function()
		it("gives the new handlers what is there, and asks the server for nothing that it has", function()
			assert(cluster:create(map "a"))
			load(handler "1")
			local asked = #cluster:requests {}
			reload(handler "2")
			assert.equal(asked, #cluster:requests {})
			assert(cluster:create(map "b"))
			assert(cluster:delete(map "a"))
			cluster:settle()
			assert.same({ "a1i", "a2i", "b2" }, told "add")
			assert.same({ "a2" }, told "delete")
			assert.same({ "2" }, told("reloaded", "generation"))
		end)

		it("waits for what is new, and lets what is no longer wanted go", function()
			load(handler "1")
			reload(handler "2" .. [[ k8s.informer { apiVersion = "v1", kind = "Secret" } ]])
			assert.equal(1, watched())
			assert.equal(1, #cluster:requests { verb = "watch", resource = "secrets" })
			reload(handler "3")
			assert.same({ "2", "3" }, told("reloaded", "generation"))
			-- A third time it is asked for anew, as nobody kept it.
			reload(handler "4" .. [[ k8s.informer { apiVersion = "v1", kind = "Secret" } ]])
			assert.equal(2, #cluster:requests { verb = "watch", resource = "secrets" })
			assert.equal(1, watched())
		end)

		it("tells the old handlers what waited for them before the new ones begin", function()
			load [[maps:add_event_handler { add = function(map)
				k8s.sleep(1)
				k8s.log.info("add", { name = map.metadata.name .. "1" })
			end }]]
			for _, name in ipairs { "a", "b", "c" } do
				assert(cluster:create(map(name)))
			end
			cluster:settle()
			reload(handler "2")
			assert.same({}, told "add")
			cluster:advance(3)
			assert.same({ "a1", "b1", "c1", "a2i", "b2i", "c2i" }, told "add")
		end)

		it("drops, and counts, what the old handlers don't take within 10 s", function()
			load [[maps:add_event_handler { add = function(map)
				k8s.sleep(12)
				k8s.log.info("add", { name = map.metadata.name .. "1" })
			end }]]
			for _, name in ipairs { "a", "b", "c" } do
				assert(cluster:create(map(name)))
			end
			cluster:settle()
			reload(handler "2")
			cluster:advance(9.9)
			assert.same({}, told "add")
			cluster:advance(5)
			assert.same({ "a2i", "b2i", "c2i", "a1" }, told "add")
			assert.equal("2 events were not told to the code before within 10 s and are dropped", cluster:logs({ level = "warn" })[1].msg)
		end)

		it("begins its timers, and ends the old ones", function()
			load [[k8s.every(1, function() k8s.log.info "tick 1" end) k8s.on_shutdown(function() k8s.log.info "end 1" end)]]
			cluster:advance(2.5)
			reload [[k8s.every(1, function() k8s.log.info "tick 2" end) k8s.on_synced(function() k8s.log.info "synced 2" end)]]
			cluster:advance(2.5)
			assert.equal(2, #cluster:logs { msg = "tick 1" })
			assert.equal(2, #cluster:logs { msg = "tick 2" })
			assert.equal(1, #cluster:logs { msg = "end 1" })
			assert.equal(1, #cluster:logs { msg = "synced 2" })
		end)

		it("hands k8s.state on, as it is in the moment of the change", function()
			load [[k8s.state.list, k8s.state.count = k8s.array {}, 1
				k8s.every(1, function() k8s.state.count = k8s.state.count + 1 k8s.sleep(0.5) k8s.state.late = true end)]]
			cluster:advance(1.2)
			reload [[local at_load = k8s.state.count
				k8s.on_synced(function()
					k8s.log.info("state", { name = at_load .. " " .. k8s.state.count .. " " .. k8s.json.encode(k8s.state.list) .. tostring(k8s.state.late) })
				end)
				k8s.every(2, function() k8s.log.info("state", { name = tostring(k8s.state.late) }) end)]]
			cluster:advance(3)
			assert.same({ "2 2 []nil", "nil" }, told "state")
		end)

		it("hands on what became of k8s.state since the load, in the tables that the new code holds", function()
			load [[k8s.state.seen, k8s.state.schema, k8s.state.gone = { first = 1, last = 1, list = k8s.array { 1, 2, 3 } }, 1, "x"
				k8s.every(1, function()
					k8s.state.gone, k8s.state.seen.first, k8s.state.seen.last = nil, nil, 2
					k8s.state.seen.list = k8s.array { 4 }
				end)]]
			reload(MOONS .. [[k8s.state.schema, k8s.state.mine = 2, true
				local seen = k8s.state.seen
				seen.mine = true
				k8s.on_synced(function()
					seen.after = true
					k8s.log.info("state", { name = tostring(k8s.equal(k8s.state, {
						seen = { last = 2, list = k8s.array { 4 }, mine = true, after = true }, schema = 2, mine = true })) })
				end)]])
			cluster:advance(2)
			define_moon()
			cluster:advance(60)
			assert.same({ "true" }, told "state")
		end)

		it("runs the new code of a module too", function()
			files.write(folder .. "/words.lua", [[return "one"]])
			load [[k8s.log.info("word", { name = require "words" }) k8s.on_synced(function() end)]]
			files.write(folder .. "/words.lua", [[return "two"]])
			program:reload()
			cluster:settle()
			assert.same({ "one", "two" }, told "word")
		end)
	end)

	describe("of a controller", function()
		local function controller(generation, options)
			return ([[local running = {}
			k8s.controller { name = "keys", watch = maps, workers = 2, %s reconcile = function(request, context)
				k8s.log.info("begin", { name = request.name .. "%s", attempt = context.attempt })
				if request.name:find "^slow" then k8s.sleep(5) end
				if request.name:find "^bad" then error "bad" end
				k8s.log.info("end", { name = request.name .. "%s" })
			end }]]):format(options or "", generation, generation)
		end

		it("never has a key in two workers, and lets what runs end in the old code", function()
			load(controller "1")
			assert(cluster:create(map "slow"))
			cluster:settle()
			reload(controller "2")
			assert.same({ "slow1" }, told "begin")
			assert(cluster:create(map "quick"))
			cluster:settle()
			assert.same({ "slow1", "quick2" }, told "begin")
			cluster:advance(5.1)
			assert.same({ "quick2", "slow1" }, told "end")
			-- The new code wants to see what is there, and that key waited until its worker was done.
			assert.same({ "slow1", "quick2", "slow2" }, told "begin")
		end)

		it("cancels what has not ended after 30 s, and runs the key again in the new code", function()
			load [[k8s.controller { name = "keys", watch = maps, timeout = 600, reconcile = function(request)
				k8s.log.info("begin", { name = request.name .. "1" })
				k8s.sleep(300)
				k8s.log.info("end", { name = request.name .. "1" })
			end }]]
			assert(cluster:create(map "a"))
			cluster:settle()
			reload(controller "2")
			cluster:advance(29)
			assert.same({ "a1" }, told "begin")
			cluster:advance(2)
			assert.same({ "a1", "a2" }, told "begin")
			assert.same({ "a2" }, told "end")
			assert.equal("1 calls of the code before were still running after 30 s and are cancelled", cluster:logs({ level = "warn" })[1].msg)
		end)

		it("keeps the counts of failures, and the keys that wait", function()
			load(controller("1", "rate_limit = { base = 10 },"))
			assert(cluster:create(map "bad"))
			cluster:advance(35) -- failed at 0, 10 and 30; the next try would be at 70
			assert.same({ "1", "2", "3" }, told("begin", "attempt"))
			reload(controller("2", "rate_limit = { base = 10 },"))
			cluster:advance(34)
			assert.equal(3, #told "begin")
			cluster:advance(2)
			assert.same({ "bad1", "bad1", "bad1", "bad2" }, told "begin")
			assert.equal("4", told("begin", "attempt")[4])
		end)

		it("takes new options, and forgets a controller that is gone", function()
			load(controller "1")
			reload(((controller "2"):gsub('name = "keys"', 'name = "other"')))
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a2" }, told "end")
			reload(controller("3", "workers = 1,"))
			assert.same({ "a2", "a3" }, told "end")
		end)
	end)

	describe("of a controller that comes and goes", function()
		local function controller(generation, name)
			return ([[k8s.controller { name = "%s", watch = maps, reconcile = function(request)
				k8s.log.info("begin", { name = request.name .. "%s" })
				if request.name:find "^slow" then k8s.sleep(20) end
				k8s.log.info("end", { name = request.name .. "%s" })
			end }]]):format(name or "keys", generation, generation)
		end

		it("never has a key in two workers, though a generation in between had no such controller", function()
			load(controller "1")
			assert(cluster:create(map "slow"))
			cluster:settle()
			reload(handler "2")
			reload(controller "3")
			assert(cluster:create(map "quick"))
			cluster:advance(10)
			assert.same({ "slow1" }, told "begin")
			cluster:advance(11)
			assert.same({ "slow1", "quick3", "slow3" }, told "begin")
			assert.same({ "slow1", "quick3" }, told "end")
		end)

		it("lets it move to a script that another file holds, with its keys", function()
			write(controller "1", "one.lua")
			program = cluster:load(folder)
			assert(cluster:create(map "slow"))
			cluster:settle()
			os.remove(folder .. "/one.lua")
			write(controller "2", "two.lua")
			program:reload()
			cluster:advance(10)
			assert.same({}, cluster:logs { level = "error" })
			assert.same({ "slow1" }, told "begin")
			cluster:advance(11)
			assert.same({ "slow1", "slow2" }, told "begin")
		end)

		it("gives its name to one script alone, though two ask for it at once", function()
			write(handler "1", "one.lua")
			write(handler "1", "two.lua")
			program = cluster:load(folder)
			cluster:settle()
			write(controller "2", "one.lua")
			write(controller "2", "two.lua")
			program:reload()
			cluster:settle()
			local errors = cluster:logs { level = "error" }
			assert.equal(1, #errors)
			assert.equal("two", errors[1].script)
			assert.matches("there is a controller 'keys' already", errors[1].error, 1, true)
		end)

		it("keeps it in its script while that goes on", function()
			write(controller "1", "one.lua")
			program = cluster:load(folder)
			cluster:settle()
			write(controller "2", "two.lua")
			program:reload()
			cluster:settle()
			assert.equal(1, #cluster:logs { msg = "reload failed, the code before goes on", script = "two" })
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a1" }, told "begin")
		end)

		it("tells the new code of an object that went while the old handlers were told the rest", function()
			local slow = [[maps:add_event_handler { add = function(_, event) if not event.initial then k8s.sleep(5) end end }]]
			load(controller "1" .. slow)
			assert(cluster:create(map "a"))
			cluster:settle()
			reload(controller "2" .. slow)
			assert(cluster:delete(map "a"))
			cluster:advance(6)
			assert.same({ "2" }, told("reloaded", "generation"))
			assert.equal(2, #told "end")
		end)
	end)

	describe("that waits for its caches", function()
		it("gives way to newer code", function()
			load(handler "1")
			reload(handler "2" .. MOONS)
			assert(cluster:create(map "a"))
			cluster:settle()
			reload(handler "3")
			assert.same({ "a1", "a3i" }, told "add")
			assert.same({}, cluster:logs { level = "error" })
		end)

		it("goes on when it is asked for again with the same code", function()
			load(handler "1")
			reload(handler "2" .. MOONS)
			cluster:advance(10)
			for _ = 1, 5 do
				program:reload()
			end
			cluster:advance(10)
			assert(cluster:create(map "a"))
			define_moon()
			cluster:advance(60)
			assert.same({ "2" }, told("reloaded", "generation"))
			assert.same({ "a1", "a2i" }, told "add")
		end)

		it("keeps no other script from its new code", function()
			write(handler "1", "one.lua")
			write(handler "1", "two.lua")
			program = cluster:load(folder)
			cluster:settle()
			write(handler "2" .. MOONS, "one.lua")
			program:reload()
			cluster:settle()
			write(handler "3", "two.lua")
			program:reload()
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a1", "a3" }, told "add")
			define_moon()
			cluster:advance(60)
			assert.same({ "a1", "a3", "a2i" }, told "add")
		end)

		it("is dropped where its file goes, also while another script still gives up its place", function()
			write(handler "1", "one.lua")
			write([[maps:add_event_handler { add = function() k8s.sleep(5) end }]], "two.lua")
			program = cluster:load(folder)
			cluster:settle()
			write(handler "2" .. MOONS, "one.lua")
			write("", "two.lua")
			assert(cluster:create(map "a"))
			cluster:settle()
			program:reload()
			cluster:settle()
			program:reload() -- its turn comes when two.lua has ended
			os.remove(folder .. "/one.lua")
			cluster:advance(10)
			define_moon()
			cluster:advance(60)
			assert.same({ "a1" }, told "add")
			assert.equal(1, #cluster:logs { msg = "the script is gone, it ends" })
			assert(cluster:create(map "b"))
			cluster:settle()
			assert.same({ "a1" }, told "add")
		end)
	end)

	describe("of code that eats its memory", function()
		it("keeps the old code where the new one is stopped before its turn", function()
			load(handler "1")
			reload(handler "2" .. "kept = {} k8s.main(function() for i = 1, 1e9 do kept[i] = ('x'):rep(2e6 + i) end end)")
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a1" }, told "add")
			assert.equal(1, #cluster:logs { msg = "reload failed, the code before goes on" })
		end)

		it("lets the new code work on where the old one is stopped meanwhile", function()
			local controller = [[k8s.controller { name = "keys", watch = maps, reconcile = function(request) k8s.log.info("key", { name = request.name }) end }]]
			load(controller .. "kept = {} k8s.every(5, function() for i = 1, 1e9 do kept[i] = ('x'):rep(2e6 + i) end end)")
			reload(controller .. MOONS)
			cluster:advance(6)
			define_moon()
			cluster:advance(60)
			assert.same({ "2" }, told("reloaded", "generation"))
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a" }, told "key")
		end)
	end)

	describe("in the midst of things", function()
		local SLOW = [[maps:add_event_handler { add = function(_, event) if not event.initial then k8s.sleep(5) end end }]]

		it("is one reload however often it is asked for meanwhile", function()
			load(handler "1")
			write(handler "2")
			for _ = 1, 100 do
				program:reload()
			end
			cluster:settle()
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.equal(1, #told "add")
			assert(#told("reloaded", "generation") <= 2)
			assert.equal(1, watched())
		end)

		for _, phase in ipairs { "waits for its caches", "tells the old handlers the rest", "lets old calls end" } do
			it("ends with the program, too, while it " .. phase, function()
				load(SLOW .. [[k8s.every(0.5, function() k8s.sleep(20) end)]])
				cluster:advance(1)
				if phase:find "^tells" then
					assert(cluster:create(map "a"))
					cluster:settle()
				end
				reload(handler "2" .. (phase:find "^waits" and MOONS or "") .. [[k8s.main(function() k8s.sleep(600) end)]])
				assert.equal(phase:find "^lets" and 1 or 0, #told("reloaded", "generation"))
				program:kill()
				cluster:settle()
			end)
		end

		it("lets an API call of the old code end there", function()
			load [[k8s.every(1, function()
				local made = k8s.create { apiVersion = "v1", kind = "Secret", metadata = { namespace = "default", generateName = "s-" } }
				k8s.log.info("made", { name = made and "yes" or "no" })
			end)]]
			cluster:fault { verb = "create", resource = "secrets", action = "slow", bytes_per_second = 100 }
			cluster:advance(1.1)
			reload [[k8s.every(1000, function() end)]]
			assert.equal(1, #told("reloaded", "generation"))
			cluster:advance(20)
			assert.same({ "yes" }, told "made")
		end)

		it("may find a factory shut down, and a handler gone, in the old code and in the new one", function()
			local factory = [[local factory = k8s.factory { namespace = "default" }
				local mine = factory:informer { apiVersion = "v1", kind = "ConfigMap" }
				local registration = mine:add_event_handler { add = function(map, event) k8s.log.info("mine", { name = map.metadata.name .. "%s" }) k8s.sleep(3) end }
				k8s.every(%d, function() registration:remove() end)
				k8s.every(%d, function() factory:shutdown() end)]]
			assert(cluster:create(map "a"))
			load(factory:format("1", 1, 2))
			cluster:advance(2.5)
			reload(factory:format("2", 9, 1))
			assert(cluster:create(map "b"))
			cluster:advance(5)
			reload(factory:format("3", 9, 9))
			cluster:advance(1)
			assert(cluster:create(map "c"))
			cluster:settle()
			reload(factory:format("4", 1, 1) .. MOONS)
			cluster:advance(40)
			define_moon()
			cluster:advance(40)
			assert.same({ "a1", "a2", "a3" }, { unpack(told "mine", 1, 3) })
			assert.matches("4$", told("mine")[#told "mine"])
			assert.equal(0, #cluster:logs { level = "error" })
		end)

		it("takes private and optional informers, and index functions that fail", function()
			local private = [[
				local mine = k8s.informer { apiVersion = "v1", kind = "ConfigMap",
					transform = function(object) object.data = { generation = "%s" } return object end,
					index = { wrong = function() error "no" end, right = function() return "x" end } }
				k8s.informer { apiVersion = "example.com/v1", kind = "Moon", optional = true }:add_event_handler { add = function() end }
				mine:add_event_handler { add = function(map)
					k8s.log.info("mine", { name = map.metadata.name .. map.data.generation .. #mine:list { index = { right = "x" } } })
				end }
				k8s.controller { name = "keys", watch = mine, reconcile = function(request)
					k8s.log.info("key", { name = request.name .. (mine:get(request) or { data = { generation = "-" } }).data.generation })
				end }]]
			assert(cluster:create(map "a"))
			load(private:format "1")
			cluster:advance(30)
			reload(private:format "2")
			cluster:advance(30)
			reload(private:format "3")
			cluster:advance(30)
			assert.same({ "a11", "a21", "a31" }, told "mine")
			assert.same({ "a1", "a2", "a3" }, told "key")
			assert(cluster:delete(map "a"))
			cluster:settle()
			assert.equal("a-", told "key"[4])
		end)

		it("goes on where k8s.state is no plain data, and says so", function()
			load [[k8s.state.self = k8s.state k8s.every(1, function() k8s.log.info "tick 1" end)]]
			reload [[k8s.state.f = function() end k8s.every(1, function() k8s.log.info "tick 2" end)]]
			reload [[k8s.every(1, function() k8s.log.info "tick 3" end)]]
			cluster:advance(1.5)
			assert.equal(1, #cluster:logs { msg = "tick 3" })
			assert.same({ "2", "3" }, told("reloaded", "generation"))
			assert.equal(4, #cluster:logs { level = "error" })
		end)
	end)

	describe("of files", function()
		it("keeps the code whose folder is gone, is empty, or is a file now", function()
			load(handler "1")
			os.execute(("mv %s %s.away"):format(folder, folder))
			program:reload()
			cluster:settle()
			os.execute("mkdir " .. folder)
			program:reload()
			cluster:settle()
			assert.equal(2, #cluster:logs { level = "error" })
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a1" }, told "add")
			os.execute(("rmdir %s && mv %s.away %s"):format(folder, folder, folder))
			reload(handler "2")
			assert.same({ "a1", "a2i" }, told "add")
		end)

		it("ends what a folder of scripts held when it is one script, and begins what it holds", function()
			write(handler "1", "one.lua")
			write(handler "2", "two.lua")
			program = cluster:load(folder)
			cluster:settle()
			reload(handler "3")
			os.remove(folder .. "/init.lua")
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a3" }, told "add")
			program:reload()
			cluster:settle()
			assert.same({ "a3", "a1i", "a2i" }, told "add")
		end)

		it("keeps the code of a file that is a folder now", function()
			write(handler "1", "one.lua")
			program = cluster:load(folder)
			cluster:settle()
			os.execute(("rm %s/one.lua && mkdir %s/one.lua"):format(folder, folder))
			program:reload()
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a1" }, told "add")
			assert.equal(1, #cluster:logs { level = "error" })
		end)
	end)

	describe("of broken code", function()
		local function goes_on(text, message, line)
			assert(cluster:create(map "a"))
			load(handler "1")
			reload(text)
			local errors = cluster:logs { level = "error" }
			assert.equal(1, #errors)
			assert.equal("reload failed, the code before goes on", errors[1].msg)
			assert.matches("app/init.lua:" .. (line or 1) .. "$", errors[1].file)
			assert.matches(message, errors[1].error, 1, true)
			assert(cluster:create(map "b"))
			cluster:settle()
			assert.same({ "a1i", "b1" }, told "add")
			reload(handler "2")
			assert.same({ "a1i", "b1", "a2i", "b2i" }, told "add")
			assert.equal(1, watched())
		end

		it("leaves the old code at work where it is malformed", function()
			goes_on("local = 1", "expected near")
		end)

		it("leaves it at work where it fails at top level", function()
			goes_on(handler "x" .. " error 'no luck'", "no luck", 3)
		end)

		it("leaves it at work where it names an option that there is not", function()
			goes_on("k8s.informer { apiVersion = 'v1', kind = 'Pod', label_selektor = '' }", "did you mean 'label_selector'?")
		end)

		it("waits for a kind that is not there, until it is", function()
			load(handler "1")
			reload(handler "2" .. MOONS)
			cluster:advance(20)
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a1" }, told "add")
			define_moon()
			cluster:advance(60)
			assert.same({ "a1", "a2i" }, told "add")
		end)
	end)

	it("of several scripts leaves each in its place, ends those that are gone and begins new ones", function()
		write([[k8s.on_synced(function() k8s.log.info "one" end) k8s.on_shutdown(function() k8s.log.info "end of one" end)]], "one.lua")
		write([[k8s.on_synced(function() k8s.log.info "two" end)]], "two.lua")
		program = cluster:load(folder)
		cluster:settle()
		os.remove(folder .. "/one.lua")
		write([[k8s.on_synced(function() k8s.log.info "three" end)]], "three.lua")
		program:reload()
		cluster:settle()
		assert.equal(1, #cluster:logs { msg = "one" })
		assert.equal(2, #cluster:logs { msg = "two" })
		assert.equal(1, #cluster:logs { msg = "three" })
		assert.equal(1, #cluster:logs { msg = "end of one" })
		assert.equal(1, #cluster:logs { msg = "the script is gone, it ends", script = "one" })
		assert.equal(1, #cluster:logs { msg = "a new script begins", script = "three" })
		assert.equal(1, watched())
	end)
end)
