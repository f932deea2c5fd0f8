-- Which server and which credentials the program takes, from files and environment.
local cjson = require "cjson"
local files = require "support.files"
local kube_units = require "support.kube_units"

local SECRET = "hunter2"
local V1 = "client.authentication.k8s.io/v1"

local function base64(text)
	return (files.output_of({ "base64", "-w", "0", files.write(files.folder() .. "/plain", text) }))
end

-- One cluster, user and context, as a table for write.
local function simple(cluster, user, context)
	cluster = cluster or { server = "https://host:6443" }
	context = context or {}
	context.cluster, context.user = context.cluster or "c", context.user or "u"
	return {
		apiVersion = "v1", kind = "Config", ["current-context"] = "x",
		clusters = { { name = "c", cluster = cluster } }, users = { { name = "u", user = user } }, contexts = { { name = "x", context = context } },
	}
end

describe("the configuration", function()
	local folder

	before_each(function()
		folder = files.folder()
	end)

	local function write(name, content)
		os.execute("mkdir -p '" .. (folder .. "/" .. name):match "^(.*)/" .. "'")
		return files.write(folder .. "/" .. name, type(content) == "table" and cjson.encode(content) or content)
	end

	-- The event "config" or "err" for those options, in an environment without any hint but those given.
	local function load(options, env)
		local environment = { KUBECONFIG = false, KUBERNETES_SERVICE_HOST = false, KUBERNETES_SERVICE_PORT = false, HOME = folder .. "/home",
			PERILUNE_SERVICEACCOUNT_DIR = folder .. "/pod" }
		for name, value in pairs(env or {}) do
			environment[name] = value
		end
		local units = kube_units.start { env = environment }
		local event = units:one("config", options or {})
		units:finish()
		return event
	end

	local function loads(options, env)
		local config = load(options, env)
		assert(config.event == "config", config.message)
		return config
	end

	-- The message of the error, which shows no secret and is one line.
	local function fails(options, env)
		local err = load(options, env)
		assert.equal("err", err.event)
		assert.is_nil(err.message:find(SECRET, 1, true), err.message)
		assert.is_nil(err.message:find "\n")
		return err.message
	end

	local function has(message, part)
		assert(message:find(part, 1, true), ("%q is not in %q"):format(part, message))
	end

	describe("from a kubeconfig", function()
		it("holds all that it says", function()
			local path = write("kube/config", ([[
apiVersion: v1
kind: Config
preferences: {}
current-context: dev
contexts:
- name: dev
  context:
    cluster: alpha
    user: ann
    namespace: shop
clusters:
- cluster:
    certificate-authority-data: |
      %s
    server: https://alpha.example.com:6443/prefix/
    tls-server-name: internal.example.com
    proxy-url: socks5://proxy.example.com:1080
  name: alpha
users:
- name: ann
  user: # two ways of saying who we are go together
    client-certificate-data: %s
    client-key: keys/ann.key
    tokenFile: ../token
]]):format(base64("CA of alpha\n"):gsub("(......)", "%1\n      "), base64 "cert of ann"))
			local config = loads { kubeconfig = path }
			assert.same({
				event = "config", in_cluster = false, insecure = false, source = path, context = "dev",
				server = "https://alpha.example.com:6443/prefix", namespace = "shop", tls_server_name = "internal.example.com",
				proxy_url = "socks5://proxy.example.com:1080", ca = "CA of alpha\n", cert = "cert of ann",
				key_file = folder .. "/kube/keys/ann.key", token_file = folder .. "/kube/../token",
			}, config)
		end)

		it("takes credentials of each kind", function()
			local config = loads { kubeconfig = write("a", simple(nil, { token = SECRET })) }
			assert.equal(SECRET, config.token)
			config = loads { kubeconfig = write("a", simple(nil, { username = "ann", password = SECRET })) }
			assert.same({ "ann", SECRET }, { config.username, config.password })
			config = loads { kubeconfig = write("a", simple(nil, { ["client-certificate"] = "/abs/c", ["client-key"] = "k" })) }
			assert.same({ "/abs/c", folder .. "/k" }, { config.cert_file, config.key_file })
			config = loads { kubeconfig = write("a", simple(nil, { ["client-certificate"] = "c", ["client-key-data"] = base64(SECRET) })) }
			assert.same({ folder .. "/c", SECRET }, { config.cert_file, config.key })
			config = loads { kubeconfig = write("a", simple({ server = "https://h", ["insecure-skip-tls-verify"] = true }, nil)) }
			assert.is_true(config.insecure)
		end)

		it("names an exec plugin, found beside it when its path has a slash", function()
			local exec = { apiVersion = V1, command = "./bin/plugin", interactiveMode = "IfAvailable", args = { "get", "" },
				env = { { name = "A", value = "b=c" }, { name = "EMPTY", value = "" } } }
			local config = loads { kubeconfig = write("a", simple(nil, { exec = exec })) }
			assert.same({ folder .. "/./bin/plugin", "get", "" }, config.argv)
			assert.same({ "A=b=c", "EMPTY=" }, config.environment)
			exec = { apiVersion = "client.authentication.k8s.io/v1beta1", command = "plugin" }
			assert.same({ "plugin" }, loads({ kubeconfig = write("a", simple(nil, { exec = exec })) }).argv)
		end)

		it("says whom to act as", function()
			local config = loads { kubeconfig = write("a", simple(nil, {
				token = SECRET, as = "ann", ["as-uid"] = "7", ["as-groups"] = { "dev", "ops: all" },
				["as-user-extra"] = { ["example.com/a b"] = { "x", "y" } },
			})) }
			assert.same({
				"Impersonate-User: ann", "Impersonate-Uid: 7", "Impersonate-Group: dev", "Impersonate-Group: ops: all",
				"Impersonate-Extra-example.com%2Fa%20b: x", "Impersonate-Extra-example.com%2Fa%20b: y",
			}, config.impersonation)
		end)

		it("may be JSON, with tabs", function()
			local text = cjson.encode(simple()):gsub(",", ",\n\t"):gsub("^{", "{\n\t")
			assert.equal("https://host:6443", loads({ kubeconfig = write("a", text .. "\n") }).server)
		end)

		it("takes the context and namespace that were asked for", function()
			local both = simple(nil, nil, { namespace = "of-context" })
			both.contexts[2] = { name = "other", context = { cluster = "c2", user = "u" } }
			both.clusters[2] = { name = "c2", cluster = { server = "https://second" } }
			local path = write("a", both)
			assert.equal("of-context", loads({ kubeconfig = path }).namespace)
			assert.equal("mine", loads({ kubeconfig = path, namespace = "mine" }).namespace)
			local config = loads { kubeconfig = path, context = "other" }
			assert.same({ "https://second", "default" }, { config.server, config.namespace })
		end)

		it("lists may name several files: the first one to set a thing wins, whole", function()
			local first = simple({ server = "https://first", ["certificate-authority"] = "ca" }, { token = "first" })
			first["current-context"] = nil
			local second = simple({ server = "https://second", ["tls-server-name"] = "second" }, { username = "second" })
			second.contexts[2] = { name = "y", context = { cluster = "d", user = "u" } }
			second.clusters[2] = { name = "d", cluster = { server = "https://d", ["certificate-authority"] = "ca" } }
			local list = table.concat({ folder .. "/absent", write("1/config", first), "", write("2/config", second) }, ":")
			for _, how in ipairs { "option", "environment" } do
				local function get(context)
					return loads(how == "option" and { kubeconfig = list, context = context } or { context = context }, { KUBECONFIG = how == "environment" and list })
				end
				local config = get(nil)
				assert.same({ "x", "https://first", folder .. "/1/ca", "first" }, { config.context, config.server, config.ca_file, config.token })
				assert.is_nil(config.tls_server_name or config.username)
				config = get "y"
				assert.same({ "https://d", folder .. "/2/ca", "first" }, { config.server, config.ca_file, config.token })
				assert.equal(folder .. "/1/config:" .. folder .. "/2/config", config.source)
			end
		end)

		it("completes a server's URL as kubectl does", function()
			local ca = base64 "CA"
			local cases = {
				{ { server = "https://h:1///" }, "https://h:1" },
				{ { server = "http://h/path" }, "http://h/path" },
				{ { server = "h:8080" }, "http://h:8080" },
				{ { server = "h:6443", ["certificate-authority-data"] = ca }, "https://h:6443" },
				{ { server = "h:6443", ["insecure-skip-tls-verify"] = true }, "https://h:6443" },
				{ { server = "https://[::1]:6443" }, "https://[::1]:6443" },
			}
			for _, case in ipairs(cases) do
				assert.equal(case[2], loads({ kubeconfig = write("a", simple(case[1])) }).server)
			end
		end)
	end)

	describe("is looked for", function()
		it("in the option, then $KUBECONFIG, then the pod, then the home folder", function()
			write("home/.kube/config", simple { server = "https://home" })
			write("pod/token", SECRET)
			local option, environment = write("o", simple { server = "https://option" }), write("e", simple { server = "https://environment" })
			local pod = { KUBERNETES_SERVICE_HOST = "10.0.0.1", KUBERNETES_SERVICE_PORT = "443", KUBECONFIG = environment }
			assert.equal("https://option", loads({ kubeconfig = option }, pod).server)
			assert.equal("https://environment", loads({}, pod).server)
			pod.KUBECONFIG = ""
			local config = loads({}, pod)
			assert.same({ "https://10.0.0.1:443", true, "in-cluster" }, { config.server, config.in_cluster, config.source })
			pod.KUBERNETES_SERVICE_HOST = false
			assert.equal("https://home", loads({}, pod).server)
		end)

		it("in the home folder when a context is named, or the pod has no token", function()
			write("home/.kube/config", simple { server = "https://home" })
			local pod = { KUBERNETES_SERVICE_HOST = "10.0.0.1", KUBERNETES_SERVICE_PORT = "443" }
			assert.equal("https://home", loads({}, pod).server)
			write("pod/token", SECRET)
			assert.equal("https://home", loads({ context = "x" }, pod).server)
		end)

		it("not in the home folder when $KUBECONFIG is a list of no files", function()
			write("home/.kube/config", simple { server = "https://home" })
			has(fails({}, { KUBECONFIG = ":::" }), "$KUBECONFIG is set and names no file")
			write("pod/token", SECRET)
			local pod = { KUBERNETES_SERVICE_HOST = "10.0.0.1", KUBERNETES_SERVICE_PORT = "443", KUBECONFIG = ":" }
			assert.equal("https://10.0.0.1:443", loads({}, pod).server)
		end)

		it("in all of these places in vain", function()
			local message = fails()
			has(message, "no kubeconfig found")
			for _, place in ipairs { "$KUBECONFIG", folder .. "/pod", folder .. "/home/.kube/config", "--kubeconfig FILE", "--sandbox" } do
				has(message, place)
			end
			has(fails { kubeconfig = folder .. "/absent" }, "no kubeconfig at " .. folder .. "/absent; give --kubeconfig")
			message = fails({}, { KUBECONFIG = folder .. "/absent:" .. folder .. "/too" })
			has(message, folder .. "/absent:" .. folder .. "/too")
			has(message, "$KUBECONFIG")
		end)
	end)

	describe("inside a cluster", function()
		local pod = { KUBERNETES_SERVICE_HOST = "fd00::1", KUBERNETES_SERVICE_PORT = "6443" }

		it("is the service account's", function()
			write("pod/token", SECRET)
			write("pod/namespace", "shop\n")
			local config = loads({}, pod)
			assert.same({
				event = "config", in_cluster = true, insecure = false, source = "in-cluster", server = "https://[fd00::1]:6443", namespace = "shop",
				token_file = folder .. "/pod/token", ca_file = folder .. "/pod/ca.crt",
			}, config)
			assert.equal("mine", loads({ namespace = "mine" }, pod).namespace)
		end)

		it("has the namespace default when the pod does not say", function()
			write("pod/token", SECRET)
			assert.equal("default", loads({}, pod).namespace)
		end)
	end)

	describe("is refused", function()
		local function refused(content, options)
			options = options or {}
			options.kubeconfig = write("bad", content)
			local message = fails(options)
			has(message, folder .. "/bad")
			return message
		end

		it("for a context that is not there, with those that are", function()
			local config = simple(nil, { token = SECRET })
			config.contexts[2] = { name = "second" }
			has(refused(config, { context = "nope" }), 'no context "nope"; it has x, second')
			config["current-context"] = "gone"
			has(refused(config), 'no context "gone"')
			config["current-context"] = nil
			has(refused(config), "no current-context; give --context NAME, one of x, second")
			has(refused(config, { context = "second" }), 'context "second" names no cluster')
			has(refused "", "has no contexts")
			has(refused "# nothing\n", "has no contexts")
		end)

		it("for a cluster or user that a context names in vain", function()
			local config = simple(nil, { token = SECRET }, { cluster = "gone" })
			has(refused(config), 'context "x": ' .. folder .. '/bad has no cluster "gone"; it has c')
			has(refused(simple(nil, { token = SECRET }, { user = "gone" })), 'no user "gone"; it has u')
		end)

		it("for contradictions", function()
			local ca = base64 "CA"
			has(refused(simple({ server = "https://h", ["insecure-skip-tls-verify"] = true, ["certificate-authority-data"] = ca })), "keep one")
			has(refused(simple({ server = "https://h", ["insecure-skip-tls-verify"] = true, ["certificate-authority"] = "ca" })), 'cluster "c"')
			has(refused(simple({ server = "https://h", ["certificate-authority"] = "f", ["certificate-authority-data"] = ca })), "keep one")
			has(refused(simple(nil, { token = SECRET, username = "ann" })), 'user "u": has both')
			has(refused(simple(nil, { password = SECRET })), "password without a username")
			has(refused(simple(nil, { ["client-certificate"] = "c" })), "without client-key")
			has(refused(simple(nil, { ["client-key-data"] = base64(SECRET) })), "without client-certificate")
		end)

		it("for credentials that would silently be others", function()
			has(refused(simple(nil, { ["auth-provider"] = { name = "gcp" } })), 'user "u": auth-provider is not supported')
			has(refused(simple(nil, { ["auth-provider"] = { name = "gcp" } })), "use an exec plugin")
			has(refused(simple(nil, { ["as-groups"] = { "a" }, token = SECRET })), 'user "u": as is missing, but as-uid, as-groups or as-user-extra are there')
			has(refused(simple(nil, { as = "ann\r\nImpersonate-Group: system:masters" })), "as holds a control character")
			has(refused(simple(nil, { as = "ann", ["as-groups"] = { "a", "b\n" } })), "as-groups holds a control character")
			has(refused(simple(nil, { as = "ann", ["as-groups"] = "a" })), "as-groups is no list")
			has(refused(simple(nil, { as = "ann", ["as-user-extra"] = { x = "a" } })), "as-user-extra.x is no list")
		end)

		it("for an exec plugin that could not work", function()
			local function exec(changes)
				local made = { apiVersion = V1, command = "plugin", interactiveMode = "Never" }
				for key, value in pairs(changes) do
					made[key] = value or nil
				end
				return refused(simple(nil, { exec = made }))
			end
			has(exec { command = false }, 'user "u": exec.command is missing')
			has(exec { command = 7 }, "exec.command is no text")
			has(exec { apiVersion = false }, "exec.apiVersion is missing; it is " .. V1)
			has(exec { apiVersion = "client.authentication.k8s.io/v1alpha1" }, "exec.apiVersion is neither")
			has(exec { interactiveMode = false }, "exec.interactiveMode is missing")
			has(exec { interactiveMode = "Always" }, "exec.interactiveMode is Always: the plugin wants to ask somebody at a terminal")
			has(exec { interactiveMode = "Perhaps" }, "exec.interactiveMode is none of")
			has(exec { args = "a" }, "exec.args is no list")
			has(exec { args = { 1 } }, "exec.args is no text")
			has(exec { env = { A = "b" } }, "exec.env is no list")
			for _, element in ipairs { {}, { name = "A" }, { value = SECRET }, { name = "A=B", value = SECRET },
				{ name = "", value = SECRET }, { name = "A", value = 1 } } do
				has(exec { env = { element } }, "exec.env holds an element without a name or a value that is text")
			end
			has(exec { provideClusterInfo = "yes" }, "exec.provideClusterInfo is neither true nor false")
			has(refused(simple(nil, { exec = "aws" })), "exec is no object")
		end)

		it("for a server that is none", function()
			has(refused(simple({})), 'cluster "c": has no server')
			has(refused(simple({ server = "ftp://h" })), "no http or https URL")
			has(refused(simple({ server = "https://ann:" .. SECRET .. "@h" })), "must not carry a user name or password")
			has(refused(simple({ server = "https://h/a b" })), "no plain URL")
			has(refused(simple({ server = "https://h/?x" })), "no plain URL")
			for _, port in ipairs { "99999", "0", "", "80x", "123456789012345678901" } do
				has(refused(simple({ server = "https://h:" .. port .. "/p" })), "no valid port")
			end
			has(refused(simple({ server = "https://[::1]:70000" })), "no valid port")
			has(refused(simple({ server = "https://" })), "")
			has(refused(simple({ server = "https://:6443" })), "names no host")
			has(refused(simple({ server = "https://h", ["proxy-url"] = "h:" .. SECRET })), "proxy-url that begins with none of")
		end)

		it("for a password that YAML takes for something else", function()
			for _, text in ipairs { "*" .. SECRET, "!!int " .. SECRET, "a: " .. SECRET } do
				has(refused("users:\n- name: u\n  user: { password: " .. text .. " }\n"), "line 3")
			end
		end)

		it("for values of another type, with the place", function()
			has(refused(simple({ server = 7 })), 'cluster "c": server is no text')
			has(refused(simple({ server = "https://h", ["insecure-skip-tls-verify"] = "yes" })), "insecure-skip-tls-verify is neither true nor false")
			has(refused(simple(nil, { token = 12345 })), 'user "u": token is no text')
			has(refused(simple({ server = "https://h", ["certificate-authority-data"] = "*" })), "certificate-authority-data is no base64")
			has(refused(simple(nil, { ["client-key-data"] = SECRET .. "==", ["client-certificate"] = "c" })), "client-key-data is no base64")
			has(refused(simple({ server = "https://h", ["certificate-authority-data"] = base64 "a\0b" })), "NUL")
			has(refused '{"contexts":{}}', "contexts is no list")
			has(refused '{"users":[1]}', "users holds an entry that is no object")
			has(refused '{"clusters":[{"cluster":{}}]}', "clusters holds an entry without a name")
			has(refused '{"clusters":[{"name":"c","cluster":[]}]}', 'cluster "c" is no object')
			has(refused '{"users":[{"name":"a"},{"name":"b"},{"name":"a"}]}', 'two of user "a"')
			has(refused '{"current-context":1}', "current-context is no text")
			has(refused "just text", "no kubeconfig: it holds no object")
			has(refused "kind: Deployment\napiVersion: apps/v1\n", 'its kind is "Deployment"')
		end)

		it("for YAML that is malformed, with line and column", function()
			local message = refused("users:\n- name: a\n  user: {token: " .. SECRET .. "\ncontexts: [\n")
			assert.truthy(message:find "line %d+", message)
			assert.truthy(message:find "column %d+", message)
			refused "\0\1\2"
			refused "\xff\xfe"
		end)

		it("for a file that can't be read", function()
			has(fails { kubeconfig = folder }, "cannot read " .. folder .. ": Is a directory")
			local huge = folder .. "/huge"
			files.output_of { "truncate", "-s", "17M", huge }
			has(fails { kubeconfig = huge }, huge .. " is larger than 16 MiB")
		end)
	end)
end)
