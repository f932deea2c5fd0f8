-- cache_units: the C functions of core/cache, for unit specs; beside them what makes objects and stores short to write.
--
--   units.object { name = "a", namespace = "shop", uid = "u", version = 5 }   counted; lives until units.live()
--   units.key(object), units.version(object)
--   units.informer()          an idle informer with a loop of its own; informer.pointer, informer.loop, informer.free()
local c = require "support.c"
local cjson = require "cjson"
local files = require "support.files"
local ffi = c.ffi

c.cdef [[
  struct object;
  struct object *object_new(struct json_slice bytes, struct err *err);
  struct object *object_ref(struct object *object);
  void object_unref(struct object *object);
  struct json_slice object_open(const struct object *object, struct buf *scratch);
  const char *object_namespace(const struct object *object, size_t *length);
  const char *object_name(const struct object *object);
  const char *object_uid(const struct object *object, char *room);
  const char *object_version(const struct object *object);
  const char *object_key(const struct object *object, size_t *length);
  size_t object_length(const struct object *object);
  size_t object_held(const struct object *object);
  uint32_t object_labels(const struct object *object);
  bool object_is_ending(const struct object *object);
  uint32_t labels_take(struct json_slice labels, struct json_slice key);
  void labels_give(uint32_t number);
  struct json_slice labels_bytes(uint32_t number);
  uint32_t labels_end(void);
  size_t labels_held(void);
  void labels_check(void);
  struct selector;
  struct selector *selector_new(const char *text, struct err *err);
  void selector_free(struct selector *selector);
  bool selector_matches(const struct selector *selector, struct json_slice labels);
  struct selection;
  struct selection *selection_new(const char *selector, struct err *err);
  void selection_free(struct selection *selection);
  bool selection_has(struct selection *selection, const struct object *object);
  struct dictionary;
  struct dictionary *dictionary_new(int kind, const char *samples, const size_t *lengths, size_t count);
  void dictionary_unref(struct dictionary *dictionary);
  void dictionary_rest(struct dictionary *dictionary);
  void object_pack(struct object *object, struct dictionary *dictionary, struct buf scratch[2]);
  bool object_is_packed(const struct object *object, const struct dictionary *dictionary);
  bool object_same_content(const struct object *a, const struct object *b);
  int object_version_compare(const char *a, const char *b, bool *comparable);

  struct store;
  typedef void (*store_emit_fn)(void *emit_data, const char *value, size_t length);
  struct store_index_fn {
    void (*values)(void *data, struct object *object, store_emit_fn emit, void *emit_data);
    void (*free)(void *data);
    void *data;
    const void *owner;
  };
  typedef bool (*store_visit_fn)(void *data, struct object *object);
  struct store *store_new(void);
  void store_free(struct store *store);
  bool store_free_some(struct store *store, double until);
  bool store_file_index(struct store *store, const char *name, double until);
  struct object *store_get(const struct store *store, const char *namespace, const char *name);
  struct object *store_get_key(const struct store *store, const char *key, size_t length);
  struct object *store_put(struct store *store, struct object *object);
  struct object *store_remove(struct store *store, const char *key, size_t length);
  size_t store_count(const struct store *store);
  size_t store_bytes(const struct store *store);
  struct store_index_fn store_path_index(struct json_path *path);
  int store_add_index(struct store *store, const char *name, struct store_index_fn fn);
  void store_remove_index(struct store *store, const char *name);
  bool store_has_index(const struct store *store, const char *name);
  void store_each(const struct store *store, const char *namespace, store_visit_fn on_object, void *data);
  void store_each_index(const struct store *store, const char *index, const char *value, size_t length,
                        store_visit_fn on_object, void *data);
  struct store_cursor { uint32_t next; bool in_space; };
  struct store_cursor store_begin(const struct store *store, const char *namespace);
  struct object *store_next(const struct store *store, struct store_cursor *cursor, bool *missed);
  struct object *store_put_unfiled(struct store *store, struct object *object);
  bool store_file(struct store *store, double until);
  void store_check(const struct store *store);

  struct cache_list { struct cache_list *prev, *next; };
  struct delta {
    struct cache_list node;
    int type; /* 0 PUT, 1 DELETE, 2 REPLACE, 3 BOOKMARK */
    struct object *object;
    struct object **objects;
    size_t count;
    char *namespace;
    bool truth;
    double asked_at;
    char *version;
    size_t scope;
  };
  struct queue { struct cache_list deltas; size_t count; };
  void queue_init(struct queue *queue);
  void queue_fini(struct queue *queue);
  void queue_push(struct queue *queue, struct delta *delta);
  struct delta *queue_pop(struct queue *queue);
  struct delta *delta_new(int type);
  void delta_free(struct delta *delta);
  char *alloc_string(const char *text);
  void *alloc_zero(size_t size);

  struct notification {
    int type; /* 0 ADD, 1 UPDATE, 2 DELETE */
    struct object *object, *old;
    bool initial, resync, final_state_unknown;
  };
  void notification_fini(struct notification *notification);
  typedef const char *(*keymap_key_fn)(const void *item, size_t *length);
  struct keymap_table { void **items; uint32_t *numbers, *hashes; size_t capacity; };
  struct keymap {
    struct keymap_table table, old;
    size_t emptied, count;
    keymap_key_fn key;
    const char *(*number_key)(const void *data, uint32_t number, size_t *length);
    const void *data;
  };
  void keymap_init(struct keymap *map, keymap_key_fn key);
  void keymap_fini(struct keymap *map);
  void *keymap_get(const struct keymap *map, const char *key, size_t length);
  void *keymap_put(struct keymap *map, void *item);
  void *keymap_remove(struct keymap *map, const char *key, size_t length);
  void *keymap_next(const struct keymap *map, size_t *cursor);
  void keymap_check(const struct keymap *map);
  struct overlay { struct store *store; struct keymap entries; struct cache_list ahead, passed; bool relisting; };
  void overlay_init(struct overlay *overlay, struct store *store);
  void overlay_fini(struct overlay *overlay);
  void overlay_put(struct overlay *overlay, struct object *object, bool shown);
  void overlay_remove(struct overlay *overlay, const char *key, size_t length, const char *uid, struct object *last);
  bool overlay_holds(const struct overlay *overlay, const char *key, size_t length);
  void overlay_check(const struct overlay *overlay);
  struct apply {
    struct store *store;
    struct overlay *overlay;
    void (*notify)(void *data, const struct notification *notification);
    void *data;
    unsigned long duplicates, stale;
    struct {
      int phase;
      size_t objects, bytes, next, kept;
      struct store_cursor cursor;
      struct object **before, **gone;
      size_t gone_count, gone_capacity, removed;
      bool lifted, recreated;
    } replace;
  };
  bool apply_delta(struct apply *apply, struct delta *delta, bool initial, double until);
  bool apply_is_torn(const struct apply *apply);
  void apply_mend(struct apply *apply, struct delta *delta);
  void apply_drop(struct apply *apply, const struct delta *delta);

  struct projection {
    struct json_path **drop;
    size_t drop_count;
    struct json_path **keep;
    size_t keep_count;
    struct json_path *metadata;
    bool metadata_only;
    bool leaves_meta;
    struct transform *transform;
  };
  int projection_init(struct projection *projection, const char *const *drop, size_t drop_count, const char *const *keep,
                      size_t keep_count, bool metadata_only, struct err *err);
  void projection_fini(struct projection *projection);
  int projection_apply(const struct projection *projection, const char *api_version, const char *kind,
                       const struct outline *item, struct buf *out, struct err *err);
  struct cache_resource { char *group, *version, *api_version, *kind, *plural; bool namespaced, watchable; };
  struct object *projection_object(const struct projection *projection, const struct cache_resource *resource,
                                   const struct outline *item, const struct json_meta *meta, struct buf *scratch,
                                   struct err *err);

  struct write {
    const struct cache_resource *resource;
    const char *method;
    const char *namespace, *name;
    struct json_slice answer;
  };
  struct write_result {
    int outcome; /* 0 NOTHING, 1 PUT, 2 GONE */
    bool whole;
    struct json_meta meta;
    struct buf key, uid;
  };
  void write_read(const struct write *write, struct write_result *out);
  void write_result_fini(struct write_result *result);

  struct loop; struct config; struct cluster; struct informer; struct listener;
  struct cache_config_options { const char *kubeconfig, *context, *namespace; };
  struct loop *loop_new(struct err *err);
  void loop_free(struct loop *loop);
  void loop_turn(struct loop *loop, double max_wait);
  struct config *config_load(const struct cache_config_options *options, struct err *err);
  struct cluster *cluster_new(struct loop *loop, struct config *config, struct err *err);
  void cluster_free(struct cluster *cluster);
  struct list { struct list *prev, *next; };
  struct informer_spec {
    const char *api_version, *kind, *resource;
    const char *const *namespaces;
    size_t namespace_count;
    const char *label_selector, *field_selector;
    const char *const *drop;
    size_t drop_count;
    bool drop_given;
    const char *const *keep;
    size_t keep_count;
    bool metadata_only;
    struct transform *transform;
    int page_size;
    bool raw;
    bool optional;
  };
  void informer_spec_key(const struct informer_spec *spec, struct buf *out);
  struct informer *informer_new(struct cluster *cluster, struct list *feeds, const struct informer_spec *spec, struct err *err);
  void informer_unref(struct informer *informer);
  struct store *informer_store(struct informer *informer);
  const char *informer_label(const struct informer *informer);

  struct listener_options {
    bool every_event;
    double resync;
    void (*on_ready)(void *data);
    void *data;
  };
  struct listener *listener_new(struct informer *informer, const struct listener_options *options);
  void listener_open(struct listener *listener);
  void listener_free(struct listener *listener);
  bool listener_pop(struct listener *listener, struct notification *out);
  void listener_done(struct listener *listener);
  bool listener_has_synced(const struct listener *listener);
  size_t listener_depth(const struct listener *listener);
  double listener_age(const struct listener *listener);
  void listener_notify(struct listener *listener, const struct notification *notification);

  struct filter;
  struct filter *filter_new(int (*test)(void *data, const struct object *object), void *data);
  void filter_free(struct filter *filter);
  bool filter_admit(struct filter *filter, struct notification *notification);
]]

