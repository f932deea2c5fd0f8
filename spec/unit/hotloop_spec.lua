-- The memory of keys that their own writes bring back: which key is hot, and that a memory of many costs nobody's turn.
local units = require "support.work_units"
local ffi = units.ffi

units.cdef [[
  struct hotloop_verdict { bool own, news; double delay; };
  void hotloop_init(void *hotloop, struct loop *loop);
  void hotloop_fini(void *hotloop);
  void hotloop_wrote(void *hotloop, const char *key, size_t length, const char *version);
  struct hotloop_verdict hotloop_returned(void *hotloop, const char *key, size_t length, const char *version);
]]

local ROOM = 65536 -- bytes, more than the struct takes
local MOST, QUIET = 20, 60

describe("a key that its own writes bring back", function()
	local hotloop

	before_each(function()
		units.open()
		hotloop = ffi.new("double[?]", ROOM / 8)
		units.hotloop_init(hotloop, units.loop())
	end)

	after_each(function()
		units.hotloop_fini(hotloop)
		units.close()
	end)

	local function comes_back(key)
		units.hotloop_wrote(hotloop, key, #key, "7")
		return units.hotloop_returned(hotloop, key, #key, "7")
	end

	it("is hot after more than 20 times in 10 s, waits longer each time, and cools down in a quiet minute", function()
		for _ = 1, MOST do
			assert.equal(0, comes_back("shop/a").delay)
		end
		local delays = {}
		for i = 1, 7 do
			local verdict = comes_back "shop/a"
			assert.equal(i == 1, verdict.news)
			delays[i] = verdict.delay
		end
		assert.same({ 1, 2, 4, 8, 16, 30, 30 }, delays)
		assert.equal(0, comes_back("shop/b").delay)
		units.advance(QUIET - 1)
		assert.equal(30, comes_back("shop/a").delay)
		units.advance(QUIET)
		assert.equal(0, comes_back("shop/a").delay)
	end)

	it("is told from news by key and version", function()
		comes_back "shop/a"
		assert.is_false(units.hotloop_returned(hotloop, "shop/a", 6, "8").own)
		assert.is_false(units.hotloop_returned(hotloop, "shop/b", 6, "7").own)
		assert.is_true(units.hotloop_returned(hotloop, "shop/a", 6, "7").own)
	end)

	it("is forgotten in time that does not grow with the square of how many there are", function()
		local before = tonumber(units.alloc_live(nil))
		for i = 1, 100000 do
			comes_back("shop/" .. i)
		end
		assert.equal(before + 100000, tonumber(units.alloc_live(nil)))
		local start = os.clock()
		units.advance(QUIET)
		while tonumber(units.alloc_live(nil)) > before and os.clock() - start < 5 do
			units.turn()
		end
		assert.equal(before, tonumber(units.alloc_live(nil)))
	end)
end)
