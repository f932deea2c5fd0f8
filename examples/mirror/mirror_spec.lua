local cli = require "support.cli"
local manifests = require "support.manifests"
local sample = require "support.sample"

local function namespace(name)
	return { apiVersion = "v1", kind = "Namespace", name = name }
end

local function reference(name, of)
	return { apiVersion = "v1", kind = "ConfigMap", namespace = name, name = of or "settings" }
end

describe("examples/mirror", function()
	-- The label of the namespaces is the story's own, so that on a server with others' namespaces no other is meant.
	local function team(world)
		return world:name "team" .. ".example.com/team"
	end

	local function source(world, word, name, data)
		return {
			apiVersion = "v1", kind = "ConfigMap", data = data,
			metadata = {
				namespace = world:name(word), name = name, labels = { ["example.com/mirror"] = "yes" },
				annotations = { ["example.com/mirror-to"] = team(world) .. " in (web, shop)" },
			},
		}
	end

	-- What the ConfigMaps in these namespaces hold; false: there is none.
	local function data(world, words, name)
		local found = {}
		for i, word in ipairs(words) do
			local map = world:get(reference(world:name(word), name))
			found[i] = map and map.data or false
		end
		return found
	end

	local ALL = { "one", "two", "three" }

	local function holds(words, name, ...)
		local wanted = { ... }
		return function(world)
			assert.same(wanted, data(world, words, name))
			return true
		end
	end

	local GREEN, RED = { color = "green" }, { color = "red", size = "9" }

	sample.tell(it, {
		folder = "examples/mirror",
		steps = {
			{
				"the copies of a source, where its selector says",
				act = function(world)
					world:namespace "home"
					world:namespace("one", { [team(world)] = "web" })
					world:namespace("two", { [team(world)] = "shop" })
					world:namespace("three", { [team(world)] = "ops" })
					world:patch(namespace(world:name "home"), { metadata = { labels = { [team(world)] = "web" } } })
					world:create(source(world, "home", "settings", GREEN))
				end,
				holds = holds(ALL, "settings", GREEN, GREEN, false),
			},
			{
				"what changes in the source",
				act = function(world)
					world:patch(reference(world:name "home"), { data = RED })
				end,
				holds = holds(ALL, "settings", RED, RED, false),
			},
			{
				"a changed and a deleted copy",
				act = function(world)
					world:patch(reference(world:name "one"), { data = { color = "blue", more = "x" } })
					world:delete(reference(world:name "two"))
				end,
				holds = holds(ALL, "settings", RED, RED, false),
			},
			{
				"namespaces that begin and cease to match",
				act = function(world)
					world:patch(namespace(world:name "one"), { metadata = { labels = { [team(world)] = "ops" } } })
					world:patch(namespace(world:name "three"), { metadata = { labels = { [team(world)] = "web" } } })
				end,
				holds = holds(ALL, "settings", false, RED, RED),
			},
			{
				"another selector",
				act = function(world)
					world:patch(reference(world:name "home"), { metadata = { annotations = { ["example.com/mirror-to"] = team(world) .. "=ops" } } })
				end,
				holds = holds(ALL, "settings", RED, false, false),
			},
			{
				"two sources, of which one goes and the other is none any more",
				act = function(world)
					world:create(source(world, "home", "rules", GREEN))
					world:delete(reference(world:name "home"))
					world:patch(reference(world:name "home", "rules"), { metadata = { labels = { ["example.com/mirror"] = "no" } } })
				end,
				holds = function(world)
					return holds(ALL, "settings", false, false, false)(world) and holds(ALL, "rules", false, false, false)(world)
						and holds({ "home" }, "rules", GREEN)(world)
				end,
			},
			{
				"a source that is one again",
				act = function(world)
					world:patch(reference(world:name "home", "rules"), { metadata = { labels = { ["example.com/mirror"] = "yes" } } })
				end,
				holds = holds(ALL, "rules", false, GREEN, GREEN),
			},
		},
	})

	it("has a role that is bound to its service account", function()
		manifests.check_binding(manifests.read "examples/mirror/manifests/rbac.yaml")
	end)

	it("loads without a cluster", function()
		local code, _, err = cli.run { "check", "examples/mirror" }
		assert.equal(0, code, err)
	end)
end)
