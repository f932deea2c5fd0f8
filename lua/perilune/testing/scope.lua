--- How long a testing cluster stays open that nobody closes: to the end of the test, or of the describe or file, that it was
-- opened in.
--
-- One that a before_each opened is still there for the after_each: it goes when the next test begins, when a cluster is
-- opened, or with its describe. State of the process: busted loads a file's modules anew, but not this.
local scope = {}

local blocks, in_test = 0, false
local open -- nil, or { cluster =, place =, blocks =, in_test =, over = whether a test has ended since it was opened by a before_each }
local current -- of busted: the element that runs

local function close()
	if open then
		open.cluster:close()
	end
end

local HANDLERS = {
	[{ "test", "start" }] = function()
		if open and open.over then
			close()
		end
		in_test = true
	end,
	[{ "test", "end" }] = function()
		in_test = false
		if open and open.in_test then
			close()
		elseif open and open.of_each then
			open.over = true
		end
	end,
}

local function on_start()
	blocks = blocks + 1
end

local function on_end()
	if open and open.blocks >= blocks then
		close()
	end
	blocks = blocks - 1
end

for _, name in ipairs { "describe", "file" } do
	HANDLERS[{ name, "start" }] = on_start
	HANDLERS[{ name, "end" }] = on_end
end

--- busted: a core, just made. The first is the runner's; a spec that requires busted makes others, which run nothing.
function scope.watch(busted)
	if current then
		return
	end
	current = busted.context.get
	for channel, handler in pairs(HANDLERS) do
		busted.subscribe(channel, function()
			handler()
			return nil, true -- the others are told too
		end)
	end
end

local function caller()
	local level = 2
	while true do
		local info = debug.getinfo(level, "Sl")
		if not info or (info.currentline > 0 and info.source:sub(1, 10) ~= "=perilune.") then
			return info and ("%s:%d"):format(info.short_src, info.currentline) or "?"
		end
		level = level + 1
	end
end

--- Before a cluster is opened: complains with misuse(message) where one is open.
function scope.check(misuse)
	-- After a before_each that failed no test ends.
	local again = open and open.of_each and open.place == caller()
	if open and (open.over or again) then
		close()
	elseif open then
		misuse("a testing cluster is open already, since " .. open.place .. ": close it first, or use that one")
	end
end

function scope.enter(cluster)
	open = {
		cluster = cluster, place = caller(), blocks = blocks, in_test = in_test, of_each = current().descriptor == "before_each",
	}
end

function scope.leave(cluster)
	if open and open.cluster == cluster then
		open = nil
	end
end

return scope
