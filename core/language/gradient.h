/* gradient.h -- shared by the files that write a graph's backward half: gradient.c (the walk), gradient_row.c (the lines of one op, by
 * gradients.def), gradient_move.c (those that follow from dims). Each line is written as text and read by the reader of problem lines. */
#ifndef QUERN_GRADIENT_H
#define QUERN_GRADIENT_H
#include "notation.h"

/* A value of the graph that is written, or a number, or nothing. */
enum { QN__NUMBER = -1, QN__ABSENT = -2 };
typedef struct qn__term { int32_t value; double number; } qn__term;
typedef struct qn__terms { int32_t n; qn__term *t; } qn__terms;       /* those of a role; n 0: it is absent */

/* An optional output that a forward line is to have for its gradient. */
typedef struct qn__asked { int32_t op; uint32_t role; char *name; int32_t value; } qn__asked;

typedef struct qn__gradient {
  const qn_graph_view *v;               /* the forward graph, all its values named */
  qn__parser  parser;                   /* the graph under construction; gives its values other numbers */
  qn_status   status;                   /* the first failure; from then on nothing is written */
  int32_t    *at;                       /* of each value of v: its number there */
  int32_t    *by;                       /* the loss's gradient by it, so far; -1: none */
  uint8_t    *path;                     /* QN__DEPENDS, ... */
  qn__asked  *asked;
  int         n_asked, cap_asked;
  int32_t     place;                    /* index 0, of rank 0; -1: not yet written */
  int         names;                    /* given so far */
  void      **kept;                     /* memory freed at the end: texts that the parser points into, terms */
  int         n_kept, cap_kept;
} qn__gradient;

enum { QN__DEPENDS = 1,                 /* on what the loss is differentiated by, through ops with a gradient */
       QN__LEADS = 2,                   /* to the loss, through such ops */
       QN__LEADS_ANYHOW = 4 };          /* to the loss, also through ops whose gradient is 0 */

/* ---- gradient.c ----------------------------------------------------------------------------- */

void     *qn__keep(qn__gradient *g, size_t bytes);      /* zeroed, until the end; NULL: no memory, and the status says so */
qn_status qn__gradient_fail(qn__gradient *g, qn_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
const qn_value *qn__value_of(const qn__gradient *g, qn__term t);      /* of a value; valid until the next line */
void      qn__term_add(const qn__gradient *g, qn_text *text, qn__term t);
char     *qn__new_name(qn__gradient *g);
/* Reads statements, whose memory it takes over. */
void      qn__gradient_read(qn__gradient *g, qn_text *text);
/* Reads NAME = text and returns the value of a new name; frees the text. */
qn__term  qn__gradient_line(qn__gradient *g, qn_text *text);
/* The same of a text with up to two terms, "add a=%a b=%b" (and %t: the tensor like `as`). */
qn__term  qn__gradient_write(qn__gradient *g, const char *line, qn__term a, qn__term b, const qn_value *as);
/* The gradient by the k-th tensor of output role r of an op; absent: none leads to the loss. */
qn__term  qn__gradient_by(const qn__gradient *g, const qn_node *node, uint32_t r, int32_t k);
qn__term  qn__forward(const qn__gradient *g, int32_t value);          /* a value of the forward graph as a term */

/* ---- gradient_row.c: an op's row of gradients.def --------------------------------------------- */

typedef struct qn__row { uint32_t op; const char *const *line; } qn__row;     /* line: ended by NULL */
const qn__row *qn__gradient_row(uint32_t op);       /* NULL: there is none */
bool qn__is_flat(const qn__row *row);               /* its gradient is 0 everywhere */
/* Before the forward lines are written: asks for the outputs that the row reads, and refuses what it says is unknown. */
void qn__gradient_ask(qn__gradient *g, int32_t op);
/* Writes the lines of op number `op` and returns the gradient by the tensors of each of its input roles that is wanted; what is not
 * wanted, or is 0, stays absent. */
void qn__gradient_of(qn__gradient *g, int32_t op, qn__terms *by_role);

enum { QN__MAX_WORDS = 12, QN__MAX_RESULTS = 24 };

/* [target =] word { key=value }, without what follows `where`. */
typedef struct qn__row_line {
  qn__span target, word[QN__MAX_WORDS];   /* word[0]: the op, or what else the line says; then its pairs */
  int      n;
  bool     holds;                         /* what follows `where` is true of the op */
} qn__row_line;

/* The op of the graph whose gradient is being written. */
typedef struct qn__row_work {
  qn__gradient     *g;
  int32_t           index;
  const qn_node    *node;
  const qn_op_info *op;
  const qn__row    *row;
  struct { qn__span name; qn__terms terms; } result[QN__MAX_RESULTS];     /* what lines have made */
  int               n_results;
} qn__row_work;

qn__span  qn__text_span(const char *s);
qn__span  qn__pair_of(const qn__row_line *line, const char *name);        /* the value that it gives to that key; n 0: none */
const qn_attr_info *qn__attr_named(const qn_op_info *op, qn__span name);
int64_t   qn__attr_number(const qn__row_work *w, const qn_attr_info *a);
int       qn__role_of(const qn_op_info *op, qn__span name);               /* -1: none */
int32_t   qn__given(const qn__row_work *w, uint32_t r);                   /* how many tensors the op has in that role */
bool      qn__is_wanted(const qn__row_work *w, uint32_t r);               /* the gradient by one of them */
qn__terms qn__list_of(qn__row_work *w, int32_t n);
/* A line's result, a role, the gradient by an output, a number, an attribute, in this order; ROLE?NUMBER: the number where absent. */
qn__terms qn__operand(qn__row_work *w, qn__span word);
void      qn__fill_absent(qn__row_work *w, qn__span word, qn__terms list);    /* zeros for a gradient that nothing has added to */
void      qn__keep_result(qn__row_work *w, qn__span name, qn__terms terms);

/* ---- gradient_write.c --------------------------------------------------------------------------- */

/* TARGET = OP ...: once, or where an operand is a list and its role is not, for each of the list. */
qn__terms qn__row_write_each(qn__row_work *w, const qn_op_info *op, const qn__row_line *line);
/* TARGET = OP ... where the op's first output is a list: of as many tensors as it reads. */
qn__terms qn__row_write_list(qn__row_work *w, const qn_op_info *op, const qn__row_line *line);
/* A backward op of this one: results of the dims, dtype and, in any packed order, strides of what they belong to. */
void      qn__row_write_backward(qn__row_work *w, const qn_op_info *op, const qn__row_line *line);
struct qn__move;
qn__terms qn__row_write_move(qn__row_work *w, const struct qn__move *move, const qn__row_line *line);

/* ---- gradient_move.c: lines that follow from dims --------------------------------------------- */

/* The strides of an output of v's dims: v's own if it is packed in some order of dims, else packed. */
void      qn__output_strides(const qn_value *v, int64_t *stride);
/* "dtype/dims/strides" of such an output. */
void      qn__output_tensor(qn_text *text, uint32_t dtype, const qn_value *v);
/* t made to have v's dims and dtype: summed where v has 1, repeated where t has. */
qn__term  qn__fit(qn__gradient *g, qn__term t, const qn_value *v);
/* A row's word for one of these: NULL: there is none. node: the op whose gradient is written; x: the terms of the line's operand. */
typedef struct qn__move { const char *name; qn__terms (*write)(qn__gradient *g, const qn_node *node, qn__term x, int axis); } qn__move;
const qn__move *qn__move_named(qn__span name);

#endif
