-- The corners that JSON parsers disagree about, a verdict for each: what is taken and what it means, what is refused and where.
local k8s = require "perilune"

local json = k8s.json
local rep = string.rep

-- { what, text, what it is when encoded again (nil: the text itself) }
local taken = {
	{ "512 arrays in another", rep("[", 512) .. rep("]", 512) },
	{ "512 objects in another", rep('{"a":', 512) .. "1" .. rep("}", 512) },

	{ "a surrogate pair", '"\\ud83d\\ude00"', '"\240\159\152\128"' },
	{ "a surrogate pair in capitals", '"\\uD83D\\uDE00"', '"\240\159\152\128"' },
	{ "two surrogate pairs side by side", '"\\ud83d\\ude00\\ud83d\\ude01"', '"\240\159\152\128\240\159\152\129"' },
	{ "the last code point, escaped", '"\\udbff\\udfff"', '"\244\143\191\191"' },
	{ "the last code point, in UTF-8", '"\244\143\191\191"' },
	{ "what stands before and behind the surrogates", '"\\ud7ff\\ue000"', '"\237\159\191\238\128\128"' },
	{ "noncharacters", '"\239\191\190\\uffff"', '"\239\191\190\239\191\191"' },
	{ "U+2028, no line break in JSON", '"\226\128\168"' },
	{ "a byte order mark inside a string", '"\239\187\191"' },
	{ "DEL", '"\127"', '"\\u007f"' },
	{ "an escaped NUL", '"a\\u0000b"' },
	{ "an escaped slash", '"\\/"', '"/"' },
	{ "an escaped backslash before a u", '"\\\\ud800"' },
	{ "the empty string", '""' },
	{ "a string of a million characters", '"' .. rep("x", 1e6) .. '"' },

	{ "zero", "0" },
	{ "minus zero", "-0" },
	{ "minus zero with a fraction", "-0.0", "-0" },
	{ "zero with an exponent", "0e10", "0" },
	{ "an exponent with leading zeros", "1e+007", "10000000" },
	{ "a capital exponent", "1E2", "100" },
	{ "a fraction of zeros", "1.000", "1" },
	{ "an exponent below all doubles", "1e-400", "0" },
	{ "the same, negative", "-1e-400", "-0" },
	{ "an endless exponent on zero", "0e99999999999999999999", "0" },
	{ "the largest double", "1.7976931348623157e308", "1.7976931348623157e+308" },
	{ "the smallest double", "5e-324" },
	{ "an integer above 2^53", "9007199254740993" },
	{ "the largest int64", "9223372036854775807" },
	{ "the smallest int64", "-9223372036854775808" },
	{ "one more, as the nearest double", "9223372036854775808", "9223372036854776000" },
	{ "one less, as the nearest double", "-9223372036854775809", "-9223372036854776000" },
	{ "the largest uint64, as the nearest double", "18446744073709551615", "18446744073709552000" },
	{ "an integer of 300 digits, as the nearest double", rep("1", 300), "1.1111111111111112e+299" },
	{ "a fraction of 100,000 digits", "0." .. rep("1", 1e5), "0.1111111111111111" },

	{ "equal keys: the last one counts", '{"a":1,"a":2}', '{"a":2}' },
	{ "equal keys of which one is escaped", '{"a":1,"\\u0061":2}', '{"a":2}' },
	{ "an empty key", '{"":1}' },
	{ "a key with a NUL", '{"a\\u0000":1}' },
	{ "an empty array and an empty object", "[[],{}]" },
	{ "all four kinds of space", " \t\r\n[ \t\r\n1 \t\r\n, \t\r\n2 \t\r\n] \t\r\n", "[1,2]" },
	{ "a value that is no container", " true ", "true" },
	{ "null", "null" },
}

