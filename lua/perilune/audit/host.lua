--- What core/script/audit.c calls: functions of texts that return text.
--
-- core has nearest(word, names), and globals: "name" or "library.name" a line for each, nil where scripts have all libraries.
local audit = require "perilune.audit"
local k8s = require "perilune"
local rbac = require "perilune.rbac"

local function read_globals(lines)
	local globals = {}
	for line in lines:gmatch "[^\n]+" do
		local library, name = line:match "^(.-)%.(.*)$"
		if library then
			globals[library] = type(globals[library]) == "table" and globals[library] or {}
			globals[library][name] = true
		else
			globals[line] = globals[line] or true
		end
	end
	return globals
end

return function(core)
	local globals = core.globals and read_globals(core.globals)
	local handlers = {}

	--- The faults of one script, a line each: "path:line: what".
	function handlers.faults(path, folder)
		local lines = {}
		for _, fault in ipairs(audit(path, folder, globals, core.nearest).faults) do
			lines[#lines + 1] = ("%s:%d: %s%s\n"):format(fault.path, fault.line or 1, fault.text, fault.hint or "")
		end
		return table.concat(lines)
	end

	local function find(text)
		return rbac.find(k8s.json.decode(text), function(script)
			return audit(script.path, script.folder, nil, core.nearest).called
		end)
	end

	--- The rights that scripts need, as rbac.lua has both, but for optional kinds: an array.
	function handlers.rights(text)
		local needed = k8s.array {}
		for _, right in ipairs(find(text).rights) do
			needed[#needed + 1] = not right.optional and right or nil
		end
		return k8s.json.encode(needed)
	end

	--- Of some of these rights, an array: what says that they are missing.
	function handlers.missing(text)
		return rbac.missing(k8s.json.decode(text))
	end

	--- The YAML of all these rights; account: { namespace =, name = }.
	function handlers.yaml(text, account)
		local found = find(text)
		return rbac.remarks(found) .. rbac.yaml(found.rights, k8s.json.decode(account))
	end

	return handlers
end
