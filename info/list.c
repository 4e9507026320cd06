/* list.c -- backends, devices, engines by op; the ops themselves. */
#include <stdlib.h>
#include <string.h>
#include "info.h"

static const char *const class_name[] = { "tuned", "generic", "host" };

/* ---- backends and devices --------------------------------------------------------------------- */

static void print_backend(void *user, const qn_backend_info *b)
{
  (void)user;
  if (b->status)
    printf("  %-12s %-8s not usable: %s%s%s\n", *b->name ? b->name : "?", b->device_kind ? b->device_kind : "",
           strstr(b->why, b->path) ? "" : b->path, strstr(b->why, b->path) ? "" : ": ", b->why);
  else
    printf("  %-12s %-8s version %s, %s\n", b->name, b->device_kind, b->version, b->path);
}

static void print_size(double bytes)
{
  if (bytes >= 1 << 30)
    printf("%.1f GiB", bytes / (1 << 30));
  else
    printf("%.1f MiB", bytes / (1 << 20));
}

static void print_device(void *user, const qn_backend_info *b, const qn_device *d)
{
  int *n = user;
  ++*n;
  printf("  %s:%d  %s, model %s, by backend %s: %d %s, memory ", d->kind, d->ordinal, d->name, d->model, b->name, d->units,
         strcmp(d->kind, "cpu") ? "multiprocessors" : "cores");
  print_size((double)d->memory);
  printf(", last-level cache ");
  print_size((double)d->cache);
  if (d->features & QN_CPU_AVX512)
    printf(", AVX-512");
  else if (d->features & QN_CPU_AVX2)
    printf(", AVX2");
  if (d->arch_major)
    printf(", compute capability %d.%d", d->arch_major, d->arch_minor);
  putchar('\n');
}

/* ---- engines by op ------------------------------------------------------------------------------ */

typedef struct listing {
  uint32_t anchor;
  int      n;                           /* engines printed so far for the current op */
} listing;

static void print_engines(void *user, const qn_backend_info *b)
{
  listing *l = user;
  const qn_engine *row;
  if (b->status || !b->table)
    return;
  for (int i = 0; (row = qn_backend_engine(b->table, i)); i++) {
    if (row->op != l->anchor)
      continue;
    printf("%s%s/%s", l->n++ ? ", " : "", b->name, row->name);
    if (row->class_)
      printf(" (%s)", row->class_ <= QN_CLASS_HOST ? class_name[row->class_] : "?");
    int variants = 0;
    while (row->variants && row->variants[variants])
      variants++;
    if (variants)
      printf(" [%d variants]", variants);
  }
}

static void count_engines(void *user, const qn_backend_info *b)
{
  listing *l = user;
  const qn_engine *row;
  if (b->status || !b->table)
    return;
  for (int i = 0; (row = qn_backend_engine(b->table, i)); i++)
    l->n += row->op == l->anchor;
}

static bool has_engines(uint32_t anchor)
{
  listing l = { anchor, 0 };
  qn_each_backend(count_engines, &l);
  return l.n > 0;
}

static void print_anchor(const char *name, uint32_t anchor)
{
  listing l = { anchor, 0 };
  if (!has_engines(anchor))
    return;
  printf("  %-22s ", name);
  qn_each_backend(print_engines, &l);
  putchar('\n');
}

static bool is_asked_for(const qn_op_info *op, const char *only)
{
  return !only || strstr(op->name, only) || !strcmp(qn_family_name(op->family), only);
}

/* False, with a sentence: no op. */
static bool names_ops(const char *only)
{
  const qn_op_info *op;
  for (int i = 0; (op = qn_op_at(i)); i++)
    if (is_asked_for(op, only))
      return true;
  fprintf(stderr, "quern-info: no op has \"%s\" in its name, and no family is called so; quern-info ops lists them\n", only);
  return false;
}

int info_list(const char *const options[], const char *only)
{
  int devices = 0;
  int rc = info_check_settings(options);
  if (rc)
    return rc;
  if (!names_ops(only))
    return 2;
  printf("backends\n");
  qn_each_backend(print_backend, NULL);
  printf("devices\n");
  qn_each_device(print_device, &devices);
  if (!devices)
    printf("  none\n");
  printf("engines by op; those of a family serve every op of it, after the op's own\n");
  const qn_op_info *op;
  uint32_t families = 0;
  for (int i = 0; (op = qn_op_at(i)); i++) {
    if (!is_asked_for(op, only))
      continue;
    if (!(families >> op->family & 1)) {
      char name[64];
      families |= 1u << op->family;
      snprintf(name, sizeof name, "%s (family)", qn_family_name(op->family));
      print_anchor(name, op->family | QN_ANCHOR_FAMILY);
    }
    print_anchor(op->name, op->kind);
  }
  return 0;
}

/* ---- ops ------------------------------------------------------------------------------------------ */

static void print_default(const qn_attr_info *a)
{
  static const char *const shape[] = { "", "", " for each spatial dim", " before:after for each spatial dim", " for each dim",
                                       " before:after for each dim", "" };
  if (a->type == QN_ATTR_AXES)
    printf("      %-12s dims by number, default all\n", a->name);
  else if (a->identity)
    printf("      %-12s one%s, default 0,1,2...\n", a->name, shape[a->type]);
  else if (a->words) {
    const char *word = a->words;
    for (int i = 0; i < (int)a->def; i++)
      word += strcspn(word, "|") + 1;
    printf("      %-12s %s, default %.*s\n", a->name, a->words, (int)strcspn(word, "|"), word);
  } else
    printf("      %-12s one%s%s%s, default %g\n", a->name, shape[a->type], a->range ? ", " : "", a->range ? a->range : "", a->def);
}

int info_ops(const char *const options[], const char *only)
{
  const qn_op_info *op;
  (void)options;
  if (!names_ops(only))
    return 2;
  for (int i = 0; (op = qn_op_at(i)); i++) {
    if (!is_asked_for(op, only))
      continue;
    printf("%s (%s): %s\n   ", op->name, qn_family_name(op->family), op->text);
    for (uint32_t r = 0; r < op->n_roles; r++) {
      const qn_role_info *role = &op->role[r];
      printf("%s %s%s%s", r == op->n_inputs ? " ->" : "", role->name, role->flags & QN_ROLE_LIST ? "[]" : "",
             role->flags & QN_ROLE_OPTIONAL ? "?" : "");
      if (role->paired >= 0)
        printf(" (may be %s's memory)", op->role[role->paired].name);
    }
    if (op->forward)
      printf("   (differentiates %s)", qn_op_find(op->forward)->name);
    putchar('\n');
    for (uint32_t a = 0; a < op->n_attrs; a++)
      print_default(&op->attr[a]);
  }
  return 0;
}
