# The simulated GPU: libraries under $(B)/sim, found by LD_LIBRARY_PATH. `make sim` makes them; gen.py makes
# the exports of libcuda.so.1 from cuda.h.
CUDA_INCLUDE := $(shell scripts/cuda-include --no-download 2>/dev/null)
SIMCUDA_SRC := $(wildcard tests/sim/cuda/*.c)
SIMCUDA_OBJ := $(patsubst tests/sim/cuda/%.c,$(B)/obj/sim/%.o,$(SIMCUDA_SRC))
SIMCUDA_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) -Wmissing-prototypes -D__CUDA_API_VERSION_INTERNAL -Itests/sim/cuda \
    -I$(B)/sim/gen -isystem $(CUDA_INCLUDE) -fPIC -fvisibility=hidden -ftls-model=initial-exec $(SANFLAGS) -O2 -g -MMD -MP
# -Bsymbolic: or a preloaded library would take the driver's calls of itself
SIMCUDA_LDFLAGS = -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,defs
# of older drivers only what they have: 11.4 knows cuGetProcAddress without _v2, 10.2 none
SIM_OLD := 11040 10020
SIMCUDA := $(B)/sim/libcuda.so.1 $(B)/sim/libcuda.so $(SIM_OLD:%=$(B)/sim/%/libcuda.so.1)

.PHONY: sim
sim: $(SIMCUDA) ## the simulated GPU's libraries, in build/sim

$(B)/sim/gen/entries.c: tests/sim/cuda/gen.py $(SIMCUDA_SRC)
	$(call need,CUDA_INCLUDE,the CUDA 13 headers,nvidia-cuda-toolkit)
	@mkdir -p $(@D)
	$(call say,GEN)printf '#include <cuda.h>\n#include <cudaProfiler.h>\n' | $(CC) -E -P -D__CUDA_API_VERSION_INTERNAL -isystem $(CUDA_INCLUDE) -xc -o $(@D)/cuda.i - && \
	    python3 $< $(@D)/cuda.i $(CUDA_INCLUDE) $(@D) $(SIMCUDA_SRC) > $(@D)/summary
$(B)/obj/sim/%.o: tests/sim/cuda/%.c $(B)/sim/gen/entries.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIMCUDA_CFLAGS) -c -o $@ $<
$(B)/obj/sim/entries.o: $(B)/sim/gen/entries.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIMCUDA_CFLAGS) -c -o $@ $<
$(SIM_OLD:%=$(B)/obj/sim/device-%.o): $(B)/obj/sim/device-%.o: tests/sim/cuda/device.c $(B)/sim/gen/entries.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIMCUDA_CFLAGS) -DGTSIM_BUILT=$* -c -o $@ $<

$(B)/sim/libcuda.so.1: $(SIMCUDA_OBJ) $(B)/obj/sim/entries.o
	$(call say,SIM)$(CC) $(SANFLAGS) $(SIMCUDA_LDFLAGS) -Wl,--version-script=$(B)/sim/gen/all.map -o $@ $^ -pthread -ldl
$(B)/sim/libcuda.so: $(B)/sim/libcuda.so.1
	$(call say,LINK)ln -sf libcuda.so.1 $@
$(SIM_OLD:%=$(B)/sim/%/libcuda.so.1): $(B)/sim/%/libcuda.so.1: $(filter-out $(B)/obj/sim/device.o,$(SIMCUDA_OBJ)) $(B)/obj/sim/entries.o $(B)/obj/sim/device-%.o
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SANFLAGS) $(SIMCUDA_LDFLAGS) -Wl,--version-script=$(B)/sim/gen/$*.map -o $@ $^ -pthread -ldl

# what scripts/demo shows: needs no CUDA compiler
SIMDEMO := $(B)/sim/demo/train $(B)/sim/demo/train.cubin $(B)/sim/demo/kernels.so
.PHONY: sim-demo
apps: $(if $(SAN),,sim-demo)
sim-demo: sim $(SIMDEMO) ## the simulated GPU with a program that scripts/demo profiles
$(B)/sim/demo/train: tests/sim/demo/train.c $(B)/sim/libcuda.so
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g $(addprefix -isystem ,$(NVTX_INCLUDE)) -isystem $(CUDA_INCLUDE) -MMD -MP -MF $@.d -o $@ $< -L$(B)/sim -lcuda -ldl
$(B)/sim/demo/train.cubin: tests/sim/demo/cubin.py
	@mkdir -p $(@D)
	$(call say,GEN)python3 $< $@ multiply_80us:4,8,8 relu_5us:4,8 update_10us:4,8,4
$(B)/sim/demo/kernels.so: tests/sim/demo/kernels.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -o $@ $<
