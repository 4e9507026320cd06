/* cnn_digits.c -- a network that learns to read handwritten digits, by Quern's public interface alone.
 *
 *   image 8x8 -> resampled to 3x32x32 -> conv 3x3 (3->C1), relu, max pool 2 -> conv 3x3 (C1->C2), relu, max pool 2
 *             -> fully connected to 10 -> log softmax, cross-entropy, Adam
 *
 * It is also the tutorial: what a training program does with Quern, in the order in which it does it.
 *   1. The network is written down as graphs, one for each stretch between two changes of shape.
 *   2. A context stands for a device. Memory for everything is taken from it once.
 *   3. Each graph becomes a plan: engines are chosen, workspace is known.
 *   4. A training step executes the plans one after the other. It is recorded once, then replayed.
 * Nothing below names a backend: QUERN_BACKEND says where it runs. */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <quern/quern.h>

/* ---- 1. the network, as graphs ------------------------------------------------------------------
 *
 * One op a line. `in` and `out` lines are what the caller gives pointers for, in this order. $N is the batch, $C1 and
 * $C2 the channels, $F the features that the last pool leaves, $L the order of dims in memory, $S -1/N. */

static const char forward_text[] =
  "in image  f32/$Nx1x8x8\n"
  "in down   f32/1x1x32x8\n"            /* bilinear resampling is a matrix on either side, */
  "in across f32/1x1x8x32/t\n"          /* the right one transposed: a matter of strides */
  "in colour f32/1x3x1x1\n"
  "in w1     f32/$C1x3x3x3/$L\n"
  "in b1     f32/$C1\n"
  "in w2     f32/$C2x$C1x3x3/$L\n"
  "in b2     f32/$C2\n"
  "tall   = matmul a=down b=image\n"
  "grey   = matmul a=tall b=across\n"
  "out x  = mul a=grey b=colour y=f32/$Nx3x32x32/$L\n"
  "z1     = conv_forward x=x w=w1 bias=b1 pad=1\n"
  "out a1 = relu x=z1\n"
  "out p1 = pool_max x=a1 window=2\n"
  "z2     = conv_forward x=p1 w=w2 bias=b2 pad=1\n"
  "out a2 = relu x=z2\n"
  "out p2 = pool_max x=a2 window=2\n";

/* p2's memory as a matrix: a reshape is another graph's declaration. */
static const char classify_text[] =
  "in f      f32/$Nx$F\n"
  "in w3     f32/$Fx10\n"
  "in b3     f32/10\n"
  "scores  = matmul a=f b=w3 bias=b3\n"
  "out guess = argmax x=scores axis=1 y=i32/$Nx1\n";

/* Cross-entropy is -sum(target log_softmax(scores)) / N; total adds it up over the steps of an epoch. */
static const char loss_text[] =
  "in f      f32/$Nx$F\n"
  "in f_t    f32/$Fx$N/t\n"
  "in w3     f32/$Fx10\n"
  "in w3_t   f32/10x$F/t\n"
  "in b3     f32/10\n"
  "in target f32/$Nx10\n"
  "in total  f32/1x1\n"
  "scores  = matmul a=f b=w3 bias=b3\n"
  "logp    = log_softmax x=scores\n"
  "right   = mul a=logp b=target\n"
  "sum     = reduce_sum x=right\n"
  "loss    = mul a=sum b=$S\n"
  "out total2 over total = add a=total b=loss\n"
  "dlogp   = mul a=target b=$S\n"
  "dscores = log_softmax_backward y=logp dy=dlogp\n"
  "out dw3 = matmul a=f_t b=dscores\n"
  "out db3 = reduce_sum x=dscores axis=0\n"
  "out df  = matmul a=dscores b=w3_t\n";

