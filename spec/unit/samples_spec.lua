local c = require "support.c"

c.cdef [[
  struct samples;
  struct samples *samples_new(size_t most, bool tested);
  void samples_free(struct samples *samples);
  bool samples_add(struct samples *samples, struct json_slice json);
  size_t samples_room(size_t most, size_t length);
]]

describe("samples", function()
	local samples

	local function fill(most, tested, length)
		samples = c.samples_new(most, tested)
		local text, count = c.slice(("x"):rep(length)), 0
		while c.samples_add(samples, text) do
			count = count + 1
		end
		return count
	end

	after_each(function()
		c.samples_free(samples)
	end)

	it("have room for so many bytes, and for a test of each eight", function()
		assert.equal(100, fill(100000, false, 1000))
		c.samples_free(samples)
		assert.equal(112, fill(100000, true, 1000))
		assert.equal(112, tonumber(c.samples_room(100000, 1000)))
	end)

	it("take the first 16 KiB of a large object", function()
		assert.equal(4, fill(64 * 1024, false, 1000000))
	end)

	it("end at some number of the smallest, too", function()
		assert.equal(1000, fill(64000, false, 1))
	end)
end)
