local c = require "support.c"
local json_text = require "support.json_text"
local ffi = c.ffi

-- Feeds text in chunks of the given sizes (the last repeats). Returns the items, the rest or nil, and the message.
local function split(text, sizes, options)
  options = options or {}
  local items, inside = {}, 0
  local chunk, chunk_length
  local on_item = ffi.cast("split_fn", function(_, item, err)
    local data, length = item.bytes.data, item.bytes.length
    items[#items + 1] = ffi.string(data, length)
    if data >= chunk and data + length <= chunk + chunk_length then
      inside = inside + 1
    end
    if options.stop_at == #items then
      return c.err_set(err, "", "stopped")
    end
    return 0
  end)
  local err, at, turn = c.err(), 1, 1
  local splitter = c.split_new(options.limit or 0, on_item, nil)
  local failed = 0
  while at <= #text and failed == 0 do
    chunk_length = math.min(sizes[math.min(turn, #sizes)], #text - at + 1)
    chunk = c.copy(text:sub(at, at + chunk_length - 1))
    failed = c.split_feed(splitter, chunk, chunk_length, err)
    at, turn = at + chunk_length, turn + 1
  end
  local rest
  if failed == 0 then
    failed = c.split_finish(splitter, err)
    rest = failed == 0 and c.text(c.split_rest(splitter)) or nil
  end
  c.split_free(splitter)
  on_item:free()
  return items, rest, c.message(err), inside
end

describe("split", function()
  local text = '\n{"kind":"PodList", "metadata" : {"items":[{"no":1}],"continue":"a,]}\\"\\\\"},"items": [{"a":"\\u00e9\\ud83d\\ude00é😀","items":[1]},'
    .. ' {"b":-1.5e+3} ,{"c":[[],{}]}\n],"n":12 ,"apiVersion":"v1"} \n'
  local items = { '{"a":"\\u00e9\\ud83d\\ude00é😀","items":[1]}', '{"b":-1.5e+3}', '{"c":[[],{}]}' }
  local rest = '{"kind":"PodList","metadata":{"items":[{"no":1}],"continue":"a,]}\\"\\\\"},"n":12,"apiVersion":"v1"}'

  it("cuts a list the same wherever its chunks end", function()
    for first = 1, #text do
      local got, got_rest, message = split(text, { first, #text })
      assert.same(items, got, first .. message)
      assert.equal(rest, got_rest)
    end
    for size = 1, 20 do
      local got, got_rest, message = split(text, { size })
      assert.same(items, got, size .. message)
      assert.equal(rest, got_rest)
    end
  end)

  it("passes items that lie in one chunk without a copy", function()
    local _, _, _, inside = split(text, { #text })
    assert.equal(3, inside)
  end)

  it("takes items before the metadata, none, null and an absent list", function()
    local lists = {
      { '{"items":[1,"x",null],"metadata":{}}', { "1", '"x"', "null" }, '{"metadata":{}}' },
      { '{"items":[],"a":1}', {}, '{"a":1}' },
      { '{"a":1,"items":null}', {}, '{"a":1}' },
      { '{"kind":"Status"}', {}, '{"kind":"Status"}' },
      { "{}", {}, "{}" },
      { '{"\\u0069tems":[1]}', { "1" }, "{}" },
    }
    for _, list in ipairs(lists) do
      for size = 1, 9 do
        local got, got_rest = split(list[1], { size })
        assert.same(list[2], got)
        assert.equal(list[3], got_rest)
      end
    end
  end)

  it("says where a list is wrong", function()
    local cases = {
      { "[]", "byte 0: expected '{'" }, { '{"items":{}}', "byte 9: expected \"items\" to be an array or null" },
      { '{"items":[1 2]}', "byte 12: expected ',' or ']'" }, { '{"items":[],"items":[]}', "no second" },
      { '{"a":1,}', "byte 7: expected a key" }, { '{"items":[{"a":1,}]}', "byte 17: expected a key" },
      { '{"items":[{"a":"\255"}]}', "byte 16: expected valid UTF-8" }, { '{"a":01}', "byte 6: expected" },
      { "{} x", "byte 3: expected the end" }, { '{"items":[1,]}', "byte 12: expected a value" },
      { '{"items":nul}', "expected null" }, { "", "the list ended early, at byte 0" },
      { '{"items":[{"a":1}', "the list ended early, at byte 17" }, { '{"items":[]', "ended early" }, { '{"a":12', "ended early" },
    }
    for _, case in ipairs(cases) do
      for size = 1, 30 do
        local _, got_rest, message = split(case[1], { size })
        assert.is_nil(got_rest)
        assert.truthy(message:find(case[2], 1, true), case[1] .. " -> " .. message)
      end
    end
  end)

  it("stops when it is told to", function()
    local got, _, message = split(text, { 7 }, { stop_at = 2 })
    assert.equal(2, #got)
    assert.equal("stopped", message)
  end)

  it("holds no item above the limit, and no flood of other members", function()
    local long = ("x"):rep(200)
    for _, size in ipairs { 1, 50, 1000 } do
      assert.truthy(select(3, split('{"items":["' .. long .. '"]}', { size }, { limit = 100 })):find "larger than 100 bytes")
      assert.truthy(select(3, split('{"a":"' .. long .. '"}', { size }, { limit = 100 })):find "larger than 100 bytes")
      local members = {}
      for i = 1, 100 do
        members[i] = '"a' .. i .. '":1'
      end
      assert.truthy(select(3, split("{" .. table.concat(members, ",") .. "}", { size }, { limit = 100 })):find "larger")
    end
    assert.equal(1, #split('{"items":["' .. long .. '"]}', { 3 }, { limit = 202 }))
  end)

  it("reads a large item once, however small the chunks are and wherever they end", function()
    -- Read from its start again at each chunk, such an item would be some ten thousand million bytes.
    local large = {
      '{"a":"' .. ("\\n{[é"):rep(60000) .. '"}', '{"a":"' .. ("é"):rep(150000) .. '"}', '{"' .. ("a"):rep(300000) .. '":{}}',
      '{"a":' .. ("1"):rep(300000) .. "}", "[" .. (" "):rep(300000) .. "1" .. (" "):rep(300000) .. "]",
    }
    for _, item in ipairs(large) do
      local got, _, message = split('{"items":[' .. item .. "]}", { 1, 2 })
      assert.equal(item, got[1], message)
    end
  end)

  it("cuts random lists #slow", function()
    local seed = c.seed()
    for _ = 1, 300 do
      local expected, members = {}, {}
      for i = 1, math.random(0, 6) do
        expected[i] = json_text.value()
      end
      members[1] = '"items":' .. json_text.join("[", { unpack(expected) }, "]")
      for i = 2, math.random(1, 4) do
        members[i] = ('"m%d"'):format(i) .. json_text.space() .. ":" .. json_text.space() .. json_text.value()
      end
      members[1], members[#members] = members[#members], members[1]
      local list = json_text.space() .. json_text.join("{", members, "}") .. json_text.space()
      local sizes = {}
      for i = 1, 50 do
        sizes[i] = math.random(1, 40)
      end
      local got, got_rest, message = split(list, sizes)
      assert.same(expected, got, seed .. message)
      assert.equal(0, c.json_validate(got_rest, #got_rest, nil), seed)
    end
  end)
end)
