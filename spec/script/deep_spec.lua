-- Objects that nest deeper than a Lua value may: each can be cached, and whoever wants all of it is told which one it is.
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"
local script = require "support.script"

describe("an object that nests too deep", function()
	local JSON = { ["content-type"] = "application/json" }
	local DEEP = '{"metadata":{"namespace":"shop","name":"deep","resourceVersion":"2"},"data":' .. ("["):rep(600) .. ("]"):rep(600) .. "}"
	local LIST = '{"kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":['
		.. '{"metadata":{"namespace":"shop","name":"flat","resourceVersion":"1"}},' .. DEEP .. "]}"
	local REFUSAL = "nested deeper than 512: `fields`, of a handler or of informer:list, reads a part of it, an informer's `drop` "
		.. "leaves a part out of the cache"
	local server, run

	local function start(text)
		server = script.start()
		run = host.start { kubeconfig = cli.kubeconfig(files.folder(), server.url), script = text }
		server:discover()
	end

	local function fill()
		server:request().raw:reply(200, JSON, LIST)
		server:watch("9"):open()
	end

	after_each(function()
		run:stop()
	end)

	it("is named where the cache is read", function()
		start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
			k8s.on_synced(function()
				print(select(2, pcall(maps.list, maps)))
				print(select(2, pcall(maps.get, maps, "shop", "deep")))
				print(#maps:list { fields = { "metadata" } }, maps:get("shop", "flat").metadata.name)
			end)
		]]
		fill()
		assert.equal("ConfigMap shop/deep: " .. REFUSAL, run:line())
		assert.equal("ConfigMap shop/deep: " .. REFUSAL, run:line())
		assert.equal("2\tflat", run:line())
	end)

	it("is named where a handler wants all of it", function()
		start [[
			k8s.informer({ apiVersion = "v1", kind = "ConfigMap" }):add_event_handler { add = function(map) print(map.metadata.name) end }
		]]
		fill()
		assert.truthy(run:log_line("add handler failed"):find("ConfigMap shop/deep: " .. REFUSAL, 1, true))
		assert.equal("flat", run:line())
	end)

	it("is left out of the cache in part where it is dropped", function()
		start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", drop = { "data" } }
			k8s.on_synced(function() print(#maps:list()) end)
		]]
		fill()
		assert.equal("2", run:line())
	end)

	it("is named among those of an answer", function()
		start [[
			k8s.main(function() k8s.list { apiVersion = "v1", kind = "ConfigMap" } end)
		]]
		server:request().raw:reply(200, JSON, LIST)
		assert.truthy(run:log_line("k8s.main failed"):find("ConfigMapList shop/deep: " .. REFUSAL, 1, true))
	end)
end)

describe("JSON that is no object of the API's", function()
	it("has no name where it nests too deep", function()
		local json = require("perilune").json
		for _, text in ipairs { '{"a":%s}', '{"metadata":{},"a":%s}', '{"metadata":{"name":1},"kind":"A","a":%s}', '{"items":[1,%s]}' } do
			local _, err = json.decode(text:format(("["):rep(600) .. ("]"):rep(600)))
			assert.equal("JSON: nested deeper than 512", tostring(err))
		end
	end)
end)
