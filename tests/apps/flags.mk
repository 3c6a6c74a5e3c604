# Flags of single clients: APPFLAGS_name, APPLIBS_name.
APPFLAGS_api_nopie := -no-pie -fno-pic
# wants libnvToolsExt.so.1 as its first library, like a program of the CUDA 8 to 12 days
APPLIBS_nvtx_v2 = $(B)/apps/libnvToolsExt.so.1 -Wl,-rpath,'$$ORIGIN'

$(B)/apps/nvtx_v2: $(B)/apps/libnvToolsExt.so.1
$(B)/apps/libnvToolsExt.so.1: tests/apps/stub/nvtoolsext.c
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -Wl,-soname,libnvToolsExt.so.1 -MMD -MP -MF $@.d -o $@ $<

# a collector that a user has chosen himself
$(B)/apps/itt_library: | $(B)/apps/itt_collector.so
$(B)/apps/itt_collector.so: tests/apps/stub/itt_collector.c
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -MMD -MP -MF $@.d -o $@ $<

# stand-ins for PyTorch: as 2.13, as 1.13, one without what we need, one with a meddling neighbour, two
# whose operators of the backward pass can't be understood
SIM_TORCH := 213 113 old plugin hides twins
SIMFLAGS_113 := -DSIM_VERSION=113
SIMFLAGS_old := -DSIM_LACKS
SIMFLAGS_plugin := -DSIM_PLUGIN
SIMFLAGS_hides := -DSIM_HIDES
SIMFLAGS_twins := -DSIM_TWINS
SIMLIBS_plugin = $(B)/sim/torchplugin/libplugin.so
# no unique symbols: they would keep a library from being unloaded
# no vptr check: an operator's context that C made has a virtual table, but no type for UBSan
SIM_SHARED = $(CXX) -std=c++17 $(WARN) $(SANFLAGS) $(if $(findstring undefined,$(SANFLAGS)),-fno-sanitize=vptr) -O1 -g -shared -fPIC -fno-gnu-unique -MMD -MP -MF $@.d

$(B)/apps/torch_sim: $(SIM_TORCH:%=$(B)/sim/torch%/libtorch_cpu.so)
$(B)/apps/torch_linked: $(B)/sim/torch213/libtorch_cpu.so
APPLIBS_torch_linked = $(B)/sim/torch213/libtorch_cpu.so $(B)/sim/torch213/libc10.so -Wl,-rpath,'$$ORIGIN/../sim/torch213'
$(B)/sim/torchplugin/libtorch_cpu.so: $(SIMLIBS_plugin)
$(B)/sim/torch%/libplugin.so: tests/sim/torch/plugin.cpp
	@mkdir -p $(@D)
	$(call say,SIM)$(SIM_SHARED) -Wl,-soname,$(@F) -o $@ $< -ldl
$(B)/sim/torch%/libc10.so: tests/sim/torch/c10.cpp
	@mkdir -p $(@D)
	$(call say,SIM)$(SIM_SHARED) $(SIMFLAGS_$*) -Wl,-soname,$(@F) -o $@ $<
$(B)/sim/torch%/libtorch_cpu.so: tests/sim/torch/torch_cpu.cpp $(B)/sim/torch%/libc10.so
	@mkdir -p $(@D)
	$(call say,SIM)$(SIM_SHARED) $(SIMFLAGS_$*) -Wl,-soname,$(@F) -o $@ $< -Wl,--no-as-needed $(@D)/libc10.so $(SIMLIBS_$*) -Wl,-rpath,'$$ORIGIN'
# the Kokkos that Debian has; kokkos_real says so where it is missing
KOKKOS_INCLUDE := $(patsubst %/Kokkos_Core.hpp,%,$(firstword $(wildcard /usr/include/trilinos/Kokkos_Core.hpp /usr/include/Kokkos_Core.hpp)))
APPFLAGS_kokkos_real := $(addprefix -isystem ,$(KOKKOS_INCLUDE))
APPLIBS_kokkos_real := $(if $(findstring trilinos,$(KOKKOS_INCLUDE)),-ltrilinos_kokkoscore,$(if $(KOKKOS_INCLUDE),-lkokkoscore))

APPLIBS_kokkos_linked = -rdynamic $(B)/apps/libkokkostool.so -Wl,-rpath,'$$ORIGIN'
$(B)/apps/kokkos_linked: $(B)/apps/libkokkostool.so
$(B)/apps/libkokkostool.so: tests/apps/stub/kokkostool.c
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -Wl,-soname,libkokkostool.so -MMD -MP -MF $@.d -o $@ $<

# its symbols have a version, as the real one's
APPLIBS_roctx_basic = $(B)/apps/libroctx64.so.4 -Wl,-rpath,'$$ORIGIN'
APPLIBS_roctx_open = -Wl,-rpath,'$$ORIGIN'
# -fPIC: the address of a weak function that nobody defines
APPFLAGS_roctx_weak := -fPIC
$(B)/apps/roctx_basic: $(B)/apps/libroctx64.so.4
$(B)/apps/roctx_open: $(B)/apps/roctxplugin.so
$(B)/apps/libroctx64.so.4: tests/apps/stub/roctx64.c tests/apps/stub/roctx64.map
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -Wl,-soname,libroctx64.so.4 -Wl,--version-script=tests/apps/stub/roctx64.map -MMD -MP -MF $@.d -o $@ $<
$(B)/apps/roctxplugin.so: tests/apps/stub/roctxplugin.c $(B)/apps/libroctx64.so.4
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -MMD -MP -MF $@.d -o $@ $< $(B)/apps/libroctx64.so.4 -Wl,-rpath,'$$ORIGIN'

