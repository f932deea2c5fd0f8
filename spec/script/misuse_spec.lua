-- Misuse of the API is an error at the script's own line, and whatever a script hands in does no harm.
local cli = require "support.cli"
local files = require "support.files"

-- Runs the chunk as a script's top level; exit code, stdout and stderr.
local function check(chunk, modules)
	local folder = files.folder()
	for name, text in pairs(modules or {}) do
		files.write(folder .. "/" .. name, text)
	end
	return cli.run { "check", files.write(folder .. "/script.lua", 'local k8s = require "perilune" ' .. chunk) }
end

local function passes(chunk, modules)
	local code, out, err = check(chunk, modules)
	assert.equal(0, code, err)
	return out, err
end

local function fails(pattern, chunk, modules)
	local code, _, err = check(chunk, modules)
	assert.equal(1, code, err)
	assert.matches(pattern, err)
end

describe("misuse is told at the script's own line", function()
	local chunks = {
		["of a call that has to wait"] = { "k8s.list waits for the host, which works only in handlers",
			'\nlocal pods = k8s.list { apiVersion = "v1", kind = "Pod" }' },
		["of options that are no table"] = { "k8s.create takes a table of options, not a string",
			'\nk8s.create({ apiVersion = "v1", kind = "Pod" }, "dry")' },
		["of options without names"] = { "k8s.every: options have names; this table has a number for one", "\nk8s.every(1, print, { 1 })" },
		["of an option of another type"] = { "k8s.create: dry_run must be a boolean, not yes",
			'\nk8s.create({ apiVersion = "v1", kind = "Pod" }, { dry_run = "yes" })' },
		["of a factory's drop"] = { "option 'drop' must be a string or a list of strings", "\nk8s.factory { drop = { 1 } }" },
		["of a list of no namespaces"] = { "informer: namespace is an empty list",
			'\nk8s.informer { apiVersion = "v1", kind = "Pod", namespace = {} }' },
		["of an interval that only takes the processor"] = { "k8s%.every takes seconds, 0%.001 at least", "\nk8s.every(1e-9, print)" },
		["of a log field that is the log's own"] = { "k8s%.log: 'msg' is a key of the log itself", '\nk8s.log.info("x", { msg = "y" })' },
		["of a method called with a dot"] = { "this is a method of informer: call it with a colon",
			'\nk8s.informer({ apiVersion = "v1", kind = "Pod" }).add_event_handler { add = print }' },
		["of a handler without functions"] = { "add_event_handler: add, update or delete is missing",
			'\nk8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler {}' },
		["of a handler that is no function"] = { "add_event_handler: update must be a function, not a number",
			'\nk8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler { add = print, update = 1 }' },
		["of a field in an array"] = { 'add_event_handler: fields: path "spec.containers%[%*%].image": only keys can be asked for',
			'\nk8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler { add = print, fields = { "spec.containers[*].image" } }' },
		["of a handler's resync that is too short"] = { "add_event_handler: resync is at least 1 second, or 0 for none",
			'\nk8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler { add = print, resync = 0.5 }' },
		["of a handler's resync without what it calls"] = { "add_event_handler: resync calls update, which this handler lacks",
			'\nk8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler { add = print, resync = 300 }' },
		["of a field selector that compares nothing"] = {
			'informer: the field selector "metadata.name=a,spec.nodeName" compares nothing: write FIELD=VALUE or FIELD!=VALUE',
			'\nk8s.informer { apiVersion = "v1", kind = "Pod", field_selector = "metadata.name=a,spec.nodeName" }' },
		["of a filter that is no function"] = { "add_event_handler: filter must be a function, not a table",
			'\nk8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler { add = print, filter = {} }' },
		["of a page of half an object"] = { "informer: page_size is a whole number of objects",
			'\nk8s.informer { apiVersion = "v1", kind = "Pod", page_size = 0.5 }' },
		["of a cache that there is not"] = { 'informer: cache is "compressed" or "raw", not "zip"',
			'\nk8s.informer { apiVersion = "v1", kind = "Pod", cache = "zip" }' },
		["of an apiVersion with the kind in it"] = { 'informer: "v1/Pod" is no apiVersion',
			'\nk8s.informer { apiVersion = "v1/Pod", kind = "Pod" }' },
		["at the end of a function"] = { "informer: resync is at least 1 second, or 0 for none",
			'local function pods() return k8s.informer { apiVersion = "v1", kind = "Pod", resync = 0.5 } end\nlocal _ = pods()' },
	}
	for name, case in pairs(chunks) do
		it(name, function()
			fails("script%.lua:2: " .. case[1], case[2])
		end)
	end

	it("but a field selector may be empty, and compare with nothing or with a comma", function()
		for _, selector in ipairs { "", "spec.nodeName!=", "a=b,", "a=b\\\\,c" } do
			passes(('k8s.informer { apiVersion = "v1", kind = "Pod", field_selector = "%s" }'):format(selector))
		end
	end)

	it("but a resync is of use to a filter too", function()
		passes [[
			k8s.informer { apiVersion = "v1", kind = "Pod", resync = 30 }:add_event_handler { add = print }
			k8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler { add = print, filter = print, resync = 30 }
			k8s.informer { apiVersion = "v1", kind = "Pod" }:add_event_handler { add = print, resync = 0 }
		]]
	end)
end)

