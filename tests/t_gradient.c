/* t_gradient.c -- graphs differentiated (quern/graph.h): each row of gradients.def in small graphs, whose gradients are compared with
 * central differences of the loss in f64. */
#include "buffers.h"
#include "gradient.h"
#include "tap.h"

/* A graph that makes y or the loss itself, and what it is differentiated by. After ";": what inputs hold (buffers.h). */
typedef struct problem { const char *lines, *wrt; } problem;

/* ---- central differences -------------------------------------------------------------------------- */

/* Lines that end in y become a loss of it: a sum with weights. Lines that have a loss stay. */
static bool with_loss(const problem *p, char *text, size_t bytes)
{
  const int length = (int)strcspn(p->lines, ";");
  if (strstr(p->lines, "loss =")) return (size_t)snprintf(text, bytes, "%.*s", length, p->lines) < bytes;
  char dims[100] = "";
  qn_graph *g = NULL;
  size_t at = 0;
  snprintf(text, bytes, "%.*s | out y", length, p->lines);
  if (qn_graph_parse(text, &g)) return false;
  const qn_graph_view *v = qn_graph_inspect(g);
  for (uint32_t i = 0; i < v->n_values; i++)
    for (int k = 0; !strcmp(v->name[i], "y") && k < v->value[i].rank; k++)
      at += (size_t)snprintf(dims + at, sizeof dims - at, "%c%lld", k ? 'x' : '/', (long long)v->value[i].dim[k]);
  qn_graph_destroy(g);
  snprintf(text, bytes, "in weights f64%s | %.*s | weighted = mul a=y b=weights | out loss = reduce_sum x=weighted", dims, length,
           p->lines);
  return true;
}

