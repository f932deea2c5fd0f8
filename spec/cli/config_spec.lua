local cli = require "support.cli"
local files = require "support.files"
local process = require "support.process"

describe("perilune run without a usable cluster", function()
	local folder = files.folder()
	local script = files.write(folder .. "/a.lua", 'local k8s = require "perilune"')

	-- Exit code 1, and one log line with these texts.
	local function fails(arguments, ...)
		local code, out, err = cli.run(arguments)
		assert.equal(1, code, err)
		assert.equal("", out)
		assert.truthy(err:find "^%d+%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d+Z ERROR [^\n]+\n$", err)
		for _, text in ipairs { ... } do
			assert.truthy(err:find(text, 1, true), ("no %q in: %s"):format(text, err))
		end
	end

	it("says where it looked", function()
		fails({ "run", script }, "no kubeconfig", "$KUBECONFIG", "/.kube/config", "--kubeconfig")
		fails({ "run", script, "--kubeconfig", folder .. "/gone" }, folder .. "/gone")
		fails({ "run", script, env = { KUBECONFIG = folder .. "/gone" } }, folder .. "/gone", "$KUBECONFIG")
	end)

	it("says what is wrong with the file", function()
		fails({ "run", script, "--kubeconfig", folder }, folder)
		fails({ "run", script, "--kubeconfig", files.write(folder .. "/bad", "apiVersion: [v1\n") }, folder .. "/bad")
		fails({ "run", script, "--kubeconfig", files.write(folder .. "/list", "- a\n- b\n") }, folder .. "/list")
	end)

	it("names the contexts that there are", function()
		fails({ "run", script, "--kubeconfig", cli.kubeconfig(folder), "--context", "there" }, '"there"', "here")
	end)

	it("speaks JSON when asked to", function()
		local code, _, err = cli.run { "run", script, "--log-format", "json" }
		assert.equal(1, code)
		local line = require("cjson").decode(err)
		assert.equal("error", line.level)
		assert.truthy(line.msg:find("no kubeconfig", 1, true))
	end)

	it("is no matter for check, unless a kubeconfig is named", function()
		assert.equal(0, (cli.run { "check", script }))
		local code, _, err = cli.run { "check", script, "--kubeconfig", folder .. "/gone" }
		assert.equal(1, code)
		assert.truthy(err:find(folder .. "/gone", 1, true), err)
		assert.equal(0, (cli.run { "check", script, "--kubeconfig", cli.kubeconfig(folder) }))
		assert.equal(1, (cli.run { "check", script, "--kubeconfig", cli.kubeconfig(folder), "--context", "there" }))
	end)

	it("says that too few files may be open", function()
		local code, _, err = process.run {
			"sh", "-c", 'ulimit -n 40; exec "$0" "$@"', process.build() .. "/perilune", "run", script, "--sandbox",
		}
		assert.equal(1, code)
		assert.matches("only 40 files may be open at once, and at least 64 are needed; raise ulimit -n", err, 1, true)
	end)
end)