# stubs of CUDA's driver and runtime, in a folder of their own: tests/sim has a driver that works
CUDA_STUBS := $(B)/apps/cuda/libcuda.so.1 $(B)/apps/cuda/libcudart.so.13
CUDA_STUB_LINK = -Wl,--no-as-needed $(CUDA_STUBS) -Wl,-rpath,'$$ORIGIN/cuda'
APPLIBS_cuda_all = $(CUDA_STUB_LINK)
$(B)/apps/cuda_all: $(CUDA_STUBS)
$(B)/apps/cuda/libcuda.so.1: tests/apps/stub/cuda_driver.c
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -Wno-missing-prototypes -O1 -g -shared -fPIC -Wl,-Bsymbolic -Wl,-soname,$(@F) -MMD -MP -MF $@.d -o $@ $<
$(B)/apps/cuda/libcudart.so.13: tests/apps/stub/cuda_runtime.c tests/apps/stub/cuda_runtime.map
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -Wl,-Bsymbolic -Wl,-soname,$(@F) -Wl,--version-script=tests/apps/stub/cuda_runtime.map -MMD -MP -MF $@.d -o $@ $<
APPLIBS_cuda_bytes = $(CUDA_STUB_LINK)
APPFLAGS_cuda_bytes = -Wno-strict-prototypes
APPLIBS_cuda_proc = -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN/cuda'
# -fPIC: the address of a weak function that nobody defines
APPFLAGS_cuda_proc := -fPIC
$(B)/apps/cuda_bytes $(B)/apps/cuda_proc: $(CUDA_STUBS)
$(B)/apps/cuda_proc: $(B)/apps/cuda/cudaplugin.so $(B)/apps/cuda/old/libcuda.so.1
$(B)/apps/cuda/cudaplugin.so: tests/apps/stub/cuda_plugin.c $(B)/apps/cuda/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -MMD -MP -MF $@.d -o $@ $< $(B)/apps/cuda/libcuda.so.1 -Wl,-rpath,'$$ORIGIN'
# a driver of CUDA 11.3: of the functions of the table only those that were there
$(B)/apps/cuda/old/libcuda.so.1: tests/apps/stub/cuda_driver.c preload/hooks/cuda.def
	@mkdir -p $(@D)
	$(call say,APP){ awk -F'[(,] *' 'BEGIN {print "{ global: stub_*;"} /^HOOK/ && $$4 <= 11030 {print $$2 ";"} END {print "local: *; };"}' preload/hooks/cuda.def > $@.map && \
	    $(CC) -std=gnu11 $(WARN) -Wno-missing-prototypes -O1 -g -shared -fPIC -Wl,-Bsymbolic -Wl,-soname,$(@F) -Wl,--version-script=$@.map -MMD -MP -MF $@.d -o $@ $<; }

# libraries that take each other's place
STACKS_PLUG := $(foreach n,0 1 2 3 4 5 6 7,$(B)/apps/libstacks_plug$(n).so)
$(B)/apps/stacks_plugins: $(STACKS_PLUG)
$(B)/apps/libstacks_plug%.so: tests/apps/stub/stacks_plug.c tests/apps/stub/stacks_plug.h
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -DPLUG=$* -O1 -g -shared -fPIC -Wl,-soname,libstacks_plug$*.so -o $@ $<
# stand-ins for libpython, each in a folder of its own
PYTHONFLAGS_good := -DPYTHON_MINOR=11
PYTHONFLAGS_wrong := -DPYTHON_MINOR=11 -DPYTHON_WRONG
PYTHONFLAGS_free := -DPYTHON_MINOR=13 -DPYTHON_FREE
PYTHONFLAGS_old := -DPYTHON_MINOR=8
PYTHONFLAGS_new := -DPYTHON_MINOR=15
$(B)/apps/python_embed: $(patsubst %,$(B)/apps/python/%/libpython3.1.so,good wrong free old new)
$(B)/apps/python/%/libpython3.1.so: tests/apps/stub/python.c
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC $(PYTHONFLAGS_$*) -Wl,-soname,$(@F) -MMD -MP -MF $@.d -o $@ $<

# stand-ins for cuBLAS
$(B)/apps/cublas/libcublasLt.so.13: tests/apps/stub/cublas.c
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -DLT -O1 -g -shared -fPIC -Wl,-soname,$(@F) -o $@ $<
$(B)/apps/cublas/libcublas.so.13: tests/apps/stub/cublas.c $(B)/apps/cublas/libcublasLt.so.13 preload/hooks/cublas.def
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 $(WARN) -O1 -g -shared -fPIC -Wl,-soname,$(@F) -o $@ $< -Wl,-rpath,'$$ORIGIN' $(B)/apps/cublas/libcublasLt.so.13
$(B)/apps/cublas_client: $(B)/apps/cublas/libcublas.so.13
APPLIBS_cublas_client := $(B)/apps/cublas/libcublas.so.13 $(B)/apps/cublas/libcublasLt.so.13 -Wl,-rpath,'$$ORIGIN/cublas'
