/* t_arguments.c -- valid and invalid arguments of a call: pointers, overlapping views, attributes of another size. */
#include <string.h>
#include "language/problem.h"
#include "tap.h"

/* ---- a call's arguments ------------------------------------------------------------------- */

static float memory[4096] __attribute__((aligned(64)));

typedef struct call { qn_tensor t[QN_MAX_ROLES]; qn_arg arg[QN_MAX_ROLES]; qn_op op; } call;

static call *make_call(call *c, uint32_t kind, const void *attr, int n, const qn_tensor *t)
{
  memset(c, 0, sizeof *c);
  const qn_op_info *op = qn_op_find(kind);
  for (int i = 0; i < n; i++) {
    c->t[i] = t[i];
    c->arg[i] = (qn_arg){ &c->t[i], t[i].dtype != 0 };          /* dtype 0: absent */
  }
  c->op = (qn_op){ kind, op->n_roles, attr, c->arg };
  return c;
}

static void accepted(const char *what, const call *c, uint32_t out, int over)
{
  qn_graph *g;
  qn_status status = qn__graph_of_op(&c->op, &g);
  const qn_graph_view *v = g ? qn_graph_inspect(g) : NULL;
  if (!tap_ok(!status && v->value[out].over == over, "taken: %s", what)) tap_note("%s", status ? qn_last_error() : "wrong output in place");
  qn_graph_destroy(g);
}

static void call_refused(const char *has, const call *c)
{
  qn_graph *g;
  qn_status status = qn__graph_of_op(&c->op, &g);
  if (!tap_ok(status == QN_BAD_ARGUMENT && !g && strstr(qn_last_error(), has), "refused: %s", status ? qn_last_error() : "taken"))
    tap_note("wanted: %s", has);
  qn_graph_destroy(g);
}

static qn_tensor at(float *p, int64_t rows, int64_t columns, int64_t pitch)
{
  qn_tensor t = qn_tensor_2d(p, QN_F32, rows, columns);
  t.stride[0] = pitch;
  return t;
}

