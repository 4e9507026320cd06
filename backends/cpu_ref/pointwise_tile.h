/* pointwise_tile.h -- a pointwise DAG as a program that runs over cache-sized tiles; for the engine of that name and for
 * engines that end in an epilogue.
 *
 * A program covers ops whose outputs all have the dims of one value, the lead. The places of those dims are numbered in
 * the order of the lead's falling strides (row-major for a packed tensor, channels fastest for NHWC), and a run does any stretch
 * of consecutive places: it loads what comes from outside, widens it, computes op by op on tiles that stay in L1, and
 * rounds what must be written. A value that nobody outside needs never touches memory.
 *
 * An epilogue hands over its anchor's output as a row of numbers of the type of computation (cpu_type_of its dtype):
 *
 *   cpu_program_make(request, 1, request->n_ops - 1, v, &program, prepared)      v: the value given, which is the lead
 *   cpu_tile_runner(launch->device)(&program, launch->ptr, row, m * N + n0, width)    any stretch, from any thread */
#ifndef CPU_POINTWISE_TILE_H
#define CPU_POINTWISE_TILE_H
#include <stdbool.h>
#include <quern/kit.h>

/* Types of computation: f32 stands for all narrower floats, i32 for i8, u8 and bool (0 or 1). */
enum { CPU_F32, CPU_F64, CPU_I32, CPU_I64 };
int cpu_type_of(uint32_t dtype);
static inline int64_t cpu_type_bytes(int type) { return type == CPU_F64 || type == CPU_I64 ? 8 : 4; }

enum { CPU_TILE_BYTES = 4096,             /* of a register: 1024 elements of 4 bytes, 512 of 8 */
       CPU_TILE_REGISTERS = 16,           /* 64 KB on the runner's stack */
       CPU_MAX_INSTRUCTIONS = 96 };

enum { CPU_LOAD, CPU_FILL, CPU_EVAL, CPU_STORE };
enum { CPU_OVER_ROOT = 1 };               /* an op of CPU_EVAL that the schema has not: a / sqrt(b + alpha), in f32 */
typedef struct cpu_instruction {
  uint32_t kind, op;                      /* CPU_EVAL: the op; CPU_FILL: the dtype to convert the scalar to */
  uint32_t dtype;                         /* of the memory; CPU_EVAL: what the result is rounded or wrapped to; 0: nothing */
  int16_t  type, out_type;                /* of the operands, of the result */
  int16_t  out, in[3];                    /* registers */
  int16_t  tensor;                        /* in the nest: loaded from, stored to, or written by CPU_EVAL itself; -1: none */
  int32_t  value;                         /* of the request: the memory */
  double   alpha, beta;
} cpu_instruction;

typedef struct cpu_program {
  int64_t places, tile;                   /* how many; how many at a time */
  int32_t given, given_type;              /* the given value's register and type of computation; -1: none */
  int32_t n;
  bool    packed[QN_KIT_OPERANDS];        /* the tensor's elements lie in the order of the places */
  qn_nest nest;                           /* the lead, then what is loaded and stored */
  cpu_instruction code[CPU_MAX_INSTRUCTIONS];
} cpu_program;

/* Compiles ops first, first + 1, ... of the request, at most n. given: a value whose elements the run is handed, which is the
 * lead; -1: none, and the lead is the first op's output. Returns how many ops it took, from the front: it stops before one
 * that is not pointwise, has other dims, is unknown or does not fit. After 0 refusal says why. */
int cpu_program_make(const qn_request *request, uint32_t first, uint32_t n, int32_t given, cpu_program *program,
                     qn_prepared *refusal);

/* For the rows of engines with an epilogue: a program takes normalization by given statistics as well. */
extern const uint32_t cpu_program_also[];

/* The places of v in the order of its falling strides, as strides of a packed tensor: how a program counts them. */
void cpu_count_places(qn_value *v);

/* Runs places first to first + n - 1. row: the given value's elements there, or NULL. */
typedef void cpu_tile_fn(const cpu_program *program, void *const *ptr, const void *row, int64_t first, int64_t n);
cpu_tile_fn *cpu_tile_runner(const qn_device *device);

/* The functions, in pointwise_f32.c and pointwise_whole.c, in a copy for each instruction set. r: where the registers'
 * numbers are; y: where the result goes. False: no such op for this type of operands, which is also told with n 0. */
typedef bool cpu_eval_fn(const cpu_instruction *code, void *const *r, void *y, int64_t n);
cpu_eval_fn cpu_eval_f32, cpu_eval_f32_avx2, cpu_eval_f32_avx512;
cpu_eval_fn cpu_eval_plain, cpu_eval_plain_avx2, cpu_eval_plain_avx512;
cpu_tile_fn cpu_tile_run, cpu_tile_run_avx2, cpu_tile_run_avx512;
#endif
