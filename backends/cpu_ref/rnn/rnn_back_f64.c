/* rnn_back_f64.c -- rnn_back.c in f64. */
#define CPU_REAL_F64
#define cpu_rnn_back     cpu_rnn_back_f64
#define cpu_rnn_back_run cpu_rnn_back_f64_run
#include "rnn_back.c"
