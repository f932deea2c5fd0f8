--- The parts of core/kube that need no server: spec/drivers/kube_units.c says what can be ordered.
--
--   local units = kube_units.start { env = {} }
--   units:order("split", { api_version = "apps/v1" })   the events, in order; the last "ok" left out
--   units:one("split", …)                               the only one
--   units:finish()                                      exit code 0: no object left alive
local cjson = require "cjson"
local process = require "support.process"

local kube_units = {}

local SECONDS = 60

local Units = {}
Units.__index = Units

function kube_units.start(options)
	options = options or {}
	local program = process.driver "kube_units"
	if options.cwd and not program:match "^/" then
		program = os.getenv "PWD" .. "/" .. program
	end
	return setmetatable({ child = process.start { program, env = options.env, cwd = options.cwd } }, Units)
end

local function hex(text)
	return (text:gsub(".", function(c)
		return ("%02x"):format(c:byte())
	end))
end

function Units:order(verb, fields)
	local words = { verb }
	for key, value in pairs(fields or {}) do
		words[#words + 1] = key .. "_hex=" .. hex(tostring(value))
	end
	return self:send(words)
end

--- As order, with the fields in the order given: { "name", value, "name", value … }.
function Units:ordered(verb, fields)
	local words = { verb }
	for i = 1, #fields, 2 do
		words[#words + 1] = fields[i] .. "_hex=" .. hex(fields[i + 1])
	end
	return self:send(words)
end

function Units:send(words)
	self.child:write(table.concat(words, "\t") .. "\n", SECONDS)
	local events = {}
	while true do
		local event = cjson.decode(self.child:line(SECONDS))
		if event.event == "ok" then
			return events
		end
		events[#events + 1] = event
	end
end

function Units:one(verb, fields)
	local events = self:order(verb, fields)
	assert(#events == 1, "one event was expected")
	return events[1]
end

function Units:finish()
	self.child:close_stdin()
	local code = self.child:wait(SECONDS)
	assert(code == 0, "exit code " .. tostring(code) .. ": " .. self.child:stderr())
	self.child:close()
end

return kube_units