/* Moves each element of each input in wrt by h up and down; the largest error relative to 1 and the slope itself. */
static double largest_error(const qn_graph *g, const buffers *b, const buffers *found, const char *wrt)
{
  char words[200], name[80];
  const char *word[MOST];
  double worst = 0;
  snprintf(words, sizeof words, "%s", wrt);
  const int n = split(words, word);
  for (int i = 0; i < n; i++) {
    snprintf(name, sizeof name, "d%s", word[i]);
    const int in = named(b, word[i]), out = named(found, name);
    if (in < 0 || out < 0) return INFINITY;
    const qn_value *v = b->value[in], *dv = found->value[out];
    int64_t index[QN_MAX_RANK] = { 0 };
    for (int64_t k = 0; k < qn_elements(v); k++) {
      int64_t at = 0, d_at = 0, rest = k;
      for (int d = v->rank - 1; d >= 0; rest /= v->dim[d], d--) {
        index[d] = rest % v->dim[d];
        at += index[d] * v->stride[d];
        d_at += index[d] * dv->stride[d];
      }
      double *x = (double *)b->p[in] + at, old = *x, h = 1e-5;
      *x = old + h;
      if (!execute(g, b)) return INFINITY;
      const double up = held(b, "loss", 0);
      *x = old - h;
      if (!execute(g, b)) return INFINITY;
      const double slope = (up - held(b, "loss", 0)) / (2 * h), error = fabs(slope - ((double *)found->p[out])[d_at]) / (1 + fabs(slope));
      *x = old;
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

static void check(const problem *p)
{
  static char lines[TEXT], text[TEXT], again[TEXT];
  qn_graph *g = NULL, *d = NULL, *read = NULL;
  buffers b = { 0 }, found = { 0 };
  const char *values = strchr(p->lines, ';');
  double error = INFINITY;
  bool same = false;
  if (with_loss(p, lines, sizeof lines) && !qn_graph_parse(lines, &g) && !differentiate(g, "loss", p->wrt, &d)) {
    same = qn_graph_print(d, text, sizeof text) < sizeof text && !qn_graph_parse(text, &read)
        && qn_graph_print(read, again, sizeof again) < sizeof again && !strcmp(text, again);
    if (same && prepare(&b, g, NULL, values ? values + 1 : "") && prepare(&found, d, &b, "") && execute(d, &found))
      error = largest_error(g, &b, &found, p->wrt);
  }
  if (!tap_ok(same && error < 2e-7, "by %s: %.150s", p->wrt, p->lines))
    tap_note("%s; error %.3g; %s", same ? "reads back" : "fails before it is read back", error, qn_last_error());
  release(&b);
  release(&found);
  qn_graph_destroy(g);
  qn_graph_destroy(d);
  qn_graph_destroy(read);
}

static const problem problems[] = {
#define P(lines, wrt) { lines, wrt },
  /* contractions */
  P("in a f64/3x4 | in b f64/4x5 | y = matmul a=a b=b", "a b")
  P("in a f64/3x4/t | in b f64/4x5/t | y = matmul a=a b=b", "a b")
  P("in a f64/2x3x4 | in b f64/1x4x5 | y = matmul a=a b=b", "a b")
  P("in a f64/1x3x3x4 | in b f64/2x1x4x2 | y = matmul a=a b=b", "a b")
  P("in a f64/3x4 | in b f64/4x5 | in c f64/3x5 | in bias f64/5 | in s f64 | in t f64 | "
    "y = matmul a=a b=b c=c bias=bias alpha=s beta=t", "a b c bias s t")
  P("in a f64/3x4 | in b f64/4x5 | in c f64/3x5 | y = matmul a=a b=b c=c alpha=0.5", "a b c")
  P("in x f64/2x3x5x6 | in w f64/4x3x3x3 | in b f64/4 | y = conv_forward x=x w=w bias=b pad=1 stride=2,1", "x w b")
  P("in x f64/2x4x5x6/nhwc | in w f64/4x2x3x2/nhwc | y = conv_forward x=x w=w pad=1:0,2 dilation=1,2 groups=2", "x w")
  P("in x f64/1x3x9 | in w f64/2x3x3 | in b f64/2 | y = conv_forward x=x w=w bias=b", "x w b")
  P("in dy f64/2x4x3x3 | in w f64/4x2x3x3 | y = conv_backward_data dy=dy w=w stride=2 pad=1 dx=f64/2x2x6x6", "dy w")
  P("in x f64/2x2x5x5 | in dy f64/2x3x3x3 | y = conv_backward_filter x=x dy=dy dw=f64/3x2x3x3", "x dy")
  /* softmax, losses */
  P("in x f64/3x5 | y = softmax x=x axis=0", "x")
  P("in x f64/3x5 | y = log_softmax x=x", "x")
  P("in x f64/4x6 | in l i32/4x1 | out loss = cross_entropy x=x labels=l reduction=mean ; l:0..5", "x")
  P("in x f64/4x6 | in l i64/4x1 | y = cross_entropy x=x labels=l smoothing=0.1 ; l:0..5", "x")
  P("in x f64/4x6 | in l i32/4x1 | in w f64/6 | out loss = cross_entropy x=x labels=l weights=w reduction=mean ignore=2 "
    "; l:0..5 w:positive", "x")
  P("in x f64/4x6 | in q f64/4x6 | y = cross_entropy x=x probabilities=q smoothing=0.2 ; q:positive", "x q")
  P("in x f64/4x6 | in q f64/4x6 | out loss = cross_entropy x=x probabilities=q reduction=mean input=log_probabilities ; q:positive", "x q")
  P("in x f64/4x6 | in l i32/4x1 | y = cross_entropy x=x labels=l input=log_probabilities ; l:0..5", "x")
  P("in x f64/5x2x4 | in l i32/2x2 | in xl i32/2 | in ll i32/2 | y = ctc_loss x=x labels=l x_lengths=xl label_lengths=ll "
    "; l:1..3 xl=5,4 ll=2,1", "x")
  /* pooling, resampling, patches, sampling */
  P("in x f64/2x2x5x6 | y = pool_max x=x window=3 stride=2 pad=1", "x")
  P("in x f64/2x2x5x6/nhwc | y = pool_average x=x window=3,2 stride=2 pad=1 include_pad=0", "x")
  P("in x f64/2x2x3x4 | m = pool_max x=x | a = pool_average x=x | y = mul a=m b=a", "x")
  P("in dy f64/1x2x2x3 | y = pool_average_backward dy=dy window=2 dx=f64/1x2x4x6", "dy")
  P("in x f64/2x2x5x6 | y = pool_adaptive_max x=x size=2,3", "x")
  P("in x f64/2x2x5x6 | y = pool_adaptive_average x=x size=2,4", "x")
  P("in dy f64/1x2x2x3 | y = pool_adaptive_average_backward dy=dy dx=f64/1x2x5x4", "dy")
  P("in x f64/2x2x5x6 | y = pool_lp x=x window=2 p=3", "x")
  P("in x f64/2x2x4x3 | y = resample x=x size=7,5 mode=linear", "x")
  P("in x f64/2x2x4 | y = resample x=x mode=cubic up=3 down=2", "x")
  P("in dy f64/1x2x7x5 | y = resample_backward dy=dy mode=linear dx=f64/1x2x4x3", "dy")
  P("in x f64/2x2x5x4 | y = unfold x=x window=3,2 pad=1 stride=2", "x")
  P("in dy f64/1x8x3x2 | y = unfold_backward dy=dy window=2 dx=f64/1x2x4x3", "dy")
  P("in t f64/2x2x3 | y = affine_grid theta=t grid=f64/2x3x4x2", "t")
  P("in dy f64/2x3x4x2 | y = affine_grid_backward dy=dy", "dy")
  P("in x f64/1x2x5x6 | in g f64/1x3x4x2 | y = grid_sample x=x grid=g", "x g")
  P("in dy f64/1x2x3x4 | in g f64/1x3x4x2 | y = grid_sample_backward_data dy=dy grid=g dx=f64/1x2x5x6", "dy g")
  /* transforms, elements by index */
  P("in x f64/3x4 | y = copy x=x", "x")
  P("in x f64/2x3x4 | c = permute x=x perm=2,0,1 | y = exp x=c", "x")
  P("in x f64/5x6 | y = slice x=x start=1,2 length=3,2", "x")
  P("in x f64/5x7x2 | y = slice x=x start=4,1,0 length=3,3,1 step=-1,2,1", "x")
  P("in x f64/3x4 | y = pad x=x pad=1:2,0:1", "x")
  P("in x f64/3x4 | y = pad x=x pad=1:2,-1 mode=reflect", "x")
  P("in dy f64/5x6 | y = pad_backward dy=dy pad=1 mode=replicate", "dy")
  P("in a f64/2x3 | in b f64/2x1 | in c f64/2x2 | y = concat x=[a,b,c,a] axis=1", "a c")
  P("in x f64/5x3 | in i i32/4 | y = gather x=x indices=i ; i:0..4", "x")
  P("in x f64/2x5x3 | in i i64/2x2 | y = gather x=x indices=i axis=1 ; i:0..5", "x")
  P("in dy f64/4x3 | in i i32/4 | y = scatter_add dy=dy indices=i dx=f64/5x3 ; i:0..4", "dy")
  P("in x f64/3x4 | in i i32/3x2 | y = gather_elements x=x indices=i axis=1 ; i:0..3", "x")
  P("in x f64/3x5 | in i i32/3x2 | in u f64/3x2 | y = scatter_elements x=x indices=i updates=u axis=1 ; i=0,3,1,4,2,0", "x u")
  P("in x f64/3x5 | in i i32/3x2 | in u f64/3x2 | y = scatter_elements x=x indices=i updates=u axis=1 mode=add ; i:0..4", "x u")
  P("in x f64/4x3 | in i i32/2x1 | in u f64/2x3 | y = scatter_nd x=x indices=i updates=u ; i:0..3", "x")
  P("in x f64/4x3 | in i i32/2x1 | in u f64/2x3 | y = scatter_nd x=x indices=i updates=u mode=add ; i:0..3", "x")
  P("in s f64 | in t f64 | y = iota start=s step=t axis=0 y=f64/4x2", "s t")
  P("in x f64/3x6 | y = top_k x=x k=2 smallest=1", "x")
  P("in x f64/6x3 | y = sort x=x axis=0 descending=1", "x")
  /* scans, reductions */
  P("in x f64/3x4 | y = cumsum x=x axis=0 exclusive=1", "x")
  P("in x f64/3x4 | y = cumsum x=x reverse=1", "x")
  P("in x f64/3x4 | y = cumprod x=x", "x")
  P("in x f64/3x4 | y = cumprod x=x reverse=1 exclusive=1", "x")
  P("in x f64/3x5 | y = cummax x=x", "x")
  P("in x f64/3x5 | s = mul a=x b=3 | c = cummax x=s reverse=1 exclusive=1 | y = max a=c b=-2", "x")
  P("in x f64/5x3 | y = cummin x=x axis=0", "x")
  P("in x f64/5x3 | y = cummin x=x axis=0 reverse=1", "x")
  P("in x f64/3x4x2 | y = reduce_sum x=x axis=0,2", "x")
  P("in x f64/3x4x2 | y = reduce_mean x=x axis=1", "x")
  P("in x f64/2x4 | y = reduce_prod x=x axis=1", "x")
  P("in x f64/3x4 | y = reduce_prod x=x axis=1 ; x=0.5,0,2,0.25,0,3,0,1,1,2,3,4", "x")
  P("in x f64/3x4x2 | y = reduce_max x=x axis=0,1", "x")
  P("in x f64/3x4 | y = reduce_min x=x", "x")
  P("in x f64/3x4 | y = reduce_amax x=x axis=1", "x")
  P("in x f64/3x3 | y = reduce_max x=x axis=1 ; x=1,1,0.5,-2,-1,-1,0,3,3", "x")
  P("in x f64/3x3 | y = reduce_min x=x axis=1 ; x=1,1,2,-2,-1,-2,4,3,3", "x")
  P("in x f64/3x3 | y = reduce_amax x=x axis=1 ; x=1,-1,0.5,-2,-1,-2,0,3,3", "x")
  P("in x f64/3x4 | y = reduce_norm1 x=x axis=1", "x")
  P("in x f64/3x4 | y = reduce_norm2 x=x axis=0", "x")
  P("in x f64/3x4 | y = reduce_logsumexp x=x axis=1", "x")
  P("in x f64/3x4 | y = reduce_variance x=x axis=1", "x")
  P("in x f64/3x4 | y = reduce_variance x=x correction=0", "x")
  P("in a f64/3x4 | in b f64/5 | n = global_norm x=[a,b] scale=3 | out loss = mul a=n b=n", "a b")
  /* normalization */
  P("in x f64/3x5 | in s f64/1x5 | in t f64/1x5 | y = layer_norm x=x scale=s shift=t", "x s t")
  P("in x f64/3x4x2 | in s f64/1x4x1 | y = layer_norm x=x scale=s axis=1,2", "x s")
  P("in x f64/2x4x6x3 | y = layer_norm x=x axis=2,3", "x")
  P("in x f64/4x3 | in t f64/1x3 | y = layer_norm x=x shift=t", "t")
  P("in x f64/3x5 | in s f64/1x5 | y = rms_norm x=x scale=s", "x s")
  P("in x f64/4x3x2x2/nhwc | in s f64/1x3x1x1 | in t f64/1x3x1x1 | y = batch_norm x=x scale=s shift=t", "x s t")
  P("in x f64/4x3 | in m f64/1x3 | in v f64/1x3 | y = batch_norm x=x running_mean=m running_var=v new_mean=nm new_var=nv | "
    "out nm | out nv ; v:positive", "x")
  P("in x f64/4x3x2 | in m f64/1x3x1 | in v f64/1x3x1 | in s f64/1x3x1 | in t f64/1x3x1 | "
    "y = batch_norm_inference x=x mean=m var=v scale=s shift=t ; v:positive", "x m v s t")
  P("in x f64/4x3 | in m f64/1x3 | in v f64/1x3 | y = batch_norm_inference x=x mean=m var=v ; v:positive", "x m v")
  P("in x f64/2x6x3 | y = lrn x=x size=3 alpha=0.5", "x")
  P("in x f64/2x3x4 | in m f64/2x3x4 | y = lrn x=x means=m size=3 alpha=0.5 region=within", "x m")
  /* attention, recurrent networks, dropout */
  P("in q f64/1x2x3x4 | in k f64/1x2x5x4 | in v f64/1x2x5x3 | y = attention_forward q=q k=k v=v right=0", "q k v")
  P("in q f64/2x4x3x4 | in k f64/2x2x5x4 | in v f64/2x2x5x3 | in b f64/1x4x3x5 | in s f64/4 | "
    "y = attention_forward q=q k=k v=v bias=b sink=s lse=l softcap=2 | out l", "q k v b s")
  P("in q f64/1x2x3x4 | in k f64/1x2x5x4 | in v f64/1x2x5x3 | in w f64/1x2x3 | o = attention_forward q=q k=k v=v lse=l | "
    "y = mul a=l b=w", "q k")
  P("in q f64/1x2x3x4 | in k f64/1x2x5x4 | in v f64/1x2x5x3 | y = attention_forward q=q k=k v=v dropout=0.3 seed=7 offset=3", "q k v")
  P("in q f64/1x2x5x4 | in k f64/1x2x7x4 | in v f64/1x2x7x3 | in qs i32/3 | in ks i32/3 | "
    "y = attention_forward q=q k=k v=v q_starts=qs kv_starts=ks left=2 scale=0.7 ; qs=0,2,5 ks=0,3,7", "q k v")
  P("in q f64/2x2x3x4 | in k f64/2x2x5x4 | in m bool/1x1x3x5 | y = attention_forward q=q k=k mask=m value_size=2", "q k")
  P("in x f64/1x2x3x4 | in c f64/3x2 | in s f64/3x2 | y = rotary x=x cos=c sin=s", "x")
  P("in x f64/1x2x3x4 | in c f64/5x2 | in s f64/5x2 | in p i32/1x3 | y = rotary_backward dy=x cos=c sin=s positions=p ; p:0..4", "x")
  P("in x f64/3x2x4 | in w f64/12x4 | in r f64/12x3 | in bw f64/12 | in h f64/1x2x3 | in c f64/1x2x3 | "
    "y = rnn_forward x=x w=[w] r=[r] bw=[bw] h0=h c0=c", "x w r bw h c")
  P("in x f64/3x2x4 | in w f64/9x4 | in r f64/9x3 | in w2 f64/9x3 | in r2 f64/9x3 | in l i32/2 | "
    "y = rnn_forward x=x w=[w,w2] r=[r,r2] cell=gru layers=2 lengths=l dropout=0.25 seed=3 ; l=3,2", "x w r w2 r2")
  P("in x f64/3x2x4 | in w f64/3x4 | in r f64/3x3 | o = rnn_forward x=x w=[w] r=[r] cell=tanh ht=h | y = exp x=h", "x w r")
  P("in x f64/4x5 | y = dropout x=x seed=5 offset=2 p=0.4", "x")
  P("in x f64/4x5 | y = dropout_backward dy=x seed=5 p=0.4", "x")
  /* pointwise, of two */
  P("in a f64/3x4 | in b f64/1x4 | y = add a=a b=b", "a b")
  P("in a f64/3x4 | in b f64/3x1 | y = sub a=a b=b", "a b")
  P("in a f64/3x1 | in b f64/1x4 | y = mul a=a b=b", "a b")
  P("in a f64/3x4 | in s f64 | y = mul a=a b=s", "a s")
  P("in a f64/3x4 | y = mul a=a b=a", "a")
  P("in a f64/3x4 | in b f64/4 | y = div a=a b=b", "a b")
  P("in b f64/3x4 | y = div a=2 b=b", "b")
  P("in a f64/3x4 | in b f64/3x4 | y = min a=a b=b", "a b")
  P("in a f64/3x4 | in b f64/1x4 | y = max a=a b=b", "a b") P("in a f64/3x4 | y = max a=a b=0.1", "a")
  P("in a f64/3x4 | in b f64/1x4 | y = pow a=a b=b ; a:positive", "a b")
  P("in a f64/3x4 | y = pow a=a b=3", "a")
  P("in b f64/3x4 | y = pow a=2 b=b", "b")
  P("in a f64/3x4 | in b f64/3x4 | y = mod a=a b=b", "a b")
  P("in a f64/3x4 | in b f64/3x4 | y = fmod a=a b=b", "a b")
  P("in c bool/3x4 | in a f64/3x4 | in b f64/1x1 | y = select c=c a=a b=b", "a b")
  P("in x f64/2x3x2 | in s f64/1x3x1 | y = prelu x=x slope=s", "x s")
  /* pointwise, of one */
  P("in x f64/3x4 | y = neg x=x", "x") P("in x f64/3x4 | y = abs x=x", "x")
  P("in x f64/3x4 | y = exp x=x", "x") P("in x f64/3x4 | y = log x=x ; x:positive", "x")
  P("in x f64/3x4 | y = sqrt x=x ; x:positive", "x") P("in x f64/3x4 | y = rsqrt x=x ; x:positive", "x")
  P("in x f64/3x4 | y = reciprocal x=x", "x") P("in x f64/3x4 | y = erf x=x", "x")
  P("in x f64/3x4 | y = sin x=x", "x") P("in x f64/3x4 | y = cos x=x", "x")
  P("in x f64/3x4 | y = log1p x=x ; x:positive", "x") P("in x f64/3x4 | y = expm1 x=x", "x")
  P("in x f64/3x4 | y = exp2 x=x", "x") P("in x f64/3x4 | y = log2 x=x ; x:positive", "x")
  P("in x f64/3x4 | y = log10 x=x ; x:positive", "x") P("in x f64/3x4 | y = tan x=x", "x")
  P("in x f64/3x4 | y = asin x=x ; x:-0.9..0.9", "x") P("in x f64/3x4 | y = acos x=x ; x:-0.9..0.9", "x")
  P("in x f64/3x4 | y = atan x=x", "x") P("in x f64/3x4 | y = sinh x=x", "x")
  P("in x f64/3x4 | y = cosh x=x", "x") P("in x f64/3x4 | y = asinh x=x", "x")
  P("in x f64/3x4 | y = acosh x=x ; x:1.2..3", "x") P("in x f64/3x4 | y = atanh x=x ; x:-0.9..0.9", "x")
  P("in x f64/3x4 | y = relu x=x", "x") P("in x f64/3x4 | y = leaky_relu x=x slope=0.3", "x")
  P("in x f64/3x4 | y = elu x=x alpha=0.7", "x") P("in x f64/3x4 | y = gelu x=x", "x")
  P("in x f64/3x4 | y = gelu_tanh x=x", "x") P("in x f64/3x4 | y = silu x=x beta=1.5", "x")
  P("in x f64/3x4 | y = sigmoid x=x", "x") P("in x f64/3x4 | y = tanh x=x", "x")
  P("in x f64/3x4 | y = softplus x=x beta=2", "x") P("in x f64/3x4 | y = hardswish x=x", "x")
  P("in x f64/3x4 | y = mish x=x", "x") P("in x f64/3x4 | y = clip x=x min=-0.5 max=0.6", "x")
  P("in x f64/3x4 | y = cast x=x y=f64/3x4", "x")
  P("in x f64/3x4 | in d f64/3x4 | y = relu_backward dy=d x=x", "d x")
  P("in x f64/3x4 | in d f64/3x4 | y = leaky_relu_backward dy=d x=x", "d x")
  P("in x f64/3x4 | in d f64/3x4 | y = clip_backward dy=d x=x max=0.5", "d x")
  /* collectives, of a group of one */
  P("in a f64/3x4 | in b f64/2 | [c,d] = all_reduce x=[a,b] scale=0.5 | s = reduce_sum x=c | t = reduce_norm2 x=d | "
    "u = reduce_sum x=t | v = mul a=u b=3 | e = reduce_sum x=s axis=1 | f = reduce_sum x=a | g = reduce_sum x=b | h = mul a=f b=f | "
    "out loss = mul a=e b=f", "a")
  P("in a f64/3 | in b f64/2 | in s f64 | [c,d] = all_reduce x=[a,b] scale=s reduction=avg | t = reduce_norm2 x=d | u = reduce_norm2 x=c | "
    "out loss = mul a=t b=u", "a b s")
  P("in a f64/3 | y = all_reduce x=[a] reduction=max", "a") P("in a f64/3 | y = all_reduce x=[a] reduction=prod", "a")
  P("in a f64/3 | y = reduce_scatter x=[a] scale=3 reduction=avg", "a") P("in a f64/3 | y = all_gather x=[a]", "a")
  P("in a f64/3 | y = all_to_all x=[a]", "a")
  /* empty tensors, outputs of other dims */
  P("in x f64/0x3 | in w f64/3x2 | a = matmul a=x b=w | b = reduce_sum x=a axis=0 | in c f64/1x2 | "
    "d = mul a=b b=c | y = add a=d b=c", "w c")
  P("in x f64/1x3 | y = relu x=x y=f64/4x3", "x") P("in x f64 | y = sigmoid x=x y=f64/4x3", "x")
  P("in a f64/2x3 | in b f64/0x3 | y = concat x=[a,b,a] axis=0", "a")
  /* several readers, values between, paths of gradient 0 beside others */
  P("in x f64/3x4 | a = exp x=x | b = sin x=a | c = mul a=a b=b | y = add a=c b=x", "x")
  P("in x f64/3x4 | in w f64/4x4 | a = matmul a=x b=w | b = matmul a=a b=w | y = tanh x=b", "w x")
  P("in x f64/3x4 | m = reduce_mean x=x axis=1 | d = sub a=x b=m | s = mul a=d b=d | v = reduce_mean x=s axis=1 | r = sqrt x=v | "
    "y = div a=d b=r", "x")
  P("in x f64/3x4 | s = sign x=x | f = floor x=x | a = mul a=x b=s | y = add a=a b=f", "x")
  P("in x f64/3x4 | g = gt a=x b=0 | e = exp x=x | y = select c=g a=e b=x", "x")
  P("in x f64/3x6 | t = top_k x=x k=2 indices=i | g = gather_elements x=x indices=i axis=1 | y = mul a=t b=g", "x")
#undef P
};

static bool mentions(const char *lines, const char *op)
{
  const size_t n = strlen(op);
  for (const char *p = lines; (p = strstr(p, op)); p++)
    if (p > lines && p[-1] == ' ' && (p[n] == ' ' || !p[n])) return true;
  return false;
}

/* No row without a problem. */
static void check_rows(void)
{
  int rows = 0, missing = 0;
  for (int i = 0; qn_op_at(i); i++) {
    const qn_op_info *op = qn_op_at(i);
    const qn__row *row = qn__gradient_row(op->kind);
    bool met = false;
    if (!row || qn__is_flat(row) || !strncmp(row->line[0], "unknown", 7)) continue;
    for (size_t k = 0; k < sizeof problems / sizeof problems[0] && !met; k++) met = mentions(problems[k].lines, op->name);
    rows++;
    missing += !met;
    if (!met) tap_note("no problem has %s", op->name);
  }
  tap_ok(rows > 90 && !missing, "each of the %d ops with a gradient is in a problem", rows);
}

int main(void)
{
  const char *const options[] = { "backend=cpu_ref", "threads=1", NULL };
  if (qn_context_create(options, &ctx)) {
    printf("Bail out! %s\n", qn_last_error());
    return 1;
  }
  for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) check(&problems[i]);
  check_rows();
  qn_context_destroy(ctx);
  return tap_done();
}
