/* t_gradient_graphs.c -- what qn_graph_gradient makes of whole graphs: the lines themselves, graphs from arrays, a training step as one
 * graph, low precision; and what it refuses. */
#include "buffers.h"
#include "tap.h"

/* ---- the lines ------------------------------------------------------------------------------------- */

/* The backward half, which follows the forward half; where that gets outputs, the whole graph. */
static const struct { const char *what, *lines, *loss, *wrt, *forward, *backward; } texts[] = {
  { "values that do not depend on wrt get no lines",
    "in x f32/4x3 | in w f32/3x2 | in v f32/2x2 | a = matmul a=x b=w | b = exp x=a | c = matmul a=b b=v | out loss = reduce_sum x=c",
    "loss", "v", NULL,
    " | g1 = cast x=1 y=f32/1x1 | g2 = mul a=g1 b=1 y=f32/4x2 | g3 = permute x=b perm=1,0 | out dv = matmul a=g3 b=g2" },
  { "nor do those that do not lead to the loss",
    "in x f32/4 | a = exp x=x | out b = sin x=a | out loss = reduce_sum x=a", "loss", "x", NULL,
    " | g1 = cast x=1 y=f32/1 | g2 = mul a=g1 b=1 y=f32/4 | out dx = mul a=g2 b=a" },
  { "two readers",
    "in x f32/4 | a = exp x=x | b = mul a=a b=x | out loss = reduce_sum x=b", "loss", "x", NULL,
    " | g1 = cast x=1 y=f32/1 | g2 = mul a=g1 b=1 y=f32/4 | g3 = mul a=g2 b=x | g4 = mul a=g2 b=a | g5 = mul a=g3 b=a | "
    "out dx = add a=g4 b=g5" },
  { "an lse and a count are asked for, in a graph of one op",
    "cross_entropy x=f32/4x10 labels=i32/4x1 reduction=mean", "loss", "x",
    "in x f32/4x10 | in labels i32/4x1 | out loss = cross_entropy x=x labels=labels lse=loss_lse count=loss_count reduction=mean",
    " | g1 = cast x=1 y=f32/1x1 | out dx = cross_entropy_backward dy=g1 x=x labels=labels lse=loss_lse count=loss_count reduction=mean" },
  { "an lse that is there is read",
    "in x f32/4x10 | in l i32/4x1 | out loss = cross_entropy x=x labels=l lse=e reduction=sum | out e", "loss", "x", NULL,
    " | g1 = cast x=1 y=f32/1x1 | out dx = cross_entropy_backward dy=g1 x=x labels=l lse=e reduction=sum" },
  { "indices, gates and cells are asked for; names that are taken are not given",
    "in x f32/5x2x4 | in w f32/12x4 | in r f32/12x3 | y = rnn_forward x=x w=[w] r=[r] | y_gates = pool_max x=y window=2 | "
    "out loss = reduce_sum x=y_gates", "loss", "w",
    "in x f32/5x2x4 | in w f32/12x4 | in r f32/12x3 | y = rnn_forward x=x w=[w] r=[r] gates=y_gates1 cells=y_cells | "
    "y_gates = pool_max x=y indices=y_gates_indices window=2 | out loss = reduce_sum x=y_gates",
    " | g1 = cast x=1 y=f32/1x1x1 | g2 = mul a=g1 b=1 y=f32/5x2x1 | g3 = pool_max_backward dy=g2 indices=y_gates_indices window=2 "
    "dx=f32/5x2x3 | g4 = rnn_backward dy=g3 x=x y=y w=[w] r=[r] gates=y_gates1 cells=y_cells dw=[dw] | out dw" },
  { "gradients have the layout of what they belong to",
    "in x bf16/2x8x6x6/nhwc | in w bf16/8x8x3x3/nhwc | y = conv_forward x=x w=w | z = relu x=y | out loss = reduce_mean x=z", "loss", "x w",
    NULL,
    " | g1 = cast x=1 y=bf16/1x1x1x1 | g2 = div a=g1 b=256 | g3 = mul a=g2 b=1 y=bf16/2x8x4x4/nhwc | g4 = relu_backward dy=g3 x=z | "
    "out dx = conv_backward_data dy=g4 w=w | out dw = conv_backward_filter x=x dy=g4" },
  { "and are packed where that has gaps, or repeats",
    "in x f32/3x4/8:2 | in b f32/3x4/0:1 | y = mul a=x b=b | out loss = reduce_sum x=y", "loss", "x b", NULL,
    " | g1 = cast x=1 y=f32/1x1 | g2 = mul a=g1 b=1 y=f32/3x4 | out dx = mul a=g2 b=b | out db = mul a=g2 b=x" },
  { "gradients of steps are 0",
    "in x f32/4 | a = floor x=x | out loss = reduce_sum x=a", "loss", "x", NULL, " | g1 = cast x=1 y=f32/1 | out dx = cast x=0 y=f32/4" },
  { "by the loss itself, and by two values of one gradient",
    "in x f32/1 | in y f32/1 | out loss = add a=x b=y", "loss", "loss x y", NULL,
    " | out dloss = cast x=1 y=f32/1 | out dx = copy x=dloss | out dy = copy x=dloss" },
  { "values without a name are called what they print as",
    "in v0 f32/4 | v1 = exp x=v0 | out loss = reduce_sum x=v1", "loss", "v1", NULL,
    " | g1 = cast x=1 y=f32/1 | out dv1 = mul a=g1 b=1 y=f32/4" },
  { "names of the backward half avoid those of the graph",
    "in g1 f32/4 | out loss = reduce_sum x=g1", "loss", "g1", NULL, " | g2 = cast x=1 y=f32/1 | out dg1 = mul a=g2 b=1 y=f32/4" },
};

