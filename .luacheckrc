std = "luajit"
cache = false
max_line_length = 160
exclude_files = { "build", ".cache" }

-- Handlers share one signature; those that look at a part of it name the rest all the same.
ignore = { "212" }

-- These replace what scripts would otherwise get from Lua.
files["lua/perilune/guard.lua"] = { globals = { "pcall", "xpcall", "load", "coroutine", "string" } }
files["lua/perilune/globals.lua"] = { globals = { "package", "require", "print", "os" } }
files["lua/perilune/specs.lua"] = { globals = { "arg", "os" } }

-- Stubs for editors: nothing in them is used.
files["lua/types"] = { ignore = { "21.", "241", "1.." } }

files["spec"] = { std = "+busted" }
files["**/*_spec.lua"] = { std = "+busted" }
