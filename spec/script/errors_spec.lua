-- What the log says of an error that a script raises.
local files = require "support.files"
local testing = require "perilune.testing"

describe("the log of an error", function()
	-- The only line's place and text, without the folder.
	local function logged(text)
		local cluster, folder = testing.cluster { quiet = true }, files.folder()
		cluster:load(files.write(folder .. "/raises.lua", 'local k8s = require "perilune"\n' .. text))
		cluster:settle()
		local lines = cluster:logs { level = "error" }
		assert.equal(1, #lines)
		local function short(value)
			return value and value:gsub(folder:gsub("%p", "%%%0") .. "/", "")
		end
		return (short(lines[1].file)), (short(lines[1].error))
	end

	it("has the place of an answer of the API that was asserted", function()
		local file, text = logged [[
			local function touch()
				assert(k8s.patch({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "gone" }, { data = {} }))
			end
			k8s.main(function() touch() end)
		]]
		assert.equal("raises.lua:3", file)
		assert.matches('^raises%.lua:3: NotFound: configmaps "gone" not found <%- raises%.lua:3: ', text)
	end)

	it("has the place of a table, and the table", function()
		local file, text = logged "k8s.main(function()\nerror { code = 3 } end)"
		assert.equal("raises.lua:3", file)
		assert.matches('^raises%.lua:3: error object {"code":3}', text)
	end)

	it("has a text as the script gave it", function()
		local file, text = logged 'k8s.main(function() error("plain", 0) end)'
		assert.is_nil(file)
		assert.matches("^plain <%- raises%.lua:2: ", text)
	end)
end)
