/* conform.h -- shared by the files of quern-conform. Read from top to bottom it follows a case:
 *
 *   line.c             problem lines and settings as text
 *   cases.c, random.c  the list of cases  ->  qc_item
 *   number.c, fill.c   its inputs, element by element from (seed, tensor, index)
 *   oracle.c           each op's f64 twin, run by cpu_ref/direct
 *   bound*.c           how far a result may be from it, by the twin on absolute values and declared numerics
 *   buffer.c           guarded memory for one execution;  run.c  every engine that takes the case
 *   compare.c          the verdict;  worker.c, pipe.c, parent.c, tap.c  its way to standard output
 *
 * Tier X: integer fills whose sums are exact in the accumulator: the result must be the exact value rounded once, bit for
 * bit. Tier B: random fills, judged by the bound. A case without a `fill` gets both.
 *
 * Only the public headers are used: nothing here depends on the insides of libquern or a backend. */
#ifndef QUERN_CONFORM_H
#define QUERN_CONFORM_H
#include <stdbool.h>
#include <stdio.h>
#include <quern/tools.h>

/* ---- main.c: options ---------------------------------------------------------------------- */

enum qc_tier { QC_QUICK, QC_DEFAULT, QC_FULL, QC_LONG };

struct qc_options {
  const char *backend;                  /* one name, in a worker */
  const char *engine;                   /* NULL, or "[op/]name[:variant]": the only one to run */
  const char *filter;                   /* NULL, or a substring or glob of "file op line" */
  const char *line;                     /* --case: run only this */
  const char *model;                    /* NULL, or the device model that the backend is narrowed to */
  const char *cases;                    /* folder of .q files */
  uint64_t    seed;
  /* runs: repetitions for deterministic engines; kills: retire an engine after that many failed cases, 0: never;
   * jobs: workers side by side; variants: a problem meets one in that many of an engine's variants, 0 or 1: all */
  int         tier, random, runs, kills, jobs, variants;
  int         ranks, device;            /* --ranks: of a group, 0: none; and a rank's device, -1: as ever */
  int         stack;                    /* bytes of stack for the library's calls; 0: the worker's own */
  double      time_limit;               /* seconds for one case */
  bool        list, verbose, skips;     /* skips: skipped points are printed too */
};
extern struct qc_options qc_opt;
extern const char *const qc_tiers[];    /* their names */

/* ---- memory.c ----------------------------------------------------------------------------- */

void *qc_alloc(size_t bytes);           /* zeroed; without memory the suite bails out */
char *qc_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- stack.c ------------------------------------------------------------------------------ */

qn_status qc_on_stack(qn_status (*fn)(void *arg), void *arg);       /* fn(arg), on a stack of --stack bytes if that is given */

/* ---- number.c: dtypes as numbers ---------------------------------------------------------- */

bool   qc_is_float(uint32_t dtype);
double qc_decode(uint32_t dtype, const void *p);          /* one element; exact but for i64 beyond 2^53 */
void   qc_encode(uint32_t dtype, double v, void *p);      /* to nearest even; overflow as specified */
double qc_round(uint32_t dtype, double v);                /* encode, then decode */
double qc_unit(uint32_t dtype);                           /* u = 2^-p; 0 for integers */
double qc_half_ulp(uint32_t dtype, double v);             /* u |v|, at least half the least subnormal; 0 for integers */
double qc_largest(uint32_t dtype);                        /* finite; of a float */
double qc_overflow(uint32_t dtype);                       /* magnitudes from here on round to Inf */
bool   qc_overflows(uint32_t dtype, double v);            /* finite but beyond that: in this dtype it becomes Inf, and soon NaN */
double qc_least_normal(uint32_t dtype);                   /* a computed value below it may be 0, which times Inf is NaN */

/* ---- tensors in the suite: packed, last dim fastest ---------------------------------------- */

