local c = require "support.c"
local ffi = c.ffi

-- The documents as JSON, or nil and the message.
local function read(text)
  local documents, err = {}, c.err()
  local on_document = ffi.cast("int (*)(void *, const char *, size_t, struct err *)", function(_, json, length)
    documents[#documents + 1] = ffi.string(json, length)
    return 0
  end)
  local result = c.yaml_to_json(c.copy(text), #text, ffi.cast("void *", on_document), nil, err)
  on_document:free()
  if result ~= 0 then
    return nil, c.message(err)
  end
  return documents
end

local function write(json)
  local out, err = c.buf(), c.err()
  assert(c.yaml_from_json(c.slice(json), out, err) == 0, c.message(err))
  return c.text(out)
end

describe("yaml_to_json", function()
  local function one(text)
    local documents, message = read(text)
    assert(documents, message)
    assert.equal(1, #documents, text)
    return documents[1]
  end

  it("reads a manifest", function()
    assert.equal(
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"y z"}},"data":{"k":"one\\n two\\n","l":"folded line",'
        .. '"m":"\\"q\\"\\t","o":"it\'s"},"list":[1,{"a":null,"b":[]},[]],"flow":{"a":[1,"b"],"c":{}}}',
      one [[
apiVersion: v1
kind: ConfigMap
metadata:
  name: a   # a comment
  labels: {x: y z}
data:
  k: |
    one
     two
  l: >-
    folded
    line
  m: "\"q\"\t"
  o: 'it''s'
list:
- 1
- a:
  b: []
- []
flow: {a: [1, b], c: {}}
]]
    )
  end)

  it("gives each document and leaves out empty ones", function()
    assert.same({ '{"a":1}', '{"b":2}', "null", '"x"' }, read "---\na: 1\n---\n---\n# nothing\n---\nb: 2\n--- null\n--- x\n...\n")
    assert.same({}, read "")
    assert.same({}, read "# only a comment\n")
    assert.same({}, read "---\n")
  end)

  it("passes JSON through as it is", function()
    assert.same({ '{"a":"\\/\\ud83d\\ude00","n":1e3}', "[2]" }, read '\n{"a":"\\/\\ud83d\\ude00","n":1e3}\n[2]\n')
    assert.same({ '{"a":"b"}' }, read "{a: b}")
    assert.same({ "{}", "0", "0", "[]", "2", "[]", "{}" }, read "{}00[]2[]\r{}")
  end)

  -- What Go's sigs.k8s.io/yaml makes of them.
  it("resolves plain scalars as kubectl does", function()
    local cases = {
      ["y"] = "true", ["Yes"] = "true", ["on"] = "true", ["N"] = "false", ["off"] = "false", ["TRUE"] = "true", ["tRue"] = '"tRue"',
      ["~"] = "null", ["null"] = "null", ["Null"] = "null", [""] = "null", ["nil"] = '"nil"',
      ["0"] = "0", ["-12"] = "-12", ["+12"] = "12", ["0777"] = "511", ["-0o17"] = "-15", ["0x1F"] = "31", ["0b101"] = "5", ["1_000"] = "1000",
      ["08"] = "8", ["0x"] = '"0x"', ["_1"] = '"_1"', ["9007199254740993"] = "9007199254740993",
      ["-9223372036854775808"] = "-9223372036854775808", ["18446744073709551615"] = "18446744073709551615",
      ["18446744073709551616"] = "18446744073709552000", ["1.10"] = "1.1", ["1e3"] = "1000", [".5"] = "0.5", ["1."] = "1", ["1e21"] = "1e+21",
      ["1e-7"] = "1e-7", ["0.1"] = "0.1", ["1e400"] = '"1e400"', ["1.2.3"] = '"1.2.3"', ["1e"] = '"1e"', ["+"] = '"+"',
      ["2001-12-14"] = '"2001-12-14"', ["2001-12-14T21:59:43Z"] = '"2001-12-14T21:59:43Z"', ["12:30:45"] = '"12:30:45"',
      ["<<"] = '"<<"', ["="] = '"="', ["v1"] = '"v1"', ["500m"] = '"500m"', ["1Gi"] = '"1Gi"',
      ["'1'"] = '"1"', ['"true"'] = '"true"', ["!!str 1"] = '"1"', ["!!int '7'"] = "7", ["!!float 3"] = "3", ["!custom 1"] = '"1"',
    }
    for text, json in pairs(cases) do
      assert.equal('{"v":' .. json .. "}", one("v: " .. text .. "\n"), text)
    end
  end)

  it("makes strings of keys that are none", function()
    assert.equal('{"true":1,"12":2,"1.5":3,"null ":4,"false":5,"1e+06":6}', one 'y: 1\n0xC: 2\n1.50: 3\n"null ": 4\nno: 5\n1e6: 6\n')
  end)

  it("follows anchors, aliases and merges", function()
    assert.equal('{"a":{"u":1,"v":[1]},"b":{"u":1,"v":[1]},"c":{"v":2,"u":3,"w":4}}',
      one "a: &a {u: 1, v: [1]}\nb: *a\nc: {<<: *a, v: 2, u: 3, w: 4}\n")
    assert.equal('{"c":{"w":3,"u":1,"v":1}}', one "c:\n  <<: [{u: 1, v: 1}, {u: 2, w: 3}]\n")
    assert.equal('{"k":"k","k2":{"b":{"b":1,"c":2}}}', one "k: &k k\nk2: {b: {<<: {b: 1}, c: 2}}\n")
    assert.equal('{"a":"s","s":1}', one "a: &x s\n*x : 1\n")
  end)

  it("says where it can't go on", function()
    local cases = {
      { "a: 1\na: 2\n", "line 2, column 1: this key is in the mapping already" },
      { "1: a\n'1': b\n", "already" }, { "a: [1\n", "line 2, column 1" }, { "a: .inf\n", "line 1, column 4: JSON has no such number: .inf" },
      { "a: .nan\n", "no such number" }, { "? [a]\n: b\n", "a key has to be a scalar" }, { "~: a\n", "a key has to be" },
      { "a: *b\n", "line 1, column 4: this alias" }, { "a: &a [*a]\n", "this alias" }, { "a: &a 1\n---\nb: *a\n", "line 3" },
      { "a:\n\tb: 1\n", "line 2, column 1" }, { "a: b: c\n", "mapping values are not allowed" }, { "a: \1", "control characters" },
      { "a: \255\n", "UTF-8" }, { "a: !!int x\n", "this is no !!int" },
      { 'a: !!bool "y\\0"\n', "this is no !!bool" }, { 'a: !!null "~\\0\\0"\n', "this is no !!null" },
      { "a: !!binary aGk=\n", "binary" }, { "<<: 1\n", "takes a mapping" },
      { "<<: [1]\n", "takes a mapping" }, { ("["):rep(600), "nested too deep" }, { ("- "):rep(600) .. "a", "nested too deep" },
    }
    for _, case in ipairs(cases) do
      local documents, message = read(case[1])
      assert.is_nil(documents, case[1])
      assert.truthy(message:find(case[2], 1, true), case[1] .. " -> " .. message)
    end
  end)

  it("shows no values, which may be secrets", function()
    for _, text in ipairs { "password: *hunter2\n", "password: !!int hunter2\n", "password: !!null hunter2\n", "a: {password: hunter2: x}\n" } do
      local documents, message = read(text)
      assert.is_nil(documents, text)
      assert.is_nil(message:find("hunter2", 1, true), message)
    end
  end)

  it("stops aliases and merges that multiply", function()
    local lists, merges, deep = { "a0: &a0 [x, x, x, x, x, x, x, x, x, x]" }, { "a0: &a0 {x: 1}" }, { "a0: &a0 [x]" }
    for i = 1, 12 do
      local alias = ("*a%d,"):format(i - 1)
      lists[#lists + 1] = ("a%d: &a%d [%s]"):format(i, i, alias:rep(10))
    end
    for i = 1, 30 do
      deep[#deep + 1] = ("a%d: &a%d %s*a%d%s"):format(i, i, ("["):rep(400), i - 1, ("]"):rep(400))
    end
    for i = 1, 60 do
      merges[#merges + 1] = ("a%d: &a%d {<<: [*a%d, *a%d]}"):format(i, i, i - 1, i - 1)
    end
    assert.truthy(select(2, read(table.concat(lists, "\n"))):find "64 MiB")
    assert.truthy(select(2, read(table.concat(deep, "\n"))):find "nesting")
    assert.truthy(read(table.concat(merges, "\n")))
  end)
end)

describe("yaml_from_json", function()
  it("writes as kubectl prints", function()
    assert.equal([==[
apiVersion: apps/v1
metadata:
  annotations: {}
  creationTimestamp: null
  labels:
    "on": "true"
    "yes": "no"
  name: web
spec:
  args: []
  containers:
  - args:
    - --port=8080
    - -v
    image: registry:5000/a:1.2
    script: |
      #!/bin/sh
      echo "a: b"
  - name: b
  nested:
  - - 1
    - - 2.5
  time: "2030-01-02T03:04:05Z"
]==], write([==[{"apiVersion":"apps/v1","metadata":{"annotations":{},"creationTimestamp":null,"labels":{"on":"true","yes":"no"},"name":"web"},
      "spec":{"args":[],"containers":[{"args":["--port=8080","-v"],"image":"registry:5000/a:1.2","script":"#!/bin/sh\necho \"a: b\"\n"},
      {"name":"b"}],"nested":[[1,[2.5]]],"time":"2030-01-02T03:04:05Z"}}]==]))
  end)

  it("refuses numbers that YAML would read as text", function()
    local err = c.err()
    assert.equal(-1, c.yaml_from_json(c.slice '{"a":1e400}', c.buf(), err))
    assert.truthy(c.message(err):find("too large", 1, true))
  end)

  it("stays below its limit however deep the object is", function()
    local err = c.err()
    local text = ('{"a":'):rep(500) .. "[" .. ("1,"):rep(300000) .. "1]" .. ("}"):rep(500)
    assert.equal(-1, c.yaml_from_json(c.slice(text), c.buf(), err))
    assert.truthy(c.message(err):find("larger than", 1, true))
  end)

  it("writes what reads back as the same", function()
    local seed = c.seed()
    local odd = {
      "a", "b: c", "- d", " ", "\n", "\n\n", "\t", "#", " #", ":", "'", '"', "\\", "|", ">", "\r", "\226\128\168", "\194\133", "\239\187\191", "é", "😀",
      "yes", "~", "1", ".", "0x1", "---", "...", "[", "{", "&a", "*a", "!", "%", "@", "`", "?", ",", "=", "<<", "\0", "\127", ("long "):rep(120),
    }
    local function text()
      local parts = {}
      for i = 1, math.random(0, 5) do
        parts[i] = odd[math.random(#odd)]
      end
      local buf, whole = c.buf(), table.concat(parts)
      c.buf_append_json_string(buf, whole, #whole)
      return c.text(buf)
    end
    for _ = 1, 2000 do
      local key = text():gsub('^"', '"x')
      local json = ('{"k":%s,"list":[%s,[%s]],%s:{"in":%s}}'):format(text(), text(), text(), key, text())
      assert.same({ json }, read(write(json)), seed)
    end
  end)
end)
