--- The measuring side of scripts/bench, which builds what this runs: run.lua BIN MODE [ROUNDS PODS SET].
local cjson = require "cjson"
local figures = require "bench.figures"
local programs = require "bench.programs"
local subject = require "bench.subject"

local BURST, RATE, RATE_SECONDS = 50000, 500, 10

local bin, mode = arg[1], arg[2]

local function say(format, ...)
	io.stderr:write("bench: ", format:format(...), "\n")
end

local function exists(path)
	local file = io.open(path)
	return file and file:close()
end

local function output_of(command)
	local pipe = io.popen(command)
	local text = pipe:read "*a"
	pipe:close()
	return (text:gsub("%s+$", ""))
end

-- A server of its own for each program, so that none meets what another has left.
local function with_server(flags, use)
	local folder = output_of "mktemp -d"
	local server = subject.serve(bin .. "/server", folder, unpack(flags))
	local ok, why = xpcall(use, debug.traceback, server)
	server:close()
	os.execute("rm -rf " .. folder)
	assert(ok, why)
end

local function with_program(words, kind, flags, use)
	with_server(flags, function(server)
		local program = subject.start(words(bin, server), server, kind)
		local ok, why = xpcall(use, debug.traceback, program)
		program:close()
		assert(ok, why)
	end)
end

local function measure_idle(program, add)
	with_program(program.words, "pods", {}, function(running)
		add("idle_synced", running.synced)
		local memory = running:settle(program.collects)
		add("idle_rss", memory.rss)
		add("idle_anonymous", memory.anonymous)
		program.idle_bytes = memory.rss
	end)
end

local function measure_sync(program, running, pods, add)
	add("synced", running.synced)
	add("cpu", running.cpu)
	local memory, cpu = running:settle(program.collects)
	add("settled", cpu)
	if program.idle then
		add("rss", memory.rss)
		add("anonymous", memory.anonymous)
		add("peak", memory.peak)
		add("each", (memory.rss - program.idle_bytes) / pods)
	end
end

-- What the initial state has brought does not count.
local function begin_updates(program, running)
	running:await_watch()
	if not program.sync then
		running:settle(false)
	end
	if program.reconciles then
		running:await "events"
	end
	running:mark()
end

local function measure_updates(program, running, add)
	begin_updates(program, running)
	if program.rate then
		local share, latencies = running:rate(RATE, RATE * RATE_SECONDS)
		add("share", share)
		add("p50", latencies[1])
		add("p99", latencies[2])
	end
	if program.burst then
		local rate, events = running:burst(BURST)
		add("burst", rate)
		add("handled", events)
		assert(program.reconciles or events == BURST, ("%d events for %d updates"):format(events, BURST))
	end
end

local function measure(program, pods, set, add)
	if program.idle then
		measure_idle(program, add)
	end
	with_program(program.words, "pods", { "-set", set, "-pods", pods }, function(running)
		assert(program.uncounted or running.objects == pods + 1, ("%d of %d Pods"):format(running.objects, pods))
		if program.sync then
			measure_sync(program, running, pods, add)
		end
		if program.rate or program.burst then
			measure_updates(program, running, add)
		end
	end)
end

-- Each of 2,000 objects, without managedFields, as a file of its own. Returns how many bytes they have on average.
local function write_objects(set, folder)
	local list = output_of(("%s/server -set %s -pods 2000 -dump pods"):format(bin, set)):gsub('"managedFields":%b[]', "")
	local count, bytes = 0, 0
	for object in list:sub(list:find("[", 1, true), -1):gmatch "%b{}" do
		count, bytes = count + 1, bytes + #object
		local file = assert(io.open(("%s/%d"):format(folder, count), "w"))
		file:write(object)
		file:close()
	end
	return bytes / count
end

-- zstd alone, object by object with a dictionary: bytes that are left, microseconds to pack and to open.
local function measure_zstd(set, numbers)
	local folder = output_of "mktemp -d"
	local size = write_objects(set, folder)
	os.execute(("cd %s && zstd -q --train --maxdict=16384 -o dictionary *"):format(folder))
	local report = output_of(("cd %s && zstd -b1 -i1 -D dictionary [0-9]* 2>&1"):format(folder))
	local ratio, pack, open = report:match ".*%(x([%d.]+)%),%s*([%d.]+) MB/s,%s*([%d.]+) MB/s"
	os.execute("rm -rf " .. folder)
	if not ratio then
		say("  zstd alone: skipped, since there is no zstd here, or another one: %s", report)
		return
	end
	numbers:add("zstd", "each", size / tonumber(ratio))
	numbers:add("zstd", "pack", size / tonumber(pack))
	numbers:add("zstd", "open", size / tonumber(open))
end