static void test_calls(void)
{
  call c;
  qn_tensor x = at(memory, 8, 8, 8), y = at(memory + 64, 8, 8, 8), t;
  accepted("two tensors apart", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, y }), 1, -1);
  accepted("in place", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, x }), 1, 0);
  accepted("both inputs in place", make_call(&c, QN_OP_ADD, NULL, 3, (qn_tensor[]){ x, x, x }), 2, 0);
  accepted("the second in place", make_call(&c, QN_OP_ADD, NULL, 3, (qn_tensor[]){ y, x, x }), 2, 1);
  call_refused("relu: y: shares memory with x but does not stand where it does",
               make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, at(memory + 4, 8, 8, 8) }));
  call_refused("shares memory with x but does not", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, qn_transposed(&x) }));
  call_refused("softmax: y: shares memory with x; it must lie apart", make_call(&c, QN_OP_SOFTMAX, NULL, 2, (qn_tensor[]){ x, x }));
  accepted("columns of one matrix", make_call(&c, QN_OP_SOFTMAX, NULL, 2,
           (qn_tensor[]){ at(memory, 8, 4, 8), at(memory + 4, 8, 4, 8) }), 1, -1);
  call_refused("shares memory", make_call(&c, QN_OP_SOFTMAX, NULL, 2, (qn_tensor[]){ at(memory, 8, 4, 8), at(memory + 3, 8, 4, 8) }));
  accepted("rows that interleave", make_call(&c, QN_OP_SOFTMAX, NULL, 2,
           (qn_tensor[]){ at(memory, 4, 8, 16), at(memory + 8, 4, 8, 16) }), 1, -1);
  qn_tensor none = { 0 };
  accepted("c in place", make_call(&c, QN_OP_MATMUL, NULL, 7, (qn_tensor[]){ x, at(memory + 128, 8, 8, 8), y, none, none, none, y }), 3, 2);
  call_refused("matmul: y: shares memory with a", make_call(&c, QN_OP_MATMUL, NULL, 7, (qn_tensor[]){ x, y, none, none, none, none, x }));
  qn_tensor image = qn_tensor_nchw(memory, QN_F32, 1, 1, 8, 8), pooled = qn_tensor_nchw(memory + 64, QN_F32, 1, 1, 1, 1),
            indices = qn_tensor_nchw(memory + 64, QN_I32, 1, 1, 1, 1);
  call_refused("pool_max: indices: shares memory with y; outputs must lie apart",
               make_call(&c, QN_OP_POOL_MAX, NULL, 3, (qn_tensor[]){ image, pooled, indices }));

  t = x, t.data = NULL;
  call_refused("relu: x: data is NULL", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t.dim[0] = 0;
  accepted("NULL where there is nothing", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, t }), 1, -1);
  t = x, t.reserved[1] = 1;
  call_refused("reserved words are not 0", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = x, t.flags = 4;
  call_refused("flags are 0x4; accepted: QN_HOST or 0", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = x, t.flags = QN_HOST;
  call_refused("a host value has rank 0", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = qn_tensor_make(memory, QN_F32, 2, NULL);
  call_refused("rank is -1; must be 0 to 8", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = qn_transposed(NULL);
  tap_ok(t.dtype == 0 && qn_tensor_elements(NULL) == 0, "no tensor, transposed, has no dtype; no tensor has no elements");
  t = x, t.rank = INT32_MIN, t = qn_transposed(&t);
  tap_ok(t.rank == INT32_MIN && qn_tensor_elements(&t) == 0, "a rank that is none is left as it is");
  t = x, t.rank = 9;
  call_refused("rank is 9; must be 0 to 8", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = x, t.dtype = 77;
  call_refused("dtype is 77, which is no dtype", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = x, t.dim[1] = -8;
  call_refused("dim 1 is -8; must be at least 0", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = x, t.stride[1] = -1;
  call_refused("stride 1 is -1; must be at least 0", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = x, t.data = (char *)memory + 2;
  call_refused("its address is a multiple of 2 only; f32 needs 4", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ t, y }));
  t = y, t.stride[0] = 0;
  call_refused("y: stride 0 is 0; only inputs may be broadcast", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, t }));
  make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, y })->arg[0].n = 2;
  call_refused("2 tensors are given; it takes 1", &c);
  make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, y })->arg[0].n = -1;
  call_refused("-1 tensors are given", &c);
  make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, y })->arg[0].t = NULL;
  call_refused("x: is NULL", &c);
  make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, y })->op.n_args = 3;
  call_refused("3 arguments are given; it has 2", &c);
  make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, y })->op.kind = 9999;
  call_refused("kind is 9999, which is no op", &c);
  call_refused("x: is missing", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ none, y }));
  call_refused("y: is missing", make_call(&c, QN_OP_RELU, NULL, 2, (qn_tensor[]){ x, none }));

  /* alignment and host scalars are taken from the arguments */
  qn_graph *g;
  float half = 0.5f, one = 1, zero = -0.0f;
  uint16_t bf16_one = 0x3f80;
  qn_tensor scalars[] = { qn_scalar(&half, QN_F32), qn_scalar(&one, QN_F32), qn_scalar(&zero, QN_F32), qn_scalar(&bf16_one, QN_BF16) };
  static const uint32_t classes[] = { QN_SCALAR_OTHER, QN_SCALAR_ONE, QN_SCALAR_ZERO, QN_SCALAR_ONE };
  for (int i = 0; i < 4; i++) {
    make_call(&c, QN_OP_MATMUL, NULL, 7,
              (qn_tensor[]){ at(memory + 2, 4, 4, 4), at(memory + 101, 4, 4, 4), none, none, scalars[i], none, y });
    c.t[6].dim[0] = c.t[6].dim[1] = 4;
    qn_status status = qn__graph_of_op(&c.op, &g);
    const qn_graph_view *v = g ? qn_graph_inspect(g) : NULL;
    tap_ok(!status && v->value[2].scalar == classes[i] && v->value[2].flags & QN_VALUE_HOST && v->value[0].align == 8 &&
           v->value[1].align == 4
           && v->value[3].align == 16 && v->n_pointers == 4 && v->n_ins == 3 && v->pointer[2] == 2, "scalar %d and alignments are read off",
               i);
    qn_graph_destroy(g);
  }

  /* attribute structs of other sizes */
  struct { qn_axis now; int64_t later; } axis = { QN_AXIS_INIT, 0 };
  axis.now.struct_size = sizeof axis;
  accepted("a larger attribute struct with zeros", make_call(&c, QN_OP_SOFTMAX, &axis, 2, (qn_tensor[]){ x, y }), 1, -1);
  axis.later = 1;
  call_refused("attributes: byte 16 is set", make_call(&c, QN_OP_SOFTMAX, &axis, 2, (qn_tensor[]){ x, y }));
  axis.now.struct_size = 8;
  axis.now.axis = 77;
  accepted("a smaller one has defaults beyond", make_call(&c, QN_OP_SOFTMAX, &axis, 2, (qn_tensor[]){ x, y }), 1, -1);
  axis.now.struct_size = 0;
  call_refused("struct_size is 0; begin with the op's INIT", make_call(&c, QN_OP_SOFTMAX, &axis, 2, (qn_tensor[]){ x, y }));
  call_refused("relu: attributes are given, but it has none", make_call(&c, QN_OP_RELU, &axis, 2, (qn_tensor[]){ x, y }));
}

