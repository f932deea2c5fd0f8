local c = require "support.c"
local ffi = c.ffi

describe("clock", function()
  local function format(wall)
    return ffi.string(c.clock_format(wall, ffi.new "char[32]", 32))
  end

  it("writes times as RFC 3339 in UTC with milliseconds", function()
    assert.equal("1970-01-01T00:00:00.000Z", format(0))
    assert.equal("2030-01-02T03:04:05.678Z", format(1893553445.678))
    assert.equal("2030-01-02T03:04:06.000Z", format(1893553445.9996))
    assert.equal("9999-12-31T23:59:59.000Z", format(1e300))
    assert.equal("1970-01-01T00:00:00.000Z", format(-5))
    assert.equal("1970-01-01T00:00:00.000Z", format(0 / 0))
  end)

  it("writes them with microseconds too", function()
    local function micro(wall)
      return ffi.string(c.clock_format_micro(wall, ffi.new "char[32]", 32))
    end
    assert.equal("2030-01-02T03:04:05.678901Z", micro(1893553445.678901))
    assert.equal("2030-01-02T03:04:06.000000Z", micro(1893553445.9999996))
    assert.equal("1970-01-01T00:00:00.000001Z", micro(1e-6))
    assert.equal("9999-12-31T23:59:59.000000Z", micro(1e300))
  end)

  it("reads RFC 3339", function()
    local times = {
      ["1970-01-01T00:00:00Z"] = 0, ["2030-01-02T03:04:05Z"] = 1893553445, ["2030-01-02T03:04:05.678Z"] = 1893553445.678,
      ["2030-01-02T05:04:05+02:00"] = 1893553445, ["2030-01-01T21:34:05-05:30"] = 1893553445, ["2024-02-29T00:00:00Z"] = 1709164800,
      ["0001-01-01T00:00:00Z"] = -62135596800,
    }
    for text, wall in pairs(times) do
      assert.near(wall, c.clock_parse(text), 1e-3, text)
    end
    for _, text in ipairs { "", "2030", "2030-01-02", "2030-01-02 03:04:05Z", "2030-01-02T03:04:05", "2030-01-02T03:04:05z", "2030-13-02T03:04:05Z",
      "2023-02-29T00:00:00Z", "2030-01-02T24:00:00Z", "2030-01-02T03:04:60Z", "2030-01-02T03:04:05.Z", "2030-01-02T03:04:05Z ", "2030-1-02T03:04:05Z",
      "2030-01-02T03:04:05+2:00", "2030-01-02T03:04:05+02:00Z", "-030-01-02T03:04:05Z", "1893553445" } do
      local wall = c.clock_parse(text)
      assert.is_true(wall ~= wall, text)
    end
  end)

  it("reads durations as Go does", function()
    local durations = {
      ["0"] = 0, ["30s"] = 30, ["2m"] = 120, ["1h30m"] = 5400, ["500ms"] = 0.5, ["1.5s"] = 1.5, [".5h"] = 1800,
      ["1h2m3s4ms"] = 3723.004, ["0s"] = 0,
    }
    for text, seconds in pairs(durations) do
      assert.near(seconds, c.clock_duration(text), 1e-9, text)
    end
    for _, text in ipairs { "", "1", "s", "1x", "-1s", "1 s", "1s ", "1.2.3s", "30S", "inf", "0x1s", "5us" } do
      assert.is_true(c.clock_duration(text) < 0, text)
    end
    assert.is_true(c.clock_duration(("9"):rep(400) .. "s") < 0)
  end)

  it("is moved by specs", function()
    local now = ffi.cast("clock_fn", function()
      return 7
    end)
    c.clock_replace(now, nil, nil)
    assert.equal(7, c.clock_now())
    assert.is_true(c.clock_wall() > 1e9)
    c.clock_replace(nil, nil, nil)
    now:free()
    assert.is_true(c.clock_now() <= c.clock_now())
  end)
end)
