-- The registry of metrics, and its page as a strict reader of the format sees it.
local c = require "support.c"
local exposition = require "support.exposition"
local ffi = c.ffi

c.cdef [[
  struct metric_definition {
    int type; /* 0 counter, 1 gauge, 2 histogram */
    const char *name, *help;
    const char *labels[9];
    const double *bounds;
    size_t bound_count, limit;
  };
  struct metric_registry *metric_registry_new(void);
  void metric_registry_free(struct metric_registry *registry);
  void metric_family_ref(struct metric_family *family);
  void metric_family_unref(struct metric_family *family);
  struct metric_family *metric_family(struct metric_registry *registry, const struct metric_definition *definition,
                                      struct err *err);
  struct metric_series *metric_hold(struct metric_family *family, const char *const *values);
  void metric_release(struct metric_series *series);
  struct metric_series *metric_keep(struct metric_family *family, const char *const *values);
  void metric_add(struct metric_series *series, double amount);
  void metric_set(struct metric_series *series, double value);
  void metric_observe(struct metric_series *series, double value);
  struct spec_list { struct spec_list *prev, *next; };
  struct metric_collector { struct spec_list node; void (*collect)(void *data); void *data; };
  void metric_collector_add(struct metric_registry *registry, struct metric_collector *collector);
  void metric_collector_remove(struct metric_collector *collector);
  void metric_collect(struct metric_family *family, const char *const *values, double value);
  void metric_write(struct metric_registry *registry, struct buf *out);
]]

local COUNTER, GAUGE, HISTOGRAM = 0, 1, 2

