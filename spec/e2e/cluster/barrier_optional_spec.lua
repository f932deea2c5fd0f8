-- Optional kinds and kinds that go, against a real API server.
local cluster = require "support.cluster"
local host = require "support.host"

local _, it = cluster.when_up(before_each, it)

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

local function contains(text, part)
	assert(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

local function rule(plural)
	return { apiGroups = { "" }, resources = { plural }, verbs = { "list", "watch" } }
end

-- A CRD of Widgets with these versions, each of them served. Returns its path.
local function define_versions(group, versions)
	local list = {}
	for i, version in ipairs(versions) do
		list[i] = { name = version, served = true, storage = i == 1,
			schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } }
	end
	local status, body = cluster.curl("POST", CRDS, {
		apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition", metadata = { name = "widgets." .. group },
		spec = { group = group, scope = "Namespaced", names = { plural = "widgets", kind = "Widget" }, versions = list },
	})
	assert.equal(201, status, body and body.message)
	return CRDS .. "/widgets." .. group
end

local function remove(path)
	assert.equal(200, (cluster.curl("DELETE", path)))
	cluster.await(30, "the end of " .. path, function()
		return cluster.curl("GET", path) == 404
	end)
end

local function create(group, version, name)
	local path = ("/apis/%s/%s/namespaces/default/widgets"):format(group, version)
	cluster.await(30, "a widget", function()
		return cluster.curl("POST", path, { apiVersion = group .. "/" .. version, kind = "Widget", metadata = { name = name } }) == 201
	end)
end

describe("an optional informer", function()
	it("of an absent kind holds nothing, and follows its CRD as it comes, goes and comes back", function()
		local group = cluster.random_name() .. ".example.com"
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), pages = true, set = { version = group .. "/v1" },
			script = [[
				local widgets = k8s.informer { apiVersion = k8s.config.version, kind = "Widget", optional = true }
				local function log(widget, event) print(event.type, widget.metadata.name, widgets:count()) end
				widgets:add_event_handler { add = log, delete = log }
				k8s.on_synced(function() print("open", widgets:has_synced()) end)
			]],
		}
		assert.equal("open\tfalse", run:line())
		assert.equal(200, (run:page "/readyz"))
		contains(select(2, run:page "/readyz?verbose"), ("[+]%s/v1/Widget parked: no such kind"):format(group))
		for _, name in ipairs { "first", "second" } do
			local path = define_versions(group, { "v1" })
			create(group, "v1", name)
			assert.equal(("add\t%s\t1"):format(name), run:line(60))
			remove(path)
			assert.equal(("delete\t%s\t0"):format(name), run:line(60))
			cluster.await(60, "parked", function()
				return run:status().informers[1].state:find "^parked: no such kind"
			end)
		end
		run:stop()
	end)

	it("of a forbidden kind holds nothing, and one that needs the same kind waits", function()
		local user, kubeconfig = cluster.need_user()
		cluster.grant(user, { rule "configmaps" })
		local run = host.start {
			kubeconfig = kubeconfig, pages = true,
			script = [[
				k8s.main(function()
					local function wait(name, optional, timeout)
						local factory = k8s.factory { namespace = "default" }
						factory:informer { apiVersion = "v1", kind = "ConfigMap" }
						factory:informer { apiVersion = "v1", kind = "Secret", optional = optional }
						factory:start()
						print(name, factory:wait_for_cache_sync { timeout = timeout }.synced)
					end
					wait("optional", true, 60)
					wait("needed", false, 1)
					wait("granted", false, 60)
				end)
			]],
		}
		assert.equal("optional\ttrue", run:line())
		assert.equal("needed\tfalse", run:line())
		cluster.grant(user, { rule "secrets" })
		assert.equal("granted\ttrue", run:line(60))
		run:stop()
	end)
end)

