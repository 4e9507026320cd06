/* transform_pad_f64.c -- pad's gradient, of transform_pad.c, in f64. */
#define CPU_REAL_F64
#define cpu_transform_pad cpu_transform_pad_f64
#include "transform_pad.c"
