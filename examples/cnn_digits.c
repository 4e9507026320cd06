/* cnn_digits.c -- a network that learns to read handwritten digits, using only Quern's public interface.
 *
 *   image 8x8 -> resampled to 3x32x32 -> conv 3x3 (3->C1), [batch norm,] relu, max pool 2 -> conv 3x3 (C1->C2), [batch norm,]
 *             relu, max pool 2 -> fully connected to 10 -> cross-entropy, Adam
 *
 * It is also the tutorial: what a training program does with Quern, in order.
 *   1. The network is written as graphs, one for each stretch between two reshapes: cnn_digits_graphs.h.
 *   2. A context stands for a device. All memory is allocated from it once, under the names used in the graphs.
 *   3. Each graph becomes a plan: engines are chosen, workspace is known.
 *   4. A training step executes the plans one after the other. It is recorded once, then replayed.
 * With --amp activations are f16 or bf16, with the loss scaled so that small gradients are not lost; the
 * parameters that Adam updates stay f32.
 * With --ranks each of several processes computes the gradients of a share of the batch, and their mean is the gradient of the whole; so it
 * does without --ranks where torchrun, mpirun or srun starts it.
 * Nothing below names a backend: QUERN_BACKEND says where it runs.
 *
 *   cc cnn_digits.c -o cnn_digits $(pkg-config --cflags --libs quern) -lm && ./cnn_digits --data data/digits.csv */
#include <argp.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <quern/quern.h>
#include "cnn_digits_data.h"
#include "cnn_digits_graphs.h"
#include "cnn_digits_ranks.h"
#include "cnn_digits_show.h"
#ifndef DIGITS_CSV
#define DIGITS_CSV "data/digits.csv"
#endif

/* ---- options and errors -------------------------------------------------------------------------- */

#define MAX_BATCH 65536

typedef struct options {
  int c1, c2, epochs, batch, norm, engines, quiet, ranks, shard;       /* batch: of all ranks */
  unsigned long seed;
  double rate;
  const char *data, *layout, *amp;      /* amp: NULL, "f16" or "bf16" */
} options;

/* A library reports errors; a program decides what to do. This one exits. */
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

/* ---- 2. a context and its memory -------------------------------------------------------------------- */

/* The parameters are contiguous, each at a multiple of 32 bytes, so that Adam sees one vector; so are the gradients, Adam's
 * two moments and the copies in a narrower dtype. */
enum { W1, B1, S1, W2, B2, S2, W3, B3, N_PARAMETERS };
static const char *const parameter_name[N_PARAMETERS] = { "w1", "b1", "s1", "w2", "b2", "s2", "w3", "b3" };
static const char *const gradient_name[N_PARAMETERS] = { "dw1", "db1", "ds1", "dw2", "db2", "ds2", "dw3", "db3" };

enum { PICTURE, FORWARD, LOSS, BACKWARD, UPDATE, LOOK, CLASSIFY, N_PLANS };
static const char *const plan_name[N_PLANS] = { "picture", "forward", "loss", "backward", "update", "look", "classify" };
static const char *const plan_text[N_PLANS] = { picture_text, forward_text, loss_text, backward_text, update_text, look_text,
                                                classify_text };

enum { MAX_TENSORS = 80, MAX_POINTERS = 40 };
typedef struct tensor { const char *name; char *at; int owned; } tensor;
typedef struct step_plan { qn_plan *plan; void *pointer[MAX_POINTERS]; } step_plan;

/* A step's input from the host, in one block, so that one copy takes it to the device. */
typedef struct batch_layout { size_t image, down, across, label, rate, words; } batch_layout;

typedef struct network {
  const options *o;
  qn_context    *ctx;
  qn_group      *group;                 /* the ranks that train together */
  int            rank, ranks, n_mine;   /* n_mine: digits of this rank in a step */
  int            features, n_floats;    /* n_floats: of all parameters */
  size_t         start[N_PARAMETERS], size[N_PARAMETERS];
  tensor         tensor[MAX_TENSORS];   /* on the device */
  int            n_tensors;
  batch_layout   in;
  float         *host;                  /* the batch */
  char          *batch;                 /* the same on the device */
  step_plan      plan[N_PLANS];
  qn_recording  *step;
  int            read[MAX_DIGITS];      /* what the held out digits were last read as */
} network;

