# build.mk -- builds quern_cuda.so of emulated kernels in the current folder. conform.tap sets the sources (S), the build (B)
# and the compilers. Each file below with a row in engines.c is a list of engines; other lists are left out: those that need clusters
# or copies by im2col, most of those for convolutions, and what calls other libraries.
EMULATED = \
  sampling/affine_grid.cu attention/attention_direct.cu attention/attention_mma.c attention/attention_mma_backward.c \
  attention/attention_mma_backward_bf16.cu attention/attention_mma_backward_f16.cu attention/attention_mma_bf16.cu \
  attention/attention_mma_f16.cu attention/attention_parts_direct.cu attention/attention_wgmma.c attention/attention_wgmma_bf16.cu \
  attention/attention_wgmma_f16.cu program/chain.c program/chain_fold.cu conv/conv_depthwise.cu conv/conv_depthwise_filter.cu \
  conv/conv_depthwise_planes.cu conv/conv_depthwise_planes_filter.cu conv/conv_direct.cu conv/conv_follow.c conv/conv_kernel.c \
  conv/conv_layout.cu conv/conv_simt.cu conv/conv_simt_filter.cu conv/conv_unfold.c conv/conv_unfold.cu conv/conv_windows.c \
  loss/ctc_direct.cu loss/ctc_two_ended.cu kit/direct.cu select/elements_direct.cu loss/loss_direct.cu loss/loss_rows.cu lrn/lrn.cu \
  lrn/lrn_planes.cu lrn/lrn_taps.cu lrn/lrn_windows.cu matmul/matmul_direct.cu matmul/matmul_mma_bf16.cu matmul/matmul_mma_f16.cu \
  matmul/matmul_mma_i8.cu matmul/matmul_mma_tf32.cu matmul/matmul_problem.c matmul/matmul_simt.cu matmul/matmul_thin.cu \
  matmul/matmul_tiled.c norm/norm_bands.cu norm/norm_direct.cu norm/norm_groups.c norm/norm_groups.cu norm/norm_inference.cu \
  norm/norm_kept.cu norm/norm_one_pass.cu norm/norm_one_pass_backward.cu norm/norm_planes.cu norm/norm_rows.cu norm/norm_split.cu \
  norm/norm_stream.cu pointwise/pointwise_direct.cu pointwise/pointwise_program.cu pool/pool_adaptive.cu pool/pool_backward.cu \
  pool/pool_direct.cu pool/pool_disjoint.cu pool/pool_flat.cu pool/pool_global.cu pool/pool_indexed.cu pool/pool_lp.cu \
  pool/pool_means.cu pool/pool_planes.cu pool/pool_recompute.cu pool/pool_recompute_planes.cu pool/pool_runs.cu pool/pool_scatter.cu \
  pool/pool_scatter_planes.cu pool/pool_scatter_shared.cu pool/pool_strips.cu pool/pool_tiles.cu pool/pool_vector.cu \
  quantize/quantize_direct.cu quantize/quantize_packed.c quantize/quantize_packed.cu random/random_direct.cu random/random_packed.cu \
  reduce/reduce_direct.cu reduce/reduce_lines.cu resample/resample_direct.cu resample/resample_halves.cu resample/resample_strips.cu \
  resample/resample_strips_backward.cu rnn/rnn_direct.cu sampling/sampling.cu sampling/sampling_lists.cu sampling/sampling_planes.cu \
  sampling/sampling_sorted.cu select/select_direct.cu select/select_lines.cu select/select_rows.cu softmax/softmax_direct.cu \
  softmax/softmax_rows.cu training/training_direct.cu training/training_lists.cu transform/transform_direct.cu \
  transform/transform_pad.cu transform/transform_pad_backward.cu transform/transform_pad_tiles.cu transform/transform_tiled.cu

CUDA = $(S)/backends/cuda
HERE = $(S)/tests/emulated

# The generated folder comes first: its headers replace the sources'.
CPPFLAGS_ALL = -DHAVE_CONFIG_H -D_GNU_SOURCE -Igenerated -I$(B) -I$(B)/include -I$(S)/include -I$(CUDA) $(CUDA_CPPFLAGS) -MMD -MP
CXXFLAGS_ALL = -std=c++17 -fpermissive -fno-gnu-unique    # permissive: as under nvcc a member may have the name of its type
CFLAGS_ALL   = -O1 $(EMULATED_CFLAGS) -fPIC -fvisibility=hidden -ffp-contract=off -w -U_FORTIFY_SOURCE
CHECKS       = -fsanitize=alignment,bounds -fno-sanitize-recover=alignment,bounds

generated = $(patsubst $(CUDA)/%,generated/%,$(wildcard $(CUDA)/*.h $(CUDA)/*/*.h $(CUDA)/*/*.cuh)) generated/engines.c
objects   = $(patsubst %.cu,%.own.o,$(filter %.cu,$(EMULATED))) $(patsubst %.c,%.c.o,$(filter %.c,$(EMULATED)) backend.c device.c) \
            engines.o emulated.o

quern_cuda.so: $(objects)
	$(CXX) -shared -o $@ $(objects) -Wl,-Bsymbolic,-z,defs -lpthread -lm

generated/engines.c: $(CUDA)/engines.c $(HERE)/build.mk
	@mkdir -p generated
	awk '/^  *X\(/ { file = $$1; gsub(/X\(|\)/, "", file); if (!index(" $(EMULATED)", "/" file ".c")) { print "  \\"; next } } 1' $< >$@
generated/kit/wgmma_instructions.cuh: $(HERE)/wgmma_instructions.cuh
	@mkdir -p $(@D)
	cp $< $@
generated/%: $(CUDA)/% $(HERE)/translate.py $(HERE)/ptx.h
	@mkdir -p $(@D)
	$(PYTHON) $(HERE)/translate.py $(HERE)/ptx.h $< $@

%.cu.o: generated/%.cu | $(generated)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) -x c++ -include $(HERE)/device.h $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CHECKS) -c -o $@ $<
# Template instances are local to each file: two files may each have a struct rows, and the linker would merge their code.
%.own.o: %.cu.o $(HERE)/build.mk
	$(LD) -r --force-group-allocation -o $@ $<
	nm $@ | awk '$$2 ~ /^[WV]$$/ { print $$3 }' >$*.local
	test ! -s $*.local || objcopy --localize-symbols=$*.local $@
%.c.o: $(CUDA)/%.c | $(generated)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
engines.o: generated/engines.c | $(generated)
	$(CC) -std=gnu11 $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
emulated.o: $(HERE)/emulated.cpp
	$(CXX) $(CXXFLAGS_ALL) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<

.SECONDARY:
-include $(wildcard *.d */*.d)
