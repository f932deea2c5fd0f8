-- An exec plugin and impersonation, judged by a real API server.
local cluster = require "support.cluster"
local files = require "support.files"
local kube = require "support.kube"
local plugins = require "support.plugin"

local CERTIFICATE = [[
user() {
	printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"clientCertificateData":"%s","clientKeyData":"%s"' \
		"$(sed 's/$/\\n/' "$1.crt" | tr -d '\n')" "$(sed 's/$/\\n/' "$1.key" | tr -d '\n')"
	date -u -d "+$2 hours" '+,"expirationTimestamp":"%Y-%m-%dT%H:%M:%SZ"}}'
}
]]

describe("who the API server takes us for", function()
	local driver, folder

	before_each(function()
		cluster.need()
		folder = files.folder()
	end)

	after_each(function()
		if driver then
			driver:finish()
			driver = nil
		end
	end)

	local function start(user)
		local server = { server = cluster.server(), ["certificate-authority"] = cluster.ca() }
		driver = kube.start { kubeconfig = kube.write_config(folder .. "/config", server, user) }
		assert(driver.ready, driver.fatal and driver.fatal.message)
	end

	local function who()
		local done = driver:request {
			method = "POST", path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
			body = { apiVersion = "authentication.k8s.io/v1", kind = "SelfSubjectReview" },
		}
		assert(not done.err, done.err and done.err.message)
		return done.body.status.userInfo
	end

	it("is the owner of the plugin's certificate, and of its next one when that has expired", function()
		local first, carol = cluster.need_user()
		local second, dave = cluster.need_user()
		local bases = { (carol:gsub("%.kubeconfig$", "")), (dave:gsub("%.kubeconfig$", "")) }
		local plugin = plugins.write(folder, CERTIFICATE ..
			('[ "$n" = 1 ] && user %s 1 || user %s 3'):format(bases[1], bases[2]))
		start(plugin:user())
		assert.equal(first, who().username)
		assert.equal(first, who().username)
		driver:order("advance", { seconds = 3700 })
		assert.equal(second, who().username)
		assert.equal(2, plugin:runs())
	end)

	it("is the owner of the plugin's token, also of a new one at once when the server knows the old one no more", function()
		local namespace = cluster.namespace()
		local account = "/api/v1/namespaces/" .. namespace .. "/serviceaccounts"
		cluster.curl("POST", account, { apiVersion = "v1", kind = "ServiceAccount", metadata = { name = "robot" } })
		local _, answer = cluster.curl("POST", account .. "/robot/token", { apiVersion = "authentication.k8s.io/v1", kind = "TokenRequest" })
		local plugin = plugins.write(folder, '[ "$n" = 1 ] && token stale || token ' .. answer.status.token)
		start(plugin:user())
		assert.equal("system:serviceaccount:" .. namespace .. ":robot", who().username)
		assert.equal(2, plugin:runs())
	end)

	it("is who the kubeconfig says to act as", function()
		local admin = cluster.credentials()
		start {
			["client-certificate"] = admin.cert, ["client-key"] = admin.key, as = "ann@example.com", ["as-uid"] = "7",
			["as-groups"] = { "dev", "ops" }, ["as-user-extra"] = { ["example.com/scope a"] = { "view", "edit" } },
		}
		local info = who()
		assert.same({ "ann@example.com", "7" }, { info.username, info.uid })
		assert.same({ "view", "edit" }, info.extra["example.com/scope a"])
		assert.equal("dev ops system:authenticated", table.concat(info.groups, " "))
	end)
end)
