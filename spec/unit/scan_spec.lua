local c = require "support.c"
local json_text = require "support.json_text"
local ffi = c.ffi

describe("json_validate", function()
  -- nil, or the message.
  local function problem(text)
    local err = c.err()
    if c.json_validate(c.copy(text), #text, err) ~= 0 then
      return c.message(err)
    end
  end

  it("takes what is JSON", function()
    for _, text in ipairs {
      "0", "-0", "-0.5e+10", "1E9", "true", "null", '""', " [ ] ", "{}", '{"a":[1,{"b":null}],"":2}', '"\\u00e9\\ud83d\\ude00"',
      '"é\194\128\239\191\191\244\143\191\191"', "[1\t,\r\n2 ]", '{"a":1,"a":2}', '"a string longer than eight bytes, plain"',
    } do
      assert.is_nil(problem(text))
    end
  end)

  it("says where other bytes stop being JSON, and what was expected", function()
    local cases = {
      { "", 0, "a value" }, { "  ", 2, "a value" }, { "{", 1, "a key" }, { "[", 1, "a value" }, { "[1,]", 3, "a value" },
      { '{"a":1,}', 7, "a key" }, { '{"a" 1}', 5, "':'" }, { "{1:2}", 1, "a key" }, { "[1 2]", 3, "',' or ']'" },
      { '{"a":1]', 6, "',' or '}'" }, { "1 2", 2, "the end" }, { "01", 1, "the end" }, { "-", 1, "a digit" },
      { "1.", 2, "a digit" }, { "1.e5", 2, "a digit" }, { "1e", 2, "a digit" }, { ".5", 0, "a value" }, { "+1", 0, "a value" },
      { "NaN", 0, "a value" }, { "nul", 3, "null" }, { "trux", 3, "true" }, { "'a'", 0, "a value" }, { '"a', 2, "string" },
      { '"a\nb"', 2, "control" }, { '"\\x"', 2, "an escape" }, { '"\\u12g4"', 5, "a hex digit" }, { '"\\ud83d"', 7, "low surrogate" },
      { '"\\ude00"', 1, "surrogate" }, { '"\\ud83d\\u0041"', 9, "low surrogate" },
      { '"\\ud83d\\ud83d"', 9, "low surrogate" }, { '"\255"', 1, "UTF-8" },
      { '"\192\128"', 1, "UTF-8" }, { '"\237\160\128"', 1, "UTF-8" }, { '"\244\144\128\128"', 1, "UTF-8" }, { '"aé\195"', 4, "UTF-8" },
      { "\239\187\191{}", 0, "a value" }, { "[1]]", 3, "the end" }, { "/* */1", 0, "a value" },
    }
    for _, case in ipairs(cases) do
      local message = problem(case[1])
      assert.truthy(message, case[1])
      assert.truthy(message:find("byte " .. case[2] .. ": expected", 1, true), case[1] .. " -> " .. message)
      assert.truthy(message:find(case[3], 1, true), case[1] .. " -> " .. message)
    end
  end)

  it("looks at every byte of a string", function()
    for place = 0, 20 do
      for byte = 0, 255 do
        local text = '"' .. ("a"):rep(place) .. string.char(byte) .. ("a"):rep(20 - place) .. '"'
        -- Of one odd byte a quote ends the string too early, and a backslash makes an unknown escape of what follows.
        local plain = byte >= 32 and byte < 128 and byte ~= 34 and byte ~= 92
        assert.equal(plain, problem(text) == nil, text)
      end
    end
  end)

  it("finds the end of a string wherever it stands", function()
    for length = 0, 150 do
      local text = ('[%s"%s"%s]'):format((" "):rep(length % 7), ("a"):rep(length), (" "):rep(length % 5))
      assert.is_nil(problem(text))
      local value = text:find '"' - 1
      for place = length % 3, length, 3 do
        for byte, expected in pairs { ["\31"] = "control", ["\128"] = "UTF.8", ["\255"] = "UTF.8" } do
          local wrong = text:sub(1, value + 1 + place) .. byte .. text:sub(value + 2 + place)
          assert.truthy(problem(wrong):find(("byte %d: .*%s"):format(value + 1 + place, expected)), wrong)
        end
        for _, odd in ipairs { "\\n", "\\\"", "é", "😀", "\127", " ", "!", "#" } do
          assert.is_nil(problem(text:sub(1, value + 1 + place) .. odd .. text:sub(value + 2 + place)))
        end
      end
    end
  end)

  it("takes 10,048 levels and no more", function()
    assert.is_nil(problem(("["):rep(10048) .. ("]"):rep(10048)))
    assert.is_nil(problem(('{"a":['):rep(5024) .. "1" .. ("]}"):rep(5024)))
    assert.truthy(problem(("["):rep(10049) .. ("]"):rep(10049)))
    assert.truthy(problem(('{"a":['):rep(5025) .. ("]}"):rep(5025)))
    assert.truthy(problem(("["):rep(1e6)))
    assert.is_nil(problem(("["):rep(10047) .. "{}" .. ("]"):rep(10047)))
    assert.equal("byte 10048: expected no deeper nesting", problem(("["):rep(10048) .. "{}" .. ("]"):rep(10048)))
  end)

  it("knows at every level which bracket closes it", function()
    local seed = c.seed()
    local open, close = {}, {}
    for i = 1, 1000 do
      local object = math.random(2) == 1
      open[i], close[1001 - i] = object and '{"a":' or "[", object and "}" or "]"
    end
    local before, behind = table.concat(open), table.concat(close)
    assert.is_nil(problem(before .. "1" .. behind), seed)
    for i = 1, 1000, 37 do
      local wrong = behind:sub(1, i - 1) .. (close[i] == "}" and "]" or "}") .. behind:sub(i + 1)
      assert.truthy(problem(before .. "1" .. wrong), seed)
    end
  end)

  it("takes random JSON and none of its beginnings", function()
    local seed = c.seed()
    for _ = 1, 500 do
      local text = "[" .. json_text.value() .. "]"
      assert.is_nil(problem(text), seed)
      assert.truthy(problem(text:sub(1, math.random(1, #text - 1))), seed)
    end
  end)

  it("reads inside its bytes whatever they are", function()
    c.seed()
    for _ = 1, 3000 do
      local text = json_text.value()
      local at = math.random(1, #text)
      problem(text:sub(1, at - 1) .. string.char(math.random(0, 255)) .. text:sub(at + 1))
    end
  end)
end)

describe("json slices", function()
  local object = c.slice '{"kind" : "Pod","a\\u0062":{"x":[10, "two" ,{"y":null}]},"n":1,"n":2,"e":{},"t":true}'

  it("find members, of equal keys the last", function()
    assert.equal('"Pod"', c.text(c.json_get(object, "kind")))
    assert.equal("2", c.text(c.json_get(object, "n")))
    assert.equal("{}", c.text(c.json_get(object, "e")))
    assert.is_nil(c.text(c.json_get(object, "x")))
    assert.is_nil(c.text(c.json_get(c.json_get(object, "none"), "x")))
    assert.is_nil(c.text(c.json_get(c.json_get(object, "n"), "x")))
  end)

  it("match keys by what their escapes mean", function()
    assert.equal('{"x":[10, "two" ,{"y":null}]}', c.text(c.json_get(object, "ab")))
    assert.is_nil(c.text(c.json_get(object, "a\\u0062")))
    local escaped = c.slice [["\u00e9\n\ud83d\ude00\"\\"]]
    assert.is_true(c.json_string_equals(escaped, 'é\n😀"\\'))
    assert.is_false(c.json_string_equals(escaped, 'é\n😀"'))
    assert.is_false(c.json_string_equals(escaped, 'é\n😀"\\x'))
    assert.is_false(c.json_string_equals(c.slice "12", "12"))
  end)

  it("unescape", function()
    local buf = c.buf()
    assert.equal(0, c.json_string_append(c.slice [["a\u00e9\ud83d\ude00\/\n\u0000b"]], buf))
    assert.equal("aé😀/\n\0b", c.text(buf))
    assert.equal(-1, c.json_string_append(c.slice "1", buf))
    assert.equal(-1, c.json_string_append(c.slice '"much"', c.buf(2)))
  end)

  it("hold integers of all of int64 and no others", function()
    local out = ffi.new "int64_t[1]"
    local integers = {
      ["0"] = 0LL, ["-0"] = 0LL, ["9223372036854775807"] = 9223372036854775807LL,
      ["-9223372036854775808"] = -9223372036854775807LL - 1LL, ["1234567890123456789"] = 1234567890123456789LL,
    }
    for text, value in pairs(integers) do
      assert.equal(0, c.json_integer(c.slice(text), out), text)
      assert.is_true(out[0] == value, text)
    end
    for _, text in ipairs { "9223372036854775808", "-9223372036854775809", "99999999999999999999", "1.0", "1e3", '"1"', "null" } do
      assert.equal(-1, c.json_integer(c.slice(text), out), text)
    end
  end)

  it("are walked in order", function()
    local function walk(text)
      local iter, found = ffi.new("struct json_iter[1]", c.json_iterate(c.slice(text))), {}
      while c.json_next(iter[0]) do
        found[#found + 1] = (c.text(iter[0].key) or "") .. "=" .. c.text(iter[0].value)
      end
      return table.concat(found, " ")
    end
    assert.equal('"a"=1 "b"=[2, 3] "c"="}"', walk '{ "a" :1,"b": [2, 3] , "c":"}" }')
    assert.equal('=1 ={"a":"]"} =null', walk '[1 , {"a":"]"},\nnull]')
    assert.equal("", walk "[ ]")
    assert.equal("", walk "12")
  end)

  -- Most have no backslash, which would have them passed over more slowly.
  it("are passed over whole, wherever their brackets and quotes lie", function()
    local seed = c.seed()
    local function value()
      local text = json_text.value()
      return math.random(4) > 1 and text:gsub("\\[^u]", ""):gsub("\\u%x%x%x%x", "") or text
    end
    for _ = 1, 1500 do
      local elements = {}
      for i = 1, math.random(1, 4) do
        local padding = math.random(0, 70)
        elements[i] = ('{"%s":[%s,"}]"]}'):format(("x"):rep(padding), value())
      end
      local iter = ffi.new("struct json_iter[1]", c.json_iterate(c.slice("[" .. table.concat(elements, ",") .. "]")))
      for _, element in ipairs(elements) do
        assert.is_true(c.json_next(iter[0]), seed)
        assert.equal(element, c.text(iter[0].value), seed)
      end
      assert.is_false(c.json_next(iter[0]), seed)
    end
  end)

  it("come to an end inside their bytes even if nobody validated them", function()
    c.seed()
    local path = c.json_path_new("a[*].metadata", nil)
    local meta, buf, on_value = ffi.new "struct json_meta", c.buf(), ffi.cast(
      "void (*)(void *, struct json_slice)", ffi.C.json_type)
    for _ = 1, 3000 do
      local text = '{"a":' .. json_text.value() .. "}"
      local at = math.random(2, #text)
      local slice = c.slice(text:sub(1, at - 1) .. string.char(math.random(0, 255)) .. text:sub(at + 1))
      c.json_find_all(slice, path, on_value, nil)
      c.json_meta(slice, meta)
      c.outline_drop(c.outline_of(slice), ffi.new("struct json_path *[1]", path), 1, buf)
      c.buf_reset(buf)
    end
    c.json_path_free(path)
  end)
end)

describe("json_meta", function()
  local function meta(text)
    local slice = c.slice(text)
    local out = ffi.new "struct json_meta"
    return c.json_meta(slice, out), out, slice
  end

  it("finds what the cache must know", function()
    local result, out, slice = meta([[{"spec":{"metadata":{"name":"no"}},"metadata":{"name":"a","labels":{"x":"y"},"generation":3,
      "deletionTimestamp":null,"ownerReferences":[{"uid":"no"}],"\u0075id":"u-1"},"kind":"Pod"}]])
    assert.equal(0, result)
    assert.same({ '"Pod"', '"a"', '{"x":"y"}', "3", '"u-1"' },
      { c.text(out.kind), c.text(out.name), c.text(out.labels), c.text(out.generation), c.text(out.uid) })
    assert.same({}, { c.text(out.api_version), c.text(out.namespace), c.text(out.deletion_timestamp) })
    assert.truthy(slice)
  end)

  it("refuses what has no metadata object", function()
    assert.equal(-1, (meta "{}"))
    assert.equal(-1, (meta "[]"))
    assert.equal(-1, (meta '{"metadata":null}'))
    assert.equal(-1, (meta '{"metadata":"x"}'))
  end)
end)
