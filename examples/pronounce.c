/* pronounce.c -- how English words are spoken: letters to phonemes by two recurrent networks, using only Quern's public interface.
 *
 *   encoder: letters, </s> -> embedding -> GRU; its last state is all that the decoder knows of the word
 *   decoder: <s> -> embedding -> GRU, one step -> scores of the phonemes -> the best one, which is the next step's input
 *
 * The weights are those of the package g2p-en (PyPI; K. Park and J. Kim, Apache License 2.0), which has them for words that no dictionary
 * has. They are not part of Quern: examples/pronounce_weights fetches them. This program reads NumPy's file itself (npz.h).
 *
 *   1. Words are a batch: [letters, words], padded; `lengths` says where each ends, and ht is the state there.
 *   2. A step of the decoder is two plans, whose memory chains: step i reads row i of `spoken` and writes row i + 1; two states take turns.
 *   3. All steps are recorded once; a batch of words is then two copies, one execution, one replay. The host chooses nothing in between.
 * Nothing below names a backend: QUERN_BACKEND says where it runs. */
#include <argp.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <quern/quern.h>
#include "npz.h"
#ifndef PRONOUNCE_NPZ
#define PRONOUNCE_NPZ "g2p_en.npz"
#endif

/* BATCH: words at once; LETTERS: of the longest word, and </s>; STEPS: phonemes of the longest */
enum { BATCH = 64, LETTERS = 48, STEPS = 20 };
enum { UNKNOWN = 1, END_OF_WORD = 2, FIRST_LETTER = 3, N_GRAPHEMES = 29 };
enum { BEGIN = 2, END = 3, FIRST_PHONEME = 4, N_PHONEMES = 74 };
/* ARPAbet, as the CMU dictionary writes it; the number is the stress. */
static const char *const phoneme[N_PHONEMES] = {
  "<pad>", "<unk>", "<s>", "</s>", "AA0", "AA1", "AA2", "AE0", "AE1", "AE2", "AH0", "AH1", "AH2", "AO0", "AO1", "AO2", "AW0", "AW1", "AW2",
  "AY0", "AY1", "AY2", "B", "CH", "D", "DH", "EH0", "EH1", "EH2", "ER0", "ER1", "ER2", "EY0", "EY1", "EY2", "F", "G", "HH", "IH0", "IH1",
  "IH2", "IY0", "IY1", "IY2", "JH", "K", "L", "M", "N", "NG", "OW0", "OW1", "OW2", "OY0", "OY1", "OY2", "P", "R", "S", "SH", "T", "TH",
  "UH0", "UH1", "UH2", "UW", "UW0", "UW1", "UW2", "V", "W", "Y", "Z", "ZH",
};

/* $E, $H: sizes of an embedding and of a state; $L, $B: letters and words of a batch. A reshape is another declaration: scores. */
static const char encode_text[] =
  "in letters  i32/$Lx$B\n"
  "in lengths  i32/$B\n"
  "in enc_emb  f32/29x$E\n"
  "in enc_w_ih f32/$Gx$E\n"
  "in enc_w_hh f32/$Gx$H\n"
  "in enc_b_ih f32/$G\n"
  "in enc_b_hh f32/$G\n"
  "x = gather x=enc_emb indices=letters\n"
  "y = rnn_forward x=x w=[enc_w_ih] r=[enc_w_hh] bw=[enc_b_ih] br=[enc_b_hh] lengths=lengths ht=h cell=gru\n"
  "out h\n";
static const char step_text[] =
  "in last     i32/1x$B\n"
  "in h        f32/1x$Bx$H\n"
  "in dec_emb  f32/74x$E\n"
  "in dec_w_ih f32/$Gx$E\n"
  "in dec_w_hh f32/$Gx$H\n"
  "in dec_b_ih f32/$G\n"
  "in dec_b_hh f32/$G\n"
  "in fc_w     f32/1x$Hx74/t\n"
  "in fc_b     f32/74\n"
  "x = gather x=dec_emb indices=last\n"
  "y = rnn_forward x=x w=[dec_w_ih] r=[dec_w_hh] bw=[dec_b_ih] br=[dec_b_hh] h0=h ht=h_ cell=gru\n"
  "out scores = matmul a=y b=fc_w bias=fc_b\n"
  "out h_\n";
static const char choose_text[] =
  "in scores f32/$Bx74\n"
  "out next = argmax x=scores axis=1 y=i32/$Bx1\n";

