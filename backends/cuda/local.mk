# The CUDA backend: always a plugin. Portable .cu files are compiled for NVCC_GENCODE, those that need what came with Ampere
# for its later part, those for Hopper's asynchronous machinery for it alone. Their engines look at the compute capability.
if HAVE_CUDA
plugin_LTLIBRARIES += backends/cuda/quern_cuda.la
QUERN_TEST_PLUGINS += $(abs_top_builddir)/backends/cuda/.libs
endif
backends_cuda_quern_cuda_la_SOURCES = \
  backends/cuda/backend.c \
  backends/cuda/chain.c \
  backends/cuda/chain.h \
  backends/cuda/chain_fold.cu \
  backends/cuda/cuda_backend.h \
  backends/cuda/conv_channels_last.c \
  backends/cuda/conv_depthwise.cu \
  backends/cuda/conv_depthwise.cuh \
  backends/cuda/conv_depthwise_filter.cu \
  backends/cuda/conv_depthwise_mma.cu \
  backends/cuda/conv_depthwise_mma.cuh \
  backends/cuda/conv_depthwise_mma_filter.cu \
  backends/cuda/conv_direct.cu \
  backends/cuda/conv_fft.c \
  backends/cuda/conv_fft.cu \
  backends/cuda/conv_fft.h \
  backends/cuda/conv_first.cu \
  backends/cuda/conv_first.cuh \
  backends/cuda/conv_first_data.cu \
  backends/cuda/conv_first_filter.cu \
  backends/cuda/conv_grouped.cu \
  backends/cuda/conv_grouped.cuh \
  backends/cuda/conv_grouped_filter.cu \
  backends/cuda/conv_kernel.c \
  backends/cuda/conv_kernel.h \
  backends/cuda/conv_layout.cu \
  backends/cuda/conv_layout.h \
  backends/cuda/conv_matmul.c \
  backends/cuda/conv_mma.c \
  backends/cuda/conv_mma.cuh \
  backends/cuda/conv_mma.h \
  backends/cuda/conv_mma_bf16.cu \
  backends/cuda/conv_mma_f16.cu \
  backends/cuda/conv_mma_tf32.cu \
  backends/cuda/conv_narrow.cu \
  backends/cuda/conv_narrow_filter.cu \
  backends/cuda/conv_tf32.c \
  backends/cuda/conv_tf32.cu \
  backends/cuda/conv_tf32.h \
  backends/cuda/conv_tf32_layout.cu \
  backends/cuda/conv_problem.h \
  backends/cuda/conv_product.h \
  backends/cuda/conv_store.cuh \
  backends/cuda/conv_tile.cuh \
  backends/cuda/conv_views.h \
  backends/cuda/conv_wgmma.c \
  backends/cuda/conv_wgmma.cuh \
  backends/cuda/conv_wgmma.h \
  backends/cuda/conv_wgmma_bf16.cu \
  backends/cuda/conv_wgmma_f16.cu \
  backends/cuda/conv_winograd.c \
  backends/cuda/conv_winograd.cu \
  backends/cuda/conv_winograd.h \
  backends/cuda/device.c \
  backends/cuda/direct.cu \
  backends/cuda/direct.cuh \
  backends/cuda/divisor.h \
  backends/cuda/element.cuh \
  backends/cuda/engines.c \
  backends/cuda/engines.h \
  backends/cuda/functions.cuh \
  backends/cuda/larger.cuh \
  backends/cuda/logits.cuh \
  backends/cuda/ctc_direct.cu \
  backends/cuda/ctc_two_ended.cu \
  backends/cuda/loss_direct.cu \
  backends/cuda/loss_rows.cu \
  backends/cuda/affine_grid.cu \
  backends/cuda/lrn.cuh \
  backends/cuda/lrn.cu \
  backends/cuda/lrn_planes.cu \
  backends/cuda/lrn_taps.cu \
  backends/cuda/lrn_windows.cu \
  backends/cuda/sampling.cu \
  backends/cuda/sampling.cuh \
  backends/cuda/sampling_lists.cu \
  backends/cuda/sampling_planes.cu \
  backends/cuda/sampling_planes.cuh \
  backends/cuda/sampling_sorted.cu \
  backends/cuda/matmul_direct.cu \
  backends/cuda/matmul_mma.cuh \
  backends/cuda/matmul_mma_bf16.cu \
  backends/cuda/matmul_mma_f16.cu \
  backends/cuda/matmul_mma_i8.cu \
  backends/cuda/matmul_mma_tf32.cu \
  backends/cuda/matmul_problem.c \
  backends/cuda/matmul_problem.h \
  backends/cuda/matmul_simt.cu \
  backends/cuda/matmul_small.cu \
  backends/cuda/matmul_thin.cu \
  backends/cuda/matmul_tiled.c \
  backends/cuda/matmul_tiled.cuh \
  backends/cuda/matmul_tiled.h \
  backends/cuda/matmul_wgmma.c \
  backends/cuda/matmul_wgmma.cuh \
  backends/cuda/matmul_wgmma.h \
  backends/cuda/matmul_wgmma_bf16.cu \
  backends/cuda/matmul_wgmma_f16.cu \
  backends/cuda/matmul_wgmma_f8.cu \
  backends/cuda/matmul_wgmma_i8.cu \
  backends/cuda/matmul_wgmma_tf32.cu \
  backends/cuda/matmul_wgmma_tiles.h \
  backends/cuda/meet.cuh \
  backends/cuda/pack.cu \
  backends/cuda/pack.h \
  backends/cuda/norm_activation.cuh \
  backends/cuda/norm_bands.cu \
  backends/cuda/norm_cluster.cu \
  backends/cuda/norm_direct.cu \
  backends/cuda/norm_follow.cuh \
  backends/cuda/norm_groups.c \
  backends/cuda/norm_groups.cu \
  backends/cuda/norm_groups.h \
  backends/cuda/norm_kept.cu \
  backends/cuda/norm_moments.cuh \
  backends/cuda/norm_nests.h \
  backends/cuda/norm_parameters.cuh \
  backends/cuda/norm_parts.cuh \
  backends/cuda/norm_planes.cu \
  backends/cuda/norm_ring.cu \
  backends/cuda/norm_rows.cu \
  backends/cuda/norm_split.cu \
  backends/cuda/norm_trip.cu \
  backends/cuda/norm_trip_backward.cu \
  backends/cuda/pointwise_direct.cu \
  backends/cuda/pointwise_program.cu \
  backends/cuda/pad.cuh \
  backends/cuda/pool.cuh \
  backends/cuda/pool_bands.cuh \
  backends/cuda/pool_gradient.cuh \
  backends/cuda/pool_lanes.cuh \
  backends/cuda/pool_lp.cuh \
  backends/cuda/pool_peak.cuh \
  backends/cuda/pool_sweep.cuh \
  backends/cuda/pool_adaptive.cu \
  backends/cuda/pool_backward.cu \
  backends/cuda/pool_direct.cu \
  backends/cuda/pool_falls.cu \
  backends/cuda/pool_lp.cu \
  backends/cuda/pool_means.cu \
  backends/cuda/pool_planes.cu \
  backends/cuda/pool_runs.cu \
  backends/cuda/pool_scatter.cu \
  backends/cuda/pool_scatter_planes.cu \
  backends/cuda/pool_spread.cu \
  backends/cuda/pool_strips.cu \
  backends/cuda/pool_tiles.cu \
  backends/cuda/pool_vector.cu \
  backends/cuda/random.cuh \
  backends/cuda/random_direct.cu \
  backends/cuda/quantize.cuh \
  backends/cuda/quantize_direct.cu \
  backends/cuda/quantize_packed.c \
  backends/cuda/quantize_packed.cu \
  backends/cuda/quantize_packed.cuh \
  backends/cuda/quantize_packed.h \
  backends/cuda/random_packed.cu \
  backends/cuda/reduce_direct.cu \
  backends/cuda/reduce_lines.cu \
  backends/cuda/resample.cuh \
  backends/cuda/resample_elements.cuh \
  backends/cuda/resample_direct.cu \
  backends/cuda/resample_halves.cu \
  backends/cuda/resample_strips.cu \
  backends/cuda/resample_strips_backward.cu \
  backends/cuda/select_direct.cu \
  backends/cuda/select_lines.cu \
  backends/cuda/select_rows.cu \
  backends/cuda/shared_memory.h \
  backends/cuda/sm80.cuh \
  backends/cuda/sm90.cuh \
  backends/cuda/softmax.cuh \
  backends/cuda/softmax_columns.cuh \
  backends/cuda/softmax_direct.cu \
  backends/cuda/softmax_rows.cu \
  backends/cuda/spatial.cuh \
  backends/cuda/steps.cuh \
  backends/cuda/steps.h \
  backends/cuda/sums.cuh \
  backends/cuda/team.cuh \
  backends/cuda/team.h \
  backends/cuda/tile.cuh \
  backends/cuda/training_direct.cu \
  backends/cuda/training_lists.cu \
  backends/cuda/transform_direct.cu \
  backends/cuda/transform_pad.cu \
  backends/cuda/transform_pad_backward.cu \
  backends/cuda/transform_tiled.cu \
  backends/cuda/vector.cuh \
  backends/cuda/wgmma.cuh \
  backends/cuda/words.cuh
