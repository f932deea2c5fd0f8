-- What an exec plugin may print, and what it may not.
local cjson = require "cjson"
local kube_units = require "support.kube_units"

local V1 = "client.authentication.k8s.io/v1"
local SECRET = "hunter2"
local CERT = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
local KEY = "-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n"

describe("the credential that an exec plugin prints", function()
	local units

	before_each(function()
		units = kube_units.start()
	end)

	after_each(function()
		units:finish()
	end)

	local function read(value, api_version)
		local text = type(value) == "table" and cjson.encode(value) or value
		return units:one("credential", { bytes = text, api_version = api_version or V1 })
	end

	local function with_status(status)
		return { apiVersion = V1, kind = "ExecCredential", status = status }
	end

	it("is a token, a client certificate with its key, or both, perhaps for a time", function()
		assert.same({ event = "credential", token = SECRET }, read(with_status { token = SECRET, other = { 1 }, clientKeyData = cjson.null }))
		assert.same({ event = "credential", cert = CERT, key = KEY }, read(with_status { clientCertificateData = CERT, clientKeyData = KEY, token = "" }))
		assert.same({ event = "credential", token = SECRET, cert = CERT, key = KEY, expires_at = 1893553445 }, read(" " .. cjson.encode(with_status {
			token = SECRET, clientCertificateData = CERT, clientKeyData = KEY, expirationTimestamp = "2030-01-02T05:04:05+02:00",
		}) .. "\n"))
	end)

	it("has the version that was asked for", function()
		local beta = with_status { token = SECRET }
		beta.apiVersion = "client.authentication.k8s.io/v1beta1"
		assert.equal(SECRET, read(beta, beta.apiVersion).token)
		assert.equal("its apiVersion is not " .. V1 .. ", which the kubeconfig asks for", read(beta).message)
	end)

	it("is nothing else, and no error shows what it was", function()
		local cases = {
			[""] = "no JSON object", [SECRET] = "no JSON object", ['"' .. SECRET .. '"'] = "no JSON object", ["{" .. SECRET] = "no JSON object",
			[cjson.encode(with_status { token = SECRET }) .. SECRET] = "no JSON object",
			[("["):rep(100000)] = "no JSON object",
			[{ apiVersion = V1, kind = SECRET, status = { token = SECRET } }] = "kind is not ExecCredential",
			[{ apiVersion = SECRET, kind = "ExecCredential" }] = "its apiVersion is not",
			[with_status(SECRET)] = "it has no status",
			[with_status(nil)] = "it has no status",
			[with_status { expirationTimestamp = "2030-01-02T03:04:05Z" }] = "neither a token nor a client certificate",
			[with_status { token = { SECRET } }] = "its status.token is no text",
			[with_status { token = SECRET .. "\r\nX: y" }] = "spaces or other unusual characters",
			[with_status { token = SECRET .. "\0" }] = "its status.token contains a NUL character",
			[with_status { clientCertificateData = CERT }] = "only one of clientCertificateData and clientKeyData",
			[with_status { token = SECRET, clientKeyData = KEY }] = "only one of clientCertificateData and clientKeyData",
			[with_status { clientCertificateData = SECRET, clientKeyData = KEY }] = 'clientCertificateData holds no PEM block "CERTIFICATE"',
			[with_status { clientCertificateData = CERT, clientKeyData = CERT }] = 'clientKeyData holds no PEM block "PRIVATE KEY"',
			[with_status { token = SECRET, expirationTimestamp = "tomorrow" }] = "no time as RFC 3339 writes it",
			[with_status { token = SECRET, expirationTimestamp = 1893553445 }] = "expirationTimestamp is no text",
		}
		for value, part in pairs(cases) do
			local err = read(value)
			assert.equal("err", err.event)
			assert.matches(part, err.message, 1, true)
			assert.is_nil(err.message:find(SECRET, 1, true), err.message)
		end
	end)
end)
