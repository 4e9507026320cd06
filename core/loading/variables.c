/* variables.c -- what is read from the environment: the settings, the groups' variables and each backend's. */
#include "config.h"
#include "core.h"
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Do the first len bytes of text spell the variable's name? */
static bool is_named(const char *variable, const char *text, size_t len)
{
  return strlen(variable) == len && !strncmp(variable, text, len);
}

static bool is_known(const char *text, size_t len)
{
  for (int i = 0; i < QN_SET_COUNT; i++)
    if (is_named(qn__setting_variable(i), text, len)) return true;
  for (const char *const *v = qn__group_variables; v[0]; v += 2)
    if (is_named(v[0], text, len)) return true;
  for (qn__backend *b = qn__backends(); b; b = b->next)         /* loads all backends: the variable may be a plugin's */
    for (const char *const *v = b->variables; v[0] && v[1]; v += 2)
      if (is_named(v[0], text, len)) return true;
  return false;
}

static void warn_of_unknown(void)
{
  for (char **e = environ; e && *e; e++) {
    size_t len = strcspn(*e, "=");
    if (!strncmp(*e, "QUERN_", 6) && !is_known(*e, len))
      qn__log(QN_LOG_WARN, "%.*s is not a variable that Quern or a backend here reads; `quern-info config` lists them", (int)len, *e);
  }
}

void qn__variables_unknown(void)
{
  static pthread_once_t warned = PTHREAD_ONCE_INIT;
  pthread_once(&warned, warn_of_unknown);
}

/* The value; where none was given and the default is made of other things, what these make it in this context. */
static const char *in_force(const qn_context *ctx, const qn__settings *s, int i, qn_text *t)
{
  const char *value = qn__setting_value(s, i);
  if (!ctx || *value) return value;
  if (i == QN_SET_BACKEND)
    for (int k = 0; k < ctx->n_backends; k++) qn__text_add(t, "%s%s", k ? "," : "", ctx->backend[k]->name);
  if (i == QN_SET_THREADS && !strcmp(ctx->dev->desc.kind, "cpu")) qn__text_add(t, "%d", (int)ctx->policy->demands.threads);
  if (i == QN_SET_TUNE_CACHE) qn__tune_default_path(t);
  return t->s && !t->failed ? t->s : value;
}

/* Variables that no option of a context stands for. */
static void each_variable(const char *const *v, void (*row)(void *, const qn_setting_info *), void *user)
{
  for (; v[0] && v[1]; v += 2) {
    const char *value = qn__screened(v[0]);
    const bool set = value && *value;
    qn_setting_info info = { sizeof info, "", v[0], value ? value : "", set ? "environment" : "default", v[1] };
    row(user, &info);
  }
}

qn_status qn_each_setting(const qn_context *ctx, void (*row)(void *, const qn_setting_info *), void *user)
{
  static const char *const origin[] = { "default", "environment", "context", "override" };
  qn__settings own;
  const qn__settings *s = ctx ? &ctx->settings : &own;
  if (!row) return qn__fail(QN_BAD_ARGUMENT, "row: is NULL");
  qn_status status = ctx ? qn__context_alive(ctx) : qn__settings_init(&own);
  if (status) return status;
  for (int i = 0; i < QN_SET_COUNT; i++) {
    qn_text text = {0};
    qn_setting_info info = { sizeof info, qn__setting_key(i), qn__setting_variable(i), in_force(ctx, s, i, &text), origin[s->origin[i]],
                             qn__setting_help(i) };
    row(user, &info);
    qn__free(text.s);
  }
  each_variable(qn__group_variables, row, user);
  for (qn__backend *b = qn__backends(); b; b = b->next) each_variable(b->variables, row, user);
  if (!ctx) qn__settings_free(&own);
  return QN_OK;
}
