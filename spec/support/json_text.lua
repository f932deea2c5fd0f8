-- json_text: random JSON as text, for specs. Strings have escapes, UTF-8 and structural characters in them; space stands
-- where JSON allows it.

local json_text = {}

local random = math.random

local function pick(list)
  return list[random(#list)]
end

local pieces = {
  "a", "metadata", "é", "😀", "\\n", '\\"', "\\\\", "\\u00e9", "\\ud83d\\ude00", "{", "}", "[", "]", ",", ":", " ",
  "items", "0123456789abcdef", "\\/", "\\u0000",
}
local spaces = { "", "", "", "", " ", "\n", "\t", "\r\n  " }
local scalars = { "null", "true", "false", "0", "-0", "1", "-12", "1.5", "0.1e-7", "9223372036854775807", "1E+30" }

function json_text.space()
  return pick(spaces)
end

function json_text.string()
  local parts = {}
  for i = 1, random(0, 5) do
    parts[i] = pick(pieces)
  end
  return '"' .. table.concat(parts) .. '"'
end

-- Members' texts in brackets, with space around each.
function json_text.join(open, members, close)
  for i, member in ipairs(members) do
    members[i] = json_text.space() .. member .. json_text.space()
  end
  local inside = #members > 0 and table.concat(members, ",") or json_text.space()
  return open .. inside .. close
end

function json_text.value(depth)
  depth = depth or 0
  local kind = random(depth > 5 and 2 or 4)
  if kind == 1 then
    return pick(scalars)
  elseif kind == 2 then
    return json_text.string()
  end
  local members = {}
  for i = 1, random(0, 4) do
    local value = json_text.value(depth + 1)
    members[i] = kind == 3 and value
      or json_text.string() .. json_text.space() .. ":" .. json_text.space() .. value
  end
  return json_text.join(kind == 3 and "[" or "{", members, kind == 3 and "]" or "}")
end

return json_text
