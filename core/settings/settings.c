/* settings.c -- the settings: one table, read from the environment once; a context's options override
 * the environment, and QUERN_OVERRIDE the options. */
#include "config.h"
#include "core.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- parsing one value ---------------------------------------------------------------------- */

typedef qn_status parse_fn(qn__settings *s, const char *key, const char *text);

static qn_status one_of(const char *key, const char *text, const char *const *word, int n, uint32_t *out)
{
  qn_text known = {0};
  for (int i = 0; i < n; i++)
    if (!strcmp(text, word[i])) {
      *out = (uint32_t)i;
      return QN_OK;
    }
  for (int i = 0; i < n; i++) qn__text_add(&known, "%s%s", i ? ", " : "", word[i]);
  qn_status status = qn__fail(QN_BAD_ARGUMENT, "%s: \"%s\" is not known; known are %s", key, text, known.s ? known.s : "");
  qn__free(known.s);
  return status;
}

static qn_status whole(const char *key, const char *text, int64_t least, int64_t most, int64_t *out)
{
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (errno || end == text || *end || v < least || v > most)
    return qn__fail(QN_BAD_ARGUMENT, "%s: \"%s\" is not a whole number from %lld to %lld", key, text,
                    (long long)least, (long long)most);
  *out = v;
  return QN_OK;
}

static qn_status parse_text(qn__settings *s, const char *key, const char *text)
{
  (void)s;
  if (!*text) return qn__fail(QN_BAD_ARGUMENT, "%s: is empty; unset it instead", key);
  return QN_OK;
}

static qn_status parse_device(qn__settings *s, const char *key, const char *text)
{
  int64_t v;
  qn_status status = whole(key, text, 0, 1023, &v);
  if (!status) s->device = (int32_t)v;
  return status;
}

static qn_status parse_threads(qn__settings *s, const char *key, const char *text)
{
  int64_t v = 0;
  qn_status status = *text ? whole(key, text, 1, 4096, &v) : QN_OK;
  if (!status) s->threads = (int32_t)v;
  return status;
}

static qn_status parse_lanes(qn__settings *s, const char *key, const char *text)
{
  int64_t v = 0;
  qn_status status = whole(key, text, 1, QN__LANES, &v);
  if (!status) s->lanes = (int32_t)v;
  return status;
}

static qn_status parse_tune(qn__settings *s, const char *key, const char *text)
{
  static const char *const word[] = { "off", "cached", "measure" };
  return one_of(key, text, word, 3, &s->tune);
}

static qn_status parse_deterministic(qn__settings *s, const char *key, const char *text)
{
  static const char *const word[] = { "0", "1", "batch", "portable" };
  return one_of(key, text, word, 4, &s->determinism);
}

static qn_status parse_math(qn__settings *s, const char *key, const char *text)
{
  static const char *const word[] = { "strict", "f32", "tf32", "fast" };
  return one_of(key, text, word, 4, &s->math);
}

static qn_status parse_fallback(qn__settings *s, const char *key, const char *text)
{
  static const char *const word[] = { "none", "host" };
  uint32_t v = 0;
  qn_status status = one_of(key, text, word, 2, &v);
  if (!status) s->fallback = v == 1;
  return status;
}

/* A level, `plan`, or both joined by a comma. */
static qn_status parse_log(qn__settings *s, const char *key, const char *text)
{
  static const char *const word[] = { "error", "warn", "info", "debug", "plan" };
  char *copy = qn__strdup(text), *rest = copy, *part;
  qn_status status = copy ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory for option %s", key);
  uint32_t level = QN_LOG_WARN, plans = 0, found = 0;
  while (!status && (part = strsep(&rest, ",")) && !(status = one_of(key, part, word, 5, &found)))
    if (found == QN_LOG_PLAN) plans = QN__LOG_PLANS;
    else level = found;
  qn__free(copy);
  if (!status) s->log = level | plans;
  return status;
}

static qn_status parse_bytes(qn__settings *s, const char *key, const char *text)
{
  static const char unit[] = "kmgt";
  char *end;
  errno = 0;
  s->workspace_limit = UINT64_MAX;
  if (!*text) return QN_OK;
  unsigned long long v = strtoull(text, &end, 10);
  const char *u = *end ? strchr(unit, tolower((unsigned char)*end)) : NULL;
  const int shift = u ? 10 * (int)(u - unit + 1) : 0;
  if (u) end++;
  if (u && (*end == 'i' || *end == 'I')) end++;
  if (*end == 'b' || *end == 'B') end++;
  if (errno || *text < '0' || *text > '9' || *end || v > UINT64_MAX >> shift)
    return qn__fail(QN_BAD_ARGUMENT, "%s: \"%s\" is not a number of bytes, such as 1048576, 64M, 16MiB or 2g (powers of 1024)", key, text);
  s->workspace_limit = (uint64_t)v << shift;
  return QN_OK;
}