static void check_texts(void)
{
  static char text[TEXT], wanted[TEXT];
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    qn_graph *g = NULL, *d = NULL, *w = NULL;
    snprintf(wanted, sizeof wanted, "%s%s", texts[i].forward ? texts[i].forward : texts[i].lines, texts[i].backward);
    text[0] = '\0';
    bool ok = !qn_graph_parse(texts[i].lines, &g) && !differentiate(g, texts[i].loss, texts[i].wrt, &d) && !qn_graph_parse(wanted, &w);
    if (ok) {
      qn_graph_print(w, wanted, sizeof wanted);
      qn_graph_print(d, text, sizeof text);
      ok = !strcmp(text, wanted);
    }
    if (!tap_ok(ok, "%s", texts[i].what)) tap_note("%s (%s); wanted: %s", text, qn_last_error(), wanted);
    qn_graph_destroy(g);
    qn_graph_destroy(d);
    qn_graph_destroy(w);
  }
}

/* ---- errors ------------------------------------------------------------------------------------------ */

static const struct { const char *lines, *loss, *wrt; qn_status status; const char *says; } errors[] = {
  { "in x f32/4 | out y = exp x=x", "y", "x", QN_BAD_ARGUMENT, "y: dims are 4; a loss is one element" },
  { "in x f32/4 | out y = exp x=x", "z", "x", QN_BAD_ARGUMENT, "loss: \"z\" is no value of the graph" },
  { "in x f32/4 | out y = reduce_sum x=x", "y", "w", QN_BAD_ARGUMENT, "wrt[0]: \"w\" is no value of the graph" },
  { "in x f32/4 | out y = reduce_sum x=x", "y", "x x", QN_BAD_ARGUMENT, "x: stands twice in wrt" },
  { "in x f32/4 | out y = argmax x=x", "y", "x", QN_BAD_ARGUMENT, "y: dtype is i32; a loss is" },
  { "in x f32/4 | in i i32/2 | g = gather x=x indices=i | out y = reduce_sum x=g", "y", "x i", QN_BAD_ARGUMENT, "i: dtype is i32" },
  { "in x f32/4 | in w f32/4 | out z = exp x=w | out y = reduce_sum x=x", "y", "w", QN_BAD_ARGUMENT, "w: y does not depend on it" },
  { "in x f32/4 | dx = exp x=x | out y = reduce_sum x=dx", "y", "x", QN_BAD_ARGUMENT, "dx: would be the gradient by x" },
  { "in x f32/4x3 | i = argmax x=x axis=1 | j = cast x=i y=f32/4x1 | out y = reduce_sum x=j", "y", "x", QN_UNSUPPORTED,
    "the gradient of argmax is not known: a place is no smooth function of what lies there, and through i" },
  { "in x f32/4x8 | in s f32 | q = quantize x=x scale=s y=i8/4x8 | d = dequantize x=q scale=s | out y = reduce_sum x=d", "y", "x",
    QN_UNSUPPORTED, "the gradient of quantize is not known: rounding has none, and through q" },
  { "in s f32 | in q i8/4x8 | d = dequantize x=q scale=s | out y = reduce_sum x=d", "y", "s", QN_UNSUPPORTED,
    "the gradient of dequantize is not known, and through d" },
  { "in x f32/4x8 | e = cast x=x y=e4m3/4x8 | d = cast x=e y=f32/4x8 | out y = reduce_sum x=d", "y", "x", QN_UNSUPPORTED,
    "e: dtype is e4m3" },
  { "in x f32/4x8 | in l i32/4x1 | in w f32/8 | out y = cross_entropy x=x labels=l weights=w reduction=mean", "y", "w", QN_UNSUPPORTED,
    "the gradient of cross_entropy by its weights is not known, and through w" },
  { "in x f32/4x8 | in l i32/4x1 | z = cross_entropy x=x labels=l lse=e | out y = reduce_sum x=e", "y", "x", QN_UNSUPPORTED,
    "the gradient of cross_entropy by its lse is not known, and through e" },
  { "in q f32/1x2x1x8 | in k f32/4x2x16x8 | in p i32/1x2 | in n i32/1 | o = attention_forward q=q k=k v=k pages=p kv_lengths=n | "
    "out y = reduce_sum x=o", "y", "q", QN_UNSUPPORTED, "the gradient of attention_forward with pages is not known, and through o" },
  { "in x f32/4 | b = broadcast x=[x] | out y = reduce_sum x=b", "y", "x", QN_UNSUPPORTED, "the gradient of broadcast is not known: " },
  { "in x f32/3x4 | in i i32/2x1 | in u f32/2x4 | s = scatter_nd x=x indices=i updates=u mode=mul | out y = reduce_sum x=s", "y", "x",
    QN_UNSUPPORTED, "the gradient of scatter_nd by its x is not known" },
  { "in x f32/4 | in m f32/4 | e = exp x=x | out loss = reduce_sum x=e | out r over m = mul a=m b=x", "loss", "m", QN_BAD_ARGUMENT,
    "m: loss does not depend on it" },
  { "in x f32/4 | e = exp x=x | out loss = reduce_sum x=e | out r over x = neg x=x", "loss", "e", QN_OK, "" },
  { "in x f32/4 | s = mul a=x b=x | out loss = reduce_sum x=s | out r over x = neg x=x", "loss", "x", QN_BAD_ARGUMENT,
    "r: is to take the memory of x, which a later op reads" },
};