struct qc_value {
  qn_value q;                           /* as the graph has it */
  char     name[32];
  int64_t  n;                           /* elements */
  void    *raw;                         /* an input as engines get it, in q.dtype */
  double  *y;                           /* floats: the reference value */
  double  *e;                           /* floats: how far a stored y may be from it (QC_ANY: anywhere); 0 for inputs */
  double  *rounded;                     /* floats: y rounded to the dtype; NULL: not kept (qc_round_reference) */
  void    *twin;                        /* integers: the reference; else y */
  void    *stated;                      /* an output whose values the case states (`name.is`): these, in q.dtype; else NULL */
  double   within;                      /* times max(1, |stated|): how far both reference and result may be from them */
  double   literal;                     /* of a host scalar */
  bool     exact;                       /* e is 0 throughout: values computed from it start from y */
  bool     once;                        /* as an output it must be y rounded once, bit for bit */
  bool     bitwise;                     /* an output whose expected bits are in raw */
  bool     is_input, is_output, given;  /* given: `name.is` states the values */
};

#define QC_ANY (-1.0)

int64_t qc_elements(const qn_value *q);         /* its elements */
/* each stride exceeds the reach of all smaller ones: no two elements share an address */
bool    qc_steps_apart(const qn_value *q);
/* Offset in elements of packed index i under q's strides. */
int64_t qc_offset(const qn_value *q, int64_t i);

/* ---- line.c ------------------------------------------------------------------------------- */

/* Copies the value of `key` among settings into `value`; false if absent. */
bool  qc_setting(const char *settings, const char *key, char *value, size_t bytes);
/* Does each setting apply to this problem? If not, why. */
bool  qc_settings_check(const char *settings, const qn_graph *graph, char *why, size_t bytes);
/* The name that settings use for a value: its name in the graph, or its role (numbered in a list). */
void  qc_value_name(const qn_graph_view *view, uint32_t value, char *name, size_t bytes);
uint32_t qc_dtype_named(const char *name, size_t length);       /* 0: none */
char *qc_one_line(const char *lines);   /* ops joined by " | " */
char *qc_print(const qn_graph *graph);
/* An attribute by name, for generators and checks; `absent` if the op has none. */
int64_t qc_attr_int(const qn_op_info *op, const void *attr, const char *name, int i, int after, int64_t absent);

/* An editable copy of a graph view, to be made a graph again. */
struct qc_draft {
  qn_graph_view view;
  qn_value *value;
};
struct qc_draft *qc_draft_of(const qn_graph *graph);
char            *qc_draft_text(const struct qc_draft *d);       /* NULL: not a valid graph; the caller frees */
void             qc_draft_free(struct qc_draft *d);

/* ---- cases.c ------------------------------------------------------------------------------ */

enum qc_kind { QC_CASE, QC_GRAD, QC_ADJOINT, QC_REFUSED, QC_PROBE, QC_POINTER };

struct qc_item {
  int   kind;
  char *line;                           /* canonical problem text, one op a line */
  char *settings;                       /* "seed=7 fill=int" */
  char *file;                           /* "conv.q:12" */
  char *title;                          /* one line: what --case takes */
};
struct qc_list { struct qc_item *item; int n, cap; };

void  qc_cases_load(struct qc_list *list);
void  qc_list_add(struct qc_list *list, int kind, const char *line, const char *settings, const char *file);

/* random.c */
struct qc_dice { uint64_t seed, n; };                   /* n: rolls so far */
int64_t qc_roll(struct qc_dice *dice, int64_t sides);   /* 0 to sides - 1 */
const char *qc_random_float(struct qc_dice *dice);      /* a dtype */
void    qc_random_cases(struct qc_list *list, int n, uint64_t seed);
/* random_families.c */
char   *qc_random_family(struct qc_dice *dice);         /* as qn_random_graph; settings after ";" */
/* random_graph.c */
char   *qc_random_graph(struct qc_dice *dice);          /* the caller frees; NULL: no memory */

/* ---- fill.c ------------------------------------------------------------------------------- */

