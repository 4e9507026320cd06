/* ceiling.c -- the device's attainable rates: of a large copy and a large matmul, measured in this run by the best engines of
 * every backend of the device kind. A share above 100% means that these did not reach the device's own limit. */
#include <string.h>
#include "bench.h"

static const measure_options options = { 0.6, false };

typedef struct backend_names { const char *kind; char text[1024]; } backend_names;

static void add_backend(void *user, const qn_backend_info *b)
{
  backend_names *names = user;
  if (b->status || !b->table || strcmp(b->device_kind, names->kind))
    return;
  size_t used = strlen(names->text);
  if (used + strlen(b->name) + 2 < sizeof names->text)
    snprintf(names->text + used, sizeof names->text - used, "%s%s", used ? "," : "", b->name);
}

static double fastest_ns(const side *s, const char *line, const char *const extra[])
{
  backend_names names = { qn_context_describe(s->ctx)->kind, "" };
  char spec[1100];
  case_list list = { 0 };
  side all, *one = &all;
  result r = { .status = QN_UNSUPPORTED };
  double ratio;
  int sets;
  qn_each_backend(add_backend, &names);
  snprintf(spec, sizeof spec, "%s engine=any", names.text);   /* QUERN_ENGINE pins what is tested, not what measures ceilings */
  if (!names.text[0] || cases_from_text(&list, line) || side_open(&all, spec, extra)) {
    cases_free(&list);
    return 0;
  }
  measure(&one, 1, &list.at[0], &options, &r, &ratio, &sets);
  side_close(&all);
  cases_free(&list);
  return r.status ? 0 : r.ns;
}

void ceiling_for(ceiling *c, const side *s, const problem_cost *cost, const char *const extra[])
{
  const qn_device *device = qn_context_describe(s->ctx);
  bool gpu = strcmp(device->kind, "cpu") != 0;
  char line[160];
  uint32_t dtype = cost->matrix_dtype;
  snprintf(c->kind, sizeof c->kind, "%s", device->kind);
  if (!c->bandwidth) {
    int64_t bytes = gpu ? 1 << 30 : 1 << 26;
    snprintf(line, sizeof line, "copy x=f32/%lld", (long long)(bytes / 4));
    double ns = fastest_ns(s, line, extra);
    c->bandwidth = ns ? 2.0 * (double)bytes / ns : 0;
    if (c->bandwidth)
      printf("ceiling: copy %.0f GB/s                       [--case '%s']\n", c->bandwidth, line);
  }
  if (dtype && !c->matrix[dtype]) {
    int n = !gpu ? 1024 : qn_dtype_bytes(dtype) <= 2 ? 8192 : 4096;
    const char *d = qn_dtype_name(dtype);
    /* a CPU multiplies 16-bit numbers in f32, so its ceiling for them is that of f32 */
    if (!gpu && qn_dtype_bytes(dtype) == 2)
      d = "f32";
    snprintf(line, sizeof line, "matmul a=%s/%dx%d b=%s/%dx%d/t", d, n, n, d, n, n);
    double ns = fastest_ns(s, line, extra);
    c->matrix[dtype] = ns ? 2.0 * n * n * n / ns : 0;
    if (ns)
      printf("ceiling: %-4s matrix %.1f GFLOP/s             [--case '%s']\n", qn_dtype_name(dtype), c->matrix[dtype],
             line);
    else
      c->matrix[dtype] = -1;            /* tried, and not available */
  }
}

double ceiling_ns(const ceiling *c, const problem_cost *cost, const char **binds)
{
  double copy = c->bandwidth > 0 ? cost->bytes / c->bandwidth : 0;
  double rate = cost->matrix_dtype ? c->matrix[cost->matrix_dtype] : 0;
  double matrix = rate > 0 ? cost->flops / rate : 0;
  *binds = copy == 0 && matrix == 0 ? "" : matrix > copy ? "matrix" : "copy";
  return matrix > copy ? matrix : copy;
}