local function progress(program, numbers)
	local parts = {}
	for _, column in ipairs { { "synced", "%.2f s" }, { "cpu", "%.2f s CPU" }, { "each", "%.0f bytes each" },
		{ "p99", "p99 %.2f ms" }, { "burst", "%.0f updates/s" } } do
		if numbers:median(program.id, column[1]) then
			parts[#parts + 1] = numbers:text(program.id, column[1], column[2])
		end
	end
	if #parts > 0 then
		say("  %s: %s", program.label, table.concat(parts, ", "))
	end
end

-- measure_one is called as measure is, for each program in turn.
local function take_turns(rounds, pods, set, measure_one)
	local numbers = figures.new()
	for round = 1, rounds do
		say("%d Pods, set %s, round %d of %d", pods, set, round, rounds)
		for _, program in ipairs(programs.all) do
			if program.needs and not exists(bin .. "/" .. program.needs) then
				say("  %s: skipped, since its toolchain is missing", program.label)
			else
				measure_one(program, pods, set, function(name, value) numbers:add(program.id, name, value) end)
				progress(program, numbers)
			end
		end
	end
	return numbers
end

local function run_rounds(rounds, pods, set)
	local numbers = take_turns(rounds, pods, set, measure)
	numbers:add("fields", "binary", tonumber(output_of("stat -c %s " .. bin .. "/perilune")))
	measure_zstd(set, numbers)
	return numbers
end

local columns = {
	{ "sync s", "synced", "%.2f" }, { "CPU s", "cpu", "%.2f" }, { "CPU s, settled", "settled", "%.2f" },
	{ "RSS MB", "rss", "%.1f", 2 ^ 20 }, { "anonymous MB", "anonymous", "%.1f", 2 ^ 20 }, { "peak MB", "peak", "%.1f", 2 ^ 20 },
	{ "bytes each", "each", "%.0f" }, { "CPU % at 500/s", "share", "%.1f", 0.01 }, { "p50 ms", "p50", "%.2f" }, { "p99 ms", "p99", "%.2f" },
	{ "updates/s", "burst", "%.0f" }, { "handled", "handled", "%.0f" }, { "idle RSS MB", "idle_rss", "%.1f", 2 ^ 20 },
	{ "idle anonymous MB", "idle_anonymous", "%.1f", 2 ^ 20 },
}

-- Those of the list for which is_there is true.
local function those(list, is_there)
	local found = {}
	for _, one in ipairs(list) do
		if is_there(one) then
			found[#found + 1] = one
		end
	end
	return found
end

-- Of the programs and columns that have a figure.
local function figure_rows(numbers)
	local there = those(columns, function(column)
		return #those(programs.all, function(program) return numbers:median(program.id, column[2]) end) > 0
	end)
	local rows = { { "program" } }
	for _, column in ipairs(there) do
		table.insert(rows[1], column[1])
	end
	for _, program in ipairs(programs.all) do
		local row, has_figure = { program.label }, false
		for _, column in ipairs(there) do
			row[#row + 1] = numbers:text(program.id, column[2], column[3], column[4])
			has_figure = has_figure or numbers:median(program.id, column[2])
		end
		rows[#rows + 1] = has_figure and row or nil
	end
	return rows
end

local function verdict(value, target, more)
	return (more and value >= target or not more and value <= target) and "yes" or "no"
end

-- A ratio below one reads better as a fraction.
local function ratio_text(ratio)
	return ratio < 1 and ("1/%.3g"):format(1 / ratio) or ("%.3g"):format(ratio)
end

local function target_rows(numbers, set)
	local rows = { { "figure", "target", "measured", "met" } }
	for _, target in ipairs(programs.targets) do
		local name, wanted, ours, theirs = unpack(target)
		if set == "random" and target.random ~= nil then
			wanted = target.random
		end
		local a, b = numbers:median(unpack(ours)), numbers:median(unpack(theirs))
		if a and b and wanted == "none" then
			rows[#rows + 1] = { name, "–", ratio_text(a / b), "–" }
		elseif a and b and wanted then
			rows[#rows + 1] = {
				name, (target.more and "at least " or "at most ") .. ratio_text(wanted), ratio_text(a / b), verdict(a / b, wanted, target.more),
			}
		end
	end
	for _, limit in ipairs(programs.limits) do
		local value = numbers:median(unpack(limit[4]))
		if value then
			rows[#rows + 1] = { limit[1], "at most " .. limit[2], ("%.2f"):format(value / limit[3]), verdict(value / limit[3], limit[2]) }
		end
	end
	return rows
end

local function print_tables(numbers, rounds, pods, set)
	print(("### %d Pods, set *%s*, %d round%s: median (least..most)\n"):format(pods, set, rounds, rounds > 1 and "s" or ""))
	print(figures.markdown(figure_rows(numbers)))
	print(figures.markdown(target_rows(numbers, set)))
	if numbers:median("zstd", "each") then
		print(("zstd -1 alone, dictionary of 16 KB, without managedFields: %.0f bytes each, %.1f µs to pack, %.1f µs to open.\n"):format(
			numbers:median("zstd", "each"), numbers:median("zstd", "pack"), numbers:median("zstd", "open")))
	end
	io.stdout:flush()
end

local function print_machine()
	print(("%s; %s cores; %s; %s; %s; client-go %s; kube-rs %s\n"):format(
		output_of "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1", output_of "nproc", output_of "uname -sr | cut -d - -f 1",
		output_of "curl --version | grep -o 'libcurl/[0-9.]*' | head -n 1", output_of(bin .. "/perilune version | head -n 1"),
		output_of "sed -n 's|.*k8s.io/client-go v||p' spec/bench/peers/go/go.mod",
		output_of "sed -n 's/^kube = .*\"=\\([0-9.]*\\)\".*/\\1/p' spec/bench/peers/rust/Cargo.toml"))
end

local function rounds(count, pods, set)
	print_tables(run_rounds(count, pods, set), count, pods, set)
end

local config_maps = programs.perilune("fields", unpack(programs.kinds.configmaps))

local modes = {}

function modes.rounds()
	print_machine()
	rounds(tonumber(arg[3]), tonumber(arg[4]), arg[5])
end

--- The sync alone, which for some is so short that a slow second of the machine is all of it: many times.
function modes.syncs()
	local count, pods, set = tonumber(arg[3]), tonumber(arg[4]), arg[5]
	print_machine()
	print_tables(take_turns(count, pods, set, function(program, _, _, add)
		if program.sync then
			with_program(program.words, "pods", { "-set", set, "-pods", pods }, function(running)
				add("synced", running.synced)
				add("cpu", running.cpu)
			end)
		end
	end), count, pods, set)
end

function modes.full()
	print_machine()
	for _, set in ipairs { "plain", "random" } do
		for _, pods in ipairs { 10000, 50000 } do
			rounds(3, pods, set)
		end
	end
end

--- Memory and time for a million ConfigMaps.
function modes.million()
	with_program(config_maps, "configmaps", { "-configmaps", 1000000 }, function(running)
		assert(running.objects == 1000001)
		local memory = running:settle()
		print(("1,000,000 ConfigMaps: %.1f s, CPU %.1f s, RSS %.0f MB (target: under 600), peak %.0f MB"):format(
			running.synced, running.cpu, memory.rss / 2 ^ 20, memory.peak / 2 ^ 20))
	end)
end

-- All that callgrind has counted, and of that zstd's.
local function instructions_so_far(pid, folder)
	os.execute(("callgrind_control -d %d >/dev/null 2>&1"):format(pid))
	local report = output_of(("callgrind_annotate --threshold=100 %s/callgrind.out.%d.*"):format(folder, pid))
	local function number(text)
		return tonumber((text:gsub(",", "")))
	end
	local zstd = 0
	for line in report:gmatch "[^\n]+" do
		local count = line:match "^%s*([%d,]+) .*%[[^%]]*libzstd[^%]]*%]"
		zstd = zstd + (count and number(count) or 0)
	end
	return number(report:match "\n%s*([%d,]+)[^\n]*PROGRAM TOTALS"), zstd
end

-- Instructions for an update under callgrind, after a warm-up, when all is at rest. It counts from then on only: to set its
-- counts to zero leaves a few for each object of the initial state.
local function instructions(objects)
	local warm_up, updates = 500, 500
	local total, zstd
	local folder = output_of "mktemp -d"
	with_program(function(...)
		local out = ("--callgrind-out-file=%s/callgrind.out.%%p"):format(folder)
		return { "valgrind", "--tool=callgrind", "--instr-atstart=no", out, unpack(config_maps(...)) }
	end, "configmaps", { "-configmaps", objects }, function(running)
		running:settle()
		running:await_watch()
		running:burst(warm_up)
		running:rest_after_packing()
		os.execute(("callgrind_control -i on %d >/dev/null 2>&1"):format(running.child.pid))
		local _, events = running:burst(updates)
		assert(events == updates)
		running:settle() -- packs them too
		total, zstd = instructions_so_far(running.child.pid, folder)
	end)
	os.execute("rm -rf " .. folder)
	return total / updates, zstd / updates
end

function modes.instructions()
	local few, few_zstd = instructions(1000)
	local many, many_zstd = instructions(200000)
	local function growth(a, b)
		return (b / a - 1) * 100
	end
	print(("instructions for an update: %.0f with 1,000 objects, %.0f with 200,000: %+.1f %% (target: within 10 %%)"):format(
		few, many, growth(few, many)))
	few, many = few - few_zstd, many - many_zstd
	print(("without zstd's, whose dictionary is another: %.0f and %.0f, %+.1f %%"):format(few, many, growth(few, many)))
end

local function see_each(id, words, kind, program)
	with_program(words, kind, { "-" .. kind, 40 }, function(running)
		begin_updates(program, running)
		local _, handled = running:burst(40)
		print(cjson.encode { program = id, objects = running.objects, handled = handled })
	end)
end

--- Perilune alone and a few objects of each kind, so that this folder keeps working.
function modes.smoke()
	for _, program in ipairs(programs.all) do
		if not program.needs and program.burst then
			see_each(program.id, program.words, "pods", program)
		end
	end
	for kind, settings in pairs(programs.kinds) do
		see_each(kind, programs.perilune("fields", unpack(settings)), kind, {})
	end
end

modes[mode]()
