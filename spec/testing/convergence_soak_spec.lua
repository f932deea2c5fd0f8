-- Many more of the random stories of convergence_spec.lua, and builds that are broken on purpose, which they must catch.
local convergence = require "support.convergence"
local files = require "support.files"
local process = require "support.process"

local STORIES, STEP = 20000, 500

describe("20,000 random stories #soak", function()
	it("all end with caches and handlers that are what the server has", function()
		local first, last = convergence.range(1, STORIES)
		local began = process.now()
		for seed = first, last do
			convergence.check(seed)
			if (seed - first + 1) % STEP == 0 or seed == last then
				io.stderr:write(("%d stories in %.0f s\n"):format(seed - first + 1, process.now() - began))
			end
		end
		io.stderr:write("faults that have fired:\n", convergence.histogram(), "\n")
	end)
end)

-- What is broken, and how: in file, the text is replaced.
local MUTATIONS = {
	{
		what = "the delete of what a relist no longer names is not told", file = "core/cache/apply.c",
		text = "\t\ttell_delete(apply, gone->objects[i], true);\n", with = "\t\t(void)apply;\n",
	},
	{
		what = "a bookmark does not advance the resourceVersion", file = "core/cache/reflector_watch.c",
		text = "\tif (version && strlen(version) < VERSION_SIZE)\n\t\tnote_version(reflector, version);\n", with = "",
	},
	{
		what = "the pages of a list that failed are kept", file = "core/cache/reflector_list.c",
		text = "\tlist->token = NULL;\n\tdrop_objects(list);\n}",
		with = "\tlist->token = NULL;\n\tif (list->untidy)\n\t\tdrop_objects(list);\n}",
	},
}

local SOURCES = { "core", "lua", "scripts", "spec", "CMakeLists.txt", "CMakePresets.json" }
local BUILD_SECONDS, PLAY_SECONDS = 600, 600
local ENOUGH = 100 -- stories that must catch each of them

-- A copy of the sources in which the text is replaced.
local function mutant(mutation)
	local folder = files.folder()
	files.output_of { "cp", "-r", "-t", folder, unpack(SOURCES) }
	local path = folder .. "/" .. mutation.file
	local source = files.read(path)
	local from, to = source:find(mutation.text, 1, true)
	assert(from and not source:find(mutation.text, to, true), mutation.file .. " does not hold the text that is to be replaced, once")
	files.write(path, source:sub(1, from - 1) .. mutation.with .. source:sub(to + 1))
	return folder
end

describe("a build in which #soak", function()
	for _, mutation in ipairs(MUTATIONS) do
		it(mutation.what .. " is caught", function()
			local folder = mutant(mutation)
			files.output_of { folder .. "/scripts/build", "release", seconds = BUILD_SECONDS }
			local code, out = process.run {
				folder .. "/build/release/perilune", "test", "--log-level", "error", "--output=plainTerminal",
				"spec/testing/convergence_spec.lua", cwd = folder, seconds = PLAY_SECONDS,
				env = { CONVERGENCE = "1-" .. ENOUGH, LUA_PATH = "spec/?.lua;;" },
			}
			assert.equal(1, code)
			assert.truthy(out:find("to play it alone: CONVERGENCE=", 1, true))
			assert.is_nil(out:find "the play broke off[^\n]*")
		end)
	end
end)
