-- What is secret is in no output: credentials of every kind and the data of Secrets, planted and looked for in the log at its most talkative, in all
-- pages and in what a program says that is ended hard.
local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"
local host = require "support.host"
local kube = require "support.kube"
local plugins = require "support.plugin"
local sandbox = require "support.sandbox"

local SECONDS = 20
local PLANTED = "pLaNtEd0123"
local PAGES = { "/status", "/metrics", "/readyz?verbose", "/livez", "/healthz", "/" }

local folder, cert, key, key_line, server

setup(function()
	folder = files.folder()
	cert, key = files.certificate(folder)
	key_line = files.read(key):match "\n([%w+/]+)\n"
	local secret = { apiVersion = "v1", kind = "Secret", metadata = { name = "planted", namespace = "default" },
		data = { password = PLANTED }, type = "Opaque" }
	server = sandbox.start { "--tls-cert", cert, "--tls-key", key, "--manifests", files.write(folder .. "/secret.json", cjson.encode(secret)) }
end)

teardown(function()
	server:stop()
end)

local function base64(path)
	return (files.output_of({ "base64", "-w0", path }))
end

-- Runs the script for that user until it prints "end"; fails where any output holds one of the texts.
local function is_silent(user, script, options)
	options = options or {}
	local cluster = { server = options.server or server.url, ["certificate-authority"] = cert, ["proxy-url"] = options.proxy }
	local run = host.start {
		kubeconfig = kube.write_config(files.folder() .. "/config", cluster, user), script = script, pages = true,
		flags = { "--log-level", "debug", "--log-format", options.format or "text", "--time-limit", "300ms" }, set = options.set,
	}
	run:lines_until "end"
	local outputs = {}
	for _, page in ipairs(PAGES) do
		outputs[page] = select(2, run:page(page))
	end
	run.child:kill(options.signal or "TERM")
	run.child:wait(SECONDS)
	outputs.stdout, outputs.stderr = run.child:stdout(), run.child:stderr()
	for name, text in pairs(outputs) do
		for _, secret in ipairs { PLANTED, key_line } do
			assert.is_nil(text:find(secret, 1, true), ("%s shows a secret:\n%s"):format(name, text))
		end
	end
	return outputs.stderr
end

local READ = [[k8s.main(function()
	local value, err = k8s.get { apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "absent" }
	k8s.log.info("answer", { answer = tostring(value), error = tostring(err) })
	print "end"
end)]]

describe("credentials are in no output #slow", function()
	local function key_pair()
		return { ["client-certificate-data"] = base64(cert), ["client-key-data"] = base64(key) }
	end

	it("where they work", function()
		local plugin = plugins.write(files.folder(), "token " .. PLANTED)
		local users = {
			{ token = PLANTED }, { tokenFile = files.write(folder .. "/token", PLANTED .. "\n") }, plugin:user(),
			{ ["client-certificate"] = cert, ["client-key"] = key }, key_pair(), { username = "ann", password = PLANTED },
		}
		for i, user in ipairs(users) do
			is_silent(user, READ, { format = i % 2 == 0 and "json" or "text" })
		end
	end)

	it("where the server can't be reached", function()
		for _, user in ipairs { { token = PLANTED }, key_pair() } do
			is_silent(user, READ, { server = "https://127.0.0.1:1" })
			is_silent(user, READ, { proxy = "http://ann:" .. PLANTED .. "@127.0.0.1:1" })
		end
	end)

	it("where a plugin fails, or prints what is no credential", function()
		for _, text in ipairs { "echo " .. PLANTED .. "; exit 1", "echo '{\"status\":{\"token\":\"" .. PLANTED .. "\"'", "echo " .. PLANTED } do
			is_silent(plugins.write(files.folder(), text):user(), READ)
		end
	end)

	it("where the kubeconfig is malformed", function()
		for _, text in ipairs { "users: [{ name: u, user: { token: %s", "users: [{ name: u, user: { token: [ %s ] } }]", "token: %s\ntoken: %s" } do
			local path = files.write(files.folder() .. "/config", (text:gsub("%%s", PLANTED)))
			local script = files.write(files.folder() .. "/a.lua", "")
			local code, out, err = cli.run { "run", script, "--kubeconfig", path, "--log-level", "debug" }
			assert.equal(1, code)
			assert.is_nil((out .. err):find(PLANTED, 1, true), err)
		end
	end)

	it("where the program is ended hard", function()
		is_silent({ token = PLANTED }, READ, { signal = "ABRT" })
	end)

	it("of other servers and of settings", function()
		local log = is_silent({ token = "other" }, ([[k8s.main(function()
			for _, url in ipairs { "https://127.0.0.1:1/", "https://ann:%s@127.0.0.1:1/" } do
				local answer, err = k8s.http.request { url = url, headers = { Authorization = "Bearer %s" }, body = "%s" }
				k8s.log.info("answer", { error = tostring(err) })
			end
			print "end"
		end)]]):gsub("%%s", PLANTED), { set = { password = PLANTED } })
		assert.equal(2, select(2, log:gsub(" answer ", "")))
	end)
end)

describe("the data of a Secret are in no output", function()
	local SECRETS = [[local secrets = k8s.informer { apiVersion = "v1", kind = "Secret" %s }]]
	local DONE = [[ k8s.every(0.3, function() print "end" end)]]

	it("where the script raises the object, whole or in part, or within another table", function()
		for _, body in ipairs {
			"error(secret)", "error({ data = secret.data })", "error({ 'failed', { object = secret } })", "assert(nil, secret)",
		} do
			for _, fields in ipairs { "", ", fields = { 'data' }" } do
				local handler = (" secrets:add_event_handler { add = function(secret) %s end %s }"):format(body, fields)
				local log = is_silent({ token = "t" }, SECRETS:format "" .. handler .. DONE)
				assert.truthy(log:find "add handler failed", log)
			end
		end
	end)

	it("where the script's functions fail on it", function()
		is_silent({ token = "t" }, SECRETS:format ", transform = function(secret) error(secret) end" .. DONE)
		is_silent({ token = "t" }, SECRETS:format ", index = { i = function(secret) while true do end end }" .. DONE)
		is_silent({ token = "t" }, SECRETS:format ", index = { i = function(secret) return secret end }" .. DONE)
		is_silent({ token = "t" }, SECRETS:format "" .. [[ k8s.controller { name = "c", watch = secrets, reconcile = function(request)
			local secret = secrets:get(request)
			secret.metadata.name, secret.type = "other name", {}
			assert(k8s.create(secret))
		end }]] .. DONE)
	end)
end)