if HAVE_CUBLASLT
backends_cuda_quern_cuda_la_SOURCES += backends/cuda/matmul_cublaslt.c
endif
backends_cuda_quern_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CUBLASLT_CPPFLAGS)
backends_cuda_quern_cuda_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
backends_cuda_quern_cuda_la_LDFLAGS = $(PLUGIN_LDFLAGS)
backends_cuda_quern_cuda_la_LIBADD = $(CUDA_LIBS) $(LIBM)

CUDA_AMPERE_OBJECTS = \
  backends/cuda/conv_depthwise_filter.lo \
  backends/cuda/conv_depthwise_mma.lo \
  backends/cuda/conv_depthwise_mma_filter.lo \
  backends/cuda/conv_grouped.lo \
  backends/cuda/conv_grouped_filter.lo \
  backends/cuda/conv_first.lo \
  backends/cuda/conv_first_data.lo \
  backends/cuda/conv_first_filter.lo \
  backends/cuda/conv_mma_bf16.lo \
  backends/cuda/conv_mma_f16.lo \
  backends/cuda/conv_mma_tf32.lo \
  backends/cuda/conv_narrow_filter.lo \
  backends/cuda/matmul_mma_bf16.lo \
  backends/cuda/matmul_mma_f16.lo \
  backends/cuda/matmul_mma_i8.lo \
  backends/cuda/matmul_mma_tf32.lo \
  backends/cuda/matmul_simt.lo \
  backends/cuda/matmul_small.lo \
  backends/cuda/norm_bands.lo \
  backends/cuda/norm_groups.lo \
  backends/cuda/norm_kept.lo \
  backends/cuda/norm_planes.lo
$(CUDA_AMPERE_OBJECTS): NVCC_GENCODE := $(filter-out -gencode=arch=compute_7%,$(NVCC_GENCODE))

CUDA_HOPPER_OBJECTS = \
  backends/cuda/conv_tf32.lo \
  backends/cuda/conv_wgmma_bf16.lo \
  backends/cuda/conv_wgmma_f16.lo \
  backends/cuda/matmul_wgmma_bf16.lo \
  backends/cuda/matmul_wgmma_f16.lo \
  backends/cuda/matmul_wgmma_f8.lo \
  backends/cuda/matmul_wgmma_i8.lo \
  backends/cuda/matmul_wgmma_tf32.lo \
  backends/cuda/norm_cluster.lo \
  backends/cuda/norm_ring.lo \
  backends/cuda/pack.lo
$(CUDA_HOPPER_OBJECTS): NVCC_GENCODE = -gencode=arch=compute_90a,code=sm_90a

# Half of the size is templates that differ little. tests/cuda_kernels.sh reads what ptxas warns of.
backends/cuda/%.lo: NVCCFLAGS += --compress-mode=size -Xptxas=-warn-spills
