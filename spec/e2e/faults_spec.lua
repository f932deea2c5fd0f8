-- Bad input and faults that need no API server to be seen: each gives one clear line and the right exit code.
local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"
local stub = require "support.stub"

local function contains(text, part)
	assert(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

local function count(text, pattern)
	return select(2, text:gsub(pattern, "%0"))
end

describe("perilune run fails with one clear line when", function()
	local folder = files.folder()

	-- Ends with code 1 and one error, which holds the parts; returns it.
	local function check(options, ...)
		options.script = options.script or 'k8s.informer { apiVersion = "v1", kind = "Pod" }'
		local run = host.start(options)
		assert.equal(1, run:wait())
		local log = run.child:stderr()
		assert.equal(1, count(log, " ERROR "), log)
		local line = log:match "[^\n]* ERROR [^\n]*"
		for _, part in ipairs { ... } do
			contains(line, part)
		end
		assert.equal("", run.child:stdout())
		return line
	end

	it("there is no kubeconfig", function()
		check({}, "KUBECONFIG", "--kubeconfig", "/.kube/config")
	end)

	it("the kubeconfig is not there", function()
		check({ kubeconfig = folder .. "/none" }, "no kubeconfig at " .. folder .. "/none")
	end)

	it("the kubeconfig can't be read", function()
		check({ kubeconfig = folder }, folder, "Is a directory")
	end)

	it("the kubeconfig is malformed", function()
		local path = files.write(folder .. "/malformed", "clusters:\n- name: [here\n")
		check({ kubeconfig = path }, path, "line 3")
	end)

	it("there is no such context", function()
		check({ kubeconfig = cli.kubeconfig(folder), flags = { "--context", "there" } }, '"there"', "here")
	end)

	it("a script is malformed", function()
		check({ kubeconfig = cli.kubeconfig(folder), script = "\nlocal x = = 1" }, "/script.lua:2: unexpected symbol near '='")
	end)

	it("a script fails at top level", function()
		local line = check({ kubeconfig = cli.kubeconfig(folder), script = "\nlocal x = nil\nlocal function f() return x.y end\nf()" },
			"/script.lua:3: attempt to index upvalue 'x' (a nil value)", "script.lua:4: in main chunk")
		contains(line, "in function 'f'")
	end)

	it("a script takes an option that there is not", function()
		check({ kubeconfig = cli.kubeconfig(folder), script = '\nk8s.informer { apiVersion = "v1", kind = "Pod", namspace = "x" }' },
			"/script.lua:2:", "unknown option 'namspace', did you mean 'namespace'?")
	end)
end)

describe("an answer of the server that can't be read #slow", function()
	local JSON = { ["content-type"] = "application/json" }
	local server, run

	local function map(name, version)
		return { metadata = { name = name, namespace = "shop", uid = "uid-" .. name, resourceVersion = version } }
	end

	local list = cjson.encode {
		kind = "ConfigMapList", apiVersion = "v1", metadata = { resourceVersion = "10" }, items = { map("a", "5"), map("b", "7") },
	}

	local function event(kind, object)
		object.apiVersion, object.kind = "v1", "ConfigMap"
		return cjson.encode { type = kind, object = object } .. "\n"
	end

	local resources = cjson.encode {
		kind = "APIResourceList", apiVersion = "v1", groupVersion = "v1", resources = {
			{ name = "configmaps", singularName = "configmap", namespaced = true, kind = "ConfigMap", verbs = { "get", "list", "watch" } },
		},
	}

	-- The next list or watch, of a server without watch-lists; what the program asks before is answered.
	local function next_request()
		while true do
			local request = server:accept()
			if request.target:find("sendInitialEvents=true", 1, true) then
				request:reply(422, JSON, '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}')
			elseif request.target:find "^/api/v1/configmaps%?limit=1&resourceVersion=" then
				request:reply(200, JSON, list)
			elseif request.target:find "^/api/v1/configmaps" then
				return request
			elseif request.target:find "^/api/v1" then
				request:reply(200, JSON, resources)
			else
				request:reply(404, JSON, '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}')
			end
		end
	end

	local function is_watch(request)
		return request.target:find("watch=true", 1, true) ~= nil
	end

	-- Answers a watch's head and keeps it open.
	local function open_watch(request)
		assert.is_true(is_watch(request))
		request.peer:write "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
		return request.peer
	end

	before_each(function()
		server = stub.listen()
		run = host.start {
			kubeconfig = cli.kubeconfig(files.folder(), server.url),
			script = [[
				local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
				local function log(map, event) print(event.type, map.metadata.name, map.metadata.resourceVersion) end
				maps:add_event_handler { add = log, update = log, delete = log }
			]],
		}
	end)

	after_each(function()
		run:stop()
		server:close()
	end)

	local lists = {
		["is cut off inside its JSON"] = { list:sub(1, -20), "list failed" },
		["is no JSON"] = { "<html><body>The proxy is busy</body></html>", "list failed" },
		["is no list"] = { '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","resourceVersion":"3"}}', "the answer is no list" },
		["holds what is no object"] = { '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[1,2]}', "item" },
	}
	for name, case in pairs(lists) do
		it("is told once and asked for again when a list " .. name, function()
			next_request():reply(200, JSON, case[1])
			contains(run:log_line "listing again", case[2])
			next_request():reply(200, JSON, list)
			open_watch(next_request())
			assert.equal("add\ta\t5", run:line())
			assert.equal("add\tb\t7", run:line())
			assert.equal(1, count(run.child:stderr(), "list failed"))
		end)
	end

	it("is asked for again when a list's transfer is cut off", function()
		local request = next_request()
		request.peer:write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: " .. #list .. "\r\n\r\n" .. list:sub(1, 60))
		request.peer:close()
		run:log_line "list failed"
		next_request():reply(200, JSON, list)
		assert.equal("add\ta\t5", run:line())
	end)

	it("loses nothing and repeats nothing when it comes in a watch", function()
		next_request():reply(200, JSON, list)
		local watch = open_watch(next_request())
		watch:write(event("MODIFIED", map("a", "11")) .. '{"type":"MODIFIED","object":{"apiVersion":"v1",}}\n')
		local again = next_request()
		contains(again.target, "resourceVersion=11")
		watch = open_watch(again)
		watch:write(event("DELETED", map("b", "12")))
		watch:write(event("ADDED", map("c", "13")):sub(1, 40))
		watch:close()
		again = next_request()
		contains(again.target, "resourceVersion=12")
		open_watch(again):write(event("ADDED", map("c", "13")))
		local seen = {}
		for i = 1, 5 do
			seen[i] = run:line()
		end
		assert.same({ "add\ta\t5", "add\tb\t7", "update\ta\t11", "delete\tb\t12", "add\tc\t13" }, seen)
	end)
end)
