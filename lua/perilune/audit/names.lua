--- names: what the names in a script's text stand for: locals by their scope, globals, and what hangs on them by a dot.
--
-- A use is one place where a global, or a field of something known, is read or set. Its root is the name of a global, or
-- { module = "perilune" } for what `require "perilune"` gave; names are the fields behind it.
local lexer = require "perilune.audit.lexer"

local Reader = {}
Reader.__index = Reader

-- --- tokens ---

function Reader:is(value)
	return self.values[self.at] == value and self.types[self.at] ~= "string"
end

function Reader:type()
	return self.types[self.at]
end

function Reader:next()
	local value = assert(self.values[self.at], "this text does not compile")
	self.at = self.at + 1
	return value
end

function Reader:take(value)
	if self:is(value) then
		self.at = self.at + 1
		return true
	end
end

-- --- scopes ---

function Reader:declare(name, value)
	local variable = { value = value }
	self.scope.variables[name] = variable
	return variable
end

function Reader:enter()
	self.scope = { variables = {}, parent = self.scope }
end

function Reader:leave()
	self.scope = self.scope.parent
end

function Reader:find(name)
	local scope = self.scope
	while scope do
		if scope.variables[name] then
			return scope.variables[name]
		end
		scope = scope.parent
	end
end

-- --- references ---

-- What an expression refers to: { variable = } or { root = }, with names and the line of the last one.
function Reader:reference(name, line)
	local variable = self:find(name)
	return { variable = variable, root = not variable and name or nil, names = {}, line = line, depth = self.depth }
end