-- { what, text, the beginning of the message }
local refused = {
	{ "nothing", "", "byte 0: expected a value" },
	{ "nothing but space", " \n", "byte 2: expected a value" },

	{ "513 arrays in another", rep("[", 513) .. rep("]", 513), "JSON: nested deeper than 512" },
	{ "513 objects in another", rep('{"a":', 513) .. "1" .. rep("}", 513), "JSON: nested deeper than 512" },
	{ "100,000 brackets", rep("[", 1e5), "byte 10048: expected no deeper nesting" },
	{ "100,000 objects", rep('{"a":', 1e5), "byte 50240: expected no deeper nesting" },

	{ "a lone high surrogate", '"\\ud800"', "byte 7: expected the \\u escape of a low surrogate" },
	{ "a lone high surrogate before text", '"\\ud800x"', "byte 7: expected the \\u escape of a low surrogate" },
	{ "a high surrogate before another escape", '"\\ud800\\n"', "byte 8: expected the \\u escape of a low surrogate" },
	{ "two high surrogates", '"\\ud800\\ud800"', "byte 9: expected a low surrogate" },
	{ "a high surrogate before a common escape", '"\\ud800\\u0061"', "byte 9: expected a low surrogate" },
	{ "a lone low surrogate", '"\\udc00"', "byte 1: expected no lone low surrogate" },
	{ "a pair in the wrong order", '"\\ude00\\ud83d"', "byte 1: expected no lone low surrogate" },
	{ "a lone surrogate in a key", '{"\\ud800":1}', "byte 8: expected the \\u escape of a low surrogate" },
	{ "a surrogate in UTF-8", '"\237\160\128"', "byte 1: expected valid UTF-8" },
	{ "a surrogate pair in UTF-8", '"\237\160\189\237\184\128"', "byte 1: expected valid UTF-8" },

	{ "an overlong NUL", '"\192\128"', "byte 1: expected valid UTF-8" },
	{ "an overlong slash of two bytes", '"\192\175"', "byte 1: expected valid UTF-8" },
	{ "an overlong slash of three bytes", '"\224\128\175"', "byte 1: expected valid UTF-8" },
	{ "an overlong slash of four bytes", '"\240\128\128\175"', "byte 1: expected valid UTF-8" },
	{ "what is above the last code point", '"\244\144\128\128"', "byte 1: expected valid UTF-8" },
	{ "a sequence of five bytes", '"\248\136\128\128\128"', "byte 1: expected valid UTF-8" },
	{ "the byte FF", '"\255"', "byte 1: expected valid UTF-8" },
	{ "a continuation byte alone", '"a\128"', "byte 2: expected valid UTF-8" },
	{ "a sequence that the quote cuts off", '"a\226\130"', "byte 2: expected valid UTF-8" },
	{ "Latin-1", '"caf\233"', "byte 4: expected valid UTF-8" },

	{ "a byte order mark", "\239\187\191{}", "byte 0: expected a value" },
	{ "UTF-16", "\255\254[\0]\0", "byte 0: expected a value" },
	{ "a bare NUL in a string", '"a\0b"', "byte 2: expected no bare control character in a string" },
	{ "a NUL behind the value", "[]\0", "byte 2: expected the end" },
	{ "a NUL before the value", "\0[]", "byte 0: expected a value" },
	{ "a NUL between values", "[1,\0 2]", "byte 3: expected a value" },
	{ "a bare tab in a string", '"\t"', "byte 1: expected no bare control character in a string" },
	{ "a bare line feed in a string", '"a\n"', "byte 2: expected no bare control character in a string" },
	{ "the last control character in a string", '"\31"', "byte 1: expected no bare control character in a string" },
	{ "an unclosed string", '"abc', "byte 4: expected the rest of a string" },
	{ "a string that ends in a backslash", '"abc\\', "byte 5: expected an escape" },
	{ "a backslash before the closing quote", '"abc\\"', "byte 6: expected the rest of a string" },
	{ "an escape of C", '"\\x41"', "byte 2: expected an escape" },
	{ "an octal escape", '"\\101"', "byte 2: expected an escape" },
	{ "an escaped single quote", "\"\\'\"", "byte 2: expected an escape" },
	{ "an escape in capitals", '"\\U00000041"', "byte 2: expected an escape" },
	{ "an escape in braces", '"\\u{41}"', "byte 3: expected a hex digit" },
	{ "an escape of three digits", '"\\u004"', "byte 6: expected a hex digit" },
	{ "an escaped line feed", '"\\\n"', "byte 2: expected an escape" },
	{ "single quotes", "'a'", "byte 0: expected a value" },

	{ "a leading zero", "01", "byte 1: expected the end" },
	{ "a leading zero behind the sign", "[-01]", "byte 3: expected ',' or ']'" },
	{ "two zeros", "00", "byte 1: expected the end" },
	{ "a leading plus sign", "+1", "byte 0: expected a value" },
	{ "a sign alone", "-", "byte 1: expected a digit" },
	{ "two signs", "--1", "byte 1: expected a digit" },
	{ "a hex number", "0x10", "byte 1: expected the end" },
	{ "no digit before the point", ".5", "byte 0: expected a value" },
	{ "no digit before the point, but a sign", "-.5", "byte 1: expected a digit" },
	{ "no digit behind the point", "1.", "byte 2: expected a digit" },
	{ "an exponent behind the point", "1.e3", "byte 2: expected a digit" },
	{ "two points", "1.2.3", "byte 3: expected the end" },
	{ "an exponent without digits", "1e", "byte 2: expected a digit" },
	{ "an exponent of a sign", "1e+", "byte 3: expected a digit" },
	{ "an exponent with a fraction", "1e1.5", "byte 3: expected the end" },
	{ "underscores in a number", "1_000", "byte 1: expected the end" },
	{ "digits that are not ASCII", "\217\161", "byte 0: expected a value" },
	{ "NaN", "NaN", "byte 0: expected a value" },
	{ "nan", "nan", "byte 1: expected null" },
	{ "Infinity", "[Infinity]", "byte 1: expected a value" },
	{ "minus Infinity", "-Infinity", "byte 1: expected a digit" },
	{ "a number above all doubles", "1e400", "JSON: the number 1e400 is out of range" },
	{ "a number below all doubles", "[-1e400]", "JSON: the number -1e400 is out of range" },
	{ "an endless exponent", "1e99999999999999999999", "JSON: the number 1e99999999999999999999 is out of range" },
	{ "an integer of 100,000 digits", rep("1", 1e5), "JSON: the number " .. rep("1", 40) .. "... is out of range" },

	{ "a comma behind the last element", "[1,]", "byte 3: expected a value" },
	{ "a comma behind the last member", '{"a":1,}', "byte 7: expected a key in double quotes" },
	{ "a comma before the first element", "[,1]", "byte 1: expected a value" },
	{ "a comma before the first member", '{,"a":1}', "byte 1: expected a key in double quotes or '}'" },
	{ "two commas", "[1,,2]", "byte 3: expected a value" },
	{ "a comma alone", "[,]", "byte 1: expected a value" },
	{ "no comma", "[1 2]", "byte 3: expected ',' or ']'" },
	{ "a colon in an array", '["a":1]', "byte 4: expected ',' or ']'" },
	{ "no colon", '{"a" 1}', "byte 5: expected ':'" },
	{ "two colons", '{"a"::1}', "byte 5: expected a value" },
	{ "a key alone", '{"a"}', "byte 4: expected ':'" },
	{ "no value", '{"a":}', "byte 5: expected a value" },
	{ "a key without quotes", "{a:1}", "byte 1: expected a key in double quotes or '}'" },
	{ "a key in single quotes", "{'a':1}", "byte 1: expected a key in double quotes or '}'" },
	{ "a key that is a number", "{1:1}", "byte 1: expected a key in double quotes or '}'" },
	{ "an unclosed array", "[1", "byte 2: expected ',' or ']'" },
	{ "an unclosed object", '{"a":1', "byte 6: expected ',' or '}'" },
	{ "an array closed as an object", "[1}", "byte 2: expected ',' or ']'" },
	{ "an object closed as an array", '{"a":1]', "byte 6: expected ',' or '}'" },
	{ "a bracket too many", "[]]", "byte 2: expected the end" },
	{ "two values", "1 2", "byte 2: expected the end" },
	{ "text behind the value", '{"a":1} x', "byte 8: expected the end" },
	{ "a comment of two slashes", "// a\n1", "byte 0: expected a value" },
	{ "a comment between values", "[1,/* a */2]", "byte 3: expected a value" },
	{ "a comment behind the value", "1 # a", "byte 2: expected the end" },
	{ "True", "True", "byte 0: expected a value" },
	{ "a word cut short", "tru", "byte 3: expected true" },
	{ "a word too long", "nulls", "byte 4: expected the end" },
	{ "a form feed for space", "[\f1]", "byte 1: expected a value" },
	{ "a vertical tab for space", "[\v1]", "byte 1: expected a value" },
	{ "a no-break space", "[\194\1601]", "byte 1: expected a value" },
}

local function quoted(text)
	local shown = ("%q"):format(text:sub(1, 40)):gsub("\n", "n")
	return #text > 40 and shown .. "…" or shown
end

describe("JSON takes", function()
	for _, case in ipairs(taken) do
		it(case[1] .. ": " .. quoted(case[2]), function()
			local value, message = json.decode(case[2])
			assert(value ~= nil, message)
			assert.equal(case[3] or case[2], json.encode(value))
		end)
	end
end)

describe("JSON refuses", function()
	for _, case in ipairs(refused) do
		it(case[1] .. ": " .. quoted(case[2]), function()
			local value, message = json.decode(case[2])
			assert.is_nil(value)
			assert.equal(case[3], message:sub(1, #case[3]))
		end)
	end
end)
