/* device.c -- devices, which contexts share: description, policies (a context's demands, backends and pins, with one
 * number) and the plan cache. A device lives as long as the process. */
#include "config.h"
#include "core.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which backends, which device ---------------------------------------------------------------- */

static bool serves(const qn__backend *b, const char *kind) { return b->table && !strcmp(b->table->device_kind, kind); }

static bool has_device(const qn__backend *b)
{
  int32_t n = 0;
  return b->table && !b->status && b->device && !b->device->count(&n) && n > 0;
}

static bool shadowed(const qn__backend *all, const qn__backend *b)
{
  for (; all != b; all = all->next)
    if (all->table && b->table && !strcmp(all->name, b->name)) return true;
  return false;
}

static qn_status append(qn__backend ***list, int *n, qn__backend *b)
{
  for (int i = 0; i < *n; i++)
    if ((*list)[i] == b) return QN_OK;
  qn__backend **grown = qn__realloc(*list, (size_t)*n * sizeof *grown, (size_t)(*n + 1) * sizeof *grown);
  if (!grown) return qn__fail(QN_NO_MEMORY, "no memory for the list of backends");
  *list = grown;
  grown[(*n)++] = b;
  return QN_OK;
}

static qn_status provider_of(const char *kind, qn__backend **out)
{
  qn__backend *all = qn__backends();
  for (qn__backend *b = all; b; b = b->next)
    if (serves(b, kind) && !b->status && b->device && !shadowed(all, b)) {
      *out = b;
      return QN_OK;
    }
  return qn__fail(QN_NO_BACKEND, "no backend here provides the device \"%s\"", kind);
}

static qn_status append_kind(qn__backend *provider, qn__backend ***list, int *n)
{
  qn__backend *all = qn__backends();
  qn_status status = append(list, n, provider);
  for (qn__backend *b = all; b && !status; b = b->next)
    if (serves(b, provider->table->device_kind) && !b->status && !shadowed(all, b)) status = append(list, n, b);
  return status;
}

/* QUERN_BACKEND unset: the first provider with a device, GPU before CPU, and all other backends of its kind. */
static qn_status choose_all(qn__backend ***list, int *n, qn__backend **provider)
{
  qn__backend *all = qn__backends(), *found = NULL;
  for (int cpu = 0; cpu < 2 && !found; cpu++)
    for (qn__backend *b = all; b && !found; b = b->next)
      if (b->table && serves(b, "cpu") == (bool)cpu && !shadowed(all, b) && has_device(b)) found = b;
  if (!found) return qn__fail(QN_NO_BACKEND, "no backend here has a device; `quern-info` says what was skipped and why");
  *provider = found;
  return append_kind(found, list, n);
}

/* The backend of that name, if it can join the list. present: also its device must be here. */
static qn_status get_named(const char *name, const qn__backend *first, bool present, qn__backend **out)
{
  qn__backend *provider;
  qn_status status = qn__backend_get(name, out);
  if (status) return status;
  const char *kind = (*out)->table->device_kind;
  if (first && !serves(*out, first->table->device_kind))
    return qn__fail(QN_NO_BACKEND, "backend: %s works on the device \"%s\", but %s, named before it, on \"%s\"; name one kind", name,
                    kind, first->name, first->table->device_kind);
  if (!present || has_device(*out)) return QN_OK;
  if ((*out)->device || (status = provider_of(kind, &provider)) || !has_device(provider))
    return status ? status : qn__fail(QN_NO_BACKEND, "backend: %s works on the device \"%s\", and none is here", name, kind);
  return QN_OK;
}

