local c = require "support.c"
local json_text = require "support.json_text"
local ffi = c.ffi

local function path(text)
  local err = c.err()
  local made = c.json_path_new(text, err)
  assert(made ~= nil, c.message(err))
  return ffi.gc(made, c.json_path_free)
end

describe("json_path", function()
  local object = c.slice [[{"metadata":{"name":"web","annotations":{"example.com/x":"1","it's":"2"}},
    "spec":{"containers":[{"name":"a","ports":[{"n":1},{"n":2}]},{"name":"b"},{"ports":[]}]},"*":3}]]

  local function find(text)
    return c.text(c.json_find(object, path(text)))
  end

  local function find_all(text)
    local found = {}
    local on_value = ffi.cast("void (*)(void *, const char *, size_t)", function(_, data, length)
      found[#found + 1] = ffi.string(data, length)
    end)
    c.json_find_all(object, path(text), ffi.cast("void (*)(void *, struct json_slice)", on_value), nil)
    on_value:free()
    return found
  end

  it("finds keys, quoted keys, elements and the first of all elements", function()
    assert.equal('"web"', find "metadata.name")
    assert.equal('"1"', find "metadata.annotations['example.com/x']")
    assert.equal('"1"', find 'metadata["annotations"]["example.com/x"]')
    assert.equal('"2"', find "metadata.annotations['it\\'s']")
    assert.equal('"b"', find "spec.containers[1].name")
    assert.equal("3", find "['*']")
    assert.equal('{"n":1}', find "spec.containers[*].ports[*]")
    assert.equal("[]", find "spec.containers[2].ports")
  end)

  it("finds nothing where nothing is", function()
    for _, text in ipairs { "x", "metadata.name.x", "spec[0]", "spec.containers[3]", "metadata[*]", "spec.containers.name" } do
      assert.is_nil(find(text), text)
    end
  end)

  it("finds every value below [*]", function()
    assert.same({ '"a"', '"b"' }, find_all "spec.containers[*].name")
    assert.same({ "1", "2" }, find_all "spec.containers[*].ports[*].n")
    assert.same({ '"web"' }, find_all "metadata.name")
  end)

  it("says where a path is malformed", function()
    local cases = {
      { "", "a key at character 1" }, { ".a", "a key at character 1" }, { "a.", "a key at character 3" }, { "a..b", "a key at character 3" },
      { "a[", "an index, * or a key in quotes" }, { "a[1", "']'" }, { "a['b", "the closing quote" }, { "a]", "'.' or '['" },
      { "a[0]b", "'.' or '['" }, { "a.*", "a key at character 3" }, { "a[-1]", "an index" }, { "a[12345678901]", "a smaller index" },
      { "a['b'x", "']'" },
    }
    for _, case in ipairs(cases) do
      local err = c.err()
      assert.is_true(c.json_path_new(case[1], err) == nil, case[1])
      assert.truthy(c.message(err):find(case[2], 1, true), case[1] .. " -> " .. c.message(err))
    end
  end)
end)

describe("outline_drop and outline_keep", function()
  local function sieve(fn, text, texts, limit)
    local paths, array, out = {}, ffi.new("struct json_path *[?]", #texts + 1), c.buf(limit)
    for i, one in ipairs(texts) do
      paths[i] = path(one)
      array[i - 1] = paths[i]
    end
    local slice = c.slice(text)
    local result = fn(c.outline_of(slice), array, #texts, out)
    return c.text(out) or "", result
  end

  local function drop(text, ...)
    return (sieve(c.outline_drop, text, { ... }))
  end

  local function keep(text, ...)
    return (sieve(c.outline_keep, text, { ... }))
  end

  it("drop first, middle, last and only members", function()
    local text = '{"a":1,"b":{"c":2,"d":"}"},"e":[3]}'
    assert.equal('{"b":{"c":2,"d":"}"},"e":[3]}', drop(text, "a"))
    assert.equal('{"a":1,"e":[3]}', drop(text, "b"))
    assert.equal('{"a":1,"b":{"c":2,"d":"}"}}', drop(text, "e"))
    assert.equal('{"a":1,"b":{"d":"}"},"e":[3]}', drop(text, "b.c"))
    assert.equal('{"a":1,"b":{},"e":[3]}', drop(text, "b.c", "b.d"))
    assert.equal("{}", drop(text, "a", "b", "e"))
    assert.equal('{"e":[3]}', drop(text, "b", "b.c", "a"))
    assert.equal(text, drop(text, "x", "a.b", "e[0]", "b.c.d"))
    assert.equal("[1]", drop("[1]", "a"))
  end)

  it("drop every one of equal keys, so that none comes to light, and escaped ones too", function()
    assert.equal('{"b":1}', drop('{"a":1,"b":1,"a":2,"\\u0061":3}', "a"))
    assert.equal('{"m":{},"m":{"y":2}}', drop('{"m":{"x":1},"m":{"x":1,"y":2}}', "m.x"))
  end)

  it("keep the bytes of what stays, in its order", function()
    assert.equal('{"b" : [1, 2],"d":"\\u00e9"}', drop('{ "a":0, "b" : [1, 2],"c":{}, "d":"\\u00e9" }', "a", "c"))
  end)

  it("keep what was asked for and what tells the object", function()
    local text = '{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},"name":"n","namespace":"s","uid":"u",'
      .. '"resourceVersion":"7","managedFields":[]},"spec":{"nodeName":"x","containers":[]},"status":{"phase":"Running"}}'
    local identity = '"name":"n","namespace":"s","uid":"u","resourceVersion":"7"}'
    assert.equal('{"apiVersion":"v1","kind":"Pod","metadata":{' .. identity .. "}", keep(text))
    assert.equal('{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},' .. identity .. ',"status":{"phase":"Running"}}',
      keep(text, "status.phase", "metadata.labels", "none.such"))
    assert.equal('{"apiVersion":"v1","kind":"Pod","metadata":{' .. identity .. ',"spec":{"nodeName":"x","containers":[]}}',
      keep(text, "spec.nodeName", "spec"))
  end)

  it("append nothing when there is no room", function()
    local text, result = sieve(c.outline_drop, '{"a":1,"b":{"c":"0123456789"}}', { "a" }, 12)
    assert.equal(-1, result)
    assert.equal("", text)
  end)

  it("take any number of paths", function()
    local members, texts = {}, {}
    for i = 1, 100 do
      members[i] = ('"k%d":{"x":%d,"y":0}'):format(i, i)
      texts[i] = ("k%d.%s"):format(i, i % 2 == 0 and "x" or "y")
    end
    local dropped = drop("{" .. table.concat(members, ",") .. "}", unpack(texts))
    assert.equal('{"k1":{"x":1},"k2":{"y":0},"k3"', dropped:sub(1, 31))
    assert.equal(0, c.json_validate(dropped, #dropped, nil))
  end)

  it("give valid JSON without the path, and find everything else where it was", function()
    local seed = c.seed()
    local all = { "a", "metadata", "metadata.a", "a.metadata", "items.a.a", "metadata.items" }
    for _ = 1, 2000 do
      local members = {}
      for i = 1, math.random(0, 5) do
        members[i] = ('"%s":%s'):format(all[math.random(2)], json_text.value(3):gsub("0123456789abcdef", "a"))
      end
      local text = json_text.join("{", members, "}")
      local gone = all[math.random(#all)]
      local dropped = drop(text, gone)
      assert.equal(0, c.json_validate(dropped, #dropped, nil), seed)
      assert.is_nil(c.text(c.json_find(c.slice(dropped), path(gone))), seed)
      for _, other in ipairs(all) do
        if other:sub(1, #gone) ~= gone and gone:sub(1, #other) ~= other then
          local before, after = c.slice(text), c.slice(dropped)
          assert.equal(c.text(c.json_find(before, path(other))), c.text(c.json_find(after, path(other))), seed)
        end
      end
    end
  end)
end)