enum { ENCODE, STEP, CHOOSE, N_PLANS };
static const char *const plan_text[N_PLANS] = { encode_text, step_text, choose_text };
enum { ENC_EMB, ENC_W_IH, ENC_W_HH, ENC_B_IH, ENC_B_HH, DEC_EMB, DEC_W_IH, DEC_W_HH, DEC_B_IH, DEC_B_HH, FC_W, FC_B, N_WEIGHTS,
       LETTERS_IN = N_WEIGHTS, LENGTHS, STATE, NEW_STATE, SCORES, LAST, NEXT, N_NAMES };
static const char *const name[N_NAMES] = {
  "enc_emb", "enc_w_ih", "enc_w_hh", "enc_b_ih", "enc_b_hh", "dec_emb", "dec_w_ih", "dec_w_hh", "dec_b_ih", "dec_b_hh", "fc_w", "fc_b",
  "letters", "lengths", "h", "h_", "scores", "last", "next",
};

typedef struct plan { qn_plan *plan; void *pointer[32]; int place[N_NAMES]; } plan;      /* place: of a name's pointer; -1: none */
typedef struct speaker {
  qn_context   *ctx;
  long          embedding, state;
  void         *at[N_NAMES];              /* memory by name */
  int32_t      *spoken;                   /* [STEPS + 1, BATCH] */
  float        *states[2];
  plan          plan[N_PLANS];
  qn_recording *decode;
} speaker;

static void check(qn_status status, const char *what)
{
  if (!status) return;
  fprintf(stderr, "pronounce: %s: %s\n", what, qn_last_error());
  exit(2);
}

/* ---- weights and plans -------------------------------------------------------------------------------------------------------- */

static void *on_device(speaker *s, const void *from, size_t bytes)
{
  void *p;
  check(qn_alloc(s->ctx, bytes, &p), "memory");
  if (from) check(qn_copy_to_device(s->ctx, p, from, bytes), "copy");
  return p;
}

static void read_weights(speaker *s, const char *path)
{
  npz z;
  npz_array a[N_WEIGHTS];
  int failed = npz_open(&z, path);
  for (int i = 0; i < N_WEIGHTS && !failed; i++) failed = npz_find(&z, name[i], &a[i]);
  if (failed) {
    fprintf(stderr, "pronounce: %s %s%s\n", path, z.error, z.bytes ? "" : " (examples/pronounce_weights fetches it)");
    exit(2);
  }
  const long e = a[ENC_EMB].rank == 2 ? a[ENC_EMB].dims[1] : 0, h = a[ENC_W_HH].rank == 2 ? a[ENC_W_HH].dims[1] : 0;
  const long dims[N_WEIGHTS][2] = { { N_GRAPHEMES, e },  { 3 * h, e }, { 3 * h, h }, { 3 * h, 0 }, { 3 * h, 0 },
                                    { N_PHONEMES, e },   { 3 * h, e }, { 3 * h, h }, { 3 * h, 0 }, { 3 * h, 0 },
                                    { N_PHONEMES, h },   { N_PHONEMES, 0 } };
  for (int i = 0; i < N_WEIGHTS; i++) {
    const int rank = dims[i][1] ? 2 : 1;
    if (a[i].rank != rank || a[i].dims[0] != dims[i][0] || (rank == 2 && a[i].dims[1] != dims[i][1]) || !e || !h) {
      fprintf(stderr, "pronounce: %s: %s has other dims than a GRU of %ld states after embeddings of %ld needs\n", path, name[i], h, e);
      exit(2);
    }
    s->at[i] = on_device(s, a[i].data, (size_t)dims[i][0] * (size_t)(rank == 2 ? dims[i][1] : 1) * 4);
  }
  s->embedding = e, s->state = h;
  free(z.bytes);
}

static void make_plan(speaker *s, int which)
{
  char lines[2048];
  size_t used = 0;
  for (const char *from = plan_text[which]; *from; from++) {
    if (*from != '$') {
      lines[used++] = *from;
      continue;
    }
    from++;
    const long n = *from == 'E' ? s->embedding : *from == 'H' ? s->state : *from == 'G' ? 3 * s->state : *from == 'L' ? LETTERS : BATCH;
    used += (size_t)snprintf(lines + used, sizeof lines - used, "%ld", n);
  }
  lines[used] = '\0';
  qn_graph *graph;
  plan *p = &s->plan[which];
  check(qn_graph_parse(lines, &graph), "graph");
  check(qn_plan_create(s->ctx, graph, &p->plan), "plan");
  for (int i = 0; i < N_NAMES; i++) p->place[i] = qn_graph_index(graph, name[i]);
  qn_graph_destroy(graph);
}

