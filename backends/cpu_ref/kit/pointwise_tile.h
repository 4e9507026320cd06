/* pointwise_tile.h -- a pointwise DAG as a program that runs over cache-sized tiles; for the engine of that name and for
 * engines with an epilogue.
 *
 * A program covers ops whose outputs all have the dims of one value, the lead. Elements are numbered in the order of the
 * lead's descending strides (row-major for a packed tensor, channels fastest for NHWC). A run covers any stretch of
 * consecutive elements: it loads and widens the inputs, computes op by op on tiles that stay in L1, and rounds and stores
 * what must be written. A value not needed outside never touches memory.
 *
 * An epilogue passes its anchor's output as a row of numbers in the computing type (cpu_type_of its dtype):
 *
 *   cpu_program_make(request, 1, request->n_ops - 1, v, &program, prepared)      v: the value passed, which is the lead
 *   cpu_tile_runner(launch->device)(&program, launch->ptr, row, m * N + n0, width)    any stretch, from any thread */
#ifndef CPU_POINTWISE_TILE_H
#define CPU_POINTWISE_TILE_H
#include <stdbool.h>
#include <quern/kit.h>

/* Computing types: f32 also for all narrower floats, i32 for i8, u8 and bool (0 or 1). */
enum { CPU_F32, CPU_F64, CPU_I32, CPU_I64 };
int cpu_type_of(uint32_t dtype);
static inline int64_t cpu_type_bytes(int type) { return type == CPU_F64 || type == CPU_I64 ? 8 : 4; }

enum { CPU_TILE_BYTES = 4096,             /* the most of a register: 1024 elements of 4 bytes, 512 of 8 */
       CPU_TILE_STACK = 12288,            /* of a program's registers together, on the runner's stack */
       CPU_TILE_REGISTERS = 16,
       CPU_MAX_INSTRUCTIONS = 96 };

enum { CPU_LOAD, CPU_FILL, CPU_EVAL, CPU_STORE };
enum { CPU_OVER_ROOT = 1 };               /* an op of CPU_EVAL that is not in the schema: a / sqrt(b + alpha), in f32 */
typedef struct cpu_instruction {
  uint32_t kind, op;                      /* CPU_EVAL: the op; CPU_FILL: the dtype to convert the scalar to */
  uint32_t dtype;                         /* of the memory; for CPU_EVAL: what the result is rounded or wrapped to, 0: nothing */
  int16_t  type, out_type;                /* of the operands, of the result */
  int16_t  out, in[3];                    /* registers */
  int16_t  tensor;                        /* index in the nest: loaded, stored, or written by CPU_EVAL directly; -1: none */
  int32_t  value;                         /* the memory's value in the request */
  double   alpha, beta;
} cpu_instruction;

typedef struct cpu_program {
  int64_t places, tile, tile_bytes;       /* number of elements; elements per tile, bytes of a register */
  uint32_t used;                          /* the registers that it uses, as a mask */
  int32_t given, given_type;              /* the given value's register and computing type; -1: none */
  int32_t n;
  bool    packed[QN_KIT_OPERANDS];        /* the tensor's elements are in the program's order */
  qn_nest nest;                           /* the lead, then the tensors loaded and stored */
  cpu_instruction code[CPU_MAX_INSTRUCTIONS];
} cpu_program;

/* Compiles ops first, first + 1, ... of the request, at most n. given: a value whose elements are passed to the run, and which is
 * the lead; -1: none, and the first op's output is the lead. Returns how many ops it took, from the front: it stops before one
 * that is not pointwise, has other dims, is unknown or does not fit. If 0, the refusal is set. */
int cpu_program_make(const qn_request *request, uint32_t first, uint32_t n, int32_t given, cpu_program *program,
                     qn_prepared *refusal);

/* Of engines with an epilogue: a program also takes normalization by given statistics. */
extern const qn_pattern cpu_program_pattern;

/* Gives v packed strides in the order of its descending strides: a program's numbering of elements. */
void cpu_count_places(qn_value *v);

/* Runs elements first to first + n - 1. row: the given value's elements there, or NULL. */
typedef void cpu_tile_fn(const cpu_program *program, void *const *ptr, const void *row, int64_t first, int64_t n);
cpu_tile_fn *cpu_tile_runner(const qn_device *device);

/* Has the op a line QN_INTEGER in functions.def? */
static inline bool cpu_is_listed_integer(uint32_t op)
{
  switch (op) {
#define QN_INTEGER(OP, expression) case QN_OP_##OP:
#include <quern/functions.def>
    return true;
  default: return false;
  }
}

/* The functions, in pointwise_f32.c and pointwise_whole.c, compiled once per instruction set. r: the registers' data;
 * y: where the result goes. False: no such op for these operand types; to query, pass n 0. */
typedef bool cpu_eval_fn(const cpu_instruction *code, void *const *r, void *y, int64_t n);
cpu_eval_fn cpu_eval_f32, cpu_eval_f32_avx2, cpu_eval_f32_avx512;
cpu_eval_fn cpu_eval_plain, cpu_eval_plain_avx2, cpu_eval_plain_avx512;
cpu_tile_fn cpu_tile_run, cpu_tile_run_avx2, cpu_tile_run_avx512;
#endif
