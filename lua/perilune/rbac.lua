--- rbac: what rights scripts need, out of what they register, name and declare; and those rights as YAML.
--
-- A right is { namespace =, group =, resource =, name =, verb = }: namespace "" is all of them, and cluster-scoped kinds;
-- resource may carry a subresource ("nodes/status"); name is nil where it is for all objects; optional: only kinds that may be
-- absent, or are, need it.
--
-- What goes in, as core/script/rbac.c writes it:
--   scripts   array of { path =, folder =, leader =, needs = { rule, ... }, informers =, finalizers = }, the last
--             two arrays of { apiVersion =, kind = or resource =, namespaces = {}, optional = }
--   lease     { namespace =, name =, wanted = }: leader election's; wanted: also where no script needs it
--   resolved  array of { apiVersion =, kind = or resource =, plural =, namespaced = }: as the server answered; without plural
--             where it has none
local k8s = require "perilune"
local kinds = require "perilune.sandbox.kinds"

local rbac = {}

local VERBS = { "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection" }
local RANK = {}
for rank, verb in ipairs(VERBS) do
	RANK[verb] = rank
end

-- --- sets of rights ---

local Rights = {}
Rights.__index = Rights

local function id_of(right)
	return table.concat({ right.namespace, right.group, right.resource, right.name or "", right.verb }, "\0")
end

--- An empty set; its array is in no order.
function rbac.rights()
	return setmetatable({ by_id = {} }, Rights)
end

