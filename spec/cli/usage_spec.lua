local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"

describe("the command line", function()
	local function refused(arguments, ...)
		local code, out, err = cli.run(arguments)
		assert.equal(2, code)
		assert.equal("", out)
		assert.equal(1, select(2, err:gsub("\n", "")), "one line: " .. err)
		for _, text in ipairs { "perilune help", ... } do
			assert.truthy(err:find(text, 1, true), ("no %q in: %s"):format(text, err))
		end
	end

	it("refuses what it does not know, and names what was meant", function()
		refused({}, "no verb")
		refused({ "rum", "x.lua" }, '"rum"', "did you mean run?")
		refused({ "frobnicate" }, '"frobnicate"')
		refused({ "team.lua" }, '"team.lua"', "did you mean `perilune run team.lua`?")
		refused({ "--sandbox", "examples" }, '"examples"', "did you mean `perilune run examples`?")
		refused({ "run", "--kubeconfg", "x", "x.lua" }, "--kubeconfg", "did you mean --kubeconfig?")
		refused({ "run", "--kubeconfg=secret", "x.lua" }, "--kubeconfg:")
		refused({ "run", "--frobnicate", "x.lua" }, "--frobnicate")
		refused({ "run", "-x", "x.lua" }, "-x")
		refused({ "help", "chekc" }, '"chekc"', "check")
		refused({ "test", "--frobnicate", "spec" }, "--frobnicate")
	end)

	it("refuses flags of other verbs, before the verb too", function()
		refused({ "version", "--jit" }, "version takes no --jit")
		refused({ "--jit", "version" }, "version takes no --jit")
		refused({ "run", "-o", "json", "x.lua" }, "run takes no --output")
		refused({ "test", "--listen", ":0", "spec" }, "test takes no --listen")
	end)

	it("refuses missing and surplus arguments", function()
		refused({ "run" }, "run needs PATH")
		refused({ "test" }, "test needs PATH")
		refused({ "version", "please" }, '"please"')
		refused({ "run", "x.lua", "--context" }, "--context needs a value")
		refused({ "run", "--context", "--jit", "x.lua" }, "--context needs a value")
		refused({ "test", "spec", "--filter" }, "--filter needs a value")
	end)

	for flag, values in pairs {
		["--sync-timeout"] = { "5", "", "5 s", "-1s", "5d", "soon" },
		["--grace-period"] = { "30" },
		["--time-limit"] = { "1" },
		["--memory-limit"] = { "", "64", "MiB", "64MiX", "-1", "1e3", "1.2.3MiB", "99999999999TiB" },
		["--listen"] = { "", "8080", "host:", ":65536", ":x", "::1:8080", "a b:1", "on" },
		["--log-level"] = { "loud", "INFO" },
		["--log-format"] = { "xml" },
		["--set"] = { "", "key", "=value" },
		["--namespace"] = { "", "Shop", "-shop", "a/b", ("n"):rep(64) },
		["--jit"] = { "maybe" },
		["--lease"] = { "", "team", "/team", "shop/", "shop/Team", "shop/a..b", "shop/a/b", "Shop/a", "shop/" .. ("a."):rep(127) .. "a" },
		["--lease-duration"] = { "15" },
		["--kubeconfig"] = { "" },
	} do
		it("refuses bad values of " .. flag, function()
			for _, value in ipairs(values) do
				refused({ "check", flag .. "=" .. value, "x.lua" }, ('bad value "%s" for %s'):format(value, flag))
			end
		end)
	end

	it("refuses times of an election that could have two leaders or none", function()
		local function election(...)
			return { "check", "--leader-elect", ..., "x.lua" }
		end
		refused({ "check", "--lease", "shop/team", "x.lua" }, "--lease needs --leader-elect")
		refused(election "--lease-duration=10s", "--lease-duration must be longer than --renew-deadline")
		refused(election "--lease-duration=15500ms", "--lease-duration must be whole seconds")
		refused(election "--lease-duration=0", "--lease-duration must be whole seconds")
		refused(election "--renew-deadline=2400ms", "--renew-deadline must be longer than 1.2 times --retry-period")
		refused(election "--retry-period=0", "--renew-deadline must be longer than 1.2 times --retry-period")
	end)

	it("takes values in every form", function()
		local script = files.write(files.folder() .. "/a.lua", "")
		local code, _, err = cli.run {
			"--log-level", "error", "check", script,
			"--memory-limit", "64MiB", "--memory-limit=1.5Gi", "--memory-limit", "1000000", "--memory-limit=0",
			"-n", "shop", "-nshop", "-n=shop", "--namespace=shop", "--set", "a=b", "--set", "c=d=e", "--set=f=",
			"--listen", "off", "--listen=:0", "--listen=[::1]:8080", "--listen", "localhost:0",
			"--sync-timeout", "1h30m", "--sync-timeout", "0", "--grace-period=500ms",
			"--leader-elect", "--lease", "shop/team.one", "--lease-duration", "3s", "--renew-deadline=2s", "--retry-period", "500ms",
			"--jit", "--jit=false", "--dry-run", "--log-format=json", "--unsafe-libs=false",
		}
		assert.equal("", err)
		assert.equal(0, code)
		assert.equal(0, (cli.run { "check", "--", script }))
	end)

	it("refuses a path that is not there", function()
		local folder = files.folder()
		refused({ "check", folder .. "/gone.lua" }, folder .. "/gone.lua", "No such file")
		refused({ "check", folder }, folder .. ": no init.lua and no other .lua file in it;")
		refused({ "test", folder .. "/gone_spec.lua" }, folder .. "/gone_spec.lua", "No such file")
		refused({ "run", "--kubeconfig", cli.kubeconfig(folder), "--log-level=error", folder .. "/gone.lua" },
			folder .. "/gone.lua", "No such file")
		refused({ "run", folder .. "/gone.lua" }, folder .. "/gone.lua", "No such file")
	end)

	it("says where to look where a path is of another kind", function()
		local folder = files.folder()
		local manifest = files.write(folder .. "/team.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		for _, verb in ipairs { "run", "check", "rbac" } do
			refused({ verb, "--sandbox", "--log-level=error", manifest }, manifest .. ": this is no script: --manifests takes YAML")
		end
		for _, name in ipairs { "b", "a", "empty", ".a" } do
			files.output_of { "mkdir", folder .. "/" .. name }
		end
		for _, name in ipairs { "a", "b", ".a" } do
			files.write(("%s/%s/init.lua"):format(folder, name), "")
		end
		refused({ "check", folder .. "/" }, folder .. ": no init.lua and no other .lua file in it, but in its folders a, b;")
	end)

	it("explains itself on stdout", function()
		local all = select(2, cli.run { "help" })
		for _, verb in ipairs { "run", "check", "test", "version", "help" } do
			assert.truthy(all:find("\n  " .. verb, 1, true), verb)
			for _, arguments in ipairs { { "help", verb }, { verb, "--help" }, { verb, "-h" } } do
				local code, out, err = cli.run(arguments)
				assert.equal(0, code)
				assert.equal("", err)
				assert.truthy(out:find("^usage: perilune " .. verb))
			end
		end
		for _, arguments in ipairs { { "--help" }, { "-h" }, { "--help", "run" } } do
			local code, out = cli.run(arguments)
			assert.equal(0, code)
			assert.equal(all, out)
		end
		assert.truthy(all:find("--kubeconfig FILE", 1, true))
		assert.is_nil((select(2, cli.run { "help", "test" })):find("--listen", 1, true))
		local listen = select(2, cli.run { "help", "sandbox" }):match "%-%-listen ADDR:PORT +([^\n]+)"
		assert.equal("of the server (127.0.0.1 and a free port)", listen)
	end)

	it("tells its version", function()
		local code, out = cli.run { "version" }
		assert.equal(0, code)
		local version = out:match "^perilune (%d+%.%d+%.%d+) %(linux/%w+%)\n$"
		assert.truthy(version, out)
		for _, arguments in ipairs { { "version", "-o", "json" }, { "version", "-ojson" }, { "version", "--output=json" } } do
			local parsed = cjson.decode((select(2, cli.run(arguments))))
			assert.equal(version, parsed.version)
			assert.equal("linux", parsed.os)
		end
		assert.equal(out, (select(2, cli.run { "--version" })))
	end)

	it("fails when its output can't be written", function()
		local script = ('"%s/perilune" version >/dev/full'):format(require("support.process").build())
		local code, _, err = require("support.process").run { "sh", "-c", script }
		assert.equal(1, code)
		assert.truthy(err:find("perilune: stdout: No space left", 1, true), err)
	end)
end)
