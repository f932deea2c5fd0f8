-- c: the C functions of core/base and core/json, for specs.
--
-- `c.buf_init(...)` calls C. Inside the host the symbols are in the process; elsewhere the shared libraries of a debug or
-- asan build are loaded from $PERILUNE_BUILD (build/debug). Beside C's own names it has a few conveniences.

local ffi = require "ffi"

-- A callback out of a compiled call would end the process.
jit.off()

local c = { ffi = ffi }

-- Declares C names. Each spec file loads this module anew, so what is declared already is fine.
function c.cdef(text)
  local ok, problem = pcall(ffi.cdef, text)
  assert(ok or tostring(problem):find("attempt to redefine", 1, true), problem)
end

c.cdef [[
  typedef void *(*alloc_fn)(void *data, void *memory, size_t size);
  struct alloc_type { const char *name; long live; struct alloc_type *next; };
  void *alloc_copy(const void *bytes, size_t length);
  void alloc_free(void *memory);
  void *alloc_object(struct alloc_type *type, size_t size);
  void alloc_object_free(struct alloc_type *type, void *object);
  long alloc_live(void *out);
  void alloc_replace(alloc_fn fn, void *data);
  void *realloc(void *memory, size_t size);
  void free(void *memory);
]]

c.cdef [[
  struct buf { char *data; size_t length; size_t capacity; size_t limit; };
  void buf_init(struct buf *buf, size_t limit);
  void buf_fini(struct buf *buf);
  void buf_reset(struct buf *buf);
  int buf_append(struct buf *buf, const void *bytes, size_t length);
  int buf_append_char(struct buf *buf, char c);
  int buf_append_format(struct buf *buf, const char *format, ...);
  int buf_append_json_string(struct buf *buf, const char *bytes, size_t length);
  void buf_consume(struct buf *buf, size_t length);
  const char *buf_text(const struct buf *buf);
  char *buf_take(struct buf *buf);
]]

c.cdef [[
  typedef double (*clock_fn)(void *data);
  double clock_now(void);
  double clock_wall(void);
  char *clock_format(double wall, char *out, size_t size);
  char *clock_format_micro(double wall, char *out, size_t size);
  void clock_replace(clock_fn now, clock_fn wall, void *data);
  double clock_duration(const char *text);
  double clock_parse(const char *text);
]]

c.cdef [[
  struct err {
    int code; double retry_after; bool retryable; bool outcome_unknown; char reason[40]; char message[1024];
  };
  void err_clear(struct err *err);
  int err_set(struct err *err, const char *reason, const char *format, ...);
  int err_prefix(struct err *err, const char *format, ...);
]]

c.cdef [[
  struct heap_node { double at; size_t place; };
  struct heap { struct heap_node **nodes; size_t count, capacity; };
  void heap_init(struct heap *heap);
  void heap_fini(struct heap *heap);
  void heap_push(struct heap *heap, struct heap_node *node, double at);
  void heap_remove(struct heap *heap, struct heap_node *node);
  struct heap_node *heap_first(const struct heap *heap);
]]

c.cdef [[
  struct log_field { const char *key; const char *value; };
  void log_set_format(int format);
  void log_set_level(int level);
  bool log_enabled(int level);
  void log_write(int level, const struct log_field *fields, const char *format, ...);
  int log_parse_level(const char *text, int *level);
  int log_parse_format(const char *text, int *format);
  void log_replace(void (*fn)(void *data, const char *line, size_t length), void *data);
]]

c.cdef [[
  struct strmap_entry { char *key; size_t length; uint64_t hash; void *value; };
  struct strmap { struct strmap_entry *entries; size_t count, capacity; };
  void strmap_init(struct strmap *map);
  void strmap_fini(struct strmap *map);
  void *strmap_get(const struct strmap *map, const char *key, size_t length);
  void *strmap_put(struct strmap *map, const char *key, size_t length, void *value);
  void *strmap_remove(struct strmap *map, const char *key, size_t length);
  bool strmap_next(const struct strmap *map, size_t *cursor, const char **key, size_t *length, void **value);
  uint64_t strmap_hash(const char *bytes, size_t length);
]]

