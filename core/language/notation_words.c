/* notation_words.c -- the lexical level of problem lines: characters, numbers, tensors, layouts, names of ops;
 * and errors with line and column. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "notation.h"

/* ---- errors and characters ---------------------------------------------------------------- */

qn_status qn__syntax(const qn__parser *s, const char *at, const char *format, ...)
{
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return qn__fail(QN_SYNTAX, "line %d, column %d: %s", s->line, (int)(at - s->line_start) + 1, what);
}

qn__shown qn__show(qn__span t)
{
  qn__shown out = { "" };
  size_t n = t.n < 40 ? t.n : 40, i = 0;
  for (; i < n; i++) out.s[i] = t.s[i] >= ' ' && t.s[i] < 127 ? t.s[i] : '?';
  if (n < t.n) memcpy(out.s + i, "...", 4);
  return out;
}

bool qn__is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool qn__is_digit(char c) { return c >= '0' && c <= '9'; }
bool qn__is_word(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || qn__is_digit(c) || c == '_';
}
bool qn__at_stop(const qn__parser *s)
{
  return s->p == s->end || *s->p == '\n' || *s->p == '|' || *s->p == ';' || *s->p == '#';
}
void qn__skip_space(qn__parser *s)
{
  while (s->p < s->end && qn__is_space(*s->p)) s->p++;
}
qn__span qn__read_word(qn__parser *s)
{
  qn__span w = { s->p, 0 };
  while (s->p < s->end && qn__is_word(*s->p)) s->p++;
  w.n = (size_t)(s->p - w.s);
  return w;
}
bool qn__same(qn__span t, const char *word)
{
  return t.n == strlen(word) && !memcmp(t.s, word, t.n);
}

/* ---- numbers ------------------------------------------------------------------------------ */

char qn__decimal_point(void)
{
  char half[8];
  snprintf(half, sizeof half, "%.1f", 0.5);
  return half[1];
}

/* Reads digits at *p as sign * number; false: no digits, or beyond int64_t. */
static bool read_digits(const char **p, const char *end, int sign, int64_t *out)
{
  const char *start = *p;
  int64_t n = 0;
  while (*p < end && qn__is_digit(**p))
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, sign * (*(*p)++ - '0'), &n)) return false;
  *out = n;
  return *p > start;
}

bool qn__read_size(const char **p, const char *end, int64_t *out) { return read_digits(p, end, 1, out); }

bool qn__read_integer(const char **p, const char *end, int64_t *out)
{
  const int sign = *p < end && **p == '-' ? -1 : 1;
  *p += sign < 0;
  return read_digits(p, end, sign, out);
}

/* The whole span as a number: 1, -0.5, 1e-3, inf, -inf, nan. */
bool qn__read_number(qn__span t, double *out)
{
  char text[64];
  size_t sign = t.n && (t.s[0] == '-' || t.s[0] == '+'), digits = 0;
  qn__span magnitude = { t.s + sign, t.n - sign };
  if (t.n == 0 || t.n >= sizeof text) return false;
  if (!qn__same(magnitude, "inf") && !qn__same(magnitude, "nan")) {
    for (size_t i = 0; i < magnitude.n; i++) {
      digits += qn__is_digit(magnitude.s[i]);
      if (!qn__is_digit(magnitude.s[i]) && !(magnitude.s[i] && strchr(".eE+-", magnitude.s[i]))) return false;
    }
    if (!digits) return false;
  }
  char point = qn__decimal_point();
  for (size_t i = 0; i < t.n; i++) text[i] = t.s[i] == '.' ? point : t.s[i];
  text[t.n] = '\0';
  char *rest;
  *out = strtod(text, &rest);
  return !*rest && (digits == 0 || (*out <= 1.7976931348623157e308 && *out >= -1.7976931348623157e308));
}

/* ---- tensors ------------------------------------------------------------------------------ */

static uint32_t dtype_named(qn__span word)
{
  for (uint32_t d = 1; d < QN_DTYPE_COUNT; d++)
    if (qn__same(word, qn_dtype_name(d))) return d;
  return QN_DTYPE_NONE;
}

bool qn__layout_strides(const char *name, int rank, const int64_t *dim, int64_t *stride)
{
  int order[QN_MAX_RANK] = { 0 };
  for (int i = 0; i < rank; i++) order[i] = i;
  if (!strcmp(name, "nhwc") && rank >= 2) {
    for (int i = 1; i < rank - 1; i++) order[i] = i + 1;
    order[rank - 1] = 1;
  } else if (!strcmp(name, "t") && rank >= 2) {
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
  } else if (strcmp(name, "nchw"))
    return false;
  qn__pack(rank, dim, stride, order);
  return true;
}

/* The dtype word at the start of a tensor; n 0 if the text is not a tensor. */
qn__span qn__tensor_dtype(qn__span t)
{
  qn__span word = { t.s, 0 };
  while (word.n < t.n && qn__is_word(t.s[word.n])) word.n++;
  bool ends = word.n == t.n || t.s[word.n] == '/' || t.s[word.n] == '@';
  if (!ends || !dtype_named(word)) word.n = 0;
  return word;
}

