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
  const char *(*judge_order)(void);       /* as judge_itself, of streams, events and captures */
  const char *(*noted)(void);             /* "record 1 e2, wait 3 e2, begin 1, end 1, " since the last call: what was asked of streams */
} fake_cuda;

#define FAKE_CUDA_TABLE "fake_cuda_table" /* the symbol, a fake_cuda */
#endif
