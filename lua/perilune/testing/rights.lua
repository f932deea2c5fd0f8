--- rights: those that the requests of scripts needed in all testing clusters of this process, for `perilune test --rbac`.
--
-- State of the process: busted loads a file's modules anew, but not this.
local rbac = require "perilune.rbac"

local rights = {}

local all = rbac.rights()

--- Adds those of a cluster, in rules as cluster:rules() gives them.
function rights.note(rules)
	for _, rule in ipairs(rules) do
		for _, resource in ipairs(rule.resources) do
			all:add_each({ namespace = "", group = rule.apiGroups[1], resource = resource }, rule.verbs)
		end
	end
end

--- Writes them as YAML for kubectl. true, or nil and why not.
function rights.write(path)
	local file, problem = io.open(path, "w")
	if not file then
		return nil, problem
	end
	local written, why = file:write(rbac.yaml(all, { namespace = "default", name = "perilune" }))
	local closed, late = file:close()
	return written and closed, why or late
end

return rights
