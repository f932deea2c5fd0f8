--- Exec plugins for specs: shell scripts that write down each of their runs.
--
--   local plugin = plugins.write(folder, [[...]])   the script's text; $n is the number of the run, $dir the folder;
--                                                   `token WORD [HOURS]` prints a credential (for so many hours from now)
--   plugin:user { args = …, env = … }               a user's entry of a kubeconfig that runs it
--   plugin:runs()                                   how often it has run
--   plugin:pid()                                    waits for a run that says `note`, and then is its pid
local files = require "support.files"
local process = require "support.process"

local plugins = {}

plugins.V1 = "client.authentication.k8s.io/v1"

local SECONDS = 20

local PRELUDE = [[
#!/bin/sh
dir='%s'
echo run >> "$dir/runs"
n=$(($(wc -l < "$dir/runs")))
token() {
	expiry=
	[ -z "$2" ] || expiry=',"expirationTimestamp":"'$(date -u -d "+$2 hours" +%%Y-%%m-%%dT%%H:%%M:%%SZ)'"'
	echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$1'"'"$expiry"'}}'
}
note() {
	echo $$ > "$dir/pid.new"
	mv "$dir/pid.new" "$dir/pid"
}
]]

local Plugin = {}
Plugin.__index = Plugin

function plugins.write(folder, script)
	local path = files.write(folder .. "/plugin", PRELUDE:format(folder) .. script)
	files.output_of { "chmod", "+x", path }
	return setmetatable({ folder = folder, path = path }, Plugin)
end

function Plugin:user(changes)
	local exec = { apiVersion = plugins.V1, command = self.path, interactiveMode = "Never" }
	for key, value in pairs(changes or {}) do
		exec[key] = value
	end
	return { exec = exec }
end

local function content(path)
	local file = io.open(path)
	local text = file and file:read "a"
	if file then
		file:close()
	end
	return text
end

function Plugin:runs()
	return select(2, (content(self.folder .. "/runs") or ""):gsub("\n", ""))
end

local function await(what, is_so)
	local deadline = process.now() + SECONDS
	while true do
		local result = is_so()
		if result then
			return result
		end
		assert(process.now() < deadline, what .. ": not in time")
		process.run { "sleep", "0.02" }
	end
end

function Plugin:pid()
	return await("a run of the plugin", function()
		return (content(self.folder .. "/pid") or ""):match "%d+"
	end)
end

--- Waits until that process is another program, after an exec.
function plugins.await_program(pid, name)
	await("process " .. pid .. " as " .. name, function()
		return content("/proc/" .. pid .. "/comm") == name .. "\n"
	end)
end

--- Waits until no process of that id runs.
function plugins.await_death(pid)
	await("the end of process " .. pid, function()
		local state = (content("/proc/" .. pid .. "/stat") or ""):match "%) (%a)"
		return not state or state == "Z" or state == "X"
	end)
end

return plugins
