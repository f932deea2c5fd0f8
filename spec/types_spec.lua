-- lua/types/perilune.lua is what editors know of the module. Here it is held against the module itself, which is open to specs, and where
-- that can't be listed (options, fields of events and results), against the sources.
local files = require "support.files"
local k8s = require "perilune"

local STUBS = "lua/types/perilune.lua"

-- Class to { names = { name = "function" | "field" }, parent =, parameters = { function's name = { ... } } }; those of k8s.status are
-- the class "perilune.status".
local function read_stubs(text)
	local classes, locals, class = {}, {}, nil
	local function open(name)
		classes[name] = classes[name] or { names = {}, parameters = {} }
		return classes[name]
	end
	local function add(owner, name, kind, parameters)
		assert(not owner.names[name], name .. " is there twice")
		owner.names[name] = kind
		owner.parameters[name] = parameters
	end
	local function add_function(path, separator, name, parameters)
		assert.equal(path:match "^k8s" and "." or ":", separator, path .. separator .. name)
		local list = {}
		for parameter in parameters:gmatch "[%w_]+" do
			list[#list + 1] = parameter
		end
		add(assert(locals[path], path .. " is of no class"), name, "function", list)
	end
	for line in text:gmatch "[^\n]+" do
		local name, parent = line:match "^%-%-%-@class ([%w_.]+):? ?([%w_.]*)"
		if name then
			class = open(name)
			class.parent = parent ~= "" and parent or nil
		elseif line:match "^%-%-%-@field [^%[]" then
			local field, type = line:match "^%-%-%-@field ([%w_]+)%?? (%S+)"
			add(class, field, type:match "^fun%(" and "function" or "field")
		elseif line:match "^function " then
			add_function(line:match "^function ([%w_.]+)([.:])([%w_]+)(%b()) end$")
		elseif line:match "^local " then
			locals[line:match "^local ([%w_]+) = {}$"] = class
		elseif line:match "^k8s%." then
			local part = line:match "^k8s%.([%w_]+) = {}$"
			add(locals.k8s, part, "field")
			locals["k8s." .. part] = open("perilune." .. part)
		else
			assert(line:match "^%-%-" or line == "return k8s", "what is this line? " .. line)
		end
	end
	return classes
end

local function keys(t)
	local names = {}
	for name in pairs(t) do
		names[#names + 1] = name
	end
	table.sort(names)
	return names
end

-- With the parents' names.
local function names_of(classes, name)
	local all, class = {}, assert(classes[name], name .. " has no class in " .. STUBS)
	while class do
		for field in pairs(class.names) do
			all[field] = true
		end
		class = classes[class.parent]
	end
	return keys(all)
end

-- The quoted texts of each piece of a source that a pattern with one capture finds.
local function quoted(path, pattern)
	local found = {}
	for piece in files.read(path):gmatch(pattern) do
		for name in piece:gmatch '"([%w_]+)"' do
			found[name] = true
		end
	end
	assert(next(found), path .. ": nothing looks like " .. pattern)
	return keys(found)
end

-- The table below the closed one that scripts get.
local function below(closed)
	return assert(debug.getmetatable(closed), "not closed").__index
end

-- A type's methods lie below its __index: the first upvalue.
local function methods_of(type)
	local metatable = assert(debug.getregistry()["perilune." .. type], "no type " .. type)
	local _, methods = debug.getupvalue(metatable.__index, 1)
	return methods
end

describe("lua/types/perilune.lua", function()
	local text = files.read(STUBS)
	local classes = read_stubs(text)
	local module = below(k8s)

	-- A table of the module against a class: the same names, and functions where there are functions.
	local function agrees(real, name)
		assert.is_true(next(real) ~= nil, name .. " is empty")
		assert.same(keys(real), keys(assert(classes[name], "no class " .. name).names))
		for field, value in pairs(real) do
			local kind = type(value) == "function" and "function" or "field"
			assert.equal(kind, classes[name].names[field], name .. "." .. field)
		end
	end

	it("is a file that Lua reads, and says whose stubs it has", function()
		assert(loadstring(text))
		assert.equal("---@meta perilune", text:match "^[^\n]+")
		assert.truthy(text:match "\nreturn k8s\n$")
	end)

	it("has the module's names", function()
		assert.truthy(module.informer)
		agrees(module, "perilune")
	end)

	it("has the names of the module's tables", function()
		local checked = 0
		for name, value in pairs(module) do
			if type(value) == "table" and name ~= "config" and name ~= "state" then
				agrees(below(value), "perilune." .. name)
				checked = checked + 1
			end
		end
		assert.equal(8, checked)
	end)

	it("has each type's methods", function()
		local types = {}
		for name in pairs(debug.getregistry()) do
			types[#types + 1] = type(name) == "string" and name:match "^perilune%.(%w+)$" or nil
		end
		table.sort(types)
		assert.same({ "controller", "counter", "event", "factory", "gauge", "histogram", "informer", "registration" }, types)
		for _, name in ipairs { "controller", "counter", "factory", "gauge", "histogram", "informer", "registration" } do
			agrees(methods_of(name), "perilune." .. name)
		end
	end)

	it("has the parameters of what is written in Lua", function()
		local function check(real, name)
			for field, value in pairs(real) do
				local info = type(value) == "function" and debug.getinfo(value, "Su")
				for i = 1, info and info.what ~= "C" and info.nparams or 0 do
					assert.equal(debug.getlocal(value, i), classes[name].parameters[field][i], name .. "." .. field)
				end
				if info and info.what ~= "C" then
					assert.equal(info.nparams, #classes[name].parameters[field], name .. "." .. field)
				end
			end
		end
		check(module, "perilune")
		for _, part in ipairs { "conditions", "predicate", "status" } do
			check(below(module[part]), "perilune." .. part)
		end
	end)

	local function known(path, name, call)
		assert.same(quoted(path, "\n%l[^\n]-" .. call .. "%([^\n]*%)\n{\n.-known%[%] = ({.-});"), names_of(classes, name))
	end

	it("has the options that are known", function()
		known("core/script/bind_informer.c", "perilune.informer_options", "read_spec")
		known("core/script/bind_cache.c", "perilune.list_options", "bind_cache_list")
		known("core/script/bind_handler.c", "perilune.handlers", "bind_handler_add")
		known("core/script/bind_defaults.c", "perilune.factory_options", "bind_defaults_new")
		known("core/script/bind_defaults.c", "perilune.kind_options", "check_kind")
		known("core/script/bind_factory.c", "perilune.wait_options", "l_wait_for_cache_sync")
		known("core/script/bind_metric.c", "perilune.metric_options", "l_counter")
		known("core/script/bind_metric.c", "perilune.metric_options", "l_gauge")
		known("core/script/bind_metric.c", "perilune.histogram_options", "l_histogram")
		known("core/script/bind_needs.c", "perilune.rule", "read_rule")
		known("core/script/bind_http.c", "perilune.http_request", "l_request")
		known("core/script/bind_time.c", "perilune.every_options", "l_every")
	end)

	it("has the options of what checks them in Lua", function()
		assert.same(quoted("lua/perilune/recorder.lua", "\nlocal OPTIONS = (%b{})"), names_of(classes, "perilune.event_options"))
	end)

	-- Calls f and takes down what it lets core.check_options know.
	local function options_of(f, ...)
		local core, found
		for i = 1, 60 do
			local name, value = debug.getupvalue(module.list, i)
			core = name == "core" and value or core
		end
		local check_options = assert(core).check_options
		core.check_options = function(_, _, names)
			found = { unpack(names) }
			error("enough", 0)
		end
		pcall(f, ...)
		core.check_options = check_options
		table.sort(assert(found))
		return found
	end

	it("has the options of API calls", function()
		local object = { apiVersion = "v1", kind = "Pod", name = "a" }
		local calls = {
			["perilune.list_request"] = options_of(k8s.list, object),
			["perilune.delete_options"] = options_of(k8s.delete, object, {}),
			["perilune.patch_options"] = options_of(k8s.patch, object, {}, {}),
		}
		calls["perilune.write_options"] = options_of(k8s.create, object, {})
		for name, options in pairs(calls) do
			assert.same(options, names_of(classes, name), name)
		end
		assert.same(calls["perilune.write_options"], options_of(k8s.update, object, {}))
		assert.same(calls["perilune.write_options"], options_of(k8s.status.update, object, {}))
		assert.same(calls["perilune.patch_options"], options_of(k8s.status.patch, object, {}, {}))
	end)

	it("has the fields of events, errors and results", function()
		local set = 'lua_setfield%(L, %-2, ("%l[%w_]*")%)'
		local function body(call)
			return "\n%l[^\n]-" .. call .. "%(.-\n{(.-)\n}\n"
		end
		local function fields(path, call)
			local found = {}
			local code = assert(files.read(path):match(body(call)), call .. " is not in " .. path)
			for name in code:gmatch(set) do
				found[name:sub(2, -2)] = true
			end
			return keys(found)
		end
		assert.same(fields("core/script/bind.c", "bind_err_push"), names_of(classes, "perilune.err"))
		assert.same(fields("core/script/bind_http.c", "push_answer"), names_of(classes, "perilune.http_answer"))
		assert.same(fields("core/script/bind_factory.c", "push_result"), names_of(classes, "perilune.wait_result"))
		assert.same(fields("core/script/bind_factory.c", "push_report"), names_of(classes, "perilune.informer_report"))
		local events = quoted("core/script/bind_event.c", 'strcmp%(name, ("[%w_]+")%)')
		assert.same(events, names_of(classes, "perilune.event"))
		assert.same(events, names_of(classes, "perilune.update_event"))
	end)

	it("documents the parameters that a function has", function()
		local documented = {}
		for line in text:gmatch "[^\n]+" do
			local parameters = line:match "^function [%w_.:]+(%b()) end$"
			documented[#documented + 1] = line:match "^%-%-%-@param ([%w_.]+)"
			if parameters then
				assert.equal(parameters, "(" .. table.concat(documented, ", ") .. ")", line)
				documented = {}
			end
		end
	end)

	it("has tags that editors know, and names only classes that it has", function()
		local tags = { class = true, field = true, meta = true, operator = true, overload = true, param = true, ["return"] = true }
		for line in text:gmatch "[^\n]+" do
			local tag = line:match "^%-%-%-%s*@(%l+)"
			assert.truthy(not tag or tags[tag], line)
			for name in (line:match "^%-%-%-@%l+ (.*)" or ""):gmatch "perilune%.[%l_]+" do
				assert.truthy(classes[name], name .. " is no class")
			end
		end
	end)

	it("is not in the program", function()
		assert.is_nil(files.read(require("support.process").build() .. "/embedded.c"):find("types/perilune.lua", 1, true))
	end)
end)