/* relu_backward asks where its input was above 0, which is where its output is. */
static const char backward_text[] =
  "in x      f32/$Nx3x32x32/$L\n"
  "in a1     f32/$Nx$C1x32x32/$L\n"
  "in p1     f32/$Nx$C1x16x16/$L\n"
  "in a2     f32/$Nx$C2x16x16/$L\n"
  "in dp2    f32/$Nx$C2x8x8/$L\n"
  "in w2     f32/$C2x$C1x3x3/$L\n"
  "da2     = pool_max_backward dy=dp2 x=a2 window=2\n"
  "dz2     = relu_backward dy=da2 x=a2\n"
  "out dw2 = conv_backward_filter x=p1 dy=dz2 pad=1 dw=f32/$C2x$C1x3x3/$L\n"
  "out db2 = reduce_sum x=dz2 axis=0,2,3\n"
  "dp1     = conv_backward_data dy=dz2 w=w2 pad=1 dx=f32/$Nx$C1x16x16/$L\n"
  "da1     = pool_max_backward dy=dp1 x=a1 window=2\n"
  "dz1     = relu_backward dy=da1 x=a1\n"
  "out dw1 = conv_backward_filter x=x dy=dz1 pad=1 dw=f32/$C1x3x3x3/$L\n"
  "out db1 = reduce_sum x=dz1 axis=0,2,3\n";

/* Adam on all parameters at once, its state in place. rate is a scalar on the device, so it may change from one
 * replay to the next; the bias correction is in it. */
static const char adam_text[] =
  "in p f32/$P\n"
  "in g f32/$P\n"
  "in m f32/$P\n"
  "in v f32/$P\n"
  "in rate f32\n"
  "m_kept = mul a=m b=0.9\n"
  "m_new  = mul a=g b=0.1\n"
  "out m2 over m = add a=m_kept b=m_new\n"
  "square = mul a=g b=g\n"
  "v_kept = mul a=v b=0.999\n"
  "v_new  = mul a=square b=0.001\n"
  "out v2 over v = add a=v_kept b=v_new\n"
  "root   = sqrt x=v2\n"
  "scale  = add a=root b=1e-08\n"
  "way    = div a=m2 b=scale\n"
  "step   = mul a=way b=rate\n"
  "out p2 over p = sub a=p b=step\n";

/* ---- options and errors -------------------------------------------------------------------------- */

typedef struct options {
  int c1, c2, epochs, batch, quiet;
  unsigned long seed;
  double rate;
  const char *data, *layout;
} options;

/* A library reports; a program decides. This one gives up. */
static void check(qn_status status, const char *what)
{
  if (!status)
    return;
  fprintf(stderr, "cnn_digits: %s: %s\n", what, qn_last_error());
  exit(status == QN_BAD_ARGUMENT || status == QN_NO_BACKEND || status == QN_SYNTAX ? 2 : 1);
}

static void *checked(void *p)
{
  if (!p) {
    fprintf(stderr, "cnn_digits: no memory\n");
    exit(1);
  }
  return p;
}

/* ---- random numbers: the same on every machine --------------------------------------------------- */

static uint64_t random_state;

