/* random.c -- random problems from the schema: --random N --seed S. Each is written as a problem line, so it is its own
 * repro. Sizes are near tile edges; now and then a dim is 1, a tensor transposed, an attribute unusual. Here: products,
 * convolutions, windows, pointwise ops and random numbers; the rest in random_families.c, graphs in random_graph.c. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

int64_t qc_roll(struct qc_dice *d, int64_t sides)
{
  return (int64_t)(qc_hash(d->seed, 4242, d->n++) % (uint64_t)sides);
}

static int64_t size(struct qc_dice *d, int64_t most)
{
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 128, 129};
  int64_t s;
  do
    s = sizes[qc_roll(d, sizeof sizes / sizeof *sizes)];
  while (s > most);
  return s;
}

const char *qc_random_float(struct qc_dice *d)
{
  static const char *const names[] = {"f32", "f32", "f16", "bf16", "f64"};
  return names[qc_roll(d, 5)];
}

static char *dims(const int64_t *dim, int rank)
{
  char *text = strdup("");
  for (int k = 0; k < rank; k++) {
    char *longer = qc_format("%s%s%lld", text, k ? "x" : "", (long long)dim[k]);
    free(text);
    text = longer;
  }
  return text;
}

/* dtype/dims, sometimes with another layout or alignment */
static char *tensor(struct qc_dice *d, const char *dtype, const int64_t *dim, int rank)
{
  char *shape = dims(dim, rank), *text;
  const char *layout = "";
  if (rank == 2 && qc_roll(d, 4) == 0)
    layout = "/t";
  if (rank == 4 && qc_roll(d, 3) == 0)
    layout = "/nhwc";
  uint32_t bytes = !strcmp(dtype, "f64") ? 8 : !strcmp(dtype, "f32") ? 4 : 2;
  if (qc_roll(d, 5) == 0)
    text = qc_format("%s/%s%s@%u", dtype, shape, layout, bytes);
  else
    text = qc_format("%s/%s%s", dtype, shape, layout);
  free(shape);
  return text;
}

static char *matmul(struct qc_dice *d)
{
  int rank = 2 + (int)qc_roll(d, 3);
  int64_t a[4], b[4], y[4], m = size(d, 129), n = size(d, 129), k = size(d, 129);
  for (int i = 0; i < rank - 2; i++) {
    y[i] = 1 + qc_roll(d, 3);
    a[i] = qc_roll(d, 4) ? y[i] : 1;
    b[i] = a[i] == 1 ? y[i] : qc_roll(d, 4) ? y[i] : 1;
  }
  a[rank - 2] = y[rank - 2] = m;
  a[rank - 1] = b[rank - 2] = k;
  b[rank - 1] = y[rank - 1] = n;
  const char *t = qc_random_float(d);
  char *ta = tensor(d, t, a, rank), *tb = tensor(d, t, b, rank), *tc = tensor(d, t, y, rank);
  bool c = qc_roll(d, 3) == 0, bias = qc_roll(d, 3) == 0, alpha = qc_roll(d, 3) == 0;
  char *line = qc_format("matmul a=%s b=%s%s%s%s%s", ta, tb, c ? " c=" : "", c ? tc : "", alpha ? " alpha=-0.5" : "",
                         c && qc_roll(d, 2) ? " beta=2" : "");
  if (bias) {
    char *longer = qc_format("%s bias=%s/%lld", line, t, (long long)n);
    free(line);
    line = longer;
  }
  free(ta);
  free(tb);
  free(tc);
  return line;
}

/* A window that fits, in `spatial` dims: input, output and attribute texts. */
struct geometry { int64_t in[3], out[3], window[3]; char attr[256]; };