static void check_errors(void)
{
  qn_graph *g = NULL, *d;
  static const char *const x[] = { "x" };
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    char before[1000], after[1000];
    d = (qn_graph *)1;
    qn_status status = qn_graph_parse(errors[i].lines, &g);
    const bool parsed = !status;
    if (parsed) {
      qn_graph_print(g, before, sizeof before);
      status = differentiate(g, errors[i].loss, errors[i].wrt, &d);
      qn_graph_print(g, after, sizeof after);
    }
    if (!tap_ok(parsed && status == errors[i].status && !d == (status != QN_OK) && (!status || strstr(qn_last_error(), errors[i].says))
                  && !strcmp(before, after), "refused: %.60s ... %s", errors[i].lines, errors[i].says))
      tap_note("%d, %s", (int)status, qn_last_error());
    if (!status) qn_graph_destroy(d);
    qn_graph_destroy(g);
    g = NULL;
  }
  if (qn_graph_parse("in x f32/4 | out y = reduce_sum x=x", &g)) return;
  tap_ok(qn_graph_gradient(NULL, "y", x, 1, &d) == QN_BAD_ARGUMENT && !d && qn_graph_gradient(g, NULL, x, 1, &d) == QN_BAD_ARGUMENT
           && qn_graph_gradient(g, "y", NULL, 1, &d) == QN_BAD_ARGUMENT && qn_graph_gradient(g, "y", x, 1, NULL) == QN_BAD_ARGUMENT
           && qn_graph_gradient(g, "y", x, 0, &d) == QN_BAD_ARGUMENT && !d, "refused: NULL, and n 0");
  qn_graph_destroy(g);
  tap_ok(qn_graph_gradient(g, "y", x, 1, &d) == QN_BAD_ARGUMENT && !d && strstr(qn_last_error(), "destroyed"),
         "refused: a destroyed graph");
}

/* ---- graphs from arrays ---------------------------------------------------------------------------------- */

