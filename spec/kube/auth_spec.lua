-- Credentials of a kubeconfig itself: what is sent, and what is said of files that can't be used.
local files = require "support.files"
local h2server = require "support.h2server"
local kube = require "support.kube"

local SECRET = "hunter2"

describe("the credentials of a kubeconfig", function()
	local folder, driver

	before_each(function()
		folder = files.folder()
	end)

	local function start(user, cluster)
		cluster = cluster or {}
		cluster.server = cluster.server or "https://127.0.0.1:1"
		driver = kube.start { kubeconfig = kube.write_config(folder .. "/config", cluster, user) }
	end

	local function fails(part, user, cluster)
		start(user, cluster)
		assert(driver.fatal, "it was taken")
		assert.equal(folder .. "/config: " .. part, driver.fatal.message:sub(1, #folder + 9 + #part))
		assert.is_nil(driver:output():find(SECRET, 1, true))
		driver:finish()
	end

	it("that are a user name and a password go out as basic authentication", function()
		local server, why = h2server.start()
		if not server then
			pending(why)
		end
		start({ username = "ann", password = "a:b" }, { server = server.url, ["certificate-authority"] = server.ca })
		assert.equal("Basic YW5uOmE6Yg==", driver:get("/echo").body.headers.authorization)
		driver:finish()
		server:close()
	end)

	it("that can't be read are named with file, entry and field", function()
		local text = files.write(folder .. "/text", SECRET .. " and more")
		local empty = files.write(folder .. "/empty", "\n")
		fails('user "u": token: cannot read ' .. folder .. "/absent: No such file", { tokenFile = "absent" })
		fails('user "u": token: ' .. text .. " is no token: it holds spaces", { tokenFile = "text" })
		fails('user "u": token: ' .. empty .. " is empty", { tokenFile = "empty" })
		fails('user "u": token: it is no token', { token = SECRET .. "\n" .. SECRET })
		fails('user "u": client-certificate: cannot read ' .. folder .. "/absent", { ["client-certificate"] = "absent", ["client-key"] = "k" })
		fails('user "u": client-certificate: ' .. text .. ' holds no PEM block "CERTIFICATE"',
			{ ["client-certificate"] = "text", ["client-key"] = "text" })
		fails('cluster "c": certificate-authority: cannot read ' .. folder .. "/absent", {}, { ["certificate-authority"] = "absent" })
		fails('cluster "c": certificate-authority: data holds no PEM block', {}, { ["certificate-authority-data"] = "aHVudGVyMg==" })
	end)
end)