static void make_geometry(struct qc_dice *d, struct geometry *g, int spatial, bool pooling)
{
  char stride[64] = "", dilation[64] = "", pad[64] = "";
  for (int k = 0; k < spatial; k++) {
    int64_t w = 1 + qc_roll(d, 4), s = 1 + qc_roll(d, 3), dil = qc_roll(d, 4) ? 1 : 2, reach = dil * (w - 1) + 1;
    int64_t before = pooling ? qc_roll(d, w) : qc_roll(d, 3), after = pooling ? qc_roll(d, w) : qc_roll(d, 3);
    int64_t in = reach + qc_roll(d, spatial == 1 ? 40 : 12);
    g->in[k] = in;
    g->window[k] = w;
    g->out[k] = (in + before + after - reach) / s + 1;
    const char *comma = k ? "," : "";
    snprintf(stride + strlen(stride), sizeof stride - strlen(stride), "%s%lld", comma, (long long)s);
    snprintf(dilation + strlen(dilation), sizeof dilation - strlen(dilation), "%s%lld", comma, (long long)dil);
    snprintf(pad + strlen(pad), sizeof pad - strlen(pad), "%s%lld:%lld", comma, (long long)before, (long long)after);
  }
  snprintf(g->attr, sizeof g->attr, "stride=%s dilation=%s pad=%s", stride, dilation, pad);
}

static char *conv(struct qc_dice *d)
{
  struct geometry g;
  int spatial = 1 + (int)qc_roll(d, 3);
  make_geometry(d, &g, spatial, false);
  int64_t groups = qc_roll(d, 3) ? 1 : 1 + qc_roll(d, 4), c = (1 + qc_roll(d, 9)) * groups, k = (1 + qc_roll(d, 9)) * groups;
  int64_t x[5] = {1 + qc_roll(d, 3), c}, w[5] = {k, c / groups}, y[5] = {x[0], k};
  memcpy(x + 2, g.in, sizeof g.in);
  memcpy(w + 2, g.window, sizeof g.window);
  memcpy(y + 2, g.out, sizeof g.out);
  const char *t = qc_random_float(d);
  char *tx = tensor(d, t, x, spatial + 2), *tw = tensor(d, t, w, spatial + 2), *ty = tensor(d, t, y, spatial + 2), *line;
  switch (qc_roll(d, 3)) {
  case 0:  line = qc_format("conv_backward_data dy=%s w=%s dx=%s %s groups=%lld", ty, tw, tx, g.attr, (long long)groups); break;
  case 1:  line = qc_format("conv_backward_filter x=%s dy=%s dw=%s %s groups=%lld", tx, ty, tw, g.attr, (long long)groups); break;
  default: line = qc_format("conv_forward x=%s w=%s y=%s %s groups=%lld", tx, tw, ty, g.attr, (long long)groups);
  }
  free(tx);
  free(tw);
  free(ty);
  return line;
}

static char *pool(struct qc_dice *d)
{
  struct geometry g;
  int spatial = 1 + (int)qc_roll(d, 3);
  make_geometry(d, &g, spatial, true);
  int64_t x[5] = {1 + qc_roll(d, 3), 1 + qc_roll(d, 20)}, y[5] = {x[0], x[1]};
  memcpy(x + 2, g.in, sizeof g.in);
  memcpy(y + 2, g.out, sizeof g.out);
  const char *t = qc_random_float(d);
  char *tx = tensor(d, t, x, spatial + 2), *ty = tensor(d, t, y, spatial + 2), *w = dims(g.window, spatial), *line;
  for (char *s = w; *s; s++)
    *s = *s == 'x' ? ',' : *s;
  switch (qc_roll(d, 4)) {
  case 0:  line = qc_format("pool_max x=%s y=%s window=%s %s", tx, ty, w, g.attr); break;
  case 1:  line = qc_format("pool_average x=%s y=%s window=%s %s include_pad=%d", tx, ty, w, g.attr, (int)qc_roll(d, 2)); break;
  case 2:  line = qc_format("pool_average_backward dy=%s dx=%s window=%s %s include_pad=%d", ty, tx, w, g.attr, (int)qc_roll(d, 2)); break;
  default: line = qc_format("pool_max_backward dy=%s x=%s dx=%s window=%s %s", ty, tx, tx, w, g.attr);
  }
  free(tx);
  free(ty);
  free(w);
  return line;
}

/* One operand and one result of the same dims, or with an axis attribute. */
static char *along_axis(struct qc_dice *d)
{
  static const char *const ops[] = {"softmax", "log_softmax", "reduce_sum", "reduce_mean", "reduce_max", "reduce_min",
                                    "reduce_norm1", "reduce_norm2", "reduce_amax"};
  int rank = 1 + (int)qc_roll(d, 4);
  int64_t dim[4];
  for (int k = 0; k < rank; k++)
    dim[k] = size(d, rank > 2 ? 17 : 129);
  char *x = tensor(d, qc_random_float(d), dim, rank);
  char *line = qc_format("%s x=%s axis=%lld", ops[qc_roll(d, sizeof ops / sizeof *ops)], x, (long long)qc_roll(d, rank));
  free(x);
  return line;
}

