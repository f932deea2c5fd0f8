-- Watches objects of spec/bench/server for scripts/bench, and prints the lines that the peers print.
--
--   mode   fields: a handler that sees the phase alone; whole: one that sees all of the object, and says how late it is;
--          controller: an empty reconcile
--   apiVersion, kind: v1 and Pod, unless said
--   phase  where the kind has its phase: status.phase, unless said
local k8s = require "perilune"

local mode = k8s.config.mode
local objects = k8s.informer { apiVersion = k8s.config.apiVersion or "v1", kind = k8s.config.kind or "Pod" }
local phase = k8s.config.phase or "status.phase"

local events, last, latencies = 0, 0, {}

local function say(what)
  print(k8s.json.encode(what))
end

local function percentile(sorted, part)
  return sorted[math.min(#sorted, math.floor(#sorted * part) + 1)]
end

local function report()
  table.sort(latencies)
  say {
    events = events, last = ("%.0f"):format(last * 1e9),
    latencies = k8s.array { percentile(latencies, 0.5), percentile(latencies, 0.99) },
  }
  events, latencies = 0, {}
end

local function count()
  events = events + 1
  last = k8s.now()
end

local handlers = {
  fields = function(object)
    if k8s.path(object, phase) == "Unknown" then
      report()
    else
      count()
    end
  end,
  whole = function(object)
    if k8s.path(object, phase) == "Unknown" then
      report()
      return
    end
    count()
    latencies[events] = (last - tonumber(object.metadata.annotations["bench/sent"]) / 1e9) * 1e3
  end,
}

if mode == "controller" then
  k8s.controller {
    name = "empty", watch = objects,
    reconcile = function(request)
      if request.name == "mark" then
        report()
      else
        count()
      end
    end,
  }
else
  objects:add_event_handler { update = handlers[mode], fields = mode == "fields" and { phase } or nil, every_event = true }
end

k8s.on_synced(function()
  say { synced = objects:count() }
end)
