-- The size of a queue with a million keys, as the system sees it.
local process = require "support.process"

local KEYS, MOST_BYTES = 1000000, 150e6

describe("a work queue with a million keys #soak", function()
	it("takes less than 150 MB, whether they can be taken or wait for a time", function()
		local code, out = process.run { process.driver "work_driver", tostring(KEYS), seconds = 120 }
		assert.equal(0, code)
		io.stderr:write(out)
		for _, name in ipairs { "added_bytes", "delayed_bytes" } do
			local bytes = tonumber(out:match(name .. " (%d+)"))
			assert.is_true(bytes < MOST_BYTES and bytes > KEYS, name .. ": " .. bytes)
		end
	end)
end)