static char *find(const network *net, const char *name)
{
  for (int i = 0; i < net->n_tensors; i++)
    if (!strcmp(net->tensor[i].name, name))
      return net->tensor[i].at;
  return NULL;
}

/* Gives existing memory another name. */
static void name(network *net, const char *name, char *at)
{
  net->tensor[net->n_tensors++] = (tensor){ name, at, 0 };
}

static char *on_device(network *net, const char *name, size_t bytes)
{
  void *p;
  check(qn_alloc(net->ctx, bytes, &p), "memory");
  net->tensor[net->n_tensors++] = (tensor){ name, p, 1 };
  return p;
}

static void to_device(network *net, void *device, const void *host, size_t bytes)
{
  check(qn_copy_to_device(net->ctx, device, host, bytes), "copy");
}

static void lay_out_parameters(network *net)
{
  size_t c1 = (size_t)net->o->c1, c2 = (size_t)net->o->c2, scales = net->o->norm ? 1 : 0, used = 0;
  size_t size[N_PARAMETERS] = { c1 * 27, c1, scales * c1, c2 * c1 * 9, c2, scales * c2, c2 * 64 * CLASSES, CLASSES };
  for (int i = 0; i < N_PARAMETERS; i++) {
    net->start[i] = used;
    net->size[i] = size[i];
    used = (used + size[i] + 7) / 8 * 8;
  }
  const size_t unit = 8 * (size_t)net->ranks;
  used = (used + unit - 1) / unit * unit;       /* ranks share it equally */
  net->n_floats = (int)used;
  net->features = (int)c2 * 64;
  float *p = (float *)(void *)on_device(net, "p", used * 4), *g = (float *)(void *)on_device(net, "g", used * 4);
  char *low = net->o->amp ? on_device(net, "low", used * 2) : (char *)p;
  const size_t kept = net->o->shard ? used / (size_t)net->ranks : used;
  on_device(net, "m", kept * 4);
  on_device(net, "v", kept * 4);
  if (net->o->shard)
    on_device(net, "share", kept * 4);
  name(net, "g_late", (char *)(g + net->start[W3]));
  for (int i = 0; i < N_PARAMETERS; i++) {      /* weights have the activations' dtype; what is added to sums stays f32 */
    int weight = i == W1 || i == W2 || i == W3;
    name(net, parameter_name[i], weight ? low + net->start[i] * (net->o->amp ? 2 : 4) : (char *)(p + net->start[i]));
    name(net, gradient_name[i], (char *)(g + net->start[i]));
  }
}

static void lay_out(network *net)
{
  size_t c1 = (size_t)net->o->c1, c2 = (size_t)net->o->c2, n = (size_t)net->n_mine, bytes = net->o->amp ? 2 : 4;
  lay_out_parameters(net);
  net->in = (batch_layout){ 0, n * PIXELS, n * PIXELS + 256, n * PIXELS + 512, (n * PIXELS + 512 + n + 3) / 4 * 4, 0 };
  net->in.words = net->in.rate + 1;
  net->host = checked(calloc(net->in.words, sizeof(float)));
  net->batch = on_device(net, "batch", net->in.words * 4);
  name(net, "image", net->batch + 4 * net->in.image);
  name(net, "down", net->batch + 4 * net->in.down);
  name(net, "across", net->batch + 4 * net->in.across);
  name(net, "label", net->batch + 4 * net->in.label);
  name(net, "rate", net->batch + 4 * net->in.rate);
  on_device(net, "colour", 12);
  on_device(net, "x", n * 3 * 1024 * bytes);
  on_device(net, "z1", n * c1 * 1024 * bytes);
  on_device(net, "a1", n * c1 * 1024 * bytes);
  on_device(net, "p1", n * c1 * 256 * bytes);
  on_device(net, "z2", n * c2 * 256 * bytes);
  on_device(net, "a2", n * c2 * 256 * bytes);
  name(net, "f", on_device(net, "p2", n * c2 * 64 * bytes));
  name(net, "f_t", find(net, "f"));
  name(net, "df", on_device(net, "dp2", n * c2 * 64 * bytes));
  name(net, "w3_t", find(net, "w3"));
  static const char *const statistic[] = { "mean1", "var1", "m1", "r1", "mean2", "var2", "m2", "r2" };
  for (int i = 0; i < 8; i++)
    on_device(net, statistic[i], (i < 4 ? c1 : c2) * 4);
  on_device(net, "total", 4);
  on_device(net, "guess", n * 4);
  on_device(net, "steps", 8);
  on_device(net, "good", 8);
  name(net, "loss_scale", on_device(net, "scale", 4));
}