function Reader:use(reference, set)
	if reference then
		reference.set = set
		self.uses[#self.uses + 1] = reference
	end
end

-- The use goes on with another name: what was passed on the way is part of it.
local function extend(reference, name, line)
	if reference then
		reference.names[#reference.names + 1] = name
		reference.line = line
	end
	return reference
end

-- --- expressions ---

function Reader:arguments()
	if self:type() == "string" then
		self:next()
	elseif self:is "{" then
		self:constructor()
	else
		self:next()
		if not self:is ")" then
			self:expressions()
		end
		self:next()
	end
end

function Reader:is_call()
	return self:type() == "string" or self:is "(" or self:is "{"
end

-- The text of `require "text"` and `require("text")`, where the call comes next; nil when it is another.
function Reader:required(reference)
	if not reference or reference.root ~= "require" or #reference.names > 0 then
		return nil
	end
	local at = self.at
	if self.types[at] == "string" then
		return self.values[at]
	elseif self.values[at] == "(" and self.types[at + 1] == "string" and self.values[at + 2] == ")" then
		return self.values[at + 1]
	end
end

function Reader:call(reference)
	local line, module = self.lines[self.at], self:required(reference)
	self:use(reference)
	self:arguments()
	if module then
		self.modules[#self.modules + 1] = { name = module, line = line }
		return { root = { module = module }, names = {}, line = line, depth = self.depth }
	end
end

function Reader:index(reference)
	self:next()
	local line, constant = self.lines[self.at], self:type() == "string" and self.values[self.at + 1] == "]"
	if constant then
		reference = extend(reference, self:next(), line)
	else
		self:use(reference)
		self:use(self:expression())
		reference = nil
	end
	self:next()
	return reference
end

function Reader:primary()
	if self:take "(" then
		self:use(self:expression())
		self:next()
		return nil
	end
	local line = self.lines[self.at]
	return self:reference(self:next(), line)
end

-- A reference that nobody has used yet, or nil: behind a call or an index that is worked out, nothing is known.
function Reader:suffixed()
	local reference = self:primary()
	while true do
		if self:is "." or self:is ":" then
			self:next()
			local line = self.lines[self.at]
			reference = extend(reference, self:next(), line)
		elseif self:is "[" then
			reference = self:index(reference)
		elseif self:is_call() then
			reference = self:call(reference)
		else
			return reference
		end
	end
end

function Reader:constructor()
	self:next()
	while not self:take "}" do
		if self:take "[" then
			self:use(self:expression())
			self:next()
			self:next()
		elseif self:type() == "name" and self.values[self.at + 1] == "=" and self.types[self.at + 1] == "operator" then
			self:next()
			self:next()
		end
		self:use(self:expression())
		if not self:take "," then
			self:take ";"
		end
	end
end

local CONSTANTS = { ["nil"] = true, ["true"] = true, ["false"] = true, ["..."] = true }
local UNARY = { ["not"] = true, ["-"] = true, ["#"] = true }
local BINARY = {}
for operator in ("+ - * / % ^ .. == ~= < <= > >= and or"):gmatch "%S+" do
	BINARY[operator] = true
end

function Reader:simple()
	local value = self.values[self.at]
	if self:type() == "string" or self:type() == "number" or CONSTANTS[value] then
		self:next()
	elseif value == "{" then
		self:constructor()
	elseif self:take "function" then
		self:body()
	else
		return self:suffixed()
	end
end

function Reader:operator(known)
	return self:type() ~= "string" and known[self.values[self.at]]
end

-- As suffixed; of an expression with operators nothing is known.
function Reader:expression()
	local alone, reference = true
	while true do
		while self:operator(UNARY) do
			self:next()
			alone = false
		end
		reference = self:simple()
		if not self:operator(BINARY) then
			break
		end
		self:use(reference)
		self:next()
		alone = false
	end
	if alone then
		return reference
	end
	self:use(reference)
end

-- Each is used; the references, with nil where nothing is known.
function Reader:expressions()
	local found, count = {}, 0
	repeat
		count = count + 1
		found[count] = self:expression()
		self:use(found[count])
	until not self:take ","
	return found
end

-- --- statements ---

function Reader:body(is_method)
	self:enter()
	self.depth = self.depth + 1
	if is_method then
		self:declare "self"
	end
	self:next()
	while not self:take ")" do
		if self:type() == "name" then
			self:declare(self.values[self.at])
		end
		self:next()
	end
	self:block()
	self:next()
	self.depth = self.depth - 1
	self:leave()
end

function Reader:inner_block()
	self:enter()
	self:block()
	self:leave()
end

function Reader:assigned(reference)
	if reference and reference.variable and #reference.names == 0 then
		reference.variable.changed = true
	else
		self:use(reference, true)
	end
end

function Reader:function_statement()
	local line = self.lines[self.at]
	local reference, is_method = self:reference(self:next(), line), false
	while self:is "." or self:is ":" do
		is_method = self:next() == ":"
		line = self.lines[self.at]
		reference = extend(reference, self:next(), line)
	end
	self:assigned(reference)
	self:body(is_method)
end

function Reader:local_statement()
	if self:take "function" then
		self:declare(self:next())
		return self:body()
	end
	local names, values = {}, {}
	repeat
		names[#names + 1] = self:next()
	until not self:take ","
	if self:take "=" then
		values = self:expressions()
	end
	for i, name in ipairs(names) do
		self:declare(name, values[i])
	end
end

function Reader:for_statement()
	local names = {}
	repeat
		names[#names + 1] = self:next()
	until not self:take ","
	self:next()
	self:expressions()
	self:enter()
	for _, name in ipairs(names) do
		self:declare(name)
	end
	self:next()
	self:block()
	self:next()
	self:leave()
end

function Reader:if_statement()
	repeat
		self:use(self:expression())
		self:next()
		self:inner_block()
	until not self:take "elseif"
	if self:take "else" then
		self:inner_block()
	end
	self:next()
end

function Reader:expression_statement()
	local targets, count = {}, 1
	targets[1] = self:suffixed()
	while self:take "," do
		count = count + 1
		targets[count] = self:suffixed()
	end
	if self:take "=" then
		self:expressions()
		for i = 1, count do
			self:assigned(targets[i])
		end
	end
end

local STATEMENTS = {
	["function"] = Reader.function_statement,
	["local"] = Reader.local_statement,
	["for"] = Reader.for_statement,
	["if"] = Reader.if_statement,
	["while"] = function(self)
		self:use(self:expression())
		self:next()
		self:inner_block()
		self:next()
	end,
	["do"] = function(self)
		self:inner_block()
		self:next()
	end,
	["repeat"] = function(self) -- what stands behind until sees the locals of the block
		self:enter()
		self:block()
		self:next()
		self:use(self:expression())
		self:leave()
	end,
	["return"] = function(self)
		if self:type() ~= "end" and not self:is ";" and not self:ends_block() then
			self:expressions()
		end
	end,
	["break"] = function() end,
	["::"] = function(self)
		self:next()
		self:next()
	end,
	[";"] = function() end,
}

local ENDS = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true }

function Reader:ends_block()
	return self:type() == "keyword" and ENDS[self.values[self.at]]
end

function Reader:block()
	while self:type() ~= "end" and not self:ends_block() do
		local statement = self:type() ~= "string" and STATEMENTS[self.values[self.at]]
		if statement then
			self:next()
			statement(self)
		elseif self:is "goto" and self.types[self.at + 1] == "name" then
			self:next()
			self:next()
		else
			self:expression_statement()
		end
	end
end

-- --- what locals stand for ---

-- A local that is never set again stands for what it was given; its names come before those of the use.
local function resolve(use)
	local names, variable = use.names, use.variable
	while variable do
		local value = not variable.changed and variable.value
		if not value then
			return nil
		end
		local all = {}
		for _, list in ipairs { value.names, names } do
			for _, name in ipairs(list) do
				all[#all + 1] = name
			end
		end
		names, variable = all, value.variable
		use.root = value.root
	end
	return use.root and { root = use.root, names = names, line = use.line, set = use.set, top = use.depth == 0 }
end

local names = {}

--- What a text that compiles uses: { uses = { { root =, names =, line =, set =, top = }, ... }, modules = { { name =, line = }, ... } }.
-- top: it stands in no function.
function names.read(text)
	local tokens = lexer.read(text)
	local reader = setmetatable({
		types = tokens.types, values = tokens.values, lines = tokens.lines, at = 1, depth = 0, uses = {}, modules = {},
	}, Reader)
	reader:inner_block()
	assert(reader:type() == "end", "this text does not compile")
	local uses = {}
	for _, use in ipairs(reader.uses) do
		uses[#uses + 1] = resolve(use)
	end
	return { uses = uses, modules = reader.modules }
end

return names