describe("metric", function()
	local registry, live

	before_each(function()
		live = c.alloc_live(nil)
		registry = c.metric_registry_new()
	end)

	after_each(function()
		c.log_replace(nil, nil)
		c.metric_registry_free(registry)
		assert.equal(live, c.alloc_live(nil))
	end)

	-- A family, or nil and why not.
	local function define(kind, name, labels, more)
		more = more or {}
		local bounds = more.bounds and ffi.new("double[?]", #more.bounds, more.bounds)
		local definition = ffi.new("struct metric_definition", {
			type = kind, name = name, help = more.help or "", limit = more.limit or 0, bounds = bounds,
			bound_count = more.bounds and #more.bounds or 0,
		})
		for i, label in ipairs(labels or {}) do
			definition.labels[i - 1] = label
		end
		local err = c.err()
		local family = c.metric_family(registry, definition, err)
		if family == nil then
			return nil, c.message(err)
		end
		return family
	end

	local function values(...)
		return ffi.new("const char *[?]", select("#", ...) + 1, { ... })
	end

	local function text()
		local out = c.buf()
		c.metric_write(registry, out)
		return ffi.string(c.buf_text(out))
	end

	local function page()
		return exposition.read(text())
	end

	-- Runs fn with a collector in place.
	local function collecting(collect, fn)
		local callback = ffi.cast("void (*)(void *)", collect)
		local collector = ffi.new("struct metric_collector", { collect = callback })
		c.metric_collector_add(registry, collector)
		fn()
		c.metric_collector_remove(collector)
		callback:free()
	end

	it("gives each series its line, in the same order whatever came first", function()
		local second = define(COUNTER, "b_total", { "x", "y" }, { help = "B." })
		local first = define(GAUGE, "a", nil, { help = "A \\ with\nlines." })
		c.metric_add(c.metric_keep(second, values("2", "q")), 3)
		c.metric_add(c.metric_keep(second, values("1", "q")), 0.5)
		c.metric_add(c.metric_keep(second, values("1", "q")), 1)
		c.metric_set(c.metric_keep(first, nil), -7)
		assert.equal([[
# HELP a A \\ with\nlines.
# TYPE a gauge
a -7
# HELP b_total B.
# TYPE b_total counter
b_total{x="1",y="q"} 1.5
b_total{x="2",y="q"} 3
]], text())
	end)

	it("says nothing of a family without series", function()
		define(COUNTER, "a_total")
		assert.equal("", text())
	end)

	it("lets a counted family go with its last user, and its name with it", function()
		local family = define(COUNTER, "b_total", { "x" })
		c.metric_add(c.metric_keep(define(COUNTER, "a_total"), nil), 1)
		c.metric_add(c.metric_keep(define(COUNTER, "c_total"), nil), 1)
		c.metric_family_ref(family)
		c.metric_family_ref(define(COUNTER, "b_total", { "x" }))
		local series = c.metric_hold(family, values "1")
		c.metric_family_unref(family)
		assert.equal(0, page():value("b_total", { x = "1" }))
		c.metric_release(series)
		c.metric_family_unref(family)
		assert.same({ a_total = "counter", c_total = "counter" }, page().types)
		assert(define(GAUGE, "b_total", { "y" }))
	end)

	it("escapes what labels hold, whatever that is", function()
		local family = define(GAUGE, "a", { "label" })
		for _, value in ipairs { 'q"u\\o\nte\\', "", "ümlaut €", "}", "a\rb\tc" } do
			c.metric_set(c.metric_keep(family, values(value)), #value)
			assert.equal(#value, page():value("a", { label = value }))
		end
		c.metric_set(c.metric_keep(family, values "bad \255\192\128 bytes"), 1)
		assert.equal(1, page():value("a", { label = "bad \239\191\189\239\191\189\239\191\189 bytes" }))
		c.metric_set(c.metric_keep(family, values(("€"):rep(1000))), 2)
		assert.equal(2, page():value("a", { label = ("€"):rep(170) }))
	end)

	it("writes each number so that it reads the same", function()
		local gauge = c.metric_keep(define(GAUGE, "a"), nil)
		local seed = c.seed()
		for i = 1, 300 do
			local value = (math.random() - 0.5) * 10 ^ math.random(-300, 300)
			c.metric_set(gauge, i % 3 == 0 and math.floor(value) or value)
			assert.equal(i % 3 == 0 and math.floor(value) or value, page():value "a", seed)
		end
		for _, value in ipairs { 0, -0.5, 2 ^ 53, -2 ^ 53, 2 ^ 63, 1 / 0, -1 / 0, 5e-324, 1.7976931348623157e308 } do
			c.metric_set(gauge, value)
			assert.equal(value, page():value "a")
		end
		c.metric_set(gauge, 0 / 0)
		assert.truthy(text():find "a NaN\n")
	end)

	it("counts a histogram's values into the first bucket that holds them", function()
		local family = define(HISTOGRAM, "h", { "x" }, { bounds = { 0.5, 1, 2.5 } })
		local series = c.metric_keep(family, values "y")
		for _, value in ipairs { 0.1, 0.5, 0.6, 2.5, 2.6, 100 } do
			c.metric_observe(series, value)
		end
		local seen = page()
		local function bucket(le)
			return seen:value("h_bucket", { x = "y", le = le })
		end
		assert.same({ 2, 3, 4, 6 }, { bucket "0.5", bucket "1", bucket "2.5", bucket "+Inf" })
		assert.equal(6, seen:value("h_count", { x = "y" }))
		assert.near(106.3, seen:value("h_sum", { x = "y" }), 1e-9)
	end)

	it("removes a series when the last of its holders is gone", function()
		local family = define(COUNTER, "a_total", { "x" })
		local one, same, other = c.metric_hold(family, values "1"), c.metric_hold(family, values "1"), c.metric_hold(family, values "2")
		c.metric_add(one, 1)
		c.metric_add(same, 1)
		c.metric_release(one)
		assert.equal(2, page():value("a_total", { x = "1" }))
		c.metric_release(same)
		assert.is_nil(page():value("a_total", { x = "1" }))
		assert.equal(0, page():value("a_total", { x = "2" }))
		local again = c.metric_hold(family, values "1")
		assert.equal(0, page():value("a_total", { x = "1" }))
		c.metric_release(again)
		c.metric_release(other)
		assert.equal("", text())
	end)

	it("keeps many series apart while they come and go", function()
		local family, held, model = define(GAUGE, "a", { "x" }), {}, {}
		local seed = c.seed()
		for _ = 1, 2000 do
			local name = tostring(math.random(60))
			if held[name] then
				c.metric_release(held[name])
				held[name], model[name] = nil, nil
			else
				held[name], model[name] = c.metric_hold(family, values(name)), math.random(1000)
				c.metric_set(held[name], model[name])
			end
		end
		local found = {}
		for _, sample in ipairs(page():all "a") do
			found[sample.labels.x] = sample.value
		end
		assert.same(model, found, seed)
		for _, series in pairs(held) do
			c.metric_release(series)
		end
	end)

	describe("what is collected", function()
		it("is on the page that it was collected for, and not on the next", function()
			local family, given = define(GAUGE, "a", { "x" }), { "1", "2" }
			collecting(function()
				for i, value in ipairs(given) do
					c.metric_collect(family, values(value), i)
				end
			end, function()
				assert.equal(2, page():value("a", { x = "2" }))
				given = { "2" }
				assert.equal(1, page():value("a", { x = "2" }))
				assert.equal(1, #page():all "a")
			end)
			assert.equal("", text())
		end)

		it("adds up where it is given twice: no page has a series twice", function()
			local family = define(GAUGE, "a", { "x" })
			collecting(function()
				c.metric_collect(family, values "1", 2)
				c.metric_collect(family, values "1", 3)
			end, function()
				assert.equal(5, page():value("a", { x = "1" }))
				assert.equal(5, page():value("a", { x = "1" }))
			end)
		end)
	end)

	it("stops at a family's limit, and says so once", function()
		local lines = 0
		c.log_replace(function() lines = lines + 1 end, nil)
		local family, held = define(HISTOGRAM, "a", { "x" }, { limit = 2, bounds = { 1 } }), {}
		for i = 1, 5 do
			held[i] = c.metric_hold(family, values(tostring(i)))
			c.metric_observe(held[i], 1)
		end
		assert.equal(2, #page():all "a_count")
		assert.equal(1, lines)
		c.metric_release(held[1])
		held[1] = c.metric_hold(family, values "9")
		assert.equal(0, page():value("a_count", { x = "9" }))
		for _, series in ipairs(held) do
			c.metric_release(series)
		end
		assert.equal(1, lines)
	end)

	describe("a definition", function()
		it("that is there already is the same family", function()
			local bounds = { bounds = { 1, 2 } }
			assert.equal(define(HISTOGRAM, "a", { "x" }, bounds), define(HISTOGRAM, "a", { "x" }, bounds))
		end)

		local function refused(why, ...)
			local family, message = define(...)
			assert.is_nil(family)
			assert.truthy(message:find(why, 1, true), message)
		end

		it("is refused where its names are none", function()
			for _, name in ipairs { "", "1a", "a-b", "a b", "ä", "a{", ("a"):rep(201) } do
				refused("is no name of a metric", COUNTER, name)
			end
			for _, label in ipairs { "", "1a", "a-b", "a:b", "__a" } do
				refused("is no name of a label", COUNTER, "a", { "ok", label })
			end
			refused("twice", COUNTER, "a", { "x", "x" })
			refused("le of a histogram", HISTOGRAM, "a", { "le" }, { bounds = { 1 } })
			refused("must rise", HISTOGRAM, "a", {}, { bounds = { 1, 1 } })
			refused("must rise", HISTOGRAM, "a", {}, { bounds = { 0 / 0 } })
		end)

		it("is refused where its name stands for something else", function()
			define(COUNTER, "a", { "x" })
			define(HISTOGRAM, "h", {}, { bounds = { 1 } })
			define(COUNTER, "g_sum")
			refused("there already, as a counter", GAUGE, "a", { "x" })
			refused("with other labels", COUNTER, "a", { "y" })
			refused("with other labels", COUNTER, "a", { "x", "y" })
			refused("with other labels", COUNTER, "a")
			refused("or buckets", HISTOGRAM, "h", {}, { bounds = { 2 } })
			refused("histogram's part", COUNTER, "h_bucket")
			refused("histogram's part", HISTOGRAM, "g", {}, { bounds = { 1 } })
		end)
	end)
end)

describe("the reader that judges pages", function()
	local function refused(why, ...)
		local ok, message = pcall(exposition.read, table.concat({ ... }, "\n") .. "\n")
		assert.is_false(ok)
		assert.truthy(tostring(message):find(why, 1, true), message)
	end

	it("takes no page that a strict one would not", function()
		refused("has no TYPE", "a 1")
		refused("twice", "# TYPE a gauge", 'a{x="1"} 1', 'a{x="1"} 2')
		refused("behind its samples", "# TYPE a gauge", "a 1", "# HELP a A.")
		refused("again", "# TYPE a gauge", "a 1", "# TYPE b gauge", "b 1", 'a{x="1"} 1')
		refused("the escape", "# TYPE a gauge", [[a{x="\q"} 1]])
		refused("without end", "# TYPE a gauge", [[a{x="1\"} 1]])
		refused("no label", "# TYPE a gauge", 'a{x="1",} 1')
		refused("no single number", "# TYPE a gauge", "a  1")
		refused("no number", "# TYPE a gauge", "a 0x1")
		refused("no UTF-8", "# TYPE a gauge", 'a{x="\255"} 1')
		refused("the counter is", "# TYPE a counter", "a -1")
		refused("no bucket +Inf", "# TYPE h histogram", 'h_bucket{le="1"} 1', "h_sum 1", "h_count 1")
		refused("don't add up", "# TYPE h histogram", 'h_bucket{le="1"} 1', 'h_bucket{le="+Inf"} 0', "h_sum 1", "h_count 0")
		refused("is not that of +Inf", "# TYPE h histogram", 'h_bucket{le="+Inf"} 1', "h_sum 1", "h_count 2")
	end)
end)
