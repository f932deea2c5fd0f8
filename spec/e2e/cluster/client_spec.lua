-- The API client as a script sees it, against a real API server; checked with an independent client.
local cluster = require "support.cluster"
local host = require "support.host"
local stub = require "support.stub"

local before_each, it = cluster.when_up(before_each, it)

describe("the API client", function()
	local namespace

	before_each(function()
		namespace = cluster.namespace()
	end)

	-- What the script's function says. In it, `ns` is the namespace and map(name, data) makes a ConfigMap.
	local function ask(text, options)
		options = options or {}
		options.kubeconfig = options.kubeconfig or cluster.kubeconfig()
		options.set = { namespace = namespace }
		options[1] = ([[
			local ns = k8s.config.namespace
			local function map(name, data)
				return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = ns }, data = data }
			end
		]]):gsub("%s+", " ") .. text
		return host.ask(options)
	end

	local function path(name)
		return "/api/v1/namespaces/" .. namespace .. "/configmaps" .. (name and "/" .. name or "")
	end

	it("creates, gets, updates and deletes", function()
		local answer = ask [[
			local created = assert(k8s.create(map("a", { x = "1" })))
			local got = assert(k8s.get(map "a"))
			got.data.x = "2"
			local updated = assert(k8s.update(got))
			local named = assert(k8s.get { apiVersion = "v1", kind = "ConfigMap", namespace = ns, name = "a" })
			local node = assert(k8s.get { apiVersion = "v1", kind = "Namespace", name = ns })
			assert(k8s.create(map "gone"))
			local deleted = assert(k8s.delete(map "gone"))
			return { created, updated, named, node, deleted }
		]]
		local created, updated, named, node, deleted = unpack(answer)
		assert.same({ "v1", "ConfigMap", "1" }, { created.apiVersion, created.kind, created.data.x })
		assert.equal(created.metadata.uid, updated.metadata.uid)
		assert.same(updated, named)
		assert.equal(namespace, node.metadata.name)
		assert.equal("Success", deleted.status)
		local status, seen = cluster.curl("GET", path "a")
		assert.equal(200, status)
		assert.equal("2", seen.data.x)
		assert.equal(updated.metadata.resourceVersion, seen.metadata.resourceVersion)
		assert.equal(404, (cluster.curl("GET", path "gone")))
	end)

	it("lists all pages, with apiVersion and kind in each item", function()
		local requests = {}
		for i = 1, 55 do
			requests[i] = { "POST", path(), { metadata = { name = ("item-%02d"):format(i), labels = { odd = tostring(i % 2 == 1) } } } }
		end
		cluster.send(requests, true)
		local answer = ask [[
			local kind = { apiVersion = "v1", kind = "ConfigMap", namespace = ns, page_size = 10, field_selector = "metadata.name!=kube-root-ca.crt" }
			local all = assert(k8s.list(kind))
			kind.label_selector = "odd=true"
			local odd = assert(k8s.list(kind))
			local none = assert(k8s.list { apiVersion = "v1", kind = "Pod", namespace = ns })
			local everywhere = assert(k8s.list { apiVersion = "v1", kind = "ConfigMap", label_selector = "odd" })
			return { all = all, odd = #odd, none = none, everywhere = #everywhere >= 55 }
		]]
		assert.equal(55, #answer.all)
		for i, item in ipairs(answer.all) do
			assert.same({ "v1", "ConfigMap", ("item-%02d"):format(i) }, { item.apiVersion, item.kind, item.metadata.name })
		end
		assert.equal(28, answer.odd)
		assert.same({}, answer.none)
		assert.is_true(answer.everywhere)
	end)

	local function deployment(name)
		return ([[{
			apiVersion = "apps/v1", kind = "Deployment", metadata = { name = "%s", namespace = ns },
			spec = { selector = { matchLabels = { app = "a" } }, template = { metadata = { labels = { app = "a" } }, spec = {
				containers = { { name = "one", image = "example.com/one:1" }, { name = "two", image = "example.com/two:1" } } } } },
		}]]):format(name)
	end

	it("patches by merge, by JSON patch and strategically", function()
		local answer = ask([[
			assert(k8s.create(map("a", { x = "1", y = "2" })))
			local merged = assert(k8s.patch(map "a", { data = { x = k8s.null, z = "3" } }))
			local changed = assert(k8s.patch(map "a", { { op = "replace", path = "/data/y", value = "4" } }, { type = "json" }))
			assert(k8s.create(]] .. deployment "d" .. [[))
			local patched = assert(k8s.patch({ apiVersion = "apps/v1", kind = "Deployment", namespace = ns, name = "d" },
				{ spec = { template = { spec = { containers = { { name = "two", image = "example.com/two:2" } } } } } }, { type = "strategic" }))
			return { merged.data, changed.data, patched.spec.template.spec.containers }
		]])
		assert.same({ y = "2", z = "3" }, answer[1])
		assert.same({ y = "4", z = "3" }, answer[2])
		local images = {}
		for _, container in ipairs(answer[3]) do
			images[container.name] = container.image
		end
		assert.same({ one = "example.com/one:1", two = "example.com/two:2" }, images)
	end)

	it("writes the status alone", function()
		local answer = ask([[
			local d = assert(k8s.create(]] .. deployment "d" .. [[))
			d.status = { observedGeneration = 1, replicas = 3 }
			d.spec.paused = true
			local updated = assert(k8s.status.update(d))
			local patched = assert(k8s.status.patch(d, { status = { readyReplicas = 2 }, spec = { paused = true } }))
			return { updated.status.replicas, updated.spec.paused or false, patched.status, patched.spec.paused or false }
		]])
		assert.same({ 3, false, { observedGeneration = 1, replicas = 3, readyReplicas = 2 }, false }, answer)
	end)

	it("deletes with propagation and preconditions", function()
		local answer = ask [[
			local function child(name, owner)
				local object = map(name)
				object.metadata.ownerReferences = { {
					apiVersion = "v1", kind = "ConfigMap", name = owner.metadata.name, uid = owner.metadata.uid, blockOwnerDeletion = true,
				} }
				return assert(k8s.create(object))
			end
			for _, name in ipairs { "background", "foreground", "orphan" } do
				child(name .. "-child", assert(k8s.create(map(name))))
			end
			assert(k8s.delete(map "background", { propagation = "Background" }))
			local waiting = assert(k8s.delete(map "foreground", { propagation = "Foreground" }))
			assert(k8s.delete(map "orphan", { propagation = "Orphan" }))
			local kept = assert(k8s.create(map "kept"))
			local _, err = k8s.delete(kept, { preconditions = { uid = "another" } })
			local _, stale = k8s.delete(kept, { preconditions = { resourceVersion = "1" } })
			assert(k8s.delete(kept, { preconditions = { uid = kept.metadata.uid } }))
			return { waiting = waiting.metadata.finalizers, err = err, stale = stale }
		]]
		assert.same({ "foregroundDeletion" }, answer.waiting)
		assert.same({ 409, "Conflict" }, { answer.err.code, answer.err.reason })
		assert.same({ 409, "Conflict" }, { answer.stale.code, answer.stale.reason })
		cluster.await(30, "what the garbage collector does", function()
			local present = {}
			for _, item in ipairs(select(2, cluster.curl("GET", path())).items) do
				present[item.metadata.name] = item
			end
			local orphan = present["orphan-child"]
			return not present["background-child"] and not present["foreground-child"] and not present.foreground and not present.orphan
				and orphan and not orphan.metadata.ownerReferences
		end)
		assert.equal(404, (cluster.curl("GET", path "kept")))
	end)

	it("tries a write out with dry_run, and validates fields when asked to", function()
		local answer = ask [[
			local tried = assert(k8s.create(map("tried"), { dry_run = true }))
			local wrong = map("wrong")
			wrong.dada = { x = "1" }
			local _, err = k8s.create(wrong, { field_validation = "Strict" })
			return { tried.metadata.uid ~= nil, err }
		]]
		assert.is_true(answer[1])
		assert.same({ 400, "BadRequest" }, { answer[2].code, answer[2].reason })
		assert.truthy(answer[2].message:find('unknown field "dada"', 1, true))
		assert.equal(404, (cluster.curl("GET", path "tried")))
	end)

	describe("fails with", function()
		-- The err of a call, as a table, and its text.
		local function err_of(call, options)
			local answer = ask(("local value, err = %s return { value = value, err = err, text = tostring(err) }"):format(call), options)
			assert.is_nil(answer.value)
			return answer.err, answer.text
		end

		local function check(err, code, reason, retryable)
			assert.same({ code, reason, retryable or false, false }, { err.code, err.reason, err.retryable, err.outcome_unknown })
		end

		it("NotFound", function()
			local err, text = err_of 'k8s.get(map "none")'
			check(err, 404, "NotFound")
			assert.equal('configmaps "none" not found', err.message)
			assert.equal('NotFound: configmaps "none" not found', text)
		end)

		it("AlreadyExists", function()
			check(err_of 'k8s.create(map "kube-root-ca.crt")', 409, "AlreadyExists")
		end)

		it("Conflict", function()
			check(err_of '(function() local a = map "kube-root-ca.crt" a.metadata.resourceVersion = "1" return k8s.update(a) end)()', 409, "Conflict")
		end)

		it("Invalid, with its causes", function()
			local err = err_of [[k8s.create { apiVersion = "v1", kind = "Pod", metadata = { name = "p", namespace = ns },
				spec = { containers = { { name = "UPPER", image = "example.com/a" } } } }]]
			check(err, 422, "Invalid")
			assert.same({ "spec.containers[0].name", "FieldValueInvalid" }, { err.causes[1].field, err.causes[1].reason })
			assert.truthy(err.causes[1].message:find("UPPER", 1, true))
		end)

		it("Forbidden", function()
			local user, kubeconfig = cluster.need_user()
			local err = err_of('k8s.list { apiVersion = "v1", kind = "Secret", namespace = ns }', { kubeconfig = kubeconfig })
			check(err, 403, "Forbidden")
			assert.truthy(err.message:find(('User "%s" cannot list resource "secrets"'):format(user), 1, true))
		end)

		it("NoKind", function()
			local err = err_of 'k8s.get { apiVersion = "v1", kind = "Deployment", name = "d", namespace = ns }'
			check(err, nil, "NoKind")
			assert.truthy(err.message:find("apps/v1", 1, true), err.message)
		end)

		it("BadRequest for a namespaced kind without a namespace", function()
			local err = err_of 'k8s.get { apiVersion = "v1", kind = "ConfigMap", name = "a" }'
			check(err, nil, "BadRequest")
			assert.truthy(err.message:find("ConfigMap is namespaced", 1, true), err.message)
			check(err_of 'k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" } }', nil, "BadRequest")
		end)

		it("Timeout", function()
			check(err_of 'k8s.list { apiVersion = "v1", kind = "ConfigMap", timeout = 0.001 }', nil, "Timeout", true)
			local err = err_of '(assert(k8s.get(map "kube-root-ca.crt")) and nil), select(2, k8s.create(map "late", { timeout = 0.001 }))'
			assert.same({ "Timeout", true }, { err.reason, err.retryable })
			assert.equal("boolean", type(err.outcome_unknown))
		end)

		it("RequestEntityTooLarge, of a body that the server does not take", function()
			check(err_of 'k8s.create(map("large", { x = ("x"):rep(4 * 1024 * 1024) }))', 413, "RequestEntityTooLarge")
		end)

		-- A user for whom the server works at one request at a time, and rejects the others.
		local function throttle(user)
			cluster.make("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", {
				metadata = { name = user },
				spec = { type = "Limited", limited = {
					nominalConcurrencyShares = 0, lendablePercent = 0, borrowingLimitPercent = 0, limitResponse = { type = "Reject" } } },
			})
			cluster.make("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", { metadata = { name = user }, spec = {
				priorityLevelConfiguration = { name = user }, matchingPrecedence = 2,
				rules = { {
					subjects = { { kind = "User", user = { name = user } } },
					resourceRules = { { verbs = { "*" }, apiGroups = { "*" }, resources = { "*" }, namespaces = { "*" }, clusterScope = true } },
				} },
			} })
		end

		it("TooManyRequests, where the server asks to wait for longer than the deadline", function()
			local user, kubeconfig = cluster.need_user()
			throttle(user)
			local err
			cluster.await(20, "the server throttles", function()
				err = ask([[
					local left, rejected = 50, nil
					for _ = 1, left do
						k8s.on_synced(function()
							local _, err = k8s.list { apiVersion = "v1", kind = "Secret", timeout = 0.9 }
							rejected = err.code == 429 and err or rejected
							left = left - 1
						end)
					end
					repeat k8s.sleep(0.01) until left == 0
					return { err = rejected }
				]], { kubeconfig = kubeconfig }).err
				return err
			end)
			check(err, 429, "TooManyRequests", true)
			assert.equal(1, err.retry_after)
		end)

		it("InternalError, of which nobody knows whether it has happened, where a webhook does not answer", function()
			local name, silent = cluster.random_name(), stub.listen()
			cluster.make("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", { metadata = { name = name }, webhooks = { {
				name = "silent.example.com", sideEffects = "None", admissionReviewVersions = { "v1" }, timeoutSeconds = 1, failurePolicy = "Fail",
				namespaceSelector = { matchLabels = { ["kubernetes.io/metadata.name"] = namespace } },
				clientConfig = { url = silent.url:gsub("^http:", "https:") },
				rules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" }, resources = { "configmaps" } } },
			} } })
			local err
			cluster.await(20, "the webhook is called", function()
				local answer = ask [[ local _, err = k8s.create { apiVersion = "v1", kind = "ConfigMap",
					metadata = { generateName = "a-", namespace = ns } } return { err = err } ]]
				err = answer.err
				return err
			end)
			silent:close()
			assert.same({ 500, "InternalError", true, true }, { err.code, err.reason, err.retryable, err.outcome_unknown })
		end)

		it("Connection", function()
			local kubeconfig = require("support.cli").kubeconfig(require("support.files").folder())
			check(err_of('k8s.get(map "a")', { kubeconfig = kubeconfig }), nil, "Connection", true)
		end)

		it("what assert raises and pcall catches", function()
			local answer = ask [[
				local ok, problem = pcall(function() assert(k8s.get(map "none")) end)
				return { ok = ok, code = problem.code, text = tostring(problem) }
			]]
			assert.same({ ok = false, code = 404, text = 'NotFound: configmaps "none" not found' }, answer)
		end)
	end)

	local misuses = {
		['k8s.get "a"'] = "k8s.get takes a table",
		['k8s.get { kind = "Pod", name = "a" }'] = "k8s.get: apiVersion is missing",
		['k8s.get { apiVersion = "v1", kind = "Pod" }'] = "k8s.get: name is missing",
		['k8s.get { apiVersion = "v1", kind = "Pod", name = 7 }'] = "name must be a text",
		['k8s.list { apiVersion = "v1", kind = "Pod", label = "a" }'] = "unknown option 'label'",
		['k8s.list { apiVersion = "v1", kind = "Pod", page_size = "ten" }'] = "page_size",
		['k8s.list { apiVersion = "v1", kind = "Pod", page_size = 0 }'] = "page_size must be a whole number from 1 on",
		['k8s.get { apiVersion = "v1", kind = "Pod", name = ("x"):rep(100000) }'] = "name has 100000 characters, 1024 at most",
		['k8s.patch(map "a", "x")'] = "takes the patch as a table",
		['k8s.patch(map "a", {}, { type = "yaml" })'] = "type must be merge, json or strategic",
		['k8s.delete(map "a", { propagation = "No" })'] = "propagation must be",
		['k8s.create(map "a", { dryrun = true })'] = "unknown option 'dryrun', did you mean 'dry_run'?",
		['k8s.create(map("a", { x = print }))'] = "data.x: a function can't be JSON",
		['k8s.status.update(map "a", { timeout = "soon" })'] = "timeout",
	}
	for call, message in pairs(misuses) do
		it("raises at the script's own line for " .. call, function()
			local answer = ask(("local ok, problem = pcall(function()\n%s\nend) return { ok = ok, problem = problem }"):format(call))
			assert.is_false(answer.ok)
			assert.truthy(answer.problem:find("/script%.lua:2: "), answer.problem)
			assert.truthy(answer.problem:find(message, 1, true), answer.problem)
		end)
	end
end)
