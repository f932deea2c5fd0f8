--- A seed for a random spec: $SEED, or a new one. math.random goes on from it. Say it in each assertion.
return function()
	local seed = tonumber(os.getenv "SEED") or os.time() + math.floor(os.clock() * 1e6)
	math.randomseed(seed)
	return "SEED=" .. seed
end