/* With `any` at its end a list passes over what is not here, and goes on with the other backends of the device. */
static qn_status choose_named(const char *names, qn__backend ***list, int *n, qn__backend **provider)
{
  char *copy = qn__strdup(names), *rest = copy, *name, *last = copy ? strrchr(copy, ',') : NULL;
  const bool any = copy && !strcmp(last ? last + 1 : copy, "any");
  qn_status status = copy ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory for the list of backends");
  while (!status && (name = strsep(&rest, ",")) && (rest || !any)) {
    qn__backend *b;
    if ((status = get_named(name, *n ? (*list)[0] : NULL, any, &b))) {
      if (!any || status == QN_NO_MEMORY) break;
      qn__log(QN_LOG_INFO, "backend: %s is passed over: %s", name, qn_last_error());
      status = QN_OK;
      continue;
    }
    status = append(list, n, b);
    if (!status && !*provider && b->device) *provider = b;
  }
  qn__free(copy);
  if (status) return status;
  if (!*n) return choose_all(list, n, provider);
  if (!*provider) status = provider_of((*list)[0]->table->device_kind, provider);
  const bool bare = *n == 1 && !(*list)[0]->n_engines;           /* a device without engines of its own: the others' ride on it */
  return status || !(any || bare) ? status : append_kind(*provider, list, n);
}

qn_status qn__device_choose(const qn__settings *s, qn__backend ***list, int *n, qn__backend **provider)
{
  *list = NULL;
  *n = 0;
  *provider = NULL;
  qn_status status = s->text[QN_SET_BACKEND] ? choose_named(s->text[QN_SET_BACKEND], list, n, provider)
                                             : choose_all(list, n, provider);
  qn__variables_unknown();
  if (status) {
    qn__free(*list);
    *list = NULL;
  }
  return status;
}

static bool knows(const qn__backend *provider, const char *model)
{
  const char *const *m = provider->device->models;
  while (m && *m && strcmp(*m, model)) m++;
  return m && *m;
}

qn_status qn__device_choose_model(const qn__settings *s, const char *model, qn__backend ***list, int *n, qn__backend **provider)
{
  qn__backend *all = qn__backends();
  qn_status status = qn__device_choose(s, list, n, provider);
  if (status || s->text[QN_SET_BACKEND] || knows(*provider, model)) return status;
  for (qn__backend *b = all; b; b = b->next)
    if (b->table && !b->status && b->device && !shadowed(all, b) && knows(b, model)) {
      *n = 0;
      *provider = b;
      return append_kind(b, list, n);
    }
  return QN_OK;
}

/* ---- devices ------------------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static qn__device *devices;

void qn__devices_in_child(void)
{
  pthread_mutex_init(&lock, NULL);
  for (qn__device *d = devices; d; d = d->next) pthread_mutex_init(&d->lock, NULL);
}

qn_status qn__device_model(const qn__backend *provider, const char *model, qn_device *desc)
{
  const qn_device_ops *ops = provider->device;
  if (!ops->describe_model) return qn__fail(QN_BAD_ARGUMENT, "model: backend %s knows no models", provider->name);
  qn_status status = ops->describe_model(model, desc);
  if (!status) return QN_OK;
  if (knows(provider, model)) return status;          /* it has set the error itself */
  qn_text known = {0};
  for (const char *const *m = ops->models; m && *m; m++) qn__text_add(&known, "%s%s", m == ops->models ? "" : ", ", *m);
  status = qn__fail(QN_BAD_ARGUMENT, "model: \"%s\" is not known to backend %s; known are %s", model, provider->name,
                    known.s ? known.s : "none");
  qn__free(known.s);
  return status;
}

/* Describes the live device as another model. Measurements on it hold for neither, so it gets a model name of its own. */
static qn_status narrow(qn__device *d, const char *model)
{
  char live[sizeof d->desc.model];
  memcpy(live, d->desc.model, sizeof live);
  qn_status status = qn__device_model(d->provider, model, &d->desc);
  snprintf(d->narrowed, sizeof d->narrowed, "%s", model);
  snprintf(d->desc.model, sizeof d->desc.model, "%.15s@%.15s", model, live);
  return status;
}

static qn_status make(qn__backend *provider, int ordinal, const char *model, qn__device **out)
{
  const qn_device_ops *ops = provider->device;
  qn__device *d = qn__alloc(sizeof *d);
  qn_status status = QN_OK;
  if (!d) return qn__fail(QN_NO_MEMORY, "no memory for a device");
  d->ops = ops;
  d->provider = provider;
  d->desc.struct_size = sizeof d->desc;
  if ((status = ops->describe(ordinal, &d->desc)) || (model && (status = narrow(d, model)))) goto fail;
  if (ops->open && (status = ops->open(&d->desc))) goto fail;
  pthread_mutex_init(&d->lock, NULL);
  d->next = devices;
  *out = devices = d;
  return QN_OK;
fail:
  qn__free(d);
  return status;
}

