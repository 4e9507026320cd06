/* line.c -- problem lines as text and in editable form: settings after the ';', attributes by name, drafts of graphs. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* ---- settings ----------------------------------------------------------------------------- */

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

uint32_t qc_dtype_named(const char *name, size_t length)
{
  for (uint32_t t = 1; t < QN_DTYPE_COUNT; t++)
    if (strlen(qn_dtype_name(t)) == length && !strncmp(qn_dtype_name(t), name, length))
      return t;
  return 0;
}

void qc_value_name(const qn_graph_view *view, uint32_t value, char *name, size_t bytes)
{
  snprintf(name, bytes, "%s", view->name ? view->name[value] : "");
  for (uint32_t k = 0; k < view->n_ops && !*name; k++) {
    const qn_node *n = &view->op[k];
    const qn_op_info *op = qn_op_find(n->op);
    for (uint32_t r = 0; r < n->n_roles && !*name; r++)
      for (int a = n->first[r]; a < n->first[r + 1] && !*name; a++) {
        if ((uint32_t)n->arg[a] != value)
          continue;
        if (op->role[r].flags & QN_ROLE_LIST)
          snprintf(name, bytes, "%s%d", op->role[r].name, a - n->first[r]);
        else
          snprintf(name, bytes, "%s", op->role[r].name);
      }
  }
}

/* Is it an input (with `outputs`: or an output) of the graph, which a setting may name? */
static bool is_role(const qn_graph_view *view, const char *role, bool outputs)
{
  for (uint32_t i = 0; i < (outputs ? view->n_pointers : view->n_ins); i++) {
    char name[64];
    qc_value_name(view, (uint32_t)view->pointer[i], name, sizeof name);
    if (!strcmp(name, role))
      return true;
  }
  return false;
}

static bool are_dtypes(const char *list)
{
  for (const char *s = list;; s++) {
    size_t n = strcspn(s, ",");
    if (!qc_dtype_named(s, n))
      return false;
    s += n;
    if (!*s)
      return true;
  }
}

static bool is_whole(const char *s)
{
  return *s && !s[strspn(s, "0123456789")];
}

static bool are_fills(const char *list)
{
  bool known = *list;
  for (const char *s = list; known && *s;) {
    size_t n = strcspn(s, ",");
    char *one = qc_format("%.*s", (int)n, s);
    struct qc_value none = {.q = {.dtype = QN_F32}};
    known = qc_fill(&none, one, 0, 0, 3) && (!s[n] || s[n + 1]);
    free(one);
    s += n + (s[n] == ',');
  }
  return known;
}

/* What a setting's value should have been; NULL: it is valid. Numbers are checked where they are used. */
static const char *value_wanted(const char *key, const char *value)
{
  long long low, high;
  double within;
  int used = 0;
  if (!strcmp(key, "seed") || !strcmp(key, "offset"))
    return is_whole(value) ? NULL : "a whole number";
  if (!strcmp(key, "within"))
    return sscanf(value, "%lf%n", &within, &used) == 1 && !value[used] && within > 0 && within < 1 ? NULL : "a number between 0 and 1";
  if (!strcmp(key, "labels"))
    return sscanf(value, "%lld..%lld%n", &low, &high, &used) == 2 && !value[used] && low <= high ? NULL : "LO..HI";
  if (!strcmp(key, "plain"))
    return strcmp(value, "1") ? "1" : NULL;
  if (!strcmp(key, "tier"))
    return strcmp(value, "quick") && strcmp(value, "default") && strcmp(value, "full") && strcmp(value, "long")
         ? "quick, default, full or long" : NULL;
  if (!strcmp(key, "kind"))
    return strcmp(value, "cpu") && strcmp(value, "cuda") ? "cpu or cuda" : NULL;
  if (!strcmp(key, "as"))
    return are_dtypes(value) ? NULL : "dtypes joined by commas";
  if (!strcmp(key, "fill"))
    return are_fills(value) ? NULL : "fills joined by commas, as int:3,signed,special; docs/conformance.md has them all";
  return *value ? NULL : "a value";
}

static bool check_setting(char *setting, const qn_graph_view *view, char *why, size_t bytes)
{
  static const struct { const char *key; bool of_role, alone, of_output; } known[] = {
    {"fill", true, true, false}, {"is", true, false, true}, {"within", true, false, true}, {"offset", true, false, true},
    {"seed", false, true, false}, {"labels", false, true, false}, {"plain", false, true, false}, {"as", false, true, false},
    {"tier", false, true, false}, {"kind", false, true, false}};
  char *equals = strchr(setting, '='), *value = equals ? equals + 1 : setting, *key = setting;
  if (equals) {
    *equals = 0;
    char *dot = strrchr(setting, '.');
    key = dot ? dot + 1 : setting;
    if (dot)
      *dot = 0;
  }
  for (size_t k = 0; equals && k < sizeof known / sizeof *known; k++) {
    const char *role = key > setting ? setting : NULL, *wanted;
    if (strcmp(key, known[k].key) || !(role ? known[k].of_role : known[k].alone))
      continue;
    if (role && !is_role(view, role, known[k].of_output))
      snprintf(why, bytes, "setting '%s.%s': the problem has no %s '%s'", role, key, known[k].of_output ? "tensor" : "input", role);
    else if ((wanted = value_wanted(key, value)))
      snprintf(why, bytes, "setting '%s': '%.80s' should be %s", key, value, wanted);
    else
      return true;
    return false;
  }
  snprintf(why, bytes, "setting '%s%s%.80s%s%.80s' is not known: fill, ROLE.fill, ROLE.is, ROLE.within, ROLE.offset, seed, labels, "
           "plain, as, tier, kind are", key > setting ? setting : "", key > setting ? "." : "", key, equals ? "=" : "",
           equals ? value : "");
  return false;
}

bool qc_settings_check(const char *settings, const qn_graph *graph, char *why, size_t bytes)
{
  bool good = true;
  for (const char *s = settings ? settings : ""; good && *(s += strspn(s, " \t"));) {
    size_t n = strcspn(s, " \t");
    char *setting = qc_format("%.*s", (int)n, s);
    good = check_setting(setting, qn_graph_inspect(graph), why, bytes);
    free(setting);
    s += n;
  }
  return good;
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
