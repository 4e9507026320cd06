/* t_syntax.c -- what the reader of problem lines says of those that are none: a sentence with a position, and the op that was meant. */
#include <string.h>
#include "core.h"
#include "problems.h"
#include "tap.h"

/* ---- error sentences ---------------------------------------------------------------------- */

static void test_sentences(void)
{
  static const struct { const char *text, *has; qn_status status; } bad[] = {
    { "", "line 1, column 1: there is no problem", QN_SYNTAX },
    { "\n# only a comment\n", "there is no problem", QN_SYNTAX },
    { "conv_forwad x=f32/1", "line 1, column 1: no op is called \"conv_forwad\"; did you mean conv_forward?", QN_SYNTAX },
    { "qqqqqqqqqq x=f32/1", "no op is called", QN_SYNTAX },
    { "gemm a=f32/2x2", "no op is called \"gemm\"; did you mean matmul?", QN_SYNTAX },
    { "conv2d x=f32/1", "did you mean conv_forward?", QN_SYNTAX },
    { "max_pool x=f32/1", "did you mean pool_max?", QN_SYNTAX },
    { "swish x=f32/1", "did you mean silu?", QN_SYNTAX },
    { "where c=bool/1", "did you mean select?", QN_SYNTAX },
    { "transpose x=f32/1", "did you mean permute?", QN_SYNTAX },
    { "embedding x=f32/1", "did you mean gather?", QN_SYNTAX },
    { "sum x=f32/1", "did you mean reduce_sum?", QN_SYNTAX },
    { "silo x=f32/1", "no op is called \"silo\"; did you mean silu?", QN_SYNTAX },
    { "  =", "column 3", QN_SYNTAX },
    { "\x01relu", "expected an op", QN_SYNTAX },
    { "select c=0.5 a=f32/3 b=f32/3", "column 10: c: \"0.5\" is no truth value", QN_SYNTAX },
    { "relu x=f32/4 z=1", "line 1, column 14: relu has no \"z\"; it has x y", QN_SYNTAX },
    { "relu x=f32/4 x=f32/4", "x is given twice", QN_SYNTAX },
    { "relu x", "column 7: expected ROLE=OPERAND", QN_SYNTAX },
    { "relu x=", "x has no value", QN_SYNTAX },
    { "relu x=f99/4", "\"f99/4\" is no tensor", QN_SYNTAX },
    { "relu x=f32/", "column 12: expected a dim", QN_SYNTAX },
    { "relu x=f32/4x", "expected a dim", QN_SYNTAX },
    { "relu x=f32/-4", "expected a dim", QN_SYNTAX },
    { "relu x=f32/99999999999999999999", "expected a dim that int64_t holds", QN_SYNTAX },
    { "relu x=f32/1x1x1x1x1x1x1x1x1", "at most 8 dims", QN_SYNTAX },
    { "relu x=f32/4/nhwc", "\"nhwc\" is no layout for 1 dims", QN_SYNTAX },
    { "relu x=f32/4x4/chwn", "is no layout", QN_SYNTAX },
    { "relu x=f32/4x4/4:1:1", "more strides than dims", QN_SYNTAX },
    { "relu x=f32/4x4/4", "1 strides for 2 dims", QN_SYNTAX },
    { "relu x=f32/4x4/4:", "expected a stride", QN_SYNTAX },
    { "relu x=f32/4@3", "an alignment is 1, 2, 4, 8 or 16", QN_SYNTAX },
    { "relu x=f32/4@2", "alignment is 2; f32 needs 4", QN_BAD_ARGUMENT },
    { "relu x=f32/4%", "\"%\" cannot follow in a tensor", QN_SYNTAX },
    { "relu x=?", "only outputs can be wanted", QN_SYNTAX },
    { "relu x=[f32/4]", "x takes one tensor, not a list", QN_SYNTAX },
    { "relu x=y", "\"y\" is no tensor", QN_SYNTAX },
    { "relu x=f32/4 | relu x=f32/4", "\"|\" joins the lines of a graph", QN_SYNTAX },
    { "relu x=f32/4\nrelu x=f32/4", "line 2, column 1: a second problem begins", QN_SYNTAX },
    { "relu y=f32/4", "relu: x: is missing", QN_BAD_ARGUMENT },
    { "concat x=[]", "x: is empty", QN_BAD_ARGUMENT },
    { "concat x=[f32/2,f32/3", "expected \"]\"", QN_SYNTAX },
    { "concat x=[f32/2,,f32/3]", "is no tensor", QN_SYNTAX },
    { "softmax x=f32/4 axis=one", "axis: expected an integer", QN_SYNTAX },
    { "softmax x=f32/4 axis=1", "softmax: axis: is 1; must be -1 (the last) or 0 to 0", QN_BAD_ARGUMENT },
    { "softmax x=f32/4 axis=0,0", "more than 1 values", QN_SYNTAX },
    { "elu x=f32/4 alpha=big", "alpha: \"big\" is no number", QN_SYNTAX },
    { "elu x=f32/4 alpha=1e999", "is no number", QN_SYNTAX },
    { "elu x=f32/4 alpha=0x10", "is no number", QN_SYNTAX },
    { "reduce_sum x=f32/4x4 axis=2", "2 is no dim of 2", QN_SYNTAX },
    { "permute x=f32/4x4 perm=0", "perm: 1 values; expected 2", QN_SYNTAX },
    { "permute x=f32/4x4 perm=1,1", "names dim 1 twice", QN_BAD_ARGUMENT },
    { "conv_forward x=f32/1x1x4x4 w=f32/1x1x3x3 pad=1,1,1", "pad: 3 values; expected 1 or 2", QN_SYNTAX },
    { "conv_forward x=f32/1x1x4x4 w=f32/1x1x3x3 pad=1:", "expected the padding after", QN_SYNTAX },
    { "conv_forward x=f32/1x1x4x4 w=f32/1x1x3x3 pad=1;1", NULL, QN_OK },
    { "conv_forward x=f32/1x1x4x4 w=f32/1x1x3x3 pad=1.5", "\".5\" cannot follow", QN_SYNTAX },
    { "dropout x=f32/4 seed=1.5", "seed: \"1.5\" is no whole number", QN_SYNTAX },
    { "dropout x=f32/4 seed=1 offset=9223372036854775808", "offset: \"9223372036854775808\" is no whole number", QN_SYNTAX },
    { "sgd params=[f32/4] grads=[f32/4] step=nan rate=1", "step: \"nan\" is no whole number", QN_SYNTAX },
    { "dropout x=f32/4 seed=-9223372036854775808", NULL, QN_OK },
    { "in a f32/4 | in b f32/5 | [c,d] = all_reduce x=[a,b] | out c | out d", NULL, QN_OK },
    { "in a f32/4 | c = all_reduce x=a | out c over a", NULL, QN_OK },
    { "in a f32/4 | [c] = all_gather x=a ranks=2 y=[f32/8] | out c", NULL, QN_OK },
    { "in a f32/4 | in b f32/5 | [c,c] = all_reduce x=[a,b] | out c", "\"c\" is taken", QN_SYNTAX },
    { "in a f32/4 | in b f32/5 | [c,a] = all_reduce x=[a,b] | out c", "\"a\" is taken", QN_SYNTAX },
    { "in a f32/4 | in b f32/5 | [c] = all_reduce x=[a,b] | out c", "y: has 1 tensors; must have as many as x, 2", QN_BAD_ARGUMENT },
    { "in a f32/4 | [c,] = all_reduce x=a | out c", "expected a name after \",\"", QN_SYNTAX },
    { "in a f32/4 | [] = all_reduce x=a", "is no name", QN_SYNTAX },
    { "in a f32/4 | [c = all_reduce x=a", "expected names, joined by \",\", and \"]\"", QN_SYNTAX },
    { "in a f32/4 | [c] = relu x=a | out c", "y is one tensor, not a list", QN_SYNTAX },
    { "in a f32/4 | [c] = all_reduce x=a y=f32/4", "expected a list of tensors", QN_SYNTAX },
    { "in a f32/4 | [c] = all_reduce x=a y=[f32/4,f32/4]", "more tensors than names", QN_SYNTAX },
    { "cross_entropy x=f32/4x5 labels=i64/4x1 ignore=-9223372036854775808", NULL, QN_OK },
    { "cross_entropy x=f32/4x5 labels=i64/4x1 ignore=-9223372036854775809", "ignore: expected an integer", QN_SYNTAX },
    { "add a=f32/4 b=2 y=b", "cannot take the memory of b, a number", QN_SYNTAX },
    { "softmax x=f32/4 y=x", "line 1: softmax: y: may not take the memory of x", QN_BAD_ARGUMENT },
    { "in x f32/4", "there is no op", QN_SYNTAX },
    { "in f32 f32/4 | out y = relu x=f32", "expected a name", QN_SYNTAX },
    { "in x f32/4 | in x f32/4 | out y = add a=x b=x", "\"x\" is taken", QN_SYNTAX },
    { "in x f32/4 | out x = relu x=x", "\"x\" is taken", QN_SYNTAX },
    { "in x f32/4 | relu x=x", "column 14: in a graph an op names its output", QN_SYNTAX },
    { "in x f32/4 | y = relu x=z", "\"z\" is neither declared", QN_SYNTAX },
    { "in x f32/4 | y = relu x=f32/4", "a graph's tensors are declared", QN_SYNTAX },
    { "in x f32/4 | y = relu x=x", "has no output", QN_BAD_ARGUMENT },
    { "y = rng_uniform y=f32/4 seed=1", "has no output", QN_BAD_ARGUMENT },
    { "in x f32/4 | out z", "\"z\" is made by no op above", QN_SYNTAX },
    { "in x f32/4 | out x | y = relu x=x", "x: is an output, but no op makes it", QN_BAD_ARGUMENT },
    { "in x f32/4 | out y = relu x=x | out y", "y: stands twice among the outputs", QN_BAD_ARGUMENT },
    { "in x f32/4 | in z f32/4 | out y = relu x=x", "z: is an input, but no op reads it", QN_BAD_ARGUMENT },
    { "in x f32/4 | out y over z = relu x=x", "\"z\" is declared nowhere above", QN_SYNTAX },
    { "in x f32/4 | out y over x = relu x=x | out z = abs x=x", "which a later op reads", QN_BAD_ARGUMENT },
    { "in x f32/4 | out y over x = relu x=x | out z over x = abs x=x", "and so is another output", QN_BAD_ARGUMENT },
    { "in x f32/4 | out y over x = softmax x=x", "may not take the memory of x", QN_BAD_ARGUMENT },
    { "in x f32/4 | y = relu x=x | out z over y = relu x=y", "y, which is no input tensor", QN_BAD_ARGUMENT },
    { "in x f32/4 | out y over x = cast x=x y=i32/4", "differs from it in dtype", QN_BAD_ARGUMENT },
    { "in x f32/4\nout y = relu x=x\nout z = matmul a=x b=y", "line 3, column 9: matmul: a: rank is 1", QN_BAD_ARGUMENT },
    { "in x f32/1x1x4x4 | y = pool_max x=x indices=?", "expected a name for it", QN_SYNTAX },
    { "in x f32/4x32 | out y = quantize_dynamic x=x y=e4m3/4x32", "scale: expected a name for it", QN_SYNTAX },
    { "in x f32/4 | y = relu x=x |", "expected a line of the graph after \"|\"", QN_SYNTAX },
    { "in x f32/4 y", "cannot follow here", QN_SYNTAX },
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    qn_graph *g;
    qn_status status = qn_graph_parse(bad[i].text, &g);
    bool right = status == bad[i].status && (status ? !g && strstr(qn_last_error(), bad[i].has) : g != NULL);
    if (!tap_ok(right, "sentence %zu: %s", i, status ? qn_last_error() : "none")) tap_note("wanted: %s", bad[i].has ? bad[i].has : "none");
    qn_graph_destroy(g);
  }
}