if not pcall(function() return ffi.C.listener_new end) then
	for _, folder in ipairs { "net", "kube", "cache" } do
		c.library(folder)
	end
end

local units = setmetatable({}, { __index = c })

units.PUT, units.DELETED, units.REPLACE, units.BOOKMARK = 0, 1, 2, 3
units.types = { [0] = "add", "update", "delete" }
units.REFUSES, units.PASSES, units.FAILS = 0, 1, 2

-- Not left to the collector, which frees late what a spec then counts.
local made = {}

--- An object, which lives until units.live is called; or nil and the message.
function units.object_of(json)
	local err = c.err()
	local object = c.object_new(c.slice(json), err)
	if object == nil then
		return nil, c.message(err)
	end
	made[#made + 1] = object
	return object
end

--- Keeps a borrowed object alive as those that were made here are.
function units.hold(object)
	made[#made + 1] = c.object_ref(object)
	return object
end

function units.object(fields)
	return assert(units.object_of(cjson.encode {
		apiVersion = "v1", kind = "ConfigMap", data = fields.data,
		metadata = { name = fields.name, namespace = fields.namespace, uid = fields.uid or "uid-" .. fields.name,
			resourceVersion = fields.version and tostring(fields.version), labels = fields.labels },
	}))
end

function units.key(object)
	local length = ffi.new "size_t[1]"
	local key = c.object_key(object, length)
	return ffi.string(key, length[0])
end

function units.namespace(object)
	local length = ffi.new "size_t[1]"
	local namespace = c.object_namespace(object, length)
	return ffi.string(namespace, length[0])
end

function units.uid(object)
	return ffi.string(c.object_uid(object, ffi.new "char[37]"))
end

function units.version(object)
	return ffi.string(c.object_version(object))
end

--- Key and version of each object that the store visits, in order. also: called with each.
function units.visit(each, also)
	local found = {}
	local callback = ffi.cast("store_visit_fn", function(_, object)
		if also then
			also(object)
		end
		found[#found + 1] = units.key(object) .. " " .. units.version(object)
		return true
	end)
	each(callback)
	callback:free()
	return found
end

function units.put_delta(object)
	local delta = c.delta_new(units.PUT)
	delta.object = c.object_ref(object)
	return delta
end

function units.delete_delta(object)
	local delta = c.delta_new(units.DELETED)
	delta.object = c.object_ref(object)
	return delta
end

function units.bookmark_delta(version)
	local delta = c.delta_new(units.BOOKMARK)
	delta.version = c.alloc_string(tostring(version))
	return delta
end

--- more: { truth =, version =, asked_at = }.
function units.replace_delta(objects, namespace, more)
	more = more or {}
	local delta = c.delta_new(units.REPLACE)
	delta.objects = ffi.cast("struct object **", c.alloc_zero(8 * #objects))
	for i, object in ipairs(objects) do
		delta.objects[i - 1] = c.object_ref(object)
	end
	delta.count = #objects
	delta.namespace = c.alloc_string(namespace)
	delta.truth = more.truth or false
	delta.version = more.version and c.alloc_string(tostring(more.version)) or nil
	delta.asked_at = more.asked_at or 0
	return delta
end

function units.informer()
	local err = c.err()
	local path = files.write(files.folder() .. "/config", cjson.encode {
		["apiVersion"] = "v1", kind = "Config", ["current-context"] = "x",
		clusters = { { name = "c", cluster = { server = "http://127.0.0.1:1" } } }, users = { { name = "u" } },
		contexts = { { name = "x", context = { cluster = "c", user = "u" } } },
	})
	local loop = c.loop_new(err)
	assert(loop ~= nil, c.message(err))
	local config = c.config_load(ffi.new("struct cache_config_options", { kubeconfig = path }), err)
	assert(config ~= nil, c.message(err))
	local cluster = c.cluster_new(loop, config, err)
	assert(cluster ~= nil, c.message(err))
	local feeds = ffi.new "struct list"
	feeds.prev, feeds.next = feeds, feeds
	local spec = ffi.new("struct informer_spec", { api_version = "v1", kind = "ConfigMap" })
	local pointer = c.informer_new(cluster, feeds, spec, err)
	assert(pointer ~= nil, c.message(err))
	return {
		pointer = pointer, loop = loop, feeds = feeds,
		free = function()
			c.informer_unref(pointer)
			c.cluster_free(cluster)
			c.loop_free(loop)
		end,
	}
end

--- Lets go of what was made here; then how many objects are left alive.
function units.live()
	for _, object in ipairs(made) do
		c.object_unref(object)
	end
	made = {}
	collectgarbage()
	collectgarbage()
	return tonumber(c.alloc_live(nil))
end

return units