static void execute(speaker *s, int which, int step)
{
  plan *p = &s->plan[which];
  s->at[LAST] = s->spoken + step * BATCH, s->at[NEXT] = s->spoken + (step + 1) * BATCH;
  s->at[STATE] = s->states[step % 2], s->at[NEW_STATE] = s->states[(step + 1) % 2];
  for (int i = 0; i < N_NAMES; i++)
    if (p->place[i] >= 0) p->pointer[p->place[i]] = s->at[i];
  check(qn_plan_execute(s->ctx, p->plan, p->pointer), "execution");
}

static void prepare(speaker *s, const char *path)
{
  static int32_t first[BATCH];
  check(qn_context_create(NULL, &s->ctx), "context");
  read_weights(s, path);
  s->at[LETTERS_IN] = on_device(s, NULL, LETTERS * BATCH * 4);
  s->at[LENGTHS] = on_device(s, NULL, BATCH * 4);
  for (int i = 0; i < 2; i++) s->states[i] = on_device(s, NULL, (size_t)s->state * BATCH * 4);
  s->at[SCORES] = on_device(s, NULL, BATCH * N_PHONEMES * 4);
  for (int i = 0; i < BATCH; i++) first[i] = BEGIN;
  s->spoken = on_device(s, NULL, (STEPS + 1) * BATCH * 4);
  check(qn_copy_to_device(s->ctx, s->spoken, first, sizeof first), "copy");
  for (int i = 0; i < N_PLANS; i++) make_plan(s, i);
  check(qn_record_begin(s->ctx), "recording");
  for (int i = 0; i < STEPS; i++) {
    execute(s, STEP, i);
    execute(s, CHOOSE, i);
  }
  check(qn_record_end(s->ctx, &s->decode), "recording");
}

static void clean_up(speaker *s)
{
  qn_recording_destroy(s->decode);
  for (int i = 0; i < N_PLANS; i++) qn_plan_destroy(s->plan[i].plan);
  for (int i = 0; i < N_NAMES; i++)
    if (i < STATE || i == SCORES) qn_free(s->ctx, s->at[i]);
  for (int i = 0; i < 2; i++) qn_free(s->ctx, s->states[i]);
  qn_free(s->ctx, s->spoken);
  qn_context_destroy(s->ctx);
}

/* ---- words ------------------------------------------------------------------------------------------------------------------- */

enum { LINE = STEPS * 6 };

/* Writes how n words are spoken, phonemes with spaces between, each into its line. */
static void pronounce(speaker *s, const char (*word)[LETTERS], int n, char (*line)[LINE])
{
  static int32_t letters[LETTERS][BATCH], lengths[BATCH], spoken[STEPS + 1][BATCH];
  memset(letters, 0, sizeof letters);
  memset(lengths, 0, sizeof lengths);
  for (int b = 0; b < n; b++) {
    for (const char *c = word[b]; *c; c++)
      if (((unsigned char)*c & 0xc0) != 0x80)             /* a letter beyond ASCII is one unknown letter, not several */
        letters[lengths[b]++][b] = *c >= 'a' && *c <= 'z' ? FIRST_LETTER + (*c - 'a') : UNKNOWN;
    letters[lengths[b]++][b] = END_OF_WORD;
  }
  check(qn_copy_to_device(s->ctx, s->at[LETTERS_IN], letters, sizeof letters), "copy");
  check(qn_copy_to_device(s->ctx, s->at[LENGTHS], lengths, sizeof lengths), "copy");
  execute(s, ENCODE, 0);
  check(qn_recording_replay(s->ctx, s->decode), "replay");
  check(qn_copy_to_host(s->ctx, spoken, s->spoken, sizeof spoken), "copy");
  for (int b = 0; b < n; b++) {
    size_t used = 0;
    line[b][0] = '\0';
    for (int i = 1; i <= STEPS && spoken[i][b] != END; i++)
      used += (size_t)snprintf(line[b] + used, LINE - used, "%s%s", i > 1 ? " " : "", phoneme[spoken[i][b]]);
  }
}

/* Words wait here until a batch is full. wanted: as a line of --check says, else empty. */
typedef struct queue { char word[BATCH][LETTERS], wanted[BATCH][LINE]; int n, right, wrong; } queue;