static uint32_t anchor_named(const char *name, size_t len)
{
  char word[64];
  if (len >= sizeof word) return 0;
  memcpy(word, name, len);
  word[len] = 0;
  const qn_op_info *op = qn_op_named(word);
  if (op) return op->kind;
  for (int i = 0; (op = qn_op_at(i)); i++)
    if (!strcmp(word, qn_family_name(op->family))) return op->family | QN_ANCHOR_FAMILY;
  return 0;
}

static char *cut(const char *from, size_t len)
{
  char *s = qn__alloc(len + 1);
  if (s) memcpy(s, from, len);
  return s;
}

static void free_pins(qn__settings *s)
{
  for (int i = 0; i < s->n_pins; i++) {
    qn__free(s->pin[i].backend);
    qn__free(s->pin[i].engine);
    qn__free(s->pin[i].variant);
  }
  qn__free(s->pin);
  s->pin = NULL;
  s->n_pins = 0;
  s->any_engine = false;
}

/* op=[backend/]engine[:variant],...[,any] */
static qn_status parse_engine(qn__settings *s, const char *key, const char *text)
{
  free_pins(s);
  for (const char *p = text; *p;) {
    size_t len = strcspn(p, ",");
    const char *eq = memchr(p, '=', len), *next = p[len] ? p + len + 1 : p + len;
    if (len == 3 && !strncmp(p, "any", 3) && !*next) {
      s->any_engine = true;
      break;
    }
    uint32_t op = eq ? anchor_named(p, (size_t)(eq - p)) : 0;
    if (!op)
      return qn__fail(QN_BAD_ARGUMENT, "%s: \"%.*s\" does not begin with an op and \"=\"; wanted: OP=[BACKEND/]ENGINE[:VARIANT], "
                      "joined by commas, such as conv_forward=direct", key, (int)len, p);
    const char *engine = eq + 1, *end = p + len;
    const char *slash = memchr(engine, '/', (size_t)(end - engine));
    const char *name = slash ? slash + 1 : engine, *colon = memchr(name, ':', (size_t)(end - name));
    if (name == (colon ? colon : end))
      return qn__fail(QN_BAD_ARGUMENT, "%s: \"%.*s\" names no engine; wanted: OP=[BACKEND/]ENGINE[:VARIANT]", key, (int)len, p);
    qn__pin *grown = qn__realloc(s->pin, (size_t)s->n_pins * sizeof *grown, (size_t)(s->n_pins + 1) * sizeof *grown);
    if (!grown) return qn__fail(QN_NO_MEMORY, "%s: no memory for its list", key);
    s->pin = grown;
    qn__pin *pin = &s->pin[s->n_pins++];
    pin->op = op;
    pin->backend = slash ? cut(engine, (size_t)(slash - engine)) : NULL;
    pin->engine = cut(name, (size_t)((colon ? colon : end) - name));
    pin->variant = colon ? cut(colon + 1, (size_t)(end - colon - 1)) : NULL;
    if (!pin->engine || (slash && !pin->backend) || (colon && !pin->variant))
      return qn__fail(QN_NO_MEMORY, "%s: no memory for its list", key);
    p = next;
  }
  return QN_OK;
}