static bool known_elsewhere(const qn__backend *provider, const char *model)
{
  for (const qn__backend *b = qn__backends(); b; b = b->next)
    if (b != provider && b->table && !b->status && b->device && knows(b, model)) return true;
  return false;
}

/* The environment applies to a whole program, whose contexts may use several kinds of device: an ordinal is meant for a GPU (there is
 * one CPU), a model for the providers that know it. An option applies to this context. */
static bool is_meant(const qn__settings *s, int setting, const qn__backend *provider)
{
  if (!s || !s->text[setting] || s->origin[setting] == QN_FROM_CONTEXT) return s && s->text[setting];
  return setting == QN_SET_DEVICE ? !serves(provider, "cpu")
                                  : knows(provider, s->text[setting]) || !known_elsewhere(provider, s->text[setting]);
}

qn_status qn__device_get(qn__backend *provider, const qn__settings *s, qn__device **out)
{
  int ordinal = is_meant(s, QN_SET_DEVICE, provider) ? s->device : 0;
  const char *model = is_meant(s, QN_SET_DEVICE_MODEL, provider) ? s->text[QN_SET_DEVICE_MODEL] : NULL;
  int32_t n = 0;
  qn_status status = provider->device->count(&n);
  if (status) return status;
  if (ordinal >= n)
    return qn__fail(QN_NO_BACKEND, n ? "device: %d is not here; %s has %d, numbered from 0" : "device: %d is not here; %s has none",
                    ordinal, provider->name, (int)n);
  qn__lock(&lock);
  qn__device *d = devices;
  while (d && (d->provider != provider || d->desc.ordinal != ordinal || strcmp(d->narrowed, model ? model : ""))) d = d->next;
  if (d) *out = d;
  else status = make(provider, ordinal, model, out);
  qn__unlock(&lock);
  return status;
}

qn_status qn__enter(const qn__device *dev, uint64_t *saved)
{
  *saved = 0;
  return dev->ops->enter ? dev->ops->enter(&dev->desc, saved) : QN_OK;
}

void qn__leave(const qn__device *dev, uint64_t saved)
{
  if (dev->ops->enter) dev->ops->leave(&dev->desc, saved);
}

qn_status qn_each_device(void (*row)(void *, const qn_backend_info *, const qn_device *), void *user)
{
  if (!row) return qn__fail(QN_BAD_ARGUMENT, "row: is NULL");
  for (qn__backend *b = qn__backends(); b; b = b->next) {
    int32_t n = 0;
    if (!b->table || !b->device || b->device->count(&n)) continue;
    for (int i = 0; i < n; i++) {
      qn_device desc = { .struct_size = sizeof desc };
      qn_backend_info info = { sizeof info, b->name, b->table->version, b->table->device_kind, b->path, QN_OK, "", b->table };
      if (!b->device->describe(i, &desc)) row(user, &info, &desc);
    }
  }
  return QN_OK;
}

/* ---- policies ---------------------------------------------------------------------------------------------- */

static int threads_of(const qn_device *desc, const qn__settings *s)
{
  return qn__workers_lost ? 1 : s->threads ? s->threads : desc->threads > 0 ? desc->threads : 1;
}

static void say_one_thread(const qn_device *desc, const qn__settings *s)
{
  static atomic_bool said;
  if (qn__workers_lost && desc->threads > 0 && s->threads != 1 && !atomic_exchange(&said, true))
    qn__log(QN_LOG_WARN, "this process was forked from one with threads, which OpenMP does not survive: its contexts compute on one "
            "thread; a process started by exec, or forked before any thread, uses all");
}

