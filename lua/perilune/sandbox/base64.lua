--- Base64: for URLs and without padding, as continue tokens are; and the usual one, as Secrets are.
local base64 = {}

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

local values = {}
for i = 1, #ALPHABET do
	values[ALPHABET:byte(i)] = i - 1
end

local function digit(number, shift)
	local index = math.floor(number / 64 ^ shift) % 64 + 1
	return ALPHABET:sub(index, index)
end

function base64.encode(bytes)
	local out = {}
	for at = 1, #bytes, 3 do
		local a, b, c = bytes:byte(at, at + 2)
		local number = a * 65536 + (b or 0) * 256 + (c or 0)
		out[#out + 1] = digit(number, 3) .. digit(number, 2) .. (b and digit(number, 1) or "") .. (c and digit(number, 0) or "")
	end
	return table.concat(out)
end

--- With padding and the usual alphabet.
function base64.encode_padded(bytes)
	local text = base64.encode(bytes):gsub("-", "+"):gsub("_", "/")
	return text .. ("="):rep(-#text % 4)
end

--- The bytes, or nil for what is no base64.
function base64.decode(text)
	local out = {}
	text = text:gsub("=+$", "")
	if text:find "[^%w_-]" then
		return nil
	end
	for at = 1, #text, 4 do
		local group, number = text:sub(at, at + 3), 0
		for i = 1, 4 do
			number = number * 64 + (i <= #group and values[group:byte(i)] or 0)
		end
		local bytes = string.char(math.floor(number / 65536) % 256, math.floor(number / 256) % 256, number % 256)
		out[#out + 1] = bytes:sub(1, #group - 1)
	end
	return table.concat(out)
end

return base64
