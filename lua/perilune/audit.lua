--- audit: what can be said of a script's files without running them: names that are not there, and what it calls.
--
-- It sees what stands in functions that have yet to run. A fault is { path =, line =, text =, hint = }; text is what the error
-- would say when that place is reached.
local k8s = require "perilune"
local names = require "perilune.audit.names"

local SOURCE_LIMIT = 4 * 1024 * 1024

local Audit = {}
Audit.__index = Audit

local function sorted(set)
	local list = {}
	for name in pairs(set) do
		list[#list + 1] = name
	end
	table.sort(list)
	return list
end

function Audit:fault(path, line, text, names_there, word)
	local nearest = names_there and self.nearest(word, sorted(names_there))
	self.faults[#self.faults + 1] = { path = path, line = line, text = text, hint = nearest and (", did you mean '%s'?"):format(nearest) }
end

-- Whether a full library, which the audit's own state has, holds what a script's whitelist has not.
local function is_unsafe(library, name)
	local found = library and rawget(_G, library) or _G
	return type(found) == "table" and rawget(found, name) ~= nil
end

-- Of a global, or of a field of one: library is nil for the former.
function Audit:unknown(use, text, names_there, library, name)
	if is_unsafe(library, name) then
		self:fault(use.path, use.line, text .. ": --unsafe-libs gives it")
	else
		self:fault(use.path, use.line, text, names_there, name)
	end
end

-- --- files ---

local function read(path)
	local file = io.open(path, "rb")
	local text = file and file:read(SOURCE_LIMIT)
	if file then
		file:close()
	end
	return text
end

-- As require finds it; nil where there is none.
local function module_path(folder, name)
	if name:find "[/%z]" or name:find("..", 1, true) or name:find "^%." or name == "" then
		return nil
	end
	local place = folder .. "/" .. name:gsub("%.", "/")
	for _, path in ipairs { place .. ".lua", place .. "/init.lua" } do
		if read(path) then
			return path
		end
	end
end

function Audit:require(path, module)
	local name = module.name
	if name == "perilune" or name == "cjson" or name:find "^perilune%." or type(self.globals and self.globals[name]) == "table" then
		return
	end
	local found = module_path(self.folder, name)
	if found then
		self:file(found)
	elseif self.globals then
		self:fault(path, module.line, ("module '%s' not found: scripts can require perilune, cjson and the files of their own folder"):format(name))
	end
end

-- Keeps a file's uses, and goes on to the modules that it requires.
function Audit:file(path)
	local text = not self.files[path] and read(path)
	if not text then
		return
	end
	self.files[path] = true
	local compiled, problem = load(text, "=", "t")
	if not compiled then
		local line, what = problem:match "^:(%d+): (.*)$"
		self:fault(path, tonumber(line), what or problem)
		return
	end
	local found = names.read(text)
	for _, use in ipairs(found.uses) do
		use.path = path
		self.uses[#self.uses + 1] = use
	end
	for _, module in ipairs(found.modules) do
		self:require(path, module)
	end
end

-- --- globals ---

-- `_G.name` is the global.
local function global_of(use)
	if use.root == "_G" and use.names[1] then
		return use.names[1], use.names[2]
	elseif type(use.root) == "string" then
		return use.root, use.names[1]
	end
end

-- With these a script can define globals in ways that are not seen here.
local UNSEEN = { load = true, loadstring = true, setfenv = true }

-- Name to true, or to the set of what is in it: what there is from the start, and what the script defines.
function Audit:defined()
	local defined = setmetatable({}, { __index = self.globals })
	for _, use in ipairs(self.uses) do
		local name, member = global_of(use)
		if UNSEEN[name] or (name == "_G" and not member) then
			return nil
		elseif name and use.set and not member and use.top then
			defined[name] = true
		elseif name and use.set and member then
			self.members[name .. "." .. member] = true
		end
	end
	return defined
end

local function all_names(self, defined)
	local all = {}
	for _, set in ipairs { self.globals, defined } do
		for name in pairs(set) do
			all[name] = true
		end
	end
	return all
end

function Audit:check_global(use, defined)
	local name, member = global_of(use)
	local known = defined[name]
	if not known and use.set and not member then
		self:fault(use.path, use.line, ("assignment to unknown global '%s': make it local, or define it at the top level of the file"):format(name))
	elseif not known and name == "k8s" then
		self:fault(use.path, use.line, [[unknown global 'k8s': begin with local k8s = require "perilune"]])
	elseif not known then
		self:unknown(use, ("unknown global '%s'"):format(name), all_names(self, defined), nil, name)
	elseif type(known) == "table" and member and not known[member] and not self.members[name .. "." .. member] then
		self:unknown(use, ("%s has no '%s'"):format(name, member), known, name, member)
	end
end

-- --- the module ---

-- The real table of a closed one (bind.c), whose own is empty; nil for any other value.
local function opened(value)
	local meta = type(value) == "table" and debug.getmetatable(value)
	return meta and rawget(meta, "__metatable") == "perilune" and meta.__index or nil
end

function Audit:check_module(use)
	local part, what = opened(k8s), "perilune"
	for i, name in ipairs(use.names) do
		if use.set and i == #use.names then
			self:fault(use.path, use.line, what .. " can't be changed")
			return
		elseif rawget(part, name) == nil then
			self:fault(use.path, use.line, ("%s has no '%s'"):format(what, name), part, name)
			return
		end
		self.called[table.concat(use.names, ".", 1, i)] = true
		part, what = opened(part[name]), "k8s." .. name
		if not part then
			return
		end
	end
end

-- --- the whole ---

local function by_place(one, other)
	if one.path ~= other.path then
		return one.path < other.path
	elseif one.line ~= other.line then
		return one.line < other.line
	end
	return one.text < other.text
end

-- One name twice in a line is one fault.
local function without_repeats(faults)
	local kept, last = {}, nil
	for _, fault in ipairs(faults) do
		if not last or by_place(last, fault) then
			kept[#kept + 1] = fault
		end
		last = fault
	end
	return kept
end

--- Looks through the script whose main file is at path, and the modules of its folder that it requires by a constant name.
-- globals: what it finds there, name to true or to the set of its fields; nil: anything may be there. nearest(word, list): the
-- name that was meant, or nil. Returns { faults =, called = }: the faults in order, and the set of what it names of the module,
-- such as "event" or "status.update".
return function(path, folder, globals, nearest)
	local audit = setmetatable({
		folder = folder, globals = globals, nearest = nearest, files = {}, uses = {}, faults = {}, members = {}, called = {},
	}, Audit)
	audit:file(path)
	local defined = globals and audit:defined()
	for _, use in ipairs(audit.uses) do
		if type(use.root) ~= "string" then
			if use.root.module == "perilune" then
				audit:check_module(use)
			end
		elseif defined then
			audit:check_global(use, defined)
		end
	end
	table.sort(audit.faults, by_place)
	return { faults = without_repeats(audit.faults), called = audit.called }
end
