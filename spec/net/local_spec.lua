-- The server on a unix socket (core/net/local.h) and its client (core/net/ask.h).
local files = require "support.files"
local process = require "support.process"
local tcp = require "support.tcp"

local SECONDS = 20

describe("the server on a unix socket #slow", function()
	local folder, path, server, clients

	local function serve()
		local child = process.start { process.driver "local_driver", path }
		return child, child:line(SECONDS)
	end

	local function ask(request, seconds)
		local child = process.start { process.driver "local_driver", path, request, seconds or SECONDS }
		clients[#clients + 1] = child
		return child
	end

	local function answer(request, seconds)
		local child = ask(request, seconds)
		assert.equal(0, (child:wait(SECONDS)), child:stderr())
		return (child:stdout():gsub("\n$", ""))
	end

	local function exists()
		return (process.run { "test", "-e", path }) == 0
	end

	before_each(function()
		folder, clients = files.folder(), {}
		path = folder .. "/socket"
	end)

	after_each(function()
		if server then
			server:kill()
			assert.equal(0, (server:wait(SECONDS)), server:stderr())
			server = nil
		end
		for _, client in ipairs(clients) do
			client:close()
		end
	end)

	describe("that runs", function()
		before_each(function()
			local word
			server, word = serve()
			assert.equal("listening", word)
		end)

		it("answers a line, at once or later, or refuses it", function()
			assert.equal("hello", answer "echo hello")
			assert.equal("", answer "echo ")
			assert.equal("error : no", answer "no")
			local late = ask "later"
			assert.equal("waits", server:line(SECONDS))
			assert.equal("now", answer "now")
			assert.equal("at last", late:line(SECONDS))
		end)

		it("sends an answer that no socket holds at once", function()
			assert.equal(1000000, #answer "big 1000000")
			assert.equal("error TooLarge: " .. path .. ": the answer is too large", answer "big 2000000")
		end)

		it("lets nobody but its user in, and takes its file away at the end", function()
			assert.equal("600\n", files.output_of { "stat", "--format", "%a", path })
			server:kill()
			server:wait(SECONDS)
			assert.is_false(exists())
		end)

		it("takes a line in pieces, and nothing behind it", function()
			local peer = tcp.connect_unix(path)
			for _, piece in ipairs { "ec", "ho one", "\necho two\n" } do
				peer:write(piece)
				assert.equal("x", answer "echo x") -- the piece before has been read by now
			end
			assert.equal("ok 3\none", peer:read_until("one", SECONDS))
			assert.is_true(peer:wait_closed(SECONDS))
		end)

		it("refuses what is too long, and drops what is no line", function()
			local long = tcp.connect_unix(path)
			long:give(("x"):rep(5000))
			assert.truthy(long:read_until("the request is too long", SECONDS))
			local binary = tcp.connect_unix(path)
			binary:write "ec\0ho\n"
			assert.is_true(binary:wait_closed(SECONDS))
			local finished = tcp.connect_unix(path)
			finished:write "echo "
			finished:finish()
			assert.is_true(finished:wait_closed(SECONDS))
			assert.equal("x", answer "echo x")
		end)

		it("is not held up by clients that say nothing, read nothing, or leave before their answer", function()
			local silent, reader = tcp.connect_unix(path), tcp.connect_unix(path)
			reader:write "big 5000000\n"
			local gone = tcp.connect_unix(path)
			gone:write "later\n"
			assert.equal("waits", server:line(SECONDS))
			gone:close()
			assert.equal("now", answer "now")
			assert.equal("", answer "advance 4")
			assert.equal("x", answer "echo x")
			assert.equal("", silent:take(0))
			assert.equal("", answer "advance 2")
			assert.is_true(silent:wait_closed(SECONDS))
			assert.is_true(reader:wait_closed(SECONDS))
		end)

		it("does not listen to another user, even where the file would let him in", function()
			if files.output_of { "id", "-u" } ~= "0\n" then
				pending "only root can be somebody else"
				return
			end
			files.output_of { "chmod", "a+rwx", folder, path }
			local client = { "perl", "-MIO::Socket::UNIX", "-e", [[
				$SIG{PIPE} = "IGNORE";
				$socket = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "no connection";
				print $socket "echo x\n";
				$socket->flush;
				print "[", <$socket>, "]";
			]], path }
			assert.equal("[ok 1\nx]", files.output_of(client))
			for i, word in ipairs { "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups" } do
				table.insert(client, i, word)
			end
			assert.equal("[]", files.output_of(client))
		end)

		it("serves more clients than it takes at once, each in its turn", function()
			local peers = {}
			for i = 1, 100 do
				peers[i] = tcp.connect_unix(path)
			end
			local waiting = ask "echo x"
			for _, peer in ipairs(peers) do
				peer:write "echo hello\n"
			end
			for _, peer in ipairs(peers) do
				assert.equal("ok 5\nhello", peer:read_until("hello", SECONDS))
			end
			assert.equal("x", waiting:line(SECONDS))
		end)

		it("keeps its place against another one, and is replaced when it is dead", function()
			local _, word = serve()
			assert.equal(("error %s: another process listens there"):format(path), word)
			assert.equal("x", answer "echo x")
			server:kill "KILL"
			server:wait(SECONDS)
			assert.is_true(exists())
			server, word = serve()
			assert.equal("listening", word)
			assert.equal("x", answer "echo x")
		end)

		it("takes away no file but its own", function()
			files.output_of { "rm", path }
			files.write(path, "mine")
			server:kill()
			assert.equal(0, (server:wait(SECONDS)))
			assert.equal("mine", files.read(path))
			server = nil
		end)
	end)

	it("waits for descriptors where there are none left", function()
		server = process.start { "sh", "-c", 'ulimit -n 14; exec "$@"', "sh", process.driver "local_driver", path }
		assert.equal("listening", server:line(SECONDS))
		local peers = {}
		for i = 1, 20 do
			peers[i] = tcp.connect_unix(path)
		end
		local waiting = ask "echo x"
		for _, peer in ipairs(peers) do
			peer:write "echo hello\n"
		end
		for _, peer in ipairs(peers) do
			assert.equal("ok 5\nhello", peer:read_until("hello", SECONDS))
		end
		assert.equal("x", waiting:line(SECONDS))
	end)

	it("replaces no file that is no socket", function()
		files.write(path, "mine")
		local _, word = serve()
		assert.equal(("error %s: there is a file that is no socket"):format(path), word)
		assert.equal("mine", files.read(path))
	end)

	it("is one, of many that want the same place at once", function()
		server = serve()
		server:kill "KILL"
		server:wait(SECONDS)
		local children, listening = {}, 0
		for i = 1, 8 do
			children[i] = process.start { process.driver "local_driver", path }
		end
		for _, child in ipairs(children) do
			if child:line(SECONDS) == "listening" then
				listening = listening + 1
				server = child
			end
		end
		assert.equal(1, listening)
		assert.equal("x", answer "echo x")
	end)

	it("says what is wrong with a path", function()
		path = folder .. "/no/socket"
		assert.equal(("error %s: No such file or directory"):format(path), select(2, serve()))
		path = folder .. "/" .. ("x"):rep(200)
		assert.equal(("error %s: the path of a socket has at most 107 bytes"):format(path), select(2, serve()))
	end)

	it("is told from a server that is not there, is stuck, or breaks off", function()
		assert.equal(("error Connection: %s: no host listens there"):format(path), answer "echo x")
		local stuck = tcp.listen_unix(path)
		assert.equal(("error Timeout: %s: the host does not answer"):format(path), answer("echo x", 0.2))
		stuck:accept(SECONDS):close()
		for text, expected in pairs {
			[""] = "Connection: %s: the host ended before it answered",
			["ok 10\nhello"] = "Connection: %s: the host's answer was cut",
			["ok 2\nhello"] = "Connection: %s: the host's answer was cut",
			["HTTP/1.1 400 Bad Request\r\n\r\n"] = ": %s: what answers is no host",
		} do
			local client = ask "echo x"
			local peer = stuck:accept(SECONDS)
			assert.truthy(peer:read_until("\n", SECONDS))
			peer:write(text)
			peer:close()
			assert.equal("error " .. expected:format(path), client:line(SECONDS))
		end
	end)
end)
