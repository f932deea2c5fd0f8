-- What a host answers on its control socket (core/ops/control.h), as the bytes are.
local cjson = require "cjson"
local cli = require "support.cli"
local files = require "support.files"
local tcp = require "support.tcp"

local SECONDS = 20

describe("the control socket", function()
	local folder, host

	before_each(function()
		folder = files.folder()
		local script = files.write(folder .. "/a.lua", [[
			local k8s = require "perilune"
			k8s.informer { apiVersion = "v1", kind = "Secret" }
			k8s.state.word = k8s.config.password
		]])
		local kubeconfig = files.read(cli.kubeconfig(folder)):gsub("user: {}", "user: { username: ada, password: hunter2 }")
		files.write(folder .. "/kubeconfig", kubeconfig)
		host = cli.start {
			"run", script, "--kubeconfig", folder .. "/kubeconfig", "--set", "password=hunter3", "--listen", "off",
			"--socket", folder .. "/socket", "--log-level", "debug",
		}
		host:wait_for("control socket", SECONDS)
	end)

	after_each(function()
		host:kill()
		assert.equal(0, (host:wait(SECONDS)))
	end)

	local function ask(text)
		local peer = tcp.connect_unix(folder .. "/socket")
		peer:write(text)
		local word, length = peer:read_until("\n", SECONDS):match "^(%l+) (%d+)\n$"
		assert.truthy(peer:wait_closed(SECONDS))
		assert.equal(tonumber(length), #peer.received)
		return word, peer.received
	end

	it("answers what it knows, and refuses the rest", function()
		local word, text = ask "status\n"
		assert.equal("ok", word)
		assert.equal("v1/Secret", cjson.decode(text).informers[1].informer)
		for _, request in ipairs { "", "Status", "status ", "status\r", "GET / HTTP/1.1", "stat" } do
			word, text = ask(request .. "\n")
			assert.same({ "refused", "the host knows no such request; it may be of another version" }, { word, text })
		end
	end)

	it("tells no secrets", function()
		local _, text = ask "status\n"
		assert.falsy(text:find "hunter")
		assert.falsy(host:stderr():find "hunter")
	end)

	it("answers a hundred at once, each whole", function()
		local peers = {}
		for i = 1, 100 do
			peers[i] = tcp.connect_unix(folder .. "/socket")
			peers[i]:write "status\n"
		end
		for _, peer in ipairs(peers) do
			local length = tonumber(peer:read_until("\n", SECONDS):match "^ok (%d+)\n$")
			assert.truthy(peer:wait_closed(SECONDS))
			assert.equal(length, #peer.received)
			assert.is_false(cjson.decode(peer.received).ready)
		end
	end)
end)
