-- A hundred caches of which two can't fill, against a real API server.
local cjson = require "cjson"
local cluster = require "support.cluster"
local host = require "support.host"
local process = require "support.process"

local _, it = cluster.when_up(before_each, it)

local COUNT = 98
local GROUP = "hundred.example.com"
local DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

local function includes(list, word)
	for _, found in ipairs(list) do
		if found == word then
			return true
		end
	end
	return false
end

-- Adds what can be listed and watched in a group version: { apiVersion =, kind =, group =, plural = }.
local function add_kinds(kinds, path, group, api_version)
	local _, list = cluster.curl("GET", path)
	for _, resource in ipairs(list.resources) do
		if includes(resource.verbs, "list") and includes(resource.verbs, "watch") and resource.name ~= "secrets" then
			kinds[#kinds + 1] = { apiVersion = api_version, kind = resource.kind, group = group, plural = resource.name }
		end
	end
end

local function definition(i)
	local plural = "hundred" .. i .. "s"
	return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition", metadata = { name = plural .. "." .. GROUP },
		spec = { group = GROUP, scope = "Namespaced", names = { plural = plural, singular = "hundred" .. i, kind = "Hundred" .. i },
			versions = { { name = "v1", served = true, storage = true,
				schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } } } }
end

-- Makes so many kinds, served when it returns.
local function define(count)
	for i = 1, count do
		assert.equal(201, (cluster.curl("POST", DEFINITIONS, definition(i))))
	end
	local deadline = process.now() + 60
	repeat
		local status, list = cluster.curl("GET", "/apis/" .. GROUP .. "/v1")
		if status == 200 and #list.resources >= count then
			return
		end
	until process.now() > deadline
	error "the server does not serve what was defined"
end

local function undefine(count)
	for i = 1, count do
		cluster.curl("DELETE", DEFINITIONS .. "/" .. definition(i).metadata.name)
	end
end

-- All but Secrets, in the preferred version of each group.
local function all_kinds()
	local kinds = {}
	add_kinds(kinds, "/api/v1", "", "v1")
	local _, groups = cluster.curl("GET", "/apis")
	for _, group in ipairs(groups.groups) do
		local api_version = group.preferredVersion.groupVersion
		add_kinds(kinds, "/apis/" .. api_version, group.name, api_version)
	end
	return kinds
end

describe("of informers of a hundred kinds", function()
	local made = 0

	after_each(function()
		undefine(made)
	end)

	it("those that can sync do, and the report names the two that can't and why", function()
		local user, kubeconfig = cluster.need_user()
		made = math.max(0, COUNT - #all_kinds())
		define(made)
		local rules, informers = {}, {}
		for i, kind in ipairs(all_kinds()) do
			rules[i] = { apiGroups = { kind.group }, resources = { kind.plural }, verbs = { "list", "watch" } }
			informers[i] = i <= COUNT and { apiVersion = kind.apiVersion, kind = kind.kind } or nil
		end
		assert.equal(COUNT, #informers)
		cluster.grant(user, rules)
		local run = host.start {
			kubeconfig = kubeconfig, flags = { "--sync-timeout", "10s" },
			set = { informers = cjson.encode(informers) },
			script = [[
				for _, informer in ipairs(k8s.json.decode(k8s.config.informers)) do
					k8s.informer(informer)
				end
				k8s.informer { apiVersion = "v1", kind = "Secret" }
				k8s.informer { apiVersion = "absent.example.com/v1", kind = "Nothing" }
				k8s.on_synced(function() print "too early" end)
			]],
		}
		assert.equal(3, run:wait(120))
		assert.equal("", run.child:stdout())
		local log = run.child:stderr()
		local synced, late = 0, {}
		for sign, row in log:gmatch "%[([+-])%]([^\n]*)" do
			if sign == "+" then
				synced = synced + 1
			else
				late[#late + 1] = row
			end
		end
		assert.equal(COUNT, synced)
		assert.equal(2, #late, table.concat(late, "\n"))
		assert.matches("^v1/Secret forbidden, next try in %d+ s, 0 objects, 0 bytes, attempt %d+, HTTP 403: .*%(missing: list, watch on secrets%)$",
			late[1])
		assert.matches("^absent.example.com/v1/Nothing no such kind, next try in %d+ s, 0 objects, 0 bytes, attempt %d+, HTTP 404: ", late[2])
		assert.matches('the server has no kind "Nothing" in absent.example.com/v1', late[2])
		assert.matches("waiting for 2 of 100 caches: v1/Secret: forbidden", log)
	end)
end)