/* Weights uniform with variance 2 / fan-in, which keeps a relu network's activations level; scales 1; all else 0. */
static void start_values(network *net)
{
  size_t bytes = (size_t)net->n_floats * sizeof(float);
  float *p = checked(calloc(1, bytes)), colour[3] = { 1, 1, 1 }, scale = net->o->amp ? 65536 : 1;
  static const int64_t zero = 0;
  int fan_in[N_PARAMETERS] = { [W1] = 27, [W2] = net->o->c1 * 9, [W3] = net->features };
  to_device(net, find(net, "g"), p, bytes);     /* gaps between tensors stay 0 */
  const size_t share = bytes / (size_t)net->ranks, kept = net->o->shard ? share : bytes;
  to_device(net, find(net, "m"), p, kept);
  to_device(net, find(net, "v"), p, kept);
  to_device(net, find(net, "mean1"), p, (size_t)net->o->c1 * 4);
  to_device(net, find(net, "mean2"), p, (size_t)net->o->c2 * 4);
  for (int i = 0; i < N_PARAMETERS; i++)
    for (size_t k = net->start[i]; k < net->start[i] + net->size[i]; k++)
      p[k] = i == S1 || i == S2 ? 1 : fan_in[i] ? (float)(sqrt(6.0 / fan_in[i]) * random_uniform()) : 0;
  to_device(net, find(net, "p"), p, bytes);
  if (net->o->shard)
    to_device(net, find(net, "share"), (const char *)p + (size_t)net->rank * share, share);
  if (net->o->amp) {
    qn_tensor from = qn_tensor_1d(find(net, "p"), QN_F32, net->n_floats);
    qn_tensor to = qn_tensor_1d(find(net, "low"), strcmp(net->o->amp, "f16") ? QN_BF16 : QN_F16, net->n_floats);
    check(qn_cast(net->ctx, &from, &to), "cast");
  }
  for (int i = 0; i < net->n_floats; i++)
    p[i] = 1;
  to_device(net, find(net, "var1"), p, (size_t)net->o->c1 * 4);
  to_device(net, find(net, "var2"), p, (size_t)net->o->c2 * 4);
  to_device(net, find(net, "colour"), colour, sizeof colour);
  to_device(net, find(net, "scale"), &scale, sizeof scale);
  to_device(net, find(net, "steps"), &zero, sizeof zero);
  to_device(net, find(net, "good"), &zero, sizeof zero);
  free(p);
}

/* ---- 3. plans ----------------------------------------------------------------------------------------- */

