/* line.c -- problem lines as text and as what may be changed: settings behind the ';', attributes by name, drafts of graphs. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* ---- settings ----------------------------------------------------------------------------- */

static const char *const known_settings[] = {"fill", "is", "seed", "labels", "offset", "plain", "as", "tier"};

bool qc_setting(const char *settings, const char *key, char *value, size_t bytes)
{
  size_t n = strlen(key);
  for (const char *s = settings ? settings : ""; *s; s += strcspn(s, " \t")) {
    s += strspn(s, " \t");
    if (strncmp(s, key, n) || s[n] != '=')
      continue;
    s += n + 1;
    size_t len = strcspn(s, " \t");
    snprintf(value, bytes, "%.*s", (int)len, s);
    return true;
  }
  return false;
}

bool qc_settings_check(const char *settings, char *why, size_t bytes)
{
  for (const char *s = settings ? settings : ""; *s;) {
    s += strspn(s, " \t");
    size_t len = strcspn(s, " \t"), key = strcspn(s, "= \t");
    if (!len)
      break;
    const char *name = s;
    for (const char *dot = s; dot < s + key; dot++)
      if (*dot == '.')
        name = dot + 1;
    bool found = false;
    for (size_t k = 0; k < sizeof known_settings / sizeof *known_settings; k++)
      found |= strlen(known_settings[k]) == (size_t)(s + key - name) &&
               !strncmp(known_settings[k], name, (size_t)(s + key - name));
    if (!found || key == len) {
      snprintf(why, bytes, "setting '%.*s' is not known: fill, is, seed, labels, offset, plain, as, tier are", (int)len, s);
      return false;
    }
    s += len;
  }
  return true;
}

char *qc_one_line(const char *lines)
{
  size_t n = strlen(lines);
  char *out = qc_alloc(3 * n + 1), *o = out;
  while (n && lines[n - 1] == '\n')
    n--;
  for (size_t i = 0; i < n; i++) {
    if (lines[i] == '\n')
      o += sprintf(o, " | ");
    else
      *o++ = lines[i];
  }
  return out;
}

char *qc_print(const qn_graph *graph)
{
  size_t n = qn_graph_print(graph, NULL, 0);
  char *text = qc_alloc(n + 1);
  qn_graph_print(graph, text, n + 1);
  return text;
}

int64_t qc_attr_int(const qn_op_info *op, const void *attr, const char *name, int i, int after, int64_t absent)
{
  for (uint32_t k = 0; k < op->n_attrs; k++) {
    const qn_attr_info *a = &op->attr[k];
    if (strcmp(a->name, name))
      continue;
    const char *at = (const char *)attr + (after ? a->offset2 : a->offset);
    return ((const int64_t *)(const void *)at)[i];
  }
  return absent;
}

/* ---- drafts ------------------------------------------------------------------------------- */

struct qc_draft *qc_draft_of(const qn_graph *graph)
{
  struct qc_draft *d = qc_alloc(sizeof *d);
  d->view = *qn_graph_inspect(graph);
  d->value = qc_alloc(d->view.n_values * sizeof *d->value);
  memcpy(d->value, d->view.value, d->view.n_values * sizeof *d->value);
  d->view.value = d->value;
  return d;
}

void qc_draft_free(struct qc_draft *d)
{
  free(d->value);
  free(d);
}

char *qc_draft_text(const struct qc_draft *d)
{
  qn_graph *graph;
  if (qn_graph_make(&d->view, &graph))
    return NULL;
  char *text = qc_print(graph);
  qn_graph_destroy(graph);
  return text;
}
