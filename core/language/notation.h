/* notation.h -- shared by the readers of problem lines: notation.c, notation_words.c, reader.c; and by who writes them: gradient.c. */
#ifndef QUERN_NOTATION_H
#define QUERN_NOTATION_H
#include <string.h>
#include "problem.h"

typedef struct qn__span { const char *s; size_t n; } qn__span;          /* a part of the text */
typedef struct qn__vec { char *p; size_t n, cap; } qn__vec;             /* bytes; items are appended whole */

/* State of a parse. */
typedef struct qn__parser {
  const char *p, *end;                  /* the unread rest */
  const char *line_start;
  int         line;
  bool        graph;                    /* a graph, not a single op line */
  qn__vec     value, name, literal, ints, attr, op, in, out;   /* of qn_value, qn__span, double, int32_t, bytes, ops, values */
  int32_t    *slot;                     /* hash table of values by name, open addressing; -1: free */
  size_t      n_slots, n_named;         /* n_slots: a power of two, at least twice the names in it */
} qn__parser;

/* notation.c: reads from p to end and manages the parser's memory. settings (may be NULL) gets what follows ";". */
qn_status qn__read_problem(qn__parser *s, qn_text *settings, qn_graph **graph_p);

/* Its steps, for who writes a graph line by line (gradient.c). Statements are read from p to end, as often as there is more text, which
 * must stay until the graph is made. */
qn_status qn__read_statements(qn__parser *s, qn_text *settings);
qn_status qn__make_graph(qn__parser *s, qn_graph **graph_p);
void      qn__release_parser(qn__parser *s);
int32_t   qn__find_name(const qn__parser *s, qn__span name);            /* -1: no value has it */

/* ---- notation_print.c --------------------------------------------------------------------- */

/* What qn_graph_print writes of a graph whose values all have names; after: NULL, or what to add to each op's line. */
void qn__print_lines(qn_text *t, const qn_graph_view *v, const char *const *after);
int  qn__underscores(const qn_graph_view *v);       /* before the v of a value without a name, which its number follows */
void qn__print_tensor(qn_text *t, const qn_value *v);
void qn__print_number(qn_text *t, double x);
void qn__print_attribute(qn_text *t, const qn_attr_info *a, const qn_node *node, const qn_value *value);   /* " pad=1" */

/* ---- notation_words.c --------------------------------------------------------------------- */

/* Returns QN_SYNTAX with "line 1, column 2: ...". */
qn_status qn__syntax(const qn__parser *s, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A span for an error sentence: shortened, unprintable bytes as '?'. */
typedef struct qn__shown { char s[48]; } qn__shown;
qn__shown qn__show(qn__span t);

bool qn__is_space(char c);                          /* not the end of a line */
bool qn__is_digit(char c);
bool qn__is_word(char c);                           /* a letter, digit or _ */
bool qn__at_stop(const qn__parser *s);              /* at the end of a statement */
void qn__skip_space(qn__parser *s);
qn__span qn__read_word(qn__parser *s);
bool qn__same(qn__span t, const char *word);

bool qn__read_size(const char **p, const char *end, int64_t *out);      /* digits, no sign */
bool qn__read_integer(const char **p, const char *end, int64_t *out);
bool qn__read_number(qn__span t, double *out);                          /* the whole span: 1, -0.5, 1e-3, inf, nan */
qn__span qn__tensor_dtype(qn__span t);              /* the dtype word at its start; n 0: not a tensor */
qn_status qn__read_tensor(const qn__parser *s, qn__span t, qn_value *v);
/* NULL: an error that suggests the op that the field calls so, or one whose name differs in a third of the word's letters at most. */
const qn_op_info *qn__op_named(const qn__parser *s, qn__span word);
qn_status qn__unknown_key(const qn__parser *s, const qn_op_info *op, qn__span key);     /* returns QN_SYNTAX */

#endif
