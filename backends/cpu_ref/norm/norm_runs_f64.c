/* norm_runs_f64.c -- norm_runs.c in f64. */
#define CPU_REAL_F64
#define cpu_norm_runs     cpu_norm_runs_f64
#define cpu_norm_runs_run cpu_norm_runs_f64_run
#include "norm_runs.c"
