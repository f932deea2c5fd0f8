-- Discovery, lists, watches and selectors: the sandbox answers as a real API server does.
local contract = require "support.contract"

local SECRETS = "/api/v1/namespaces/NS/secrets"

describe("the sandbox and the API server agree on", function()
	local pair

	before_each(function()
		pair = contract.open()
	end)

	after_each(function()
		if pair then
			pair:close()
		end
	end)

	local function make(...)
		for _, name in ipairs { ... } do
			pair:same("POST", SECRETS, ('{"metadata":{"name":"%s","labels":{"n":"%s"}}}'):format(name, name))
		end
	end

	it("paths that lead nowhere", function()
		for _, path in ipairs { "/api/v1/foos", "/apis/foo/v1", "/apis/foo/v1/bars", "/foo", "/apis/apps/v9/x", "/apis/foo" } do
			pair:same("GET", path)
		end
		pair:same("GET", "/api/v1/namespaces/NS")
		pair:same("GET", "/api/v1/namespaces/nowhere/configmaps/x")
		pair:same("DELETE", "/api/v1/nodes/nowhere")
		pair:same("PUT", "/api/v1/configmaps", "{}")
		pair:same("GET", "/apis/apps")
		pair:same("GET", "/apis/coordination.k8s.io/v1")
		pair:same("GET", "/apis/apps/v1")
		pair:same("GET", "/apis/batch/v1")
	end)

	it("aggregated discovery", function()
		local accept = { "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json" }
		local found = {}
		for _, which in ipairs { "real", "sandbox" } do
			local _, all, content_type = pair:send(which, "GET", "/apis", nil, accept)
			local one = { content_type, all.kind, all.apiVersion }
			for _, group in ipairs(all.items) do
				if group.metadata.name == "apps" or group.metadata.name == "coordination.k8s.io" then
					one[group.metadata.name] = { group.metadata, group.versions[1] }
				end
			end
			found[which] = one
		end
		assert.same(found.real, found.sandbox)
	end)

	it("lists, whole and as metadata and as tables", function()
		pair:same("GET", SECRETS)
		make("a", "b")
		pair:same("GET", SECRETS)
		pair:same("GET", SECRETS, nil, { "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json" })
		pair:same("GET", SECRETS .. "/a", nil, { "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" })
		pair:same("GET", SECRETS, nil, { "Accept: application/json;as=Table;v=v1;g=meta.k8s.io" })
		pair:same("GET", SECRETS, nil, { "Accept: text/plain" })
	end)

	it("selectors", function()
		make("a", "b", "c")
		for _, query in ipairs {
			"labelSelector=n=a", "labelSelector=n!=a", "labelSelector=n+in+(a,c)", "labelSelector=n+notin+(a)", "labelSelector=!n",
			"labelSelector=n,n==b", "labelSelector=a=(", "fieldSelector=metadata.name=b", "fieldSelector=metadata.name!=b,type=Opaque",
			"fieldSelector=type=x", "fieldSelector=x=1",
		} do
			pair:same("GET", SECRETS .. "?" .. query)
		end
		pair:same("GET", "/api/v1/namespaces/NS/configmaps?fieldSelector=x=1")
		pair:same("GET", "/api/v1/namespaces/NS/pods?fieldSelector=spec.nodeName=x,status.phase!=Running")
	end)

	it("options that lists and watches refuse", function()
		for _, query in ipairs {
			"resourceVersionMatch=Exact", "resourceVersion=abc", "resourceVersion=99999999999",
			"resourceVersion=0&resourceVersionMatch=Exact", "watch=1&sendInitialEvents=true",
			"watch=1&resourceVersionMatch=Exact&resourceVersion=1",
		} do
			pair:same("GET", SECRETS .. "?" .. query)
		end
	end)

	it("pages", function()
		make("a", "b", "c")
		for which in pairs { real = true, sandbox = true } do
			local _, first = pair:send(which, "GET", SECRETS .. "?limit=2")
			assert.equal(1, first.metadata.remainingItemCount)
			assert.equal(2, #first.items)
			pair:send(which, "DELETE", SECRETS .. "/c")
			local _, second = pair:send(which, "GET", SECRETS .. "?limit=2&continue=" .. first.metadata.continue)
			assert.equal("c", second.items[1].metadata.name)
			assert.equal(first.metadata.resourceVersion, second.metadata.resourceVersion)
			assert.is_nil(second.metadata.continue)
		end
	end)

	it("watches that begin with what is there", function()
		make("a", "b")
		pair:same("GET", SECRETS .. "?watch=1&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name=a")
		pair:same("GET", SECRETS .. "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
			.. "&allowWatchBookmarks=true")
	end)

	it("events after a version", function()
		local versions = {}
		for which in pairs { real = true, sandbox = true } do
			versions[which] = select(2, pair:send(which, "GET", SECRETS)).metadata.resourceVersion
			pair:send(which, "POST", SECRETS, '{"metadata":{"name":"a","labels":{"x":"1"}}}')
			pair:send(which, "PATCH", SECRETS .. "/a", '{"metadata":{"labels":{"x":"2"}}}')
			pair:send(which, "PATCH", SECRETS .. "/a", '{"metadata":{"labels":{"x":"1"}}}')
			pair:send(which, "DELETE", SECRETS .. "/a")
		end
		local function kinds(which, query)
			local _, text = pair:send(which, "GET", ("%s?watch=1&timeoutSeconds=1&resourceVersion=%s%s"):format(SECRETS,
				versions[which], query))
			local found = {}
			for kind in text:gmatch '"type":"(%u+)"' do
				found[#found + 1] = kind
			end
			return table.concat(found, " ")
		end
		for query, expected in pairs {
			[""] = "ADDED MODIFIED MODIFIED DELETED", ["&labelSelector=x%3D1"] = "ADDED DELETED ADDED DELETED",
			["&labelSelector=x%3D2"] = "ADDED DELETED", ["&labelSelector=x%3D3"] = "",
		} do
			assert.equal(expected, kinds("real", query))
			assert.equal(expected, kinds("sandbox", query))
		end
	end)
end)
