---@meta perilune

-- All of `require "perilune"`: for editors with lua-language-server, which .luarc.json points here, and for people. No program
-- loads this file.
--
-- These hold everywhere and are not repeated below:
--
-- * "Waits" means that the call lets other handlers run until it is done. It works in handlers and in what k8s.main, k8s.every,
--   k8s.on_synced and k8s.on_shutdown were given, also inside coroutines, pcall and iterators; not at a script's top level and
--   not inside table.sort, string.gsub or require. A function that does not say so never waits.
-- * Misuse (an unknown option, a wrong type, a missing name) raises an error with the script's line. What the server or the
--   network does is a second result: `local pod, err = k8s.get(...)`. Exactly one of both is nil, although the value's type
--   here does not say so, so that code which looks at `err` first has no warnings.
-- * Durations and times are seconds, with fractions.
-- * Objects are plain tables in JSON's shape. null is k8s.null; an integer beyond 2^53 is an int64_t (cdata); [] and {}
--   stay what they are. A fresh empty table is {}; see k8s.array.
-- * A path is keys joined by dots, "spec.nodeName". A key with dots in it is written "metadata.labels['example.com/x']", an
--   array's first element "spec.containers[0].image", and all of them "spec.containers[*].image".

---@class perilune
---@field config table<string, string> what `--set KEY=VALUE` gave: k8s.config.KEY, nil when it was not given
---@field json perilune.json
---@field yaml perilune.yaml
---@field log perilune.log
---@field state table plain data of the script's own: kept over a reload, not over a restart
---@field null lightuserdata JSON's null, in what is decoded and in what is sent
local k8s = {}

---A Kubernetes object. Inside, everything is as the API documents it.
---@class perilune.object
---@field apiVersion string "v1", "apps/v1"
---@field kind string "Pod"
---@field metadata perilune.metadata
---@field [string] any

---@class perilune.metadata
---@field name string
---@field namespace? string nil for cluster-scoped kinds
---@field uid? string
---@field resourceVersion? string
---@field labels? table<string, string>
---@field annotations? table<string, string>
---@field [string] any

---Names one object. What takes a reference takes a whole object too.
---@class perilune.reference
---@field apiVersion string
---@field kind string
---@field namespace? string for namespaced kinds; when nil, that of `--namespace`
---@field name string

---Why an API call failed. `tostring(err)` is "REASON: MESSAGE"; `assert(k8s.get(...))` raises it.
---@class perilune.err
---@field code? integer the HTTP status; nil when no server answered
---The server's: NotFound, AlreadyExists, Conflict, Invalid, BadRequest, Unauthorized, Forbidden, Expired, TooManyRequests,
---ServerTimeout, ServiceUnavailable, InternalError …; from this side: NoKind, Timeout, Connection, TooLarge, BadRequest, NotLeader.
---@field reason? string
---@field message string one line
---@field causes? { reason?: string, message?: string, field?: string }[] what exactly is invalid
---@field retry_after? number the server asked to wait that many seconds
---@field retryable boolean the same call may succeed later
---@field outcome_unknown boolean a write that may have happened

-- Informers: caches of the objects of one kind, filled by a list and kept up to date by a watch.

