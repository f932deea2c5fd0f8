--- writes: what a handler of a story writes itself, and that the caches show it from the answer on.
--
--   writes.write(informers, player, object)     one write, near the object that it was told of; none after the first few
local k8s = require "perilune"

local writes = {}

local MOST = 8 -- of one handler: each brings it calls, and a story has to come to rest

local VERBS = {}

function VERBS.relabel(object, count)
	return k8s.patch(object, { metadata = { labels = { app = count % 2 == 0 and "web" or "db", tier = k8s.null } } })
end

function VERBS.create(object, count)
	return k8s.create {
		apiVersion = object.apiVersion, kind = object.kind,
		metadata = { namespace = object.metadata.namespace, name = "own-" .. count % 3, labels = { app = "web" } },
	}
end

-- The uid is the answer: nothing of it is to be seen.
function VERBS.delete(object)
	local answer, err = k8s.delete(object)
	local uid = answer and (answer.kind == "Status" and answer.details.uid or answer.metadata.uid)
	return uid and { metadata = { namespace = object.metadata.namespace, name = object.metadata.name, uid = uid }, gone = true }, err
end

local ORDER = { "relabel", "create", "delete", "create", "relabel" }

local function is_behind(read, answer)
	if not read or read.metadata.uid ~= answer.metadata.uid then
		return false
	end
	return answer.gone or tonumber(read.metadata.resourceVersion) < tonumber(answer.metadata.resourceVersion)
end

local function check(informers, player, verb, object, answer)
	for i, informer in pairs(informers) do
		local options = informer.options
		local read = options.apiVersion == object.apiVersion and options.kind == object.kind
			and informer.handle:get(answer.metadata.namespace, answer.metadata.name)
		if is_behind(read, answer) then
			player.judge:problem("informer %d is behind an own %s of %s, uid %s: resourceVersion %s", i, verb, answer.metadata.name,
				answer.metadata.uid, read.metadata.resourceVersion)
		end
	end
end

function writes.write(informers, player, object)
	if player.writes >= MOST then
		return
	end
	player.writes = player.writes + 1
	local verb = ORDER[player.writes % #ORDER + 1]
	local answer = VERBS[verb](object, player.writes)
	if answer then
		check(informers, player, verb, object, answer)
	end
end

return writes
