/* quern-info.c -- what is available and what would be chosen: backends, devices, engines, settings, and for any problem
 * every engine's verdict. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include "info.h"
#include "output.h"

static const char doc[] =
  "Say what Quern finds on this machine and what it would choose.\v"
  "Commands:\n"
  "  list [OPS]  backends, devices, engines by op (the default)\n"
  "  config      each setting, its value in force and where that came from\n"
  "  doctor      what commonly goes wrong: folders, permissions, libraries, drivers\n"
  "  ops [OPS]   every op with its roles, attributes and formula\n\n"
  "OPS is a family or a part of a name, as softmax: those ops alone.\n\n"
  "Exit status: 0 all is well; 1 no engine takes the problem, its gradient is not known, or doctor found a fault; 2 the options, a setting "
  "or a problem line are wrong, or standard output cannot be written.";

enum { KEY_EXPLAIN = 1000, KEY_MODEL, KEY_GRADIENT, KEY_BY };

static const struct argp_option option_table[] = {
  { "explain",      KEY_EXPLAIN, "LINE", 0, "every engine's verdict on a problem line or a graph (lines joined by |); - reads all "
                                            "those of standard input", 0 },
  { "device-model", KEY_MODEL,   "M",    0, "explain as on that device, which need not be here: h200, a100, t4, generic", 0 },
  { "gradient",     KEY_GRADIENT, "LINE", 0, "a graph with its backward half: the gradient of its output called loss, or of the first of "
                                             "one element", 0 },
  { "by",           KEY_BY,      "NAMES", 0, "the gradient by these values, as w,b; all inputs that are floats", 0 },
  { "backend",      'b',         "LIST", 0, "as QUERN_BACKEND", 0 },
  { "set",          's',         "K=V",  0, "any other option, as engine=matmul=direct; may be repeated", 0 },
  { 0 }
};

typedef struct settings {
  const char *command, *only, *line, *model, *gradient, *by;
  const char *option[INFO_MAX_OPTIONS + 1];
  char        backend[4096];
  int         n_options;
} settings;

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  settings *s = state->input;
  if ((key == 'b' || key == 's') && s->n_options == INFO_MAX_OPTIONS)
    argp_error(state, "too many options");
  switch (key) {
  case KEY_EXPLAIN:
    if (s->line)
      argp_error(state, "one --explain at a time; --explain - reads all lines of standard input");
    s->line = text;
    break;
  case KEY_MODEL:    s->model = text; break;
  case KEY_GRADIENT: s->gradient = text; break;
  case KEY_BY:       s->by = text; break;
  case 'b':
    snprintf(s->backend, sizeof s->backend, "backend=%s", text);
    s->option[s->n_options++] = s->backend;
    break;
  case 's':
    if (!strchr(text, '='))
      argp_error(state, "--set wants KEY=VALUE, not %s", text);
    s->option[s->n_options++] = text;
    break;
  case ARGP_KEY_ARG:
    if (s->only)
      argp_error(state, "one command at a time, and one word after it: %s %s or %s", s->command, s->only, text);
    *(s->command ? &s->only : &s->command) = text;
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static void print_version(FILE *f, struct argp_state *state)
{
  (void)state;
  fprintf(f, "quern-info (Quern) %s\n", qn_version());
}

int info_fail(qn_status status)
{
  const char *sentence = qn_last_error();
  fprintf(stderr, "quern-info: %s\n", *sentence ? sentence : qn_status_text(status));
  return status == QN_UNSUPPORTED || status == QN_DEVICE ? 1 : 2;
}

/* Makes and drops a context with these options: reports bad settings in the library's own words. */
int info_check_settings(const char *const options[])
{
  qn_context *ctx;
  qn_status status = qn_context_create(options, &ctx);
  if (status)
    return info_fail(status);
  qn_context_destroy(ctx);
  return 0;
}

int main(int argc, char **argv)
{
  static const struct { const char *name; int (*run)(const char *const options[], const char *only); bool of_ops; } command[] = {
    { "list", info_list, true }, { "config", info_config, false }, { "doctor", info_doctor, false }, { "ops", info_ops, true },
  };
  settings s = { .command = NULL };
  info_wrap_lines();
  output_guard();
  argp_program_version_hook = print_version;
  argp_err_exit_status = 2;
  argp_parse(&(struct argp){ option_table, parse_option, "[COMMAND [OPS]]", doc, NULL, NULL, NULL }, argc, argv, 0, NULL, &s);
  if (s.line && s.command) {
    fprintf(stderr, "quern-info: --explain or the command %s, not both\n", s.command);
    return 2;
  }
  if (s.model && !s.line) {
    fprintf(stderr, "quern-info: --device-model goes with --explain; QUERN_DEVICE_MODEL has the rest run as on a model\n");
    return 2;
  }
  if ((s.gradient && (s.line || s.command)) || (s.by && !s.gradient)) {
    fprintf(stderr, "quern-info: --by goes with --gradient, and --gradient alone\n");
    return 2;
  }
  if (s.gradient)
    return info_gradient(s.gradient, s.by);
  if (s.line)
    return info_explain(s.option, s.model, s.line);
  for (size_t i = 0; i < sizeof command / sizeof command[0]; i++) {
    if (strcmp(s.command ? s.command : "list", command[i].name))
      continue;
    if (!s.only || command[i].of_ops)
      return command[i].run(s.option, s.only);
    fprintf(stderr, "quern-info: %s takes no further word, such as %s; list and ops do\n", s.command, s.only);
    return 2;
  }
  fprintf(stderr, "quern-info: no command %s; there are list, config, doctor and ops\n", s.command);
  return 2;
}
