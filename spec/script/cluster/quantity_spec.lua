-- k8s.quantity writes amounts as the API server does.
local k8s = require "perilune"
local cluster = require "support.cluster"

-- The same amount with so many digits that the server, which rounds it to thousandths, writes it anew.
local function lengthened(text)
	return (text:gsub("^([+-]?%d*)%.?(%d*)", "%1.%2" .. ("0"):rep(20)))
end

-- What quotas' hard limits read as. Text to text.
local function canonical(texts)
	local path = ("/api/v1/namespaces/%s/resourcequotas?dryRun=All"):format(cluster.namespace())
	local requests, forms = {}, {}
	for i, text in ipairs(texts) do
		requests[i] = { "POST", path, { apiVersion = "v1", kind = "ResourceQuota", metadata = { name = "quota" },
			spec = { hard = { ["limits.memory"] = lengthened(text) } } } }
	end
	for i, answer in ipairs(cluster.send(requests)) do
		assert.equal(201, answer.status, texts[i])
		forms[texts[i]] = answer.body.spec.hard["limits.memory"]
	end
	return forms
end

local function agrees(texts, place)
	for text, form in pairs(canonical(texts)) do
		assert.equal(form, tostring(assert(k8s.quantity(text))), text .. place)
	end
end

describe("a canonical quantity is the API server's", function()
	it("such as these", function()
		cluster.need()
		agrees({ "0", "0Gi", "1", "1000m", "1500m", "1.5", "0.5Gi", "1.5Gi", "1024Mi", "1000k", "100Ki", "512", "0.5Ki", "1.1Ki", "1e3", "1E3",
			"12e2", "1E", ".5", "5.", "1Ei", "007", "3000000000u", "1023Ki", "1025Ki", "0.1", "1e6", "12e-2", "1000E-3", "1.25Mi", "1000Gi",
			"+1", "1.0", "1.10", "0.001Ki" }, "")
	end)

	it("whatever they are", function()
		cluster.need()
		local seed, texts = os.time(), {}
		math.randomseed(seed)
		local suffixes = { "", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "m", "e3", "E2", "e-1" }
		for i = 1, 100 do
			local suffix = suffixes[math.random(#suffixes)]
			local fraction = suffix ~= "m" and suffix ~= "e-1" and math.random(3) == 1 and ("." .. math.random(0, 99)) or ""
			texts[i] = ("%d%s%s"):format(math.random(0, 10 ^ math.random(0, 6)), fraction, suffix)
		end
		agrees(texts, (" (seed %d)"):format(seed))
	end)
end)
