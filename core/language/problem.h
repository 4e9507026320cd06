/* problem.h -- declarations shared by the files that turn calls, arrays and lines into checked graphs: tensor.c, infer*.c,
 * graph.c, notation*.c. */
#ifndef QUERN_PROBLEM_H
#define QUERN_PROBLEM_H
#include "core.h"

/* ---- tensor.c ----------------------------------------------------------------------------- */

/* Strides that pack the dims listed in order, slowest first; order NULL: last dim fastest. Saturates. */
void qn__pack(int rank, const int64_t *dim, int64_t *stride, const int *order);

/* ---- infer*.c: one op's rules ------------------------------------------------------------- */

#define QN__MAX_ELEMENTS ((int64_t)1 << 58)   /* limit on a tensor's elements and extent: no sum of extents or bytes overflows */
typedef __int128 qn__wide;                    /* wide enough for any sum of strides or product of dims */

typedef struct qn__problem {
  const qn_op_info *op;
  void             *attr;                 /* complete; inference resolves "to the end", "all dims" to numbers */
  const qn_node    *node;
  qn_value         *value;
  bool              quiet;                /* set no error sentence: the caller only wants to know whether it fits */
} qn__problem;

/* qn__infer, without an error sentence. */
bool qn__infers(const qn_op_info *op, void *attr, const qn_node *node, qn_value *value);
#include <kinds/core.h>                   /* the rules and FLOPs of each op, by what ops.def says of its kind */

/* ---- argument.c: helpers for those rules ---------------------------------------------------- */