/* ---- suggestions -------------------------------------------------------------------------- */

/* Letters put in, left out or replaced between two words: the whole matrix, as defined. */
static int edits(const char *a, const char *b)
{
  int d[64][64], m = (int)strlen(a), n = (int)strlen(b);
  for (int i = 0; i <= m; i++)
    for (int j = 0; j <= n; j++) {
      int least = i == 0 ? j : j == 0 ? i : d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      if (i && d[i - 1][j] + 1 < least) least = d[i - 1][j] + 1;
      if (j && d[i][j - 1] + 1 < least) least = d[i][j - 1] + 1;
      d[i][j] = least;
    }
  return d[m][n];
}

/* The op that the parser suggests for a word; NULL: none, or the word is an op's. */
static const qn_op_info *suggestion(const char *word)
{
  char line[80], name[64] = "";
  snprintf(line, sizeof line, "%s zz=f32/1", word);
  qn_graph *g;
  if (!qn_graph_parse(line, &g)) qn_graph_destroy(g);
  const char *at = strstr(qn_last_error(), "did you mean ");
  if (at) sscanf(at, "did you mean %63[a-z0-9_]", name);
  return at ? qn_op_named(name) : NULL;
}

static bool is_alias(const char *word)
{
  for (int i = 0; i < qn__n_aliases; i++)
    if (!strcmp(qn__aliases[i].word, word)) return true;
  return false;
}

