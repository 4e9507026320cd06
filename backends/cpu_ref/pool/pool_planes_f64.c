/* pool_planes_f64.c -- pool_planes.c in f64. */
#define CPU_REAL_F64
#define cpu_pool_planes     cpu_pool_planes_f64
#define cpu_pool_planes_run cpu_pool_planes_f64_run
#include "pool_planes.c"
