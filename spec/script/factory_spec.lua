-- k8s.factory's defaults: what an informer is asked for where it says nothing itself.
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"

describe("a factory's defaults", function()
	local function label(options, informer)
		local path = files.write(files.folder() .. "/script.lua", ([[local k8s = require "perilune"
			local factory = k8s.factory { %s }
			print(tostring(factory:informer { %s }))]]):format(options, informer))
		local code, out, err = cli.run { "check", path }
		assert.equal(0, code, err)
		return out:match "^informer ([^\n]*)"
	end

	local PODS = 'apiVersion = "v1", kind = "Pod"'

	it("are the informer's own, then those of its kind, then those of all", function()
		local options = [[namespace = "shop", label_selector = "of=factory", field_selector = "metadata.name=factory",
			per_kind = { ["v1/Pod"] = { label_selector = "of=kind" }, ["apps/v1/Deployment"] = { field_selector = "metadata.name=kind" } }]]
		assert.equal("v1/Pod shop of=kind metadata.name=factory", label(options, PODS))
		assert.equal("v1/Pod shop of=own metadata.name=factory", label(options, PODS .. ', label_selector = "of=own"'))
		assert.equal("v1/Pod shop metadata.name=factory", label(options, PODS .. ', label_selector = ""'))
		assert.equal("v1/Pod a,b of=kind metadata.name=factory", label(options, PODS .. ', namespace = { "b", "a" }'))
		assert.equal("apps/v1/Deployment shop of=factory metadata.name=kind", label(options, 'apiVersion = "apps/v1", kind = "Deployment"'))
		assert.equal("v1/Secret shop of=factory metadata.name=factory", label(options, 'apiVersion = "v1", kind = "Secret"'))
	end)

	it("are those of the resource where that is asked for", function()
		assert.equal("v1/pods x", label('per_kind = { ["v1/pods"] = { label_selector = "x" } }', 'apiVersion = "v1", resource = "pods"'))
	end)

	it("hold a transform, which false takes away", function()
		local options = [[transform = function(map) return map end, per_kind = { ["v1/Secret"] = { transform = false } }]]
		assert.equal("v1/Pod (transformed)", label(options, PODS))
		assert.equal("v1/Pod", label(options, PODS .. ", transform = false"))
		assert.equal("v1/Secret", label(options, 'apiVersion = "v1", kind = "Secret"'))
	end)

	it("are taken when the factory is made", function()
		local path = files.write(files.folder() .. "/script.lua", [[local k8s = require "perilune"
			local options = { per_kind = { ["v1/Pod"] = { label_selector = "before" } } }
			local factory = k8s.factory(options)
			options.per_kind["v1/Pod"].label_selector = "after"
			print(tostring(factory:informer { apiVersion = "v1", kind = "Pod" }))]])
		local code, out, err = cli.run { "check", path }
		assert.equal(0, code, err)
		assert.matches("^informer v1/Pod before\n", out)
	end)

	it("decide what the cache holds and when it resyncs", function()
		local run = host.start { flags = { "--sandbox" }, script = [[
			local factory = k8s.factory {
				drop = "data.a", resync = 3600,
				transform = function(map) map.by = "factory" return map end,
				per_kind = { ["v1/ConfigMap"] = { resync = 1, drop = { "data.b" }, transform = function(map) map.by = "kind" return map end } },
			}
			local ours = factory:informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default" }
			local kept = factory:informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", keep = "data", transform = false }
			k8s.main(function()
				k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m", namespace = "default" }, data = { a = "1", b = "2" } }
			end)
			local function show(map) return map.metadata.name == "m" and (map.by or "none") .. (map.data.a or "-") .. (map.data.b or "-") end
			ours:add_event_handler {
				add = function(map) if show(map) then print("ours", show(map)) end end,
				update = function(map, event) if show(map) and event.resync then print("resync", show(map)) ours = nil end end,
			}
			kept:add_event_handler { add = function(map) if show(map) then print("kept", show(map)) end end }
		]] }
		local first = { run:line(), run:line() }
		table.sort(first)
		assert.same({ "kept\tnone12", "ours\tkind1-" }, first)
		assert.equal("resync\tkind1-", run:line())
		run:stop()
	end)
end)

describe("a factory's options that make no sense", function()
	local cases = {
		["a misspelt one"] = { "resinc = 30", "k8s.factory: unknown option 'resinc', did you mean 'resync'%?" },
		["a misspelt one of a kind"] = { '\nper_kind = { ["v1/Pod"] = { label_selektor = "a" } }',
			'k8s.factory: per_kind%["v1/Pod"%]: unknown option \'label_selektor\', did you mean \'label_selector\'%?' },
		["a kind without its apiVersion"] = { '\nper_kind = { Pod = {} }',
			"k8s.factory: per_kind has 'Pod' for a kind; write apiVersion/kind, such as %[\"v1/Pod\"%]" },
		["a list for kinds"] = { "per_kind = { {} }", "k8s.factory: per_kind has number for a kind" },
		["no table for kinds"] = { "per_kind = 1", "k8s.factory: per_kind must be a table, not a number" },
		["a resync too short"] = { "resync = 0.5", "k8s.factory: resync is at least 1 second, or 0 for none" },
		["a resync of a kind too short"] = { 'per_kind = { ["v1/Pod"] = { resync = 0.5 } }',
			'k8s.factory: per_kind%["v1/Pod"%]: resync is at least 1 second, or 0 for none' },
		["a transform that is none"] = { "transform = 1", "option 'transform' must be a function, or false for none, not a number" },
	}
	for name, case in pairs(cases) do
		it("are told: " .. name, function()
			local path = files.write(files.folder() .. "/script.lua", ('local k8s = require "perilune" k8s.factory { %s }'):format(case[1]))
			local code, _, err = cli.run { "check", path }
			assert.equal(1, code, err)
			assert.matches("script%.lua:%d: " .. case[2], err)
		end)
	end
end)
