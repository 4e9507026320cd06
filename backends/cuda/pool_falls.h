/* pool_falls.h -- pool_falls.cu's engines, which stand in the lists of others, before what they are faster than. */
#pragma once
#include "engines.h"

qn_status cuda_pool_falls_prepare(const qn_request *r, qn_prepared *out);
qn_status cuda_pool_falls_prepare_max(const qn_request *r, qn_prepared *out);
qn_status cuda_pool_falls_run(const qn_prepared *prepared, const qn_launch *launch);

#define CUDA_POOL_FALLS(op, prepare) { "falls", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                                       prepare, nullptr, cuda_pool_falls_run, cuda_release }
