--- Faults: what the server does wrong because somebody ordered it.
--
--   faults:add { verb = "watch", resource = "pods", after = 3, times = 1, action = "expire" }
--
-- verb, resource (plural), namespace and name say which requests are meant; what is left out fits all. `after` so many of
-- them pass first; of a watch it is so many events of the stream, so 0 means its start. `times` is how often it happens
-- at most (1). The result has `fired`, how often it has happened, and is given to faults:remove.
--
-- Actions: status (code, which it needs; reason, message, retry_after), unauthorized, conflict, expire (410; on lists also page = n),
-- cut (bytes), reset, silence, slow (bytes_per_second), garbage, wrong_kind, duplicate, no_end_bookmark, restart,
-- no_watch_list (code; of watches alone).
local k8s = require "perilune"
local fail = require "perilune.sandbox.fail"
local tree = require "perilune.sandbox.tree"

local faults = {}
faults.__index = faults

local REASONS = {
	[400] = "BadRequest", [401] = "Unauthorized", [403] = "Forbidden", [404] = "NotFound", [405] = "MethodNotAllowed",
	[409] = "Conflict", [410] = "Expired", [422] = "Invalid", [429] = "TooManyRequests", [500] = "InternalError",
	[503] = "ServiceUnavailable", [504] = "Timeout",
}

local function raise(code, reason, message, retry_after)
	local details = retry_after and { retryAfterSeconds = retry_after } or nil
	fail.raise(fail.status(code, reason, message, details), retry_after and { ["Retry-After"] = ("%d"):format(retry_after) } or nil)
end

-- --- instead of an answer, or around it ---

local ACTIONS = {}

function ACTIONS.status(fault)
	local code = fault.code or 500
	raise(code, fault.reason or REASONS[code] or "", fault.message or "a fault that was ordered", fault.retry_after)
end

function ACTIONS.unauthorized()
	raise(401, "Unauthorized", "Unauthorized")
end

function ACTIONS.conflict(_, request)
	fail.conflict(request.resource, request.name or "")
end

function ACTIONS.expire(fault, request)
	raise(410, fault.reason or "Expired", request.verb == "watch" and "too old resource version: 0 (0)"
		or "The provided continue parameter is too old to display a consistent list result.")
end

function ACTIONS.reset(_, request)
	request.answer.wire:reset()
	return true
end

function ACTIONS.silence(_, request)
	request.answer.wire:silence()
	return true
end

function ACTIONS.cut(fault, request)
	request.answer.wire:cut(fault.bytes or 0)
end

function ACTIONS.slow(fault, request)
	request.answer.wire:slow(fault.bytes_per_second or 100)
end

