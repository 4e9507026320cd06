/* pool_channels_f64.c -- pool_channels.c in f64. */
#define CPU_REAL_F64
#define cpu_pool_channels     cpu_pool_channels_f64
#define cpu_pool_channels_run cpu_pool_channels_f64_run
#include "pool_channels.c"
