/* plugin.c -- a backend that misbehaves as its file name says: t_loader copies it to quern_CASE.so. Also built with other entry
 * names: -DENTRY=quern_plugin_entry_v2 is another ABI major, -DENTRY=quern_plugin is no entry. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <quern/backend.h>

#ifndef ENTRY
#define ENTRY QN_BACKEND_ENTRY(test)
#endif

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  (void)request;
  strcpy(prepared->refusal.rule, "this engine takes nothing");
  return QN_UNSUPPORTED;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  (void)prepared;
  (void)launch;
  return QN_INTERNAL;
}

static const qn_engine rows[] = { { .name = "never", .op = QN_OP_MATMUL, .prepare = prepare, .run = run } };
static const qn_engine no_run[] = { { .name = "never", .op = QN_OP_MATMUL, .prepare = prepare } };
static const qn_engine no_name[] = { { .op = QN_OP_MATMUL, .prepare = prepare, .run = run } };

/* A table of a later minor: longer rows, an unknown op, a longer struct. */
struct later_row { qn_engine row; void *more[4]; };
static const struct later_row later_rows[] = {
  { { .name = "unknown", .op = 999999, .prepare = prepare, .run = run }, { NULL } },
  { { .name = "never", .op = QN_OP_MATMUL, .prepare = prepare, .run = run }, { NULL } },
};

static const qn_engine_list list = { rows, 1 }, no_run_list = { no_run, 1 }, no_name_list = { no_name, 1 },
                            later_list = { (const qn_engine *)later_rows, 2 };
static const qn_engine_list *const lists[] = { &list, NULL }, *const no_run_lists[] = { &no_run_list, NULL },
                            *const no_name_lists[] = { &no_name_list, NULL }, *const later_lists[] = { &later_list, NULL };
static const qn_device_ops empty_device = { .struct_size = sizeof(qn_device_ops) }, short_device = { .struct_size = 24 };
static qn_device_ops torn_device = { .struct_size = sizeof(qn_device_ops) };

static const char *const variables[] = { "QUERN_TEST_SWITCH", "what the test plugin does", NULL };
static const char *const variables_of_failure[] = { "QUERN_TEST_LIBRARY", "where what it lacks lies", NULL };

static struct { qn_backend table; void *more[8]; } later;
static qn_backend table = {
  .struct_size = sizeof(qn_backend), .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine),
  .name = "test", .version = "1", .device_kind = "cpu", .engines = lists, .variables = variables,
};

QN_EXPORT qn_status ENTRY(const qn_host *host, const qn_backend **out);
QN_EXPORT qn_status ENTRY(const qn_host *host, const qn_backend **out)
{
  static const char anchor;
  Dl_info where;
  const char *file = dladdr(&anchor, &where) ? strrchr(where.dli_fname, '/') : NULL;
#define CASE(name) (file && strstr(file, "quern_" #name ".so"))
  *out = &table;
  if (CASE(fails)) {
    table.variables = variables_of_failure;
    return host->error(QN_SYSTEM, "the moon is in the wrong house");
  }
  if (CASE(fails_silently)) return QN_SYSTEM;
  if (CASE(odd_status)) return (qn_status)12345;
  if (CASE(no_table)) *out = NULL;
  if (CASE(short_table)) table.struct_size = 8;
  if (CASE(huge_table)) table.struct_size = 0xffffffffu;
  if (CASE(short_rows)) table.engine_size = 3;
  if (CASE(odd_rows)) table.engine_size = sizeof(qn_engine) + 1;
  if (CASE(no_name)) table.name = NULL;
  if (CASE(bad_name)) table.name = "a/b";
  if (CASE(long_name)) table.name = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
  if (CASE(no_version)) table.version = NULL;
  if (CASE(no_kind)) table.device_kind = NULL;
  if (CASE(no_engines)) table.engines = NULL;
  if (CASE(row_without_run)) table.engines = no_run_lists;
  if (CASE(row_without_name)) table.engines = no_name_lists;
  if (CASE(empty_device)) table.device = &empty_device;
  if (CASE(short_device)) table.device = &short_device;
  if (CASE(torn_device)) {                            /* all required functions of a device, but of the stream group only some */
    memset(&torn_device.count, 1, sizeof torn_device - offsetof(qn_device_ops, count));
    torn_device.stream_wait = NULL;
    table.device = &torn_device;
  }
  if (CASE(torn_waits)) {                             /* events that can be waited for, but not made */
    memset(&torn_device.count, 1, sizeof torn_device - offsetof(qn_device_ops, count));
    torn_device.event_create_untimed = NULL;
    table.device = &torn_device;
  }
  if (CASE(old_minor)) table.abi_minor = 3;             /* its roles have other numbers */
  if (CASE(apart)) table.name = "apart";
  if (CASE(held)) {                                   /* waits for t_loader: a file beside it appears, and is removed */
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.entered", where.dli_fname);
    int fd = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    while (!access(beside, F_OK)) usleep(1000);
    host->log(QN_LOG_WARN, "held");
  }
  if (CASE(unknown_kind)) table.device_kind = "abacus";
  if (CASE(earlier)) {                                /* a shorter table, without variables: what follows is not part of the struct */
    table.struct_size = offsetof(qn_backend, variables);
    table.name = "earlier";
    table.variables = (const char *const *)8;
  }
  if (CASE(later)) {
    later.table = table;
    later.table.struct_size = sizeof later;
    later.table.abi_minor = QN_ABI_MINOR + 7;
    later.table.engine_size = sizeof(struct later_row);
    later.table.name = "later";
    later.table.engines = later_lists;
    *out = &later.table;
  }
  return QN_OK;
}
