-- A script reads its own writes, with a real API server whose watch comes when it comes.
local cluster = require "support.cluster"
local host = require "support.host"

local setup, it = cluster.when_up(setup, it)

local TOOLS = [[
	local function map(name, more)
		local object = { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = k8s.config.namespace, name = name } }
		for key, value in pairs(more or {}) do
			object[key] = value
		end
		return object
	end
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, index = { mine = "data.mine" } }
	local function cached(name)
		return maps:get(k8s.config.namespace, name)
	end
	local function version(object)
		return tonumber(object.metadata.resourceVersion)
	end
]]

describe("a script on a real API server", function()
	local namespace

	setup(function()
		namespace = cluster.namespace()
	end)

	local function start(text)
		return host.start { kubeconfig = cluster.kubeconfig(), set = { namespace = namespace }, script = TOOLS .. text }
	end

	it("never reads older than what it wrote, while another client writes too", function()
		local other = start [[
			k8s.main(function()
				assert(k8s.create(map("shared", { data = { mine = "0", theirs = "0" } })))
				print "ready"
				local count = 0
				repeat
					count = count + 1
				until not k8s.patch(map "shared", { data = { theirs = tostring(count) } })
			end)
		]]
		assert.equal("ready", other:line())
		local run = start [[
			k8s.on_synced(function()
				local newest, raced = 0, 0
				for i = 1, 500 do
					local answer = assert(k8s.patch(map "shared", { data = { mine = tostring(i) } }))
					local read = cached "shared"
					assert(version(read) >= version(answer), "the cache is older than the answer")
					assert(version(read) >= newest, "the cache went back")
					assert(read.data.mine == tostring(i), "the cache has another value")
					assert(#maps:list { index = { mine = tostring(i) } } == 1, "the index does not find it")
					newest = version(read)
					raced = raced + (tonumber(read.data.theirs) > 0 and 1 or 0)
				end
				assert(k8s.delete(map "shared"))
				print(raced > 0 and "done" or "nobody else wrote")
			end)
		]]
		assert.equal("done", run:line(60))
		run:stop()
		other:stop()
	end)

	it("sees each create and delete of one name, again and again", function()
		local run = start [[
			local told = { add = 0, delete = 0 }
			maps:add_event_handler { every_event = true,
				add = function(object) told.add = told.add + (object.metadata.name == "again" and 1 or 0) end,
				delete = function(object) told.delete = told.delete + (object.metadata.name == "again" and 1 or 0) end,
			}
			k8s.on_synced(function()
				for i = 1, 200 do
					assert(cached "again" == nil, "it has come back")
					local made = assert(k8s.create(map("again", { data = { mine = "again" .. i } })))
					assert(cached "again".metadata.uid == made.metadata.uid, "it is not there")
					assert(#maps:list { index = { mine = "again" .. i } } == 1, "the index does not find it")
					if i % 3 == 0 then
						assert(k8s.patch(made, { metadata = { finalizers = { "example.com/keep" } } }))
						assert(k8s.delete(made))
						assert(cached "again".metadata.deletionTimestamp, "it is not being deleted")
						assert(k8s.patch(made, { metadata = { finalizers = k8s.null } }))
					else
						assert(k8s.delete(made))
					end
					assert(cached "again" == nil, "it is still there")
				end
				while told.delete < 200 do
					k8s.sleep(0.05)
				end
				assert(told.add == 200 and cached "again" == nil)
				print "done"
			end)
		]]
		assert.equal("done", run:line(60))
		run:stop()
	end)

	it("knows which deletes end an object and which only begin its end", function()
		local run = start [[
			local containers = { { name = "c", image = "example.com/i" } }
			local kinds = {
				{ kind = "ServiceAccount" },
				{ kind = "Service", spec = { ports = { { port = 80 } } } },
				{ kind = "Pod", spec = { containers = containers } },
				{ kind = "Pod", kept = true, spec = { nodeName = "none", containers = containers } },
				{ kind = "PersistentVolumeClaim", kept = true,
					spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } },
				{ kind = "Namespace", kept = true, everywhere = true },
			}
			for _, kind in ipairs(kinds) do
				kind.namespace = not kind.everywhere and k8s.config.namespace or nil
				kind.informer = k8s.informer { apiVersion = "v1", kind = kind.kind, namespace = kind.namespace }
			end
			k8s.on_synced(function()
				for i, kind in ipairs(kinds) do
					local name = ("%s-gone-%d"):format(k8s.config.namespace, i)
					local made = assert(k8s.create { apiVersion = "v1", kind = kind.kind, spec = kind.spec,
						metadata = { name = name, namespace = kind.namespace } })
					assert(k8s.delete(made))
					local read = kind.informer:get(made)
					print(i, kind.kind, read and read.metadata.deletionTimestamp and "kept" or read and "untouched" or "gone",
						kind.kept and "kept" or k8s.get(made) and "kept" or "gone")
				end
				print "done"
			end)
		]]
		local kinds = {}
		for _, line in ipairs(run:lines_until("done", 30)) do
			local _, kind, read, expected = line:match "^(%d+)\t(%a+)\t(%a+)\t(%a+)$"
			assert.equal(expected, read, line)
			kinds[#kinds + 1] = kind
		end
		assert.equal(6, #kinds)
		run:stop()
	end)
end)