/* Checks the form; apply_override sets what it says. */
static qn_status parse_override(qn__settings *s, const char *key, const char *text)
{
  (void)s;
  if (strcmp(key, "override")) return *text ? QN_OK : parse_text(s, key, text);
  return qn__fail(QN_BAD_ARGUMENT, "override: is for the user of a program, in QUERN_OVERRIDE; a program sets the options themselves");
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct setting {
  const char *key, *variable, *def;
  parse_fn   *parse;
  const char *text;
} table[QN_SET_COUNT] = {
  [QN_SET_BACKEND] = { "backend", "QUERN_BACKEND", "", parse_text,
    "which backends, in order: names or absolute paths joined by commas; one that ends in `any` passes over what is not here, and goes on "
    "with the device's other backends; check: the CPU, as strict as a GPU, to find a program's faults; unset: every backend found, a usable GPU first, else the CPU" },
  [QN_SET_DEVICE] = { "device", "QUERN_DEVICE", "0", parse_device, "device ordinal" },
  [QN_SET_DEVICE_MODEL] = { "device_model", "QUERN_DEVICE_MODEL", "", parse_text,
    "run as on that model of device, with at most what both have: engines, their choice, the number of multiprocessors" },
  [QN_SET_PLUGIN_PATH] = { "plugin_path", "QUERN_PLUGIN_PATH", "", parse_text,
    "absolute folders joined by colons, searched before the installed one" },
  [QN_SET_ENGINE] = { "engine", "QUERN_ENGINE", "", parse_engine,
    "pinned engines: OP=[BACKEND/]ENGINE[:VARIANT],...; a refusal is then an error, unless the list ends in `any`" },
  [QN_SET_TUNE] = { "tune", "QUERN_TUNE", "cached", parse_tune, "off (estimates), cached (what was measured), measure" },
  [QN_SET_TUNE_CACHE] = { "tune_cache", "QUERN_TUNE_CACHE", "", parse_text,
    "file of measurements; unset: quern/tune under $XDG_CACHE_HOME or ~/.cache" },
  [QN_SET_DETERMINISTIC] = { "deterministic", "QUERN_DETERMINISTIC", "0", parse_deterministic,
    "0; 1: only engines that give the same bits every run; batch: also whatever else is in the batch; portable: also on any device" },
  [QN_SET_MATH] = { "math", "QUERN_MATH", "f32", parse_math,
    "strict (the bound of a plain sum), f32 (adds Winograd, FFT, 3xTF32), tf32, fast (adds reduced accumulation, finite data only)" },
  [QN_SET_THREADS] = { "threads", "QUERN_THREADS", "", parse_threads,
    "threads of a CPU context; unset or empty: what OpenMP would use, 1 inside a parallel region" },
  [QN_SET_LANES] = { "lanes", "QUERN_LANES", "4", parse_lanes,
    "the most streams that a plan may spread over, where its parts depend on each other so little that it pays; 1: all in order" },
  [QN_SET_WORKSPACE_LIMIT] = { "workspace_limit", "QUERN_WORKSPACE_LIMIT", "", parse_bytes,
                               "bytes, with K, M or G (64M, 16MiB, 2g); unset or empty: no limit" },
  [QN_SET_FALLBACK] = { "fallback", "QUERN_FALLBACK", "none", parse_fallback,
    "none; host: an op that no engine of the device has runs on the CPU, with copies, and is logged" },
  [QN_SET_LOG] = { "log", "QUERN_LOG", "warn", parse_log,
    "error, warn, info, debug; and plan: each plan as it is made (info,plan: both); to stderr; of the whole process, so a context's "
    "option changes it for all" },
  [QN_SET_TRACE] = { "trace", "QUERN_TRACE", "", parse_text,
                     "file that gets every plan's problem when it first runs, for quern-bench to replay" },
  [QN_SET_PROFILE] = { "profile", "QUERN_PROFILE", "", parse_text,
    "file, or - for standard output, that gets a table at the end of each context: calls, engine, time and share of each problem" },
  [QN_SET_OVERRIDE] = { "override", "QUERN_OVERRIDE", "", parse_override,
    "KEY=VALUE ... that beat a program's own options, such as \"backend=cuda,any deterministic=1\"; a variable only" },
};

const char *qn__setting_key(int i) { return table[i].key; }
const char *qn__setting_variable(int i) { return table[i].variable; }
const char *qn__setting_help(int i) { return table[i].text; }
const char *qn__setting_value(const qn__settings *s, int i) { return s->text[i] ? s->text[i] : table[i].def; }

int qn__setting_index(const char *key)
{
  qn_text known = {0};
  for (int i = 0; i < QN_SET_COUNT; i++)
    if (!strcmp(key, table[i].key)) return i;
  for (int i = 0; i < QN_SET_COUNT; i++) qn__text_add(&known, "%s%s", i ? ", " : "", table[i].key);
  qn__fail(QN_BAD_ARGUMENT, "\"%s\" is not an option; known are %s", key, known.s ? known.s : "");
  qn__free(known.s);
  return -1;
}

/* Says, once for each setting, that a value given does not count. */
static void overruled(int i, const char *name, const char *value, const char *by)
{
  static atomic_bool said[QN_SET_COUNT];
  if (qn__logs(QN_LOG_INFO) && !atomic_exchange(&said[i], true))
    qn__log(QN_LOG_INFO, "%s=%s is overruled by %s", name, value, by);
}

void qn__settings_overruled(const qn__settings *s)
{
  for (int i = 0; i < QN_SET_COUNT; i++) {
    const char *v = qn__environment(i);
    if (v && s->origin[i] >= QN_FROM_CONTEXT && strcmp(v, s->text[i]))
      overruled(i, table[i].variable, v, s->origin[i] == QN_FROM_OVERRIDE ? "QUERN_OVERRIDE"
                                         : "an option of the program; QUERN_OVERRIDE would have the last word");
  }
}

qn_status qn__settings_set(qn__settings *s, const char *key, const char *value, int origin)
{
  int i = qn__setting_index(key);
  if (i < 0) return QN_BAD_ARGUMENT;
  if (s->origin[i] == QN_FROM_OVERRIDE && origin < QN_FROM_OVERRIDE) {
    if (origin == QN_FROM_CONTEXT && strcmp(value, s->text[i])) overruled(i, key, value, "QUERN_OVERRIDE");
    return QN_OK;
  }
  qn_status status = table[i].parse(s, origin == QN_FROM_ENVIRONMENT ? table[i].variable : table[i].key, value);
  if (status) return status;
  char *copy = qn__strdup(value);
  if (!copy) return qn__fail(QN_NO_MEMORY, "no memory for option %s", key);
  qn__free(s->text[i]);
  s->text[i] = copy;
  s->origin[i] = (uint8_t)origin;
  return QN_OK;
}

void qn__settings_free(qn__settings *s)
{
  free_pins(s);
  for (int i = 0; i < QN_SET_COUNT; i++) qn__free(s->text[i]);
  memset(s, 0, sizeof *s);
}

void qn__settings_log(const qn__settings *s) { atomic_store(&qn__log_level, (int)s->log); }

/* ---- the environment, read once ---------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *read_value[QN_SET_COUNT];

static void read_environment(void)
{
  for (int i = 0; i < QN_SET_COUNT; i++) {
    const char *v = qn__screened(table[i].variable);
    if (v && *v) read_value[i] = strdup(v);         /* empty counts as unset; never freed, so not from core's counted memory */
    else if (!v && getenv(table[i].variable)) qn__log(QN_LOG_WARN, "%s is ignored in a program with raised rights", table[i].variable);
  }
  qn__settings s = {0};
  const char *level = read_value[QN_SET_LOG];
  if (level && !parse_log(&s, table[QN_SET_LOG].variable, level)) qn__settings_log(&s);
}

