/* norm_columns_f64.c -- norm_columns.c in f64. */
#define CPU_REAL_F64
#define cpu_norm_columns     cpu_norm_columns_f64
#define cpu_norm_columns_run cpu_norm_columns_f64_run
#include "norm_columns.c"