/* A pointwise op of the schema whose operands are all floats. */
static char *pointwise(struct qc_dice *d)
{
  const qn_op_info *op;
  bool fits;
  do {
    int n = 0;
    while (qn_op_at(n))
      n++;
    op = qn_op_at((int)qc_roll(d, n));
    fits = op->family == QN_FAMILY_POINTWISE && op->kind != QN_OP_CAST;
    for (uint32_t r = 0; r < op->n_roles; r++)
      fits &= (op->role[r].class_ != 'b' || r >= op->n_inputs) && op->role[r].class_ != 'd';
  } while (!fits);
  int rank = 1 + (int)qc_roll(d, 4);
  int64_t dim[4];
  for (int k = 0; k < rank; k++)
    dim[k] = size(d, rank > 2 ? 17 : 129);
  char *line = strdup(op->name);
  const char *t = qc_random_float(d);
  for (uint32_t r = 0; r < op->n_inputs; r++) {
    int64_t own[4];
    for (int k = 0; k < rank; k++)
      own[k] = r && qc_roll(d, 5) == 0 ? 1 : dim[k];
    char *x = tensor(d, t, own, rank), *longer = qc_format("%s %s=%s", line, op->role[r].name, x);
    free(x);
    free(line);
    line = longer;
  }
  return line;
}

/* Random numbers and dropout. */
static char *chance(struct qc_dice *d)
{
  static const char *const ps[] = {"0.5", "0.1", "0.9", "0", "1"};
  int rank = 1 + (int)qc_roll(d, 4), kind = (int)qc_roll(d, 5);
  int64_t dim[4], n = 1;
  for (int k = 0; k < rank; k++)
    n *= dim[k] = size(d, rank > 2 ? 17 : 129);
  const char *t = qc_random_float(d), *p = ps[qc_roll(d, 5)], *key = qc_roll(d, 3) ? "seed=42 offset=i64" : "seed=i64";
  char *x = tensor(d, t, dim, rank), *line;
  switch (kind) {
  case 0:  line = qc_format("rng_uniform %s y=%s%s", key, x, qc_roll(d, 2) ? "" : " min=-1 max=0.7"); break;
  case 1:  line = qc_format("rng_normal %s y=%s%s", key, x, qc_roll(d, 2) ? "" : " mean=3 deviation=0.1"); break;
  case 2:  line = qc_format("rng_bernoulli %s y=%s p=%s", key, x, p); break;
  case 3:  line = qc_format("dropout x=%s %s p=%s%s", x, key, p, qc_roll(d, 2) ? " mask=?" : ""); break;
  default: line = qc_roll(d, 2) ? qc_format("dropout_backward dy=%s mask=u8/%lld p=%s", x, (long long)(n + 7) / 8, p)
                             : qc_format("dropout_backward dy=%s %s p=%s", x, key, p);
  }
  free(x);
  return line;
}

void qc_random_cases(struct qc_list *list, int n, uint64_t seed)
{
  static char *(*const makers[])(struct qc_dice *) = {matmul, conv, conv, pool, along_axis, chance, pointwise, pointwise, qc_random_graph,
                                                      qc_random_graph, qc_random_family, qc_random_family, qc_random_family,
                                                      qc_random_family};
  struct qc_dice d = {seed, 0};
  int made = 0, refused = 0;
  while (made < n && refused <= n + 10) {
    char *line = makers[qc_roll(&d, sizeof makers / sizeof *makers)](&d);
    if (!line)
      break;
    char *own = strchr(line, ';');
    char *settings = qc_format("seed=%llu%s", (unsigned long long)(seed + (uint64_t)made), own ? own + 1 : "");
    if (own)
      *own = '\0';
    qn_graph *graph;
    if (qn_graph_parse(line, &graph)) {
      refused++;
    } else {
      char *text = qc_print(graph);
      qc_list_add(list, QC_CASE, text, settings, "random");
      free(text);
      qn_graph_destroy(graph);
      made++;
    }
    free(settings);
    free(line);
  }
  if (refused > n)
    qc_tap_bail(qc_format("random problems are refused more often than not: %s", qn_last_error()));
}