static uint64_t random_bits(void)       /* splitmix64 */
{
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double random_uniform(void)      /* in [-1, 1) */
{
  return (double)(random_bits() >> 11) / (double)(1ull << 52) - 1;
}

static void shuffle(int *order, int n)
{
  for (int i = n - 1; i > 0; i--) {
    int j = (int)(random_bits() % (uint64_t)(i + 1)), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
}

/* ---- the digits ------------------------------------------------------------------------------------ */

enum { PIXELS = 64, MAX_DIGITS = 1797, CLASSES = 10 };

typedef struct digits {
  int   n, n_train;
  float image[MAX_DIGITS][PIXELS];
  int   label[MAX_DIGITS];
  int   order[MAX_DIGITS];              /* the first n_train are for training, the rest held out */
} digits;

static void read_digits(digits *d, const char *path)
{
  FILE *f = fopen(path, "r");
  if (!f) {
    fprintf(stderr, "cnn_digits: cannot open %s; --data says where digits.csv is\n", path);
    exit(2);
  }
  for (d->n = 0; d->n < MAX_DIGITS; d->n++) {
    int pixel, got = 0;
    for (int i = 0; i < PIXELS && (got = fscanf(f, "%d,", &pixel)) == 1; i++)
      d->image[d->n][i] = ((float)pixel - 4.9f) / 6.0f;             /* mean 0, variance 1 */
    if (got != 1 || fscanf(f, "%d", &d->label[d->n]) != 1)
      break;
    d->order[d->n] = d->n;
  }
  fclose(f);
  if (d->n != MAX_DIGITS) {
    fprintf(stderr, "cnn_digits: %s: line %d is no digit\n", path, d->n + 1);
    exit(2);
  }
  d->n_train = d->n * 4 / 5;
  shuffle(d->order, d->n);
}

/* ---- 2. a context and its memory -------------------------------------------------------------------- */

/* What a step reads of the host, in one block, so that it goes to the device in one copy. */
typedef struct batch_layout { size_t image, down, across, target, rate, floats; } batch_layout;

/* Six tensors of parameters lie one after the other, each at a multiple of 16 bytes, so that Adam sees one vector; the
 * gradients and Adam's two moments lie likewise. */
enum { W1, B1, W2, B2, W3, B3, N_PARAMETERS };

typedef struct network {
  const options *o;
  qn_context    *ctx;
  int            features, n_floats;    /* of all parameters */
  size_t         at[N_PARAMETERS];      /* in floats */
  batch_layout   in;
  float         *host;                  /* the batch */
  float         *batch, *p, *g, *m, *v; /* on the device, from here on */
  float         *colour, *x, *a1, *p1, *a2, *p2, *dp2, *total;
  int32_t       *guess;
  qn_plan       *forward, *classify, *loss, *backward, *adam;
  qn_recording  *step;
} network;

static void *on_device(network *net, size_t floats)
{
  void *p;
  check(qn_alloc(net->ctx, floats * sizeof(float), &p), "memory");
  return p;
}

static void to_device(network *net, void *device, const void *host, size_t floats)
{
  check(qn_copy_to_device(net->ctx, device, host, floats * sizeof(float)), "copy");
}

static void lay_out(network *net)
{
  size_t c1 = (size_t)net->o->c1, c2 = (size_t)net->o->c2, n = (size_t)net->o->batch, used = 0;
  size_t size[N_PARAMETERS] = { c1 * 27, c1, c2 * c1 * 9, c2, c2 * 64 * CLASSES, CLASSES };
  for (int i = 0; i < N_PARAMETERS; i++) {
    net->at[i] = used;
    used = (used + size[i] + 3) / 4 * 4;
  }
  net->n_floats = (int)used;
  net->features = (int)c2 * 64;
  net->in.image = 0;
  net->in.down = n * PIXELS;
  net->in.across = net->in.down + 32 * 8;
  net->in.target = net->in.across + 32 * 8;
  net->in.rate = (net->in.target + n * CLASSES + 3) / 4 * 4;
  net->in.floats = net->in.rate + 1;
  net->host = checked(calloc(net->in.floats, sizeof(float)));
  net->batch = on_device(net, net->in.floats);
  net->p = on_device(net, used);
  net->g = on_device(net, used);
  net->m = on_device(net, used);
  net->v = on_device(net, used);
  net->colour = on_device(net, 3);
  net->x = on_device(net, n * 3 * 32 * 32);
  net->a1 = on_device(net, n * c1 * 32 * 32);
  net->p1 = on_device(net, n * c1 * 16 * 16);
  net->a2 = on_device(net, n * c2 * 16 * 16);
  net->p2 = on_device(net, n * c2 * 8 * 8);
  net->dp2 = on_device(net, n * c2 * 8 * 8);
  net->total = on_device(net, 1);
  net->guess = on_device(net, n);
}

/* Weights uniform with the variance 2 / fan-in that keeps a relu network's activations level; all else 0. */
static void start_values(network *net)
{
  size_t bytes = (size_t)net->n_floats * sizeof(float);
  float *p = checked(calloc(1, bytes)), colour[3] = { 1, 1, 1 };
  int fan_in[N_PARAMETERS] = { 27, 0, net->o->c1 * 9, 0, net->features, 0 };
  to_device(net, net->g, p, (size_t)net->n_floats);     /* the gaps between tensors stay 0 */
  to_device(net, net->m, p, (size_t)net->n_floats);
  to_device(net, net->v, p, (size_t)net->n_floats);
  for (int i = 0; i < N_PARAMETERS; i += 2)
    for (size_t k = net->at[i]; k < net->at[i + 1]; k++)
      p[k] = (float)(sqrt(6.0 / fan_in[i]) * random_uniform());
  to_device(net, net->p, p, (size_t)net->n_floats);
  to_device(net, net->colour, colour, 3);
  free(p);
}

/* ---- 3. plans ----------------------------------------------------------------------------------------- */

/* Puts the numbers in the place of $N, $C1, ... */
static void expand(const network *net, const char *from, char *to, size_t bytes)
{
  char number[5][32];
  const char *const name[] = { "N", "C1", "C2", "F", "P", "S", "L" };
  const char *value[] = { number[0], number[1], number[2], number[3], number[4], NULL, net->o->layout };
  int known[] = { net->o->batch, net->o->c1, net->o->c2, net->features, net->n_floats };
  char scale[32];
  for (int i = 0; i < 5; i++)
    snprintf(number[i], sizeof number[i], "%d", known[i]);
  snprintf(scale, sizeof scale, "%.9g", -1.0 / net->o->batch);
  value[5] = scale;
  size_t used = 0;
  while (*from && used + 32 < bytes) {
    size_t i = 0;
    while (*from == '$' && i < 7 && strncmp(from + 1, name[i], strlen(name[i])))
      i++;
    if (*from != '$') {
      to[used++] = *from++;
    } else {
      used += (size_t)snprintf(to + used, bytes - used, "%s", value[i]);
      from += 1 + strlen(name[i]);
    }
  }
  to[used] = '\0';
}

static qn_plan *plan(network *net, const char *text, const char *what)
{
  char lines[4096];
  qn_graph *graph;
  qn_plan *p;
  expand(net, text, lines, sizeof lines);
  check(qn_graph_parse(lines, &graph), what);
  check(qn_plan_create(net->ctx, graph, &p), what);
  qn_graph_destroy(graph);              /* a plan keeps what it needs */
  return p;
}

static void make_plans(network *net)
{
  net->forward  = plan(net, forward_text,  "forward");
  net->classify = plan(net, classify_text, "classify");
  net->loss     = plan(net, loss_text,     "loss");
  net->backward = plan(net, backward_text, "backward");
  net->adam     = plan(net, adam_text,     "adam");
}

/* ---- 4. the training step -------------------------------------------------------------------------------- */

static void execute(network *net, const qn_plan *p, void *const pointers[], const char *what)
{
  check(qn_plan_execute(net->ctx, p, pointers), what);
}

static void run_forward(network *net)
{
  float *p = net->p;
  execute(net, net->forward,
          (void *[]){ net->batch + net->in.image, net->batch + net->in.down, net->batch + net->in.across, net->colour,
                      p + net->at[W1], p + net->at[B1], p + net->at[W2], p + net->at[B2], net->x, net->a1, net->p1, net->a2, net->p2 }, "forward");
}

static void run_step(network *net)
{
  float *p = net->p, *g = net->g, *rate = net->batch + net->in.rate;
  run_forward(net);
  execute(net, net->loss,
          (void *[]){ net->p2, net->p2, p + net->at[W3], p + net->at[W3], p + net->at[B3], net->batch + net->in.target,
                      net->total, net->total, g + net->at[W3], g + net->at[B3], net->dp2 }, "loss");
  execute(net, net->backward,
          (void *[]){ net->x, net->a1, net->p1, net->a2, net->dp2, p + net->at[W2], g + net->at[W2], g + net->at[B2],
                      g + net->at[W1], g + net->at[B1] }, "backward");
  execute(net, net->adam, (void *[]){ p, g, net->m, net->v, rate, net->m, net->v, p }, "adam");
}

/* The matrix that resamples 8 pixels to 32, moved by `shift` of the 8: pixel centres, so place i of 32 is
 * (i + 1/2) / 4 - 1/2 of 8. */
static void resampling(float matrix[32][8], double shift)
{
  memset(matrix, 0, 32 * 8 * sizeof(float));
  for (int i = 0; i < 32; i++) {
    double place = fmin(fmax((i + 0.5) / 4 - 0.5 + shift, 0), 7);
    int below = place < 6 ? (int)place : 6;
    matrix[i][below] = (float)(1 - (place - below));
    matrix[i][below + 1] = (float)(place - below);
  }
}

/* moved: by how many of the 8 pixels at most, at random, so that the network learns not to mind. */
static void load_batch(network *net, const digits *d, const int *order, int n, double moved)
{
  float *image = net->host + net->in.image, *target = net->host + net->in.target;
  memset(net->host, 0, net->in.floats * sizeof(float));
  resampling((float (*)[8])(net->host + net->in.down), moved * random_uniform());
  resampling((float (*)[8])(net->host + net->in.across), moved * random_uniform());
  for (int i = 0; i < n; i++) {
    memcpy(image + i * PIXELS, d->image[order[i]], sizeof d->image[0]);
    target[i * CLASSES + d->label[order[i]]] = 1;
  }
}

/* The first step is executed and the second recorded on the way; from then on a step is one copy and one replay. */
static void train_batch(network *net, const digits *d, const int *order, int step, int n_steps)
{
  double t = step + 1, decay = 0.5 * (1 + cos(M_PI * step / n_steps));
  load_batch(net, d, order, net->o->batch, 0.75);
  net->host[net->in.rate] = (float)(net->o->rate * decay * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)));
  to_device(net, net->batch, net->host, net->in.floats);
  if (step == 0) {
    run_step(net);
    return;
  }
  if (!net->step) {
    check(qn_record_begin(net->ctx), "recording");
    run_step(net);
    check(qn_record_end(net->ctx, &net->step), "recording");
  }
  check(qn_recording_replay(net->ctx, net->step), "replay");
}

