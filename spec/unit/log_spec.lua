local c = require "support.c"
local ffi = c.ffi

local DEBUG, INFO, WARN, ERROR = 0, 1, 2, 3
local TEXT, JSON = 0, 1

describe("log", function()
  local lines, on_line, wall

  before_each(function()
    lines = {}
    on_line = ffi.cast("void (*)(void *, const char *, size_t)", function(_, line, length)
      lines[#lines + 1] = ffi.string(line, length)
    end)
    wall = ffi.cast("clock_fn", function()
      return 1893553445.678
    end)
    c.log_replace(on_line, nil)
    c.clock_replace(nil, wall, nil)
  end)

  after_each(function()
    c.log_replace(nil, nil)
    c.clock_replace(nil, nil, nil)
    c.log_set_format(TEXT)
    c.log_set_level(INFO)
    on_line:free()
    wall:free()
  end)

  -- fields: "key=value", as an array.
  local function write(level, message, fields)
    local array, texts = nil, {}
    if fields then
      array = ffi.new("struct log_field[?]", #fields + 1)
      for i, field in ipairs(fields) do
        local key, value = field:match "^(.-)=(.*)$"
        texts[#texts + 1], texts[#texts + 2] = key, value
        array[i - 1].key = key
        array[i - 1].value = value ~= "NULL" and value or nil
      end
    end
    c.log_write(level, array, "%s", message)
    return lines[#lines], texts
  end

  it("writes a line for people", function()
    assert.equal("2030-01-02T03:04:05.678Z INFO  synced informer=pods\n", write(INFO, "synced", { "informer=pods" }))
    assert.equal("2030-01-02T03:04:05.678Z WARN  slow\n", write(WARN, "slow"))
  end)

  it("quotes values that are more than one word", function()
    assert.equal('2030-01-02T03:04:05.678Z ERROR x error="not found" name="" file="a=\\"b\\""\n',
      write(ERROR, "x", { "error=not found", "name=", 'file=a="b"' }))
  end)

  it("writes JSON with time, level, msg and the fields in their order", function()
    c.log_set_format(JSON)
    assert.equal('{"time":"2030-01-02T03:04:05.678Z","level":"warn","msg":"x","script":"a","kind":"Pod"}\n',
      write(WARN, "x", { "script=a", "error=NULL", "kind=Pod" }))
  end)

  it("makes one line of anything", function()
    for _, format in ipairs { TEXT, JSON } do
      c.log_set_format(format)
      local line = write(INFO, "a\nlevel=ERROR\r\27[31m", { "error=b\nc\255\194\155d\127", "k\ne\27y=1" })
      assert.is_nil(line:sub(1, -2):find "[%c\127\255]", line)
      assert.is_nil(line:find("\194\155", 1, true), line)
      assert.equal("\n", line:sub(-1))
      if format == JSON then
        assert.equal(0, c.json_validate(line, #line, nil))
      else
        assert.truthy(line:find("a\\nlevel=ERROR\\r\\u001b[31m", 1, true), line)
      end
    end
  end)

  it("leaves out what is below its level", function()
    write(DEBUG, "hidden")
    c.log_set_level(DEBUG)
    write(DEBUG, "shown")
    c.log_set_level(ERROR)
    write(WARN, "hidden")
    assert.equal(1, #lines)
  end)

  it("reads the words of the command line", function()
    local word = ffi.new "int[1]"
    for text, level in pairs { debug = DEBUG, info = INFO, warn = WARN, error = ERROR } do
      assert.equal(0, c.log_parse_level(text, word))
      assert.equal(level, word[0])
    end
    assert.equal(-1, c.log_parse_level("loud", word))
    assert.equal(0, c.log_parse_format("json", word))
    assert.equal(JSON, word[0])
    assert.equal(-1, c.log_parse_format("xml", word))
  end)
end)
