-- Random stories of writes and faults: whatever happens, caches and handlers come to know what the server has.
local convergence = require "support.convergence"

local SEEDS, GROUP = 200, 20

describe("whatever writes and faults there are, caches and handlers come to be what the server has, #slow", function()
	local first, last = convergence.range(1, SEEDS)
	for from = first, last, GROUP do
		local to = math.min(from + GROUP - 1, last)
		it(("seeds %d to %d"):format(from, to), function()
			for seed = from, to do
				convergence.check(seed)
			end
		end)
	end
end)