static void test_suggestions(void)
{
  int wrong = 0;
  for (int i = 0; i < qn__n_aliases; i++) {
    const char *word = qn__aliases[i].word;
    bool right = !qn_op_named(word) && suggestion(word) == &qn__ops[qn__aliases[i].op];
    for (int j = 0; j < i; j++) right &= strcmp(qn__aliases[j].word, word) != 0;
    if (!right && wrong++ < 3) tap_note("%s: %s", word, qn_last_error());
  }
  tap_ok(!wrong && qn__n_aliases > 100, "each of %d aliases stands once, is no op, and suggests its own", qn__n_aliases);

  tap_ok(!suggestion("si"), "si is further than a third of its letters from all: %s", qn_last_error());
  /* words at every distance from every op */
  rng r = { 5 };
  int far = 0, missed = 0, suggested = 0, silent = 0;
  for (int n = 0; n < 20000; n++) {
    char word[64];
    snprintf(word, sizeof word, "%s", qn__ops[n % qn__n_ops].name);
    for (int k = rng_below(&r, 6); k > 0; k--) {
      int length = (int)strlen(word), at = rng_below(&r, length ? length : 1), letter = 'a' + rng_below(&r, 26);
      switch (rng_below(&r, 3)) {
      case 0: if (length > 1) memmove(word + at, word + at + 1, (size_t)(length - at)); break;
      case 1: if (length < 60) memmove(word + at + 1, word + at, (size_t)(length - at + 1)), word[at] = (char)letter; break;
      default: word[at] = (char)letter;
      }
    }
    if (qn_op_named(word) || is_alias(word)) continue;
    const qn_op_info *near = suggestion(word);
    int third = (int)strlen(word) / 3, least = 64;
    for (int i = 0; i < qn__n_ops; i++) {
      int d = edits(word, qn__ops[i].name);
      least = d < least ? d : least;
    }
    near ? suggested++ : silent++;
    if (near && edits(word, near->name) > (least < third ? least : third) && far++ < 3) tap_note("%s: %s", word, near->name);
    if (!near && least <= (third < 3 ? third : 3) && missed++ < 3) tap_note("%s: nothing, though %d letters away", word, least);
  }
  tap_ok(!far && !missed && suggested > 1000 && silent > 1000,
         "of 20000 words the nearest op is suggested, never further than a third of the word: %d, and nothing for %d", suggested, silent);
}

int main(void)
{
  test_sentences();
  test_suggestions();
  return tap_done();
}
