-- A testing cluster: what specs do with it, and how long it lives.
local files = require "support.files"
local testing = require "perilune.testing"

local function map(name, data)
	return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = name }, data = data }
end

local function script(text)
	return files.write(files.folder() .. "/script.lua", 'local k8s = require "perilune"\n' .. text)
end

-- Notes each event of a config map in the map "seen".
local NOTES = [[
local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "!seen" }
maps:add_event_handler {
	add = function(map)
		assert(k8s.patch({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "seen" }, { data = { [map.metadata.name] = "add" } }))
	end,
}
]]

describe("a testing cluster", function()
	it("runs a script against objects of the spec", function()
		local cluster = testing.cluster()
		local seen = map "seen"
		seen.metadata.labels = { seen = "yes" }
		assert(cluster:create(seen))
		assert(cluster:create(map "a"))
		cluster:load(script(NOTES))
		cluster:settle()
		assert.same({ a = "add" }, assert(cluster:get(seen)).data)
		assert(cluster:create(map "b"))
		cluster:settle()
		assert.same({ a = "add", b = "add" }, assert(cluster:get(seen)).data)
		assert.equal(2, #cluster:requests { verb = "patch", kind = "ConfigMap" })
	end)

	describe("left open", function()
		it("in a test", function()
			testing.cluster():load(script "")
		end)

		it("is closed with it", function()
			testing.cluster():close()
		end)

		describe("by a before_each", function()
			local cluster, before

			before_each(function()
				before = cluster
				cluster = testing.cluster()
			end)

			after_each(function()
				cluster:settle()
			end)

			for i = 1, 2 do
				it("lasts to the next, " .. i, function()
					cluster:settle()
					if before then
						assert.has_error(function() before:settle() end, "this cluster is closed")
					end
				end)
			end
		end)

		describe("by a describe", function()
			local cluster = testing.cluster()

			it("is there for its tests", function()
				cluster:settle()
				assert.has_error(testing.cluster)
			end)

			it("and for the next", function()
				cluster:settle()
			end)
		end)

		it("is closed with that", function()
			testing.cluster():close()
		end)
	end)
end)
