/* null_backend.c -- an engine that does nothing, in an ordinary table: the time of a call is then dispatch alone.
 * quern-bench --overhead loads it. It uses the CPU's device. */
#include <quern/backend.h>

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  (void)request, (void)p;
  return QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  (void)p, (void)launch;
  return QN_OK;
}

static const qn_engine rows[] = {
  { .name = "nothing", .op = QN_OP_CONV_FORWARD, .class_ = QN_CLASS_TUNED, .prepare = prepare, .run = run },
};
static const qn_engine_list list = { rows, sizeof rows / sizeof rows[0] };
static const qn_engine_list *const lists[] = { &list, NULL };

static const qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine),
  .name = "null", .version = QN_VERSION, .device_kind = "cpu", .engines = lists,
};

QN_EXPORT qn_status QN_BACKEND_ENTRY(null)(const qn_host *host, const qn_backend **out);
QN_EXPORT qn_status QN_BACKEND_ENTRY(null)(const qn_host *host, const qn_backend **out)
{
  if (host->abi_major != QN_ABI_MAJOR)
    return QN_NO_BACKEND;
  *out = &backend;
  return QN_OK;
}
