--- The way back to one client, with the faults that were ordered for it.
--
-- Around the host's own answer (reply, open, push, finish, cut, reset, silence, slow).
local answer = {}
answer.__index = answer

function answer.new(wire)
	return setmetatable({ wire = wire, streamed = {}, on_gone = function() end }, answer)
end

local function header_lines(headers)
	local lines = {}
	for name, value in pairs(headers or {}) do
		for _, one in ipairs(type(value) == "table" and value or { value }) do
			lines[#lines + 1] = name .. ": " .. one
		end
	end
	return lines
end

function answer:reply(status, headers, body)
	self.wire:reply(status, header_lines(headers), body)
end

function answer:open(status, headers)
	self.wire:open(status, header_lines(headers))
end

--- One event of a stream. Its faults may change it, and end the stream.
function answer:push(text, kind)
	for _, fault in ipairs(self.streamed) do
		text = fault(self, text, kind)
		if not text then
			return
		end
	end
	self.wire:push(text)
end

function answer:finish()
	self.wire:finish()
end

return answer
