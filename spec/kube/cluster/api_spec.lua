-- What a user of the API client can count on, against a real API server; checked with curl as an independent client.
local cluster = require "support.cluster"
local files = require "support.files"
local kube = require "support.kube"

-- A ConfigMap, or another kind, as a table.
local function object(api_version, kind, name, fields)
	local made = { apiVersion = api_version, kind = kind, metadata = { name = name } }
	for key, value in pairs(fields or {}) do
		made[key] = value
	end
	return made
end

local function config_maps(namespace)
	return "/api/v1/namespaces/" .. namespace .. "/configmaps"
end

-- Who the server thinks that the driver is.
local function username(driver)
	local done = driver:request {
		method = "POST", path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		body = { apiVersion = "authentication.k8s.io/v1", kind = "SelfSubjectReview" },
	}
	assert(not done.err, done.err and done.err.message)
	return done.body.status.userInfo.username
end

local function account_token(namespace, name)
	local status, account = cluster.curl("POST", "/api/v1/namespaces/" .. namespace .. "/serviceaccounts", object("v1", "ServiceAccount", name))
	assert(status == 201, tostring(account.message))
	local path = ("/api/v1/namespaces/%s/serviceaccounts/%s/token"):format(namespace, name)
	local _, answer = cluster.curl("POST", path, { apiVersion = "authentication.k8s.io/v1", kind = "TokenRequest" })
	return answer.status.token
end

local function replace(path, text)
	files.write(path .. ".new", text)
	assert(os.rename(path .. ".new", path))
end

