--- Names and uids that the server makes.
local names = {}

local ALPHABET = "bcdfghjklmnpqrstvwxz2456789" -- no vowels, so that no words come out

local MOST = 58 -- letters of the base, so that the whole is at most 63

--- As for metadata.generateName.
function names.generate(base)
	local letters = {}
	for i = 1, 5 do
		local at = math.random(#ALPHABET)
		letters[i] = ALPHABET:sub(at, at)
	end
	return base:sub(1, MOST) .. table.concat(letters)
end

--- A random UUID.
function names.uid()
	return (("xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx"):gsub("[xy]", function(letter)
		return ("%x"):format(letter == "x" and math.random(0, 15) or math.random(8, 11))
	end))
end

return names
