local cjson = require "cjson"
local files = require "support.files"
local h2server = require "support.h2server"
local http_driver = require "support.http_driver"
local process = require "support.process"

describe("TLS", function()
	local server, driver

	local function begin(options, env)
		local why
		server, why = h2server.start(options)
		if not server then
			pending(why)
			return
		end
		driver = http_driver.start { env = env }
	end

	after_each(function()
		driver:quit()
		server:close()
	end)

	local function fetch(path, tls, fields)
		fields = fields or {}
		fields.url = (fields.base or server.url) .. path
		fields.base = nil
		fields.tls = tls
		return driver:fetch(fields)
	end

	local function client(tls)
		local done = fetch("/echo", tls)
		assert.equal("none", done.failure, done.message)
		return cjson.decode(done.body).client
	end

	-- A CA with another name than the server's, as OpenSSL looks no further for an issuer than to the first of that name.
	local function make_ca(dir)
		files.output_of { "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other-ca", "-keyout",
			dir .. "/ca.key", "-out", dir .. "/ca.pem", "-days", "1" }
		return dir .. "/ca.pem"
	end

	-- A key pair and its certificate by the CA; the paths of both.
	local function make_client(dir, name)
		local key, csr, cert = dir .. "/" .. name .. ".key", dir .. "/" .. name .. ".csr", dir .. "/" .. name .. ".pem"
		files.output_of { "openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" .. name, "-keyout", key,
			"-out", csr }
		files.output_of { "openssl", "x509", "-req", "-in", csr, "-CA", server.ca, "-CAkey", server.dir .. "/ca.key",
			"-CAcreateserial", "-out", cert, "-days", "1" }
		return cert, key
	end

	it("accepts a certificate of the CA that is named, and says why another is not accepted", function()
		begin()
		local other = assert(h2server.start())
		driver:order("tls", { name = "right", ca = server.ca })
		driver:order("tls", { name = "wrong", ca = other.ca })
		assert.equal("none", fetch("/ok", "right").failure)
		local done = fetch("/ok", "wrong")
		assert.equal("untrusted", done.failure)
		assert.equal(0, done.sent)
		assert.matches("certificate", done.message)
		assert.matches("issuer", done.message)
		other:close()
	end)

	it("verifies against the system's authorities when no CA is named, and against them alone", function()
		begin()
		driver:order("tls", { name = "system" })
		assert.equal("untrusted", fetch("/ok", "system").failure)
		assert.equal("untrusted", fetch("/ok").failure)
	end)

	for _, kind in ipairs { "bundle", "folder" } do
		it("does not accept a certificate of the system's " .. kind .. " when another CA is named", function()
			local system = files.folder()
			begin(nil, { DRIVER_SYSTEM_CERTS = system })
			local other = make_ca(files.folder())
			if kind == "bundle" then
				files.write(system .. "/ca-certificates.crt", files.read(server.ca))
			else
				files.write(system .. "/ca-certificates.crt", files.read(other))
				local hash = files.output_of { "openssl", "x509", "-noout", "-hash", "-in", server.ca }
				files.write(system .. "/" .. hash:match "%x+" .. ".0", files.read(server.ca))
			end
			driver:order("tls", { name = "system" })
			driver:order("tls", { name = "other", ca = other })
			assert.equal("none", fetch("/ok", "system").failure) -- so the system does trust it
			assert.equal("untrusted", fetch("/ok", "other").failure)
		end)
	end

	it("verifies nothing when told so", function()
		begin()
		driver:order("tls", { name = "insecure", insecure = true })
		assert.equal("none", fetch("/ok", "insecure").failure)
		driver:order("tls", { name = "system" })
		assert.equal("untrusted", fetch("/ok", "system").failure) -- not even where a connection is open
	end)

	it("verifies the URL's host, or the name that is set instead", function()
		begin()
		local base = "https://other.loopback:" .. server.port
		driver:order("tls", { name = "host", ca = server.ca })
		driver:order("tls", { name = "localhost", ca = server.ca, server_name = "localhost" })
		driver:order("tls", { name = "nobody", ca = server.ca, server_name = "nobody.example" })
		local done = fetch("/ok", "host", { base = base })
		assert.equal("untrusted", done.failure)
		assert.matches("other.loopback", done.message, 1, true)
		done = fetch("/ok", "nobody", { base = base })
		assert.equal("untrusted", done.failure)
		assert.matches("nobody.example", done.message, 1, true)
		assert.equal("none", fetch("/ok", "localhost", { base = base }).failure)
		assert.equal("none", fetch("/ok", "localhost").failure)
	end)

	for _, alpn in ipairs { "http/1.1", "no ALPN" } do
		it("falls back to HTTP/1.1 where the server speaks no HTTP/2 (" .. alpn .. ")", function()
			begin()
			local words = { "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", server.dir .. "/cert.pem", "-key",
				server.dir .. "/key.pem", "-www" }
			if alpn == "http/1.1" then
				words[#words + 1] = "-alpn"
				words[#words + 1] = alpn
			end
			local old = process.start(words)
			local base = "https://127.0.0.1:" .. old:wait_for("ACCEPT [^\n]*:(%d+)", 10)
			driver:order("tls", { name = "t", ca = server.ca })
			for i = 1, 5 do
				driver:start { url = base .. "/", tls = "t", id = "r" .. i }
			end
			for i = 1, 5 do
				local done = driver:done("r" .. i)
				assert.equal("none", done.failure)
				assert.matches("s_server", done.body)
			end
			old:close()
		end)
	end

	it("uses a changed CA at once", function()
		begin()
		driver:order("tls", { name = "old", ca = server.ca })
		assert.equal("none", fetch("/ok", "old").failure)
		local old_ca = files.write(files.folder() .. "/ca.pem", files.read(server.ca))
		server:renew()
		driver:order("tls", { name = "new", ca = server.ca })
		assert.equal("none", fetch("/ok", "new").failure)
		-- The first connection still serves the old CA; a new one with it is refused.
		assert.equal("none", fetch("/ok", "old").failure)
		assert.equal(2, server:stats(driver, "new").connections)
		driver:order("retire")
		driver:order("tls", { name = "old again", ca = old_ca })
		assert.equal("untrusted", fetch("/ok", "old again").failure)
		assert.equal("none", fetch("/ok", "new").failure)
	end)

	it("uses a changed client certificate at once", function()
		local dir = files.folder()
		begin({ "-dir", dir }) -- makes the CA
		server:close()
		begin({ dir = dir, "-client-ca", dir .. "/ca.pem" })
		driver:order("tls", { name = "none", ca = server.ca })
		driver:order("tls", { name = "client", ca = server.ca, cert = server.cert, key = server.key })
		local cert, key = make_client(files.folder(), "second")
		driver:order("tls", { name = "second", ca = server.ca, cert = cert, key = key })
		assert.equal("client", client "client")
		assert.equal("second", client "second")
		assert.equal("client", client "client")
		assert.not_equal("none", fetch("/echo", "none").failure)
		assert.equal(2, server:stats(driver, "client").open_connections)
	end)

	it("makes a new connection for a changed key, even where the certificate is the same", function()
		begin()
		driver:order("tls", { name = "client", ca = server.ca, cert = server.cert, key = server.key })
		driver:order("tls", { name = "changed", ca = server.ca, cert = server.cert, key = server.dir .. "/key.pem" })
		assert.equal("none", fetch("/ok", "client").failure)
		local done = fetch("/ok", "changed")
		assert.equal("refused", done.failure)
		assert.matches("key", done.message)
		assert.equal(0, done.sent)
	end)

	it("says what is wrong with a CA or client certificate that is no PEM", function()
		begin()
		local junk = files.write(files.folder() .. "/junk.pem", "junk")
		driver:order("tls", { name = "ca", ca = junk })
		driver:order("tls", { name = "cert", ca = server.ca, cert = junk, key = junk })
		local done = fetch("/ok", "ca")
		assert.equal("refused", done.failure)
		assert.matches("CA", done.message)
		done = fetch("/ok", "cert")
		assert.equal("refused", done.failure)
		assert.matches("certificate", done.message)
	end)

	it("asks nobody for the passphrase of an encrypted key", function()
		begin()
		local key = files.folder() .. "/encrypted.key"
		files.output_of { "openssl", "pkey", "-in", server.key, "-aes256", "-passout", "pass:secret", "-out", key }
		driver:order("tls", { name = "t", ca = server.ca, cert = server.cert, key = key })
		local done = fetch("/ok", "t")
		assert.equal("refused", done.failure)
		assert.matches("key", done.message)
		assert.is_true(done.took < 5)
	end)
end)