describe("the API client and a real API server", function()
	local driver, folder

	before_each(function()
		cluster.need()
		folder = files.folder()
	end)

	after_each(function()
		if driver then
			driver:finish()
			driver = nil
		end
	end)

	local function start(options)
		options = options or {}
		options.kubeconfig = options.kubeconfig or (not options.env and cluster.kubeconfig() or nil)
		driver = kube.start(options)
		assert(driver.ready, driver.fatal and driver.fatal.message)
		return driver
	end

	-- A kubeconfig for that server, with those credentials.
	local function config(user, more)
		local server = { server = cluster.server(), ["certificate-authority"] = cluster.ca() }
		for key, value in pairs(more or {}) do
			server[key] = value or nil
		end
		return kube.write_config(folder .. "/config", server, user)
	end

	it("reads the version", function()
		local _, version = cluster.curl("GET", "/version")
		local done = start():get "/version"
		assert.is_nil(done.err)
		assert.equal(version.gitVersion, done.body.gitVersion)
	end)

	it("writes and reads an object", function()
		local namespace = cluster.namespace()
		start()
		local done = driver:request { method = "POST", path = config_maps(namespace), body = object("v1", "ConfigMap", "a", { data = { key = "ä" } }) }
		assert.is_nil(done.err)
		local status, seen = cluster.curl("GET", config_maps(namespace) .. "/a")
		assert.equal(200, status)
		assert.equal("ä", seen.data.key)
		done = driver:request {
			method = "PATCH", path = config_maps(namespace) .. "/a", content_type = "application/merge-patch+json",
			body = { data = { key = "b" } },
		}
		assert.is_nil(done.err)
		assert.equal("b", driver:get(config_maps(namespace) .. "/a").body.data.key)
	end)

	it("streams a list and a watch", function()
		local namespace = cluster.namespace()
		for i = 1, 30 do
			cluster.curl("POST", config_maps(namespace), object("v1", "ConfigMap", "item-" .. i))
		end
		start()
		local _, listed = cluster.curl("GET", config_maps(namespace))
		local done = driver:request { path = config_maps(namespace), items = 1 }
		assert.is_nil(done.malformed)
		assert.equal(#listed.items, done.items)

		local query = "watch=true&resourceVersion=" .. listed.metadata.resourceVersion
		local id = driver:start { path = config_maps(namespace), query = query, frames = 1 }
		driver:event("head", id)
		cluster.curl("POST", config_maps(namespace), object("v1", "ConfigMap", "late"))
		cluster.curl("PATCH", config_maps(namespace) .. "/late", { data = { x = "1" } })
		cluster.curl("DELETE", config_maps(namespace) .. "/late")
		for _, expected in ipairs { "ADDED", "MODIFIED", "DELETED" } do
			local frame = driver:event("frame", id)
			assert.equal(expected, frame.type_text)
			assert.equal("late", frame.object.metadata.name)
		end
		driver:order("cancel", { id = id })
	end)

	it("sends at most a hundred calls at once, and all of them in the end", function()
		start()
		driver:order("burst", { id = "b", count = 250, path = "/version" })
		local done = driver:event("done", "b")
		assert.equal(250, done.good)
		assert.equal(100, done.most)
	end)

	describe("discovery", function()
		it("finds kinds and plurals of the core and of other groups", function()
			start()
			local found = driver:find { api_version = "v1", kind = "Pod" }
			assert.same({ "pods", true, true }, { found.plural, found.namespaced, found.watchable })
			found = driver:find { api_version = "apps/v1", plural = "deployments" }
			assert.same({ "Deployment", "deployments.apps" }, { found.kind, found.name })
			found = driver:find { api_version = "v1", kind = "Namespace" }
			assert.is_false(found.namespaced)
			found = driver:find { api_version = "authentication.k8s.io/v1", kind = "TokenReview" }
			assert.is_false(found.watchable)
			found = driver:find { api_version = "autoscaling/v1", kind = "Scale" }
			assert.equal("NoKind", found.err.reason)
		end)

		local slips = {
			{ "Deployment in the wrong group", "v1", "Deployment", "kind Deployment in apps/v1" },
			{ "another case", "apps/v1", "deployment", "kind Deployment in apps/v1" },
			{ "a plural for a kind", "v1", "pods", "kind Pod in v1" },
			{ "a wrong letter", "apps/v1", "Deploiment", "kind Deployment in apps/v1" },
			{ "an old version", "batch/v1beta1", "CronJob", "kind CronJob in batch/v1" },
		}
		for _, slip in ipairs(slips) do
			it("has a suggestion for " .. slip[1], function()
				local found = start():find { api_version = slip[2], kind = slip[3] }
				assert.equal("NoKind", found.err.reason)
				assert.truthy(found.err.message:find(slip[3], 1, true))
				assert.truthy(found.err.message:find("did you mean " .. slip[4], 1, true), found.err.message)
			end)
		end

		it("has no suggestion for a name that is like no other", function()
			local found = start():find { api_version = "example.com/v1", kind = "Zyzzogeton" }
			assert.equal("NoKind", found.err.reason)
			assert.is_nil(found.err.message:find("did you mean", 1, true))
		end)

		it("finds a kind that is defined later, and not one that is gone", function()
			start()
			local group = cluster.namespace() .. ".example.com"
			assert.equal("NoKind", driver:find { api_version = group .. "/v1", kind = "Late" }.err.reason)
			local definition = {
				apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition", metadata = { name = "lates." .. group },
				spec = {
					group = group, scope = "Namespaced", names = { plural = "lates", kind = "Late" },
					versions = { { name = "v1", served = true, storage = true,
						schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } },
				},
			}
			local path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
			local status, answer = cluster.curl("POST", path, definition)
			assert(status == 201, tostring(answer.message))
			finally(function()
				cluster.curl("DELETE", path .. "/lates." .. group)
			end)
			local found
			cluster.await(20, "the new kind", function()
				found = driver:find { api_version = group .. "/v1", kind = "Late" }
				return not found.err
			end)
			assert.equal("lates." .. group, found.name)
			cluster.curl("DELETE", path .. "/lates." .. group)
			cluster.await(20, "the end of the kind", function()
				driver:order("forget", { api_version = group .. "/v1" })
				found = driver:find { api_version = group .. "/v1", kind = "Late" }
				return found.err
			end)
			assert.equal("NoKind", found.err.reason)
		end)
	end)

	describe("errors", function()
		it("say NotFound in the server's words", function()
			local done = start():get "/api/v1/namespaces/default/pods/absent"
			assert.same({ 404, "NotFound", 'pods "absent" not found' }, { done.err.code, done.err.reason, done.err.message })
			assert.is_false(done.err.retryable)
		end)

		it("name the right that is missing", function()
			local user, why = cluster.user "eve"
			if not user then
				pending(why)
			end
			local done = start({ kubeconfig = user }):get "/api/v1/namespaces/default/secrets"
			assert.same({ 403, "Forbidden" }, { done.err.code, done.err.reason })
			assert.truthy(done.err.message:find('User "eve" cannot list resource "secrets"', 1, true))
		end)

		-- The server answers such writes before it has read their bodies, and ends the connection after a 401.
		it("are not lost with the connections that the server ends", function()
			local user, why = cluster.user "eve"
			if not user then
				pending(why)
			end
			local function refused(kubeconfig, code, words)
				start { kubeconfig = kubeconfig }
				for _ = 1, 100 do
					local done = driver:request { method = "POST", path = config_maps "default", body = object("v1", "ConfigMap", "a") }
					assert.same({ code, false }, { done.err.code, done.err.outcome_unknown })
					assert.equal(words, done.err.message:sub(1, #words))
				end
				driver:finish()
			end
			refused(user, 403, 'configmaps is forbidden: User "eve" cannot create')
			refused(config { token = "stale" }, 401, "Unauthorized: " .. cluster.server())
			driver = nil
		end)

		it("say where credentials that are not accepted came from, without showing them", function()
			local path = config { token = "secret-word-of-a-token" }
			local done = start({ kubeconfig = path }):get "/api/v1/namespaces"
			assert.same({ 401, "Unauthorized" }, { done.err.code, done.err.reason })
			assert.truthy(done.err.message:find(path, 1, true), done.err.message)
			assert.is_nil(driver:output():find("secret-word", 1, true))
		end)

		it("say that a certificate is not trusted, and what to look at", function()
			local path = config({ token = "x" }, { ["certificate-authority"] = files.certificate(folder) })
			local done = start({ kubeconfig = path }):get "/version"
			assert.equal("Connection", done.err.reason)
			local message = done.err.message
			assert.truthy(message:find("the certificate of " .. cluster.server() .. " is not trusted", 1, true), message)
			assert.truthy(message:find("check certificate-authority of " .. path, 1, true), message)
			assert.is_false(done.err.retryable)
		end)

		it("check the name in the certificate against tls-server-name", function()
			local path = config({ token = "x" }, { ["tls-server-name"] = "wrong.example.com" })
			local done = start({ kubeconfig = path }):get "/version"
			assert.truthy(done.err.message:find("is not trusted", 1, true), done.err.message)
			driver:finish()
			path = config({ token = "x" }, { ["tls-server-name"] = "kubernetes.default.svc" })
			assert.equal(401, start({ kubeconfig = path }):get("/api/v1/namespaces").err.code)
		end)

		it("tell a conflict, a name that exists and an invalid object apart", function()
			local namespace = cluster.namespace()
			local maps = config_maps(namespace)
			local _, first = cluster.curl("POST", maps, object("v1", "ConfigMap", "a"))
			cluster.curl("PATCH", maps .. "/a", { data = { x = "1" } })
			start()
			local done = driver:request { method = "PUT", path = maps .. "/a", body = first }
			assert.same({ 409, "Conflict" }, { done.err.code, done.err.reason })
			done = driver:request { method = "POST", path = maps, body = object("v1", "ConfigMap", "a") }
			assert.same({ 409, "AlreadyExists" }, { done.err.code, done.err.reason })
			done = driver:request { method = "POST", path = maps, body = object("v1", "ConfigMap", "Not A Name", { data = { ["a b"] = "" } }) }
			assert.same({ 422, "Invalid", false }, { done.err.code, done.err.reason, done.err.outcome_unknown })
			local fields = {}
			for _, cause in ipairs(done.causes) do
				fields[cause.field] = cause.reason
			end
			assert.equal("FieldValueInvalid", fields["metadata.name"])
			assert.equal("FieldValueInvalid", fields["data[a b]"])
			done = driver:request { method = "POST", path = maps, body = "{]" }
			assert.same({ 400, "BadRequest" }, { done.err.code, done.err.reason })
		end)

		it("never let a name reach another object than the one of that name", function()
			local namespace = cluster.namespace()
			local maps = config_maps(namespace)
			cluster.curl("POST", maps, object("v1", "ConfigMap", "a"))
			start()
			-- What the paths of resource.c hold for "..", "a/status" and "".
			for _, segment in ipairs { "%252E%252E", "a%252Fstatus", "%25" } do
				local done = driver:request { method = "DELETE", path = maps .. "/" .. segment }
				assert(done.err and (done.err.code == 404 or done.err.code == 400), segment)
			end
			assert.equal(200, (cluster.curl("GET", maps .. "/a")))
		end)

		it("log each warning of the server once", function()
			start()
			driver:get "/api/v1/componentstatuses"
			driver:get "/api/v1/componentstatuses"
			driver:finish()
			local _, count = driver.child:stderr():gsub("ComponentStatus is deprecated", "")
			driver = nil
			assert.equal(1, count)
		end)
	end)

	describe("credentials", function()
		it("are a client certificate, from files beside the kubeconfig", function()
			local user, why = cluster.user "carol"
			if not user then
				pending(why)
			end
			local base = user:gsub("%.kubeconfig$", "")
			files.write(folder .. "/client.crt", files.read(base .. ".crt"))
			files.write(folder .. "/client.key", files.read(base .. ".key"))
			files.write(folder .. "/ca.crt", files.read(cluster.ca()))
			local path = config({ ["client-certificate"] = "client.crt", ["client-key"] = "client.key" },
				{ ["certificate-authority"] = "ca.crt" })
			assert.equal("carol", username(start { kubeconfig = path }))
		end)

		it("are a new client certificate a minute after its files have changed", function()
			local carol, why = cluster.user "carol"
			local dave = cluster.user "dave"
			if not carol then
				pending(why)
			end
			local function use(user)
				local base = user:gsub("%.kubeconfig$", "")
				replace(folder .. "/client.crt", files.read(base .. ".crt"))
				replace(folder .. "/client.key", files.read(base .. ".key"))
			end
			use(carol)
			start { kubeconfig = config { ["client-certificate"] = "client.crt", ["client-key"] = "client.key" } }
			assert.equal("carol", username(driver))
			use(dave)
			assert.equal("carol", username(driver))
			driver:order("advance", { seconds = 61 })
			assert.equal("dave", username(driver))
		end)

		it("are read again at once when the server's certificate is not trusted any more, or a key does not fit", function()
			local carol, why = cluster.user "carol"
			local dave = cluster.user "dave"
			if not carol then
				pending(why)
			end
			local function copy(user, ending)
				replace(folder .. "/client." .. ending, files.read((user:gsub("kubeconfig$", ending))))
			end
			local ca = files.write(folder .. "/ca.crt", files.read((carol:gsub("kubeconfig$", "crt"))))
			copy(carol, "crt")
			copy(dave, "key")
			start { kubeconfig = config({ ["client-certificate"] = "client.crt", ["client-key"] = "client.key" },
				{ ["certificate-authority"] = ca }) }
			local done = driver:get "/version"
			assert.truthy(done.err.message:find("of " .. folder .. "/config cannot be used", 1, true), done.err.message)
			copy(carol, "key")
			assert.truthy(driver:get("/version").err.message:find("is not trusted", 1, true))
			replace(ca, files.read(cluster.ca()))
			assert.equal("carol", username(driver))
		end)

		it("are a token from a file, read again after a minute while watches go on", function()
			local namespace = cluster.namespace()
			local path = folder .. "/token"
			files.write(path, account_token(namespace, "first") .. "\n")
			cluster.curl("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/" .. namespace .. "/rolebindings", {
				apiVersion = "rbac.authorization.k8s.io/v1", kind = "RoleBinding", metadata = { name = "view" },
				roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = "view" },
				subjects = { { kind = "ServiceAccount", name = "first", namespace = namespace } },
			})
			start { kubeconfig = config { tokenFile = "token" } }
			assert.equal("system:serviceaccount:" .. namespace .. ":first", username(driver))
			local id
			cluster.await(20, "the right to watch", function()
				id = driver:start { path = config_maps(namespace), query = "watch=true", frames = 1 }
				return driver:event("head", id).status == 200
			end)
			replace(path, account_token(namespace, "second"))
			assert.equal("system:serviceaccount:" .. namespace .. ":first", username(driver))
			driver:order("advance", { seconds = 61 })
			assert.equal("system:serviceaccount:" .. namespace .. ":second", username(driver))
			cluster.curl("POST", config_maps(namespace), object("v1", "ConfigMap", "after"))
			local frame
			repeat
				frame = driver:event("frame", id)
			until frame.object.metadata.name == "after"
			driver:order("cancel", { id = id })
		end)

		it("are read again at once when the server refuses them, and the request is repeated", function()
			local namespace = cluster.namespace()
			local path = folder .. "/token"
			files.write(path, "stale")
			start { kubeconfig = config { tokenFile = "token" } }
			assert.equal(401, driver:get("/api/v1/namespaces").err.code)
			replace(path, account_token(namespace, "fresh"))
			assert.equal("system:serviceaccount:" .. namespace .. ":fresh", username(driver))
		end)

		it("stay in use when the token's file is gone", function()
			local namespace = cluster.namespace()
			local path = files.write(folder .. "/token", account_token(namespace, "only"))
			start { kubeconfig = config { tokenFile = "token" } }
			assert.equal("system:serviceaccount:" .. namespace .. ":only", username(driver))
			os.remove(path)
			driver:order("advance", { seconds = 61 })
			assert.equal("system:serviceaccount:" .. namespace .. ":only", username(driver))
			assert.truthy(driver.child:stderr():find("cannot read " .. path, 1, true))
		end)

		it("are those of the pod inside a cluster", function()
			local namespace = cluster.namespace()
			files.write(folder .. "/token", account_token(namespace, "pod"))
			files.write(folder .. "/namespace", namespace)
			files.write(folder .. "/ca.crt", files.read(cluster.ca()))
			local host, port = cluster.server():match "^https://(.-):(%d+)$"
			start { env = { PERILUNE_SERVICEACCOUNT_DIR = folder, KUBERNETES_SERVICE_HOST = host, KUBERNETES_SERVICE_PORT = port } }
			assert.is_true(driver.ready.in_cluster)
			assert.equal(namespace, driver.ready.namespace)
			assert.equal("system:serviceaccount:" .. namespace .. ":pod", username(driver))
		end)
	end)

	describe("a dry run", function()
		it("changes nothing but leases", function()
			local namespace = cluster.namespace()
			start { dry_run = true, kubeconfig = cluster.kubeconfig() }
			local leases = "/apis/coordination.k8s.io/v1/namespaces/" .. namespace .. "/leases"
			local done = driver:request { method = "POST", path = config_maps(namespace), body = object("v1", "ConfigMap", "a") }
			assert.is_nil(done.err)
			assert.equal("a", done.body.metadata.name)
			assert.equal(404, (cluster.curl("GET", config_maps(namespace) .. "/a")))
			cluster.curl("POST", config_maps(namespace), object("v1", "ConfigMap", "kept"))
			local options = '{"kind":"DeleteOptions","apiVersion":"v1",'
			for _, body in ipairs { "", options .. '"dryRun":null}', options .. '"propagationPolicy":"Background"}' } do
				done = driver:request { method = "DELETE", path = config_maps(namespace) .. "/kept", body = body }
				assert.is_nil(done.err)
				assert.equal(200, (cluster.curl("GET", config_maps(namespace) .. "/kept")))
			end
			done = driver:request { method = "POST", path = leases, body = object("coordination.k8s.io/v1", "Lease", "l") }
			assert.is_nil(done.err)
			assert.equal(200, (cluster.curl("GET", leases .. "/l")))
		end)
	end)
end)

