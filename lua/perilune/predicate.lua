-- predicate: k8s.predicate: which events of a source count, as tables { fields =, test = function(object, event) } that can be called.
--
-- Each has a `judge` besides: true (it counts), false, or nil where the question is moot, as that for the generation of a kind that has
-- none. An event that is moot for all passes, also where `none` asks. What always passes is decided once, by the outermost `test`.

local k8s, core = ...

local ipairs, rawget, select, setmetatable, type = ipairs, rawget, select, setmetatable, type
local misuse = core.misuse

local Predicate = {
	__call = function(predicate, object, event)
		return predicate.test(object, event)
	end,
}

local function always_passes(object, event)
	if event.type ~= "update" then
		return true
	end
	local before, after = event.old.metadata, object.metadata
	return before.uid ~= after.uid or (after.deletionTimestamp ~= nil and before.deletionTimestamp == nil)
end

local function make(fields, judge)
	return setmetatable({
		fields = fields,
		judge = judge,
		test = function(object, event)
			return always_passes(object, event) or judge(object, event) ~= false
		end,
	}, Predicate)
end

local METADATA = { "metadata" }
local NONE = {}

local predicate = {}
k8s.predicate = predicate

predicate.generation_changed = make(METADATA, function(object, event)
	local generation = object.metadata.generation
	if generation == nil then
		return nil
	end
	return not k8s.equal(event.old.metadata.generation, generation)
end)

local function changed(name)
	return make(METADATA, function(object, event)
		return not k8s.equal(event.old.metadata[name] or NONE, object.metadata[name] or NONE)
	end)
end

predicate.label_changed = changed "labels"
predicate.annotation_changed = changed "annotations"

-- --- combinations ---

local function judge_of(part, what)
	local test = type(part) == "table" and rawget(part, "test") or part
	if type(test) ~= "function" then
		misuse(("%s takes predicates and functions, not a %s"):format(what, type(part)))
	end
	return type(part) == "table" and rawget(part, "judge") or function(object, event)
		return not not test(object, event)
	end
end

-- All that one of the parts wants to see; nil, the whole object, where one does not say.
local function union(parts)
	local fields, seen = {}, {}
	for _, part in ipairs(parts) do
		local wanted = type(part) == "table" and rawget(part, "fields")
		if not wanted then
			return nil
		end
		for _, field in ipairs(type(wanted) == "table" and wanted or { wanted }) do
			fields[#fields + 1] = not seen[field] and field or nil
			seen[field] = true
		end
	end
	return fields
end

-- decide(yes, no, moot): from whether there is such an answer among those of the parts.
local function combination(what, decide)
	return function(...)
		local parts, judges = { ... }, {}
		if select("#", ...) == 0 then
			misuse(what .. " takes one predicate at least")
		end
		for i = 1, select("#", ...) do
			judges[i] = judge_of(parts[i], what)
		end
		return make(union(parts), function(object, event)
			local yes, no, moot = false, false, false
			for i = 1, #judges do
				local answer = judges[i](object, event)
				yes, no, moot = yes or answer == true, no or answer == false, moot or answer == nil
			end
			return decide(yes, no, moot)
		end)
	end
end

predicate.all = combination("k8s.predicate.all", function(yes, no)
	if no then
		return false
	end
	return yes or nil
end)

predicate.any = combination("k8s.predicate.any", function(yes, _, moot)
	if moot and not yes then
		return nil
	end
	return yes
end)

predicate.none = combination("k8s.predicate.none", function(yes, no)
	if not yes and not no then
		return nil
	end
	return not yes
end)