---@class perilune.informer_options
---@field apiVersion string
---@field kind? string this or `resource` is needed
---@field resource? string such as "pods"
---@field namespace? string|string[] a name or several; else the factory's (of the default one: `--namespace`); else all
---@field label_selector? string as for kubectl; the server sends no others. Else the factory's
---@field field_selector? string such as "status.phase!=Succeeded", each term with an operator; the same
---@field metadata_only? boolean the cache holds metadata only; apiVersion and kind are still the real ones
---@field drop? string|string[] paths left out of the cache; {} is none. Else the factory's; else "metadata.managedFields"
---@field keep? string|string[] the opposite, not together with drop; what names the object (as in list's fields) always stays
---What the cache holds instead of each object: the same table, changed, or another one; after drop and keep. It must not wait, may
---see the same object twice, and can't change apiVersion, kind and metadata's name, namespace, uid and resourceVersion. Where it
---fails, the log says why and the object is kept as it came, since a cache without it would say that there is none. It makes the
---informer this script's own (the same function gives the same informer). Else the factory's; false is none.
---@field transform? false|fun(object: perilune.object): perilune.object
---@field index? table<string, string|fun(object: perilune.object): string|string[]|nil> by name, to list by; see informer:add_index
---@field resync? number default of its handlers, see there; else the factory's
---@field page_size? integer objects in each page of the list (500)
---@field cache? "compressed"|"raw" "raw" takes several times the memory, and spares the packing ("compressed")
---@field optional? boolean nobody waits for it: where its kind is absent or forbidden, it goes on by itself later

---Reading the cache needs no request. get, list, keys and count before it has synced are told in the log, once. What this
---program wrote shows in them once the server has answered, before handlers are told of it.
---@class perilune.informer
local informer = {}

---@class perilune.list_options
---@field namespace? string this one only
---@field label_selector? string
---@field index? table<string, string|boolean|number> one of this script's indexes and the value to look for, { node = "n1" }
---Decode these paths only; apiVersion, kind and metadata's name, namespace, uid and resourceVersion always come.
---@field fields? string|string[]

---One object of the cache, as a fresh table: changes to it stay out of the cache. Nil when it is not there. The namespace may be
---left out where there can be only one: of a cluster-scoped kind, or of an informer that has a single namespace.
---@param namespace string?
---@param name string
---@return perilune.object? object
---@overload fun(self: perilune.informer, name: string): perilune.object?
---@overload fun(self: perilune.informer, reference: { name: string, namespace?: string }|perilune.object): perilune.object?
function informer:get(namespace, name) end

---Objects of the cache as fresh tables, in no particular order.
---@param options? perilune.list_options
---@return perilune.object[]
function informer:list(options) end

---@return string[] keys "namespace/name"; "name" for cluster-scoped kinds
function informer:keys() end
---@return integer count of objects in the cache
function informer:count() end
---@return boolean synced whether the first list is in the cache
function informer:has_synced() end
---How far the cache has come: "" before the first list. A table by namespace when the informer has several.
---@return string|table<string, string>
function informer:resource_version() end

---Adds indexes, before or after start; one that is added later is built over the cache before this returns. An object is filed
---under each text, number or boolean at the path, or under each string that the function returns. A function is called once for each
---object that comes or changes, and must not wait; where it fails, the log says why and the object is in no place of that index. A
---script's indexes are its own. Raises for a malformed path, and for a name that is taken by another path or function.
---@param indexes table<string, string|fun(object: perilune.object): string|string[]|nil> by name, { node = "spec.nodeName" }
function informer:add_index(indexes) end

---@class perilune.handlers
---@field add? fun(object: perilune.object, event: perilune.event) `event.initial` for what was there at the start
---@field update? fun(object: perilune.object, event: perilune.update_event) `event.old` is the state before
---@field delete? fun(object: perilune.object, event: perilune.event) with the last known state
---Tells of the objects for which it returns true (or any value but nil and false), and no others: one that begins to pass is an
---add, one that ceases is a delete with the object as it was told last. Events that merged are judged by the newest object, and a
---resync by the present one. It must not wait. An error in it is logged; what passed before then still passes, and what did not
---still does not.
---@field filter? fun(object: perilune.object): any
---@field fields? string|string[] decode these paths only, as for informer:list; also in `event.old` and for `filter`
---Each so many seconds (1 at least) update is called for each object of the cache. 0: never; nil: as the informer has it. It
---needs update, or a filter, which is asked again.
---@field resync? number
---@field every_event? boolean each event by itself; otherwise those of one object merge while the handler is busy

---@class perilune.event
---@field type "add"|"update"|"delete"
---@field initial boolean an add of what was there when the handler began
---@field resync boolean an update that comes from the cache: nothing has changed
---@field final_state_unknown boolean the delete itself was missed: the object is the last that was seen of it
---@field old? perilune.object of an update; decoded when it is read first

---@class perilune.update_event: perilune.event
---@field old perilune.object

---Registers functions, one at least, for the objects that come, change and go. They are called after the barrier, when all started
---informers of the factory have synced: one at a time and in order. They may wait. An error in one is logged and ends that call
---only. Raises for a malformed path, and when the factory has been shut down.
---@param handlers perilune.handlers
---@return perilune.registration
function informer:add_event_handler(handlers) end

---@class perilune.registration
local registration = {}

---@return boolean synced whether all initial adds have been handled
function registration:has_synced() end
---Ends the calls; one that runs goes on to its end. Harmless again.
function registration:remove() end

---An informer of the default factory, which the host starts. The same options, in any script, give the same cache. No handler
---runs before all that were made at top level, or in k8s.main before that first waits, have synced: the barrier. One that is made
---later starts at once. Raises for malformed selectors, paths and names.
---@param options perilune.informer_options
---@return perilune.informer
function k8s.informer(options) end

-- Factories: for scripts that want starting, waiting and ending in their own hands.

---Defaults of the factory's informers of one kind.
---@class perilune.kind_options
---@field label_selector? string
---@field field_selector? string
---@field drop? string|string[]
---@field resync? number
---@field transform? false|fun(object: perilune.object): perilune.object

---Defaults of the factory's informers. An informer's own option counts most, then that of its kind, then the factory's.
---@class perilune.factory_options
---@field namespace? string|string[]
---@field label_selector? string
---@field field_selector? string
---@field drop? string|string[]
---@field resync? number
---@field transform? false|fun(object: perilune.object): perilune.object
---@field per_kind? table<string, perilune.kind_options> by apiVersion/kind as the informer is asked for: "v1/Pod"

---@class perilune.factory
local factory = {}

---@class perilune.wait_options
---@field timeout? number nil: as long as it takes; 0: only what has synced by now

---@class perilune.wait_result
---@field synced boolean all started informers have
---@field err? string which are late and why, or that the factory has been shut down
---@field informers perilune.informer_report[] the started ones

---@class perilune.informer_report
---@field apiVersion string
---@field kind string
---@field namespace string "" for all, "a,b" for several
---@field synced boolean
---@field state string for people: "streaming", "listing page 3", "forbidden, next try in 4 s" …
---@field objects integer
---@field attempts integer failures since the last success
---@field status? integer HTTP status of the last one
---@field message string why it failed; "" when nothing is wrong

---An informer of this factory: made on the first call, shared after it. Raises after shutdown.
---@param options perilune.informer_options
---@return perilune.informer
function factory:informer(options) end

---Starts the informers that have not been started. Harmless again; nothing after shutdown. At a script's top level the host does
---it, when all scripts have loaded. Raises when no cluster is configured.
function factory:start() end

---Waits until all started informers have synced, or until the timeout, the factory's shutdown or the program's end.
---@param options? perilune.wait_options
---@return perilune.wait_result
function factory:wait_for_cache_sync(options) end

---Gives up the factory's informers and the handlers on them; informers that nobody else uses end. For good, harmless again.
function factory:shutdown() end

---A factory of its own. The host starts those that were made at a script's top level.
---@param options? perilune.factory_options
---@return perilune.factory
function k8s.factory(options) end

-- When functions run. Each may wait; an error in one is logged and ends that call only.

---Calls f before the barrier; what it registers before it first waits shares the barrier. Only at a script's top level.
---@param f fun()
function k8s.main(f) end

---Calls f once the barrier has opened, before handlers have their first events; at once when it is open already.
---@param f fun()
function k8s.on_synced(f) end

---@class perilune.every_options
---@field leader? boolean on the leader alone, with `--leader-elect`; its API calls fail (reason NotLeader) once the lease is lost

---Calls f after the barrier, again and again: the seconds count from the end of one call to the next.
---@param seconds number 0.001 at least
---@param f fun()
---@param options? perilune.every_options
function k8s.every(seconds, f, options) end

---Calls f when the program stops. It has until the end of `--grace-period`.
---@param f fun()
function k8s.on_shutdown(f) end

---Waits that long.
---@param seconds number
function k8s.sleep(seconds) end
---@return number seconds since 1970, with fractions
function k8s.now() end
---A time as objects have it, "2006-01-02T15:04:05Z", on the scale of k8s.now. Nil for a text that is no such time, and for nil.
---@param text string?
---@return number? seconds
function k8s.time(text) end

-- Controllers: a work queue of keys, and a function that brings the object of a key into its wanted state.

---@class perilune.controller_options
---@field name string a-z, 0-9, "-" and ".": in logs, metrics and field managers; once a host
---@field watch perilune.informer|perilune.watched the objects that are reconciled
---Objects that those own: their events bring the key of the owner of watch's group and kind, by its uid.
---@field owns? (perilune.informer|perilune.owned)[]
---By informer: which objects an event concerns; it is called with an update's old object too. It must not wait. Where it
---fails, the log says why, and the event brings no further key.
---@field map? table<perilune.informer, fun(object: perilune.object, event: perilune.event): perilune.reference|perilune.reference[]|nil>
---@field workers? integer so many reconciles at once (1), never two of one key
---@field timeout? number seconds of one reconcile (60); then it is cancelled, and has failed
---@field rate_limit? perilune.rate_limit
---Kept on each object, "example.com/name", put there before its first reconcile, so that `cleanup` runs before the object goes.
---Then reconcile is called only for objects that are there and are not being deleted. The informer of watch has no selector that an
---object can leave, no transform, and no drop or keep that leaves out metadata.finalizers or metadata.deletionTimestamp.
---@field finalizer? string
---Called for an object that is being deleted, until it has succeeded: it then loses the finalizer. `requeue_after`: not yet.
---@field cleanup? fun(object: perilune.object, context: perilune.context): perilune.result|nil, any
---@field leader? boolean with `--leader-elect`: on the leader alone
---An error raised, or a second result, is a failure, and the key comes back after a delay; a conflict is none, but the same. Of an
---object that is gone the key comes too.
---@field reconcile fun(request: perilune.reference, context: perilune.context): perilune.result|nil, any

---@class perilune.watched
---@field [1] perilune.informer
---Whether the event counts: a k8s.predicate, or a function that sees the whole object. It must not wait; where it fails, the event
---counts.
---@field when? perilune.one_predicate|fun(object: perilune.object, event: perilune.event): any

---@class perilune.owned : perilune.watched
---@field controller? boolean false: any owner, not only the one that is the object's controller

---@class perilune.rate_limit
---@field base? number seconds that a key waits after its first failure (0.005), doubled with each one
---@field max? number the longest such wait (1000)
---@field qps? number a bucket over all keys that failed; with burst
---@field burst? integer

---@class perilune.result
---@field requeue_after? number seconds after which the key comes back; the earliest that is asked for counts

---@class perilune.context
---@field attempt integer 1, and one more for each failure since the last success
---@field deadline number when the reconcile is cancelled, on k8s.now's scale
---@field log perilune.log k8s.log with the controller and the object as fields

---@param options perilune.controller_options
---@return perilune.controller
function k8s.controller(options) end

---@class perilune.controller
local controller = {}

---Brings a key, as an event does.
---@param reference perilune.reference|perilune.object apiVersion and kind are not looked at
---@param options? { after?: number } in seconds
function controller:enqueue(reference, options) end

---Raises an error after which the key is not tried again before something brings it.
---@param message any a text, or an err
function k8s.terminal(message) end

-- API calls. Each waits for the server, 60 s at most unless `timeout` says otherwise, and returns what it then has.

---Options of all writes.
---@class perilune.write_options
---@field dry_run? boolean checked and answered by the server, not stored
---@field field_validation? "Ignore"|"Warn"|"Strict" what the server does about unknown fields
---@field timeout? number of the call (60); 0: none

---@class perilune.apply_options: perilune.write_options
---Under which name the fields are owned: of the script, or of the controller whose reconcile this is, unless said.
---@field field_manager? string
---@field force? boolean takes over fields of other managers; true inside a reconcile, else false

---@class perilune.patch_options: perilune.write_options
---@field type? "merge"|"json"|"strategic" merge unless said

---@class perilune.delete_options: perilune.write_options
---@field propagation? "Background"|"Foreground"|"Orphan" what happens to the objects that it owns
---@field preconditions? { uid?: string, resourceVersion?: string } what must hold; otherwise the answer is Conflict
---@field grace_period? integer seconds that its processes get to end

---@class perilune.list_request
---@field apiVersion string
---@field kind string
---@field namespace? string when nil, that of `--namespace`; else all
---@field label_selector? string
---@field field_selector? string
---@field page_size? integer objects in each request, from 1 on (500)
---@field timeout? number of each request (60); 0: none

---Asks the server, not a cache. Waits.
---@param reference perilune.reference|perilune.object
---@return perilune.object object, perilune.err? err
function k8s.get(reference) end

---All objects, in as many pages as it takes. Waits. A list that expires between two pages is asked for again, in one.
---@param options perilune.list_request
---@return perilune.object[] objects, perilune.err? err
function k8s.list(options) end

---Waits. `metadata.generateName` may stand for a name.
---@param object perilune.object|{ apiVersion: string, kind: string, metadata: { generateName: string } }
---@param options? perilune.write_options
---@return perilune.object object, perilune.err? err
function k8s.create(object, options) end

---Replaces the whole object. Waits.
---@param object perilune.object with a resourceVersion, only if that is still the latest
---@param options? perilune.write_options
---@return perilune.object object, perilune.err? err
function k8s.update(object, options) end

---Waits. In a merge patch, k8s.null takes a field away.
---@param reference perilune.reference|perilune.object
---@param change table the patch; for type = "json" an array of operations
---@param options? perilune.patch_options
---@return perilune.object object, perilune.err? err
function k8s.patch(reference, change, options) end

---Server-side apply: makes the object, or sets these of its fields and takes away those that the same manager had set before and
---does not any more. Waits. A field that another manager set to another value is a Conflict, unless `force`.
---@param object perilune.object what is to be, no more; with a name
---@param options? perilune.apply_options
---@return perilune.object object, perilune.err? err
function k8s.apply(object, options) end

---As k8s.apply, and left out when it would change nothing: this process applied the same content before, and a synced cache has
---the object as the server answered then, in every field of the content (an array counts as one). So a drift is repaired, at the
---cost of no request where there is none; content that no answer shows, such as a Secret's stringData, is applied each time. Waits.
---Where it is left out, the result is the object as that cache holds it.
---@param object perilune.object
---@param options? perilune.apply_options
---@return perilune.object object, perilune.err? err
function k8s.ensure(object, options) end

---Gets the object, lets `change` change it, and updates it; all of that again where somebody else was faster, 10 times at most. No
---update when nothing changed. Waits, and `change` may wait too.
---@param reference perilune.reference|perilune.object
---@param change fun(object: perilune.object): boolean? returning false leaves the object as it is
---@param options? perilune.write_options timeout: of each request
---@return perilune.object object, perilune.err? err
function k8s.modify(reference, change, options) end

---Sets the number of replicas, through the scale subresource. Waits.
---@param reference perilune.reference|perilune.object
---@param replicas integer from 0 on
---@param options? perilune.write_options
---@return perilune.object scale, perilune.err? err
function k8s.scale(reference, replicas, options) end

---@class perilune.event_options
---@field type? "Normal"|"Warning" Normal unless said
---@field reason string why, as one word in CamelCase; 128 bytes at most
---@field action? string what was done or failed, the same way; the reason unless said
---@field message? string for people; what is beyond 1024 bytes is cut off
---@field related? perilune.reference|perilune.object a second object

---Tells people what was done to an object, as an Event, for `kubectl describe`, which finds it by the object's uid: give the object,
---or a reference to one that is in a cache. Waits where something is sent. Events that differ in nothing but the message become a series,
---whose count is sent with the second, each half an hour, and 6 minutes after the last. For one object a script, or a controller of
---it, sends 25 events at once, then one in 300 s. What is not sent now is returned as it is known here.
---@param object perilune.object|perilune.reference
---@param options perilune.event_options
---@return table event, perilune.err? err
function k8s.event(object, options) end

---Waits for the answer, not for the object to be gone.
---@param reference perilune.reference|perilune.object
---@param options? perilune.delete_options
---@return table answer, perilune.err? err
function k8s.delete(reference, options) end

---The status subresource: whatever else the object or patch holds is left out.
---@class perilune.status
k8s.status = {}

---As k8s.update. Waits.
---@param object perilune.object
---@param options? perilune.write_options
---@return perilune.object object, perilune.err? err
function k8s.status.update(object, options) end

---As k8s.patch. Waits.
---@param reference perilune.reference|perilune.object
---@param change table { status = { ... } }
---@param options? perilune.patch_options
---@return perilune.object object, perilune.err? err
function k8s.status.patch(reference, change, options) end

---As k8s.apply. Waits.
---@param object perilune.object with a status
---@param options? perilune.apply_options
---@return perilune.object object, perilune.err? err
function k8s.status.apply(object, options) end

-- Other servers.

---@class perilune.http_request
---@field url string http or https
---@field method? string GET unless said
---@field headers? table<string, string|string[]> not those that frame the request, such as Content-Length
---@field body? string 16 MiB at most
---@field timeout? number of the whole of it (30); 0: none

---@class perilune.http_answer
---@field status integer
---@field headers table<string, string> names in lower case; several of one name joined with ", "; 1000 lines and 64 KiB at most
---@field body string 16 MiB at most

---@class perilune.http
k8s.http = {}

---Asks a server that is no part of the cluster: without the cluster's credentials, trusting the system's authorities, through no
---proxy, whatever the environment says. `--dry-run` does not hold it back. Waits. Any status is an answer; redirects are not followed.
---@param options perilune.http_request
---@return perilune.http_answer answer, perilune.err? err without a code
function k8s.http.request(options) end

-- Rights.

---@class perilune.rule
---@field apiGroups string|string[] "" is the group of "v1"
---@field resources string|string[] "pods", "pods/status"
---@field verbs string|string[]

---Declares rights that can't be seen from what the script registers, such as those for its API calls. Nothing is asked of the server:
---`perilune check` prints them.
---@param rules perilune.rule[]
function k8s.needs(rules) end

-- Metrics of a script's own, on the page /metrics.

---@class perilune.metric_options
---@field name string not one that begins as the program's own do: perilune_, process_, workqueue_, controller_runtime_, rest_client_,
--- leader_election_
---@field help string a line for people
---@field labels? string|string[] names, 7 at most, beside the label `script` that each has
---@class perilune.histogram_options: perilune.metric_options
---@field buckets? number[] their upper bounds, rising, 50 at most (0.005 to 10, as Prometheus's clients have them)

---Each may be asked for at any time; the same again, also in another script, is one family. It raises where that has another type,
---other labels or other buckets. A script has 100 metrics at most, and a metric 1000 series: further ones are not counted, which the
---log says. They go with the script.
---@class perilune.metric
k8s.metric = {}

---@class perilune.counter
local counter = {}
---counter:inc(), counter:inc(2), counter:inc { result = "ok" }, counter:inc(2, { result = "ok" }). Each of its labels has a value.
---@param n? number from 0 on (1)
---@param labels? table<string, string|number|boolean>
---@overload fun(self: perilune.counter, labels: table<string, string|number|boolean>)
function counter:inc(n, labels) end

---@class perilune.gauge
local gauge = {}
---As of a counter, but n may be negative.
---@param n? number
---@param labels? table<string, string|number|boolean>
---@overload fun(self: perilune.gauge, labels: table<string, string|number|boolean>)
function gauge:inc(n, labels) end
---@param value number
---@param labels? table<string, string|number|boolean>
function gauge:set(value, labels) end

---@class perilune.histogram
local histogram = {}
---@param value number
---@param labels? table<string, string|number|boolean>
function histogram:observe(value, labels) end

---@param options perilune.metric_options
---@return perilune.counter
function k8s.metric.counter(options) end
---@param options perilune.metric_options
---@return perilune.gauge
function k8s.metric.gauge(options) end
---@param options perilune.histogram_options
---@return perilune.histogram
function k8s.metric.histogram(options) end

-- Objects, without a server.

---What lies at the path; the default where that is absent or null, or where something on the way there is, or is no table. Nothing is
---copied. [*] is in no path here. Raises for a malformed path.
---@param object any
---@param path string
---@param default? any
---@return any value
function k8s.path(object, path, default) end

---Whether two values mean the same as JSON, however deep. null equals null alone: an absent member and one that is null differ, and
---so do [] and {}. An int64_t equals the same number, quantities equal the same amount. Raises for tables that contain themselves.
---@param a any
---@param b any
---@return boolean equal
function k8s.equal(a, b) end

---An amount as Kubernetes writes it: exact, compared with ==, <, <= and the like, added and subtracted among its kind, multiplied by
---numbers. tostring is Kubernetes's canonical form: the largest suffix that leaves a whole number, binary ones of 1024 and more
---staying binary; a result has the format of the left one. What is finer than a nano is rounded away from zero. In objects that are
---written it stands as that text. Misuse in arithmetic, and a result beyond 10^36, raise.
---@class perilune.quantity
---@operator add(perilune.quantity): perilune.quantity
---@operator sub(perilune.quantity): perilune.quantity
---@operator mul(number): perilune.quantity
local quantity = {}

---@return number number the nearest double: 1.5 for "1500m"
function quantity:number() end

---Reads "1.5Gi", "100m", "1e3", a number or an int64_t; a quantity is returned as it is. What is none gives nil and an err with
---reason Invalid.
---@param value any
---@return perilune.quantity quantity, perilune.err? err
function k8s.quantity(value) end

---One of status.conditions. What else it holds is kept.
---@class perilune.condition
---@field type string "Ready"
---@field status "True"|"False"|"Unknown"
---@field reason? string one word, "AsExpected"
---@field message? string "" unless given
---@field observedGeneration? integer metadata.generation unless given, which alone is no change of a condition that has none
---@field lastTransitionTime? string "2006-01-02T15:04:05Z": now, unless given, where the status changes
---@field [string] any

---status.conditions of an object that the script has in hand; nothing is sent.
---@class perilune.conditions
k8s.conditions = {}

---Puts a copy of the condition into the list, in the place of the one with its type, else at the end. Whether anything changed.
---@param object table
---@param condition perilune.condition
---@return boolean changed
function k8s.conditions.set(object, condition) end

---@param object table
---@param kind string its type
---@return perilune.condition? condition the one in the object
function k8s.conditions.get(object, kind) end

---@param object table
---@param kind string its type
---@return boolean is_true whether there is one and its status is "True"
function k8s.conditions.is_true(object, kind) end

---Which events of a source count. Called with an object and its event, it says whether that does. Adds, deletes, an update to another
---uid and one that sets deletionTimestamp always do.
---@class perilune.one_predicate
---@field fields? string|string[] paths that test looks at; nil: any
---@field test fun(object: perilune.object, event: perilune.event): boolean

---@class perilune.predicate
---@field generation_changed perilune.one_predicate the spec changed, for most kinds; passes where the kind has no generation
---@field label_changed perilune.one_predicate
---@field annotation_changed perilune.one_predicate
k8s.predicate = {}

---Combinations of predicates and of plain functions with the same arguments. Where generation_changed has nothing to go by, the
---others decide.
---@param ... perilune.one_predicate|fun(object: perilune.object, event: perilune.event): any
---@return perilune.one_predicate
function k8s.predicate.all(...) end
---@param ... perilune.one_predicate|fun(object: perilune.object, event: perilune.event): any
---@return perilune.one_predicate
function k8s.predicate.any(...) end
---@param ... perilune.one_predicate|fun(object: perilune.object, event: perilune.event): any
---@return perilune.one_predicate
function k8s.predicate.none(...) end

---@class perilune.owner_options
---@field controller? boolean false: an owner, but not the one that controls it
---@field block_owner_deletion? boolean false: a deletion in the foreground of the owner does not wait for the object

---Makes owner the owner of object, and so what the garbage collector deletes it with: writes an ownerReference into object, which
---it returns. Asks no server. Raises when they are in two namespaces, when the owner has a namespace and the object has none,
---when the owner has no uid (only what comes from the server has), and when another owner controls the object already.
---@param object perilune.object what is to be sent; changed
---@param owner perilune.object
---@param options? perilune.owner_options
---@return perilune.object object the same table
function k8s.set_owner(object, owner, options) end

---A line each in the program's log, with the script's name. At most 16 fields, their names not time, level, msg or script; values
---are written with tostring.
---@class perilune.log
---@field debug fun(message: string, fields?: table<string, any>)
---@field info fun(message: string, fields?: table<string, any>)
---@field warn fun(message: string, fields?: table<string, any>)
---@field error fun(message: string, fields?: table<string, any>)

---Marks a table as a JSON array, so that it is [] when empty.
---@param items table
---@return table items the same table
function k8s.array(items) end

---Marks a table as a JSON object: {} when empty, as a fresh table is anyway.
---@param fields table
---@return table fields the same table
function k8s.object(fields) end

---@class perilune.json
---What JSON does not have raises: functions, NaN, holes in arrays, names and numbers as keys of one table, bytes that are no
---UTF-8, tables that contain themselves.
---@field encode fun(value: any): string
---Malformed text gives nil and what is wrong where.
---@field decode fun(text: string): any, string?

---@class perilune.yaml
---Raises as json.encode does.
---@field encode fun(value: any): string
---The one document in the text, nil when it has none. Malformed text, and a second document, give nil and what is wrong.
---@field decode fun(text: string): any, string?
---All documents, in an array.
---@field decode_all fun(text: string): any[]?, string?

return k8s
