--- The program running scripts, watched from outside: what they print, its log, its pages, its exit code.
--
--   local run = host.start { kubeconfig = path, script = [[ k8s.on_synced(function() print "here" end) ]] }
--       scripts = { first = "…", second = "…" }     several scripts, by name
--       set = { namespace = "shop" }                read as k8s.config.namespace
--       flags = { "--sync-timeout", "3s" }, env = { … }
--       pages = true                                with --listen on a free port
--       wrapper = { "valgrind", … }                 a program to run it under
--       build = "build/release"                     in place of the one under test
--   run:line(5)                     the next line that a script printed
--   run:lines_until("end", 20)      all lines before the one that is this text
--   run:page("/readyz?verbose")     status, body
--   run:await_page("/readyz", 200, 20)
--   run:status()                    /status, decoded
--   run:log_line("handler failed")  the line of its log that holds this text, waited for
--   run:stop()                      TERM; fails unless the exit code is 0
--   run.child                       the process
--
--   host.ask { kubeconfig = path, set = …, [[ return k8s.list { … } ]] }     what a script says when it runs this in k8s.main
--
-- In each script `k8s` is the module. Lines are numbered as in the text given.
local cjson = require "cjson"
local cluster = require "support.cluster"
local files = require "support.files"
local process = require "support.process"

local host = {}

local SECONDS = 20 -- more than any step here takes, on a slow machine with sanitizers

local Run = {}
Run.__index = Run

local function write_script(folder, name, text)
	return files.write(("%s/%s.lua"):format(folder, name), 'local k8s = require "perilune" ' .. text)
end

local function add_scripts(command, options, folder)
	if options.script then
		command[#command + 1] = write_script(folder, "script", options.script)
	end
	for name, text in pairs(options.scripts or {}) do
		command[#command + 1] = write_script(folder, name, text)
	end
end

local function add_flags(command, options)
	local function add(...)
		for _, word in ipairs { ... } do
			command[#command + 1] = word
		end
	end
	add("--listen", options.pages and "127.0.0.1:0" or "off")
	if options.kubeconfig then
		add("--kubeconfig", options.kubeconfig)
	end
	for key, value in pairs(options.set or {}) do
		add("--set", key .. "=" .. value)
	end
	add(unpack(options.flags or {}))
end

function host.start(options)
	local folder = files.folder()
	local command = { unpack(options.wrapper or {}) }
	command[#command + 1] = (options.build or process.build()) .. "/perilune"
	command[#command + 1] = "run"
	add_scripts(command, options, folder)
	add_flags(command, options)
	command.env = { KUBECONFIG = false, KUBERNETES_SERVICE_HOST = false, HOME = folder }
	for name, value in pairs(options.env or {}) do
		command.env[name] = value
	end
	return setmetatable({ child = process.start(command), folder = folder }, Run)
end

function Run:line(seconds)
	return self.child:line(seconds or SECONDS)
end

function Run:lines_until(last, seconds)
	local deadline, lines = process.now() + (seconds or SECONDS), {}
	while true do
		local line = self:line(math.max(deadline - process.now(), 0))
		if line == last then
			return lines
		end
		lines[#lines + 1] = line
	end
end

--- The oldest line of the log that holds the text and was not given out for it before.
function Run:log_line(text, seconds)
	self.seen = self.seen or {}
	return self.child:await(seconds or SECONDS, ("no %q in the log"):format(text), function()
		local log = self.child:stderr()
		local found = log:find(text, self.seen[text] or 1, true)
		local last = found and log:find("\n", found, true)
		if last then
			self.seen[text] = last
			return log:sub(1, last - 1):match "[^\n]*$"
		end
	end)
end

local function fetch(url)
	local code, out = process.run { "curl", "--silent", "--noproxy", "*", "--max-time", "10", "--write-out", "\n%{http_code}", url }
	local body, status = out:match "^(.*)\n(%d+)$"
	return code == 0 and tonumber(status) or 0, body
end

function Run:page(path)
	if not self.url then
		local line = self:log_line "listening"
		self.url = "http://127.0.0.1:" .. line:match 'port[=":]+(%d+)'
	end
	return fetch(self.url .. path)
end

function Run:await_page(path, status, seconds)
	local seen, body
	cluster.await(seconds or SECONDS, ("%s answers %d"):format(path, status), function()
		seen, body = self:page(path)
		return seen == status
	end)
	return body
end

function Run:status()
	local status, body = self:page "/status"
	assert(status == 200, "/status answers " .. status)
	return cjson.decode(body)
end

--- The exit code.
function Run:wait(seconds)
	return (self.child:wait(seconds or SECONDS))
end

function Run:stop(seconds)
	self.child:kill "TERM"
	local code, signal = self.child:wait(seconds or SECONDS)
	if code ~= 0 then
		self.child:fail(("it should have stopped with code 0, not %s"):format(code or "signal " .. signal), 2)
	end
end

function host.ask(options)
	local body = options[1]
	options.script = ("local function ask() %s\nend k8s.main(function() %s end)"):format(body, [[
		local ok, answer = pcall(ask)
		print(ok and "answer " .. k8s.json.encode(answer) or "failed " .. tostring(answer))
	]])
	local run = host.start(options)
	local what, answer = run:line(options.seconds):match "^(%S+) (.*)$"
	run:stop()
	assert(what == "answer", answer)
	return cjson.decode(answer), run
end

return host