/* Does b have the pinned engine and variant? known, variants (may be NULL) collect what it has: engines for the op; the variants. */
static bool has_pinned(const qn__backend *b, const qn__pin *pin, qn_text *known, qn_text *variants)
{
  const qn_op_info *op = pin->op & QN_ANCHOR_FAMILY ? NULL : qn_op_find(pin->op);
  bool found = false;
  for (int e = 0; e < b->n_engines; e++) {
    const qn_engine *row = &b->engine[e];
    if (op ? !qn__anchors(row, op) : row->op != pin->op) continue;
    if (known) qn__text_add(known, "%s%s/%s", known->len ? ", " : "", b->name, row->name);
    if (strcmp(row->name, pin->engine) || (pin->backend && strcmp(pin->backend, b->name))) continue;
    for (int v = 0; pin->variant && row->variants && row->variants[v]; v++) {
      found = found || !strcmp(row->variants[v], pin->variant);
      if (variants) qn__text_add(variants, "%s%s", variants->len ? ", " : "", row->variants[v]);
    }
    found = found || !pin->variant;
  }
  return found;
}

static bool pinned_elsewhere(const qn__policy *t, const qn__pin *pin)
{
  for (const qn__backend *b = qn__backends(); b; b = b->next)
    if (b->table && !b->status && !serves(b, t->backend[0]->table->device_kind) && has_pinned(b, pin, NULL, NULL)) return true;
  return false;
}

/* keep: the pin applies to this context's device; see is_meant. */
static qn_status check_pin(const qn__policy *t, const qn__pin *pin, bool *keep)
{
  qn_text known = {0}, variants = {0};
  const bool family = pin->op & QN_ANCHOR_FAMILY;
  const char *op = family ? qn_family_name(pin->op & ~QN_ANCHOR_FAMILY) : qn_op_find(pin->op)->name;
  static const char *const from[] = { "engine", "QUERN_ENGINE", "engine", "QUERN_OVERRIDE: engine" };
  const uint8_t origin = t->settings.origin[QN_SET_ENGINE];
  const char *key = from[origin];
  qn_status status;
  *keep = false;
  for (int k = 0; k < t->n_backends; k++) *keep |= has_pinned(t->backend[k], pin, NULL, NULL);
  if (*keep) return QN_OK;
  for (int k = 0; k < t->n_backends; k++) has_pinned(t->backend[k], pin, &known, &variants);
  if (origin != QN_FROM_CONTEXT && pinned_elsewhere(t, pin)) {
    qn__log(QN_LOG_INFO, "%s: %s of %s is another device's; a context on \"%s\" goes without", key, pin->engine, op,
            t->backend[0]->table->device_kind);
    status = QN_OK;
  } else if (variants.s) {
    status = qn__fail(QN_BAD_ARGUMENT, "%s: %s has no variant \"%s\" of %s here; known are %s", key, op, pin->variant, pin->engine,
                      variants.s);
  } else {
    status = qn__fail(QN_BAD_ARGUMENT, "%s: %s has no engine \"%s%s%s%s%s\" here; known are %s%s", key, op,
      pin->backend ? pin->backend : "", pin->backend ? "/" : "", pin->engine, pin->variant ? ":" : "",
      pin->variant ? pin->variant : "", known.s ? known.s : "none", family && !known.s ? ": name the ops of the family one by one" : "");
  }
  qn__free(known.s);
  qn__free(variants.s);
  return status;
}

static qn_status check_pins(qn__policy *t)
{
  qn_status status = QN_OK;
  for (int i = 0; i < t->settings.n_pins && !status; i++) {
    bool keep;
    status = check_pin(t, &t->settings.pin[i], &keep);
    if (!keep) t->settings.pin[i].op = 0;
  }
  return status;
}

void qn__policy_free(qn__policy *t)
{
  if (!t) return;
  qn__settings_free(&t->settings);
  qn__free(t->backend);
  qn__free(t->key);
  qn__free(t);
}

static qn_status copy_settings(qn__settings *to, const qn__settings *from)
{
  qn_status status = QN_OK;
  qn__settings_default(to);
  for (int i = 0; i < QN_SET_COUNT && !status; i++)
    if (from->text[i] && i != QN_SET_LOG && i != QN_SET_OVERRIDE) status = qn__settings_set(to, qn__setting_key(i), from->text[i], from->origin[i]);
  return status;
}

