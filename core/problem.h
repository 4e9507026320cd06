/* problem.h -- what the files share that turn calls, data and lines into checked graphs: tensor.c, infer*.c, graph.c,
 * notation*.c. */
#ifndef QUERN_PROBLEM_H
#define QUERN_PROBLEM_H
#include "core.h"

/* ---- tensor.c ----------------------------------------------------------------------------- */

/* Strides such that the dims listed in order, slowest first, lie packed; order NULL: the last fastest. Saturates. */
void qn__pack(int rank, const int64_t *dim, int64_t *stride, const int *order);

/* ---- infer*.c: one op's rules ------------------------------------------------------------- */

#define QN__MAX_ELEMENTS ((int64_t)1 << 58)   /* of a tensor, and of its reach: no sum of extents or bytes overflows */
typedef __int128 qn__wide;                    /* of what no sum of strides or product of dims overflows */

typedef struct qn__problem {
  const qn_op_info *op;
  void             *attr;                 /* whole; inference completes it: "to the end", "all dims" become numbers */
  const qn_node    *node;
  qn_value         *value;
  bool              quiet;                /* no sentence is left: the caller only asks whether */
} qn__problem;

/* qn__infer, without a sentence. */
bool qn__infers(const qn_op_info *op, void *attr, const qn_node *node, qn_value *value);
/* The rules of each family. */
qn_status qn__infer_matmul(const qn__problem *p);
qn_status qn__infer_conv(const qn__problem *p);
qn_status qn__infer_pool(const qn__problem *p);
qn_status qn__infer_pointwise(const qn__problem *p);
qn_status qn__infer_softmax(const qn__problem *p);
qn_status qn__infer_reduction(const qn__problem *p);
qn_status qn__infer_sized(const qn__problem *p);
qn_status qn__infer_selection(const qn__problem *p);
qn_status qn__infer_scan(const qn__problem *p);
qn_status qn__infer_transform(const qn__problem *p);
qn_status qn__infer_normalization(const qn__problem *p);
qn_status qn__infer_sampling(const qn__problem *p);
qn_status qn__infer_local(const qn__problem *p);
qn_status qn__infer_random(const qn__problem *p);
qn_status qn__infer_loss(const qn__problem *p);
qn_status qn__infer_training(const qn__problem *p);
qn_status qn__infer_quantization(const qn__problem *p);

/* ---- argument.c: for those rules ----------------------------------------------------------- */

/* BAD_ARGUMENT and "op: argument: ...". */
qn_status qn__refuse(const qn__problem *p, const char *argument, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
/* A role's value; NULL if absent. Of a list, the first. */
qn_value *qn__arg(const qn__problem *p, uint32_t role);
const char *qn__role_name(const qn__problem *p, uint32_t role);
/* How many tensors a list that is wanted has: as many as the first list that the op reads, in *role. */
int32_t qn__list_length(const qn_op_info *op, const int32_t *first, uint32_t *role);
typedef struct qn__dims_text { char s[QN_MAX_RANK * 21 + 8]; } qn__dims_text;
qn__dims_text qn__dims(const qn_value *v);            /* "64x3x224x224", "a scalar" */
typedef struct qn__dtypes_text { char s[64]; } qn__dtypes_text;
qn__dtypes_text qn__dtypes(uint32_t set);             /* "f32 f16 bf16" */
/* Dtypes that stand together: f16, bf16 and f32 as one; the others each alone. */
uint32_t qn__kin(uint32_t dtype);
/* Is the role's dtype, if it is given, in the set (bit i: dtype i)? */
qn_status qn__dtype_in(const qn__problem *p, uint32_t role, uint32_t set);
/* Completes a wanted output or checks a given one; an absent one is well. */
qn_status qn__settle(const qn__problem *p, uint32_t role, uint32_t dtype, int rank, const int64_t *dim);
qn_status qn__settle_value(const qn__problem *p, uint32_t role, qn_value *v, uint32_t dtype, int rank, const int64_t *dim);
qn_status qn__same_dims(const qn__problem *p, uint32_t role, uint32_t as);
/* The axis attribute of an op over `rank` dims, -1 made the last one. */
qn_status qn__settle_axis(const qn__problem *p, int64_t *axis, int rank);
/* x's dims with those of indices in the place of its dim `axis`. */
qn_status qn__gathered_dims(const qn__problem *p, const qn_value *x, const qn_value *indices, int axis, int *rank, int64_t *dim);
/* The reflections of pad must find their mirror. */
qn_status qn__check_padding(const qn__problem *p, int rank, const int64_t *x_dim);
/* What the taps of a window cover, saturated: dims and attributes are bounded, their product is not. */
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
/* The word for a value of an attribute that has words, *n bytes long, NULL beyond them; and the value of a word, -1: none. */
const char *qn__word(const char *words, int64_t value, int *n);
int64_t     qn__word_number(const char *words, const char *word, size_t n);
/* A whole attribute struct from one that a caller filled, be it of an older or newer size. to: op->attr_bytes. */
qn_status qn__attr_copy(const qn_op_info *op, const void *from, void *to);

/* ---- layout.c ------------------------------------------------------------------------------ */

/* Do two views of memory meet? Addresses in bytes; an empty one meets nothing. */
bool qn__views_meet(const qn_value *a, uintptr_t a_at, const qn_value *b, uintptr_t b_at);
/* May this input role lend its memory to that output role? */
bool qn__may_lend(const qn_op_info *op, uint32_t input, uint32_t output);
/* Same dtype, dims and, where a dim has neighbours, strides. */
bool qn__same_place(const qn_value *a, const qn_value *b);
/* The input whose dim order the op's argument k, a wanted output, follows; NULL: packed, last dim fastest. */
const qn_value *qn__layout_model(const qn_op_info *op, const qn_node *node, const qn_value *value, int32_t k);

/* ---- graph.c ------------------------------------------------------------------------------ */
/* The largest power of two, at most 16, that divides the address. */
static inline uint32_t qn__alignment(const void *p)
{
  uintptr_t bits = (uintptr_t)p | 16;
  return (uint32_t)(bits & (~bits + 1));
}

/* A value's name, or the op and the role in which one first has it. */
typedef char qn__value_text[64];
const char *qn__value_name(const qn_graph_view *v, int32_t i, qn__value_text buffer);

/* A graph of these sizes in one allocation, its arrays zeroed and in place. */
typedef struct qn__graph_sizes { size_t ops, values, pointers, ints, attr_bytes, name_bytes; } qn__graph_sizes;

/* NULL, or what is wrong with a number in this role: "is no truth value; ...". */
const char *qn__literal_refused(const qn_role_info *role, double number);
bool qn__is_name(const char *s, size_t length);       /* a letter or _, then letters, digits, _; no dtype, number or keyword */

/* ---- notation.c, notation_print.c ---------------------------------------------------------- */

/* The strides that a layout's name stands for: "nchw", and from rank 2 "nhwc" and "t"; false: it is none. */
bool qn__layout_strides(const char *name, int rank, const int64_t *dim, int64_t *stride);
/* The decimal point of the locale in force in this thread. */
char qn__decimal_point(void);

#endif
