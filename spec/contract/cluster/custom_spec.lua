-- Custom resources: the sandbox serves them as a real API server does.
local contract = require "support.contract"

local GROUP = "NS.example.com"
local WIDGETS = "/apis/" .. GROUP .. "/v1/namespaces/NS/widgets"
local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local APPLY = { "Content-Type: application/apply-patch+yaml" }

local DEFINITION = [[{"metadata":{"name":"widgets.NS.example.com"},
"spec":{"group":"NS.example.com","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets","shortNames":["wd"]},
"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
"additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"}],
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","required":["size"],"properties":{
"size":{"type":"integer","minimum":1},"color":{"type":"string","default":"red","enum":["red","blue"]},"replicas":{"type":"integer"},
"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"v":{"type":"string"}}}}}},
"status":{"type":"object","properties":{"replicas":{"type":"integer"},"phase":{"type":"string"}}}}}}}]}}]]

local function widget(name, rest)
	return ('{"apiVersion":"%s/v1","kind":"Widget","metadata":{"name":"%s"},%s}'):format(GROUP, name, rest)
end

describe("the sandbox and the API server agree on", function()
	local pair

	before_each(function()
		pair = contract.open()
		pair:same("POST", CRDS, DEFINITION)
		pair:await(CRDS .. "/widgets." .. GROUP, function(body)
			return body.status and #body.status.conditions == 2
		end)
		pair:await(WIDGETS, function(body)
			return body.kind == "WidgetList"
		end)
	end)

	after_each(function()
		if pair then
			pair:same("DELETE", CRDS .. "/widgets." .. GROUP)
			pair:close()
		end
	end)

	it("their discovery and their definition", function()
		pair:same("GET", "/apis/" .. GROUP)
		pair:same("GET", "/apis/" .. GROUP .. "/v1")
		pair:same("GET", CRDS .. "/widgets." .. GROUP)
	end)

	it("what their schema asks for", function()
		pair:same("POST", WIDGETS, widget("w", '"spec":{"size":3,"junk":1,"items":[{"name":"a","v":"1"}]},"status":{"phase":"x"}'))
		pair:same("POST", WIDGETS, widget("v", '"spec":{"size":0}'))
		pair:same("POST", WIDGETS, widget("v", '"spec":{"size":1,"color":"green"}'))
		pair:same("POST", WIDGETS, widget("v", '"spec":{"size":"x"}'))
		pair:same("POST", WIDGETS, widget("v", '"spec":{}'))
		pair:same("POST", WIDGETS .. "?fieldValidation=Strict", widget("v", '"spec":{"size":1,"junk":2}'))
		pair:same("POST", WIDGETS, '{"metadata":{"name":"v"},"spec":{"size":1}}')
		pair:same("POST", WIDGETS, ('{"apiVersion":"%s/v2","kind":"Widget","metadata":{"name":"v"}}'):format(GROUP))
		pair:same("POST", WIDGETS, ('{"apiVersion":"%s/v1","kind":"Wodget","metadata":{"name":"v"}}'):format(GROUP))
		pair:same("GET", WIDGETS)
		pair:same("GET", WIDGETS .. "?fieldSelector=spec.size=1")
	end)

	it("updates, status and scale", function()
		pair:same("POST", WIDGETS, widget("w", '"spec":{"size":3}'))
		pair:same("PUT", WIDGETS .. "/w", widget("w", '"spec":{"size":4}'))
		pair:same("PATCH", WIDGETS .. "/w", '{"spec":{"size":4},"status":{"phase":"no"}}')
		pair:same("PATCH", WIDGETS .. "/w/status",
			'{"spec":{"size":9},"status":{"phase":"yes","replicas":2},"metadata":{"labels":{"a":"b"}}}')
		pair:same("GET", WIDGETS .. "/w/scale")
		pair:same("PATCH", WIDGETS .. "/w/scale", '{"spec":{"replicas":5}}')
		pair:same("GET", WIDGETS .. "/w/scale")
		pair:same("GET", WIDGETS .. "/w/foo")
		pair:same("PATCH", WIDGETS .. "/w", "{}", { "Content-Type: application/strategic-merge-patch+json" })
		pair:same("GET", WIDGETS .. "/w")
	end)

	it("the end of a definition, which waits for its objects", function()
		local function is_held(body)
			return body.items and #body.items == 1 and body.items[1].metadata.deletionTimestamp
		end
		pair:same("POST", WIDGETS, widget("free", '"spec":{"size":1}'))
		pair:same("POST", WIDGETS, widget("held", '"spec":{"size":1}'))
		pair:same("PATCH", WIDGETS .. "/held", '{"metadata":{"finalizers":["example.com/x"]}}')
		pair:same("DELETE", CRDS .. "/widgets." .. GROUP)
		pair:await(WIDGETS, is_held)
		pair:await(CRDS .. "/widgets." .. GROUP, function(body)
			return body.status.conditions[3] and body.status.conditions[3].reason == "InstanceDeletionInProgress"
		end)
		pair:same("GET", CRDS .. "/widgets." .. GROUP)
		pair:same("GET", WIDGETS .. "/held")
		pair:same("POST", WIDGETS, widget("new", '"spec":{"size":1}'))
		pair:same("PATCH", WIDGETS .. "/new?fieldManager=me", widget("new", '"spec":{"size":1}'), APPLY)
		pair:same("PATCH", WIDGETS .. "/held", '{"spec":{"size":2}}')
		pair:same("PATCH", WIDGETS .. "/held", '{"metadata":{"finalizers":null}}')
		pair:await(CRDS .. "/widgets." .. GROUP, function(body)
			return body.reason == "NotFound"
		end)
	end)

	it("lists by key under server-side apply", function()
		pair:same("POST", WIDGETS, widget("w", '"spec":{"size":3,"items":[{"name":"a","v":"1"}]}'))
		local function apply(query, items)
			pair:same("PATCH", WIDGETS .. "/w?fieldManager=m" .. query, widget("w", '"spec":{"items":' .. items .. "}"), APPLY)
		end
		apply("", '[{"name":"b","v":"2"}]')
		apply("", '[{"name":"a","v":"2"}]')
		apply("&force=true", '[{"name":"a","v":"2"}]')
		pair:same("DELETE", WIDGETS .. "/w")
	end)
end)
