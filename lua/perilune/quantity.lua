-- quantity: k8s.quantity("1.5Gi"): amounts as Kubernetes writes them, with exact comparison and arithmetic.
--
-- A quantity is a whole number of nanos, { negative =, limbs =, format = }, which nothing changes. As in Kubernetes, what is finer than a
-- nano is rounded away from zero, and the format that it was written in lives on: "binary", "decimal" or "exponent".
-- Limbs are digits of base 10^7, the lowest first, without zeros at the top: the product of two is exact in a double.

local k8s, core = ...

local getmetatable, setmetatable, tonumber, tostring, type = getmetatable, setmetatable, tonumber, tostring, type
local floor, max = math.floor, math.max
local concat = table.concat
local find, format, gsub, match, rep, sub = string.find, string.format, string.gsub, string.match, string.rep, string.sub
local misuse = core.misuse

local BASE, BASE_DIGITS = 1e7, 7
local NANO_DIGITS = 9
local LONGEST_TEXT = 100
local MOST_DIGITS = 45 -- in nanos: 10^36

local DECIMAL = { n = -9, u = -6, m = -3, [""] = 0, k = 3, M = 6, G = 9, T = 12, P = 15, E = 18 }
local BINARY = { Ki = 10, Mi = 20, Gi = 30, Ti = 40, Pi = 50, Ei = 60 }
local DECIMAL_SUFFIXES, BINARY_SUFFIXES = {}, { [0] = "" }
for suffix, exponent in pairs(DECIMAL) do
	DECIMAL_SUFFIXES[exponent] = suffix
end
for suffix, exponent in pairs(BINARY) do
	BINARY_SUFFIXES[exponent] = suffix
end

-- --- whole numbers from 0 on ---

