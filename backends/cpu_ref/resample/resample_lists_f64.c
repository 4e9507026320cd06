/* resample_lists_f64.c -- resample_lists.c in f64. */
#define CPU_REAL_F64
#define cpu_resample_lists     cpu_resample_lists_f64
#define cpu_resample_lists_run cpu_resample_lists_f64_run
#include "resample_lists.c"
