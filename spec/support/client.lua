--- API calls of a script in a testing cluster, and what became of them.
--
--   local outcome = client.run(cluster, [[ return k8s.get { … } ]])
--       the two results of a function that a script runs when its caches have synced; err as a plain table with `text`, tostring's.
--       nil while it is still under way
--   options.before     the script's text before that function: informers, which `maps` and the like can name
--   options.name       of the script; "script" unless said
--   options.namespace  as --namespace
--   outcome.value, outcome.err, outcome.raised
local files = require "support.files"

local client = {}

local FORM = [[
local k8s = require "perilune"
%s
local function call()
%s
end
local function plain(err)
	if not err then return nil end
	local copy = { text = tostring(err) }
	for name, value in pairs(err) do copy[name] = value end
	return copy
end
k8s.on_synced(function()
	local ok, value, err = pcall(call)
	k8s.log.info("outcome", { outcome = k8s.json.encode {
		value = ok and value or nil, err = ok and plain(err) or nil, raised = not ok and tostring(value) or nil,
	} })
end)
]]

--- Starts it and lets nothing settle: client.outcome gives what became of it.
function client.start(cluster, body, options)
	options = options or {}
	local path = ("%s/%s.lua"):format(files.folder(), options.name or "script")
	return cluster:load(files.write(path, FORM:format(options.before or "", body)), { namespace = options.namespace })
end

--- Of the last one that has ended, and how many have.
function client.outcome(cluster)
	local lines = cluster:logs { msg = "outcome" }
	local k8s = require "perilune"
	return lines[1] and k8s.json.decode(lines[#lines].outcome), #lines
end

function client.run(cluster, body, options)
	local program = client.start(cluster, body, options)
	cluster:settle()
	local outcome = client.outcome(cluster)
	if outcome then
		program:kill()
	end
	return outcome
end

return client
