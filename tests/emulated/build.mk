# build.mk -- builds quern_cuda.so of emulated kernels in the current folder. conform.tap sets the sources (S), the build (B)
# and the compilers. Each file below with a row in engines.c is a list of engines; other lists are left out: those that need clusters
# or copies by im2col, most of those for convolutions, and what calls other libraries.
EMULATED = \
  affine_grid.cu attention_direct.cu attention_mma.c attention_mma_backward.c attention_mma_backward_bf16.cu \
  attention_mma_backward_f16.cu attention_mma_bf16.cu attention_mma_f16.cu attention_parts_direct.cu attention_wgmma.c \
  attention_wgmma_bf16.cu attention_wgmma_f16.cu chain.c chain_fold.cu conv_as_image.c conv_depthwise.cu conv_depthwise_filter.cu \
  conv_depthwise_planes.cu conv_depthwise_planes_filter.cu conv_direct.cu conv_follow.c conv_kernel.c conv_layout.cu conv_simt.cu \
  conv_simt_filter.cu conv_unfold.c conv_unfold.cu conv_windows.c ctc_direct.cu ctc_two_ended.cu direct.cu elements_direct.cu \
  loss_direct.cu loss_rows.cu lrn.cu lrn_planes.cu lrn_taps.cu lrn_windows.cu matmul_direct.cu matmul_mma_bf16.cu matmul_mma_f16.cu \
  matmul_mma_i8.cu matmul_mma_tf32.cu matmul_problem.c matmul_simt.cu matmul_thin.cu matmul_tiled.c norm_bands.cu norm_direct.cu \
  norm_groups.c norm_groups.cu norm_inference.cu norm_kept.cu norm_one_pass.cu norm_one_pass_backward.cu norm_planes.cu norm_rows.cu \
  norm_split.cu norm_stream.cu pointwise_direct.cu pointwise_program.cu pool_adaptive.cu pool_backward.cu pool_direct.cu \
  pool_disjoint.cu pool_flat.cu pool_global.cu pool_indexed.cu pool_lp.cu pool_means.cu pool_planes.cu pool_recompute.cu \
  pool_recompute_planes.cu pool_runs.cu pool_scatter.cu pool_scatter_planes.cu pool_scatter_shared.cu pool_strips.cu pool_tiles.cu \
  pool_vector.cu quantize_direct.cu quantize_packed.c quantize_packed.cu random_direct.cu random_packed.cu reduce_direct.cu \
  reduce_lines.cu resample_direct.cu resample_halves.cu resample_strips.cu resample_strips_backward.cu rnn_direct.cu sampling.cu \
  sampling_lists.cu sampling_planes.cu sampling_sorted.cu select_direct.cu select_lines.cu select_rows.cu softmax_direct.cu \
  softmax_rows.cu training_direct.cu training_lists.cu transform_direct.cu transform_pad.cu transform_pad_backward.cu \
  transform_pad_tiles.cu transform_tiled.cu

CUDA = $(S)/backends/cuda
HERE = $(S)/tests/emulated

# The generated folder comes first: its *.cuh replace the sources'.
CPPFLAGS_ALL = -DHAVE_CONFIG_H -D_GNU_SOURCE -Igenerated -I$(B) -I$(B)/include -I$(S)/include -I$(CUDA) $(CUDA_CPPFLAGS) -MMD -MP
CXXFLAGS_ALL = -std=c++17 -fpermissive -fno-gnu-unique    # permissive: as under nvcc a member may have the name of its type
CFLAGS_ALL   = -O1 $(EMULATED_CFLAGS) -fPIC -fvisibility=hidden -ffp-contract=off -w -U_FORTIFY_SOURCE
CHECKS       = -fsanitize=alignment,bounds -fno-sanitize-recover=alignment,bounds

generated = $(patsubst $(CUDA)/%,generated/%,$(wildcard $(CUDA)/*.cuh)) generated/engines.c
objects   = $(patsubst %.cu,%.own.o,$(filter %.cu,$(EMULATED))) $(patsubst %.c,%.c.o,$(filter %.c,$(EMULATED)) backend.c device.c) \
            engines.o emulated.o

quern_cuda.so: $(objects)
	$(CXX) -shared -o $@ $(objects) -Wl,-Bsymbolic,-z,defs -lpthread -lm

generated/engines.c: $(CUDA)/engines.c $(HERE)/build.mk
	@mkdir -p generated
	awk '/^  *X\(/ { file = $$1; gsub(/X\(|\)/, "", file); if (!index(" $(EMULATED)", " " file ".c")) { print "  \\"; next } } 1' $< >$@
generated/wgmma_instructions.cuh: $(HERE)/wgmma_instructions.cuh
	@mkdir -p generated
	cp $< $@
generated/%: $(CUDA)/% $(HERE)/translate.py $(HERE)/ptx.h
	@mkdir -p generated
	$(PYTHON) $(HERE)/translate.py $(HERE)/ptx.h $< $@

%.cu.o: generated/%.cu | $(generated)
	$(CXX) $(CXXFLAGS_ALL) -x c++ -include $(HERE)/device.h $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CHECKS) -c -o $@ $<
# Template instances are local to each file: two files may each have a struct rows, and the linker would merge their code.
%.own.o: %.cu.o $(HERE)/build.mk
	$(LD) -r --force-group-allocation -o $@ $<
	nm $@ | awk '$$2 ~ /^[WV]$$/ { print $$3 }' >$*.local
	test ! -s $*.local || objcopy --localize-symbols=$*.local $@
%.c.o: $(CUDA)/%.c | $(generated)
	$(CC) -std=gnu11 $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
engines.o: generated/engines.c | $(generated)
	$(CC) -std=gnu11 $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
emulated.o: $(HERE)/emulated.cpp
	$(CXX) $(CXXFLAGS_ALL) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<

.SECONDARY:
-include $(wildcard *.d)