static qn_status read_layout(const qn__parser *s, const char **p, const char *end, qn_value *v)
{
  if (*p < end && qn__is_digit(**p)) {
    int n = 0;
    for (;; (*p)++) {
      if (n == v->rank) return qn__syntax(s, *p, "there are more strides than dims");
      if (!qn__read_size(p, end, &v->stride[n])) return qn__syntax(s, *p, "expected a stride");
      n++;
      if (*p == end || **p != ':') break;
    }
    if (n != v->rank) return qn__syntax(s, *p, "%d strides for %d dims", n, (int)v->rank);
    return QN_OK;
  }
  qn__span word = { *p, 0 };
  while (*p < end && qn__is_word(**p)) (*p)++;
  word.n = (size_t)(*p - word.s);
  char name[8] = "";
  if (word.n < sizeof name) memcpy(name, word.s, word.n);
  if (!qn__layout_strides(name, v->rank, v->dim, v->stride))
    return qn__syntax(s, word.s, "\"%s\" is no layout for %d dims; accepted: nchw, nhwc and t (2 dims or more), or strides "
                "joined by \":\"", qn__show(word).s, (int)v->rank);
  return QN_OK;
}

/* dtype [/dims [/layout]] [@alignment] */
qn_status qn__read_tensor(const qn__parser *s, qn__span t, qn_value *v)
{
  const char *p = t.s, *end = t.s + t.n;
  qn__span dtype = qn__tensor_dtype(t);
  *v = (qn_value){ .dtype = dtype_named(dtype), .over = -1, .align = 16 };
  if (!dtype.n) return qn__syntax(s, p, "\"%s\" is no tensor; expected dtype/dims, as f32/64x64", qn__show(t).s);
  p += dtype.n;
  if (p < end && *p == '/') {
    do {
      p++;
      if (v->rank == QN_MAX_RANK) return qn__syntax(s, p, "a tensor has at most %d dims", QN_MAX_RANK);
      if (!qn__read_size(&p, end, &v->dim[v->rank])) return qn__syntax(s, p, "expected a dim that int64_t holds, as in f32/64x64");
      v->rank++;
    } while (p < end && *p == 'x');
    qn__pack(v->rank, v->dim, v->stride, NULL);
    if (p < end && *p == '/') {
      p++;
      qn_status status = read_layout(s, &p, end, v);
      if (status) return status;
    }
  }
  if (p < end && *p == '@') {
    int64_t align;
    const char *at = ++p;
    if (!qn__read_size(&p, end, &align) || align < 1 || align > 16 || align & (align - 1))
      return qn__syntax(s, at, "an alignment is 1, 2, 4, 8 or 16");
    v->align = (uint32_t)align;
  }
  for (int i = v->rank; i < QN_MAX_RANK; i++) v->dim[i] = 1;
  if (p < end) return qn__syntax(s, p, "\"%s\" cannot follow in a tensor", qn__show((qn__span){ p, (size_t)(end - p) }).s);
  return QN_OK;
}

/* ---- names of ops, and what they might have meant ----------------------------------------- */

/* Edit distance: letters to change, insert or delete to turn one word into the other. */
static int distance(qn__span a, const char *b)
{
  enum { LONGEST = 46 };                  /* ten letters more than the longest op */
  int row[LONGEST + 1];
  size_t n = strlen(b);
  if (a.n > LONGEST || n > LONGEST) return 99;
  for (size_t j = 0; j <= n; j++) row[j] = (int)j;
  for (size_t i = 1; i <= a.n; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= n; j++) {
      int best = diagonal + (a.s[i - 1] != b[j - 1]);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[n];
}

const qn_op_info *qn__op_named(const qn__parser *s, qn__span word)
{
  const qn_op_info *near = NULL;
  int least = word.n < 9 ? (int)word.n / 3 + 1 : 4;
  for (int i = 0; i < qn__n_ops; i++)
    if (qn__same(word, qn__ops[i].name)) return &qn__ops[i];
  for (int i = 0; i < qn__n_aliases; i++)
    if (qn__same(word, qn__aliases[i].word)) near = &qn__ops[qn__aliases[i].op], least = 0;
  for (int i = 0; i < qn__n_ops; i++) {
    int d = distance(word, qn__ops[i].name);
    if (d < least) near = &qn__ops[i], least = d;
  }
  if (near) qn__syntax(s, word.s, "no op is called \"%s\"; did you mean %s?", qn__show(word).s, near->name);
  else if (word.n) qn__syntax(s, word.s, "no op is called \"%s\"", qn__show(word).s);
  else qn__syntax(s, word.s, "expected an op");
  return NULL;
}

qn_status qn__unknown_key(const qn__parser *s, const qn_op_info *op, qn__span key)
{
  char known[256] = "";
  size_t n = 0;
  for (uint32_t r = 0; r < op->n_roles && n < sizeof known; r++)
    n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", r ? " " : "", op->role[r].name);
  for (uint32_t k = 0; k < op->n_attrs && n < sizeof known; k++)
    n += (size_t)snprintf(known + n, sizeof known - n, " %s", op->attr[k].name);
  return qn__syntax(s, key.s, "%s has no \"%s\"; it has %s", op->name, qn__show(key).s, known);
}
