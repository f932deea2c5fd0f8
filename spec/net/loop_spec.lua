local process = require "support.process"

local SECONDS = 20

describe("the loop", function()
	local function run(case)
		local child = process.start { process.driver "loop_driver", case }
		local code, signal = child:wait(SECONDS)
		local words = {}
		for word in child:stdout():gmatch "[^\n]+" do
			words[#words + 1] = word
		end
		return words, code, signal, child:stderr()
	end

	local function tells(case, expected)
		local words, code, _, stderr = run(case)
		assert.same(expected, words)
		assert.equal(0, code, stderr)
	end

	it("runs jobs in the order posted, each once, and what they post in the next round", function()
		tells("jobs", { "a", "posted", "c", "b", "again", "b" })
	end)

	it("has what is posted on waking run ahead of timers and jobs", function()
		tells("wakes", { "wake", "first", "timer", "a", "first", "a" })
	end)

	it("has what is posted last run when there is nothing else, one in a turn", function()
		tells("last", { "at work", "a", "posted", "b", "at rest", "last", "at rest", "other last" })
	end)

	it("does not run a job that another one cancelled in the same round", function()
		tells("cancel_in_round", { "cancels c" })
	end)

	it("gives timers and signals their turn while a job posts itself for ever", function()
		local child = process.start { process.driver "loop_driver", "busy_job" }
		child:wait_for("running", SECONDS)
		child:wait_for("timer", SECONDS)
		child:kill "TERM"
		child:wait_for("many rounds", SECONDS)
		assert.equal(0, (child:wait(SECONDS)))
	end)

	it("runs timers by the replaced clock, in the order of their times", function()
		tells("timers", { "moved by 16", "b stops c", "a runs", "restarted", "a" })
	end)

	it("runs a timer that restarts itself once a turn, even while the clock stands still", function()
		tells("timer_restarts", { "a", "turn", "a", "turn", "a", "turn", "a", "a clock that was set back", "b" })
	end)

	it("waits for a timer, or for as long as it may", function()
		tells("waits", { "a", "at its time", "max_wait", "at once" })
	end)

	it("frees at the end of the round, and what is left when it ends", function()
		tells("frees", { "later", "same round", "frees x", "next round", "frees y", "frees slowly", "frees z" })
	end)

	it("calls for signals, once for several, replaces the call and gives the default back", function()
		local words, code, signal = run "signals"
		assert.same({ "raised", "usr1", "other", "no SIGPIPE", "stopped" }, words)
		assert.is_nil(code)
		assert.equal(15, signal)
	end)

	it("gives up a call from another thread in time, and never runs it afterwards", function()
		tells("call_gives_up", { "gave up", "in time", "turned", "called", "ran", "in time" })
	end)

	it("tells a caller that gives up at the very moment whether its call ran", function()
		tells("calls_race", { "ran as told", "all returned", "both happened", "data valid" })
	end)
end)