/* The same graph made of arrays without names: values are called v0, v1, ... */
static void check_arrays(void)
{
  qn_graph *g = NULL, *bare = NULL, *d = NULL, *named_d = NULL;
  buffers b = { 0 }, c = { 0 };
  bool ok = !qn_graph_parse("in x f64/3x4 | in w f64/4x2 | y = matmul a=x b=w | z = tanh x=y | out loss = reduce_mean x=z", &g);
  if (ok) {
    qn_graph_view view = *qn_graph_inspect(g);
    view.name = NULL;
    ok = !qn_graph_make(&view, &bare) && !differentiate(bare, "v4", "v1", &d) && !differentiate(g, "loss", "w", &named_d)
      && prepare(&b, named_d, NULL, "") && prepare(&c, d, NULL, "") && execute(named_d, &b) && execute(d, &c);
  }
  tap_ok(ok && b.n == c.n && qn_graph_index(d, "dv1") == qn_graph_index(named_d, "dw")
           && !memcmp(b.p[qn_graph_index(named_d, "dw")], c.p[qn_graph_index(d, "dv1")], 8 * sizeof(double)),
         "a graph from arrays without names gives the same numbers");
  release(&b);
  release(&c);
  qn_graph_destroy(g);
  qn_graph_destroy(bare);
  qn_graph_destroy(d);
  qn_graph_destroy(named_d);
}

/* A gradient's gradient: the first one's outputs renamed, and of their squares' sum the gradient, against the second derivative. */
static void check_twice(void)
{
  static char text[TEXT];
  qn_graph *g = NULL, *d = NULL, *named_again = NULL, *dd = NULL;
  buffers b = { 0 };
  bool ok = !qn_graph_parse("in x f64/5 | e = exp x=x | y = mul a=e b=x | out loss = reduce_sum x=y", &g)
         && !differentiate(g, "loss", "x", &d);
  if (ok) {
    qn_graph_print(d, text, sizeof text);
    char *at = strstr(text, "out dx");
    if (at) memcpy(at, "out fx", 6);
    strcat(text, " | q = mul a=fx b=fx | out second = reduce_sum x=q");
    ok = at && !qn_graph_parse(text, &named_again) && !differentiate(named_again, "second", "x", &dd) && prepare(&b, dd, NULL, "")
      && execute(dd, &b);
  }
  double worst = 0;
  for (int i = 0; ok && i < 5; i++) {       /* f' = (1 + x) e^x, f'' = (2 + x) e^x */
    const double x = held(&b, "x", i), wanted = 2 * (1 + x) * (2 + x) * exp(2 * x);
    worst = fmax(worst, fabs(held(&b, "dx", i) - wanted) / (1 + fabs(wanted)));
  }
  if (!tap_ok(ok && worst < 1e-14, "a gradient's gradient")) tap_note("%g; %s", worst, qn_last_error());
  release(&b);
  qn_graph_destroy(g);
  qn_graph_destroy(d);
  qn_graph_destroy(named_again);
  qn_graph_destroy(dd);
}

/* ---- kinks and edges -------------------------------------------------------------------------------------- */

/* y of one x, where differences do not say what the gradient is. */
static const struct { const char *line; double x, dx; } kinks[] = {
  { "relu x=x", 0, 0 }, { "abs x=x", 0, 0 }, { "max a=x b=0", 0, 1 }, { "max a=0 b=x", 0, 0 }, { "min a=x b=0", 0, 1 },
  { "min a=0 b=x", 0, 0 },
  { "prelu x=x slope=0.25", 0, 0.25 }, { "reduce_norm2 x=x", 0, 0 }, { "reduce_norm1 x=x", 0, 0 }, { "reduce_amax x=x", 0, 0 },
  { "pow a=x b=0", 0, 0 }, { "pow a=x b=1", 0, 1 }, { "pow a=x b=2", 0, 0 }, { "pow a=0 b=x", 2, 0 }, { "reduce_prod x=x", 0, 1 },
  { "reduce_variance x=x correction=0", 3, 0 }, { "clip x=x min=0 max=1", 1, 0 }, { "log x=x", 0, INFINITY },
};

