/* fake_cuda.h -- what tests/t_launches asks the stand-in for the CUDA runtime (fake_cuda.c), beyond what that stands in for. */
#ifndef QUERN_TESTS_FAKE_CUDA_H
#define QUERN_TESTS_FAKE_CUDA_H

typedef struct fake_cuda {
  int           devices;
  const char *(*judge_itself)(int device);        /* NULL, or what the stand-in lets through or refuses, and should not */
  const char *(*broken)(void);            /* the first limit that was not kept since this was last asked; NULL: none */
  long        (*launches)(void);          /* kernels launched so far */
  int         (*code)(int device);        /* kernels that have code for the device; -1: their code cannot be read */
  const char *(*unread)(void);            /* why it cannot */
} fake_cuda;

#define FAKE_CUDA_TABLE "fake_cuda_table" /* the symbol, a fake_cuda */
#endif