c.cdef [[
  struct json_slice { const char *data; size_t length; };
  struct json_iter { const char *at, *end; struct json_slice key; struct json_slice value; };
  struct json_path;
  struct json_meta {
    struct json_slice api_version, kind, metadata;
    struct json_slice name, namespace, uid, resource_version, generation, labels, deletion_timestamp, annotations;
  };
  int json_validate(const char *bytes, size_t length, struct err *err);
  int json_type(struct json_slice value);
  struct json_iter json_iterate(struct json_slice container);
  bool json_next(struct json_iter *iter);
  bool json_string_equals(struct json_slice string, const char *text);
  int json_string_append(struct json_slice string, struct buf *out);
  int json_integer(struct json_slice value, int64_t *out);
  struct json_slice json_get(struct json_slice object, const char *key);
  struct json_path *json_path_new(const char *text, struct err *err);
  void json_path_free(struct json_path *path);
  bool json_path_is_keys(const struct json_path *path);
  struct json_slice json_find(struct json_slice object, const struct json_path *path);
  void json_find_all(struct json_slice object, const struct json_path *path,
                     void (*on_value)(void *data, struct json_slice value), void *data);
  int json_meta(struct json_slice object, struct json_meta *out);
]]

-- The ffi makes no callbacks that take a struct. A json_slice is passed in two registers, as its two members are: the
-- callbacks below are declared so.
c.cdef [[
  struct split;
  struct outline {
    struct json_slice bytes; const char *base; const struct outline_note *notes; unsigned first, last;
  };
  struct outline_iter { struct json_slice key; struct outline value, of; struct json_iter walk; };
  struct outline outline_of(struct json_slice value);
  struct outline_iter outline_iterate(const struct outline *outline);
  bool outline_next(struct outline_iter *iter);
  int outline_meta(const struct outline *object, struct json_meta *out);
  int outline_drop(const struct outline *object, struct json_path *const *paths, size_t count, struct buf *out);
  int outline_keep(const struct outline *object, struct json_path *const *paths, size_t count, struct buf *out);
  typedef int (*split_fn)(void *data, const struct outline *item, struct err *err);
  struct split *split_new(size_t item_limit, split_fn on_item, void *data);
  void split_free(struct split *split);
  int split_feed(struct split *split, const char *bytes, size_t length, struct err *err);
  int split_finish(struct split *split, struct err *err);
  struct json_slice split_rest(const struct split *split);
  size_t split_bytes(const struct split *split);
  int yaml_to_json(const char *bytes, size_t length,
                   int (*on_document)(void *data, const char *json, size_t length, struct err *err), void *data,
                   struct err *err);
  int yaml_from_json(struct json_slice json, struct buf *out, struct err *err);
  size_t number_format(double value, char *out);
]]

local function in_process()
  return pcall(function()
    return ffi.C.buf_init
  end)
end

-- Loads the library of one folder of core/; its names are then in c.
function c.library(folder)
  local build = os.getenv "PERILUNE_BUILD" or "build/debug"
  c[folder .. "_library"] = ffi.load(("%s/libperilune_%s.so"):format(build, folder), true)
end

if not in_process() then
  c.library "base"
  c.library "json"
end

-- A buf that frees itself.
function c.buf(limit)
  local buf = ffi.new "struct buf"
  ffi.C.buf_init(buf, limit or 0)
  return ffi.gc(buf, ffi.C.buf_fini)
end

-- What a buf or slice holds; nil for a slice of nothing.
function c.text(bytes)
  if bytes.data ~= nil then
    return ffi.string(bytes.data, bytes.length)
  end
end

-- A copy of exactly the bytes of text, so that the address sanitizer sees a read behind them. Keep it as long as its slices.
function c.copy(text)
  return ffi.gc(ffi.cast("const char *", ffi.C.alloc_copy(text, #text)), function(memory)
    ffi.C.alloc_free(ffi.cast("void *", memory))
  end)
end

local kept = setmetatable({}, { __mode = "k" })

-- A slice of a copy of text, which lives as long as it.
function c.slice(text)
  local memory = c.copy(text)
  local slice = ffi.new("struct json_slice", memory, #text)
  kept[slice] = memory
  return slice
end

function c.err()
  local err = ffi.new "struct err"
  ffi.C.err_clear(err)
  return err
end

function c.message(err)
  return ffi.string(err.message)
end

c.seed = require "support.seed"

return setmetatable(c, { __index = ffi.C })
