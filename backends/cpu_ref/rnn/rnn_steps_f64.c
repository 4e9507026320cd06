/* rnn_steps_f64.c -- rnn_steps.c in f64. */
#define CPU_REAL_F64
#define cpu_rnn_steps     cpu_rnn_steps_f64
#define cpu_rnn_steps_run cpu_rnn_steps_f64_run
#include "rnn_steps.c"
