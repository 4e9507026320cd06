/* probe_backend.c -- engines that log what they are offered, for t_regions. QUERN_PROBE="name=ops@ns/last ..." (ops: a set of the ops
 * offered, in hex; 0: refuse; last: in place of ns, where the first op's result lies channels last) says what each answers; an engine that
 * it does not name refuses. They compute nothing, but check which results have memory. */
#include <quern/kit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const qn_host *host;

static const char *name_of(uint32_t op)
{
  switch (op) {
  case QN_OP_MATMUL: return "matmul";
  case QN_OP_CONV_FORWARD: return "conv";
  case QN_OP_RMS_NORM: return "norm";
  case QN_OP_SOFTMAX: return "softmax";
  case QN_OP_REDUCE_SUM: return "sum";
  case QN_OP_PERMUTE: return "permute";
  case QN_OP_ADD: return "add";
  case QN_OP_MUL: return "mul";
  case QN_OP_RELU: return "relu";
  case QN_OP_GELU: return "gelu";
  case QN_OP_SILU: return "silu";
  case QN_OP_SIGMOID: return "sigmoid";
  default: return "other";
  }
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  char line[1024], key[64];
  const char *answers = host->option("PROBE"), *at;
  int n = snprintf(line, sizeof line, "%s:", p->engine->name);
  const bool quiet = answers && strstr(answers, " quiet");
  for (uint32_t i = 0; i < r->n_ops && n < 1000 && !quiet; i++)
    n += snprintf(line + n, sizeof line - (size_t)n, " %s", name_of(r->op[i].op));
  for (uint32_t v = 0; v < r->n_values && r->view && n < 1000; v++)
    if (r->value[v].flags & QN_VALUE_VIEW) n += snprintf(line + n, sizeof line - (size_t)n, " %u<%d", v, (int)r->view[v].of);
  if (!quiet) host->log(QN_LOG_INFO, line);
  p->refusal = (qn_refusal){ .rule = "the test says no" };      /* cheaply: t_regions counts the time */
  snprintf(key, sizeof key, " %s=", p->engine->name);
  if (!answers || !(at = strstr(answers, key))) return QN_UNSUPPORTED;
  char *end;
  p->taken = strtoull(at + strlen(key), &end, 16);
  if (*end == '@') p->estimate = strtod(end + 1, &end);
  const qn_node *op = &r->op[0];
  if (*end == '/' && qn_is_channels_last(&r->value[op->arg[op->first[op->n_inputs]]])) p->estimate = strtod(end + 1, NULL);
  if (!p->taken) return QN_UNSUPPORTED;
  p->word[0] = p->taken;
  p->word[1] = r->n_values < 64 ? r->n_values : 64;
  for (uint32_t v = 0; v < p->word[1]; v++)
    if (r->value[v].producer >= 0 && p->taken >> r->value[v].producer & 1 && !(r->value[v].flags & QN_VALUE_VIEW)) {
      p->word[2] |= UINT64_C(1) << v;
      if (qn_must_write(r, p->taken, (int32_t)v)) p->word[3] |= UINT64_C(1) << v;
    }
  return QN_OK;
}

/* Results that must be written have memory, and no others. */
static qn_status run(const qn_prepared *p, const qn_launch *l)
{
  for (uint64_t v = 0; v < p->word[1]; v++)
    if (p->word[2] >> v & 1 && (l->ptr[v] != NULL) != (p->word[3] >> v & 1))
      return host->error(QN_INTERNAL, l->ptr[v] ? "a value inside has memory" : "a result has no memory");
  host->log(QN_LOG_INFO, "it runs");
  return QN_OK;
}

#define PATTERN(name, ...) static const qn_pattern name = { .struct_size = sizeof(qn_pattern), __VA_ARGS__ }
static const uint32_t attends[] = { QN_OP_MATMUL, QN_OP_SOFTMAX, 0 }, norms[] = { QN_OP_RMS_NORM, 0 };
static const uint32_t anything[] = { QN_OP_MATMUL, QN_OP_SOFTMAX, QN_OP_RMS_NORM, QN_OP_PERMUTE, 0 };
PATTERN(greedy, .after = attends, .closing = 4);
PATTERN(normed, .before = norms);
PATTERN(statistics, .closing = 2);
PATTERN(gated, .siblings = 1);
PATTERN(attention, .siblings = 2, .after = attends, .before = norms, .views = 1);
PATTERN(permissive, .siblings = 2, .after = anything, .before = anything, .views = 1, .closing = 2);

#define ROW(name_, op_, pattern_) \
  { .name = name_, .op = op_, .traits = QN_TRAIT_DETERMINISTIC, .pattern = pattern_, .prepare = prepare, .run = run }
static const qn_engine row[] = {
  ROW("plain", QN_OP_MATMUL, NULL), ROW("greedy", QN_OP_MATMUL, &greedy), ROW("normed", QN_OP_MATMUL, &normed),
  ROW("gated", QN_OP_MATMUL, &gated), ROW("attention", QN_OP_MATMUL, &attention), ROW("permissive", QN_OP_MATMUL, &permissive),
  ROW("conv", QN_OP_CONV_FORWARD, NULL), ROW("statistics", QN_OP_CONV_FORWARD, &statistics), ROW("norm", QN_OP_RMS_NORM, NULL),
  ROW("permissive_norm", QN_OP_RMS_NORM, &permissive), ROW("permissive_softmax", QN_OP_SOFTMAX, &permissive),
  ROW("moved", QN_OP_PERMUTE, NULL), ROW("any", QN_FAMILY_POINTWISE | QN_ANCHOR_FAMILY, NULL),
};
static const qn_engine_list list = { row, sizeof row / sizeof *row };
static const qn_engine_list *const lists[] = { &list, NULL };
static const char *const variables[] = { "QUERN_PROBE", "what each engine answers", NULL };
static const qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine), .version = "1", .device_kind = "cpu",
  .name = "probe", .engines = lists, .variables = variables,
};

QN_EXPORT qn_status QN_BACKEND_ENTRY(probe)(const qn_host *h, const qn_backend **out)
{
  host = h;
  *out = &backend;
  return QN_OK;
}
