-- JSON that parsers disagree about, held against a real API server: what it takes and stores, and that whatever comes back from it is readable.
local k8s = require "perilune"
local cluster = require "support.cluster"
local host = require "support.host"

local setup, it = cluster.when_up(setup, it)
local json = k8s.json

-- { what, a widget's spec, what the server stores (nil: it refuses), whether this side takes the text too }
local cases = {
	{ "equal keys", '{"a":1,"a":2}', '{"a":2}', true },
	{ "an empty key", '{"":1}', '{"":1}', true },
	{ "an escaped NUL", '{"a":"x\\u0000y"}', '{"a":"x\\u0000y"}', true },
	{ "a surrogate pair", '{"a":"\\ud83d\\ude00"}', '{"a":"\240\159\152\128"}', true },
	{ "an exponent below all doubles", '{"a":1e-400}', '{"a":0}', true },
	{ "one more than int64 holds", '{"a":9223372036854775808}', '{"a":9223372036854776000}', true },
	{ "a fraction of 600 digits", '{"a":0.' .. ("1"):rep(600) .. "}", '{"a":0.1111111111111111}', true },

	-- Go puts U+FFFD for what is no text. On this side nothing is put for anything.
	{ "a lone high surrogate", '{"a":"\\ud800"}', '{"a":"\239\191\189"}', false },
	{ "a pair in the wrong order", '{"a":"\\ude00\\ud83d"}', '{"a":"\239\191\189\239\191\189"}', false },
	{ "a surrogate in UTF-8", '{"a":"\237\160\128"}', '{"a":"\239\191\189\239\191\189\239\191\189"}', false },
	{ "an overlong NUL", '{"a":"\192\128"}', '{"a":"\239\191\189\239\191\189"}', false },

	{ "a number above all doubles", '{"a":1e400}', nil, false },
	{ "a leading zero", '{"a":01}', nil, false },
	{ "a hex number", '{"a":0x10}', nil, false },
	{ "NaN", '{"a":NaN}', nil, false },
	{ "a comma behind the last member", '{"a":1,}', nil, false },
	{ "a comment", '{"a":1/**/}', nil, false },
	{ "single quotes", "{'a':1}", nil, false },
	{ "a bare tab in a string", '{"a":"\t"}', nil, false },
	{ "a byte order mark", '\239\187\191{"a":1}', nil, false },
}

describe("JSON, to the API server and back:", function()
	local api_version, path

	setup(function()
		api_version, path = cluster.define()
		path = path .. "/namespaces/" .. cluster.namespace() .. "/widgets"
	end)

	local function create(name, spec)
		return (cluster.raw("POST", path, ('{"apiVersion":"%s","kind":"Widget","metadata":{"name":"%s"},"spec":%s}')
			:format(api_version, name, spec)))
	end

	for i, case in ipairs(cases) do
		it(case[1], function()
			local what, text, stored, taken = unpack(case, 1, 4)
			local name = "case-" .. i
			assert.equal(stored and 201 or 400, create(name, text), what)
			local ours = json.decode(text)
			assert.equal(taken, ours ~= nil)
			if stored then
				local _, body = cluster.raw("GET", path .. "/" .. name)
				assert.same(json.decode(stored), assert(json.decode(body)).spec)
			end
			if taken then
				assert.same(json.decode(stored), json.decode(json.encode(ours)))
			end
		end)
	end

	-- The server takes 10,000 levels. One such object must not keep all others from whoever watches the kind.
	it("an object that nests too deep for Lua is cached, read in part, and an error for who wants it whole", function()
		assert.equal(201, create("deep", '{"a":' .. ("["):rep(9000) .. ("]"):rep(9000) .. "}"))
		assert.equal(201, create("shallow", "{}"))
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), set = { api = api_version },
			script = [[
				local widgets = k8s.informer { apiVersion = k8s.config.api, kind = "Widget" }
				widgets:add_event_handler { add = function(widget)
					if not widget.metadata.name:match "^case" then print("whole " .. widget.metadata.name) end
				end }
				k8s.on_synced(function()
					widgets:add_event_handler { fields = { "metadata" }, add = function(widget)
						if not widget.metadata.name:match "^case" then print("part " .. widget.metadata.name) end
					end }
				end)
			]],
		}
		local lines = { run:line(), run:line(), run:line() }
		table.sort(lines)
		assert.same({ "part deep", "part shallow", "whole shallow" }, lines)
		assert.matches("Widget %S+/deep: nested", run:log_line "nested deeper than 512")
		run:stop()
	end)
end)
