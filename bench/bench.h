/* bench.h -- shared by the files of quern-bench. Read from top to bottom it is the program:
 *   sides (what is compared) -> cases (on what) -> counts -> measurement -> ceilings -> report */
#ifndef QUERN_BENCH_H
#define QUERN_BENCH_H
#include <stdbool.h>
#include <stdio.h>
#include <quern/tools.h>

/* ---- side.c: a backend or an engine to measure --------------------------------------------- */

/* Written "backend[/engine[:variant]] [option=value]...", for instance "cuda/wgmma:128x256_c2 math=tf32". */
typedef struct side {
  const char *spec;                     /* as the user wrote it */
  char       *words;                    /* a modifiable copy, into which the pointers below point */
  const char *backend;                  /* the context's option; NULL: its default */
  const char *engine;                   /* pinned for those ops of each case that it has; NULL: free choice */
  const char *engine_backend;           /* the pinned engine's backend */
  qn_context *ctx;
} side;

/* Returns 0, or after printing an error the program's exit status. extra: more options, ended by NULL. */
int  side_open(side *s, const char *spec, const char *const extra[]);
void side_close(side *s);
/* Pins the side's engine for the case; QN_UNSUPPORTED, with a sentence in why, if it has none for it. */
qn_status side_pin(side *s, const qn_graph_view *g, char *why, size_t bytes);
/* The path of one of the bench's own modules ("null", "openblas"); false: not found. */
bool own_module(const char *name, char *path, size_t bytes);

/* ---- cases.c: the problems to measure -------------------------------------------------------- */

typedef struct bench_case {
  qn_graph   *graph;
  char       *text;                     /* canonical lines, joined by " | " */
  char       *name;                     /* from the setting name=, else the text */
  const char *file;
  int         line;
  long        count;                    /* occurrences in the trace; 1 in a workload */
} bench_case;
typedef struct case_list { bench_case *at; int n, cap; } case_list;

/* Append; return 0, or after printing an error the exit status. merge: equal problems are counted as one. */
int  cases_from_file(case_list *list, const char *path, bool merge);
int  cases_from_text(case_list *list, const char *text);
void cases_free(case_list *list);
bool case_wanted(const bench_case *c, const char *filter);        /* its name or text contains the filter; NULL: all do */

/* ---- flops.c: a problem's cost, from its shapes ---------------------------------------------- */

typedef struct problem_cost {
  double   flops;                       /* a multiply-add counts two */
  double   bytes;                       /* each input read once, each output written once */
  uint32_t matrix_dtype;                /* of the contraction's operands; 0: there is none */
} problem_cost;
problem_cost cost_of(const qn_graph_view *g);

/* ---- measure.c ------------------------------------------------------------------------------- */

typedef struct measure_options {
  double seconds;                       /* per case, for both sides together */
  bool   launches;                      /* time single plan_execute calls, not replays of a recording */
} measure_options;

/* The result of one side on one case. */
typedef struct result {
  qn_status status;
  char      why[512];                   /* of a failure */
  char      engine[160];                /* "cpu_ref/im2col_gemm + cpu_ref/tiled" */
  uint32_t  class_;                     /* the worst of the parts' QN_CLASS_... */
  int       samples;
  double    ns, ns_q1, ns_q3;           /* of one execution: median and quartiles */
  double    first_ms;                   /* plan and first execution, cold */
} result;

/* Measures n sides (1 or 2) alternately, on the same data. *ratio: the median of time 1 / time 0 over pairs; 0 if
 * either has no time. *sets: how many sets of buffers were rotated. */
void measure(side *const s[], int n, const bench_case *c, const measure_options *o, result r[], double *ratio, int *sets);
double median(double *v, int n);        /* sorts v */
double quantile(const double *sorted, int n, double q);

/* ---- ceiling.c: the device's attainable rates ------------------------------------------------- */

typedef struct ceiling {
  char   kind[16];
  double bandwidth;                     /* of a large copy, bytes read and written per ns */
  double matrix[QN_DTYPE_COUNT];        /* flops per ns of a large matmul, by dtype; 0: not measured */
} ceiling;
/* Measures what the case needs and is missing, using every backend of the side's device kind. */
void   ceiling_for(ceiling *c, const side *s, const problem_cost *cost, const char *const extra[]);
/* The least time in ns that the ceiling allows, and which limit binds ("copy", "matrix"). 0: unknown. */
double ceiling_ns(const ceiling *c, const problem_cost *cost, const char **binds);

/* ---- table.c, plot.c ------------------------------------------------------------------------- */

typedef struct row {
  const bench_case *c;
  const char  *op, *family;             /* of the anchor: the first contraction, else the first op that is not pointwise */
  problem_cost cost;
  double       floor_ns;
  const char  *binds;
  int          sets, n;
  result       r[2];
  double       ratio;
} row;
void report_head(const side *const s[], int n);
void report_row(const row *r);
void report_groups(const row *rows, int n_rows, const side *const s[], int n);
bool report_csv(const char *path, const row *rows, int n_rows, const side *const s[], int n);
bool writable(const char *option, const char *path);      /* as far as can be checked in advance; else prints an error */
bool plottable(const char *path);
bool plot(const char *path, const row *rows, int n_rows, const side *const s[], int n);

/* ---- ordinary.c, cliffs.c: how far ordinary problems are from the ceiling ---------------------- */

/* A random problem line of template i, 0 <= i < ordinary_count(). It may break a rule of its op. */
int  ordinary_count(void);
void ordinary_line(int i, uint64_t *state, char *line, size_t bytes);
/* Appends n problems that suit the side's device; returns 0 or the exit status. */
int  cliffs_draw(case_list *list, const side *s, int n, uint64_t seed);
/* Sorts the rows and prints the worst, with the refusals of the engines that did not take them. */
void cliffs_report(row *rows, int n_rows, const side *s);

/* ---- selected.c: who is selected, without a device ---------------------------------------------- */

/* backend: "" for the default; model: NULL for the live device. Returns the exit status. */
int selected_report(const case_list *list, const char *filter, const char *backend, const char *model, const char *const extra[]);

/* ---- busy.c ---------------------------------------------------------------------------------------- */

typedef struct busy { int processors; double worked, own, wall; } busy;
/* Unless OMP_WAIT_POLICY is set: sets it to passive, and starts the program anew. */
void   threads_sleep(char **argv);
void   busy_begin(busy *b);
double busy_others(const busy *b);      /* processors that others used since then, on average */

/* ---- ranks.c ----------------------------------------------------------------------------------- */

int bench_ranks(const char *backend, const char *filter, size_t up_to, bool direct, bool overlaps);      /* one rank; exit status */

/* ---- direct.c ---------------------------------------------------------------------------------- */

int       direct_open(qn_group *group);                 /* of all ranks; 1: it cannot be, as was said */
qn_status direct_call(uint32_t op, const char *x, char *y, size_t bytes, void *stream);      /* f32; bytes: of the larger tensor */
void      direct_close(void);

/* ---- overhead.c -------------------------------------------------------------------------------- */

int overhead(const char *backend);      /* exit status */
int first_result(const char *backend);  /* what overhead runs in a process of its own */

#endif
