-- k8s.predicate: which events of a source count.
local k8s = require "perilune"
local predicate = k8s.predicate

local function object(metadata)
	metadata.uid = metadata.uid or "u"
	return { apiVersion = "example.com/v1", kind = "Thing", metadata = metadata }
end

-- Whether an update from these metadata to those passes.
local function passes(p, old, new)
	return p(object(new), { type = "update", old = object(old) })
end

local function never() return false end
local function always() return true end

local every = {
	predicate.generation_changed, predicate.label_changed, predicate.annotation_changed, predicate.all(never), predicate.any(never),
	predicate.none(always), predicate.all(predicate.generation_changed, predicate.none(predicate.label_changed)),
}

local function misused(f, pattern)
	local ok, err = pcall(f)
	assert.is_false(ok)
	assert.matches(pattern, err)
end

describe("every predicate", function()
	it("passes adds, deletes, another uid and a deletion that begins", function()
		for i, p in ipairs(every) do
			assert.is_true(p(object { generation = 1 }, { type = "add" }), i)
			assert.is_true(p(object { generation = 1 }, { type = "delete" }), i)
			assert.is_true(passes(p, { generation = 1 }, { generation = 1, uid = "other" }), i)
			assert.is_true(passes(p, { generation = 1 }, { generation = 1, deletionTimestamp = "2020-01-01T00:00:00Z" }), i)
		end
	end)

	it("does not pass a resync of a kind with a generation, nor a deletion that goes on", function()
		for _, p in ipairs { predicate.generation_changed, predicate.label_changed, predicate.annotation_changed } do
			local same = { generation = 1, labels = { a = "b" }, annotations = { a = "b" }, deletionTimestamp = "2020-01-01T00:00:00Z" }
			assert.is_false(passes(p, same, same))
		end
	end)
end)

describe("generation_changed", function()
	it("passes another generation, and objects whose kind has none", function()
		assert.is_true(passes(predicate.generation_changed, { generation = 1 }, { generation = 2 }))
		assert.is_false(passes(predicate.generation_changed, { generation = 2 }, { generation = 2, labels = { a = "b" } }))
		assert.is_true(passes(predicate.generation_changed, {}, {}))
	end)
end)

describe("label_changed and annotation_changed", function()
	it("look at their map alone", function()
		local p = predicate.label_changed
		assert.is_true(passes(p, { labels = { a = "b" } }, { labels = { a = "c" } }))
		assert.is_true(passes(p, {}, { labels = { a = "b" } }))
		assert.is_true(passes(p, { labels = { a = "b", c = "d" } }, { labels = { a = "b" } }))
		assert.is_false(passes(p, { labels = {} }, {}))
		assert.is_false(passes(p, { annotations = { a = "b" } }, { annotations = { a = "c" } }))
		assert.is_true(passes(predicate.annotation_changed, { annotations = { a = "b" } }, { annotations = { a = "c" } }))
	end)
end)

describe("combinations", function()
	local old = { generation = 1, labels = { a = "b" }, annotations = {} }
	local relabelled = { generation = 1, labels = { a = "c" }, annotations = {} }
	local both = { generation = 2, labels = { a = "c" }, annotations = {} }

	it("ask all, any or none, of predicates and plain functions", function()
		local all = predicate.all(predicate.generation_changed, predicate.label_changed)
		local any = predicate.any(predicate.generation_changed, predicate.label_changed)
		local none = predicate.none(predicate.generation_changed, predicate.annotation_changed)
		assert.same({ false, false, true }, { passes(all, old, old), passes(all, old, relabelled), passes(all, old, both) })
		assert.same({ false, true, true }, { passes(any, old, old), passes(any, old, relabelled), passes(any, old, both) })
		assert.same({ true, true, false }, { passes(none, old, old), passes(none, old, relabelled), passes(none, old, both) })
		assert.is_false(passes(predicate.all(predicate.label_changed, never), old, relabelled))
		assert.is_true(passes(predicate.any(predicate.label_changed, never), old, relabelled))
		assert.is_false(passes(predicate.none(always), old, old))
		assert.is_true(passes(predicate.none(predicate.none(always)), old, old))
	end)

	it("give a plain function the object and the event, and take any value for its answer", function()
		local seen
		local p = predicate.all(function(new, event)
			seen = { new.metadata.labels.a, event.old.metadata.labels.a }
			return "yes"
		end)
		assert.is_true(passes(p, old, relabelled))
		assert.same({ "c", "b" }, seen)
		assert.is_false(passes(predicate.any(function() end), old, old))
	end)

	it("leave the generation out for a kind that has none", function()
		local all = predicate.all(predicate.generation_changed, predicate.label_changed)
		local none = predicate.none(predicate.generation_changed, predicate.label_changed)
		assert.is_true(passes(all, {}, { labels = { a = "b" } }))
		assert.is_false(passes(all, {}, {}))
		assert.is_false(passes(none, {}, { labels = { a = "b" } }))
		assert.is_true(passes(none, {}, {}))
		assert.is_true(passes(predicate.none(predicate.generation_changed), {}, {}))
		assert.is_true(passes(predicate.any(predicate.generation_changed, predicate.label_changed), {}, {}))
	end)

	it("want the fields of all their parts, or the whole object where one does not say", function()
		assert.same({ "metadata" }, predicate.label_changed.fields)
		assert.same({ "metadata" }, predicate.all(predicate.label_changed, predicate.generation_changed).fields)
		assert.same({ "metadata", "status.phase" },
			predicate.any(predicate.label_changed, { fields = { "status.phase", "metadata" }, test = always }).fields)
		assert.is_nil(predicate.any(predicate.label_changed, always).fields)
	end)

	it("refuse misuse at the script's line", function()
		misused(function() predicate.all() end, "predicate_spec.lua:%d+: k8s.predicate.all takes one predicate")
		misused(function() predicate.any(nil, always) end, "predicate_spec.lua:%d+: k8s.predicate.any takes .* not a nil")
		misused(function() return predicate.label_change end, "did you mean 'label_changed'")
	end)
end)

