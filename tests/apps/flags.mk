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