/* ---- NULL arguments ------------------------------------------------------------------------ */

static bool null_refused(qn_status status) { return status == QN_BAD_ARGUMENT && strstr(qn_last_error(), "is NULL"); }

static void test_nothing(void)
{
  qn_graph *g;
  qn_reader *r;
  char text[8] = "as";
  qn_graph_view view = { .struct_size = sizeof view };
  tap_ok(null_refused(qn_graph_parse(NULL, &g)) && null_refused(qn_graph_parse("relu x=f32/4", NULL)), "no lines, no place for a graph");
  tap_ok(null_refused(qn_graph_make(NULL, &g)) && null_refused(qn_graph_make(&view, NULL)), "no view");
  tap_ok(null_refused(qn_reader_text(NULL, &r)) && null_refused(qn_reader_text("", NULL)) && null_refused(qn_reader_open(NULL, &r)) &&
         null_refused(qn_reader_open("-", NULL)) && null_refused(qn_reader_next(NULL, &g, NULL, NULL)), "no text, path, reader");
  tap_ok(!qn_graph_print(NULL, text, sizeof text) && !*text && !qn_graph_pointers(NULL) && !qn_graph_inspect(NULL) &&
         qn_graph_index(NULL, "x") == -1, "nothing is told of no graph");
  tap_ok(!qn_graph_parse("relu x=f32/4", &g) && qn_graph_index(g, NULL) == -1, "no name is no tensor's");
  qn_graph_destroy(g);
  tap_ok(null_refused(qn_each_backend(NULL, NULL)) && null_refused(qn_each_device(NULL, NULL)) &&
         null_refused(qn_each_setting(NULL, NULL, NULL)), "nobody to tell of what is here");
}

/* ---- views of memory ---------------------------------------------------------------------- */

static qn_value view(int rank, const int64_t *dim, const int64_t *stride)
{
  qn_value v = { .dtype = QN_F32, .rank = rank };
  for (int i = 0; i < QN_MAX_RANK; i++) v.dim[i] = i < rank ? dim[i] : 1;
  for (int i = 0; i < rank; i++) v.stride[i] = stride[i];
  return v;
}

/* Compared with counting every element, on small views. */
static void test_views(void)
{
  uint64_t seed = 5;
  int wrong = 0, overlapping = 0, meeting = 0, n = 20000;
  for (int k = 0; k < n; k++) {
    qn_value v[2];
    unsigned char hit[2][256];
    memset(hit, 0, sizeof hit);
    bool self[2] = { false, false };
    int offset[2];
    for (int s = 0; s < 2; s++) {
      int64_t dim[3], stride[3];
      int rank = 1 + k % 3;
      for (int i = 0; i < 3; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        dim[i] = 1 + (int64_t)(seed >> 33) % 4;
        stride[i] = (int64_t)(seed >> 40) % 14;
      }
      offset[s] = (int)((seed >> 50) % 24);
      v[s] = view(rank, dim, stride);
      for (int64_t a = 0; a < v[s].dim[0]; a++)
        for (int64_t b = 0; b < v[s].dim[1]; b++)
          for (int64_t c = 0; c < v[s].dim[2]; c++) {
            int64_t i = offset[s] + a * v[s].stride[0] + (rank > 1 ? b * v[s].stride[1] : 0) + (rank > 2 ? c * v[s].stride[2] : 0);
            self[s] = self[s] || hit[s][i];
            hit[s][i] = 1;
          }
    }
    bool meet = false;
    for (int i = 0; i < 256; i++) meet = meet || (hit[0][i] && hit[1][i]);
    overlapping += self[0];
    meeting += meet;
    wrong += qn__overlaps_itself(&v[0]) != self[0];
    wrong += qn__views_meet(&v[0], 4096 + 4 * (uintptr_t)offset[0], &v[1], 4096 + 4 * (uintptr_t)offset[1]) != meet;
  }
  tap_ok(!wrong && overlapping > 1000 && meeting > 1000, "%d small views: overlap told right (%d with themselves, %d with each other)", n,
         overlapping, meeting);
  qn_value big = view(3, (int64_t[]){ 1 << 20, 1 << 20, 1 << 10 }, (int64_t[]){ 1 << 30, 1 << 10, 1 });
  tap_ok(!qn__overlaps_itself(&big), "a packed tensor of 2^50 elements is quickly told");
  big.stride[0]--;
  tap_ok(qn__overlaps_itself(&big), "and one that overlaps");
}

int main(void)
{
  test_calls();
  test_nothing();
  test_views();
  return tap_done();
}
