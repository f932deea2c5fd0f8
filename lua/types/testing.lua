---@meta perilune.testing

-- `require "perilune.testing"`: what specs use, which `perilune test` runs. No program loads this file. What is said at the top
-- of perilune.lua holds here too; the API calls of a cluster are those of k8s, and don't wait.

---@class perilune.testing
local testing = {}

---Opens an in-memory API server, and stops the clock of the process: only `cluster:advance` moves it. One is open at a
---time; one that is not closed is closed at the end of the test, describe or file that opened it.
---@param options? { manifests?: string | string[], quiet?: boolean } manifests: files or folders of YAML that it begins with;
--- quiet: errors of scripts are in logs() alone, not on stderr
---@return perilune.testing.cluster
function testing.cluster(options) end

---@class perilune.testing.http_request
---@field method string
---@field path string decoded, without the query
---@field query table<string, string>
---@field headers table<string, string> names in lower case; the first of several with one name
---@field body string 16 MiB at most

---@class perilune.testing.http_answer
---@field status? integer 200 unless said
---@field headers? table<string, string>
---@field body? string

---An HTTP server on the loopback, for scripts that call k8s.http. It answers while the spec waits, be it for `cluster:settle` or for
---k8s.sleep. An error in handler is logged, and is answered by 500. It ends with `server:close()`, else with the specs.
---@param handler fun(request: perilune.testing.http_request): perilune.testing.http_answer? must not wait
---@return perilune.testing.http_server
function testing.http_server(handler) end

---@class perilune.testing.http_server
---@field url string "http://127.0.0.1:12345"
local server = {}

---Ends it and its connections. Harmless again; not inside its own handler.
function server:close() end

---@class perilune.testing.cluster
---@field status perilune.status as k8s.status
local cluster = {}

---Starts the scripts at a path (a .lua file, or a folder) as `perilune run` would, with its limits. Raises what keeps them
---from loading.
---@param path string from the current folder on
---@param options? { config?: table<string, any>, namespace?: string } config: k8s.config; namespace: as `--namespace`
---@return perilune.testing.program
function cluster:load(path, options) end

---Waits until nothing is under way: no request, no event in a queue, no handler that does not wait for time. Raises what is
---still under way after `timeout` real seconds (30).
---@param options? { timeout?: number }
function cluster:settle(options) end

---Lets so many seconds pass. What is due happens at its time, in order, and is settled before the next.
---@param seconds number
---@param options? { timeout?: number } real seconds between two times at which something is due (30)
function cluster:advance(seconds, options) end

---What scripts asked of the server, in order: those requests with these fields. Raises where a verb, a kind or a resource is
---none that there is.
---@param filter? perilune.testing.filter
---@return perilune.testing.request[]
function cluster:requests(filter) end

---The rights that scripts needed for what they asked so far, of all namespaces: rules, in order, as `k8s.needs` takes them. One that
---watches needs `list` as well, and one that applies `create`.
---@return { apiGroups: string[], resources: string[], verbs: string[] }[] rules
function cluster:rules() end

---What was logged, in order: those lines with these fields. Raises where level is none, and where no line has a field whose
---name is nearly one of the log's own. Only errors go to stderr as well.
---@param filter? table<string, string> { level = "warn", script = "mirror" }
---@return table<string, string>[] each has time, level and msg, and its fields
function cluster:logs(filter) end

---Orders something that the server does wrong to scripts' requests.
---@param order perilune.testing.order
---@return perilune.testing.fault
function cluster:fault(order) end

---The server starts again, as if it had lost its history: streams are reset, old resourceVersions have expired.
function cluster:restart() end

---History is forgotten, as when etcd is compacted; open streams go on.
function cluster:compact() end

---Ends all scripts at once; time goes on. Harmless again.
function cluster:close() end

---@param reference perilune.reference
---@return perilune.object object
---@return perilune.err err
function cluster:get(reference) end

---@param options table as k8s.list
---@return perilune.object[] objects
---@return perilune.err err
function cluster:list(options) end

---@param object perilune.object
---@param options? table as k8s.create
---@return perilune.object object
---@return perilune.err err
function cluster:create(object, options) end

---@param object perilune.object
---@param options? table as k8s.update
---@return perilune.object object
---@return perilune.err err
function cluster:update(object, options) end

---@param reference perilune.reference
---@param patch table
---@param options? table as k8s.patch
---@return perilune.object object
---@return perilune.err err
function cluster:patch(reference, patch, options) end

---Server-side apply.
---@param object perilune.object
---@param options? table as k8s.apply; field_manager is "spec" unless given
---@return perilune.object object
---@return perilune.err err
function cluster:apply(object, options) end

---As cluster:apply: it leaves out nothing.
---@param object perilune.object
---@param options? table as k8s.apply
---@return perilune.object object
---@return perilune.err err
function cluster:ensure(object, options) end

---@param reference perilune.reference
---@param change fun(object: perilune.object): boolean?
---@param options? table as k8s.modify
---@return perilune.object object
---@return perilune.err err
function cluster:modify(reference, change, options) end

---@param reference perilune.reference
---@param replicas integer
---@param options? table as k8s.scale
---@return perilune.object scale
---@return perilune.err err
function cluster:scale(reference, replicas, options) end

---@param reference perilune.reference
---@param options? table as k8s.delete
---@return any answer
---@return perilune.err err
function cluster:delete(reference, options) end

---@class perilune.testing.filter
---@field method? string "PATCH"
---@field path? string
---@field verb? string "get", "list", "watch", "create", "update", "patch", "delete"; nil of what asks for no object
---@field kind? string "Pod"
---@field resource? string "pods"
---@field namespace? string
---@field name? string
---@field subresource? string "status"

---@class perilune.testing.request : perilune.testing.filter
---@field query table<string, string>
---@field body? any decoded

---What runs at one path.
---@class perilune.testing.program
local program = {}

---Ends it at once, as a killed process ends. Harmless again.
function program:kill() end

---Loads its scripts anew, as SIGHUP does for `perilune run`; cluster:settle() waits until the new ones have taken the place, and
---logs() tells how it went.
function program:reload() end

---Which requests, and what happens to them. What is left out fits all.
---@class perilune.testing.order
---status (code, reason, message, retry_after), unauthorized, conflict, expire (410), cut (bytes), reset, silence,
---slow (bytes_per_second), garbage, wrong_kind, duplicate, no_end_bookmark, restart; no_watch_list (code): a server that
---refuses watch-lists with that code, or without one does not know them
---@field action string
---@field verb? "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection"
---@field resource? string "pods": one that the server has now
---@field namespace? string
---@field name? string
---@field page? integer of a list alone
---@field after? integer so many requests pass first; of a watch: so many of its events
---@field times? integer how often it happens at most (1)
---@field code? integer status needs it
---@field reason? string
---@field message? string
---@field retry_after? integer
---@field bytes? integer of the body, that still come
---@field bytes_per_second? number

---@class perilune.testing.fault
---@field fired integer how often it has happened
local fault = {}

---It does not happen any more.
function fault:remove() end

return testing
