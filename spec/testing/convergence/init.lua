--- The script under test: plays the story of the seed that k8s.config.seed names, and then gives a verdict whenever the
-- ServiceAccount stage/question has another annotation "round" than before. The verdict is the annotations of the
-- ServiceAccount stage/verdict: round, problems, differences (texts by line), versions (JSON). No story is of this kind.
local k8s = require "perilune"
local players = require "players"
local schedule = require "schedule"

local LOOK_SECONDS = 20

local function account(name, annotations)
	return {
		apiVersion = "v1", kind = "ServiceAccount", metadata = { namespace = "stage", name = name, annotations = annotations },
	}
end

local function verdict_of(cast, round)
	local worked, found = pcall(cast.differences, cast)
	return {
		round = round, problems = table.concat(cast:problems(), "\n"),
		differences = worked and table.concat(found, "\n") or "no verdict: " .. tostring(found),
		versions = k8s.json.encode(cast:versions()),
	}
end

-- The new round, or nil when it is the one that was answered.
local function question(answered)
	local object = k8s.get(account "question")
	local round = object and object.metadata.annotations.round
	return round ~= answered and round or nil
end

k8s.main(function()
	local cast, answered = players.play(schedule.new(tonumber(k8s.config.seed))), nil
	while true do
		local round = question(answered)
		if round then
			local write = answered and k8s.update or k8s.create
			assert(write(account("verdict", verdict_of(cast, round))))
			answered = round
		end
		k8s.sleep(LOOK_SECONDS)
	end
end)