describe("a name with a NUL character", function()
	it("is refused, not cut there", function()
		passes [[
			local pods = k8s.informer { apiVersion = "v1", kind = "Pod" }
			local calls = {
				function() pods:get("a\0b", "c") end,
				function() pods:get("a", "b\0c") end,
				function() pods:get { namespace = "a", name = "b\0c" } end,
				function() pods:list { namespace = "a\0b" } end,
				function() pods:list { label_selector = "a\0b" } end,
				function() pods:list { fields = { "a\0b" } } end,
				function() k8s.informer { apiVersion = "v1", kind = "Pod\0x" } end,
				function() k8s.informer { apiVersion = "v1", kind = "Pod", namespace = { "a\0b" } } end,
				function() k8s.get { apiVersion = "v1", kind = "Pod", namespace = "a", name = "b\0c" } end,
				function() k8s.list { apiVersion = "v1", kind = "Pod", label_selector = "a=b\0c" } end,
			}
			for i, call in ipairs(calls) do
				local ok, err = pcall(call)
				assert(not ok and err:find("NUL character", 1, true), i .. ": " .. tostring(err))
			end
		]]
	end)
end)

describe("a table of options", function()
	it("says what it says itself, whatever its metatable would answer", function()
		passes [[
			local asked = 0
			local options = setmetatable({}, { __index = function(_, name) asked = asked + 1 return "x" end })
			assert(not pcall(k8s.informer, options))
			options.apiVersion, options.kind = "v1", "Pod"
			local pods = k8s.informer(options)
			pods:list(options.kind and setmetatable({}, getmetatable(options)))
			assert(asked == 0 and tostring(pods) == "informer v1/Pod", tostring(pods))
		]]
	end)
end)

describe("an index", function()
	it("belongs to its informer, another one of the same kind or not", function()
		passes [[
			local function pods(keep, path)
				return k8s.informer { apiVersion = "v1", kind = "Pod", keep = { keep }, index = { place = path } }
			end
			local spec, status = pods("spec", "spec.nodeName"), pods("status", "status.hostIP")
			assert(#spec:list { index = { place = "x" } } == 0 and #status:list { index = { place = "x" } } == 0)
			spec:add_index { place = "spec.nodeName" }
			local ok, err = pcall(spec.add_index, spec, { place = "status.hostIP" })
			assert(not ok and err:find("is there already, over another path", 1, true), err)
		]]
	end)

	it("is its script's own, the file loaded twice too", function()
		local path = files.write(files.folder() .. "/script.lua",
			'require "perilune".informer { apiVersion = "v1", kind = "Pod", index = { node = "spec.nodeName" } }')
		local code, _, err = cli.run { "check", path, path }
		assert.equal(0, code, err)
	end)

	it("may have any name", function()
		passes [[
			local name = ("x"):rep(2000)
			local pods = k8s.informer { apiVersion = "v1", kind = "Pod", index = { [name] = "spec.nodeName" } }
			assert(#pods:list { index = { [name] = "x" } } == 0)
		]]
	end)
end)

describe("registrations without end", function()
	local chunks = {
		["of calls"] = "while true do k8s.on_shutdown(print) end",
		["of timers"] = "while true do k8s.every(1, print) end",
		["of factories"] = "while true do k8s.factory() end",
		["of handlers"] = [[
			local pods = k8s.informer { apiVersion = "v1", kind = "Pod" }
			while true do pods:add_event_handler { add = print } end
		]],
	}
	for name, chunk in pairs(chunks) do
		it("are refused, as they take memory that is not the script's: " .. name, function()
			fails("script%.lua:[12]: a script can't register more than 10000 factories, informers, handlers and calls", chunk)
		end)
	end
end)

describe("k8s.log", function()
	it("writes a field as it was when its turn came", function()
		local _, log = passes [[
			local key = ("k"):rep(50)
			local fields = { [key] = "first" }
			fields.z = setmetatable({}, { __tostring = function()
				fields[key] = nil
				collectgarbage()
				for i = 1, 1000 do local _ = ("o"):rep(49) .. i end
				return "second"
			end })
			k8s.log.info("both", fields)
		]]
		local line = log:match "[^\n]*both[^\n]*"
		assert.matches("z=second", line)
		assert(not line:find "oooo", line)
	end)

	it("writes one line, whatever a field's name is", function()
		local _, log = passes [[k8s.log.info("one", { ["a\nb c"] = "d" })]]
		assert.matches('one script=script "a\\nb c"=d\n', log)
	end)
end)

describe("require", function()
	it("of modules that need each other is an error that says so", function()
		fails("_b%.lua:1: module '_a' is being loaded already, or has failed before", "require '_a'",
			{ ["_a.lua"] = "require '_b'", ["_b.lua"] = "require '_a'" })
	end)
end)
