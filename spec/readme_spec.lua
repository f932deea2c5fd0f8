-- What the README says, as far as that needs no API server; spec/cluster/readme_spec.lua has the rest.
local cli = require "support.cli"
local files = require "support.files"
local k8s = require "perilune"
local process = require "support.process"
local readme = require "support.readme"
local testing = require "perilune.testing"

local function exists(path)
	return process.run { "test", "-e", path } == 0
end

-- The paths of all samples' pages.
local function pages()
	local paths = {}
	for path in files.output_of({ "find", "examples", "-mindepth", "2", "-maxdepth", "2", "-name", "README.md" }):gmatch "[^\n]+" do
		paths[#paths + 1] = path
	end
	assert.is_true(#paths >= 2)
	return paths
end

describe("the README", function()
	it("has only blocks that a spec looks at", function()
		local known = {
			["lua team.lua"] = true, ["lua shape.lua"] = true, ["lua api.lua"] = true, ["lua late.lua"] = true,
			["lua quota.lua"] = true, ["lua broken.lua"] = true, ["lua team_spec.lua"] = true, ["text team.lua"] = true, ["text broken.lua"] = true,
			["text typo.lua"] = true, ["text run-late"] = true, ["text help-run"] = true, ["yaml deployment.yaml"] = true,
			["yaml team.yaml"] = true, ["sh run-team"] = true,
			["sh setup"] = true, ["sh run"] = true, ["sh run-late"] = true, ["sh run-spec"] = true, ["sh sandbox"] = true, ["sh cluster"] = true,
			["sh elsewhere"] = true, ["sh path"] = true, ["sh kubectl"] = true, dockerfile = true,
		}
		for _, name in ipairs(readme.names()) do
			assert.is_true(known[name], "a block that is marked " .. name)
			known[name] = nil
		end
		assert.is_nil(next(known))
	end)

	-- They install packages, build, or run all tests: so they are read, and asked for their help.
	it("names scripts that set up, and work", function()
		local seen = {}
		for _, text in ipairs(readme.blocks("sh", "setup")) do
			for _, line in ipairs(readme.lines(text)) do
				local path, argument = line:match "^(scripts/%l+) ?(%l*)$"
				assert.truthy(path, line)
				assert.equal(0, (process.run { "test", "-x", path }))
				files.output_of { "bash", "-n", path }
				local usage = path == "scripts/check" and files.read(path) or files.output_of { path, "--help" }
				assert.truthy(usage:find(argument, 1, true), ("%s does not know %s"):format(path, argument))
				seen[path] = true
			end
		end
		assert.same({
			["scripts/demo"] = true, ["scripts/test"] = true, ["scripts/setup"] = true, ["scripts/build"] = true, ["scripts/check"] = true,
		}, seen)
	end)

	it("puts the program into the path before it is called by its name", function()
		local where = process.run { "bash", "-c", readme.block("sh", "path") .. '[ "${PATH%%:*}" = "$PWD/build/release" ]' }
		assert.equal(0, where)
		local before = readme.text:match "^(.-)\n```sh path\n"
		assert.is_nil(before:find "\n```sh [^\n]*\n[^`]*%f[%w/]perilune ")
	end)

	it("names the kubectl that the specs have", function()
		local version = files.read("scripts/lib/kubectl.sh"):match "KUBECTL_VERSION=(%S+)"
		assert.truthy(readme.block("sh", "kubectl"):find("==" .. version .. "\n", 1, true))
	end)

	it("has commands that work", function()
		local count = 0
		for _, text in ipairs(readme.blocks("sh", "run")) do
			for _, line in ipairs(readme.lines(text)) do
				local command = readme.words(line)
				command.env, command.seconds = { KUBECONFIG = false }, 60
				local code, out, err = process.run(command)
				assert.equal(0, code, line .. "\n" .. out .. err)
				count = count + 1
			end
		end
		assert.equal(5, count)
	end)

	it("runs a sample in the sandbox", function()
		local command = readme.words(readme.block("sh", "sandbox"))
		command[#command + 1], command.env = "--listen=off", { KUBECONFIG = false }
		local child = process.start(command)
		child:wait_for("labels synced", 20)
		child:kill "TERM"
		assert.equal(0, (child:wait(20)), child:stderr())
	end)

	-- Nothing of these can be started here; but what they name is there. check takes the arguments of run.
	local function read_elsewhere(text, programs)
		for _, line in ipairs(readme.lines(text)) do
			local words = readme.words(line)
			if words[1] == process.build() .. "/perilune" then
				assert.equal("run", words[2])
				words[2] = "check"
				words.env = { KUBECONFIG = false }
				local code, _, err = process.run(words)
				assert.equal(0, code, line .. "\n" .. err)
			else
				programs[words[1]] = true
			end
			for path in line:gmatch "examples/[%w_./-]+" do
				assert.is_true(exists(path), path)
			end
			local named = line:match "%-f (%l+%.yaml)$"
			assert.truthy(not named or readme.block("yaml", named))
		end
	end

	it("marks what needs other programs, which are kind, kubectl and docker", function()
		local programs = {}
		for _, text in ipairs(readme.blocks("sh", "elsewhere")) do
			read_elsewhere(text, programs)
		end
		assert.same({ docker = true, kind = true, kubectl = true }, programs)
	end)

	it("is followed by the samples' own pages", function()
		for _, page in ipairs(pages()) do
			local programs, count = {}, 0
			for text in files.read(page):gmatch "\n```sh\n(.-\n)```\n" do
				read_elsewhere(text, programs)
				count = count + 1
			end
			assert.same({ kubectl = true }, programs)
			assert.equal(2, count)
			assert.is_nil(files.read(page):find("build/", 1, true), page .. " calls the program otherwise than the README")
		end
	end)

	it("has scripts that load", function()
		local folder = files.folder()
		for _, name in ipairs { "team.lua", "shape.lua", "quota.lua", "late.lua", "broken.lua", "api.lua" } do
			local path = files.write(folder .. "/" .. name, readme.block("lua", name))
			local code, _, err = cli.run { "check", path }
			assert.equal(0, code, err)
		end
		assert.is_true(#readme.lines(readme.block("lua", "team.lua")) <= 18)
	end)

	local function program()
		return files.output_of({ "realpath", process.build() .. "/perilune" }):match "[^\n]+"
	end

	it("runs its first controller in the sandbox", function()
		local folder = files.folder()
		files.write(folder .. "/team.lua", readme.block("lua", "team.lua"))
		files.write(folder .. "/team.yaml", readme.block("yaml", "team.yaml"))
		local command = readme.words(readme.block("sh", "run-team"))
		command[1], command.cwd, command.env = program(), folder, { KUBECONFIG = false }
		command[#command + 1] = "--listen=off"
		local child = process.start(command)
		assert.equal("web-1\tteam web", child:line(20))
		child:kill "TERM"
		assert.equal(0, (child:wait(20)), child:stderr())
	end)

	it("shows how a script is tested", function()
		local folder = files.folder()
		for _, name in ipairs { "team.lua", "team_spec.lua" } do
			files.write(folder .. "/" .. name, readme.block("lua", name))
		end
		local words = readme.words(readme.block("sh", "run-spec"))
		words[1], words.cwd = program(), folder
		local code, out, err = process.run(words)
		assert.equal(0, code, out .. err)
		assert.truthy(out:find("2 successes / 0 failures / 0 errors / 0 pending", 1, true), out)
	end)

	it("has files that scripts/check takes where they are saved in this folder", function()
		for _, name in ipairs { "team.lua", "team_spec.lua" } do
			local path = files.write(files.folder() .. "/" .. name, readme.block("lua", name))
			files.output_of { "sh", "-c", ("luacheck --quiet --no-color --filename %s - <%s"):format(name, path) }
		end
	end)

	it("has a controller that does what its comments say", function()
		local folder = readme.folder("quota", { ["init.lua"] = readme.block("lua", "quota.lua") })
		local cluster = testing.cluster()
		local function quota(name)
			return { apiVersion = "v1", kind = "ResourceQuota", namespace = name, name = "quota" }
		end
		local namespace = { apiVersion = "v1", kind = "Namespace", metadata = { name = "shop" } }
		assert(cluster:create(namespace))
		cluster:load(folder)
		cluster:settle()
		assert.equal("100", assert(cluster:get(quota "shop")).spec.hard.pods)
		assert(cluster:patch(namespace, { metadata = { labels = { ["example.com/pods"] = "7" } } }))
		cluster:settle()
		assert.equal("7", assert(cluster:get(quota "shop")).spec.hard.pods)
		assert(cluster:delete(quota "shop"))
		cluster:settle()
		assert.equal("7", assert(cluster:get(quota "shop")).spec.hard.pods)
		local written = #cluster:requests { verb = "patch" }
		cluster:advance(3700)
		assert.equal(written, #cluster:requests { verb = "patch" })
		cluster:close()
	end)

	it("has a page of all functions that runs", function()
		local path = files.write(files.folder() .. "/api.lua", readme.block("lua", "api.lua"))
		local child = cli.start { "run", "--sandbox", "--listen", "off", path }
		local lines = { child:line(20), child:line(20) } -- of on_synced and main, whichever comes first
		table.sort(lines, function(a, b) return #a < #b end)
		assert.equal("nil", lines[1])
		assert.truthy(lines[2]:find "^%l[%l ]+\ttrue\ttrue$", lines[2])
		child:kill "TERM"
		assert.equal(0, (child:wait(10)))
		assert.is_nil(child:stderr():find("ERROR", 1, true), child:stderr())
	end)

	-- The module itself is a closed view of the table with the functions.
	it("leaves no function out on that page", function()
		local page = readme.block("lua", "api.lua")
		for name, value in pairs(debug.getmetatable(k8s).__index) do
			if type(value) == "table" and name ~= "config" then
				assert.truthy(page:find("k8s." .. name, 1, true), "k8s." .. name)
				for part, one in pairs(value) do
					assert.truthy(type(one) ~= "function" or page:find("%f[%w]" .. part .. "%f[^%w_]"), "k8s." .. name .. "." .. part)
				end
			else
				assert.truthy(page:find("k8s%." .. name .. "%f[^%w_]"), "k8s." .. name)
			end
		end
		for _, kind in ipairs { "informer", "registration", "factory", "controller" } do
			local _, methods = debug.getupvalue(debug.getregistry()["perilune." .. kind].__index, 1)
			for name in pairs(methods) do
				assert.truthy(page:find(":" .. name .. "%f[^%w_]"), kind .. ":" .. name)
			end
		end
	end)

	it("shows what a script with an error looks like", function()
		local folder = files.folder()
		local third = readme.text:match "third line of `typo%.lua` is\n`([^`]+)`"
		files.write(folder .. "/typo.lua", 'local k8s = require "perilune"\n\n' .. third .. "\n")
		local code, _, err = process.run { program(), "check", "typo.lua", cwd = folder }
		assert.equal(1, code)
		assert.equal(readme.block("text", "typo.lua"), err)
	end)

	it("shows the flags of run as they are", function()
		local _, out = cli.run { "help", "run" }
		assert.equal(readme.block("text", "help-run"), out:match "\nflags:\n(.*)$")
	end)

	it("has the exit codes", function()
		local _, help = cli.run { "help" }
		for code, words in help:match("exit codes: ([^\n]+)"):gmatch "(%d) ([^;]+)" do
			local row = readme.text:match("\n| " .. code .. " | ([^\n]+) |")
			assert.truthy(row and row:find(words, 1, true), ("exit code %s: %s"):format(code, words))
		end
		local folder = files.folder()
		assert.equal(1, (cli.run { "run", files.write(folder .. "/a.lua", "") }))
		assert.equal(2, (cli.run { "run", "no/such/file.lua", "--kubeconfig", cli.kubeconfig(folder) }))
	end)

	it("names functions that are there", function()
		local before = readme.text:match "^(.-)\n## Not there yet"
		for name in before:gmatch "%f[%w_.]k8s%.([%l_.]+)" do
			local value = k8s
			for part in name:gmatch "[%l_]+" do
				local ok, found = pcall(function() return value[part] end)
				assert.is_true(ok and (found ~= nil or value == k8s.config or value == k8s.state), "k8s." .. name)
				value = found
			end
		end
	end)

	it("links to files that are there", function()
		for _, page in ipairs { "README.md", "core/README.md", unpack(pages()) } do
			local folder = page:match "^(.*/)" or ""
			for path in files.read(page):gmatch "%]%(([^)#:]+)%)" do
				assert.is_true(exists(folder .. path), ("%s links to %s"):format(page, path))
			end
		end
	end)
end)

describe("the README's image", function()
	local text = readme.block "dockerfile"

	it("copies all that the build needs", function()
		local folder = files.folder()
		for sources in text:gmatch "\nCOPY ([^-\n][^\n]*) %S+" do
			for source in sources:gmatch "%S+" do
				files.output_of { "cp", "-r", source, folder }
			end
		end
		files.output_of { "cmake", "--preset", "release", "--log-level=ERROR", cwd = folder, seconds = 120 }
		assert.is_true(exists(folder .. "/build/release/build.ninja"))
	end)

	it("installs all libraries that the program needs", function()
		if process.run { "sh", "-c", "command -v dpkg-query readelf" } ~= 0 then
			return pending "this is no Debian"
		end
		local installed = text:match "%-%-no%-install%-recommends(.-)&&"
		local needed = files.output_of { "sh", "-c", "cd " .. process.build() .. [[ &&
			readelf -d perilune $(ls libperilune_*.so 2>/dev/null) | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort -u]] }
		local count = 0
		for library in needed:gmatch "[^\n]+" do
			local own = library:match "^libperilune_" or library:match "^lib%l+san%." or library:match "^ld%-"
			if not own and not library:match "^libc%." and not library:match "^libm%." and not library:match "^libgcc" then
				local package = files.output_of({ "dpkg-query", "--search", "*/" .. library }):match "^[^:]+"
				assert.truthy(installed:find(" " .. package:gsub("%p", "%%%0") .. "%s"), library .. " is in the package " .. package)
				count = count + 1
			end
		end
		assert.is_true(count >= 6, needed)
	end)

	it("runs what the deployment's arguments say", function()
		local deployment = assert(k8s.yaml.decode(readme.block("yaml", "deployment.yaml")))
		local container = deployment.spec.template.spec.containers[1]
		local folder = readme.folder("pod-log", { ["init.lua"] = files.read "examples/pod-log/init.lua" })
		local arguments = { "check" }
		for i = 2, #container.args do
			arguments[i] = container.args[i]:gsub("^" .. container.volumeMounts[1].mountPath:gsub("%p", "%%%0") .. "$", folder)
		end
		assert.equal("run", container.args[1])
		local code, out, err = cli.run(arguments)
		assert.equal(0, code, err)
		assert.truthy(out:find("^pod%-log "), out)
	end)
end)