/* A policy's canonical text, which settles all of it: also a pin's origin, since only a program's own pin must be here. NULL: no memory. */
static char *key_of(const qn_device *desc, const qn__settings *s, qn__backend *const *list, int n)
{
  qn_text key = {0};
  for (int i = 0; i < n; i++) qn__text_add(&key, "%s%s:%s", i ? "," : "", list[i]->name, list[i]->path);
  qn__text_add(&key, " d%u m%u w%llu t%d u%u f%d e%d%s c%s r%s p%d g%d l%d", s->determinism, s->math,
               (unsigned long long)s->workspace_limit, threads_of(desc, s), s->tune, s->fallback, s->origin[QN_SET_ENGINE],
               s->text[QN_SET_ENGINE] ? s->text[QN_SET_ENGINE] : "", s->text[QN_SET_TUNE_CACHE] ? s->text[QN_SET_TUNE_CACHE] : "",
               s->text[QN_SET_TRACE] ? s->text[QN_SET_TRACE] : "",              /* it decides where the plans' trace is written */
               s->text[QN_SET_PROFILE] != NULL, s->ranks, s->lanes);
  if (!key.failed) return key.s;
  qn__free(key.s);
  return NULL;
}

qn_status qn__policy_make(const qn_device *desc, const qn__settings *s, qn__backend *const *list, int n, qn__policy **out)
{
  qn__policy *t = qn__alloc(sizeof *t);
  qn_status status = QN_OK;
  if (!t || !(t->backend = qn__alloc((size_t)n * sizeof *t->backend)) || (status = copy_settings(&t->settings, s))) goto fail;
  memcpy(t->backend, list, (size_t)n * sizeof *list);
  t->n_backends = n;
  t->demands = (qn_demands){ .struct_size = sizeof t->demands, .determinism = s->determinism, .math = s->math,
                             .workspace_limit = s->workspace_limit, .threads = threads_of(desc, s), .ranks = s->ranks };
  if (!(t->key = key_of(desc, s, list, n)) || (status = check_pins(t))) goto fail;
  *out = t;
  return QN_OK;
fail:
  qn__policy_free(t);
  return status ? status : qn__fail(QN_NO_MEMORY, "no memory for a context's demands");
}

static const qn__policy **bucket_of(qn__device *dev, const char *key)
{
  uint64_t hash = UINT64_C(14695981039346656037);   /* FNV-1a */
  for (; *key; key++) hash = (hash ^ (unsigned char)*key) * UINT64_C(1099511628211);
  return &dev->policy[hash % QN__POLICY_BUCKETS];
}

static const qn__policy *find(const qn__policy *t, const char *key)
{
  while (t && strcmp(t->key, key)) t = t->next;
  return t;
}

qn_status qn__policy_intern(qn__device *dev, const qn__settings *s, qn__backend *const *list, int n, const qn__policy **out)
{
  static atomic_ullong ids;
  qn__policy *t = NULL;
  qn_device desc = dev->desc, now = { .struct_size = sizeof now };
  if (desc.threads > 0 && !dev->ops->describe(desc.ordinal, &now)) desc.threads = now.threads;     /* the OpenMP thread count can change */
  say_one_thread(&desc, s);
  char *key = key_of(&desc, s, list, n);
  if (!key) return qn__fail(QN_NO_MEMORY, "no memory for a context's demands");
  const qn__policy **bucket = bucket_of(dev, key), *known;
  pthread_mutex_lock(&dev->lock);
  known = find(*bucket, key);
  pthread_mutex_unlock(&dev->lock);
  qn_status status = known ? QN_OK : qn__policy_make(&desc, s, list, n, &t);
  qn__free(key);
  if (known) *out = known;
  if (known || status) return status;
  pthread_mutex_lock(&dev->lock);
  known = find(*bucket, t->key);                    /* another thread's meanwhile */
  if (!known) {
    t->id = atomic_fetch_add(&ids, 1) + 1;
    t->next = *bucket;
    *bucket = t;
  }
  pthread_mutex_unlock(&dev->lock);
  if (known) qn__policy_free(t);
  *out = known ? known : t;
  return QN_OK;
}