describe("a version that is not served any more", function()
	it("takes its informer's objects along, and another version's stay", function()
		local group = cluster.random_name() .. ".example.com"
		local path = define_versions(group, { "v2", "v1" })
		create(group, "v2", "w")
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), pages = true, set = { group = group },
			script = [[
				for _, version in ipairs { "v1", "v2" } do
					local widgets = k8s.informer { apiVersion = k8s.config.group .. "/" .. version, kind = "Widget" }
					local function log(widget, event) print(version, event.type, widget.apiVersion, event.final_state_unknown) end
					widgets:add_event_handler { add = log, delete = log }
				end
			]],
		}
		local seen = { run:line(40), run:line(40) }
		table.sort(seen)
		assert.same({ ("v1\tadd\t%s/v1\tfalse"):format(group), ("v2\tadd\t%s/v2\tfalse"):format(group) }, seen)
		local _, crd = cluster.curl("GET", path)
		crd.spec.versions[2].served = false
		assert.equal(200, (cluster.curl("PUT", path, crd)))
		assert.equal(("v1\tdelete\t%s/v1\ttrue"):format(group), run:line(60))
		assert.equal(200, (run:page "/readyz"))
		crd = select(2, cluster.curl("GET", path))
		crd.spec.versions[2].served = true
		assert.equal(200, (cluster.curl("PUT", path, crd)))
		assert.equal(("v1\tadd\t%s/v1\tfalse"):format(group), run:line(60))
		run:stop()
	end)
end)

describe("a CRD that is deleted while a handler runs", function()
	it("ends in a delete for each object that was told, after the handler has returned", function()
		local group = cluster.random_name() .. ".example.com"
		local path = define_versions(group, { "v1" })
		create(group, "v1", "w")
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), set = { version = group .. "/v1" },
			script = [[
				k8s.informer { apiVersion = k8s.config.version, kind = "Widget" }:add_event_handler {
					add = function(widget)
						print "adding"
						while k8s.get(widget) do k8s.sleep(0.1) end
						k8s.sleep(1)
						print "added"
					end,
					delete = function(widget) print("deleted", widget.metadata.name) end,
				}
			]],
		}
		assert.equal("adding", run:line(40))
		remove(path)
		assert.equal("added", run:line(40))
		assert.equal("deleted\tw", run:line(40))
		run:stop()
	end)
end)

describe("a kind that is forbidden after its sync", function()
	-- Changes what is at path, in place.
	local function change(path, edit)
		local status, object = cluster.curl("GET", path)
		assert.equal(200, status)
		edit(object)
		assert.equal(200, (cluster.curl("PUT", path, object)))
	end

	it("keeps its objects, is called stale, and goes on when it is allowed again", function()
		local user, kubeconfig = cluster.need_user()
		local group = cluster.random_name() .. ".example.com"
		local path = define_versions(group, { "v1" })
		create(group, "v1", "kept")
		local rules = { { apiGroups = { group }, resources = { "widgets" }, verbs = { "list", "watch" } } }
		local role = cluster.grant(user, rules)
		local run = host.start {
			kubeconfig = kubeconfig, pages = true, set = { version = group .. "/v1" },
			script = [[
				local widgets = k8s.informer { apiVersion = k8s.config.version, kind = "Widget" }
				local function log(widget, event) print(event.type, widget.metadata.name, widgets:count()) end
				widgets:add_event_handler { add = log, update = log, delete = log }
			]],
		}
		assert.equal("add\tkept\t1", run:line(60))
		change(role, function(object)
			object.rules = nil
		end)
		change(path, function(object) -- which ends the watches of its objects
			object.spec.names.shortNames = { "wd" }
		end)
		cluster.await(60, "stale", function()
			return run:status().informers[1].state:find "^stale: forbidden"
		end)
		assert.equal(200, (run:page "/readyz"))
		local _, page = run:page "/readyz?verbose"
		contains(page, "(missing: ")
		contains(page, ("watch on widgets.%s)"):format(group))
		run:log_line "the cache is stale"
		assert.equal(1, run:status().informers[1].objects)
		change(role, function(object)
			object.rules = rules
		end)
		create(group, "v1", "new")
		assert.equal("add\tnew\t2", run:line(60))
		run:stop()
	end)
end)
