# build/sim/libcudart.so.13, and libcupti.so.13 beside it: stand-ins on the simulated driver. They need
# CUDA's headers (scripts/cuda-include).
CUDA_INCLUDE ?= $(shell scripts/cuda-include --no-download 2>/dev/null)
SIM_CFLAGS = -std=gnu11 $(WARN) -Wno-deprecated-declarations -D_GNU_SOURCE -I. -I$(B)/sim/gen $(addprefix -isystem ,$(CUDA_INCLUDE)) \
    $(SANFLAGS) -O2 -g -fPIC -fvisibility=hidden -MMD -MP
SIM_LINK = $(CC) $(SANFLAGS) -shared -Wl,-Bsymbolic -Wl,--build-id

# compiled again with CUDA_API_PER_THREAD_DEFAULT_STREAM: names with _ptsz and _ptds
RT_TWICE := copy copy_array set launch forward_stream entry_point
RT_OBJ := $(patsubst tests/sim/cudart/%.c,$(B)/sim/obj/cudart/%.o,$(wildcard tests/sim/cudart/*.c)) \
    $(RT_TWICE:%=$(B)/sim/obj/cudart/%_pt.o) $(B)/sim/obj/cudart_stubs.o

$(B)/sim/libcudart.so.13: $(RT_OBJ) tests/sim/cudart/cudart.map
	$(call say,SIM)$(SIM_LINK) -Wl,-soname,libcudart.so.13 -Wl,--version-script=tests/sim/cudart/cudart.map -o $@ $(RT_OBJ) -ldl -pthread

$(B)/sim/gen/cudart_stubs.c: tests/sim/cudart/gen.py
	$(call need,CUDA_INCLUDE,the CUDA 13 headers,nvidia-cuda-toolkit)
	$(call say,GEN)python3 $< $(firstword $(CUDA_INCLUDE)) $(@D)
$(RT_OBJ): $(B)/sim/gen/cudart_stubs.c
$(B)/sim/obj/cudart/%.o: tests/sim/cudart/%.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -c -o $@ $<
$(B)/sim/obj/cudart/%_pt.o: tests/sim/cudart/%.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -DCUDA_API_PER_THREAD_DEFAULT_STREAM -c -o $@ $<
$(B)/sim/obj/%.o: $(B)/sim/gen/%.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -c -o $@ $<

# the real one has such a version node
CUPTI_OBJ := $(patsubst tests/sim/cupti/%.c,$(B)/sim/obj/cupti/%.o,$(wildcard tests/sim/cupti/*.c)) $(B)/sim/obj/cupti_stubs.o
$(B)/sim/libcupti.so.13: $(CUPTI_OBJ) tests/sim/cupti/cupti.map
	$(call say,SIM)$(SIM_LINK) -Wl,-soname,libcupti.so.13 -Wl,--version-script=tests/sim/cupti/cupti.map -o $@ $(CUPTI_OBJ) -ldl -pthread
$(B)/sim/gen/cupti_stubs.c: tests/sim/cupti/gen.py
	$(call need,CUDA_INCLUDE,the CUDA 13 headers,nvidia-cuda-toolkit)
	$(call say,GEN)python3 $< $(firstword $(CUDA_INCLUDE)) $(@D)
$(CUPTI_OBJ): $(B)/sim/gen/cupti_stubs.c
$(B)/sim/obj/cupti/%.o: tests/sim/cupti/%.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -c -o $@ $<

.PHONY: sim
sim: $(B)/sim/libcudart.so.13 $(B)/sim/libcupti.so.13 $(B)/sim/obj/abi_cupti.o

# nothing of it is run: the compiler compares our own types with the header's
$(B)/sim/obj/abi_cupti.o: tests/sim/abi_cupti.c
	$(call need,CUDA_INCLUDE,the CUDA 13 headers,nvidia-cuda-toolkit)
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -c -o $@ $<

# Programs for them, where nvcc is: ordinary binaries with the shared runtime. Each runs with
# LD_LIBRARY_PATH=build/sim GTSIM_KERNELS=build/sim/apps/kernels.so.
NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
NVCC_FLAGS := -std=c++17 -O1 -cudart shared -arch=sm_90 --no-compress -Wno-deprecated-gpu-targets
CUDA_APPS := saxpy saxpy_pt saxpy_cupti memory functions threads threads_pt threads_cupti
NVCC_FLAGS_pt := --default-stream per-thread
NVCC_FLAGS_cupti := -DOWN_CUPTI
CUPTI_LINK = -L$(B)/sim -l:libcupti.so.13 -ldl

$(B)/sim/apps/kernels.so: tests/sim/cuda_apps/kernels_host.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) -std=gnu11 $(WARN) $(SANFLAGS) -O1 -g -shared -fPIC -MMD -MP -MF $@.d -o $@ $<
$(B)/sim/apps/cupti_own.o: tests/sim/cuda_apps/cupti_own.c tests/sim/cuda_apps/cupti_own.h
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -c -o $@ $<
$(B)/sim/apps/cupti_bad: tests/sim/cuda_apps/cupti_bad.c $(B)/sim/libcupti.so.13 $(B)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -o $@ $< -L$(B)/sim -l:libcupti.so.13 -l:libcuda.so.1
# clients of the driver, which need no nvcc
$(B)/sim/apps/cases: tests/sim/cuda_apps/cases.cpp $(B)/sim/apps/cases_plugin.so $(B)/sim/demo/train.cubin $(B)/sim/demo/kernels.so
	@mkdir -p $(@D)
	$(call say,SIM)$(CXX) -std=c++17 -D_GNU_SOURCE $(WARN) $(addprefix -isystem ,$(NVTX_INCLUDE) $(CUDA_INCLUDE)) -O1 -g -MMD -MP -MF $@.d -o $@ $< -pthread -ldl
$(B)/sim/apps/cases_plugin.so: tests/sim/cuda_apps/cases_plugin.c $(B)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -shared -o $@ $< -L$(B)/sim -l:libcuda.so.1
$(B)/sim/apps/ends: tests/sim/cuda_apps/ends.c $(B)/sim/libcuda.so.1 $(B)/sim/demo/train.cubin $(B)/sim/demo/kernels.so
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -Iinclude -o $@ $< -L$(B)/sim -l:libcuda.so.1 -pthread -ldl
# a client of the driver with an image of nvcc's
$(B)/sim/apps/driver: tests/sim/cuda_apps/driver.c $(B)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -o $@ $< -L$(B)/sim -l:libcuda.so.1
$(B)/sim/apps/saxpy.cubin: tests/sim/cuda_apps/saxpy.cu tests/sim/cuda_apps/app.h
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -arch=sm_90 -cubin -o $@ $<
# more, with kernels of their own and what stands for those on the simulated GPU
CUDA_CLIENTS := cuda_saxpy cuda_timeline cuda_graph cuda_contexts
$(CUDA_CLIENTS:%=$(B)/sim/apps/%): $(B)/sim/apps/%: tests/sim/cuda_apps/%.c tests/sim/cuda_apps/cuda_client.h $(B)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -o $@ $< -L$(B)/sim -l:libcuda.so.1 -pthread -lm
$(B)/sim/apps/cuda_peer: tests/sim/cuda_apps/cuda_peer.c tests/sim/cuda_apps/cuda_client.h $(B)/sim/apps/cupti_own.o $(B)/sim/libcupti.so.13 $(B)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) $(SIM_CFLAGS) -o $@ $< $(B)/sim/apps/cupti_own.o -L$(B)/sim -l:libcuda.so.1 $(CUPTI_LINK) -pthread
$(B)/sim/apps/cuda_kernels.so: tests/sim/cuda_apps/cuda_kernels.c
	@mkdir -p $(@D)
	$(call say,SIM)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -MMD -MP -MF $@.d -o $@ $<
$(B)/sim/apps/cuda_kernels.cubin $(B)/sim/apps/cuda_kernels.fatbin: $(B)/sim/apps/cuda_kernels.%: tests/sim/cuda_apps/cuda_kernels.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -arch=sm_90 -$* -o $@ $<
$(B)/sim/apps/%_pt: tests/sim/cuda_apps/%.cu tests/sim/cuda_apps/app.h
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(NVCC_FLAGS_pt) -o $@ $<
$(B)/sim/apps/%_cupti: tests/sim/cuda_apps/%.cu tests/sim/cuda_apps/app.h $(B)/sim/apps/cupti_own.o $(B)/sim/libcupti.so.13
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(NVCC_FLAGS_cupti) -o $@ $< $(B)/sim/apps/cupti_own.o $(CUPTI_LINK)
$(B)/sim/apps/%: tests/sim/cuda_apps/%.cu tests/sim/cuda_apps/app.h
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -o $@ $<

.PHONY: sim-apps
apps: $(if $(SAN),,sim-apps)
sim-apps: sim $(B)/sim/apps/cases $(B)/sim/apps/ends $(if $(NVCC),$(CUDA_APPS:%=$(B)/sim/apps/%) $(B)/sim/apps/kernels.so $(B)/sim/apps/cupti_bad $(B)/sim/apps/driver $(B)/sim/apps/saxpy.cubin $(CUDA_CLIENTS:%=$(B)/sim/apps/%) $(B)/sim/apps/cuda_peer $(addprefix $(B)/sim/apps/cuda_kernels.,so cubin fatbin))
