local c = require "support.c"
local ffi = c.ffi

describe("strmap", function()
  local map

  before_each(function()
    map = ffi.new "struct strmap"
    c.strmap_init(map)
  end)

  after_each(function()
    c.strmap_fini(map)
  end)

  local function pointer(n)
    return ffi.cast("void *", n)
  end

  local function get(key)
    return tonumber(ffi.cast("uintptr_t", c.strmap_get(map, key, #key)))
  end

  local function contents()
    local cursor, key, length = ffi.new "size_t[1]", ffi.new "const char *[1]", ffi.new "size_t[1]"
    local value, found = ffi.new "void *[1]", {}
    while c.strmap_next(map, cursor, key, length, value) do
      found[ffi.string(key[0], length[0])] = tonumber(ffi.cast("uintptr_t", value[0]))
    end
    return found
  end

  it("tells keys apart by all of their bytes", function()
    c.strmap_put(map, "a\0b", 3, pointer(1))
    c.strmap_put(map, "a\0c", 3, pointer(2))
    c.strmap_put(map, "", 0, pointer(3))
    assert.same({ 1, 2, 3, 0 }, { get "a\0b", get "a\0c", get "", get "a" })
  end)

  it("copies keys and gives back the value before", function()
    local key = ffi.new("char[4]", "key")
    assert.is_true(c.strmap_put(map, key, 3, pointer(1)) == nil)
    ffi.copy(key, "xxx")
    assert.equal(1, tonumber(ffi.cast("uintptr_t", c.strmap_put(map, "key", 3, pointer(2)))))
    assert.equal(2, get "key")
  end)

  it("holds what was put and not removed, whatever the order", function()
    local seed = c.seed()
    local expected, count = {}, 0
    for _ = 1, 20000 do
      local key = "key" .. math.random(1, 500)
      if math.random() < 0.4 then
        c.strmap_remove(map, key, #key)
        count = count - (expected[key] and 1 or 0)
        expected[key] = nil
      else
        local value = math.random(1, 1e6)
        c.strmap_put(map, key, #key, pointer(value))
        count = count + (expected[key] and 0 or 1)
        expected[key] = value
      end
    end
    assert.equal(count, tonumber(map.count), seed)
    assert.same(expected, contents(), seed)
  end)
end)