static double held_out_accuracy(network *net, const digits *d)
{
  int right = 0, batch = net->o->batch;
  int32_t *guess = checked(malloc((size_t)batch * sizeof *guess));
  for (int i = d->n_train; i < d->n; i += batch) {
    int n = d->n - i < batch ? d->n - i : batch;
    load_batch(net, d, d->order + i, n, 0);
    to_device(net, net->batch, net->host, net->in.floats);
    run_forward(net);
    execute(net, net->classify, (void *[]){ net->p2, net->p + net->at[W3], net->p + net->at[B3], net->guess }, "classify");
    check(qn_copy_to_host(net->ctx, guess, net->guess, (size_t)batch * sizeof *guess), "copy");
    for (int k = 0; k < n; k++)
      right += guess[k] == d->label[d->order[i + k]];
  }
  free(guess);
  return 100.0 * right / (d->n - d->n_train);
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A step's time when it is replayed on and on, long enough to be measured. Reading the sum of losses waits for the last. */
static double replayed(network *net)
{
  float total;
  for (int n = 4;; n *= 2) {
    double start = now();
    for (int i = 0; i < n; i++)
      check(qn_recording_replay(net->ctx, net->step), "replay");
    check(qn_copy_to_host(net->ctx, &total, net->total, sizeof total), "copy");
    if (now() - start > 0.1)
      return (now() - start) / n;
  }
}

/* Trains and prints the learning curve; the last accuracy. */
static double train(network *net, const digits *d)
{
  int steps = d->n_train / net->o->batch, n_steps = steps * net->o->epochs;
  int order[MAX_DIGITS];
  double accuracy = 0, training = 0, begin = now();
  memcpy(order, d->order, sizeof order);
  printf("epoch      loss  held-out accuracy   seconds\n");
  for (int epoch = 0; epoch < net->o->epochs; epoch++) {
    float total = 0;
    double start = now();
    shuffle(order, d->n_train);
    to_device(net, net->total, &total, 1);
    for (int i = 0; i < steps; i++)
      train_batch(net, d, order + i * net->o->batch, epoch * steps + i, n_steps);
    check(qn_copy_to_host(net->ctx, &total, net->total, sizeof total), "copy");
    training += now() - start;
    accuracy = held_out_accuracy(net, d);
    printf("%5d  %8.4f  %16.2f%%  %8.2f\n", epoch + 1, total / (float)steps, accuracy, now() - begin);
    fflush(stdout);
  }
  printf("\nbackend   %s\n", qn_context_device(net->ctx));
  printf("accuracy  %.2f%% of %d digits never trained on\n", accuracy, d->n - d->n_train);
  printf("time      %.2f s for %d steps of %d digits: %.3f ms a step\n", training, n_steps, net->o->batch,
         1e3 * training / n_steps);
  if (net->step)
    printf("replayed  %.4f ms a step, the same batch again and again\n", 1e3 * replayed(net));
  return accuracy;
}

/* ---- what ran --------------------------------------------------------------------------------------------- */

/* A plan prints a line for each of its parts: engine, what it promises, and after " : " the problem. */
static void print_plan(const char *name, const qn_plan *p)
{
  size_t n = qn_plan_print(p, NULL, 0);
  char *text = checked(malloc(n + 1));
  qn_plan_print(p, text, n + 1);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    const char *problem = strstr(line, " : ");
    printf("  %-9s %-28.*s%s\n", name, (int)strcspn(line, " "), line, problem ? problem + 3 : "");
    name = "";
  }
  free(text);
}

