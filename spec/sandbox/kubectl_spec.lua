-- kubectl, which nobody here wrote, against the sandbox: what its users do every day.
local files = require "support.files"
local process = require "support.process"
local sandbox = require "support.sandbox"

local SECONDS = 20

describe("kubectl with the sandbox #slow", function()
	local kubectl, why = sandbox.kubectl()
	local server, home

	before_each(function()
		if not kubectl then
			pending(why)
		end
		server, home = sandbox.start(), files.folder()
	end)

	after_each(function()
		if server then
			server:stop()
		end
	end)

	local function options(...)
		return { kubectl, env = { KUBECONFIG = server.kubeconfig, HOME = home }, seconds = SECONDS, ... }
	end

	-- Its output; it has to work.
	local function run(...)
		local code, out, err = process.run(options(...))
		assert.equal(0, code, err)
		assert.equal("", err)
		return out
	end

	-- What it says when it must not work.
	local function refused(...)
		local code, _, err = process.run(options(...))
		assert.equal(1, code)
		return err
	end

	local function manifest(text)
		return files.write(home .. "/manifest.yaml", text)
	end

	local DEPLOYMENT = [[
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "%s"}]}
]]

	it("creates, shows, labels, patches and deletes", function()
		assert.equal("configmap/one created\n", run("create", "configmap", "one", "--from-literal=a=b"))
		assert.equal('error: failed to create configmap: configmaps "one" already exists\n', refused("create", "configmap", "one"))
		assert.truthy(run("get", "cm"):find "^NAME   DATA   AGE\none    1      %ds\n$")
		local yaml = run("get", "cm", "one", "-o", "yaml")
		assert.truthy(yaml:find("apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  creationTimestamp: ", 1, true), yaml)
		assert.equal("configmap/one labeled\n", run("label", "cm", "one", "team=x"))
		assert.equal("configmap/one patched\n", run("patch", "cm", "one", "-p", '{"data":{"c":"d"}}'))
		assert.equal("configmap/one patched\n", run("patch", "cm", "one", "--type=json", "-p", '[{"op":"remove","path":"/data/a"}]'))
		assert.equal('{"c":"d"}', run("get", "cm", "-l", "team=x", "-o", "jsonpath={.items[*].data}"))
		assert.equal('configmap "one" deleted from default namespace\n', run("delete", "cm", "one"))
		assert.equal('Error from server (NotFound): configmaps "one" not found\n', refused("get", "cm", "one"))
	end)

	it("applies, both ways, and scales", function()
		assert.equal("deployment.apps/web created\n", run("apply", "-f", manifest(DEPLOYMENT:format(2, "nginx"))))
		assert.equal("deployment.apps/web unchanged\n", run("apply", "-f", manifest(DEPLOYMENT:format(2, "nginx"))))
		assert.equal("deployment.apps/web configured\n", run("apply", "-f", manifest(DEPLOYMENT:format(2, "nginx:2"))))
		assert.truthy(run("get", "deploy"):find "web    0/2     0            0 ")
		assert.equal("deployment.apps/web scaled\n", run("scale", "deploy", "web", "--replicas", "5"))
		assert.truthy(refused("apply", "--server-side", "-f", manifest(DEPLOYMENT:format(2, "nginx:2"))):find(
			'Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas', 1, true))
		run("apply", "--server-side", "--force-conflicts", "-f", manifest(DEPLOYMENT:format(3, "nginx:2")))
		assert.equal("3 nginx:2", run("get", "deploy", "web", "-o",
			"jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}"))
	end)

	it("is not asked who it is, over HTTPS neither", function()
		local cert, key = files.certificate(home)
		server:stop()
		server = sandbox.start { "--tls-cert", cert, "--tls-key", key }
		assert.equal("configmap/one created\n", run("create", "configmap", "one"))
	end)

	it("watches and waits", function()
		local watching = process.start(options("get", "cm", "--watch"))
		run("create", "cm", "one")
		watching:wait_for("one +0 +%ds", SECONDS)
		local waiting = process.start(options("wait", "--for=jsonpath={.data.ready}=yes", "cm/one", "--timeout=20s"))
		run("patch", "cm", "one", "-p", '{"data":{"ready":"yes"}}')
		watching:wait_for("one +1 +%ds", SECONDS)
		assert.equal(0, (waiting:wait(SECONDS)))
		watching:close()
	end)

	it("makes and removes namespaces, with what is in them", function()
		run("create", "ns", "shop")
		run("-n", "shop", "create", "cm", "inside")
		assert.truthy(run("get", "ns"):find "shop              Active ")
		run("delete", "ns", "shop")
		assert.truthy(refused("-n", "shop", "create", "cm", "again"):find 'namespaces "shop" not found')
	end)

	it("learns of custom resources", function()
		local definition = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
]]
		local widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 3}}"
		assert.truthy(refused("apply", "-f", manifest(widget)):find("ensure CRDs are installed first", 1, true))
		run("apply", "-f", manifest(definition))
		run("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=10s")
		run("apply", "-f", manifest(widget))
		assert.equal("NAME   SIZE\na      3\n", run("get", "wd"))
		run("delete", "crd", "widgets.example.com")
		assert.truthy(refused("get", "widgets.example.com"):find "the server doesn't have a resource type")
	end)
end)
