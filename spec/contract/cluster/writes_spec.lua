-- Creating, updating and deleting: the sandbox answers as a real API server does.
local contract = require "support.contract"

local MAPS = "/api/v1/namespaces/NS/configmaps"

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

	it("new objects, and what is wrong with them", function()
		pair:same("POST", MAPS, '{"metadata":{"name":"a","labels":{"x":"1"}},"data":{"k":"v"}}')
		pair:same("POST", MAPS, '{"metadata":{"name":"a"}}')
		pair:same("POST", MAPS, '{"metadata":{"name":"A_"}}')
		pair:same("POST", MAPS, '{"metadata":{}}')
		pair:same("POST", MAPS, '{"metadata":{"name":"b","namespace":"default"}}')
		pair:same("POST", MAPS, '{"metadata":{"name":"b","resourceVersion":"1"}}')
		pair:same("POST", MAPS, '{"metadata":{"name":"b","labels":{"a b":"c d"}}}')
		pair:same("POST", MAPS, '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}')
		pair:same("POST", MAPS, '{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"b"}}')
		pair:same("POST", MAPS, '{"apiVersion')
		pair:same("POST", MAPS, "{}", { "Content-Type: text/plain" })
		pair:same("POST", MAPS .. "/a", "{}")
		pair:same("POST", MAPS, '{"metadata":{"name":"c","foo":1},"dada":{"x":"1"},"data":{"x":"1"}}')
		pair:same("POST", MAPS .. "?fieldValidation=Strict", '{"metadata":{"name":"d"},"dada":{"x":"1"}}')
		pair:same("POST", "/api/v1/namespaces/NS/pods", '{"metadata":{"name":"p"},"spec":{"containers":[{"name":"UPPER","image":"x"}]}}')
		pair:same("POST", "/api/v1/namespaces/nowhere/configmaps", '{"metadata":{"name":"a"}}')
		pair:same("POST", "/api/v1/namespaces/NS/secrets", '{"metadata":{"name":"s"},"stringData":{"a":"hello"}}')
		pair:same("POST", "/api/v1/namespaces/NS/services", '{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}')
		pair:same("POST", "/api/v1/namespaces/NS/pods", '{"metadata":{"name":"q"},"spec":{}}')
	end)

	it("dry runs", function()
		pair:same("POST", MAPS .. "?dryRun=All", '{"metadata":{"name":"a"}}')
		pair:same("GET", MAPS .. "/a")
	end)

	it("updates", function()
		pair:same("POST", MAPS, '{"metadata":{"name":"a","labels":{"x":"1"}},"data":{"k":"v"}}')
		pair:same("PUT", MAPS .. "/a", '{"metadata":{"name":"a","labels":{"x":"2"}},"data":{"k":"v","l":"w"}}')
		pair:same("PUT", MAPS .. "/a", '{"metadata":{"name":"a","resourceVersion":"1"}}')
		pair:same("PUT", MAPS .. "/a", '{"metadata":{"name":"a","uid":"1"}}')
		pair:same("PUT", MAPS .. "/a", '{"metadata":{"name":"c"}}')
		pair:same("PUT", MAPS .. "/a", '{"data":{}}')
		pair:same("PUT", MAPS .. "/c", '{"metadata":{"name":"c"}}')
		pair:same("PUT", MAPS, '{"metadata":{"name":"c"}}')
		pair:same("GET", MAPS .. "/a")
	end)

	it("leases, which are updated only at a version", function()
		local leases = "/apis/coordination.k8s.io/v1/namespaces/NS/leases"
		pair:same("POST", leases, '{"metadata":{"name":"l"},"spec":{"holderIdentity":"me"}}')
		pair:same("PUT", leases .. "/l", '{"metadata":{"name":"l"},"spec":{"holderIdentity":"you"}}')
	end)

	it("deletes, with preconditions and finalizers", function()
		pair:same("POST", MAPS, '{"metadata":{"name":"a","finalizers":["example.com/x"]}}')
		pair:same("DELETE", MAPS .. "/a", '{"preconditions":{"uid":"x"}}')
		pair:same("DELETE", MAPS .. "/a", '{"preconditions":{"resourceVersion":"1"}}')
		pair:same("DELETE", MAPS .. "/a?dryRun=All")
		pair:same("DELETE", MAPS .. "/a")
		pair:same("DELETE", MAPS .. "/a")
		pair:same("PATCH", MAPS .. "/a", '{"metadata":{"finalizers":null}}')
		pair:same("GET", MAPS .. "/a")
		pair:same("DELETE", MAPS .. "/a")
		pair:same("POST", "/api/v1/namespaces/NS/secrets", '{"metadata":{"name":"s","labels":{"a":"b"}}}')
		pair:same("DELETE", "/api/v1/namespaces/NS/secrets?labelSelector=a")
		pair:same("GET", "/api/v1/namespaces/NS/secrets")
		pair:same("DELETE", "/api/v1/namespaces/NS")
	end)

	it("deployments, their defaults and their scale", function()
		local deployments = "/apis/apps/v1/namespaces/NS/deployments"
		-- Paused, so that no controller writes to it.
		pair:same("POST", deployments, [[{"metadata":{"name":"d"},"spec":{"paused":true,"selector":{"matchLabels":{"a":"b"}},
			"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"x:1",
			"ports":[{"containerPort":80}],"env":[{"name":"A","value":"1"}]}]}}}}]])
		pair:same("POST", deployments, [[{"metadata":{"name":"e"},"spec":{"selector":{"matchLabels":{"a":"c"}},
			"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c"}]}}}}]])
		pair:same("GET", deployments .. "/nothing/scale")
	end)
end)