static void print_engines(const network *net)
{
  printf("\nthe engines that ran\n");
  print_plan("forward",  net->forward);
  print_plan("loss",     net->loss);
  print_plan("backward", net->backward);
  print_plan("adam",     net->adam);
  print_plan("classify", net->classify);
}

static void clean_up(network *net)
{
  void *const memory[] = { net->batch, net->p, net->g, net->m, net->v, net->colour, net->x, net->a1, net->p1,
                           net->a2, net->p2, net->dp2, net->total, net->guess };
  qn_recording_destroy(net->step);
  qn_plan_destroy(net->forward);
  qn_plan_destroy(net->classify);
  qn_plan_destroy(net->loss);
  qn_plan_destroy(net->backward);
  qn_plan_destroy(net->adam);
  for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
    qn_free(net->ctx, memory[i]);
  free(net->host);
  qn_context_destroy(net->ctx);
}

/* ---- the program --------------------------------------------------------------------------------------------- */

static const struct argp_option option_table[] = {
  { "width",  'w', "C1,C2", 0, "channels of the two convolutions (default 16,32)", 0 },
  { "epochs", 'e', "N",     0, "times through the training digits (default 12)", 0 },
  { "batch",  'b', "N",     0, "digits in a step (default 32)", 0 },
  { "rate",   'r', "R",     0, "Adam's step size at the start (default 0.002)", 0 },
  { "seed",   's', "N",     0, "of the split, the weights and the order (default 1)", 0 },
  { "layout", 'l', "L",     0, "nchw or nhwc: the order of dims in memory (default nchw)", 0 },
  { "data",   'd', "FILE",  0, "digits.csv", 0 },
  { "quiet",  'q', NULL,    0, "do not list the engines", 0 },
  { 0 }
};
static const char doc[] =
  "Train a small convolutional network on handwritten digits and say how well it reads those it never saw.\v"
  "QUERN_BACKEND says on which backend (cpu_ref, cuda, ...). Exit status: 0 at least 97.5% are read; 1 fewer, or something "
  "failed; 2 the options or settings are wrong.";

