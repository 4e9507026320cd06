/* ordinary.c -- random problems as people have them: templates of every family, whose dims, dtypes, layouts, groups and strides are
 * drawn from what networks in the field use.
 *
 * A template is "definitions : line". A definition is a letter with alternatives (n=1|8|32) or with an expression (P=(h/s)) over
 * letters that stand before it; in the line $n is a letter's value and $(n*c) an expression's. A drawn line may break a rule of its
 * op; the caller draws again. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

#define T "t=f32|f32|f16|bf16 "
#define SHAPE "A=1000|65536|1000003|32x1000|64x197x768|8192x4096|8x64x56x56|32x3x224x224 "
#define IMAGE T "n=1|8|32|64 c=3|16|32|64|96|128|256|512 h=7|14|28|35|56|112 l=|/nhwc "
#define CONV  IMAGE "k=16|32|64|80|128|256|512 r=1|1|3|3|5|7 s=1|1|2 p=(r/2) P=((h+2*p-r)/s+1) "
#define DEEP  IMAGE "r=3|3|5|7 s=1|2 p=(r/2) P=((h+2*p-r)/s+1) "
#define GROUP T "n=1|8|32 g=2|3|8|16|32 a=4|8|16|24|48 c=(a*g) h=7|14|28|56 l=|/nhwc r=1|3|3|5 s=1|1|2 p=(r/2) P=((h+2*p-r)/s+1) "
#define SOUND T "n=1|8|32 c=1|32|64|128|512 k=32|64|128|512 h=100|1000|4000|16000 r=1|3|5|7|10|31 d=1|1|2|4 s=1|1|2|5 p=(d*(r-1)/2) " \
              "P=((h+2*p-d*(r-1)-1)/s+1) "
#define VIDEO T "n=1|2|4 c=1|3|16|32|64 k=16|32|64 h=8|16|32|56 l=|/nhwc r=1|3|3 s=1|1|2 p=(r/2) P=((h+2*p-r)/s+1) "
#define PATCH T "n=1|8|32 r=4|8|14|16|32 P=7|14|16|56 h=(P*r) c=3 k=96|192|768|1024 l=|/nhwc "
#define ROWS  T "m=1|16|197|512|4096|32768 c=10|64|197|256|768|1000|1024|4096|32000 "
#define NORMS T "m=1|32|512|4096|16384 c=64|192|768|1000|1024|4096|8192 "
#define POOL  IMAGE "w=2|2|3|3|5 s=1|2|2 p=0|(w/2) P=((h+2*p-w)/s+1) "

static const char *const templates[] = {
  T "m=1|16|33|128|512|1000|4096 n=1|64|100|768|1024|3072|4096 k=32|64|100|768|1024|4096 x=|/t y=|/t : "
    "matmul a=$t/$(m)x$k$x b=$t/$(k)x$n$y",
  T "b=2|8|16|96 m=16|64|128|197|512 n=16|64|128|197|512 k=32|64|80|128 y=|/t : matmul a=$t/$(b)x$(m)x$k b=$t/$(b)x$(k)x$n$y",
  CONV ": conv_forward x=$t/$(n)x$(c)x$(h)x$h$l w=$t/$(k)x$(c)x$(r)x$r$l stride=$s pad=$p",
  CONV ": conv_forward x=$t/$(n)x$(c)x$(h)x$h$l w=$t/$(k)x$(c)x$(r)x$r$l bias=$t/$k stride=$s pad=$p",
  CONV ": conv_backward_data dy=$t/$(n)x$(k)x$(P)x$P$l w=$t/$(k)x$(c)x$(r)x$r$l dx=$t/$(n)x$(c)x$(h)x$h$l stride=$s pad=$p",
  CONV ": conv_backward_filter x=$t/$(n)x$(c)x$(h)x$h$l dy=$t/$(n)x$(k)x$(P)x$P$l dw=$t/$(k)x$(c)x$(r)x$r$l stride=$s pad=$p",
  DEEP ": conv_forward x=$t/$(n)x$(c)x$(h)x$h$l w=$t/$(c)x1x$(r)x$r$l stride=$s pad=$p groups=$c",
  DEEP ": conv_backward_data dy=$t/$(n)x$(c)x$(P)x$P$l w=$t/$(c)x1x$(r)x$r$l dx=$t/$(n)x$(c)x$(h)x$h$l stride=$s pad=$p groups=$c",
  DEEP ": conv_backward_filter x=$t/$(n)x$(c)x$(h)x$h$l dy=$t/$(n)x$(c)x$(P)x$P$l dw=$t/$(c)x1x$(r)x$r$l stride=$s pad=$p groups=$c",
  GROUP ": conv_forward x=$t/$(n)x$(c)x$(h)x$h$l w=$t/$(c)x$(a)x$(r)x$r$l stride=$s pad=$p groups=$g",
  GROUP ": conv_backward_data dy=$t/$(n)x$(c)x$(P)x$P$l w=$t/$(c)x$(a)x$(r)x$r$l dx=$t/$(n)x$(c)x$(h)x$h$l stride=$s pad=$p groups=$g",
  GROUP ": conv_backward_filter x=$t/$(n)x$(c)x$(h)x$h$l dy=$t/$(n)x$(c)x$(P)x$P$l dw=$t/$(c)x$(a)x$(r)x$r$l stride=$s pad=$p groups=$g",
  SOUND ": conv_forward x=$t/$(n)x$(c)x$h w=$t/$(k)x$(c)x$r stride=$s pad=$p dilation=$d",
  SOUND ": conv_backward_data dy=$t/$(n)x$(k)x$P w=$t/$(k)x$(c)x$r dx=$t/$(n)x$(c)x$h stride=$s pad=$p dilation=$d",
  SOUND ": conv_backward_filter x=$t/$(n)x$(c)x$h dy=$t/$(n)x$(k)x$P dw=$t/$(k)x$(c)x$r stride=$s pad=$p dilation=$d",
  VIDEO ": conv_forward x=$t/$(n)x$(c)x$(h)x$(h)x$h$l w=$t/$(k)x$(c)x$(r)x$(r)x$r$l stride=$s pad=$p",
  VIDEO ": conv_backward_data dy=$t/$(n)x$(k)x$(P)x$(P)x$P$l w=$t/$(k)x$(c)x$(r)x$(r)x$r$l dx=$t/$(n)x$(c)x$(h)x$(h)x$h$l stride=$s pad=$p",
  VIDEO ": conv_backward_filter x=$t/$(n)x$(c)x$(h)x$(h)x$h$l dy=$t/$(n)x$(k)x$(P)x$(P)x$P$l dw=$t/$(k)x$(c)x$(r)x$(r)x$r$l stride=$s pad=$p",
  PATCH ": conv_forward x=$t/$(n)x$(c)x$(h)x$h$l w=$t/$(k)x$(c)x$(r)x$r$l stride=$r",
  PATCH ": conv_backward_data dy=$t/$(n)x$(k)x$(P)x$P$l w=$t/$(k)x$(c)x$(r)x$r$l dx=$t/$(n)x$(c)x$(h)x$h$l stride=$r",
  PATCH ": conv_backward_filter x=$t/$(n)x$(c)x$(h)x$h$l dy=$t/$(n)x$(k)x$(P)x$P$l dw=$t/$(k)x$(c)x$(r)x$r$l stride=$r",

  ROWS "o=softmax|log_softmax : $o x=$t/$(m)x$c",
  ROWS "o=softmax|log_softmax : $(o)_backward y=$t/$(m)x$c dy=$t/$(m)x$c",
  T "n=1|8|32 c=19|21|150 h=32|64|128 : softmax x=$t/$(n)x$(c)x$(h)x$h axis=1",
  ROWS ": cross_entropy x=$t/$(m)x$c labels=i64/$(m)x1 reduction=mean lse=? count=?",
  ROWS ": cross_entropy_backward dy=f32/1x1 x=$t/$(m)x$c labels=i64/$(m)x1 lse=f32/$(m)x1 count=f32/1x1 reduction=mean",

  POOL "o=pool_max|pool_average : $o x=$t/$(n)x$(c)x$(h)x$h$l window=$w stride=$s pad=$p",
  POOL "i=u8|i64 : pool_max x=$t/$(n)x$(c)x$(h)x$h$l indices=$i/$(n)x$(c)x$(P)x$P$l window=$w stride=$s pad=$p",
  POOL "i=u8|i64 : pool_max_backward dy=$t/$(n)x$(c)x$(P)x$P$l indices=$i/$(n)x$(c)x$(P)x$P$l dx=$t/$(n)x$(c)x$(h)x$h$l window=$w stride=$s pad=$p",
  POOL ": pool_max_backward dy=$t/$(n)x$(c)x$(P)x$P$l x=$t/$(n)x$(c)x$(h)x$h$l window=$w stride=$s pad=$p",
  POOL ": pool_average_backward dy=$t/$(n)x$(c)x$(P)x$P$l dx=$t/$(n)x$(c)x$(h)x$h$l window=$w stride=$s pad=$p",
  IMAGE "z=1|2|6|7 o=average|max : pool_adaptive_$o x=$t/$(n)x$(c)x$(h)x$h$l size=$z",
  IMAGE "z=1|2|6|7 : pool_adaptive_average_backward dy=$t/$(n)x$(c)x$(z)x$z$l dx=$t/$(n)x$(c)x$(h)x$h$l size=$z",
  POOL "o=1|2|3 : pool_lp x=$t/$(n)x$(c)x$(h)x$h$l window=$w stride=$s pad=$p p=$o",
  IMAGE "z=2|4 m=nearest|linear|cubic g=half_pixel|align_corners H=(h*z) : resample x=$t/$(n)x$(c)x$(h)x$h$l size=$H mode=$m grid=$g",
  IMAGE "z=2|4 m=nearest|linear|cubic H=(h*z) : resample_backward dy=$t/$(n)x$(c)x$(H)x$H$l dx=$t/$(n)x$(c)x$(h)x$h$l size=$h mode=$m",

  NORMS ": layer_norm x=$t/$(m)x$c scale=$t/1x$c shift=$t/1x$c mean=? rstd=?",
  NORMS ": layer_norm_backward dy=$t/$(m)x$c x=$t/$(m)x$c scale=$t/1x$c mean=f32/$(m)x1 rstd=f32/$(m)x1 dscale=? dshift=?",
  NORMS ": rms_norm x=$t/$(m)x$c scale=$t/1x$c rstd=?",
  NORMS ": rms_norm_backward dy=$t/$(m)x$c x=$t/$(m)x$c scale=$t/1x$c rstd=f32/$(m)x1 dscale=?",
  IMAGE ": batch_norm x=$t/$(n)x$(c)x$(h)x$h$l scale=f32/1x$(c)x1x1 shift=f32/1x$(c)x1x1 mean=? rstd=?",
  IMAGE ": batch_norm_backward dy=$t/$(n)x$(c)x$(h)x$h$l x=$t/$(n)x$(c)x$(h)x$h$l scale=f32/1x$(c)x1x1 mean=f32/1x$(c)x1x1 "
        "rstd=f32/1x$(c)x1x1 dscale=? dshift=?",
  IMAGE ": batch_norm_inference x=$t/$(n)x$(c)x$(h)x$h$l mean=f32/1x$(c)x1x1 var=f32/1x$(c)x1x1 scale=f32/1x$(c)x1x1 shift=f32/1x$(c)x1x1",
  IMAGE ": lrn x=$t/$(n)x$(c)x$(h)x$h$l",
  IMAGE ": lrn_backward dy=$t/$(n)x$(c)x$(h)x$h$l x=$t/$(n)x$(c)x$(h)x$h$l",

  ROWS "o=sum|mean|max|min|prod|norm1|norm2|amax a=0|1 : reduce_$o x=$t/$(m)x$c axis=$a",
  IMAGE "o=sum|mean|max : reduce_$o x=$t/$(n)x$(c)x$(h)x$h$l axis=2,3",
  IMAGE "o=sum|mean : reduce_$o x=$t/$(n)x$(c)x$(h)x$h$l axis=0,2,3",
  ROWS "o=argmax|argmin a=0|1 : $o x=$t/$(m)x$c axis=$a",
  T SHAPE "o=add|sub|mul|div|max|min|pow|eq|lt : $o a=$t/$A b=$t/$A",
  T "m=64|4096|8192 c=197|768|4096 o=add|mul : $o a=$t/$(m)x$c b=$t/1x$c",
  IMAGE "o=add|mul : $o a=$t/$(n)x$(c)x$(h)x$h$l b=$t/1x$(c)x1x1",
  T SHAPE "o=neg|abs|exp|log|sqrt|rsqrt|erf|sin|cos|floor|relu|leaky_relu|elu|gelu|gelu_tanh|silu|sigmoid|tanh|softplus|hardswish|mish|clip : "
    "$o x=$t/$A",
  T SHAPE "o=relu|elu|gelu|gelu_tanh|silu|sigmoid|tanh|softplus|hardswish|mish : $(o)_backward dy=$t/$A x=$t/$A",
  T SHAPE "u=f32|f16|bf16|i32|i64|u8 : cast x=$t/$A y=$u/$A",

  T SHAPE ": copy x=$t/$A",
  IMAGE ": copy x=$t/$(n)x$(c)x$(h)x$h y=$t/$(n)x$(c)x$(h)x$h/nhwc",
  T "b=1|8|32 m=128|197|512|2048 h=8|12|16 d=64|80|128 : permute x=$t/$(b)x$(m)x$(h)x$d perm=0,2,1,3",
  T "m=100|512|4096 c=64|1000|4096 : permute x=$t/$(m)x$c perm=1,0",
  T "m=128|4096 c=64|768|4096 d=(c*3) : slice x=$t/$(m)x$d start=0,$c length=$m,$c",
  IMAGE "q=1|3 o=constant|reflect|replicate : pad x=$t/$(n)x$(c)x$(h)x$h pad=0,0,$q,$q mode=$o",
  IMAGE ": concat x=[$t/$(n)x$(c)x$(h)x$h$l,$t/$(n)x$(c)x$(h)x$h$l] axis=1",
  T "m=1|128|4096|65536 v=1000|32000|50257 c=64|768|1024|4096 i=i32|i64 : gather x=$t/$(v)x$c indices=$i/$m",
  T "m=128|4096|65536 v=1000|32000 c=64|768|1024 i=i32|i64 : scatter_add dy=$t/$(m)x$c indices=$i/$m dx=f32/$(v)x$c",
  "m=64|4096|65536 d=10|1000 i=i32|i64 : one_hot indices=$i/$m depth=$d",
  ROWS "k=1|2|5|8|50 : top_k x=$t/$(m)x$c k=$k indices=?",
  ROWS "a=0|1 : cumsum x=$t/$(m)x$c axis=$a",

  T "n=1|8|32 c=3|16|64 h=28|64|128 : grid_sample x=$t/$(n)x$(c)x$(h)x$h grid=f32/$(n)x$(h)x$(h)x2",
  "n=1|8|64 h=28|64|224 : affine_grid theta=f32/$(n)x2x3 grid=f32/$(n)x$(h)x$(h)x2",
  T SHAPE ": dropout x=$t/$A seed=1 p=0.1 mask=?",
  T SHAPE "o=uniform|normal|bernoulli : rng_$o seed=1 y=$t/$A",
  T "m=128|4096 c=1024|4096 q=i8|e4m3 : quantize x=$t/$(m)x$c scale=f32 y=$q/$(m)x$c",
  T "m=128|4096 c=1024|4096 q=i8|e4m3 : dequantize x=$q/$(m)x$c scale=f32 y=$t/$(m)x$c",
  "m=512|4096 c=64|1024|4096 : adamw params=[f32/$(m)x$c,f32/$c] grads=[f32/$(m)x$c,f32/$c] m=[f32/$(m)x$c,f32/$c] v=[f32/$(m)x$c,f32/$c] "
    "step=i64 rate=0.001",
  "m=512|4096 c=64|1024|4096 : sgd params=[f32/$(m)x$c,f32/$c] grads=[f32/$(m)x$c,f32/$c] velocity=[f32/$(m)x$c,f32/$c] momentum=0.9 step=i64 "
    "rate=0.1",
  "m=512|4096 c=64|1024|4096 : global_norm x=[f32/$(m)x$c,f32/$c] limit=1 divisor=?",
};

int ordinary_count(void) { return (int)(sizeof templates / sizeof *templates); }

/* ---- drawing ---------------------------------------------------------------------------------- */