local function trim(limbs)
	while limbs[#limbs] == 0 do
		limbs[#limbs] = nil
	end
	return limbs
end

local function from_digits(digits)
	local limbs = {}
	for last = #digits, 1, -BASE_DIGITS do
		limbs[#limbs + 1] = tonumber(sub(digits, max(1, last - BASE_DIGITS + 1), last))
	end
	return trim(limbs)
end

-- "" for 0.
local function to_digits(limbs)
	local parts = {}
	for i = #limbs, 1, -1 do
		parts[#parts + 1] = format(i == #limbs and "%d" or "%07d", limbs[i])
	end
	return concat(parts)
end

local function compare_limbs(a, b)
	if #a ~= #b then
		return #a < #b and -1 or 1
	end
	for i = #a, 1, -1 do
		if a[i] ~= b[i] then
			return a[i] < b[i] and -1 or 1
		end
	end
	return 0
end

-- a + b, or with sign -1 a - b, where a is not less than b.
local function add_limbs(a, b, sign)
	local sum, carry = {}, 0
	for i = 1, max(#a, #b) do
		local limb = (a[i] or 0) + sign * (b[i] or 0) + carry
		carry = floor(limb / BASE)
		sum[i] = limb - carry * BASE
	end
	sum[#sum + 1] = carry
	return trim(sum)
end

local function multiply_limbs(a, b)
	local product = {}
	for i = 1, #a + #b do
		product[i] = 0
	end
	for i = 1, #a do
		local carry = 0
		for j = 1, #b do
			local limb = product[i + j - 1] + a[i] * b[j] + carry
			carry = floor(limb / BASE)
			product[i + j - 1] = limb - carry * BASE
		end
		product[i + #b] = carry
	end
	return trim(product)
end

-- The whole part of limbs / by, and the rest. by: up to 10^7.
local function divide_limbs(limbs, by)
	local result, rest = {}, 0
	for i = #limbs, 1, -1 do
		local limb = rest * BASE + limbs[i]
		result[i] = floor(limb / by)
		rest = limb - result[i] * by
	end
	return trim(result), rest
end

local THOUSAND_TWENTY_FOUR = { 1024 }

-- limbs * 10^shift; what that cuts off is rounded up.
local function shift_digits(limbs, shift)
	local digits = to_digits(limbs)
	if digits == "" then
		return limbs
	elseif shift >= 0 then
		return from_digits(digits .. rep("0", shift))
	end
	local cut = sub(digits, max(1, #digits + shift + 1))
	local whole = from_digits(sub(digits, 1, max(0, #digits + shift)))
	return find(cut, "[1-9]") and add_limbs(whole, { 1 }, 1) or whole
end

-- --- text to quantity ---

local Quantity = {}
local methods = {}

local function make(negative, limbs, form)
	return setmetatable({ negative = negative and #limbs > 0, limbs = limbs, format = form }, Quantity)
end

local function refused(value, why)
	local shown = gsub(sub(tostring(value), 1, LONGEST_TEXT), "%c", "?")
	return nil, core.err("Invalid", ("\"%s\" is no quantity: %s"):format(shown, why))
end

-- The power of ten and of two, and the format; nothing for a suffix that there is not.
local function read_suffix(suffix)
	if DECIMAL[suffix] then
		return DECIMAL[suffix], 0, "decimal"
	elseif BINARY[suffix] then
		return 0, BINARY[suffix], "binary"
	end
	local exponent = match(suffix, "^[eE]([+-]?%d%d?%d?)$")
	if exponent then
		return tonumber(exponent), 0, "exponent"
	end
end

local function read(text)
	local sign, whole, fraction, suffix = match(text, "^([+-]?)(%d*)%.?(%d*)(.-)$")
	if #text > LONGEST_TEXT or whole .. fraction == "" then
		return refused(text, "it has no number")
	end
	local ten, two, form = read_suffix(suffix)
	if not ten then
		return refused(text, "there is no such suffix")
	end
	local limbs = from_digits(whole .. fraction)
	for _ = 1, two, 10 do
		limbs = multiply_limbs(limbs, THOUSAND_TWENTY_FOUR)
	end
	local shift = ten - #fraction + NANO_DIGITS
	if #to_digits(limbs) + max(shift, 0) > MOST_DIGITS and #limbs > 0 then
		return refused(text, "it is too large")
	end
	return make(sign == "-", shift_digits(limbs, shift), form)
end

-- The shortest text that reads as the same number: 0.1 means one tenth.
local function text_of_number(number)
	for digits = 15, 17 do
		local text = format("%." .. digits .. "g", number)
		if tonumber(text) == number then
			return text
		end
	end
	return "NaN"
end

local function text_of(value)
	if type(value) == "number" then
		return (gsub(text_of_number(value), "e%+?", "e"))
	elseif type(value) == "cdata" then
		return (gsub(tostring(value), "U?LL$", ""))
	end
	return type(value) == "string" and value or nil
end

function k8s.quantity(value)
	if getmetatable(value) == "quantity" then
		return value
	end
	local text = text_of(value)
	if not text then
		return refused(value, "a quantity is a text or a number")
	end
	local quantity, err = read(text)
	if quantity and type(value) ~= "string" then
		quantity.format = "decimal"
	end
	return quantity, err
end

-- --- quantity to text ---

-- The largest suffix that leaves a whole number.
local function decimal_text(quantity)
	local digits, exponent = to_digits(quantity.limbs), -NANO_DIGITS
	local largest = quantity.format == "exponent" and MOST_DIGITS or DECIMAL.E
	while sub(digits, -3) == "000" and exponent < largest do
		digits, exponent = sub(digits, 1, -4), exponent + 3
	end
	if quantity.format == "exponent" then
		return digits .. (exponent == 0 and "" or "e" .. exponent)
	end
	return digits .. DECIMAL_SUFFIXES[exponent]
end

-- Nil where a binary suffix would hide a fraction, or make a small number harder to read.
local function binary_text(quantity)
	local whole, low = divide_limbs(quantity.limbs, 1e5)
	local high
	whole, high = divide_limbs(whole, 1e4)
	if low ~= 0 or high ~= 0 or compare_limbs(whole, THOUSAND_TWENTY_FOUR) < 0 then
		return nil
	end
	local exponent = 0
	while exponent < BINARY.Ei do
		local quotient, rest = divide_limbs(whole, 1024)
		if rest ~= 0 then
			break
		end
		whole, exponent = quotient, exponent + 10
	end
	return to_digits(whole) .. BINARY_SUFFIXES[exponent]
end

function Quantity:__tostring()
	if #self.limbs == 0 then
		return "0"
	end
	local text = self.format == "binary" and binary_text(self) or decimal_text(self)
	return self.negative and "-" .. text or text
end

function methods:number()
	if getmetatable(self) ~= "quantity" then
		misuse "this is a method of a quantity: call it with a colon, such as quantity:number()"
	end
	local digits = rep("0", NANO_DIGITS) .. to_digits(self.limbs)
	local number = tonumber(sub(digits, 1, -NANO_DIGITS - 1) .. "." .. sub(digits, -NANO_DIGITS))
	return self.negative and -number or number
end

-- --- comparison and arithmetic ---

local function check_both(a, b, what)
	if getmetatable(a) ~= "quantity" or getmetatable(b) ~= "quantity" then
		local other = getmetatable(a) == "quantity" and b or a
		misuse(("a quantity is %s a quantity, not a %s: k8s.quantity makes one"):format(what, type(other)))
	end
end

local function compare(a, b)
	check_both(a, b, "compared with")
	if a.negative ~= b.negative then
		return a.negative and -1 or 1
	end
	return compare_limbs(a.limbs, b.limbs) * (a.negative and -1 or 1)
end

function Quantity.__eq(a, b)
	return compare(a, b) == 0
end

function Quantity.__lt(a, b)
	return compare(a, b) < 0
end

function Quantity.__le(a, b)
	return compare(a, b) <= 0
end

local function bounded(negative, limbs, form)
	if #to_digits(limbs) > MOST_DIGITS then
		misuse "the result is too large for a quantity"
	end
	return make(negative, limbs, form)
end

-- a + b, or a - b where `negative` is not b's own sign.
local function sum(a, b, negative)
	local form = #a.limbs == 0 and b.format or a.format
	if a.negative == negative then
		return bounded(negative, add_limbs(a.limbs, b.limbs, 1), form)
	elseif compare_limbs(a.limbs, b.limbs) < 0 then
		return make(negative, add_limbs(b.limbs, a.limbs, -1), form)
	end
	return make(a.negative, add_limbs(a.limbs, b.limbs, -1), form)
end

function Quantity.__add(a, b)
	check_both(a, b, "added to")
	return sum(a, b, b.negative)
end

function Quantity.__sub(a, b)
	check_both(a, b, "subtracted from")
	return sum(a, b, not b.negative)
end

function Quantity.__mul(a, b)
	local quantity, factor = a, b
	if getmetatable(a) ~= "quantity" then
		quantity, factor = b, a
	end
	local by = type(factor) ~= "string" and getmetatable(factor) ~= "quantity" and k8s.quantity(factor)
	if not by then
		misuse("a quantity is multiplied by a number, not by " .. tostring(factor))
	end
	local limbs = shift_digits(multiply_limbs(quantity.limbs, by.limbs), -NANO_DIGITS)
	return bounded(quantity.negative ~= by.negative, limbs, quantity.format)
end

function Quantity.__index(_, name)
	return methods[name] or misuse(("a quantity has no '%s'"):format(tostring(name)))
end

Quantity.__metatable = "quantity"
core.write_as_text(Quantity)
