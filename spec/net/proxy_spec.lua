-- The proxy that other specs put faults on the wire with: each fault is what it says, and without one nothing is lost.
local process = require "support.process"
local proxy = require "support.proxy"
local tcp = require "support.tcp"

local SECONDS = 20
local MUCH = 1024 * 1024

-- A text that repeats at no power of two: at(offset, length) are its bytes there, without end.
local PERIOD = 100003
local pattern = {}

do
	local bytes, state = {}, 1
	for i = 1, PERIOD do
		state = state * 48271 % 2147483647
		bytes[i] = string.char(state % 256)
	end
	pattern.text = table.concat(bytes):rep(3)
end

function pattern.at(offset, length)
	local first = offset % PERIOD + 1
	return pattern.text:sub(first, first + length - 1)
end

describe("the proxy", function()
	local server, wire

	before_each(function()
		server = tcp.listen()
		wire = proxy.start(server.port)
	end)

	after_each(function()
		wire:close()
		server:close()
	end)

	-- Both ends of a connection through the proxy.
	local function pair()
		local client = assert(tcp.connect(wire.port))
		return client, server:accept(SECONDS)
	end

	-- All that comes until no more can come, and why.
	local function take_all(peer)
		local parts = {}
		local deadline = process.now() + SECONDS
		while process.now() < deadline do
			local part, why = peer:take(0.1)
			if not part then
				return table.concat(parts), why
			end
			parts[#parts + 1] = part
		end
		error "the stream does not end"
	end

	local function expect_bytes(peer, text)
		assert.equal(text, peer:read_until(text, SECONDS))
	end

	-- Writes the pattern from that offset on until the system takes no more; the offset after it.
	local function give(peer, offset, last)
		while offset < last do
			local given = peer:give(pattern.at(offset, math.min(60000, last - offset)))
			if given == 0 then
				break
			end
			offset = offset + given
		end
		return offset
	end

	-- Checks what has come against the pattern; the offset after it.
	local function check(peer, offset)
		local part = assert(peer:take(0), "the stream ends early")
		if part ~= pattern.at(offset, #part) then
			error("not as it was sent, behind byte " .. offset)
		end
		return offset + #part
	end

	it("passes 50 MB each way unchanged, and the end of each direction", function()
		local client, peer = pair()
		local size = 50 * MUCH
		local up_given, up_taken, down_given, down_taken = 0, 0, 0, 0
		local deadline = process.now() + 120
		while up_taken < size or down_taken < size do
			up_given, down_given = give(client, up_given, size), give(peer, down_given, size)
			up_taken, down_taken = check(peer, up_taken), check(client, down_taken)
			assert(process.now() < deadline, ("%d bytes up, %d down"):format(up_taken, down_taken))
		end
		client:finish()
		assert.same({ nil, "end" }, { peer:take(SECONDS) })
		peer:write "still here"
		expect_bytes(client, "still here")
		peer:finish()
		assert.same({ nil, "end" }, { client:take(SECONDS) })
		local counts = wire:await("the connection is closed", function(counts)
			return counts.open == 0
		end)
		assert.equal(size, counts.up)
		assert.equal(size + #"still here", counts.down)
		assert.equal(0, counts.lost_up + counts.lost_down)
		assert.same({ cut = 0, reset = 0, silence = 0, slow = 0 }, counts.fired)
	end)

	it("holds back a writer whose reader does not read, and loses nothing of it", function()
		local client, peer = pair()
		local given, before = 0, -1
		local deadline = process.now() + SECONDS
		while given > before do -- until nothing fits for a while
			before = given
			for _ = 1, 10 do
				given = give(client, given, 1000 * MUCH)
				client:take(0.02)
			end
			assert(process.now() < deadline, given .. " bytes fit into the buffers")
		end
		assert(given < 100 * MUCH, given)
		local taken = 0
		while taken < given do
			taken = check(peer, taken)
			assert(process.now() < deadline + SECONDS, taken)
		end
	end)

	it("passes on a reset", function()
		local client, peer = pair()
		client:write "x"
		expect_bytes(peer, "x")
		client:reset()
		assert.same({ nil, "reset" }, { peer:take(SECONDS) })
		client, peer = pair()
		client:write "x"
		expect_bytes(peer, "x")
		peer:reset()
		assert.same({ nil, "reset" }, { client:take(SECONDS) })
	end)

	it("resets a connection whose server is not there", function()
		server:close()
		local client = tcp.connect(wire.port)
		assert.same({ nil, "reset" }, { client:take(SECONDS) })
		server = tcp.listen()
	end)

	for _, direction in ipairs { "up", "down" } do
		-- The end that writes and the one that reads.
		local function writer_and_reader()
			local client, peer = pair()
			if direction == "up" then
				return client, peer
			end
			return peer, client
		end

		it("cuts at a byte, " .. direction, function()
			local writer, reader = writer_and_reader()
			writer:write "before"
			expect_bytes(reader, "before")
			wire:cut { after = 5000, direction = direction }
			give(writer, 0, 4000)
			local held = 0
			while held < 4000 do
				held = check(reader, held)
			end
			assert.equal(0, wire:counts().fired.cut)
			give(writer, 4000, 20000)
			local rest, why = take_all(reader)
			assert.equal("end", why)
			assert.equal(pattern.at(4000, 1000), rest)
			assert.same({ nil, "end" }, { writer:take(SECONDS) })
			assert.equal(1, wire:counts().fired.cut)
			writer:write "more" -- which is no error and reaches nobody
			writer:close()
			reader:close()
			local counts = wire:await("the connection is closed", function(counts)
				return counts.open == 0
			end)
			assert.equal(5000 + #"before", counts[direction])
		end)

		it("resets at a byte, " .. direction, function()
			local writer, reader = writer_and_reader()
			wire:reset { after = 5000, direction = direction }
			give(writer, 0, 20000)
			local came, why = take_all(reader)
			assert.equal("reset", why)
			assert.equal(pattern.at(0, #came), came)
			assert(#came <= 5000)
			assert.same({ nil, "reset" }, { writer:take(SECONDS) })
			local counts = wire:counts()
			assert.equal(1, counts.fired.reset)
			assert.equal(0, counts.open)
			assert.equal(5000, counts[direction])
		end)

		it("drops what goes " .. direction .. ", and nothing else", function()
			local writer, reader = writer_and_reader()
			wire:silence { direction = direction }
			writer:write "lost"
			reader:write "through"
			expect_bytes(writer, "through")
			local counts = wire:await("it was lost", function(counts)
				return counts["lost_" .. direction] == #"lost"
			end)
			assert.equal(1, counts.fired.silence)
			assert.equal("", reader:take(0.05))
		end)

		it("slows down what goes " .. direction, function()
			local writer, reader = writer_and_reader()
			wire:slow { rate = 100000, direction = direction }
			local start, size, taken = process.now(), 50000, 0
			give(writer, 0, size)
			reader:write "fast"
			expect_bytes(writer, "fast")
			while taken < size do
				taken = check(reader, taken)
				assert(process.now() < start + SECONDS, taken)
			end
			assert(process.now() - start > 0.4, process.now() - start)
			assert.equal(1, wire:counts().fired.slow)
			wire:heal()
			local given = 0
			taken = 0
			while taken < 5 * MUCH do -- which would take 50 s
				given = give(writer, given, 5 * MUCH)
				taken = check(reader, taken)
				assert(process.now() < start + SECONDS, taken)
			end
		end)
	end

	it("takes all from a silent connection's ends and tells neither of the other's end", function()
		local client, peer = pair()
		wire:silence()
		local given = 0
		local deadline = process.now() + SECONDS
		while given < 100 * MUCH do -- more than all buffers hold: so it is acknowledged
			given = give(client, given, 100 * MUCH)
			assert(process.now() < deadline, given)
		end
		peer:write "lost"
		peer:close()
		wire:await("all is lost", function(counts)
			return counts.lost_up == given and counts.lost_down == #"lost"
		end)
		assert.equal("", client:take(0.05))
		assert.equal(1, wire:counts().open)
		client:close()
		wire:await("the connection is closed", function(counts)
			return counts.open == 0
		end)
	end)

	it("tells the server the end of a silent connection whose client has given up", function()
		local client, peer = pair()
		wire:silence()
		client:close()
		assert.same({ nil, "end" }, { peer:take(SECONDS) })
	end)

	it("goes silent at a byte", function()
		local client, peer = pair()
		wire:silence { after = 3, direction = "down" }
		peer:write "12345"
		client:write "through"
		expect_bytes(peer, "through")
		expect_bytes(client, "123")
		assert.equal("", client:take(0.05))
		assert.equal(2, wire:counts().lost_down)
	end)

	it("leaves new connections alone, unless they are named", function()
		local client, peer = pair()
		wire:silence()
		local second, second_peer = pair()
		second:write "x"
		expect_bytes(second_peer, "x")
		wire:silence { scope = "all" }
		local third, third_peer = pair()
		for _, one in ipairs { client, second, third } do
			one:write "lost"
		end
		wire:await("it was lost", function(counts)
			return counts.lost_up == 3 * #"lost"
		end)
		wire:heal { scope = "all" }
		local fourth, fourth_peer = pair()
		fourth:write "y"
		expect_bytes(fourth_peer, "y")
		third:write "lost" -- healed too late
		for _, one in ipairs { peer, second_peer, third_peer } do
			assert.equal("", one:take(0.05))
		end
		local found = wire:connections()
		assert.equal(4, #found)
		assert.same({ number = 2, up = 1, down = 0, lost_up = 4, lost_down = 0 }, found[2])
	end)

	it("strikes the next connection alone", function()
		wire:cut { scope = "next", after = 3, direction = "up" }
		local client, peer = pair()
		local second, second_peer = pair()
		for _, one in ipairs { client, second } do
			one:write "12345"
		end
		assert.same({ "123", "end" }, { take_all(peer) })
		expect_bytes(second_peer, "12345")
	end)

	it("strikes one connection by its number", function()
		local client, peer = pair()
		local second, second_peer = pair()
		wire:cut { connection = 2 }
		assert.same({ "", "end" }, { take_all(second) })
		assert.same({ "", "end" }, { take_all(second_peer) })
		client:write "x"
		expect_bytes(peer, "x")
	end)

	it("refuses, and takes connections again at the same port", function()
		local client, peer = pair()
		wire:refuse()
		assert.same({ nil, "refused" }, { tcp.connect(wire.port) })
		client:write "x"
		expect_bytes(peer, "x")
		wire:accept()
		local second, second_peer = pair()
		second:write "y"
		expect_bytes(second_peer, "y")
	end)
end)