/* Returns QN_BAD_ARGUMENT with the sentence "op: argument: ...". */
qn_status qn__refuse(const qn__problem *p, const char *argument, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
/* A role's value; NULL if absent. For a list, its first tensor. */
qn_value *qn__arg(const qn__problem *p, uint32_t role);
const char *qn__role_name(const qn__problem *p, uint32_t role);
/* The length of a list to be inferred: that of the first list among the inputs, returned in *role. */
int32_t qn__list_length(const qn_op_info *op, const int32_t *first, uint32_t *role);
typedef struct qn__dims_text { char s[QN_MAX_RANK * 21 + 8]; } qn__dims_text;
qn__dims_text qn__dims(const qn_value *v);            /* "64x3x224x224", "a scalar" */
typedef struct qn__dtypes_text { char s[64]; } qn__dtypes_text;
qn__dtypes_text qn__dtypes(uint32_t set);             /* "f32 f16 bf16" */
/* The dtypes that mix with this one: f16, bf16 and f32 with each other; any other only with itself. */
uint32_t qn__kin(uint32_t dtype);
/* Is the role's dtype, if given, in the set (bit i: dtype i)? */
qn_status qn__dtype_in(const qn__problem *p, uint32_t role, uint32_t set);
/* Completes an output to be inferred, or checks a given one; an absent one is fine. */
qn_status qn__settle(const qn__problem *p, uint32_t role, uint32_t dtype, int rank, const int64_t *dim);
qn_status qn__settle_value(const qn__problem *p, uint32_t role, qn_value *v, uint32_t dtype, int rank, const int64_t *dim);
qn_status qn__same_dims(const qn__problem *p, uint32_t role, uint32_t as);
/* Checks the axis attribute against `rank` dims and resolves -1 to the last. */
qn_status qn__settle_axis(const qn__problem *p, int64_t *axis, int rank);
/* x's dims with dim `axis` replaced by the dims of indices. */
qn_status qn__gathered_dims(const qn__problem *p, const qn_value *x, const qn_value *indices, int axis, int *rank, int64_t *dim);
/* Has the role x's rank, and in no dim but `axis` a larger extent? */
qn_status qn__within_dims(const qn__problem *p, uint32_t role, const qn_value *x, int axis);
/* pad's reflection: each pad must be less than x's extent. */
qn_status qn__check_padding(const qn__problem *p, int rank, const int64_t *x_dim);
/* The extent that the taps of a window cover, saturated: dims and attributes are bounded, their product is not. */
int64_t qn__covered(int64_t taps, int64_t dilation);

#define QN__BIT(dtype) (1u << (dtype))
#define QN__FLOATS   (QN__BIT(QN_F64) | QN__BIT(QN_F32) | QN__BIT(QN_F16) | QN__BIT(QN_BF16))
#define QN__INTEGERS (QN__BIT(QN_I8) | QN__BIT(QN_U8) | QN__BIT(QN_I32) | QN__BIT(QN_I64))
#define QN__F8S      (QN__BIT(QN_E4M3) | QN__BIT(QN_E5M2))

#define QN__MOST_IN_LIST (1 << 20)

/* ---- attribute.c --------------------------------------------------------------------------- */

/* How many entries an attribute has for this op: its spatial dims, its rank, or 1; and how many its struct holds. */
int qn__attr_entries(const qn_attr_info *a, const qn_node *node, const qn_value *value);
int qn__attr_capacity(const qn_attr_info *a);
/* The word for a value, *n bytes long, NULL if there is none; and the value of a word, -1: none. */
const char *qn__word(const char *words, int64_t value, int *n);
int64_t     qn__word_number(const char *words, const char *word, size_t n);
/* Copies a caller's attribute struct, of an older or newer size, to a complete one of op->attr_bytes. */
qn_status qn__attr_copy(const qn_op_info *op, const void *from, void *to);
/* The same of a struct of arguments of `bytes` here; pointers beyond the caller's size become NULL. */
qn_status qn__args_copy(const char *op, const void *from, void *to, size_t bytes);

/* ---- layout.c ------------------------------------------------------------------------------ */

/* Do two views share memory? Addresses in bytes; an empty view shares none. */
bool qn__views_meet(const qn_value *a, uintptr_t a_at, const qn_value *b, uintptr_t b_at);
/* May this output role take the memory of this input role? */
bool qn__may_lend(const qn_op_info *op, uint32_t input, uint32_t output);
/* Same dtype, dims and, in dims above 1, strides. */
bool qn__same_place(const qn_value *a, const qn_value *b);
/* The input whose dim order argument k, an output to be inferred, follows; NULL: packed, last dim fastest. */
const qn_value *qn__layout_model(const qn_op_info *op, const qn_node *node, const qn_value *value, int32_t k);

/* ---- graph.c ------------------------------------------------------------------------------ */
/* The largest power of two, at most 16, that divides the address. */
static inline uint32_t qn__alignment(const void *p)
{
  uintptr_t bits = (uintptr_t)p | 16;
  return (uint32_t)(bits & (~bits + 1));
}

/* A value's name, or if it has none the op and role where it first appears. */
typedef char qn__value_text[64];
const char *qn__value_name(const qn_graph_view *v, int32_t i, qn__value_text buffer);

/* ---- graph.c ------------------------------------------------------------------------------- */

typedef struct qn__graph_sizes { size_t ops, values, pointers, ints, attr_bytes, name_bytes; } qn__graph_sizes;
typedef struct qn__graph_arrays { int32_t *ints; char *attr, *names; } qn__graph_arrays;    /* those that ops and names point into */
/* A graph of these sizes in one block, with zeroed arrays; NULL: no memory (qn_last_error). */
qn_graph *qn__graph_new(const qn__graph_sizes *sizes, qn__graph_arrays *a);

/* NULL, or why this literal is refused in this role: "is no truth value; ...". */
const char *qn__literal_refused(const qn_role_info *role, double number);
bool qn__is_name(const char *s, size_t length);       /* a letter or _, then letters, digits, _; no dtype, number or keyword */

/* ---- notation.c, notation_print.c ---------------------------------------------------------- */

/* The strides that a layout's name stands for: "nchw", and from rank 2 "nhwc" and "t"; false: no such name. */
bool qn__layout_strides(const char *name, int rank, const int64_t *dim, int64_t *stride);
/* The decimal point of this thread's locale. */
char qn__decimal_point(void);

#endif
