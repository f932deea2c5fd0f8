local c = require "support.c"
local ffi = c.ffi

describe("heap", function()
  local heap

  before_each(function()
    heap = ffi.new "struct heap"
    c.heap_init(heap)
  end)

  after_each(function()
    c.heap_fini(heap)
  end)

  it("is empty at first and takes removals of what it does not hold", function()
    assert.is_true(c.heap_first(heap) == nil)
    c.heap_remove(heap, ffi.new "struct heap_node")
  end)

  it("gives the earliest first, whatever was pushed, moved and removed", function()
    local seed = c.seed()
    for _ = 1, 200 do
      local nodes, live = ffi.new "struct heap_node[64]", {}
      for _ = 1, 200 do
        local i = math.random(0, 63)
        if math.random() < 0.3 then
          c.heap_remove(heap, nodes + i)
          live[i] = nil
        else
          local at = math.random(1, 50)
          c.heap_push(heap, nodes + i, at)
          live[i] = at
        end
      end
      local expected, got = {}, {}
      for _, at in pairs(live) do
        expected[#expected + 1] = at
      end
      table.sort(expected)
      while c.heap_first(heap) ~= nil do
        local node = c.heap_first(heap)
        c.heap_remove(heap, node)
        assert.equal(0, tonumber(node.place), seed)
        got[#got + 1] = node.at
      end
      assert.same(expected, got, seed)
    end
  end)
end)
