-- What fuzzing has found, and what it began with: spec/fuzz/TARGET.c says what holds for each file of spec/fuzz/corpus/TARGET/.
local files = require "support.files"
local process = require "support.process"

local SECONDS = 120

describe("the fuzz target", function()
	for source in files.output_of({ "find", "spec/fuzz", "-maxdepth", "1", "-name", "*.c" }):gmatch "[^\n]+" do
		local target = source:match "([^/]+)%.c$"

		it(target .. " holds for all of its corpus", function()
			local command = { process.build() .. "/fuzz/" .. target, seconds = SECONDS }
			for path in files.output_of({ "find", "spec/fuzz/corpus/" .. target, "-type", "f" }):gmatch "[^\n]+" do
				command[#command + 1] = path
			end
			assert.is_true(#command > 1, "there is no corpus")
			local code, _, stderr = process.run(command)
			assert.equal(0, code, stderr)
			assert.equal(#command - 1, select(2, stderr:gsub(": %d+ bytes\n", "")))
		end)
	end
end)