/* Drops the lines that do not apply and replaces $N, $C1, ... by numbers. */
static void expand(const network *net, const char *from, char *to, size_t bytes)
{
  enum { NUMBERS = 8, KEYS = NUMBERS + 2 };
  char number[NUMBERS][32];
  const char *const key[KEYS] = { "N", "C1", "C2", "F", "P", "R", "S", "Q", "L", "T" };
  const char *value[KEYS] = { [NUMBERS] = net->o->layout, net->o->amp ? net->o->amp : "f32" };
  const int early = (int)net->start[W3], shared = net->ranks > 1 && !net->o->shard;     /* with --shard the update shares them */
  int known[NUMBERS] = { net->n_mine, net->o->c1, net->o->c2, net->features, net->n_floats, net->ranks, net->n_floats / net->ranks,
                         net->n_floats - early }, begins = 1;
  for (int i = 0; i < NUMBERS; i++) {
    snprintf(number[i], sizeof number[i], "%d", known[i]);
    value[i] = number[i];
  }
  size_t used = 0;
  while (*from && used + 32 < bytes) {
    const char *mark = begins ? strchr("+-~!*/", *from) : NULL;
    if (mark) {
      const int is[] = { ['+'] = net->o->norm, ['-'] = !net->o->norm, ['~'] = net->o->amp != NULL, ['!'] = !net->o->amp, ['*'] = shared,
                         ['/'] = !shared };
      int wanted = is[(unsigned char)*mark];
      from = wanted ? from + 1 : strchr(from, '\n') + 1;
      begins = !wanted;
      continue;
    }
    size_t i = 0;
    while (*from == '$' && i < KEYS && strncmp(from + 1, key[i], strlen(key[i])))
      i++;
    begins = *from == '\n';
    if (*from != '$') {
      to[used++] = *from++;
    } else {
      used += (size_t)snprintf(to + used, bytes - used, "%s", value[i]);
      from += 1 + strlen(key[i]);
    }
  }
  to[used] = '\0';
}

/* Makes a plan, and looks up the memory named in each of its graph's `in` and `out` lines. */
static void make_plan(network *net, int which)
{
  char lines[4096], taken[32];
  qn_graph *graph;
  step_plan *s = &net->plan[which];
  expand(net, which == UPDATE && net->o->shard ? shard_text : plan_text[which], lines, sizeof lines);
  check(qn_graph_parse(lines, &graph), plan_name[which]);
  check(qn_plan_create(net->ctx, graph, &s->plan), plan_name[which]);
  for (int i = 0; i < net->n_tensors; i++) {
    snprintf(taken, sizeof taken, "%s_", net->tensor[i].name);
    int at = qn_graph_index(graph, net->tensor[i].name), over = qn_graph_index(graph, taken);
    if (at >= 0)
      s->pointer[at] = net->tensor[i].at;
    if (over >= 0)
      s->pointer[over] = net->tensor[i].at;
  }
  qn_graph_destroy(graph);              /* a plan keeps what it needs */
}

/* ---- 4. the training step -------------------------------------------------------------------------------- */

static void execute(network *net, int which)
{
  check(qn_plan_execute(net->ctx, net->plan[which].plan, net->plan[which].pointer), plan_name[which]);
}

static void run_step(network *net)
{
  for (int i = PICTURE; i <= UPDATE; i++)
    execute(net, i);
}

/* n digits of the list order, from its place `from` on; at its end it begins anew. moved: shifts images by up to that many of the 8 pixels,
 * at random, so that the network learns to ignore shifts. */
static void load_batch(network *net, const digits *d, const int *order, int n_order, int from, int n, double moved)
{
  float *image = net->host + net->in.image;
  int32_t *label = (int32_t *)(void *)(net->host + net->in.label);
  memset(net->host, 0, net->in.words * sizeof(float));
  resampling((float (*)[8])(net->host + net->in.down), moved * random_uniform());
  resampling((float (*)[8])(net->host + net->in.across), moved * random_uniform());
  for (int i = 0; i < n; i++) {
    const int digit = order[(from + i) % n_order];
    memcpy(image + i * PIXELS, d->image[digit], sizeof d->image[0]);
    label[i] = d->label[digit];
  }
}

