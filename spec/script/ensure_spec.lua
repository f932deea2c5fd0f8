-- k8s.ensure: an apply that is left out where it would change nothing, and never where it would.
local files = require "support.files"
local testing = require "perilune.testing"

-- Ensures the same child each minute, with what its informer is asked for and the content that the spec chooses.
local SCRIPT = [[
local k8s = require "perilune"
local options = { apiVersion = "v1", kind = "ConfigMap", %s }
k8s.informer(options)
k8s.every(60, function()
	local map, err = k8s.ensure({ apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "child" }, %s },
		{ force = true })
	k8s.log.info("ensured", { map = map and k8s.json.encode(map), err = err and tostring(err) })
end)
]]

local CHILD = { apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "child" }

describe("k8s.ensure", function()
	local cluster

	before_each(function()
		cluster = testing.cluster()
	end)

	local function load(content, informer)
		cluster:load(files.write(files.folder() .. "/ensures.lua", SCRIPT:format(informer or "", content or 'data = { x = "1" }')))
		cluster:settle()
	end

	local function minutes(count)
		cluster:advance(60 * count)
	end

	local function applied()
		return #cluster:requests { verb = "patch", name = "child" }
	end

	local function last()
		local lines = cluster:logs { msg = "ensured" }
		assert.is_nil(lines[#lines].err)
		return require("perilune").json.decode(lines[#lines].map)
	end

	it("applies once, and gives the object either way", function()
		load()
		minutes(1)
		local first = last()
		minutes(5)
		assert.equal(1, applied())
		assert.equal(6, #cluster:logs { msg = "ensured" })
		assert.equal(first.metadata.uid, last().metadata.uid)
		assert.same({ x = "1" }, last().data)
	end)

	it("repairs what somebody else changed, once", function()
		load()
		minutes(2)
		assert(cluster:patch(CHILD, { data = { x = "2" } }))
		minutes(3)
		assert.equal(2, applied())
		assert.same({ x = "1" }, assert(cluster:get(CHILD)).data)
	end)

	it("repairs what somebody else took away, though the value that is left is another's too", function()
		load 'data = { x = "1", y = "1" }'
		minutes(2)
		assert(cluster:patch(CHILD, { data = { y = require("perilune").null } }))
		minutes(2)
		assert.equal(2, applied())
		assert.same({ x = "1", y = "1" }, assert(cluster:get(CHILD)).data)
	end)

	it("leaves alone what it does not apply", function()
		load()
		minutes(2)
		assert(cluster:patch(CHILD, { data = { z = "1" }, metadata = { labels = { a = "b" } } }))
		minutes(3)
		assert.equal(1, applied())
	end)

	it("makes the object again when it is gone, also when another of that name and content took its place", function()
		load()
		minutes(2)
		assert(cluster:delete(CHILD))
		minutes(2)
		assert.equal(2, applied())
		assert(cluster:delete(CHILD))
		assert(cluster:create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "child" }, data = { x = "1" } })
		minutes(2)
		assert.equal(3, applied())
		assert.equal("perilune/ensures", assert(cluster:get(CHILD)).metadata.managedFields[1].manager)
	end)

	it("applies to an object that is being deleted", function()
		load 'metadata = { namespace = "default", name = "child", finalizers = { "example.com/x" } }'
		minutes(2)
		assert(cluster:delete(CHILD))
		minutes(2)
		assert.equal(3, applied())
	end)

	it("applies another content, and the first one again", function()
		load 'data = { x = tostring(math.floor(k8s.now() / 180) % 2) }'
		minutes(12)
		assert.is_true(applied() >= 4 and applied() <= 5, applied() .. " applied")
	end)

	-- What hides a field, or the whole object, from the cache.
	for what, informer in pairs {
		["its field is dropped"] = 'drop = "data"',
		["the cache is of metadata alone"] = "metadata_only = true",
		["the object is not selected"] = 'label_selector = "a=b"',
		["the object is in no namespace of the cache"] = 'namespace = "kube-system"',
		["a transform had a hand in it"] = "transform = function(map) return map end",
		["the cache is of another kind"] = 'kind = "Secret"',
	} do
		it("applies each time where " .. what, function()
			load(nil, informer)
			minutes(3)
			assert.equal(3, applied())
		end)
	end

	it("takes the cache that shows all, where another hides a field", function()
		load(nil, 'drop = "data" } k8s.informer { apiVersion = "v1", kind = "ConfigMap"')
		minutes(3)
		assert.equal(1, applied())
	end)

	it("has nothing against what the server makes of the content", function()
		cluster:load(files.write(files.folder() .. "/deploys.lua", [[
			local k8s = require "perilune"
			k8s.informer { apiVersion = "apps/v1", kind = "Deployment" }
			k8s.every(60, function()
				assert(k8s.ensure { apiVersion = "apps/v1", kind = "Deployment", metadata = { namespace = "default", name = "web" },
					spec = { replicas = 1, selector = { matchLabels = { a = "b" } }, template = { metadata = { labels = { a = "b" } },
						spec = { containers = { { name = "c", image = "i", ports = { { containerPort = 80 } } } } } } } })
			end)
		]]))
		cluster:settle()
		minutes(4)
		assert.equal(1, #cluster:requests { verb = "patch", kind = "Deployment", name = "web" })
	end)

	it("is told why it could not apply, and tries again", function()
		load()
		cluster:fault { verb = "patch", action = "status", code = 403 }
		minutes(1)
		assert.equal("Forbidden: a fault that was ordered", cluster:logs({ msg = "ensured" })[1].err)
		minutes(2)
		assert.equal(2, applied())
	end)

	it("remembers nothing of a dry run", function()
		cluster:load(files.write(files.folder() .. "/ensures.lua", SCRIPT:format("", 'data = { x = "1" }')
			:gsub("force = true", "force = true, dry_run = true")))
		cluster:settle()
		minutes(3)
		assert.equal(3, applied())
	end)
end)