static int positive(const char *text, struct argp_state *state)
{
  char *end;
  long n = strtol(text, &end, 10);
  if (*end || n < 1 || n > 1000000)
    argp_error(state, "a number above 0 is wanted, not %s", text);
  return (int)n;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  options *o = state->input;
  char *end;
  switch (key) {
  case 'w':
    if (sscanf(text, "%d,%d", &o->c1, &o->c2) != 2 || o->c1 < 1 || o->c2 < 1 || o->c1 > 4096 || o->c2 > 4096)
      argp_error(state, "--width wants two numbers of channels, as 16,32, not %s", text);
    break;
  case 'e': o->epochs = positive(text, state); break;
  case 'b':
    o->batch = positive(text, state);
    if (o->batch > MAX_DIGITS * 4 / 5)
      argp_error(state, "--batch: there are %d digits to train on", MAX_DIGITS * 4 / 5);
    break;
  case 'r':
    o->rate = strtod(text, &end);
    if (*end || !(o->rate > 0))
      argp_error(state, "--rate wants a number above 0, not %s", text);
    break;
  case 's': o->seed = strtoul(text, NULL, 10); break;
  case 'l':
    if (strcmp(text, "nchw") && strcmp(text, "nhwc"))
      argp_error(state, "--layout is nchw or nhwc, not %s", text);
    o->layout = text;
    break;
  case 'd': o->data = text; break;
  case 'q': o->quiet = 1; break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static void print_version(FILE *f, struct argp_state *state)
{
  (void)state;
  fprintf(f, "cnn_digits (Quern) %s\n", qn_version());
}

int main(int argc, char **argv)
{
  static digits d;
  options o = { 16, 32, 12, 32, 0, 1, 0.002, DIGITS_CSV, "nchw" };
  network net = { .o = &o };

  argp_program_version_hook = print_version;
  argp_err_exit_status = 2;
  argp_parse(&(struct argp){ option_table, parse_option, NULL, doc, NULL, NULL, NULL }, argc, argv, 0, NULL, &o);
  random_state = o.seed;
  read_digits(&d, o.data);
  check(qn_context_create(NULL, &net.ctx), "context");
  printf("%d digits, %d of them to train on; conv 3->%d, conv %d->%d, on %s\n\n", d.n, d.n_train, o.c1, o.c1, o.c2,
         qn_context_device(net.ctx));
  lay_out(&net);
  start_values(&net);
  make_plans(&net);
  double accuracy = train(&net, &d);
  if (!o.quiet)
    print_engines(&net);
  clean_up(&net);
  return accuracy >= 97.5 ? 0 : 1;
}
