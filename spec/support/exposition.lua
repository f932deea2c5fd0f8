--- A strict reader of Prometheus's text format 0.0.4: whatever a lenient one would let pass is an error with its line.
--
--   local page = exposition.read(text)
--   page.types.perilune_x               "counter"
--   page:value("perilune_x", { a = "b" })   the number of the one sample that has these labels; nil when there is none
--   page:all("perilune_x")              its samples: { labels = {...}, value = n }, in their order
local exposition = {}

local Page = {}
Page.__index = Page

local TYPES = { counter = true, gauge = true, histogram = true, summary = true, untyped = true }
local METRIC, LABEL = "[%a_:][%w_:]*", "[%a_][%w_]*"
local UNESCAPED = { n = "\n", ["\\"] = "\\", ['"'] = '"' }

local function fail(line, ...)
	error(("line %d: "):format(line) .. string.format(...), 0)
end

local function unescape(line, text, allowed)
	return (text:gsub("\\(.?)", function(c)
		if c == "" or not allowed:find(c, 1, true) then
			fail(line, "the escape \\%s", c)
		end
		return UNESCAPED[c]
	end))
end

-- Labels, and what follows the closing brace.
local function read_labels(line, text)
	local labels, at = {}, 1
	while true do
		local name, quote = text:match("^(" .. LABEL .. ')="()', at)
		if not name then
			fail(line, "no label at %q", text:sub(at))
		elseif labels[name] then
			fail(line, "the label %s twice", name)
		elseif name:find "^__" then
			fail(line, "the label %s is reserved", name)
		end
		local stop = quote
		while text:sub(stop, stop) ~= '"' do
			if stop > #text then
				fail(line, "a value without end")
			end
			stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
		end
		labels[name] = unescape(line, text:sub(quote, stop - 1), '\\"n')
		local after = text:sub(stop + 1, stop + 1)
		at = stop + 2
		if after == "}" then
			return labels, text:sub(at)
		elseif after ~= "," then
			fail(line, "%q behind a label's value", after)
		end
	end
end

local function read_number(line, text)
	local special = { NaN = 0 / 0, ["+Inf"] = math.huge, ["-Inf"] = -math.huge }
	local plain = text:match "^%-?%d+%.?%d*$" or text:match "^%-?%d+%.?%d*e[+-]?%d+$"
	return special[text] or plain and tonumber(text) or fail(line, "%q is no number", text)
end

local function key_of(labels, without)
	local parts = {}
	for name, value in pairs(labels) do
		if name ~= without then
			parts[#parts + 1] = ("%s=%q"):format(name, value)
		end
	end
	table.sort(parts)
	return table.concat(parts, ",")
end

local function check_utf8(line, text)
	local rest = text:gsub("[\1-\127]", ""):gsub("[\194-\223][\128-\191]", ""):gsub("\224[\160-\191][\128-\191]", "")
		:gsub("[\225-\239][\128-\191][\128-\191]", ""):gsub("\240[\144-\191][\128-\191][\128-\191]", "")
		:gsub("[\241-\244][\128-\191][\128-\191][\128-\191]", "")
	if rest ~= "" then
		fail(line, "bytes that are no UTF-8")
	end
end

local Reader = {}
Reader.__index = Reader

-- All lines of a family stand together: once another has begun, it is closed.
function Reader:enter(line, family)
	if self.family == family then
		return
	elseif self.closed[family] then
		fail(line, "%s again, after another family", family)
	end
	self.closed[family] = true
	self.family = family
end

function Reader:comment(line, text)
	local word, name, rest = text:match("^# (%u+) (" .. METRIC .. ") (.*)$")
	if word ~= "HELP" and word ~= "TYPE" then
		fail(line, "neither HELP nor TYPE: %q", text)
	end
	self:enter(line, name)
	local known = word == "HELP" and self.page.helps or self.page.types
	if known[name] then
		fail(line, "%s of %s twice", word, name)
	elseif self.page.samples[name] then
		fail(line, "%s of %s behind its samples", word, name)
	elseif word == "TYPE" and not TYPES[rest] then
		fail(line, "the type %q", rest)
	end
	known[name] = word == "HELP" and unescape(line, rest, "\\n") or rest
end

function Reader:sample(line, text)
	local name, rest = text:match("^(" .. METRIC .. ")(.*)$")
	if not name then
		fail(line, "no name: %q", text)
	end
	local labels = {}
	if rest:sub(1, 1) == "{" then
		labels, rest = read_labels(line, rest:sub(2))
	end
	local family = name
	if not self.page.types[family] then
		family = name:gsub("_bucket$", ""):gsub("_sum$", ""):gsub("_count$", "")
		if self.page.types[family] ~= "histogram" then
			fail(line, "%s has no TYPE", name)
		end
	elseif self.page.types[family] == "histogram" then
		fail(line, "%s is a histogram, and this no part of one", name)
	end
	self:enter(line, family)
	local value = read_number(line, rest:match "^ (%S+)$" or fail(line, "no single number: %q", rest))
	if self.page.types[family] == "counter" and (value < 0 or value ~= value) then
		fail(line, "the counter is %s", value)
	end
	self:add(line, family, name, { name = name, labels = labels, value = value })
end

function Reader:add(line, family, name, sample)
	local id = name .. "{" .. key_of(sample.labels) .. "}"
	if self.seen[id] then
		fail(line, "%s twice", id)
	end
	self.seen[id] = true
	for _, by in ipairs(name == family and { name } or { name, family }) do
		self.page.samples[by] = self.page.samples[by] or {}
		table.insert(self.page.samples[by], sample)
	end
end

-- Buckets rise, in their bounds and in their counts, up to +Inf, which is the count.
local function check_histogram(family, samples)
	local parts = {}
	for _, sample in ipairs(samples) do
		local key = key_of(sample.labels, "le")
		local part = parts[key] or { count = 0, bound = -math.huge, where = family .. "{" .. key .. "}" }
		parts[key] = part
		local suffix = sample.name:sub(#family + 1)
		if suffix == "_bucket" then
			local bound = read_number(0, sample.labels.le or error(part.where .. ": a bucket without le", 0))
			assert(bound > part.bound, part.where .. ": bounds that don't rise")
			assert(sample.value >= part.count, part.where .. ": buckets that don't add up")
			part.bound, part.count = bound, sample.value
		else
			part[suffix] = sample.value
		end
	end
	for _, part in pairs(parts) do
		assert(part.bound == math.huge, part.where .. ": no bucket +Inf")
		assert(part._sum, part.where .. ": no sum")
		assert(part._count == part.count, part.where .. ": the count is not that of +Inf")
	end
end

function exposition.read(text)
	local page = setmetatable({ helps = {}, types = {}, samples = {} }, Page)
	local reader = setmetatable({ page = page, closed = {}, seen = {} }, Reader)
	assert(text == "" or text:sub(-1) == "\n", "the last line has no end")
	local line = 0
	for one in text:gmatch "([^\n]*)\n" do
		line = line + 1
		check_utf8(line, one)
		if one:sub(1, 1) == "#" then
			reader:comment(line, one)
		elseif one ~= "" then
			reader:sample(line, one)
		end
	end
	for name, kind in pairs(page.types) do
		if kind == "histogram" then
			check_histogram(name, page.samples[name] or {})
		end
	end
	return page
end

function Page:all(name)
	return self.samples[name] or {}
end

function Page:value(name, labels)
	local key = key_of(labels or {})
	for _, sample in ipairs(self:all(name)) do
		if key_of(sample.labels) == key then
			return sample.value
		end
	end
end

return exposition
