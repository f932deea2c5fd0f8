-- k8s.metric: a script's own metrics, as a scraper sees them.
local cli = require "support.cli"
local exposition = require "support.exposition"
local files = require "support.files"
local host = require "support.host"
local k8s = require "perilune"

local function start(scripts, flags)
	return host.start { kubeconfig = cli.kubeconfig(files.folder()), pages = true, scripts = scripts, flags = flags }
end

local function page_of(run)
	local status, body = run:page "/metrics"
	assert.equal(200, status)
	return exposition.read(body), body
end

-- Ends with "end", when all has been counted.
local function main(text)
	return "k8s.main(function() " .. text .. [[ print "end" end)]]
end

describe("k8s.metric", function()
	it("counts, sets and observes, each script by itself", function()
		local run = start {
			one = main [[
				local copies = k8s.metric.counter { name = "mirror_copies_total", help = "Copies.\nAll.", labels = { "result", "n" } }
				copies:inc { result = "ok", n = 1 }
				copies:inc(2, { result = "ok", n = "1" })
				copies:inc(0.5, { result = 'a "b"\n', n = true })
				k8s.metric.counter { name = "mirror_empty_total", help = "Nothing yet." }
				local plain = k8s.metric.counter { name = "mirror_plain_total", help = "Plain." }
				plain:inc() plain:inc(4)
				local depth = k8s.metric.gauge { name = "mirror_depth", help = "Depth." }
				depth:set(5) depth:inc(-7) depth:inc()
				local seconds = k8s.metric.histogram { name = "mirror_seconds", help = "Seconds.", labels = "verb", buckets = { 1, 2 } }
				seconds:observe(0.5, { verb = "get" }) seconds:observe(2, { verb = "get" }) seconds:observe(3, { verb = "get" })
				k8s.metric.histogram { name = "mirror_usual", help = "Usual." }:observe(0.3)
				k8s.metric.gauge { name = "mirror_depth", help = "Depth." }:inc(10)
			]],
			two = main [[
				local copies = k8s.metric.counter { name = "mirror_copies_total", help = "Copies.", labels = { "result", "n" } }
				copies:inc(7, { result = "ok", n = "1" })
			]],
		}
		run:lines_until "end"
		run:lines_until "end"
		local page = page_of(run)
		assert.equal("counter", page.types.mirror_copies_total)
		assert.equal("gauge", page.types.mirror_depth)
		assert.equal("histogram", page.types.mirror_seconds)
		assert.equal(3, page:value("mirror_copies_total", { script = "one", result = "ok", n = "1" }))
		assert.equal(7, page:value("mirror_copies_total", { script = "two", result = "ok", n = "1" }))
		assert.equal(0.5, page:value("mirror_copies_total", { script = "one", result = 'a "b"\n', n = "true" }))
		assert.equal(0, page:value("mirror_empty_total", { script = "one" }))
		assert.equal(5, page:value("mirror_plain_total", { script = "one" }))
		assert.equal(9, page:value("mirror_depth", { script = "one" }))
		assert.equal(1, page:value("mirror_seconds_bucket", { script = "one", verb = "get", le = "1" }))
		assert.equal(2, page:value("mirror_seconds_bucket", { script = "one", verb = "get", le = "2" }))
		assert.equal(3, page:value("mirror_seconds_count", { script = "one", verb = "get" }))
		assert.equal(5.5, page:value("mirror_seconds_sum", { script = "one", verb = "get" }))
		assert.equal(1, page:value("mirror_usual_bucket", { script = "one", le = "0.5" }))
		assert.equal(0, page:value("mirror_usual_bucket", { script = "one", le = "0.25" }))
		run:stop()
	end)

	it("has so many series and no more, and says so", function()
		local run = start { one = main [[
			local wide = k8s.metric.counter { name = "wide_total", help = "Wide.", labels = { "n" } }
			for _ = 1, 2 do
				for i = 1, 1500 do
					wide:inc { n = i }
				end
			end
			for i = 1, 2000 do
				wide:inc { n = ("x"):rep(100000) .. i }
			end
		]] }
		run:lines_until "end"
		local page = page_of(run)
		assert.equal(1000, #page:all "wide_total")
		assert.equal(2, page:value("wide_total", { script = "one", n = "1" }))
		run:log_line "the metric wide_total has 1000 series"
		run:stop()
	end)

	it("keeps its numbers when the script drops its handle", function()
		local run = start { one = main [[
			k8s.metric.counter { name = "kept_total", help = "Kept.", labels = { "a" } }:inc { a = "b" }
			collectgarbage() collectgarbage()
			k8s.metric.counter { name = "kept_total", help = "Kept.", labels = { "a" } }:inc { a = "b" }
		]] }
		run:lines_until "end"
		assert.equal(2, page_of(run):value("kept_total", { script = "one", a = "b" }))
		run:stop()
	end)

	it("refuses misuse at the script's line", function()
		local function define(type, more)
			local options = { name = "spec_refused_total", help = "Help." }
			for name, value in pairs(more or {}) do
				options[name] = value ~= "none" and value or nil
			end
			return k8s.metric[type](options)
		end
		local labelled = define("counter", { name = "spec_labelled_total", labels = { "a", "b" } })
		local plain = define("counter", { name = "spec_plain_total" })
		for message, misuse in pairs {
			["begin with perilune_ are"] = function() define("counter", { name = "perilune_x" }) end,
			["begin with workqueue_ are"] = function() define("gauge", { name = "workqueue_depth" }) end,
			["name is missing"] = function() define("counter", { name = "none" }) end,
			["help is missing"] = function() define("counter", { help = "none" }) end,
			["is no name of a metric"] = function() define("counter", { name = "a-b" }) end,
			["is no name of a label"] = function() define("counter", { labels = { "a-b" } }) end,
			["label script is there twice"] = function() define("counter", { labels = { "script" } }) end,
			["more than 7 labels"] = function() define("counter", { labels = { "a", "b", "c", "d", "e", "f", "g", "h" } }) end,
			["the label le"] = function() define("histogram", { labels = { "le" } }) end,
			["unknown option 'buckets'"] = function() define("counter", { buckets = { 1 } }) end,
			["must rise"] = function() define("histogram", { buckets = { 2, 1 } }) end,
			["1 to 50 numbers"] = function() define("histogram", { buckets = {} }) end,
			["is there already, as a counter"] = function() define("gauge", { name = "spec_plain_total" }) end,
			["or with other labels"] = function() define("counter", { name = "spec_plain_total", labels = { "a" } }) end,
			["never falls"] = function() plain:inc(-1) end,
			["takes a number, not string"] = function() plain:inc("1") end,
			["takes a number, not nan"] = function() plain:inc(math.huge - math.huge) end,
			["has no label 'c'"] = function() labelled:inc { a = 1, b = 2, c = 3 } end,
			["label b must be a text, not missing"] = function() labelled:inc { a = 1 } end,
			["label a must be a text, not table"] = function() labelled:inc { a = {}, b = 1 } end,
			["takes its labels as a table"] = function() labelled:inc() end,
			["has no label 'x'"] = function() plain:inc { x = 1 } end,
			["'a' holds a NUL"] = function() labelled:inc { a = "\0", b = 1 } end,
			["method of counter"] = function() plain.inc(5) end,
			["did you mean 'gauge'"] = function() return k8s.metric.guage end,
		} do
			local ok, err = pcall(misuse)
			assert.is_false(ok, message)
			assert.matches("metric_spec.lua:%d+: .*" .. message, err)
		end
		local ok, err = pcall(function() plain:set(1) end)
		assert.is_false(ok)
		assert.matches("counter has no 'set'", err)
	end)

	it("has so many of them and no more", function()
		local run = start { one = main [[
			for i = 1, 100 do
				k8s.metric.counter { name = "many_" .. i, help = "Many." }
			end
			print(pcall(k8s.metric.counter, { name = "many_101", help = "Many." }))
		]] }
		local lines = run:lines_until "end"
		assert.matches("^false\t.*more than 100 metrics", lines[1])
		run:stop()
	end)
end)
