/* cuda_backend.h -- shared by the host files of the CUDA backend. */
#ifndef QN_CUDA_BACKEND_H
#define QN_CUDA_BACKEND_H
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <string.h>
#include <quern/kit.h>
#ifdef __cplusplus
extern "C" {
#endif

extern const qn_host *cuda_host;                    /* backend.c */
extern const qn_device_ops cuda_device_ops;         /* device.c */

/* ---- errors (device.c) ---- */
/* QN_OK, or QN_DEVICE (QN_NO_MEMORY) with an error message that names the call. */
qn_status cuda_check(cudaError_t error, const char *call);

/* ---- the driver, reached through the runtime: libcuda is not linked (device.c) ---- */
typedef struct cuda_driver {
  CUresult (*tensor_map_tiled)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                               const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                               CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  CUresult (*tensor_map_im2col)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                                const int *, const int *, cuuint32_t, cuuint32_t, const cuuint32_t *, CUtensorMapInterleave,
                                CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  CUresult (*tensor_map_address)(CUtensorMap *, void *);
} cuda_driver;
qn_status cuda_driver_get(const cuda_driver **driver);      /* fails where the driver is too old for tensor maps */

extern const qn_engine_list *const cuda_engines[];         /* engines.c */

/* ---- an engine's state (backend.c) ---- */
/* One allocation behind p->state, kept from prepare to release, aligned for CUtensorMap. cuda_state: zeroed; NULL: out of memory,
 * already reported, so return QN_NO_MEMORY. A refusal after it must call cuda_release. cuda_keep: stores a copy of `state`. */
void     *cuda_state(qn_prepared *p, size_t bytes);
qn_status cuda_keep(qn_prepared *p, const void *state, size_t bytes);
void      cuda_release(qn_prepared *p);

/* ---- requests ---- */
/* The single tensor of a role; NULL: an absent optional one. */
static inline const qn_value *cuda_value(const qn_request *r, uint32_t role)
{
  int32_t i = qn_role(&r->op[0], role);
  return i < 0 ? NULL : &r->value[i];
}

/* Shared memory a block may use; under portable determinism what every device has, so that all devices refuse the same problems. */
static inline int64_t cuda_room(const qn_request *r)
{
  const int64_t here = (int64_t)r->device->shared_per_block;
  return r->demands->determinism == QN_DET_PORTABLE ? qn_min_i64(here, 48 << 10) : here;
}

/* Clusters: only the sm_90 code has them. Devices above 9.0 run the code for 8.0, which has none, and so do 9.0 devices in a
 * build without sm_90 code. Only for files compiled by nvcc. */
#ifdef __CUDA_ARCH_LIST__
static inline bool cuda_has_clusters(const qn_device *device)
{
  static const int made[] = { __CUDA_ARCH_LIST__ };
  bool found = false;
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) found |= made[i] == 900;
  return found && device->arch_major == 9 && device->arch_minor == 0;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
