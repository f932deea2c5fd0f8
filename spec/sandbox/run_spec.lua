-- The command line: `perilune sandbox`, and `perilune run --sandbox`.
local cli = require "support.cli"
local files = require "support.files"
local sandbox = require "support.sandbox"

local SECONDS = 20

local CRD = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
]]

describe("perilune sandbox", function()
	it("prints its kubeconfig, serves, and leaves nothing behind", function()
		local server = sandbox.start()
		assert.equal("ok", select(2, server:curl("GET", "/readyz")))
		server:stop()
		assert.is_nil(io.open(server.kubeconfig))
		assert.equal(server.kubeconfig .. "\n", server.child:stdout())
	end)

	it("puts manifests into place, definitions first and namespaces before what is in them", function()
		local folder = files.folder()
		files.write(folder .. "/a.yaml", "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: shop}}\n---\n"
			.. "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
		files.write(folder .. "/b.yml", CRD)
		files.write(folder .. "/ignored.txt", "no manifest")
		local server = sandbox.start { "--manifests", folder }
		assert.equal(200, (server:curl("GET", "/apis/example.com/v1/namespaces/shop/widgets/w")))
		server:stop()
	end)

	it("serves HTTPS with a certificate that it is given", function()
		local cert, key = files.certificate(files.folder())
		local server = sandbox.start { "--tls-cert", cert, "--tls-key", key }
		assert.truthy(server.url:find "^https://")
		assert.equal("ok", select(2, sandbox.request({ server = server.url, ca = cert }, "GET", "/readyz")))
		local child = cli.start { "run", "examples/label-sync", "--kubeconfig", server.kubeconfig, "--listen", "off" }
		child:wait_for("ha%l+ synced", SECONDS)
		child:kill "TERM"
		assert.equal(0, (child:wait(SECONDS)), child:stderr())
		server:stop()
	end)

	it("says what is wrong with its certificate", function()
		local code, _, err = cli.run { "sandbox", "--tls-cert", "a.crt" }
		assert.equal(2, code)
		assert.truthy(err:find("HTTPS takes both --tls-cert and --tls-key", 1, true), err)
		code, _, err = cli.run { "sandbox", "--tls-cert", "/no/where.crt", "--tls-key", "/no/where.key" }
		assert.equal(1, code)
		assert.truthy(err:find("cannot read /no/where.crt", 1, true), err)
	end)

	it("says which manifest it can't take, and why", function()
		local path = files.write(files.folder() .. "/bad.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: A}}")
		local code, _, err = cli.run { "sandbox", "--manifests", path }
		assert.equal(1, code)
		assert.truthy(err:find("--manifests: " .. path .. ': ConfigMap "A" is invalid', 1, true), err)
		files.write(path, "{apiVersion: v1, kind: Podd, metadata: {name: a}}")
		code, _, err = cli.run { "sandbox", "--manifests", path }
		assert.equal(1, code)
		assert.truthy(err:find("--manifests: " .. path .. ": the sandbox has no kind Podd in v1, did you mean Pod?", 1, true), err)
		code, _, err = cli.run { "sandbox", "--manifests", "/nowhere" }
		assert.equal(1, code)
		assert.truthy(err:find("/nowhere: No such file or directory", 1, true), err)
	end)
end)

describe("perilune run --sandbox", function()
	it("runs a sample against its manifests", function()
		local child = cli.start {
			"run", "examples/label-sync", "--sandbox", "--manifests", "examples/label-sync/manifests", "--listen", "off" }
		child:wait_for("labels synced", SECONDS)
		child:kill "TERM"
		assert.equal(0, (child:wait(SECONDS)), child:stderr())
		assert.is_nil(child:stderr():find("WARN", 1, true), child:stderr())
	end)

	it("is a cluster of its own", function()
		local code, _, err = cli.run { "run", "--sandbox", "--kubeconfig", "/dev/null", "examples/label-sync" }
		assert.equal(2, code)
		assert.truthy(err:find("--sandbox is a cluster of its own", 1, true))
		code, _, err = cli.run { "run", "--manifests", "/dev/null", "examples/label-sync" }
		assert.equal(2, code)
		assert.truthy(err:find("--manifests needs --sandbox", 1, true))
	end)
end)
