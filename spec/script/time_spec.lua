-- k8s.time: times as objects have them.
local k8s = require "perilune"

describe("k8s.time", function()
	it("gives seconds since 1970, with fractions", function()
		assert.equal(0, k8s.time "1970-01-01T00:00:00Z")
		assert.equal(951782400, k8s.time "2000-02-29T00:00:00Z")
		assert.equal(1709251199, k8s.time "2024-02-29T23:59:59Z")
		assert.equal(-1, k8s.time "1969-12-31T23:59:59Z")
		assert.near(1577836800.123456, k8s.time "2020-01-01T00:00:00.123456Z", 1e-6)
	end)

	it("agrees with os.date on each day of 150 years", function()
		for day = -365 * 30, 365 * 120 do
			local text = os.date("!%Y-%m-%dT%H:%M:%SZ", day * 86400 + 4711)
			assert.equal(day * 86400 + 4711, k8s.time(text), text)
		end
	end)

	it("knows zones", function()
		assert.equal(k8s.time "2020-01-01T10:00:00Z", k8s.time "2020-01-01T12:30:00+02:30")
		assert.equal(k8s.time "2020-01-01T10:00:00Z", k8s.time "2020-01-01T05:00:00-05:00")
	end)

	it("gives nil for what is no time, and for what is not there", function()
		for _, text in ipairs { "", "today", "2020-01-01", "2020-13-01T00:00:00Z", "2020-00-01T00:00:00Z", "2020-01-32T00:00:00Z", "2021-02-29T00:00:00Z",
			"1900-02-29T00:00:00Z", "2020-01-01T24:00:00Z", "2020-01-01T00:60:00Z", "2020-01-01T00:00:61Z", "2020-01-01T00:00:00",
			"2020-01-01T00:00:00+2", "2020-01-01T00:00:00Zulu", "2020-01-01T00:00:00+24:00", "2020-01-01 00:00:00Z" } do
			assert.is_nil(k8s.time(text), text)
		end
		assert.is_nil(k8s.time(nil))
		assert.is_nil(k8s.time(k8s.null))
	end)

	it("raises for what is no text", function()
		assert.error_matches(function() k8s.time(5) end, "k8s.time takes a text, not a number")
	end)
end)