/* splitmix64's finaliser, twice */
static inline uint64_t qc_mix(uint64_t z)
{
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
static inline uint64_t qc_hash(uint64_t seed, uint64_t tensor, uint64_t i)
{
  return qc_mix(qc_mix(seed * 0x9e3779b97f4a7c15u + tensor + 1) + i * 0x9e3779b97f4a7c15u);
}
/* Fills v->raw; how: see fill.c. range: the largest magnitude of integer fills. False: unknown fill. */
bool qc_fill(struct qc_value *v, const char *how, uint64_t seed, int tensor, int range);
bool qc_fill_is_random(const char *how);        /* independent elements: the square-root law holds */
bool qc_fill_is_special(const char *how);       /* may hold NaN or Inf */
/* Integers of attention: lengths, rising starts, pages, positions, slots, by the role's name. most: what counts what they count. */
bool qc_fill_places(struct qc_value *v, const char *role, int64_t most, uint64_t seed);
/* That `most`, from the values of an op's roles, indexed by role. */
int64_t qc_places(const qn_op_info *op, struct qc_value *const by_role[], const char *role);
/* Indices for pool_max_backward: a random tap of each window, now and then none. */
void qc_fill_taps(struct qc_value *indices, const qn_op_info *op, const void *attr, const qn_value *dx, uint64_t seed);

/* ---- oracle.c: one op's f64 twin ----------------------------------------------------------- */

struct qc_node;
struct qc_twin;
struct qc_twin *qc_twin_make(const struct qc_node *n);
struct qc_twin *qc_twin_absolute(const struct qc_node *n);      /* literals of the line lose their sign */
void            qc_twin_free(struct qc_twin *t);
/* in, out: one for each of the op's inputs and outputs, in order; NULL: the value's own twin. */
void            qc_twin_run(struct qc_twin *t, const void *const *in, void *const *out);
/* A transform moves bits: finds the expected bits of its output, by moving element numbers, and stores them in raw. */
void            qc_transform_bits(struct qc_node *n);
/* Quantization is defined bit by bit: its reference is `direct` on the problem itself. */
void            qc_native_bits(struct qc_node *n);

/* ---- the reference of a case --------------------------------------------------------------- */

struct qc_node {
  const qn_op_info *op;
  const void *attr;
  qn_node   node;
  uint32_t  compute;                    /* QN_F64, QN_F32 or an integer dtype */
  int       n_in, n_out;
  struct qc_value *in[64], *out[64];
  int       in_role[64], out_role[64];
  struct qc_twin *twin, *absolute;
  double   *s;                          /* the op on absolute values; NULL until needed */
  double    divisor;                    /* that s was divided by: the sum's magnitude is their product */
  double    n_terms;                    /* of each sum */
};

enum { QC_MAX_POINTERS = 128, QC_MAX_OPS = 64 };      /* of a problem; more are refused */

struct qc_problem {
  qn_graph *graph;
  const qn_graph_view *view;
  struct qc_value *value;
  struct qc_node  *node;
  bool      random, special, integers;  /* of the current fill */
  struct qc_bounds *bounds, *bound;     /* those of the current fill, and that whose e the values have; NULL: none yet (bound.c) */
};

struct qc_problem *qc_problem_make(const char *lines, char *why, size_t bytes);
void               qc_problem_free(struct qc_problem *p);
struct qc_value   *qc_role(const struct qc_node *node, const char *role);      /* NULL: absent */
/* Fills inputs and computes every y. */
bool               qc_problem_fill(struct qc_problem *p, const char *settings, const char *how, uint64_t seed,
                                   char *why, size_t bytes);
bool               qc_is_vouched_for(const struct qc_problem *p, uint64_t traits);     /* are the inputs what such an engine vouches for? */

/* ---- bound*.c ------------------------------------------------------------------------------ */

/* Sets e and exact of every computed value, for a plan whose parts declare these numerics; once for engines that declare the same. */
void   qc_bound(struct qc_problem *p, const qn_numerics *parts, int n_parts);
void   qc_bounds_free(struct qc_problem *p);    /* when a fill ends */
struct qc_numerics { const qn_numerics *part; int n; bool random, special; };      /* the parts'; the fill's */
double qc_roundings(double n);                                  /* that reach one term of a sum of n */
/* The coefficient of S for a sum of n terms. */
double qc_sum_error(const struct qc_numerics *k, uint32_t compute, double n);
void   qc_bound_counted_sum(struct qc_node *n, const struct qc_numerics *k);   /* sums whose terms are the inputs themselves */
/* e = the twin on |inputs| + e, less the twin on |inputs|: the effect of inexact inputs on a multilinear op. Adds to out->e. */
void   qc_propagate_abs(struct qc_node *n);
double *qc_abs_run(struct qc_node *n, bool with_e);             /* the twin on |inputs| (+ e); the caller frees */
bool   qc_inputs_exact(const struct qc_node *n);
#define QC_MANY_BITS 99
int    qc_fraction_bits(const double *v, int64_t n);            /* fraction bits that all elements need, at most QC_MANY_BITS */
/* Winograd's condition sum, which has its own shape (bound_winograd.c). */
double *qc_winograd_sum(struct qc_node *n, int tile, int filter);

/* ---- compare.c ----------------------------------------------------------------------------- */

struct qc_verdict {
  int64_t failed, total, first, worst;  /* element indices */
  double  ratio, got, want, bound;      /* of the worst */
  bool    vacuous, undecided;           /* vacuous: the bound excludes nothing useful; undecided: and asks nothing of most elements */
};
/* raw: packed results in v's dtype. strict_zero: the sign of zero counts. */
/* Keeps y rounded to the dtype, for all comparisons until the next fill. */
void qc_round_reference(struct qc_value *v);
void qc_compare(const struct qc_value *v, const void *raw, bool strict_zero, struct qc_verdict *out);
/* The same against the values that the case states; raw NULL: of the reference. */
void qc_compare_stated(const struct qc_value *v, const void *raw, struct qc_verdict *out);
bool qc_element_ok(uint32_t dtype, double got, double want, double e, bool once, bool strict_zero, double *ratio);

/* ---- buffer.c ------------------------------------------------------------------------------ */

struct qc_buffer;
enum { QC_AT_END = 0, QC_AT_START = 1 };        /* the side of a CPU buffer that is adjacent to a protected page */
struct qc_buffer *qc_buffer_make(qn_context *ctx, const qn_value *q, int place, uint64_t seed);
/* 256-byte aligned; only the first `used` bytes may be written. */
struct qc_buffer *qc_buffer_bytes(qn_context *ctx, size_t bytes, size_t used, int place, uint64_t seed);
void   qc_buffer_free(struct qc_buffer *b);
void  *qc_buffer_pointer(struct qc_buffer *b);
void   qc_buffer_write(struct qc_buffer *b, const void *raw);   /* packed elements to their places; NULL: leave the poison */
void   qc_buffer_zero(struct qc_buffer *b);
/* Reads packed elements back. False: something else changed, see why. writable: elements may differ. */
bool   qc_buffer_check(struct qc_buffer *b, void *raw, bool writable, char *why, size_t bytes);

/* ---- execute.c ----------------------------------------------------------------------------- */

/* Packed results, one for each output pointer of the problem; NULL for inputs. */
void        qc_results_make(const struct qc_problem *p, void **raw);
void        qc_results_free(void **raw);
/* Bytes of the plan's workspace that its engines may write: one that takes the whole graph has told exactly how many it uses, while the
 * plan's figure is rounded up; else it also holds intermediates. */
size_t      qc_workspace_used(const qn_plan *plan, const qn_graph_view *view);
/* Runs the plan, or records and replays it, and reads results. NULL, or the kind of failure, with a sentence in why. */
const char *qc_execute(const qn_plan *plan, const struct qc_problem *p, int place, bool recorded, uint64_t seed, void **raw,
                       char *why, size_t bytes);

/* ---- engine.c, worker.c --------------------------------------------------------------------- */

struct qc_engine {                      /* a row, or one variant of it, of the backend under test */
  const qn_engine *row;
  const char *variant;
  char name[96];                        /* "conv_forward/direct", "pointwise/loops", "matmul/wgmma:128x256" */
  int  number;                          /* of the variant, from 1; 0: the engine's own choice */
  int  reached, kills;                  /* kills: failed cases */
  uint32_t claimed, compared;           /* traits that it claims and that can be compared; and those that were */
  const struct qc_item *failed_in;
};
struct qc_worker {
  qn_context *ctx;                      /* the backend under test */
  qn_context *narrowed;                 /* the same backend with its device narrowed to another model; NULL: none */
  const char *backend;
  const qn_backend *table, *provider;   /* the backend's, and its device provider's */
  bool        cpu;
  struct qc_engine *engine;
  int         n_engines;
  int         skip_engines;             /* after a crash: how many of the item's engines have run */
};
extern struct qc_worker qc_w;
qn_context *qc_reference_context(void);

void qc_engines_list(void);             /* fills qc_w.engine with those that --engine admits */
bool qc_engine_fits(const struct qc_engine *e, uint32_t op);    /* its row anchors at this op */
/* Plans with e pinned for the ops that it fits (NULL: the planner's choice); the caller destroys it. False: refused. */
bool qc_plan_pinned(const struct qc_engine *e, const char *math, const qn_graph *graph, qn_plan **plan, qn_status *status);
int  qc_worker_main(bool list_only);
bool qc_open_backend(void);             /* sets qc_w.ctx, table, provider */
/* ranks.c: --ranks, and each rank. */
int  qc_ranks_main(char **backends, int n, char **argv);
int  qc_ranks_worker(void);

/* ---- run.c, check_*.c, grad.c: items in a worker -------------------------------------------- */

enum qc_status { QC_OK, QC_FAIL, QC_SKIP };
int  qc_run_case(const struct qc_item *item);
int  qc_check_refused(const struct qc_item *item);
int  qc_check_pointer(const struct qc_item *item);
int  qc_check_probe(const struct qc_item *item);
int  qc_check_gradient(const struct qc_item *item);
int  qc_check_adjoint(const struct qc_item *item);
/* check_batch.c: does the last row of the batch alone give the bits that it has among the others? raw: all results. UNSEEN: there is
 * only one row, or the engine refuses a single one. */
enum qc_rows { QC_ROWS_SAME, QC_ROWS_DIFFER, QC_ROWS_UNSEEN };
bool qc_has_rows(const struct qc_problem *p);   /* rows that the op treats as independent */
/* The dim of a value that counts rows, of a function that ops.def names for the op; or: it belongs whole to each row; there are none. */
enum { QC_EACH_ROW = -1, QC_NO_ROWS = -2 };
enum qc_rows qc_check_batch(const struct qc_engine *e, const char *math, const struct qc_problem *p, void *const *raw, char *why,
                            size_t bytes);
bool qc_rows_apart(const struct qc_problem *p);
#define QC_RUNGS_MATH "f32"
/* check_rungs.c: does the planner's own choice keep what `deterministic` promises? */
bool qc_check_rungs(const struct qc_problem *p, char *why, size_t bytes);

/* ---- pipe.c, parent.c: from a worker to the parent ------------------------------------------- */

void qc_say_engine(int step, int index);                        /* about to run it */
void qc_say_note(const char *format, ...) __attribute__((format(printf, 1, 2)));       /* appended to the point's name */
void qc_say_fail(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));  /* one YAML line */
int  qc_parent_main(char **backends, int n, char **argv);

/* failures.c: collects the repros of a failed point's YAML; lists them. */
void qc_failures_add(const char *yaml);
void qc_failures_report(void);

/* ---- tap.c ---------------------------------------------------------------------------------- */

void qc_tap_begin(int n);               /* points expected; -1: not known */
void qc_tap_end(void);                  /* the plan, which counts what was printed */
void qc_tap_point(bool ok, const char *name, const char *directive);
void qc_tap_yaml(const char *text);     /* lines "key: value" */
void qc_tap_comment(const char *format, ...) __attribute__((format(printf, 1, 2)));
void qc_tap_bail(const char *why);
int  qc_tap_failed(void);
void qc_tap_progress(const char *text); /* on a terminal */

/* ---- what ops.def says of each kind: its bound, rows and fills -------------------------------- */

#include <kinds/conform.h>

#endif