function ACTIONS.garbage(_, request)
	request.change = function(body)
		return body:sub(1, math.floor(#body / 2)) .. "\1}garbage"
	end
end

function ACTIONS.wrong_kind(_, request)
	request.change = function(body)
		return (body:gsub('"kind":"(%w+)"', '"kind":"Wrong"', 1))
	end
end

-- The first item comes twice, byte for byte.
function ACTIONS.duplicate(_, request)
	request.change = function(body)
		local _, at = body:find('"items":[', 1, true)
		local first = at and body:match("^%b{}", at + 1)
		return first and body:sub(1, at) .. first .. "," .. body:sub(at + 1) or body
	end
end

function ACTIONS.no_end_bookmark() end -- only of streams

-- As servers without watch-lists: with a code they refuse it, else they do not know the parameters.
function ACTIONS.no_watch_list(fault, request)
	if fault.code then
		return ACTIONS.status(fault)
	end
	request.query.sendInitialEvents, request.query.resourceVersionMatch = nil, nil
end

function ACTIONS.restart(_, request, server)
	server:restart()
	request.answer.wire:reset()
	return true
end

-- --- inside a stream: a function of (answer, text, kind) that gives the text, or nil when nothing more is to come ---

local STREAMED = {}

function STREAMED.expire(fault, answer)
	answer.wire:push('{"type":"ERROR","object":' .. k8s.json.encode(fail.status(410, fault.reason or "Expired",
		"too old resource version: 0 (0)")) .. "}\n")
	answer.wire:finish()
end

function STREAMED.status(fault, answer)
	local code = fault.code or 500
	answer.wire:push('{"type":"ERROR","object":' .. k8s.json.encode(fail.status(code, fault.reason or REASONS[code] or "",
		fault.message or "a fault that was ordered", fault.retry_after and { retryAfterSeconds = fault.retry_after })) .. "}\n")
	answer.wire:finish()
end

function STREAMED.cut(fault, answer, text)
	answer.wire:push(text:sub(1, fault.bytes or 0))
	answer.wire:cut_now()
end

function STREAMED.reset(_, answer)
	answer.wire:reset()
end

function STREAMED.silence(_, answer)
	answer.wire:silence()
end

function STREAMED.slow(fault, answer, text)
	answer.wire:slow(fault.bytes_per_second or 100)
	return text
end

function STREAMED.garbage(_, _, text)
	return text:sub(1, math.floor(#text / 2)) .. "\1}garbage\n"
end

-- A stray one comes first: the event itself is not lost.
function STREAMED.wrong_kind(_, answer, text)
	answer.wire:push((text:gsub('"kind":"(%w+)"', '"kind":"Wrong"', 1)))
	return text
end

function STREAMED.duplicate(_, _, text)
	return text .. text
end

function STREAMED.restart(_, answer, _, server)
	server:restart()
	answer.wire:reset()
end

local function is_end(text, kind)
	return kind == "BOOKMARK" and text:find('"k8s.io/initial-events-end":"true"', 1, true) ~= nil
end

-- --- orders ---

function faults.new()
	return setmetatable({ list = {}, pages = {} }, faults)
end

local KNOWN = {
	verb = "string", resource = "string", namespace = "string", name = "string", after = "number", times = "number",
	page = "number", action = "string", code = "number", reason = "string", message = "string", retry_after = "number",
	bytes = "number", bytes_per_second = "number",
}

local VERBS = {
	get = true, list = true, watch = true, create = true, update = true, patch = true, delete = true, deletecollection = true,
}

faults.verbs = VERBS

local LEAST = { after = 0, times = 1, page = 1, code = 400, retry_after = 0, bytes = 0, bytes_per_second = 1 }

--- "'lits', did you mean 'list'?"; known: a table whose keys are the names that there are.
function faults.misspelt(word, known, nearest)
	local names = tree.keys(known)
	local meant = nearest and nearest(word, names)
	return ("'%s'%s"):format(word, meant and (", did you mean '%s'?"):format(meant) or ": there are " .. table.concat(names, ", "))
end

--- What is wrong with an order, or nil. nearest(word, names), where it is given, finds the name that was meant.
function faults.problem(order, nearest)
	for name, value in pairs(order) do
		if not KNOWN[name] then
			return "unknown option " .. faults.misspelt(tostring(name), KNOWN, nearest)
		elseif type(value) ~= KNOWN[name] then
			return ("option '%s' must be a %s, not a %s"):format(name, KNOWN[name], type(value))
		elseif KNOWN[name] == "number" and not (value >= LEAST[name] and value < math.huge) then
			return ("option '%s' must be a number from %d on"):format(name, LEAST[name])
		end
	end
	if order.verb and not VERBS[order.verb] then
		return "unknown verb " .. faults.misspelt(order.verb, VERBS, nearest)
	elseif not order.action then
		return "action is missing: there are " .. table.concat(tree.keys(ACTIONS), ", ")
	elseif not ACTIONS[order.action] then
		return "unknown action " .. faults.misspelt(order.action, ACTIONS, nearest)
	elseif order.action == "status" and not order.code then
		return "action 'status' needs a code, such as code = 500"
	elseif order.page and order.verb and order.verb ~= "list" then
		return ("only a list has pages, no %s: leave out page, or write verb = \"list\""):format(order.verb)
	end
end

--- Orders a fault; an error names what is wrong with it.
function faults:add(order)
	local problem = faults.problem(order)
	if problem then
		error("fault: " .. problem, 2)
	end
	local fault = { seen = 0, fired = 0, times = order.times or 1, after = order.after or 0 }
	for name, value in pairs(order) do
		fault[name] = value
	end
	self.list[#self.list + 1] = fault
	return fault
end

function faults:remove(fault)
	for i, one in ipairs(self.list) do
		if one == fault then
			table.remove(self.list, i)
			return
		end
	end
end

local function page_of(server, request)
	if (request.query.continue or "") == "" then
		return 1
	end
	return (server.faults.pages[request.query.continue] or 1) + 1
end

local function fits(fault, request, page)
	return (not fault.verb or fault.verb == request.verb) and (not fault.resource or fault.resource == request.plural)
		and (not fault.namespace or fault.namespace == request.namespace) and (not fault.name or fault.name == request.name)
		and (not fault.page or fault.page == page)
		and (fault.action ~= "no_watch_list" or request.query.sendInitialEvents ~= nil)
end

local function fire(fault)
	fault.fired = fault.fired + 1
end

-- Whether a fault of a stream has its turn: so many events have passed, and it has not happened often enough.
local function stream_fault(server, fault)
	local passed = 0
	return function(answer, text, kind)
		if fault.fired >= fault.times then
			return text
		elseif fault.action == "no_end_bookmark" then
			if is_end(text, kind) then
				fire(fault)
				return nil
			end
			return text
		elseif kind == "BOOKMARK" then
			return text
		elseif passed < fault.after then
			passed = passed + 1
			return text
		end
		fire(fault)
		return STREAMED[fault.action](fault, answer, text, server)
	end
end

local AT_START = { status = true, unauthorized = true, expire = true, reset = true, silence = true, restart = true, slow = true }

-- A stream's fault without `after` that needs no event happens at its start, as do those that are answers.
local function is_for_stream(fault, request)
	local streamed = STREAMED[fault.action] or fault.action == "no_end_bookmark"
	return request.verb == "watch" and streamed and (fault.after > 0 or not AT_START[fault.action])
end

--- Before a request is handled. What it returns is the answer (true: there is none); nil: handle it.
function faults:begin(server, request)
	local page = request.verb == "list" and page_of(server, request)
	for _, fault in ipairs(self.list) do
		if not request.inside and fits(fault, request, page) and fault.fired < fault.times then
			if is_for_stream(fault, request) then
				table.insert(request.answer.streamed, stream_fault(server, fault))
			elseif fault.seen < fault.after then
				fault.seen = fault.seen + 1
			else
				fire(fault)
				local done = ACTIONS[fault.action](fault, request, server)
				if done then
					return done
				end
			end
		end
	end
end

-- Which page a continue token leads to.
local function note_page(self, request, body)
	local token = #self.list > 0 and request.verb == "list" and body:match '"continue":"([^"]+)"'
	if token then
		self.pages[token] = page_of({ faults = self }, request)
	end
end

--- The body of a whole answer, after the faults that change it.
function faults:body(request, reply)
	note_page(self, request, reply.body)
	return request.change and request.change(reply.body) or reply.body
end

return faults
