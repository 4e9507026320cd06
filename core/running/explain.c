/* explain.c -- every engine's answer on a problem, for the live device or for a device model. */
#include "config.h"
#include "core.h"
#include <string.h>

static qn_status ask_everyone(const qn__planning *pc, const qn_device_ops *ops, const qn_graph *graph)
{
  qn_part **part = NULL;
  qn__views *views = NULL;
  qn_graph *own;
  int n = 0;
  qn_status status = qn_graph_make(&graph->view, &own);
  if (status) return status;
  pc->tuner->layouts(pc, own);
  status = qn__partition(pc, own, &part, &n, &views);
  if (!status) qn__plan_log(pc, ops, own, part, n, views);
  for (int i = 0; i < n && !status; i++) qn__part_free(part[i]);
  if (!status) qn__free(part);
  qn__views_free(views);
  qn_graph_destroy(own);
  return status;
}

static qn_status explain_model(const char *const options[], const char *model, const qn_graph *graph,
                               void (*row)(void *, const qn_verdict *), void *user)
{
  qn__settings s;
  qn__backend **list = NULL, *provider;
  qn__policy *policy = NULL;
  qn_device desc = { .struct_size = sizeof desc, .ordinal = -1 };
  int n;
  qn_status status = qn__settings_read(&s, options);
  if (status) return status;
  qn__backends_also(&s);
  status = qn__device_choose_model(&s, model, &list, &n, &provider);
  if (!status) status = qn__device_model(provider, model, &desc);
  if (!status) status = qn__policy_make(&desc, &s, list, n, &policy);
  if (!status) {
    qn__planning pc = { .device = &desc, .policy = policy, .verdict = row, .user = user, .tuner = &qn__tuning };
    status = ask_everyone(&pc, provider->device, graph);
  }
  qn__policy_free(policy);
  qn__free(list);
  qn__settings_free(&s);
  return status;
}

qn_status qn_explain(const char *const options[], const char *model, const qn_graph *graph,
                     void (*row)(void *user, const qn_verdict *), void *user)
{
  qn_context *ctx;
  uint64_t saved;
  qn_status status = qn__graph_alive(graph);
  if (status) return status;
  if (!row) return qn__fail(QN_BAD_ARGUMENT, "row: is NULL");
  if (model) return explain_model(options, model, graph, row, user);
  if ((status = qn_context_create(options, &ctx))) return status;
  qn__planning pc = { .device = &ctx->dev->desc, .policy = ctx->policy, .ctx = ctx, .verdict = row, .user = user, .tuner = &qn__tuning };
  if (!(status = qn__enter(ctx->dev, &saved))) {
    status = ask_everyone(&pc, ctx->dev->ops, graph);
    qn__leave(ctx->dev, saved);
  }
  qn_context_destroy(ctx);
  return status;
}