typedef struct drawer {
  char        value[128][32];           /* of the letters */
  const char *at;                       /* while an expression is evaluated */
} drawer;

static long expression(drawer *d);

static long factor(drawer *d)
{
  if (*d->at == '(') {
    d->at++;
    long v = expression(d);
    d->at += *d->at == ')';
    return v;
  }
  if (isdigit((unsigned char)*d->at))
    return strtol(d->at, (char **)&d->at, 10);
  return *d->at ? strtol(d->value[*d->at++ & 127], NULL, 10) : 0;
}

static long product(drawer *d)
{
  long v = factor(d);
  while (*d->at == '*' || *d->at == '/') {
    bool times = *d->at++ == '*';
    long by = factor(d);
    v = times ? v * by : by ? v / by : 0;
  }
  return v;
}

static long expression(drawer *d)
{
  long v = product(d);
  while (*d->at == '+' || *d->at == '-') {
    bool plus = *d->at++ == '+';
    long by = product(d);
    v = plus ? v + by : v - by;
  }
  return v;
}

/* text: "(...)": one letter's value as it is, else the expression's; returns the number of characters read. */
static size_t put_expression(drawer *d, const char *text, char *to, size_t bytes)
{
  if (text[2] == ')') {
    snprintf(to, bytes, "%s", d->value[text[1] & 127]);
    return 3;
  }
  d->at = text;
  snprintf(to, bytes, "%ld", factor(d));
  return (size_t)(d->at - text);
}

