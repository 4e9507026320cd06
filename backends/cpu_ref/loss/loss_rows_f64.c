/* loss_rows_f64.c -- loss_rows.c in f64. */
#define CPU_REAL_F64
#define cpu_loss_rows     cpu_loss_rows_f64
#define cpu_loss_rows_run cpu_loss_rows_f64_run
#include "loss_rows.c"
