-- Credentials from an exec plugin: when it runs, what it is told, and what becomes of requests when it fails.
local cjson = require "cjson"
local files = require "support.files"
local h2server = require "support.h2server"
local kube = require "support.kube"
local plugins = require "support.plugin"
local stub = require "support.stub"

local SECRET = "hunter2"

describe("an exec plugin", function()
	local server, why, driver, folder

	setup(function()
		server, why = h2server.start()
	end)

	teardown(function()
		if server then
			server:close()
		end
	end)

	before_each(function()
		folder = files.folder()
	end)

	after_each(function()
		if driver then
			driver:finish()
			driver = nil
		end
	end)

	-- A driver whose user has that entry, against the HTTP/2 server or the one of cluster.
	local function start(user, cluster)
		if not cluster and not server then
			pending(why)
		end
		cluster = cluster or { server = server.url, ["certificate-authority"] = server.ca }
		driver = kube.start { kubeconfig = kube.write_config(folder .. "/config", cluster, user), env = { HOST_WORD = "host" } }
		assert(driver.ready, driver.fatal and driver.fatal.message)
	end

	local function authorization()
		local done = driver:get "/echo"
		assert(not done.err, done.err and done.err.message)
		local header = done.body.headers.authorization
		return type(header) == "table" and header[1] or header
	end

	-- The error of a request, which shows no secret.
	local function failure()
		local done = driver:get "/ok"
		assert.is_truthy(done.err)
		assert.is_nil(driver:output():find(SECRET, 1, true))
		return done.err
	end

	it("gives the token of each request, and runs again when it has expired", function()
		local plugin = plugins.write(folder, 'token "word-$n" "$((2 * n - 1))"')
		start(plugin:user())
		assert.equal(0, plugin:runs())
		for _ = 1, 3 do
			assert.equal("Bearer word-1", authorization())
		end
		driver:order("advance", { seconds = 3500 })
		assert.equal("Bearer word-1", authorization())
		driver:order("advance", { seconds = 120 })
		assert.equal("Bearer word-2", authorization())
		assert.equal(2, plugin:runs())
	end)

	it("keeps a token that does not expire", function()
		local plugin = plugins.write(folder, "token word-$n")
		start(plugin:user())
		assert.equal("Bearer word-1", authorization())
		driver:order("advance", { seconds = 1e6 })
		assert.equal("Bearer word-1", authorization())
	end)

	it("runs once for all that ask meanwhile", function()
		local plugin = plugins.write(folder, "note; until [ -e $dir/go ]; do sleep 0.02; done; token word-$n")
		start(plugin:user())
		driver:order("burst", { id = "b", count = 50, path = "/ok" })
		plugin:pid()
		local late = driver:start { path = "/ok" }
		files.write(folder .. "/go", "")
		assert.equal(50, driver:event("done", "b").good)
		assert.is_nil(driver:event("done", late).err)
		assert.equal(1, plugin:runs())
	end)

	it("runs once more after a 401, and the request is repeated with what it gives", function()
		local plugin = plugins.write(folder, "token word-$n")
		start(plugin:user())
		for _, fields in ipairs { { path = "/status?code=401&times=1&id=call" }, { path = "/status?code=401&times=1&id=watch", stream = 1 } } do
			local runs = math.max(plugin:runs(), 1)
			assert.is_nil(driver:request(fields).err)
			assert.equal(runs + 1, plugin:runs())
			assert.equal("Bearer word-" .. runs + 1, authorization())
			driver:order("advance", { seconds = 600 })
		end
	end)

	it("does not run for each request that the server refuses", function()
		local plugin = plugins.write(folder, "token word")
		start(plugin:user())
		driver:order("burst", { id = "b", count = 30, path = "/status?code=401&id=always" })
		assert.equal(0, driver:event("done", "b").good)
		assert.equal(2, plugin:runs())
		driver:order("advance", { seconds = 600 })
		local done = driver:get "/status?code=401&id=always"
		assert.same({ 401, 3 }, { done.err.code, plugin:runs() })
		assert.equal("Bearer word", authorization())
	end)

	it("is told in its environment what it was promised, beside what this program has", function()
		local plugin = plugins.write(folder, 'echo "$1|$A|$HOST_WORD" > $dir/seen; printf %s "$KUBERNETES_EXEC_INFO" > $dir/info; token word')
		local cluster = {
			server = server and server.url, ["certificate-authority"] = server and server.ca, ["tls-server-name"] = "localhost",
			extensions = { { name = "other", extension = { no = true } }, { name = "client.authentication.k8s.io/exec", extension = { audience = "us" } } },
		}
		start(plugin:user { args = { "first word" }, env = { { name = "A", value = "b" }, { name = "KUBERNETES_EXEC_INFO", value = "{}" } } }, cluster)
		driver:get "/ok"
		assert.equal("first word|b|host\n", files.read(folder .. "/seen"))
		assert.same({ kind = "ExecCredential", apiVersion = plugins.V1, spec = { interactive = false } }, cjson.decode(files.read(folder .. "/info")))
		driver:finish()
		start(plugin:user { provideClusterInfo = true }, cluster)
		driver:get "/ok"
		assert.same({
			server = server.url, ["tls-server-name"] = "localhost", config = { audience = "us" },
			["certificate-authority-data"] = files.output_of { "base64", "-w", "0", server.ca },
		}, cjson.decode(files.read(folder .. "/info")).spec.cluster)
	end)

	it("inherits no descriptor, not even of the connections that are open, and ends with the program", function()
		local plugin = plugins.write(folder, '[ "$n" = 1 ] && token word 1 && exit; note; exec sleep 1000')
		start(plugin:user())
		local watch = driver:start { path = "/watch", stream = 1 }
		driver:event("head", watch)
		driver:order("advance", { seconds = 3700 })
		driver:start { path = "/ok" }
		local pid = plugin:pid()
		plugins.await_program(pid, "sleep") -- a shell has its script open
		assert.equal("0\n1\n2\n", files.output_of { "ls", "/proc/" .. pid .. "/fd" })
		driver:finish()
		driver = nil
		plugins.await_death(pid)
	end)

	it("is killed with all that it has started when it hangs", function()
		local plugin = plugins.write(folder, "echo working >&2; sleep 1000 & echo $! > $dir/sleeper; note; wait")
		start(plugin:user())
		local id = driver:start { path = "/ok" }
		local pid = plugin:pid()
		driver:order("advance", { seconds = 31 })
		local err = driver:event("done", id).err
		assert.matches('config: user "u": exec: ' .. plugin.path .. " was killed, as it had not ended after 30 s: working", err.message, 1, true)
		assert.is_true(err.retryable)
		plugins.await_death(pid)
		plugins.await_death(files.read(folder .. "/sleeper"):match "%d+")
	end)

	it("is killed when it prints without end, and none of that is shown", function()
		local plugin = plugins.write(folder, "yes " .. SECRET .. " | head -c 100000000")
		start(plugin:user())
		assert.matches("was killed, as it printed more than 1024 KiB", failure().message, 1, true)
		assert.equal(1, plugin:runs())
	end)

	it("that fails is an error with its exit code and the end of its stderr, and is not run for each request", function()
		local plugin = plugins.write(folder, "token " .. SECRET .. "; head -c 100000 /dev/zero | tr '\\0' x >&2; echo ' log in first' >&2; exit 7")
		start(plugin:user())
		driver:order("burst", { id = "b", count = 30, path = "/ok" })
		assert.equal(0, driver:event("done", "b").good)
		assert.equal(1, plugin:runs())
		driver:order("advance", { seconds = 600 })
		local err = failure()
		assert.equal(2, plugin:runs())
		assert.same({ "Unauthorized", 0, true, false }, { err.reason, err.code, err.retryable, err.outcome_unknown })
		assert.matches('user "u": exec: .*/plugin ended with exit code 7: x+ log in first$', err.message)
		assert.is_true(#err.message < 800)
	end)

	it("that fails once is healed by a later run", function()
		local plugin = plugins.write(folder, '[ "$n" = 1 ] && exit 1; token word-$n')
		start(plugin:user())
		failure()
		driver:order("advance", { seconds = 600 })
		assert.equal("Bearer word-2", authorization())
	end)

	it("that is not there says so, with the hint of the kubeconfig", function()
		start { exec = { apiVersion = plugins.V1, command = "no-such-plugin", interactiveMode = "Never", installHint = "Get it at\nexample.com" } }
		assert.matches('user "u": exec: there is no command no-such-plugin in $PATH: Get it at example.com', failure().message, 1, true)
		driver:finish()
		start { exec = { apiVersion = plugins.V1, command = "./absent", interactiveMode = "Never" } }
		assert.matches("there is no command " .. folder .. "/./absent", failure().message, 1, true)
	end)

	it("that prints something else, or what has expired, is an error that shows nothing of it", function()
		local plugin = plugins.write(folder, "echo " .. SECRET)
		start(plugin:user())
		assert.matches("what " .. plugin.path .. " printed is no credential: it is no JSON object", failure().message, 1, true)
		driver:finish()
		plugin = plugins.write(folder, "token " .. SECRET .. " -1")
		start(plugin:user())
		assert.matches("has expired already; check the clock of this machine", failure().message, 1, true)
	end)

	it("keeps nobody longer than they wait, and whoever leaves is not told", function()
		local plugin = plugins.write(folder, "note; until [ -e $dir/go ]; do sleep 0.02; done; token word")
		start(plugin:user())
		local gone, short = driver:start { path = "/ok" }, driver:start { path = "/ok", timeout = 5 }
		plugin:pid()
		driver:order("cancel", { id = gone })
		driver:order("advance", { seconds = 6 })
		local err = driver:event("done", short).err
		assert.same({ "Timeout", "GET /ok was not sent within 5 s: the exec plugin, which has the credentials, still runs" }, { err.reason, err.message })
		local stays = driver:start { path = "/ok" }
		files.write(folder .. "/go", "")
		assert.is_nil(driver:event("done", stays).err)
		assert.is_false(driver:has("done", gone))
	end)

	it("is not run where a token is given, which goes first", function()
		local plugin = plugins.write(folder, "token word")
		local user = plugin:user()
		user.token = "given"
		start(user)
		assert.equal("Bearer given", authorization())
		assert.equal(0, plugin:runs())
	end)

	it("is not run for a server without TLS, which gets no credentials", function()
		local plain = stub.listen()
		local plugin = plugins.write(folder, "token word")
		start(plugin:user(), { server = plain.url })
		local id = driver:start { path = "/x" }
		local request = plain:accept()
		request:reply(200, { ["content-type"] = "application/json" }, "{}")
		assert.is_nil(driver:event("done", id).err)
		assert.is_nil(request.headers.authorization)
		assert.equal(0, plugin:runs())
		driver:finish()
		assert.matches("is plain http: the credentials of", driver.child:stderr(), 1, true)
		driver = nil
		plain:close()
	end)
end)