static uint64_t next(uint64_t *state)   /* splitmix64 */
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* One definition, from its "=" on. */
static void define(drawer *d, char letter, const char *alternatives, size_t bytes, uint64_t *state)
{
  size_t n = 1, from = 0;
  for (size_t i = 0; i < bytes; i++)
    n += alternatives[i] == '|';
  for (size_t pick = next(state) % n; pick; from++)
    pick -= alternatives[from] == '|';
  char *to = d->value[letter & 127];
  if (from < bytes && alternatives[from] == '(') {
    d->at = alternatives + from;
    snprintf(to, sizeof d->value[0], "%ld", factor(d));
  } else {
    snprintf(to, sizeof d->value[0], "%.*s", (int)strcspn(alternatives + from, "| "), alternatives + from);
  }
}

void ordinary_line(int i, uint64_t *state, char *line, size_t bytes)
{
  drawer d = { 0 };
  const char *p = templates[i];
  while (*p != ':') {
    size_t word = strcspn(p, " ");
    define(&d, *p, p + 2, word - 2, state);
    p += word + strspn(p + word, " ");
  }
  p += 1 + strspn(p + 1, " ");
  size_t used = 0;
  while (*p && used + sizeof d.value[0] < bytes) {
    if (*p != '$') {
      line[used++] = *p++;
    } else if (p[1] == '(') {
      p += 1 + put_expression(&d, p + 1, line + used, bytes - used);
      used += strlen(line + used);
    } else {
      used += (size_t)snprintf(line + used, bytes - used, "%s", d.value[p[1] & 127]);
      p += 2;
    }
  }
  line[used] = '\0';
}
