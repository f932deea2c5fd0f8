-- call: what the API calls share: from a script's arguments to the table that core.request takes.
--
-- All that is wrong raises at the script's line. `what` is the function as the script calls it: "k8s.get". The parts of
-- the API client get (k8s, core, calls), and this one fills calls.

local _, core, calls = ...

local ipairs, tostring, type = ipairs, tostring, type
local misuse = core.misuse -- raises at the script's own line

calls.MERGE = "application/merge-patch+json"

-- The API server takes names of 253 characters; with much longer ones a request line is not even answered.
local MOST_NAME = 1024

local FIELD_VALIDATIONS = { Ignore = true, Warn = true, Strict = true }

function calls.check_type(options, name, wanted, what)
	local value = options[name]
	if value ~= nil and type(value) ~= wanted then
		misuse(("%s: %s must be a %s, not %s"):format(what, name, wanted, tostring(value)))
	end
end

local check_type = calls.check_type

local function field_of(reference, name, what)
	local value = reference[name]
	if value == nil and type(reference.metadata) == "table" then
		value = reference.metadata[name]
	end
	if value ~= nil and (type(value) ~= "string" or value == "") then
		misuse(what .. ": " .. name .. " must be a text, not " .. (value == "" and "an empty one" or tostring(value)))
	end
	if value and #value > MOST_NAME then
		misuse(("%s: %s has %d characters, %d at most"):format(what, name, #value, MOST_NAME))
	end
	return value
end

local function check_kind(reference, what)
	if type(reference) ~= "table" then
		misuse(what .. " takes a table { apiVersion =, kind =, namespace =, name = }, not a " .. type(reference))
	end
	if type(reference.apiVersion) ~= "string" then
		misuse(what .. ": apiVersion is missing")
	end
	if type(reference.kind) ~= "string" then
		misuse(what .. ": kind is missing")
	end
end

--- A call about the object or the kind that a reference names.
function calls.about(reference, what)
	check_kind(reference, what)
	return {
		what = what,
		apiVersion = reference.apiVersion,
		kind = reference.kind,
		namespace = field_of(reference, "namespace", what) or core.default_namespace(),
		name = field_of(reference, "name", what),
		query = {},
	}
end

--- The same where there must be a name.
function calls.named(reference, what)
	local call = calls.about(reference, what)
	if not call.name then
		misuse(what .. ": name is missing")
	end
	return call
end

--- The names of options of a write: those that all have, and `...`.
function calls.options(...)
	local known = { "dry_run", "field_validation", "timeout" }
	for _, name in ipairs { ... } do
		known[#known + 1] = name
	end
	return known
end

local USUAL = calls.options()

--- Makes call a write with these options, whose names are `known`. Gives the options.
function calls.write(call, options, known)
	options = options or {}
	core.check_options(options, call.what, known or USUAL)
	check_type(options, "dry_run", "boolean", call.what)
	check_type(options, "field_validation", "string", call.what)
	if options.field_validation and not FIELD_VALIDATIONS[options.field_validation] then
		misuse(call.what .. ": field_validation must be Ignore, Warn or Strict")
	end
	call.query.dryRun = options.dry_run and "All" or nil
	call.query.fieldValidation = options.field_validation
	call.timeout = options.timeout
	return options
end