describe("a controller with a predicate", function()
	local files = require "support.files"
	local testing = require "perilune.testing"

	local function load(cluster, text)
		cluster:load(files.write(files.folder() .. "/script.lua", 'local k8s = require "perilune" ' .. text))
		cluster:settle()
	end

	-- A controller that looks at the labels of ConfigMaps; code: what the script does before, its informer `maps` at least.
	local function load_labels(cluster, code)
		load(cluster, code .. [[
			k8s.controller { name = "labels", watch = { maps, when = k8s.predicate.label_changed },
				reconcile = function() k8s.log.info "ran" end }
		]])
	end

	local function create_map(cluster, metadata)
		metadata.namespace, metadata.name = "default", "a"
		return assert(cluster:create { apiVersion = "v1", kind = "ConfigMap", metadata = metadata })
	end

	local function runs(cluster)
		cluster:settle()
		return #cluster:logs { msg = "ran" }
	end

	it("is called for changes of the labels alone, of a kind without a generation too", function()
		local cluster = testing.cluster()
		load_labels(cluster, [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", resync = 5 }
		]])
		local map = create_map(cluster, {})
		local before = runs(cluster)
		assert(cluster:patch(map, { data = { a = "b" } }))
		assert.equal(before, runs(cluster))
		cluster:advance(12)
		assert.equal(before, runs(cluster))
		assert(cluster:patch(map, { metadata = { labels = { a = "b" } } }))
		assert.equal(before + 1, runs(cluster))
		assert(cluster:delete(map))
		assert.equal(before + 2, runs(cluster))
	end)

	it("asks the function that a script put in the place of label_changed's", function()
		local cluster = testing.cluster()
		load_labels(cluster, [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
			k8s.predicate.label_changed.test = function() return true end
		]])
		local map = create_map(cluster, {})
		local before = runs(cluster)
		assert(cluster:patch(map, { data = { a = "b" } }))
		assert.equal(before + 1, runs(cluster))
	end)

	it("is called for a deletion that begins where the labels stay", function()
		local cluster = testing.cluster()
		load_labels(cluster, [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
		]])
		local map = create_map(cluster, { labels = { a = "b" }, finalizers = { "example.com/a" } })
		local before = runs(cluster)
		assert(cluster:patch(map, { data = { a = "b" } }))
		assert.equal(before, runs(cluster))
		assert(cluster:delete(map))
		assert.equal(before + 1, runs(cluster))
		assert(cluster:patch(map, { metadata = { finalizers = k8s.null } }))
		assert.equal(before + 2, runs(cluster))
	end)

	it("is called for a deletion that a transform makes up", function()
		local cluster = testing.cluster()
		load_labels(cluster, [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", transform = function(map)
				map.metadata.deletionTimestamp = map.data and map.data.ends
				return map
			end }
		]])
		local map = create_map(cluster, {})
		local before = runs(cluster)
		assert(cluster:patch(map, { data = { a = "b" } }))
		assert.equal(before, runs(cluster))
		assert(cluster:patch(map, { data = { ends = "2020-01-01T00:00:00Z" } }))
		assert.equal(before + 1, runs(cluster))
	end)

	it("is called for another generation, not for a status, and for a deletion that begins", function()
		local cluster = testing.cluster()
		load(cluster, [[
			local deployments = k8s.informer { apiVersion = "apps/v1", kind = "Deployment", resync = 5 }
			k8s.controller { name = "generations", watch = { deployments, when = k8s.predicate.all(k8s.predicate.generation_changed) },
				reconcile = function() k8s.log.info "ran" end }
		]])
		local deployment = assert(cluster:create { apiVersion = "apps/v1", kind = "Deployment",
			metadata = { namespace = "default", name = "a", finalizers = { "example.com/a" } },
			spec = { replicas = 1, selector = { matchLabels = { a = "b" } }, template = { metadata = { labels = { a = "b" } },
				spec = { containers = { { name = "a", image = "a" } } } } } })
		local before = runs(cluster)
		assert(cluster.status.patch(deployment, { status = { replicas = 1 } }))
		assert(cluster:patch(deployment, { metadata = { labels = { a = "b" } } }))
		cluster:advance(12)
		assert.equal(before, runs(cluster))
		assert(cluster:patch(deployment, { spec = { replicas = 2 } }))
		assert.equal(before + 1, runs(cluster))
		assert(cluster:delete(deployment))
		assert.equal(before + 2, runs(cluster))
	end)
end)
