local c = require "support.c"
local ffi = c.ffi

describe("buf", function()
  local function json(text)
    local buf = c.buf()
    assert.equal(0, c.buf_append_json_string(buf, text, #text))
    return c.text(buf)
  end

  it("refuses what would pass its limit and keeps what it had", function()
    local buf = c.buf(8)
    assert.equal(0, c.buf_append(buf, "12345", 5))
    assert.equal(-1, c.buf_append(buf, "6789", 4))
    assert.equal(-1, c.buf_append_format(buf, "%s", "6789"))
    assert.equal(-1, c.buf_append_json_string(buf, "67", 2))
    assert.equal("12345", ffi.string(c.buf_text(buf)))
    assert.equal(0, c.buf_append(buf, "678", 3))
    assert.equal("12345678", ffi.string(c.buf_text(buf)))
  end)

  it("with a limit answers when memory is out, instead of ending the process", function()
    local buf = c.buf(1e6)
    c.buf_append(buf, "held", 4)
    c.alloc_replace(function(_, memory, size)
      if size == 0 then
        ffi.C.free(memory)
      end
      return nil
    end, nil)
    local result = c.buf_append(buf, ("x"):rep(1000), 1000)
    c.alloc_replace(nil, nil)
    assert.equal(-1, result)
    assert.equal("held", c.text(buf))
  end)

  it("writes JSON strings that stand for the same text", function()
    assert.equal([["a\"b\\c\n\t\r\b\f"]], json('a"b\\c\n\t\r\b\f'))
    assert.equal([["\u0000\u001f\u007f\u0085"]], json("\0\31\127\194\133"))
    assert.equal('"déjà 😀"', json "déjà 😀")
  end)

  it("puts U+FFFD for each byte that is no UTF-8", function()
    assert.equal('"a\239\191\189b"', json "a\255b")
    assert.equal('"\239\191\189\239\191\189"', json "\237\160") -- half a surrogate
    assert.equal('"\239\191\189\239\191\189"', json "\192\128") -- an overlong NUL
  end)

  it("makes valid JSON of any bytes", function()
    local seed = c.seed()
    for _ = 1, 2000 do
      local bytes = {}
      for i = 1, math.random(0, 24) do
        bytes[i] = string.char(math.random(0, 3) > 0 and math.random(0, 255) or math.random(32, 126))
      end
      local text = json(table.concat(bytes))
      assert.equal(0, c.json_validate(text, #text, nil), seed)
    end
  end)

  it("forgets its beginning", function()
    local buf = c.buf()
    c.buf_append(buf, "headtail", 8)
    c.buf_consume(buf, 4)
    assert.equal("tail", ffi.string(c.buf_text(buf)))
    c.buf_consume(buf, 4)
    assert.equal("", ffi.string(c.buf_text(buf)))
  end)

  it("gives its memory away", function()
    local buf = c.buf()
    c.buf_append(buf, "mine", 4)
    local text = c.buf_take(buf)
    assert.equal("mine", ffi.string(text))
    assert.equal(0, tonumber(buf.length))
    c.alloc_free(text)
  end)
end)

describe("err", function()
  it("holds one line, cut between characters", function()
    local err = c.err()
    assert.equal(-1, c.err_set(err, "NotFound", "%s", "two\nlines"))
    assert.equal("two lines", c.message(err))
    c.err_set(err, "", "%s", "a\27[31m\tb\127\194\155c\194\160\194")
    assert.equal("a [31m b   c\194\160\194", c.message(err))
    c.err_set(err, "", "%s", "x" .. ("é"):rep(2000))
    assert.equal("x" .. ("é"):rep(511), c.message(err))
  end)

  it("can wrap its own message", function()
    local err = c.err()
    c.err_set(err, "Conflict", "it changed")
    c.err_prefix(err, "pod %s", "web")
    c.err_set(err, err.reason, "list: %s", ffi.cast("const char *", err.message))
    assert.equal("list: pod web: it changed", c.message(err))
    assert.equal("Conflict", ffi.string(err.reason))
  end)
end)

describe("alloc", function()
  it("counts the live objects of a type", function()
    -- Not Lua's memory: the list of types points to it as long as the process lives.
    local name = ffi.cast("char *", c.alloc_copy("spec\0", 5))
    local kind = ffi.cast("struct alloc_type *", c.alloc_copy(ffi.new "struct alloc_type", ffi.sizeof "struct alloc_type"))
    kind.name = name
    local before = c.alloc_live(nil)
    local one, two = c.alloc_object(kind, 8), c.alloc_object(kind, 8)
    assert.equal(2, tonumber(c.alloc_live(nil) - before))
    c.alloc_object_free(kind, one)
    c.alloc_object_free(kind, two)
    assert.equal(before, c.alloc_live(nil))
  end)
end)
