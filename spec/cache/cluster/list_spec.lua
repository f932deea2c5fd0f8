-- Lists of a real API server: many objects, pages, large objects, metadata alone, and many informers at once.
local cache = require "support.cache"
local own_cluster = require "support.own_cluster"

local MANY = 5000

describe("lists of a real API server", function()
	local own, driver, namespace, path

	before_each(function()
		own = own_cluster.start()
		namespace = own:namespace()
		path = "/api/v1/namespaces/" .. namespace .. "/"
		driver = cache.start(own.kubeconfig)
	end)

	after_each(function()
		driver:finish()
	end)

	local function config_map(name, fields)
		local made = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name } }
		for key, value in pairs(fields or {}) do
			made[key] = value
		end
		return made
	end

	local function has_keys(count, id)
		local _, keys = driver:store(id or "i")
		local own_keys = 0
		for _, key in ipairs(keys) do
			own_keys = own_keys + (key:sub(1, #namespace + 1) == namespace .. "/" and 1 or 0)
		end
		assert.equal(count, own_keys)
	end

	-- TCP connections that a process holds.
	local function connections(pid)
		local sockets, count = {}, 0
		for link in io.popen("ls -l /proc/" .. pid .. "/fd"):lines() do
			sockets[link:match "socket:%[(%d+)%]" or ""] = true
		end
		for line in io.lines("/proc/" .. pid .. "/net/tcp") do
			local words = {}
			for word in line:gmatch "%S+" do
				words[#words + 1] = word
			end
			count = count + (sockets[words[10]] and 1 or 0)
		end
		return count
	end

	it("of 5,000 objects in one answer, then of each change", function()
		own:create_many(MANY, path .. "configmaps", { apiVersion = "v1", kind = "ConfigMap", metadata = { generateName = "m-" },
			data = { text = ("x"):rep(1000) } })
		driver:follow({ apiVersion = "v1", kind = "ConfigMap", namespaces = namespace }, { quiet = 1 })
		driver:event("synced", "h", 60)
		has_keys(MANY + 1) -- kube-root-ca.crt is there too
		local report = driver:ask("report", { id = "i" })
		assert.equal(1, report.lists)
		own:create(path .. "configmaps", config_map "one-more")
		driver:order("listen", { id = "late", informer = "i", open = 1, every = 1 })
		driver:event("add", "late", function(event)
			return event.key == namespace .. "/one-more"
		end)
	end)

	-- The API server keeps a watch cache of the one and none of the other.
	for _, kind in ipairs { "ConfigMap", "Event" } do
		it("of " .. kind .. "s in one stream, that goes on as the watch", function()
			local plural = kind:lower() .. "s"
			local body = { apiVersion = "v1", kind = kind, metadata = { name = "one" } }
			if kind == "Event" then
				body.involvedObject, body.reason = { namespace = namespace, kind = "Pod", name = "p" }, "Spec"
			end
			own:create(path .. plural, body)
			driver:follow { apiVersion = "v1", kind = kind, namespaces = namespace }
			driver:event("synced", "h")
			body.metadata.name = "two"
			own:create(path .. plural, body)
			driver:event("add", "h", function(event)
				return event.key == namespace .. "/two"
			end)
			local report = driver:ask("report", { id = "i" })
			assert.same({ 1, 1 }, { report.lists, report.watches })
		end)
	end

	it("of 5,000 objects in pages of 10, where the server pages", function()
		-- The API server keeps no watch cache of Events, so that even the first list comes from etcd, in pages.
		own:create_many(MANY, path .. "events", { apiVersion = "v1", kind = "Event", metadata = { generateName = "e-" },
			involvedObject = { namespace = namespace, kind = "Pod", name = "p" }, reason = "Spec", type = "Normal" })
		driver:follow({ apiVersion = "v1", kind = "Event", namespaces = namespace, page_size = 10 }, { quiet = 1 })
		driver:event("change", "i", 60, function(event)
			return event.state:match "^listing page"
		end)
		driver:event("synced", "h", 120)
		has_keys(MANY)
	end)

	it("of an object of 1.5 MB, and its changes", function()
		-- etcd takes 1.5 MiB; the object is stored a second time, in part, as managed fields.
		local large = config_map("large", { binaryData = { bytes = ("QUJD"):rep(250000) }, data = { mark = "1" } })
		driver:follow { apiVersion = "v1", kind = "ConfigMap", namespaces = namespace }
		driver:event("synced", "h")
		own:create(path .. "configmaps", large)
		driver:event("add", "h", function(event)
			return event.key == namespace .. "/large"
		end)
		own:curl("PATCH", path .. "configmaps/large", { data = { mark = "2" } })
		driver:event("update", "h", function(event)
			return event.key == namespace .. "/large"
		end)
		local held = driver:ask("get", { id = "i", key = namespace .. "/large" }).object
		assert.equal(1000000, #held.binaryData.bytes)
		assert.equal("2", held.data.mark)
		assert.is_nil(held.metadata.managedFields)
	end)

	it("of metadata alone", function()
		own:create(path .. "configmaps", config_map("a", { data = { secret = "x" } }))
		driver:follow { apiVersion = "v1", kind = "ConfigMap", namespaces = namespace, metadata = 1 }
		driver:event("synced", "h")
		own:create(path .. "configmaps", config_map("b", { data = { secret = "x" } }))
		driver:event("add", "h", function(event)
			return event.key == namespace .. "/b"
		end)
		for _, name in ipairs { "a", "b" } do
			local held = driver:ask("get", { id = "i", key = namespace .. "/" .. name }).object
			assert.same({ "v1", "ConfigMap", name }, { held.apiVersion, held.kind, held.metadata.name })
			assert.is_nil(held.data)
		end
	end)

	it("of what a selector leaves, with deletes for what leaves it", function()
		own:create(path .. "configmaps", config_map("out"))
		own:create(path .. "configmaps", { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "in", labels = { app = "web" } } })
		driver:follow { apiVersion = "v1", kind = "ConfigMap", namespaces = namespace, labels = "app in (web,api)" }
		driver:event("synced", "h")
		assert.same({ namespace .. "/in" }, (select(2, driver:store "i")))
		own:curl("PATCH", path .. "configmaps/in", { metadata = { labels = { app = "other" } } })
		driver:event("delete", "h")
		own:curl("PATCH", path .. "configmaps/out", { metadata = { labels = { app = "api" } } })
		driver:event("add", "h", function(event)
			return event.key == namespace .. "/out"
		end)
	end)

	it("of twenty kinds over two connections, one for calls and one for watches", function()
		local kinds = { "Pod", "Service", "Secret", "ConfigMap", "ServiceAccount", "Endpoints", "Event", "LimitRange",
			"PersistentVolumeClaim", "PodTemplate", "ReplicationController", "ResourceQuota", "Namespace", "Node", "PersistentVolume" }
		for _, kind in ipairs(kinds) do
			driver:order("informer", { id = kind, apiVersion = "v1", kind = kind })
		end
		for _, kind in ipairs { "Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "ControllerRevision" } do
			driver:order("informer", { id = kind, apiVersion = "apps/v1", kind = kind })
			kinds[#kinds + 1] = kind
		end
		driver:order("barrier", { id = "g", informers = table.concat(kinds, ","), patience = 20 })
		driver:order "start"
		driver:event("gate_open", "g")
		for _, kind in ipairs(kinds) do
			driver:change(kind, "streaming")
		end
		assert.equal(2, connections(driver.pid))
	end)
end)
