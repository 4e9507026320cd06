/* engines.c -- every engine file of the CUDA backend, best first within an op. */
#include <stddef.h>
#include "engines.h"
extern const qn_engine_list cuda_conv_by_group_list, cuda_conv_simt_list, cuda_conv_simt_filter_list;

const qn_engine_list *const cuda_engines[] = {
#define X(file) &cuda_##file##_list,
  CUDA_ENGINE_FILES(X)
#undef X
  &cuda_conv_by_group_list, &cuda_conv_simt_list, &cuda_conv_simt_filter_list, NULL
};
