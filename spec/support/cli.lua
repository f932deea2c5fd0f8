--- The program itself, as a shell would run it, in an environment that names no cluster.
--
--   local code, out, err = cli.run { "check", path }
--   local child = cli.start { "run", path, "--kubeconfig", cli.kubeconfig(folder) }
local files = require "support.files"
local process = require "support.process"

local cli = {}

local home = files.folder()

local function options(arguments)
	local all = {
		process.build() .. "/perilune",
		env = {
			KUBECONFIG = false, KUBERNETES_SERVICE_HOST = false, HOME = home,
			XDG_RUNTIME_DIR = home, TMPDIR = home, -- no other host is found, and none finds those of specs
		},
		cwd = arguments.cwd, seconds = arguments.seconds,
	}
	for name, value in pairs(arguments.env or {}) do
		all.env[name] = value
	end
	for _, argument in ipairs(arguments) do
		all[#all + 1] = argument
	end
	return all
end

--- To its end: exit code, stdout, stderr.
function cli.run(arguments)
	return process.run(options(arguments))
end

--- A process of spec/support/process.lua.
function cli.start(arguments)
	return process.start(options(arguments))
end

--- Writes a kubeconfig for a server that need not be there; its path. Port 1 refuses.
function cli.kubeconfig(folder, server)
	return files.write(folder .. "/kubeconfig", ([[
apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: { cluster: here, user: nobody }
clusters:
- name: here
  cluster: { server: "%s" }
users:
- name: nobody
  user: {}
]]):format(server or "http://127.0.0.1:1"))
end

return cli
