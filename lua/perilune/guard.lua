-- guard: pcall, xpcall, load and the coroutine functions as scripts see them.
--
-- Two promises. A script that is being stopped can't catch its way on: whatever catches an error hands it on while `killed()` says so. A host call
-- inside a coroutine of the script's own waits all the same: it yields `mark`, which resume passes up to the host and never shows to the script.
-- Where it can't pass up, resume notes the coroutine in `blocked`, and the host call is an error before it begins.

local mark, blocked, killed = ...

local error, rawequal, setmetatable, type = error, rawequal, setmetatable, type
local raw_load, raw_pcall, raw_xpcall = load, pcall, xpcall
local raw_create, raw_resume, raw_yield = coroutine.create, coroutine.resume, coroutine.yield
local isyieldable, running = coroutine.isyieldable, coroutine.running

-- A resume inside a resume takes C stack; LuaJIT's own bound ends the process in places, this one is a plain error.
local MOST_NESTED = 200

-- How many resumes each coroutine of the script's own is below its task. Those that are not in it are the host's, for it alone to resume.
local depth = setmetatable({}, { __mode = "k" })
local waiting = setmetatable({}, { __mode = "k" }) -- coroutine -> true while its host call has not been answered
setmetatable(blocked, { __mode = "k" })

local function hand_on(ok, ...)
	if not ok and killed() then
		error("stopped", 0)
	end
	return ok, ...
end

function pcall(f, ...)
	return hand_on(raw_pcall(f, ...))
end

function xpcall(f, handler, ...)
	-- LuaJIT runs no hooks in a handler that a hook's error called, so a stopped script's handler is not called at all.
	local function guarded(problem)
		if killed() then
			return problem
		end
		return handler(problem)
	end
	return hand_on(raw_xpcall(f, guarded, ...))
end

-- It catches what the function that it reads from raises.
function load(...)
	return hand_on(raw_load(...))
end

local function create(f)
	if type(f) ~= "function" then
		return raw_create(f)
	end
	local co = raw_create(f)
	depth[co] = 0
	return co
end

local function continue(co, ...)
	waiting[co] = nil
	return raw_resume(co, ...)
end

local function pass(co, ok, first, ...)
	if ok and rawequal(first, mark) then
		waiting[co] = true
		return pass(co, continue(co, raw_yield(mark)))
	end
	return hand_on(ok, first, ...)
end

local function resume(co, ...)
	if type(co) ~= "thread" then
		return raw_resume(co, ...)
	end
	if not depth[co] then
		return false, "cannot resume a coroutine of the host"
	end
	if waiting[co] then
		return false, "cannot resume a coroutine that waits for the host"
	end
	local resumer = running()
	local level = (depth[resumer] or 0) + 1
	if level > MOST_NESTED then
		return false, "coroutines nested deeper than " .. MOST_NESTED
	end
	depth[co] = level
	blocked[co] = not isyieldable() or blocked[resumer] or nil
	return pass(co, raw_resume(co, ...))
end

coroutine.create, coroutine.resume = create, resume

-- Each gsub that calls back into Lua takes kilobytes of C stack, and LuaJIT bounds only Lua's.
local raw_gsub, nested_gsubs = string.gsub, 0

local function leave_gsub(ok, ...)
	nested_gsubs = nested_gsubs - 1
	if not ok then
		error((...), 0)
	end
	return ...
end

function string.gsub(text, pattern, replacement, count)
	local kind = type(replacement)
	if kind ~= "function" and kind ~= "table" then
		return raw_gsub(text, pattern, replacement, count)
	end
	if nested_gsubs >= MOST_NESTED then
		error("string.gsub nested deeper than " .. MOST_NESTED, 2)
	end
	nested_gsubs = nested_gsubs + 1
	return leave_gsub(raw_pcall(raw_gsub, text, pattern, replacement, count))
end

local function unwrap(ok, ...)
	if not ok then
		error((...), 0)
	end
	return ...
end

function coroutine.wrap(f)
	local co = create(f)
	return function(...)
		return unwrap(resume(co, ...))
	end
end