static void check_kinks(void)
{
  for (size_t i = 0; i < sizeof kinks / sizeof kinks[0]; i++) {
    char lines[200];
    qn_graph *g = NULL, *d = NULL;
    buffers b = { 0 };
    snprintf(lines, sizeof lines, "in x f64/1 | y = %s | out loss = reduce_sum x=y", kinks[i].line);
    bool ok = !qn_graph_parse(lines, &g) && !differentiate(g, "loss", "x", &d) && prepare(&b, d, NULL, "");
    if (ok) *(double *)b.p[0] = kinks[i].x;
    ok = ok && execute(d, &b);
    if (!tap_ok(ok && held(&b, "dx", 0) == kinks[i].dx, "%s at %g: %g", kinks[i].line, kinks[i].x, kinks[i].dx))
      tap_note("%g; %s", held(&b, "dx", 0), qn_last_error());
    release(&b);
    qn_graph_destroy(g);
    qn_graph_destroy(d);
  }
}

/* ---- a training step ----------------------------------------------------------------------------------------- */

static const char network[] =
  "in x f32/16x1x8x8 | in label i32/16x1x1x1 | in w1 f32/4x1x3x3 | in s1 f32/1x4x1x1 | in b1 f32/1x4x1x1 | in mean1 f32/1x4x1x1 | "
  "in var1 f32/1x4x1x1 | in w2 f32/10x4x4x4 | in b2 f32/10 | z1 = conv_forward x=x w=w1 pad=1 | "
  "n1 = batch_norm x=z1 scale=s1 shift=b1 running_mean=mean1 running_var=var1 new_mean=mean1_ new_var=var1_ | a1 = relu x=n1 | "
  "p1 = pool_max x=a1 window=2 | scores = conv_forward x=p1 w=w2 bias=b2 | "
  "out loss = cross_entropy x=scores labels=label axis=1 reduction=mean | out mean1_ over mean1 | out var1_ over var1";
static const char optimiser[] =
  " | in step i64 | in rate f32 | in m1 f32/4x1x3x3 | in m2 f32/1x4x1x1 | in m3 f32/1x4x1x1 | in m4 f32/10x4x4x4 | in m5 f32/10 | "
  "step_ = sgd params=[w1,s1,b1,w2,b2] grads=[dw1,ds1,db1,dw2,db2] velocity=[m1,m2,m3,m4,m5] step=step rate=rate "
  "new_params=[w1_,s1_,b1_,w2_,b2_] new_velocity=[m1_,m2_,m3_,m4_,m5_] momentum=0.9 | out step_ over step | out w1_ over w1 | "
  "out s1_ over s1 | out b1_ over b1 | out w2_ over w2 | out b2_ over b2 | out m1_ over m1 | out m2_ over m2 | out m3_ over m3 | "
  "out m4_ over m4 | out m5_ over m5";

/* An output over an input has its memory: the pointers in `used`. */
static void share(const buffers *b, const qn_graph *g, void **used)
{
  const qn_graph_view *v = qn_graph_inspect(g);
  for (int i = 0; i < b->n; i++) {
    used[i] = b->p[i];
    for (int k = 0; k < i; k++)
      if (b->value[i]->over == v->pointer[k]) used[i] = b->p[k];
  }
}

