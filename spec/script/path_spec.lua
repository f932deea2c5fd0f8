-- k8s.path: what lies at a path, whatever is absent on the way.
local k8s = require "perilune"

local pod = k8s.json.decode [[{
	"metadata": { "labels": { "example.com/app": "web", "it's": "here" }, "annotations": null },
	"spec": { "replicas": 0, "paused": false, "containers": [ { "image": "a" }, { "image": "b", "args": [] } ] }
}]]

local function misused(f, pattern)
	local ok, err = pcall(f)
	assert.is_false(ok)
	assert.matches(pattern, err)
end

describe("k8s.path", function()
	it("gives what is there, also false, 0 and an empty list", function()
		assert.equal(0, k8s.path(pod, "spec.replicas"))
		assert.equal(0, k8s.path(pod, "spec.replicas", 1))
		assert.is_false(k8s.path(pod, "spec.paused", true))
		assert.equal(pod.spec.containers[2].args, k8s.path(pod, "spec.containers[1].args"))
		assert.equal("web", k8s.path(pod, "metadata.labels['example.com/app']"))
		assert.equal("web", k8s.path(pod, 'metadata.labels["example.com/app"]'))
		assert.equal("here", k8s.path(pod, "metadata.labels['it\\'s']"))
		assert.equal("a", k8s.path(pod.spec.containers, "[0].image"))
	end)

	it("gives the default, or nil, where something on the way is absent, null or no table", function()
		for _, path in ipairs { "status.phase", "metadata.annotations", "metadata.annotations.a", "spec.replicas.a", "spec.containers[2]",
			"spec.containers.image", "spec[0]", "metadata.labels.example" } do
			assert.is_nil(k8s.path(pod, path), path)
			assert.equal("default", k8s.path(pod, path, "default"), path)
		end
		for _, object in ipairs { k8s.null, "text", 1, true } do
			assert.equal(5, k8s.path(object, "a", 5))
		end
		assert.equal(5, k8s.path(nil, "a.b", 5))
	end)

	it("refuses a malformed path at the line that has it", function()
		for path, place in pairs { [""] = 1, ["."] = 1, ["a."] = 3, ["a..b"] = 3, ["a["] = 3, ["a[x]"] = 3, ["a[*]"] = 3, ["a[0"] = 4,
			["a['b]"] = 6, ["a[0]b"] = 5, ["a'b"] = 2, ["a['b\\"] = 6 } do
			local ok, err = pcall(k8s.path, pod, path)
			assert.is_false(ok, path)
			assert.matches("path_spec.lua:%d+: k8s.path: .* at character " .. place .. "$", err)
		end
		misused(function()
			k8s.path(pod, 1)
		end, "path_spec.lua:%d+: k8s.path takes a path")
	end)

	it("goes on with more paths than it keeps", function()
		for i = 1, 1000 do
			local object = { ["k" .. i] = i }
			assert.equal(i, k8s.path(object, "k" .. i))
		end
	end)
end)
