local c = require "support.c"
local seed_random = require "support.seed"
local ffi = c.ffi

c.cdef [[
  struct slab { struct { void *prev, *next; } rooms[120]; size_t pieces; };
  void slab_init(struct slab *slab);
  void slab_check(const struct slab *slab);
  void *slab_take(struct slab *slab, size_t size);
  void slab_give(struct slab *slab, void *memory, size_t size);
  void slab_trim(struct slab *slab);
  size_t slab_held(void);
  int mincore(void *start, size_t length, unsigned char *pages);
  int getpagesize(void);
]]

local CHUNK = 32768

local slab = ffi.new "struct slab"

-- Fills a piece with a byte of its own, by which it is known again.
local function take(size, mark)
	local at = ffi.cast("uint8_t *", c.slab_take(slab, size))
	if ffi.cast("uintptr_t", at) % 8 ~= 0 then
		error("a piece that is not aligned")
	end
	ffi.fill(at, size, mark)
	return { at = at, size = size, mark = mark }
end

local function give(piece)
	if ffi.string(piece.at, piece.size) ~= string.char(piece.mark):rep(piece.size) then
		error("a piece of " .. piece.size .. " bytes was written to by another's owner")
	end
	c.slab_give(slab, piece.at, piece.size)
end

local function resident_pages_around(piece)
	local page = ffi.C.getpagesize()
	local pages, count = ffi.new("unsigned char[?]", CHUNK / page), 0
	local address = ffi.cast("uintptr_t", piece.at)
	if ffi.C.mincore(ffi.cast("void *", address - address % CHUNK), CHUNK, pages) ~= 0 then
		return 0 -- not even mapped any more
	end
	for i = 0, CHUNK / page - 1 do
		count = count + pages[i] % 2
	end
	return count
end

local function held()
	return tonumber(c.slab_held())
end

describe("slab", function()
	before_each(function()
		c.slab_init(slab)
	end)

	after_each(function()
		c.slab_check(slab)
		assert.equal(0, tonumber(slab.pieces))
	end)

	it("gives pieces that do not touch each other, of any size", function()
		local pieces = {}
		for size = 1, 4200 do
			pieces[size] = take(size, size % 251)
		end
		c.slab_check(slab)
		for _, piece in ipairs(pieces) do
			give(piece)
		end
		c.slab_check(slab)
	end)

	it("holds what random stories of takes and gives leave", function()
		local seed = seed_random()
		local pieces = {}
		for step = 1, 20000 do
			if #pieces == 0 or math.random() < (step % 4000 < 2000 and 0.7 or 0.3) then
				pieces[#pieces + 1] = take(math.random(1, math.random(1, 8) == 1 and 4000 or 600), math.random(0, 255))
			else
				local i = math.random(#pieces)
				give(pieces[i])
				pieces[i] = pieces[#pieces]
				pieces[#pieces] = nil
			end
			if step % 1000 == 0 then
				c.slab_check(slab)
			end
		end
		for _, piece in ipairs(pieces) do
			give(piece)
		end
		c.slab_check(slab)
		assert(held() <= 2 * 1024 * 1024, seed)
	end)

	it("gives pages back to the system when what lay in them is gone, whatever stays beside them", function()
		local before = held()
		local stays, goes = {}, {}
		for i = 1, 20000 do
			goes[i] = take(500, 1)
			if i % 20 == 0 then
				stays[#stays + 1] = take(40, 2)
			end
		end
		assert(held() >= 20000 * 500)
		for _, piece in ipairs(goes) do
			give(piece)
		end
		assert(held() <= before + 2 * 1024 * 1024)
		local resident, of = 0, 0
		for i = 1, #goes, 65 do -- about one in each chunk
			resident = resident + resident_pages_around(goes[i])
			of = of + CHUNK / ffi.C.getpagesize()
		end
		assert(resident < of / 2, ("%d of %d pages"):format(resident, of))
		for _, piece in ipairs(stays) do
			give(piece)
		end
	end)

	it("gives back, when asked, pages that it kept for what never came", function()
		local many = {}
		for i = 1, 200 do
			many[i] = take(1000, 1)
		end
		for _, piece in ipairs(many) do
			give(piece)
		end
		local one = take(40, 2)
		assert(resident_pages_around(one) > 1, "no chunk that was used before")
		c.slab_trim(slab)
		assert.equal(1, resident_pages_around(one))
		local more = {}
		for i = 1, 800 do
			more[i] = take(40, i % 251)
		end
		for _, piece in ipairs(more) do
			give(piece)
		end
		give(one)
	end)
end)
