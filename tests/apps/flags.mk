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
