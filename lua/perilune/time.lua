-- time: k8s.time: the times in objects, as RFC 3339 writes them, on k8s.now's scale.

local k8s, core = ...

local floor = math.floor
local tonumber, type = tonumber, type

-- From the first of March, so that the day that a leap year has more is the last.
local DAYS_BEFORE = { 306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275 }
local DAYS_IN = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function is_leap(year)
	return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

-- Days since 1970-01-01; nil where there is no such day.
local function days_of(year, month, day)
	local most = DAYS_IN[month]
	if not most or day < 1 or day > most or (month == 2 and day == 29 and not is_leap(year)) then
		return nil
	end
	if month < 3 then
		year = year - 1
	end
	return year * 365 + floor(year / 4) - floor(year / 100) + floor(year / 400) + DAYS_BEFORE[month] + day - 719469
end

-- Seconds east of Greenwich; nil where it is no zone.
local function offset_of(zone)
	if zone == "Z" then
		return 0
	end
	local sign, hour, minute = zone:match "^([+-])(%d%d):(%d%d)$"
	if not sign or tonumber(hour) > 23 or tonumber(minute) > 59 then
		return nil
	end
	return (sign == "-" and -60 or 60) * (hour * 60 + minute)
end

function k8s.time(text)
	if text == nil or text == k8s.null then
		return nil
	elseif type(text) ~= "string" then
		core.misuse("k8s.time takes a text, not a " .. type(text))
	end
	local year, month, day, hour, minute, second, zone = text:match "^(%d%d%d%d)-(%d%d)-(%d%d)T(%d%d):(%d%d):(%d%d%.?%d*)([Z+-].*)$"
	if not year then
		return nil
	end
	hour, minute, second = tonumber(hour), tonumber(minute), tonumber(second)
	local days, offset = days_of(tonumber(year), tonumber(month), tonumber(day)), offset_of(zone)
	if not days or not offset or hour > 23 or minute > 59 or second >= 61 then
		return nil
	end
	return days * 86400 + hour * 3600 + minute * 60 + second - offset
end