function Rights:add(right)
	local id = id_of(right)
	if not self.by_id[id] then
		self[#self + 1] = right
		self.by_id[id] = right
	elseif not right.optional then
		self.by_id[id].optional = nil
	end
end

function Rights:add_each(right, verbs)
	for _, verb in ipairs(verbs) do
		self:add { namespace = right.namespace, group = right.group, resource = right.resource, name = right.name, verb = verb, optional = right.optional }
	end
end

-- Whether another right of the set, on other namespaces or names, gives what this one does. What is needed in any case is not
-- given by what is not.
function Rights:covers(right, namespace, name)
	local other = self.by_id[id_of { namespace = namespace, group = right.group, resource = right.resource, name = name, verb = right.verb }]
	return other and other ~= right and (right.optional or not other.optional)
end

-- Without those that another one contains: of all namespaces, or of all names.
function Rights:without_covered()
	local kept = rbac.rights()
	for _, right in ipairs(self) do
		if not (self:covers(right, "", right.name) or self:covers(right, "", nil) or self:covers(right, right.namespace, nil)) then
			kept:add(right)
		end
	end
	return kept
end

-- --- kinds ---

local function group_of(api_version)
	return api_version:match "^(.*)/" or ""
end

-- As most plurals are made.
local function guess(kind)
	local plural = kind:lower()
	if plural:find "[sxz]$" or plural:find "[cs]h$" then
		return plural .. "es"
	elseif plural:find "[^aeiou]y$" then
		return plural:sub(1, -2) .. "ies"
	end
	return plural .. "s"
end

local function resolved(input, asked)
	for _, row in ipairs(input.resolved) do
		if row.apiVersion == asked.apiVersion and row.kind == asked.kind and row.resource == asked.resource then
			return row
		end
	end
end

-- plural, whether it has namespaces, and whether the plural is a guess.
local function resource_of(input, asked)
	local known = resolved(input, asked)
	if known and known.plural then
		return known.plural, known.namespaced
	end
	for _, row in ipairs(kinds) do
		local version = row.group == "" and row.version or row.group .. "/" .. row.version
		if version == asked.apiVersion and (row.kind == asked.kind or row.plural == asked.resource) then
			return row.plural, row.namespaced
		end
	end
	return asked.resource or guess(asked.kind), true, not asked.resource
end

-- Whether a resource of a rule is known to have no namespaces.
local function is_cluster_scoped(input, group, resource)
	local plural = resource:match "^[^/]*"
	for _, row in ipairs(input.resolved) do
		if row.plural == plural and group_of(row.apiVersion) == group then
			return not row.namespaced
		end
	end
	for _, row in ipairs(kinds) do
		if row.plural == plural and row.group == group then
			return not row.namespaced
		end
	end
	return false
end

-- --- one script ---

local ALL = { "" }

-- Adds the rights on a kind in the namespaces that its informer names.
local function add_kind(found, input, asked, verbs)
	local plural, namespaced, guessed = resource_of(input, asked)
	local namespaces = namespaced and asked.namespaces[1] and asked.namespaces or ALL
	local known = resolved(input, asked)
	local optional = asked.optional or (known and not known.plural)
	for _, namespace in ipairs(namespaces) do
		found.rights:add_each({ namespace = namespace, group = group_of(asked.apiVersion), resource = plural, optional = optional }, verbs)
	end
	if guessed then
		found.guesses[plural .. "." .. group_of(asked.apiVersion)] = asked.kind
	end
end

-- Where a script writes, as far as its informers tell: the namespaces that they name, if all name some. Second, whether it
-- looks at a kind without namespaces.
local function places_of(input, script)
	local places, seen, everywhere, cluster = {}, {}, false, false
	for _, asked in ipairs(script.informers) do
		local _, namespaced = resource_of(input, asked)
		cluster = cluster or not namespaced
		everywhere = everywhere or (namespaced and not asked.namespaces[1])
		for _, namespace in ipairs(namespaced and asked.namespaces or {}) do
			if not seen[namespace] then
				seen[namespace] = true
				places[#places + 1] = namespace
			end
		end
	end
	return (everywhere or not places[1]) and ALL or places, cluster
end

local function add_needs(found, input, script, places)
	for _, rule in ipairs(script.needs) do
		for _, group in ipairs(rule.apiGroups) do
			for _, resource in ipairs(rule.resources) do
				for _, namespace in ipairs(is_cluster_scoped(input, group, resource) and ALL or places) do
					found.rights:add_each({ namespace = namespace, group = group, resource = resource }, rule.verbs)
				end
				found.declared[resource:match "^[^/]*" .. "." .. group] = true
				found.finalizers = found.finalizers or resource:find "/finalizers$" or resource:find "%*$"
			end
		end
	end
end

-- Events about what has no namespace stand in `default`.
local function add_events(found, places, cluster)
	local all = { unpack(places) }
	if cluster and places ~= ALL then
		all[#all + 1] = "default"
	end
	for _, namespace in ipairs(all) do
		found.rights:add_each({ namespace = namespace, group = "events.k8s.io", resource = "events" }, { "create", "patch" })
	end
end

-- A Lease can't be named in a right to create.
local function add_lease(found, lease)
	local right = { namespace = lease.namespace, group = "coordination.k8s.io", resource = "leases" }
	found.rights:add_each(right, { "create" })
	right.name = lease.name
	found.rights:add_each(right, { "get", "update" })
end

local CALLS = {
	"get", "list", "create", "update", "patch", "apply", "ensure", "modify", "delete", "scale", "status.update", "status.patch", "status.apply",
}

-- Of which kinds the calls are is seen when they run, not before.
local function add_undeclared(found, script, called)
	local names = {}
	for _, name in ipairs(#script.needs == 0 and CALLS or {}) do
		if called[name] then
			names[#names + 1] = "k8s." .. name
		end
	end
	if names[1] then
		found.undeclared[#found.undeclared + 1] = { path = script.path:gsub("%c", "?"), calls = table.concat(names, ", ") }
	end
end

local function add_script(found, input, script, called)
	for _, asked in ipairs(script.informers) do
		add_kind(found, input, asked, { "list", "watch" })
	end
	for _, asked in ipairs(script.finalizers) do
		add_kind(found, input, asked, { "patch" })
	end
	local places, cluster = places_of(input, script)
	add_needs(found, input, script, places)
	if called["event"] then
		add_events(found, places, cluster)
	end
	add_undeclared(found, script, called)
	found.owners = found.owners or called["set_owner"]
	found.leader = found.leader or script.leader
end

--- What the scripts need: { rights =, guesses = { ["plural.group"] = kind }, owners = whether one calls k8s.set_owner, finalizers =
-- whether one declares a right on finalizers, undeclared = { { path =, calls = } }: scripts that call the API and declare nothing }.
-- called(script): the set of what its files name of the module.
function rbac.find(input, called)
	local found = { rights = rbac.rights(), guesses = {}, declared = {}, undeclared = {} }
	for _, script in ipairs(input.scripts) do
		add_script(found, input, script, called(script))
	end
	if found.leader or input.lease.wanted then
		add_lease(found, input.lease)
	end
	found.rights = found.rights:without_covered()
	for plural in pairs(found.declared) do
		found.guesses[plural] = nil -- the script says so too
	end
	return found
end

-- --- rules ---

local function by_verb(one, other)
	local a, b = RANK[one] or #VERBS + 1, RANK[other] or #VERBS + 1
	if a ~= b then
		return a < b
	end
	return one < other
end

-- By group, names and resources, the core group first.
local function by_rule(one, other)
	for _, key in ipairs { "group", "name" } do
		local a, b = one[key] or "", other[key] or ""
		if a ~= b then
			return a < b
		end
	end
	return (one.resources and one.resources[1] or one.resource) < (other.resources and other.resources[1] or other.resource)
end

-- Rights of one namespace by resource: { group =, name =, resource =, verbs = }, in order.
local function resources_of(rights)
	local by_resource, list = {}, {}
	for _, right in ipairs(rights) do
		local id = table.concat({ right.group, right.resource, right.name or "" }, "\0")
		local row = by_resource[id]
		if not row then
			row = { group = right.group, name = right.name, resource = right.resource, verbs = {} }
			by_resource[id], list[#list + 1] = row, row
		end
		row.verbs[#row.verbs + 1] = right.verb
	end
	for _, row in ipairs(list) do
		table.sort(row.verbs, by_verb)
	end
	table.sort(list, by_rule)
	return list
end

-- Resources of one group with the same verbs are one rule.
local function rules_of(rights)
	local by_verbs, rules = {}, {}
	for _, row in ipairs(resources_of(rights)) do
		local id = table.concat({ row.group, row.name or "", unpack(row.verbs) }, "\0")
		local rule = by_verbs[id]
		if not rule then
			rule = { group = row.group, name = row.name, resources = {}, verbs = row.verbs }
			by_verbs[id], rules[#rules + 1] = rule, rule
		end
		rule.resources[#rule.resources + 1] = row.resource
	end
	return rules
end

-- Namespace to its rights, and the namespaces in order.
local function by_namespace(rights)
	local sets, namespaces = {}, {}
	for _, right in ipairs(rights) do
		if not sets[right.namespace] then
			sets[right.namespace] = {}
			namespaces[#namespaces + 1] = right.namespace
		end
		table.insert(sets[right.namespace], right)
	end
	table.sort(namespaces)
	return sets, namespaces
end

--- The rights as rules, in order: { namespace = nil or its name, apiGroups =, resources =, resourceNames =, verbs = }.
function rbac.rules(rights)
	local list = {}
	local sets, namespaces = by_namespace(rights)
	for _, namespace in ipairs(namespaces) do
		for _, rule in ipairs(rules_of(sets[namespace])) do
			list[#list + 1] = {
				namespace = namespace ~= "" and namespace or nil,
				apiGroups = { rule.group }, resources = rule.resources, resourceNames = rule.name and { rule.name }, verbs = rule.verbs,
			}
		end
	end
	return list
end

-- --- YAML ---

local SPECIAL = { ["true"] = true, ["false"] = true, null = true, yes = true, no = true, on = true, off = true, y = true, n = true }

local function text_of(text)
	if text:find "^%a[%w./-]*$" and not SPECIAL[text:lower()] then
		return text
	end
	return k8s.json.encode(text)
end

local function list_of(texts)
	local all = {}
	for i, text in ipairs(texts) do
		all[i] = text_of(text)
	end
	return "[" .. table.concat(all, ", ") .. "]"
end

local function add_head(lines, api_version, kind, name, namespace)
	lines[#lines + 1] = "---"
	lines[#lines + 1] = "apiVersion: " .. api_version
	lines[#lines + 1] = "kind: " .. kind
	lines[#lines + 1] = "metadata:"
	lines[#lines + 1] = "  name: " .. text_of(name)
	lines[#lines + 1] = namespace and "  namespace: " .. text_of(namespace) or nil
end

local function add_rules(lines, rules)
	lines[#lines + 1] = "rules:"
	for _, rule in ipairs(rules) do
		lines[#lines + 1] = "  - apiGroups: " .. list_of { rule.group }
		lines[#lines + 1] = "    resources: " .. list_of(rule.resources)
		lines[#lines + 1] = rule.name and "    resourceNames: " .. list_of { rule.name } or nil
		lines[#lines + 1] = "    verbs: " .. list_of(rule.verbs)
	end
end

local function add_binding(lines, kind, account, namespace)
	add_head(lines, "rbac.authorization.k8s.io/v1", kind .. "Binding", account.name, namespace)
	for _, line in ipairs {
		"roleRef:", "  apiGroup: rbac.authorization.k8s.io", "  kind: " .. kind, "  name: " .. text_of(account.name),
		"subjects:", "  - kind: ServiceAccount", "    name: " .. text_of(account.name), "    namespace: " .. text_of(account.namespace),
	} do
		lines[#lines + 1] = line
	end
end

--- The rights as YAML for `kubectl apply`: a service account, { namespace =, name = }, and the roles that give it these rights.
function rbac.yaml(rights, account)
	local lines = {}
	local sets, namespaces = by_namespace(rights)
	add_head(lines, "v1", "ServiceAccount", account.name, account.namespace)
	for _, namespace in ipairs(namespaces) do
		local kind, place = namespace == "" and "ClusterRole" or "Role", namespace ~= "" and namespace or nil
		add_head(lines, "rbac.authorization.k8s.io/v1", kind, account.name, place)
		add_rules(lines, rules_of(sets[namespace]))
		add_binding(lines, kind, account, place)
	end
	return table.concat(lines, "\n", 2) .. "\n" -- the first document needs no ---
end

--- Comment lines for the head of that YAML: what of it nobody can be sure of.
function rbac.remarks(found)
	local lines = {}
	for plural, kind in pairs(found.guesses) do
		lines[#lines + 1] = ("# %s is a guess for the kind %s: with --kubeconfig, or --sandbox and --manifests, it is looked up.\n"):format(plural, kind)
	end
	table.sort(lines)
	for _, one in ipairs(found.undeclared) do
		lines[#lines + 1] = ("# %s calls %s and declares no rights: what these need is for k8s.needs to say.\n"):format(one.path, one.calls)
	end
	if found.owners and not found.finalizers then
		lines[#lines + 1] = "# k8s.set_owner with block_owner_deletion: clusters with the admission plugin OwnerReferencesPermissionEnforcement\n"
			.. "# also want `update` of the owners' finalizers (such as websites/finalizers), which k8s.needs can declare.\n"
	end
	return table.concat(lines)
end

-- --- what is missing ---

local function describe(rule, namespace)
	local all = {}
	for i, resource in ipairs(rule.resources) do
		local plural, subresource = resource:match "^([^/]*)(.*)$"
		all[i] = plural .. (rule.group ~= "" and "." .. rule.group or "") .. subresource
	end
	return ("missing: %s on %s%s%s\n"):format(table.concat(rule.verbs, ", "), table.concat(all, ", "),
		rule.name and (' "%s"'):format(rule.name) or "", namespace ~= "" and " in namespace " .. namespace or "")
end

--- Lines such as "missing: list, watch on secrets in namespace shop".
function rbac.missing(rights)
	local lines = {}
	local sets, namespaces = by_namespace(rights)
	for _, namespace in ipairs(namespaces) do
		for _, rule in ipairs(rules_of(sets[namespace])) do
			lines[#lines + 1] = describe(rule, namespace)
		end
	end
	return table.concat(lines)
end

return rbac
