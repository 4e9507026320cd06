/* fake_cuda.h -- the interface from the stand-in for the CUDA runtime (fake_cuda.c) to tests/t_launches. */
#ifndef QUERN_TESTS_FAKE_CUDA_H
#define QUERN_TESTS_FAKE_CUDA_H

typedef struct fake_cuda {
  int           devices;
  const char *(*judge_itself)(int device);        /* NULL, or what the stand-in wrongly accepts or refuses */
  const char *(*broken)(void);            /* the first limit violated since the last call; NULL: none */
  long        (*launches)(void);          /* kernels launched so far */
  int         (*code)(int device);        /* number of kernels with code for the device; -1: unreadable */
  const char *(*unread)(void);            /* why it is unreadable */
} fake_cuda;

#define FAKE_CUDA_TABLE "fake_cuda_table" /* the symbol, a fake_cuda */
#endif
