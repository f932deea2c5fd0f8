--- Numbers of several rounds, and tables of them.
local figures = {}

local Figures = {}
Figures.__index = Figures

function figures.new()
	return setmetatable({ values = {} }, Figures)
end

--- Adds a round's figure of a program; nil adds nothing.
function Figures:add(program, name, value)
	local key = program .. " " .. name
	self.values[key] = self.values[key] or {}
	table.insert(self.values[key], value)
end

--- The median; nil where there is none.
function Figures:median(program, name)
	local sorted = { unpack(self.values[program .. " " .. name] or {}) }
	table.sort(sorted)
	local middle = #sorted / 2
	return #sorted % 2 == 1 and sorted[middle + 0.5] or sorted[middle] and (sorted[middle] + sorted[middle + 1]) / 2 or nil
end

--- "median (min..max)" in a format, each number divided by the unit first; "–" where there is none.
function Figures:text(program, name, format, unit)
	local median = self:median(program, name)
	if not median then
		return "–"
	end
	local values = self.values[program .. " " .. name]
	local function show(value)
		return format:format(value / (unit or 1))
	end
	local text = show(median)
	local least, most = show(math.min(unpack(values))), show(math.max(unpack(values)))
	return least == most and text or ("%s (%s..%s)"):format(text, least, most)
end

--- Rows of cells as Markdown, the first one as the head.
function figures.markdown(rows)
	local lines = {}
	for i, row in ipairs(rows) do
		lines[#lines + 1] = "| " .. table.concat(row, " | ") .. " |"
		if i == 1 then
			lines[#lines + 1] = "|" .. (" --- |"):rep(#row)
		end
	end
	return table.concat(lines, "\n") .. "\n"
end

return figures
