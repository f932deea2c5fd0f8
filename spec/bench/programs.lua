--- The programs that scripts/bench compares.
--
-- Each has: id; label; words, a function that gives its command line for a server; and what is measured of it: `sync`,
-- `rate`, `burst` (true where it is); `idle`, memory with an empty cluster. `collects`: it says when its garbage is gone;
-- `reconciles`: the keys of the initial state come too, "mark" among them; `uncounted`: it does not say how many objects it
-- has; `needs`: a program that may not be there.
local programs = {}

--- Perilune with watch.lua, in a mode, with more settings.
function programs.perilune(mode, ...)
	local settings = { ... }
	return function(bin, server)
		local words = {
			bin .. "/perilune", "run", "--kubeconfig", server.kubeconfig, "--listen", "127.0.0.1:0", "--log-level", "warn",
			"--set", "mode=" .. mode,
		}
		for _, setting in ipairs(settings) do
			words[#words + 1] = "--set"
			words[#words + 1] = setting
		end
		words[#words + 1] = "spec/bench/perilune/watch.lua"
		return words
	end
end

--- What else the server has, and the settings with which Perilune watches that.
programs.kinds = {
	configmaps = { "kind=ConfigMap", "phase=data.phase" },
	secrets = { "kind=Secret", "phase=data.phase" },
	nodes = { "kind=Node" },
	reports = { "apiVersion=bench.perilune/v1", "kind=Report" },
}

local function client_go(...)
	local flags = { ... }
	return function(bin, server)
		return { bin .. "/peer-client-go", "-kubeconfig", server.kubeconfig, unpack(flags) }
	end
end

local function kube_rs(...)
	local flags = { ... }
	return function(bin, server)
		return { bin .. "/peer-kube-rs", server.kubeconfig, unpack(flags) }
	end
end

local function bare(bin, server)
	return { bin .. "/read", server.ca, server.url .. "/api/v1/pods" }
end

programs.all = {
	{ id = "fields", label = "Perilune, fields = status.phase", words = programs.perilune "fields", sync = true, idle = true, burst = true },
	{ id = "whole", label = "Perilune, whole object", words = programs.perilune "whole", rate = true, burst = true },
	{ id = "key", label = "Perilune, controller by key", words = programs.perilune "controller", burst = true, reconciles = true },
	{ id = "typed", label = "client-go typed (watch-list)", words = client_go(), needs = "peer-client-go",
		sync = true, idle = true, rate = true, burst = true, collects = true },
	{ id = "list", label = "client-go typed, list", words = client_go "-list", needs = "peer-client-go", sync = true, collects = true },
	{ id = "dynamic", label = "client-go dynamic", words = client_go "-dynamic", needs = "peer-client-go",
		sync = true, idle = true, rate = true, burst = true, collects = true },
	{ id = "go-key", label = "client-go controller by key", words = client_go "-controller", needs = "peer-client-go",
		burst = true, reconciles = true },
	{ id = "kube-rs", label = "kube-rs typed", words = kube_rs(), needs = "peer-kube-rs",
		sync = true, idle = true, rate = true, burst = true },
	{ id = "kube-rs-key", label = "kube-rs controller", words = kube_rs "controller", needs = "peer-kube-rs", burst = true, reconciles = true, uncounted = true },
	{ id = "read", label = "bare read (libcurl)", words = bare, sync = true, uncounted = true },
}

--- Ratios that are wanted, ours divided by theirs: name, target or "none", our figure, theirs; more is better where it says so. In the
-- set "random" some targets are others, or none.
programs.targets = {
	{ "memory for each Pod, of client-go typed", 1 / 10, { "fields", "each" }, { "typed", "each" }, random = 1 / 4 },
	{ "memory for each Pod, of client-go dynamic", 1 / 25, { "fields", "each" }, { "dynamic", "each" }, random = false },
	{ "memory for each Pod, of kube-rs typed", 1 / 20, { "fields", "each" }, { "kube-rs", "each" }, random = 1 / 8 },
	{ "peak memory, of the steady state", 1.3, { "fields", "peak" }, { "fields", "rss" } },
	{ "CPU to sync, of kube-rs typed", 1 / 3, { "fields", "cpu" }, { "kube-rs", "cpu" } },
	{ "CPU to sync, of client-go typed with list", 1 / 7, { "fields", "cpu" }, { "list", "cpu" } },
	{ "CPU to sync, of client-go's default", 1 / 15, { "fields", "cpu" }, { "typed", "cpu" } },
	{ "CPU until it rests, of kube-rs typed", "none", { "fields", "settled" }, { "kube-rs", "settled" } },
	{ "CPU until it rests, of client-go typed with list", "none", { "fields", "settled" }, { "list", "settled" } },
	{ "CPU until it rests, of client-go's default", "none", { "fields", "settled" }, { "typed", "settled" } },
	{ "time to sync, of the bare read", 3, { "fields", "synced" }, { "read", "synced" } },
	{ "updates/s with fields, of client-go dynamic", 10, { "fields", "burst" }, { "dynamic", "burst" }, more = true },
	{ "updates/s with fields, of kube-rs typed", 2, { "fields", "burst" }, { "kube-rs", "burst" }, more = true },
	{ "updates/s whole, of client-go dynamic", 5, { "whole", "burst" }, { "dynamic", "burst" }, more = true },
	{ "updates/s whole, of kube-rs typed", 1, { "whole", "burst" }, { "kube-rs", "burst" }, more = true },
	{ "updates/s by key, of kube-rs typed", 3, { "key", "burst" }, { "kube-rs-key", "burst" }, more = true },
	{ "p99 latency at 500/s, of kube-rs typed", 1, { "whole", "p99" }, { "kube-rs", "p99" } },
}

--- Targets that are no ratios: name, target, unit, figure.
programs.limits = {
	{ "idle, anonymous memory (MB)", 4, 2 ^ 20, { "fields", "idle_anonymous" } },
	{ "idle, memory (MB)", 16, 2 ^ 20, { "fields", "idle_rss" } },
	{ "start to barrier open, empty cluster (ms)", 100, 1e-3, { "fields", "idle_synced" } },
	{ "stripped binary (MB)", 2, 2 ^ 20, { "fields", "binary" } },
}

return programs