static void flush_words(speaker *s, queue *q)
{
  static char line[BATCH][LINE];
  pronounce(s, q->word, q->n, line);
  for (int b = 0; b < q->n; b++) {
    if (!*q->wanted[b]) printf("%s  %s\n", q->word[b], line[b]);
    else if (!strcmp(q->wanted[b], line[b])) q->right++;
    else {
      printf("%s  %s  wanted %s\n", q->word[b], line[b], q->wanted[b]);
      q->wrong++;
    }
  }
  q->n = 0;
}

/* A line: a word, and for --check its phonemes. */
static void take_line(speaker *s, queue *q, char *text, int checks)
{
  text[strcspn(text, "\r\n")] = '\0';
  text += strspn(text, " \t");
  size_t length = strcspn(text, " \t");
  if (!length || *text == '#') return;
  if (length >= LETTERS || (text[length] && !checks)) {
    fprintf(stderr, "pronounce: \"%.60s\" is not one word of at most %d letters\n", text, LETTERS - 1);
    exit(2);
  }
  char *rest = text + length + strspn(text + length, " \t");
  if (checks && (!*rest || strlen(rest) >= LINE)) {
    fprintf(stderr, "pronounce: \"%.60s\": --check wants a word and its phonemes\n", text);
    exit(2);
  }
  for (size_t i = 0; i < length; i++) q->word[q->n][i] = (char)tolower((unsigned char)text[i]);
  q->word[q->n][length] = '\0';
  strcpy(q->wanted[q->n], checks ? rest : "");
  if (++q->n == BATCH) flush_words(s, q);
}

static void take_file(speaker *s, queue *q, FILE *f, int checks)
{
  char text[512];
  while (fgets(text, sizeof text, f)) take_line(s, q, text, checks);
}

/* ---- the program ------------------------------------------------------------------------------------------------------------- */

typedef struct options { const char *weights, *check; char **word; int words; } options;
static const struct argp_option option_table[] = {
  { "weights", 'w', "FILE", 0, "the .npz file (default: where examples/pronounce_weights puts it)", 0 },
  { "check",   'c', "FILE", 0, "lines of a word and its phonemes: print those that come out otherwise, and how many agree", 0 },
  { 0 }
};
static const char doc[] =
  "Print words and their phonemes in ARPAbet; words come from the command line, else from standard input, one a line.\v"
  "QUERN_BACKEND says on which backend (cpu_ref, cuda, ...). Exit status: 0 done; 1 words of --check disagree, or standard output cannot "
  "be written; 2 the options, a file or a setting are wrong.";

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  options *o = state->input;
  if (key == 'w') o->weights = text;
  else if (key == 'c') o->check = text;
  else if (key == ARGP_KEY_ARGS) o->word = state->argv + state->next, o->words = state->argc - state->next;
  else return ARGP_ERR_UNKNOWN;
  return 0;
}

static void print_version(FILE *f, struct argp_state *state)
{
  (void)state;
  fprintf(f, "pronounce (Quern) %s\n", qn_version());
}

int main(int argc, char **argv)
{
  static queue q;
  speaker s = { 0 };
  options o = { PRONOUNCE_NPZ, NULL, NULL, 0 };
  FILE *f = NULL;
  argp_program_version_hook = print_version;
  argp_err_exit_status = 2;
  argp_parse(&(struct argp){ option_table, parse_option, "[WORD...]", doc, NULL, NULL, NULL }, argc, argv, 0, NULL, &o);
  if (o.check && !(f = fopen(o.check, "r"))) {
    fprintf(stderr, "pronounce: %s cannot be read\n", o.check);
    return 2;
  }
  prepare(&s, o.weights);
  for (int i = 0; i < o.words; i++) take_line(&s, &q, o.word[i], 0);
  if (f) take_file(&s, &q, f, 1);
  else if (!o.words) take_file(&s, &q, stdin, 0);
  if (q.n) flush_words(&s, &q);
  if (f) {
    printf("%d of %d words as %s has them, on %s\n", q.right, q.right + q.wrong, o.check, qn_context_device(s.ctx));
    fclose(f);
  }
  clean_up(&s);
  if (fflush(stdout) || ferror(stdout)) {
    fprintf(stderr, "pronounce: standard output cannot be written\n");
    return 1;
  }
  return q.wrong > 0;
}