static void check_training(void)
{
  static char text[TEXT];
  static const char values[] = "label:0..9 w1:-0.3..0.3 w2:-0.1..0.1 b2:-0.1..0.1 s1=1,1,1,1 b1=0,0,0,0 mean1=0,0,0,0 var1=1,1,1,1 "
                               "step=0 rate=0.05 m1:0..0 m2:0..0 m3:0..0 m4:0..0 m5:0..0";
  void *used[MOST];
  qn_graph *g = NULL, *d = NULL, *step = NULL;
  qn_plan *plan = NULL;
  qn_recording *recording = NULL;
  buffers alone = { 0 }, b = { 0 };
  bool ok = !qn_graph_parse(network, &g) && !differentiate(g, "loss", "w1 s1 b1 w2 b2", &d);
  if (ok) {
    snprintf(text + qn_graph_print(d, text, sizeof text), 4000, "%s", optimiser);
    ok = !qn_graph_parse(text, &step) && prepare(&b, step, NULL, values) && prepare(&alone, d, &b, "");
  }
  if (ok) {
    void *pointers[MOST];
    qn_plan *half = NULL;
    share(&alone, d, pointers);
    ok = !qn_plan_create(ctx, d, &half) && !qn_plan_execute(ctx, half, pointers);
    qn_plan_destroy(half);
    share(&b, step, used);
  }
  if (!tap_ok(ok && !qn_plan_create(ctx, step, &plan) && !qn_plan_execute(ctx, plan, used), "a training step is one graph and one plan"))
    tap_note("%s", qn_last_error());
  const double begin = held(&b, "loss", 0);
  double worst = 0;
  for (int i = 0; ok && i < 36; i++) {
    const double moved = ((float *)alone.p[named(&alone, "w1")])[i] - 0.05f * ((float *)alone.p[named(&alone, "dw1")])[i];
    worst = fmax(worst, fabs(moved - ((float *)used[named(&b, "w1")])[i]));
  }
  tap_ok(ok && worst < 1e-6 && held(&b, "step", 0) == 1, "which moves parameters by their gradients, in place");
  ok = ok && plan && !qn_record_begin(ctx) && !qn_plan_execute(ctx, plan, used) && !qn_record_end(ctx, &recording);
  for (int i = 0; ok && i < 80; i++) ok = !qn_recording_replay(ctx, recording);
  ok = ok && !qn_context_synchronize(ctx);
  if (!tap_ok(ok && begin > 2 && begin < 4 && held(&b, "loss", 0) < 0.1, "and, recorded and replayed, learns"))
    tap_note("loss %g, then %g", begin, held(&b, "loss", 0));
  qn_recording_destroy(recording);
  qn_plan_destroy(plan);
  release(&b);
  release(&alone);
  qn_graph_destroy(g);
  qn_graph_destroy(d);
  qn_graph_destroy(step);
}

/* ---- low precision ---------------------------------------------------------------------------------------------- */

/* The same network with f32 parameters and activations of f16 or bf16: gradients in f32, near those in f64. */
static void check_precision(const char *dtype, double bound)
{
  static const char lines[] =
    "in x f64/6x8 | in w f64/8x4 | in c f64/4 | in r f64/4x8 | in s f64/1x8 | in l i32/6x1 | xh = cast x=x y=half/6x8 | "
    "wh = cast x=w y=half/8x4 | a = matmul a=xh b=wh bias=c | g = gelu x=a y=half/6x4 | rh = cast x=r y=half/4x8 | h = matmul a=g b=rh | "
    "n = rms_norm x=h scale=s | sum = add a=n b=xh | out loss = cross_entropy x=sum labels=l reduction=mean";
  static char text[2][2000];
  qn_graph *g[2] = { NULL, NULL }, *d[2] = { NULL, NULL };
  buffers b[2] = { { 0 }, { 0 } };
  bool ok = true;
  double worst = 0;
  for (int i = 0; i < 2 && ok; i++) {
    char *at = text[i];
    for (const char *p = lines; *p; p++) {
      if (!strncmp(p, "half", 4)) at += sprintf(at, "%s", i ? dtype : "f64"), p += 3;
      else if (!strncmp(p, "f64", 3) && i) at += sprintf(at, "f32"), p += 2;
      else *at++ = *p;
    }
    *at = '\0';
    ok = !qn_graph_parse(text[i], &g[i]) && !differentiate(g[i], "loss", "w c r s x", &d[i]) && prepare(&b[i], d[i], NULL, "l:0..7")
      && execute(d[i], &b[i]);
  }
  for (int k = 0; ok && k < b[0].n; k++)
    for (int64_t i = 0; k >= b[0].ins && i < qn_elements(b[0].value[k]); i++)
      worst = fmax(worst, fabs(held(&b[0], b[0].name[k], i) - held(&b[1], b[1].name[k], i)));
  if (!tap_ok(ok && worst > 0 && worst < bound && b[1].value[named(&b[1], "dw")]->dtype == QN_F32, "activations of %s, parameters of f32",
              dtype))
    tap_note("largest difference %g; %s", worst, qn_last_error());
  for (int i = 0; i < 2; i++) {
    release(&b[i]);
    qn_graph_destroy(g[i]);
    qn_graph_destroy(d[i]);
  }
}

int main(void)
{
  const char *const options[] = { "backend=cpu_ref", "threads=1", NULL };
  if (qn_context_create(options, &ctx)) {
    printf("Bail out! %s\n", qn_last_error());
    return 1;
  }
  check_texts();
  check_errors();
  check_arrays();
  check_twice();
  check_kinks();
  check_training();
  check_precision("f16", 0.01);
  check_precision("bf16", 0.05);
  check_precision("f32", 1e-5);
  qn_context_destroy(ctx);
  return tap_done();
}
