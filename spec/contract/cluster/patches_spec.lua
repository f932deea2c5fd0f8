-- The four kinds of patches: the sandbox answers as a real API server does.
local contract = require "support.contract"

local MAPS = "/api/v1/namespaces/NS/configmaps"
local STRATEGIC = { "Content-Type: application/strategic-merge-patch+json" }
local JSON = { "Content-Type: application/json-patch+json" }
local APPLY = { "Content-Type: application/apply-patch+yaml" }

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

	it("merge patches", function()
		pair:same("POST", MAPS, '{"metadata":{"name":"a","labels":{"x":"1"}},"data":{"k":"v"}}')
		pair:same("PATCH", MAPS .. "/a", '{"data":{"k":null,"z":"1"},"metadata":{"labels":{"x":null}}}')
		pair:same("PATCH", MAPS .. "/a", '{"metadata":{"resourceVersion":"1"}}')
		pair:same("PATCH", MAPS .. "/a", '{"metadata":{"name":"q"}}')
		pair:same("PATCH", MAPS .. "/nothing", "{}")
		pair:same("PATCH", MAPS .. "/a", "{}", { "Content-Type: text/plain" })
	end)

	it("JSON patches", function()
		pair:same("POST", MAPS, '{"metadata":{"name":"a"},"data":{"z":"1"}}')
		pair:same("PATCH", MAPS .. "/a", '[{"op":"test","path":"/data/z","value":"2"}]', JSON)
		pair:same("PATCH", MAPS .. "/a",
			'[{"op":"test","path":"/data/z","value":"1"},{"op":"add","path":"/data/y~1x","value":"1"}]', JSON)
		pair:same("PATCH", MAPS .. "/a", '[{"op":"add","path":"/metadata/annotations","value":{}},'
			.. '{"op":"add","path":"/metadata/annotations/a~1b","value":"1"}]', JSON)
		pair:same("PATCH", MAPS .. "/a", '[{"op":"move","from":"/data/z","path":"/data/w"}]', JSON)
		pair:same("PATCH", MAPS .. "/a", '[{"op":"remove","path":"/data/nothing"}]', JSON)
		pair:same("PATCH", MAPS .. "/a", '{"op":"remove","path":"/data/w"}', JSON)
	end)

	it("strategic patches", function()
		local accounts = "/apis/apps/v1/namespaces/NS/deployments"
		pair:same("POST", MAPS, '{"metadata":{"name":"a","finalizers":["example.com/x"]}}')
		pair:same("PATCH", MAPS .. "/a", '{"metadata":{"finalizers":["example.com/y"]}}', STRATEGIC)
		pair:same("PATCH", MAPS .. "/a", '{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/x"]}}', STRATEGIC)
		pair:same("PATCH", MAPS .. "/a", '{"metadata":{"finalizers":null}}', STRATEGIC)
		pair:same("PATCH", accounts .. "/nothing", "{}", STRATEGIC)
	end)

	it("server-side apply: owners, conflicts, force, and what is left out", function()
		local function apply(manager, data, status)
			return pair:same("PATCH", ("%s/ap?fieldManager=%s"):format(MAPS, manager),
				('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ap"},"data":%s}'):format(data), APPLY), status
		end
		apply("one", '{"x":"1","y":"2"}')
		apply("two", '{"x":"2"}')
		apply("two", '{"x":"2","y":"3"}')
		apply("two&force=true", '{"x":"2","z":"1"}')
		apply("one", '{"y":"2"}')
		apply("one", "{}")
		pair:same("PATCH", MAPS .. "/ap", '{"data":{"x":"9"}}')
		apply("two", '{"x":"2"}')
		apply("", "{}")
		pair:same("GET", MAPS .. "/ap")
	end)
end)
