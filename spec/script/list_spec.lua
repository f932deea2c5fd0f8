-- k8s.list against answers that a server may give, right or wrong.
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"
local script = require "support.script"

describe("k8s.list", function()
	local JSON = { ["content-type"] = "application/json" }
	local server, run

	before_each(function()
		server = script.start()
		run = host.start { kubeconfig = cli.kubeconfig(files.folder(), server.url), script = [[
			k8s.main(function()
				local maps, err = k8s.list { apiVersion = "v1", kind = "ConfigMap" }
				print(maps and "maps " .. k8s.json.encode(maps) or "err " .. tostring(err))
			end)
		]] }
		server:discover()
	end)

	after_each(function()
		run:stop()
	end)

	local function answer(text)
		server:request().raw:reply(200, JSON, text)
	end

	it("goes through all pages", function()
		answer '{"metadata":{"continue":"next"},"items":[{"metadata":{"name":"a"}}]}'
		local second = server:request()
		assert.equal("next", second.parameters.continue)
		second.raw:reply(200, JSON, '{"metadata":{"continue":""},"items":[{"metadata":{"name":"b"}}]}')
		local maps = run:line()
		assert.matches('^maps %[{.*"a".*},{.*"b".*}%]$', maps)
	end)

	for _, text in ipairs { '{"metadata":{},"items":null}', '{"metadata":{"continue":null},"items":[]}' } do
		it("is empty for " .. text, function()
			answer(text)
			assert.equal("maps []", run:line())
		end)
	end

	local no_lists = {
		'5', '"text"', 'null', '{"items":[]}', '{"metadata":null,"items":[]}', '{"metadata":{"name":"x"}}', '{"kind":"Status","metadata":{}}',
	}
	for _, text in ipairs(no_lists) do
		it("is an error, and no empty list, for " .. text, function()
			answer(text)
			assert.equal("err Connection: the answer is no list", run:line())
		end)
	end

	it("is an error when an item is no object", function()
		answer '{"metadata":{},"items":[1]}'
		assert.equal("err Connection: an item of the list is no object", run:line())
	end)
end)
