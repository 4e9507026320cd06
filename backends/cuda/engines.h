/* engines.h -- how a file of the CUDA backend publishes its engines, best first within an op:
 *   CUDA_ENGINES(conv_direct) = { row, number of rows };
 * engines.def lists the files. */
#ifndef QN_CUDA_ENGINES_H
#define QN_CUDA_ENGINES_H
#include <quern/backend.h>

#ifdef __cplusplus
#define CUDA_ENGINES(file) extern "C" const qn_engine_list cuda_##file##_list; const qn_engine_list cuda_##file##_list
#else
#define CUDA_ENGINES(file) extern const qn_engine_list cuda_##file##_list; const qn_engine_list cuda_##file##_list
#endif
#endif
