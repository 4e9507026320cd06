# build.mk -- builds quern_cuda.so of emulated kernels in the current folder: of the files of engines.def that are not excepted there.
# conform.tap sets the sources (S), the build (B) and the compilers.
CUDA = $(S)/backends/cuda
EMULATED := $(shell awk -v emulated=1 -v emit=sources -f $(S)/build-aux/engines.awk $(CUDA)/engines.def)
HERE = $(S)/tests/emulated

# The generated folder comes first: its headers replace the sources'.
CPPFLAGS_ALL = -DHAVE_CONFIG_H -D_GNU_SOURCE -Igenerated -I$(B) -I$(B)/include -I$(S)/include -I$(CUDA) $(CUDA_CPPFLAGS) -MMD -MP
CXXFLAGS_ALL = -std=c++17 -fpermissive -fno-gnu-unique    # permissive: as under nvcc a member may have the name of its type
# fmaf by an instruction where this processor has it.
FMA         := $(shell grep -qs '^flags.* fma .*avx2' /proc/cpuinfo && echo -mfma)
CFLAGS_ALL   = -O1 $(FMA) $(EMULATED_CFLAGS) -fPIC -fvisibility=hidden -ffp-contract=off -w -U_FORTIFY_SOURCE
CHECKS       = -fsanitize=alignment,bounds -fno-sanitize-recover=alignment,bounds

# The instructions of wgmma are other ones (below).
headers   = $(filter-out kit/wgmma_instructions.cuh,$(patsubst $(CUDA)/%,%,$(wildcard $(CUDA)/*.h $(CUDA)/*/*.h $(CUDA)/*/*.cuh)))
translated = $(headers) $(filter %.cu,$(EMULATED))
generated = $(addprefix generated/,$(headers)) generated/kit/wgmma_instructions.cuh generated/engines.c
objects   = $(patsubst %.cu,built/%.own.o,$(filter %.cu,$(EMULATED))) $(patsubst %.c,built/%.c.o,$(filter %.c,$(EMULATED))) engines.o emulated.o

quern_cuda.so: $(objects)
	$(CXX) -shared -o $@ $(objects) -Wl,-Bsymbolic,-z,defs -lpthread -lm

generated/engines.c: $(CUDA)/engines.def $(S)/build-aux/engines.awk
	@mkdir -p generated
	awk -v emulated=1 -v emit=table -f $(S)/build-aux/engines.awk $< >$@
generated/kit/wgmma_instructions.cuh: $(HERE)/wgmma_instructions.cuh
	@mkdir -p $(@D)
	cp $< $@
# What has changed is translated again, in one call; all of it when it may be another list or another translation.
generated/translated: $(addprefix $(CUDA)/,$(translated)) $(CUDA)/engines.def $(HERE)/translate.py $(HERE)/ptx.h
	$(PYTHON) $(HERE)/translate.py $(HERE)/ptx.h $(CUDA) generated \
	  $(if $(filter $(HERE)/% %/engines.def,$?),$(translated),$(patsubst $(CUDA)/%,%,$?))
	touch $@
$(addprefix generated/,$(translated)): generated/translated
	@test -e $@ || $(PYTHON) $(HERE)/translate.py $(HERE)/ptx.h $(CUDA) generated $(@:generated/%=%)

# What every file begins with takes longer to read than most files to compile; so it is read once. ccache wants to be told that it may
# look at the result alone.
export CCACHE_SLOPPINESS = pch_defines,time_macros
generated/prefix.h.gch: generated/prefix.h
	$(CXX) $(CXXFLAGS_ALL) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CHECKS) -x c++-header -c -o $@ $<
generated/prefix.h: $(HERE)/build.mk | $(generated)
	printf '#include "%s"\n' $(HERE)/device.h cuda_backend.h engines.h >$@

built/%.cu.o: generated/%.cu generated/prefix.h.gch | $(generated)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS_ALL) -x c++ -include generated/prefix.h $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CHECKS) -c -o $@ $<
# Template instances are local to each file: two files may each have a struct rows, and the linker would merge their code.
built/%.own.o: built/%.cu.o $(HERE)/build.mk
	$(LD) -r --force-group-allocation -o $@ $<
	nm $@ | awk '$$2 ~ /^[WV]$$/ { print $$3 }' >$(@:.o=.local)
	test ! -s $(@:.o=.local) || objcopy --localize-symbols=$(@:.o=.local) $@
built/%.c.o: $(CUDA)/%.c | $(generated)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
engines.o: generated/engines.c | $(generated)
	$(CC) -std=gnu11 $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
emulated.o: $(HERE)/emulated.cpp
	$(CXX) $(CXXFLAGS_ALL) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -O2 -c -o $@ $<

.SECONDARY:
-include $(wildcard *.d generated/*.d built/*.d built/*/*.d)
