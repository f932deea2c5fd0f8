-- What the README says, as far as that needs an API server; spec/readme_spec.lua has the rest.
local cjson = require "cjson"
local cli = require "support.cli"
local cluster = require "support.cluster"
local files = require "support.files"
local k8s = require "perilune"
local manifests = require "support.manifests"
local process = require "support.process"
local readme = require "support.readme"

describe("the README", function()
	local namespace, path, folder, child
	local made -- paths of what is in no namespace

	before_each(function()
		cluster.need()
		namespace, folder, made = cluster.namespace(), files.folder(), {}
		path = "/api/v1/namespaces/" .. namespace
	end)

	after_each(function()
		if child then
			child:close()
			child = nil
		end
		for _, one in ipairs(made or {}) do
			cluster.curl("DELETE", one)
		end
	end)

	local function post(where, object)
		local status, body = cluster.curl("POST", where, object)
		assert.equal(201, status, type(body) == "table" and body.message or body)
		return body
	end

	local function create_pod(name, spec)
		spec = spec or {}
		spec.containers = { { name = "main", image = "example.com/main:1" } }
		post(path .. "/pods", { apiVersion = "v1", kind = "Pod", metadata = { name = name }, spec = spec })
	end

	-- In the script's folder, as in the README; returns where its pages are.
	local function run(script, ...)
		local program = files.output_of({ "realpath", process.build() .. "/perilune" }):match "[^\n]+"
		child = process.start {
			program, "run", script, "--kubeconfig", files.output_of({ "realpath", cluster.kubeconfig() }):match "[^\n]+",
			"--listen", "127.0.0.1:0", cwd = folder, ...
		}
		return "http://127.0.0.1:" .. child:wait_for("listening .-port=(%d+)", 10)
	end

	local function stop()
		child:kill "INT"
		assert.equal(0, (child:wait(10)))
	end

	local function page(address)
		local _, text = process.run { "curl", "--silent", "--max-time", "5", address }
		return text
	end

	-- Caches fill in no order.
	local function sorted(lines)
		local changed = {}
		for i, line in ipairs(lines) do
			changed[i] = readme.alike(line)
		end
		table.sort(changed)
		return changed
	end

	it("shows what the first script prints", function()
		local log, out = {}, {}
		for _, line in ipairs(readme.lines(readme.block("text", "team.lua"))) do
			table.insert(line:match "^%d+%-" and log or out, line)
		end
		files.write(folder .. "/team.lua", readme.block("lua", "team.lua"))
		assert.equal(200, (cluster.curl("PATCH", path, { metadata = { labels = { team = "web" } } })))
		create_pod "web-1"
		run "team.lua"
		assert.equal(out[1], child:line(20))
		create_pod "web-2"
		assert.equal(out[2], child:line(20))
		stop()
		assert.same(out, readme.lines(child:stdout()))
		assert.same(sorted(log), sorted(readme.lines(child:stderr())))
	end)

	it("has a second script that does what its comments say", function()
		local node = cluster.random_name()
		made[1] = "/api/v1/nodes/" .. node
		post("/api/v1/nodes", { apiVersion = "v1", kind = "Node", metadata = { name = node } })
		create_pod("there", { nodeName = node })
		create_pod "elsewhere"
		files.write(folder .. "/shape.lua", readme.block("lua", "shape.lua"))
		run("shape.lua", "--set", "patience=0.1")
		child:wait_for("INFO  ready script=shape", 20)
		assert.equal(200, (cluster.curl("PATCH", made[1], { spec = { unschedulable = true } })))
		local line = child:wait_for("INFO  (cordoned [^\n]*)\n", 20)
		assert.truthy(line:find("pods=1%f[%D]"), line)
		assert.truthy(line:find("name=" .. node, 1, true), line)
		child:wait_for("WARN  still cordoned", 20)
		stop()
	end)

	it("shows how the barrier explains itself", function()
		local user = cluster.random_name()
		local kubeconfig = cluster.user(user)
		if not kubeconfig then
			return pending "no user can be made"
		end
		cluster.grant(user, { { apiGroups = { "" }, resources = { "pods", "configmaps" }, verbs = { "list", "watch" } } })
		files.write(folder .. "/late.lua", readme.block("lua", "late.lua"))
		local address = run("late.lua", "--kubeconfig", files.output_of({ "realpath", kubeconfig }):match "[^\n]+")
		local shown = readme.alike(readme.block("text", "run-late")):gsub('"jane"', '"' .. readme.alike(user) .. '"')
		local query = readme.block("sh", "run-late"):match "^curl %-s '127%.0%.0%.1:8080([^']+)'\n$"
		local deadline = process.now() + 30
		local found
		repeat
			found = readme.alike(page(address .. query))
		until found == shown or process.now() > deadline
		assert.equal(shown, found)
	end)

	it("shows how an error in a handler is logged", function()
		files.write(folder .. "/broken.lua", readme.block("lua", "broken.lua"))
		create_pod "web-1"
		run "broken.lua"
		local line = child:wait_for("([^\n]+ namespace=" .. namespace:gsub("%p", "%%%0") .. " [^\n]+)", 20)
		local shown = readme.block("text", "broken.lua"):gsub("namespace=%S+", "namespace=" .. namespace)
		assert.equal(readme.alike(shown), readme.alike(line .. "\n"))
	end)

	-- In a state folder of its own, since the last line takes the cluster down.
	it("shows how scripts/cluster is used", function()
		local lines = readme.lines(readme.block("sh", "cluster"))
		local env = { PERILUNE_CLUSTER_DIR = folder .. "/cluster", PERILUNE_TEST_KUBECONFIG = false, KUBECONFIG = false }
		local function shell(command)
			return { "bash", "-euc", command, env = env, seconds = 120 }
		end
		assert.equal(5, #lines)
		local code, _, err = process.run(shell(lines[1]))
		assert.equal(0, code, err)
		local words = table.concat(readme.words(lines[3]), " ")
		child = process.start(shell(lines[2] .. "\nexec " .. words .. " --listen 127.0.0.1:0"))
		child:wait_for("ha%l+ synced", 30)
		stop()
		assert.truthy(child:stderr():find("config=" .. folder .. "/cluster/kubeconfig", 1, true), child:stderr())
		code, _, err = process.run(shell(lines[4]))
		assert.equal(0, code, err)
		assert.is_false((pcall(files.read, folder .. "/cluster/kubeconfig")))
		assert.equal(0, (process.run(shell("KUBECONFIG=gone\n" .. lines[5] .. '\n[ -z "${KUBECONFIG+set}" ]'))))
	end)

	describe("in a cluster", function()
		local deployment = assert(k8s.yaml.decode(readme.block("yaml", "deployment.yaml")))
		local container = deployment.spec.template.spec.containers[1]

		it("has a deployment that the server takes", function()
			deployment.metadata.namespace = namespace
			post("/apis/apps/v1/namespaces/" .. namespace .. "/deployments?dryRun=All&fieldValidation=Strict",
				k8s.json.encode(deployment))
		end)

		-- The role and account of the sample, in this spec's namespace; what the kubelet would mount for a pod of theirs.
		local function mount_account()
			local objects = manifests.read "examples/pod-log/manifests/rbac.yaml"
			local account, role = manifests.find(objects, "ServiceAccount"), manifests.find(objects, "ClusterRole")
			local binding, rbac = manifests.find(objects, "ClusterRoleBinding"), "/apis/rbac.authorization.k8s.io/v1/"
			assert.equal(account.metadata.name, deployment.spec.template.spec.serviceAccountName)
			account.metadata.namespace, binding.subjects[1].namespace = namespace, namespace
			role.metadata.name, binding.metadata.name, binding.roleRef.name = namespace, namespace, namespace
			post(path .. "/serviceaccounts", account)
			post(rbac .. "clusterroles", role)
			post(rbac .. "clusterrolebindings", binding)
			made = { rbac .. "clusterrolebindings/" .. namespace, rbac .. "clusterroles/" .. namespace }
			local token = post(path .. "/serviceaccounts/" .. account.metadata.name .. "/token",
				'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}').status.token
			files.write(folder .. "/token", token)
			files.write(folder .. "/namespace", namespace)
			files.output_of { "cp", cluster.ca(), folder .. "/ca.crt" }
		end

		-- With the deployment's own arguments; only the address of the pages is another, since 8080 may be taken here.
		local function start_as_pod()
			local script = readme.folder("pod-log", { ["init.lua"] = files.read "examples/pod-log/init.lua" })
			local host, port = cluster.server():match "^https://([^/]+):(%d+)$"
			local arguments = {
				env = { KUBERNETES_SERVICE_HOST = host, KUBERNETES_SERVICE_PORT = port, PERILUNE_SERVICEACCOUNT_DIR = folder },
			}
			for i, argument in ipairs(container.args) do
				arguments[i] = argument == container.volumeMounts[1].mountPath and script or argument
			end
			arguments[#arguments + 1] = "--listen=127.0.0.1:0"
			child = cli.start(arguments)
			return "http://127.0.0.1:" .. child:wait_for('"listening".-"port":"(%d+)"', 10)
		end

		it("runs with what a pod has there", function()
			mount_account()
			create_pod "web-1"
			local address = start_as_pod()
			child:wait_for("ha%l+ synced", 30)
			child:wait_for("present  " .. namespace:gsub("%p", "%%%0") .. "/web%-1  Pending\n", 10)
			for _, probe in ipairs { "livenessProbe", "readinessProbe" } do
				assert.equal("ok\n", page(address .. container[probe].httpGet.path), probe)
			end
			assert.is_true(cjson.decode(page(address .. "/status")).ready)
			child:kill "TERM"
			assert.equal(0, (child:wait(10)))
			assert.truthy(child:stderr():find('"config":"in-cluster"', 1, true), child:stderr())
		end)
	end)
end)