const char *qn__environment(int setting)
{
  pthread_once(&once, read_environment);
  return read_value[setting];
}

/* Words joined by white space. */
static qn_status apply_override(qn__settings *s)
{
  char *copy = s->text[QN_SET_OVERRIDE] ? qn__strdup(s->text[QN_SET_OVERRIDE]) : NULL, *rest = copy, *word;
  qn_status status = s->text[QN_SET_OVERRIDE] && !copy ? qn__fail(QN_NO_MEMORY, "no memory for QUERN_OVERRIDE") : QN_OK;
  while (!status && (word = strsep(&rest, " \t\n"))) {
    char *value = strchr(word, '=');
    if (!*word) continue;
    if (!value) {
      status = qn__fail(QN_BAD_ARGUMENT, "\"%s\" is not of the form key=value", word);
      break;
    }
    *value++ = 0;
    status = qn__settings_set(s, word, value, QN_FROM_OVERRIDE);
  }
  qn__free(copy);
  return status ? qn__fail(status, "QUERN_OVERRIDE: %s", qn_last_error()) : QN_OK;
}

void qn__settings_default(qn__settings *s)
{
  memset(s, 0, sizeof *s);
  s->device = -1;
  s->math = QN_MATH_F32;
  s->lanes = QN__LANES;
  s->tune = QN_TUNE_CACHED;
  s->workspace_limit = UINT64_MAX;
}

qn_status qn__settings_init(qn__settings *s)
{
  qn_status status = QN_OK;
  qn__settings_default(s);
  for (int i = 0; i < QN_SET_COUNT && !status; i++) {
    const char *v = qn__environment(i);
    if (v) status = qn__settings_set(s, table[i].key, v, QN_FROM_ENVIRONMENT);
  }
  if (!status) status = apply_override(s);
  if (status) qn__settings_free(s);
  return status;
}

qn_status qn__settings_read(qn__settings *s, const char *const options[])
{
  qn_status status = qn__settings_init(s);
  for (int i = 0; !status && options && options[i]; i++) {
    const char *eq = strchr(options[i], '=');
    char key[32];
    if (!eq || (size_t)(eq - options[i]) >= sizeof key)
      status = qn__fail(QN_BAD_ARGUMENT, "options[%d]: \"%s\" is not of the form key=value", i, options[i]);
    else {
      memcpy(key, options[i], (size_t)(eq - options[i]));
      key[eq - options[i]] = 0;
      status = qn__settings_set(s, key, eq + 1, QN_FROM_CONTEXT);
    }
    if (status) qn__settings_free(s);
  }
  if (status) return status;
  if (s->origin[QN_SET_LOG] >= QN_FROM_CONTEXT) qn__settings_log(s);
  qn__settings_overruled(s);
  return QN_OK;
}

void qn__tune_default_path(qn_text *t)
{
  const char *cache = qn__screened("XDG_CACHE_HOME"), *home = qn__screened("HOME");
  if (cache && *cache == '/') qn__text_add(t, "%s/quern/tune", cache);
  else if (home && *home == '/') qn__text_add(t, "%s/.cache/quern/tune", home);
}