/* The first step is executed, the second also recorded; from then on a step is one copy and one replay. */
static void train_batch(network *net, const digits *d, const int *order, int from, int step, int n_steps)
{
  double decay = 0.5 * (1 + cos(M_PI * step / n_steps));
  load_batch(net, d, order, d->n_train, from + net->rank * net->n_mine, net->n_mine, 0.75);
  net->host[net->in.rate] = (float)(net->o->rate * decay);
  to_device(net, net->batch, net->host, net->in.words * 4);
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
  int right = 0, batch = net->n_mine;
  const uint64_t state = random_state;          /* the number of batches must not matter to what follows */
  int32_t *guess = checked(malloc((size_t)batch * sizeof *guess));
  for (int i = d->n_train; i < d->n; i += batch) {
    int n = d->n - i < batch ? d->n - i : batch;
    load_batch(net, d, d->order, d->n, i, n, 0);
    to_device(net, net->batch, net->host, net->in.words * 4);
    execute(net, PICTURE);
    execute(net, LOOK);
    execute(net, CLASSIFY);
    check(qn_copy_to_host(net->ctx, guess, find(net, "guess"), (size_t)batch * sizeof *guess), "copy");
    for (int k = 0; k < n; k++) {
      net->read[d->order[i + k]] = guess[k];
      right += guess[k] == d->label[d->order[i + k]];
    }
  }
  free(guess);
  random_state = state;
  return 100.0 * right / (d->n - d->n_train);
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The mean over all ranks. */
static float mean(network *net, float x)
{
  float *all = checked(malloc((size_t)net->ranks * sizeof *all)), sum = 0;
  check(qn_group_exchange(net->group, &x, sizeof x, all), "group");
  for (int r = 0; r < net->ranks; r++)
    sum += all[r];
  free(all);
  return sum / (float)net->ranks;
}

/* The time of a step in continuous replay, over long enough to measure. Reading the sum of losses waits for the last step. */
static double replayed(network *net)
{
  float total;
  for (int n = 4;; n *= 2) {
    double start = now();
    for (int i = 0; i < n; i++)
      check(qn_recording_replay(net->ctx, net->step), "replay");
    check(qn_copy_to_host(net->ctx, &total, find(net, "total"), sizeof total), "copy");
    double time = mean(net, (float)(now() - start));    /* all ranks go on, or none */
    if (time > 0.1)
      return time / n;
  }
}

/* A bar for one epoch's loss; one below the other they are the learning curve. In logarithms, from 0.01 to the first. */
static const char *bar(double loss, double first)
{
  static const char full[] = "################################";
  double length = sizeof full - 1, part = log(loss / 0.01) / log(first / 0.01);
  return full + (int)(length - length * fmin(fmax(part, 0), 1));
}

/* Trains and prints the learning curve; returns the last accuracy. */
static double train(network *net, const digits *d)
{
  int steps = d->n_train > net->o->batch ? d->n_train / net->o->batch : 1, n_steps = steps * net->o->epochs;
  int order[MAX_DIGITS];
  double accuracy = 0, training = 0, begin = now(), first = 0;
  memcpy(order, d->order, sizeof order);
  printf("epoch  held-out accuracy   seconds      loss\n");
  for (int epoch = 0; epoch < net->o->epochs; epoch++) {
    float total = 0;
    double start = now();
    shuffle(order, d->n_train);
    to_device(net, find(net, "total"), &total, sizeof total);
    for (int i = 0; i < steps; i++)
      train_batch(net, d, order, i * net->o->batch, epoch * steps + i, n_steps);
    check(qn_copy_to_host(net->ctx, &total, find(net, "total"), sizeof total), "copy");
    training += now() - start;
    accuracy = held_out_accuracy(net, d);
    total = mean(net, total) / (float)steps;
    first = epoch ? first : fmax(total, 0.1);
    printf("%5d  %16.2f%%  %8.2f  %8.4f  %s\n", epoch + 1, accuracy, now() - begin, total, bar(total, first));
    fflush(stdout);
  }
  printf("\nbackend   %s\n", qn_context_device(net->ctx));
  if (net->ranks > 1)
    printf("ranks     %d, of %d digits each in a step%s\n", net->ranks, net->n_mine, net->o->shard ? "; each updates a share" : "");
  printf("accuracy  %.2f%% of %d digits never trained on\n", accuracy, d->n - d->n_train);
  printf("time      %.2f s for %d steps of %d digits: %.3f ms a step\n", training, n_steps, net->o->batch,
         1e3 * training / n_steps);
  if (net->o->amp) {
    int64_t taken;
    float scale;
    check(qn_copy_to_host(net->ctx, &taken, find(net, "steps"), sizeof taken), "copy");
    check(qn_copy_to_host(net->ctx, &scale, find(net, "scale"), sizeof scale), "copy");
    printf("amp       %s, loss scale %g, %lld steps skipped\n", net->o->amp, (double)scale, (long long)(n_steps - taken));
  }
  if (net->step)
    printf("replayed  %.4f ms a step, the same batch again and again\n", 1e3 * replayed(net));
  return accuracy;
}

/* ---- the plans used --------------------------------------------------------------------------------------- */

static void print_engines(const network *net)
{
  printf("\nThe engines that ran:\n");
  for (int i = 0; i < N_PLANS; i++)
    print_plan(plan_name[i], net->plan[i].plan);
}

static void clean_up(network *net)
{
  qn_recording_destroy(net->step);
  for (int i = 0; i < N_PLANS; i++)
    qn_plan_destroy(net->plan[i].plan);
  for (int i = 0; i < net->n_tensors; i++)
    if (net->tensor[i].owned)
      qn_free(net->ctx, net->tensor[i].at);
  free(net->host);
  qn_context_destroy(net->ctx);
  qn_group_destroy(net->group);
}

/* ---- ranks --------------------------------------------------------------------------------------------------- */

/* Meets the other ranks, if there are any, and makes the context: on a GPU of its own where there is one for each. */
static void join(network *net)
{
  char device[32];
  check(qn_group_create(NULL, &net->group), "group");
  net->rank = qn_group_rank(net->group);
  net->ranks = qn_group_size(net->group);
  snprintf(device, sizeof device, "device=%d", qn_group_local_rank(net->group));
  const char *const own[] = { device, NULL };
  if (net->ranks == 1 || qn_context_create(own, &net->ctx))
    check(qn_context_create(NULL, &net->ctx), "context");
  check(qn_context_join(net->ctx, net->group), "group");
  net->n_mine = net->o->batch / net->ranks;
  if (net->o->batch % net->ranks || (net->ranks > 1 && net->o->norm) || (net->o->shard && net->o->amp)) {
    fprintf(stderr, "cnn_digits: %s\n", net->o->batch % net->ranks ? "--batch must be a multiple of --ranks"
            : net->o->shard && net->o->amp ? "--shard does without --amp"
            : "--norm takes its statistics over one rank's digits, which would not be those of the whole batch; it wants one rank");
    exit(2);
  }
  int quiet = net->rank ? open("/dev/null", O_WRONLY) : -1;     /* one rank speaks for all */
  if (quiet >= 0)
    dup2(quiet, STDOUT_FILENO);
}

/* ---- the program --------------------------------------------------------------------------------------------- */

static const struct argp_option option_table[] = {
  { "width",  'w', "C1,C2", 0, "channels of the two convolutions (default 16,32)", 0 },
  { "epochs", 'e', "N",     0, "times through the training digits (default 12)", 0 },
  { "batch",  'b', "N",     0, "digits in a step (default 32); more than there are come again", 0 },
  { "rate",   'r', "R",     0, "Adam's step size at the start (default 0.002)", 0 },
  { "seed",   's', "N",     0, "of the split, the weights and the order (default 1)", 0 },
  { "layout", 'l', "L",     0, "nchw or nhwc: the order of dims in memory (default nchw)", 0 },
  { "norm",   'n', NULL,    0, "batch norm behind each convolution", 0 },
  { "amp",    'a', "DTYPE", 0, "f16 or bf16: mixed precision, with dynamic loss scaling", 0 },
  { "data",   'd', "FILE",  0, "digits.csv", 0 },
  { "ranks",  'R', "N",     0, "processes that train together, each on its share of a batch (default 1, or as a launcher says)", 0 },
  { "shard",  'S', NULL,    0, "of several ranks: each keeps and updates its share of Adam's state", 0 },
  { "engines", 'E', NULL,   0, "list the engines that ran, and the problem of each", 0 },
  { "quiet",  'q', NULL,    0, "show no digits", 0 },
  { 0 }
};
static const char doc[] =
  "Train a small convolutional network on handwritten digits and say how well it reads those it never saw.\v"
  "QUERN_BACKEND says on which backend (cpu_ref, cuda, ...). Exit status: 0 at least 97.5% are read; 1 fewer, or something "
  "failed; 2 the options or settings are wrong.";

static int whole(const char *option, const char *text, int least, struct argp_state *state)
{
  char *end;
  long n = strtol(text, &end, 10);
  if (end == text || *end || n < least || n > 1000000)
    argp_error(state, "%s wants a whole number from %d to 1000000, not %s", option, least, text);
  return (int)n;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  options *o = state->input;
  char *end, behind;
  switch (key) {
  case 'w':
    if (sscanf(text, "%d,%d%c", &o->c1, &o->c2, &behind) != 2 || o->c1 < 1 || o->c2 < 1 || o->c1 > 4096 || o->c2 > 4096)
      argp_error(state, "--width wants two numbers of channels, as 16,32, not %s", text);
    break;
  case 'e': o->epochs = whole("--epochs", text, 1, state); break;
  case 'b':
    o->batch = whole("--batch", text, 1, state);
    if (o->batch > MAX_BATCH)
      argp_error(state, "--batch wants at most %d digits, not %d", MAX_BATCH, o->batch);
    break;
  case 'r':
    o->rate = strtod(text, &end);
    if (*end || !(o->rate > 0 && o->rate <= 1e6))
      argp_error(state, "--rate wants a number above 0, at most 1e6, not %s", text);
    break;
  case 's': o->seed = (unsigned long)whole("--seed", text, 0, state); break;
  case 'l':
    if (strcmp(text, "nchw") && strcmp(text, "nhwc"))
      argp_error(state, "--layout is nchw or nhwc, not %s", text);
    o->layout = text;
    break;
  case 'n': o->norm = 1; break;
  case 'a':
    if (strcmp(text, "f16") && strcmp(text, "bf16"))
      argp_error(state, "--amp is f16 or bf16, not %s", text);
    o->amp = text;
    break;
  case 'd': o->data = text; break;
  case 'R': o->ranks = whole("--ranks", text, 1, state); break;
  case 'S': o->shard = 1; break;
  case 'E': o->engines = 1; break;
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
  options o = { .c1 = 16, .c2 = 32, .epochs = 12, .batch = 32, .seed = 1, .rate = 0.002, .data = DIGITS_CSV, .layout = "nchw" };
  network net = { .o = &o };

  argp_program_version_hook = print_version;
  argp_err_exit_status = 2;
  argp_parse(&(struct argp){ option_table, parse_option, NULL, doc, NULL, NULL, NULL }, argc, argv, 0, NULL, &o);
  random_state = o.seed;
  read_digits(&d, o.data);
  if (o.ranks > 1)
    start_ranks(o.ranks);
  join(&net);
  printf("%d digits, %d of them to train on; conv 3->%d, conv %d->%d, on %s\n\n", d.n, d.n_train, o.c1, o.c1, o.c2,
         qn_context_device(net.ctx));
  lay_out(&net);
  start_values(&net);
  for (int i = 0; i < N_PLANS; i++)
    make_plan(&net, i);
  double accuracy = train(&net, &d);
  if (!o.quiet)
    show_read(&d, net.read);
  if (o.engines)
    print_engines(&net);
  clean_up(&net);
  if (fflush(stdout) || ferror(stdout)) {
    fprintf(stderr, "cnn_digits: standard output cannot be written\n");
    return 1;
  }
  return accuracy >= 97.5 ? 0 : 1;
}
