--- The same requests to the sandbox and to a real API server, and their answers compared as a whole.
--
--   local pair = contract.open()                 pending where there is no real API server
--   pair:same("POST", "/api/v1/namespaces/NS/configmaps", '{"metadata":{…}}')
--       sends it to both and fails where status, content type or body differ; returns the sandbox's body and the real one
--   pair:same("PATCH", path, body, { "Content-Type: …" })
--   pair:await(path, function(body) return … end)      on both, until it holds
--   pair.namespace                               a fresh one on both; NS in a path and in a body stands for it
--   pair:close()
--
-- What differs by nature is masked by its name, in contract.MASKED; uids and versions in messages too.
local cjson = require "cjson"
local cluster = require "support.cluster"
local sandbox = require "support.sandbox"

local contract = {}

--- Fields whose values differ from server to server and from moment to moment.
contract.MASKED = {
	uid = true, resourceVersion = true, creationTimestamp = true, deletionTimestamp = true, time = true, lastTransitionTime = true,
	clusterIP = true, clusterIPs = true,
	description = true, -- of a table's columns, where the real server quotes its documentation
}

local JSON = { POST = "json", PUT = "json", PATCH = "merge-patch+json", DELETE = "json" }

local Pair = {}
Pair.__index = Pair

function contract.open()
	cluster.need()
	local pair = setmetatable({ sandbox = sandbox.start(), namespace = cluster.random_name() }, Pair)
	pair:same("POST", "/api/v1/namespaces", '{"metadata":{"name":"NS"}}')
	return pair
end

function Pair:close()
	self:send("real", "DELETE", "/api/v1/namespaces/NS")
	self.sandbox:stop()
end

local function mask_text(text)
	text = text:gsub("%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x", "UID")
	text = text:gsub("in record %(%d+%)", "in record (VERSION)"):gsub("(version: %d+) %(%d+%)", "%1 (VERSION)")
	return (text:gsub("current: %d+", "current: VERSION"):gsub("^%d+s$", "AGE"))
end

local function by_manager(a, b)
	local function key(entry)
		return ("%s %s %s"):format(entry.operation, entry.manager, tostring(entry.subresource))
	end
	return key(a) < key(b)
end

-- Writes in the same second come in any order there.
local function mask(value)
	if type(value) == "string" then
		return mask_text(value)
	elseif type(value) ~= "table" then
		return value
	end
	if type(value.managedFields) == "table" then
		table.sort(value.managedFields, by_manager)
	end
	for name, member in pairs(value) do
		local is_value = type(member) ~= "table" or #member > 0
		value[name] = contract.MASKED[name] and is_value and "MASKED" or mask(member)
	end
	value.storageVersionHash = nil -- the sandbox has none
	return value
end

-- As a word of its own: a continue token may well hold these two letters.
function Pair:fill(text)
	return text and (text:gsub("%f[%w_-]NS%f[^%w_-]", self.namespace))
end

function Pair:send(which, method, path, body, headers)
	local with = which == "real" and cluster.credentials() or { server = self.sandbox.url }
	return sandbox.request(with, method, self:fill(path), body and self:fill(body),
		headers or (JSON[method] and { "Content-Type: application/" .. JSON[method] }))
end

-- The lines of a watch, each an event.
local function events(body)
	if type(body) ~= "string" or not body:find '^{"type"' then
		return body
	end
	local found = {}
	for line in body:gmatch "[^\n]+" do
		found[#found + 1] = cjson.decode(line)
	end
	return found
end

local function text_of(value)
	return value == nil and "nothing" or cjson.encode(value)
end

-- A line for each place where they differ.
local function differences(real, ours, place, found)
	if type(real) ~= "table" or type(ours) ~= "table" then
		if real ~= ours then
			found[#found + 1] = ("  %s: the API server says %s, the sandbox %s"):format(place, text_of(real), text_of(ours))
		end
		return
	end
	local names = {}
	for _, value in ipairs { real, ours } do
		for name in pairs(value) do
			names[name] = true
		end
	end
	for name in pairs(names) do
		differences(real[name], ours[name], place .. "." .. name, found)
	end
end

function Pair:same(method, path, body, headers)
	local real = { self:send("real", method, path, body, headers) }
	local ours = { self:send("sandbox", method, path, body, headers) }
	real[2], ours[2] = mask(events(real[2])), mask(events(ours[2]))
	local found = {}
	for i, name in ipairs { "status", "body", "content type" } do
		differences(real[i], ours[i], name, found)
	end
	if #found > 0 then
		error(("%s %s: they differ in\n%s"):format(method, path, table.concat(found, "\n")), 2)
	end
	return ours[2], real[2]
end

function Pair:await(path, holds)
	for _, which in ipairs { "real", "sandbox" } do
		cluster.await(20, path .. " on the " .. which, function()
			local _, body = self:send(which, "GET", path)
			return holds(body)
		end)
	end
end

return contract
