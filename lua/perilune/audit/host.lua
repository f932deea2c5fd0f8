--- What core/script/audit.c calls: functions of texts that return text.
--
-- core has nearest(word, names), and globals: "name" or "library.name" a line for each, nil where scripts have all libraries.
local audit = require "perilune.audit"

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

	return handlers
end
