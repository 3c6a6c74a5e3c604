# gputally: one flat Makefile. `make` builds build/gputally and build/libgputally.so.
# `make help` lists the targets: it prints the `##` texts.
VERSION := 0.1.0
B ?= build
PREFIX ?= /usr/local
CC ?= gcc
CXX ?= g++
PKG_CONFIG ?= pkg-config
PYTHON ?= build/venv/bin/python
SAN ?=
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $@;)

# what has no sanitizer in it is made once, for all builds
PLAIN := $(B)
ifneq ($(SAN),)
  B := $(B)/san-$(subst $(shell printf ','),-,$(SAN))
  # Three quarters of the compiler's time of -g: lines stay. The code is the plain build's, as the suite of stacks sees our
  # own functions in its stacks.
  CFLAGS ?= -O2 -g1
  SANFLAGS := -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined $(if $(findstring thread,$(SAN)),-Wno-tsan)
endif

WARN := -Wall -Wextra -Wshadow -Wvla -Wno-missing-field-initializers
CPPFLAGS += -D_GNU_SOURCE -DGT_VERSION='"$(VERSION)"' -I. -Iinclude
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu11 $(WARN) -Wstrict-prototypes -Wmissing-prototypes $(SANFLAGS) $(CFLAGS) -MMD -MP
# The library: nothing leaves by accident, TLS without calls, frame layout left to the compiler.
# What nothing calls (native stacks, so far) is left out.
# Pairing neighbouring stores in vector registers costs the hot path more instructions than it saves.
LIB_CFLAGS := -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -ftls-model=initial-exec -fno-plt -fno-tree-slp-vectorize
# before glibc 2.34 libdl and libpthread hold what core/compat.h binds; since then they are empty
LIB_LIBS := -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0
LIB_LDFLAGS := -shared -Wl,--gc-sections -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,--build-id -Wl,-soname,libgputally.so

JANSSON_CFLAGS := $(shell $(PKG_CONFIG) --cflags jansson 2>/dev/null)
JANSSON_LIBS := $(shell $(PKG_CONFIG) --libs jansson 2>/dev/null)
CHECK_CFLAGS := $(shell $(PKG_CONFIG) --cflags check 2>/dev/null)
CHECK_LIBS := $(shell $(PKG_CONFIG) --libs check 2>/dev/null)
# names of functions, in the report only; libiberty has no .pc
LZMA_LIBS := $(shell $(PKG_CONFIG) --libs liblzma 2>/dev/null)
IBERTY_LIBS := $(shell $(CC) -E -include libiberty/demangle.h -x c /dev/null >/dev/null 2>&1 && echo -liberty)
CLI_LIBS = $(JANSSON_LIBS) $(LZMA_LIBS) $(IBERTY_LIBS) -lm -ldl
NVTX_INCLUDE := $(shell scripts/nvtx-include 2>/dev/null)
need = $(if $($(1)),,$(error $(2) is missing: install the Debian package $(3), or run scripts/bootstrap))

CORE_SRC := $(wildcard core/*.c)
PRELOAD_SRC := $(wildcard preload/*.c)
REPORT_SRC := $(wildcard report/*.c)
DEFS := $(sort $(wildcard preload/hooks/*.def))

LIB_OBJ := $(patsubst %.c,$(B)/obj/lib/%.o,$(CORE_SRC) $(PRELOAD_SRC))
CLI_OBJ := $(patsubst %.c,$(B)/obj/cli/%.o,$(REPORT_SRC) core/config.c core/config_window.c)
REPORT_LIB_OBJ := $(filter-out $(B)/obj/cli/report/main.o,$(CLI_OBJ))
# core again for the unit suites, with a clock that the test turns by hand
TESTCORE_OBJ := $(patsubst %.c,$(B)/obj/test/%.o,$(filter-out core/config.c core/config_window.c,$(CORE_SRC)))

# the unwinder: needs nothing else of core
STACK_OBJ := $(patsubst %,$(B)/obj/lib/core/%.o,eh_find eh_frame eh_rows rules trie unwind unwind_fallback unwind_where)

# the walk over Python frames, which tests/python/walk.py loads into each interpreter
PYWALK_OBJ := $(patsubst %.c,$(B)/obj/lib/%.o,$(wildcard preload/python*.c) preload/elf_symbol.c core/trie.c core/strings.c)

# and the sources of events with it: an archive, so that a suite gets only what it names. Not what
# would stand in front of libc in the suite itself
TESTPRELOAD_OBJ := $(patsubst %.c,$(B)/obj/test/%.o,$(filter-out preload/dl.c preload/exit.c preload/init.c,$(PRELOAD_SRC)))
TESTPRELOAD := $(B)/obj/test/preload.a

UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
APPS := $(patsubst tests/apps/%.c,$(B)/apps/%,$(wildcard tests/apps/*.c)) \
        $(patsubst tests/apps/%.cpp,$(B)/apps/%,$(wildcard tests/apps/*.cpp))
# each is a program for scripts/bench
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))

.PHONY: all help check check-aarch64 check-pythons unit apps bench lint install uninstall clean
.DELETE_ON_ERROR:
.SECONDARY:
all: $(B)/gputally $(B)/libgputally.so ## build/gputally and build/libgputally.so (V=1 shows the commands)
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-22s %s\n", $$1, $$2}'

$(B)/gputally: $(CLI_OBJ)
	$(call say,LINK)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(CLI_LIBS)

# The version script is anonymous and made from the hook tables: a named node would hide our wrappers
# from references that ask for a version.
$(B)/exports.map: $(DEFS) Makefile
	@mkdir -p $(@D)
	$(call say,GEN){ echo '{ global:'; sed -n 's/^\(HOOK\|WIDE\|EXPORT\)(\([A-Za-z0-9_]*\).*/  \2;/p' $(DEFS) | sort -u; echo '  local: *; };'; } > $@

$(B)/libgputally.so: $(LIB_OBJ) $(B)/exports.map
	$(call say,LINK)$(CC) $(SANFLAGS) $(LIB_LDFLAGS) $(LDFLAGS) -Wl,--version-script=$(B)/exports.map -o $@ $(LIB_OBJ) $(LIB_LIBS)

$(B)/obj/lib/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LIB_CFLAGS) -c -o $@ $<
# dlsym and dlopen must leave by a tail jump: always optimised
$(B)/obj/lib/preload/dl.o: ALL_CFLAGS += -O2 -fno-sanitize=all

$(B)/obj/cli/%.o: %.c
	$(call need,JANSSON_LIBS,jansson,libjansson-dev)
	$(call need,LZMA_LIBS,liblzma,liblzma-dev)
	$(call need,IBERTY_LIBS,libiberty,libiberty-dev)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CPPFLAGS) $(JANSSON_CFLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(B)/obj/test/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CPPFLAGS) -DGT_TEST_CLOCK $(ALL_CFLAGS) -c -o $@ $<

$(TESTPRELOAD): $(TESTPRELOAD_OBJ)
	$(call say,AR)rm -f $@ && $(AR) rcs $@ $^

$(B)/tests/%: tests/unit/%.c $(TESTCORE_OBJ) $(REPORT_LIB_OBJ) $(TESTPRELOAD)
	$(call need,CHECK_LIBS,check,check)
	@mkdir -p $(@D)
	$(call say,TEST)$(CC) $(CPPFLAGS) -DGT_TEST_CLOCK $(JANSSON_CFLAGS) $(CHECK_CFLAGS) $(ALL_CFLAGS) -MF $@.d -o $@ $< $(TESTPRELOAD) $(TESTCORE_OBJ) $(REPORT_LIB_OBJ) $(CHECK_LIBS) $(CLI_LIBS) -pthread

$(B)/apps/%: tests/apps/%.c
	@mkdir -p $(@D)
	$(call say,APP)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -Iinclude $(addprefix -isystem ,$(NVTX_INCLUDE)) $(SANFLAGS) -O1 -g $(APPFLAGS_$*) -MMD -MP -MF $@.d -o $@ $< -pthread -ldl -lm $(APPLIBS_$*)
$(B)/apps/%: tests/apps/%.cpp
	@mkdir -p $(@D)
	$(call say,APP)$(CXX) -std=c++17 $(WARN) -Iinclude $(addprefix -isystem ,$(NVTX_INCLUDE)) $(SANFLAGS) -O1 -g $(APPFLAGS_$*) -MMD -MP -MF $@.d -o $@ $< -pthread -ldl $(APPLIBS_$*)
-include tests/sim/flags.mk
-include tests/apps/flags.mk
-include tests/sim/cudart/build.mk

# The parts of the maze that the stack suites walk through, named maze-COMPILER-LEVEL-POINTER.so: each
# compiler that is here, with and without optimisation and frame pointers. No sanitizer.
define maze
$(PLAIN)/stack/maze-$(1)-$(2)-$(3).so: tests/stack/maze.cpp tests/stack/maze.h
	@mkdir -p $$(@D)
	$$(call say,MAZE)$(1) -std=c++17 -D_GNU_SOURCE $(WARN) -I. -$(2) $(4) -g -shared -fPIC -o $$@ $$<
MAZE += $(PLAIN)/stack/maze-$(1)-$(2)-$(3).so
endef
$(foreach c,g++ clang++,$(if $(shell command -v $c 2>/dev/null),$(foreach o,O0 O2 O3,\
    $(eval $(call maze,$c,$o,fp,-fno-omit-frame-pointer))$(eval $(call maze,$c,$o,nofp,-fomit-frame-pointer)))))

# The files that the suites of symbols read.
$(PLAIN)/symbols/made: $(wildcard tests/symbols/*)
	$(call say,FILES)tests/symbols/make $(@D)

# A build with a sanitizer has links to the folders of the plain one.
.PHONY: parts
parts: $(MAZE) $(PLAIN)/symbols/made
	@$(if $(SAN),for d in stack symbols; do [ -L $(B)/$$d ] || { rm -rf $(B)/$$d; mkdir -p $(B); ln -s ../$$d $(B)/$$d; }; done)
$(foreach t,stack stack_threads symbols symbols_hostile lines,$(B)/tests/test_$t): | parts

$(B)/tests/pywalk.so: tests/python/walk.c $(PYWALK_OBJ)
	@mkdir -p $(@D)
	$(call say,TEST)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LIB_CFLAGS) -MF $@.d -shared -o $@ $< $(PYWALK_OBJ) -pthread $(LIB_LIBS)

$(B)/bench/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(call say,BENCH)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -Iinclude $(addprefix -isystem ,$(NVTX_INCLUDE)) -O2 -g -MMD -MP -MF $@.d -o $@ $< -pthread -ldl -lm

# has the stub driver that the client programs have
$(B)/bench/launch: $(B)/apps/cuda/libcuda.so.1

# the unwinder as the library has it, in a program
$(B)/bench/stack: tests/bench/stack.c $(STACK_OBJ)
	@mkdir -p $(@D)
	$(call say,BENCH)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -I. -O2 -g -MMD -MP -MF $@.d -o $@ $< $(STACK_OBJ) -ldl

# a whole hooked call, likewise
CORE_OBJ := $(patsubst %.c,$(B)/obj/lib/%.o,$(CORE_SRC))
$(B)/bench/hooked: tests/bench/hooked.c $(CORE_OBJ)
	@mkdir -p $(@D)
	$(call say,BENCH)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -I. -O2 -g -MMD -MP -MF $@.d -o $@ $< $(CORE_OBJ) -pthread -ldl

# the report's table of functions, in a program
$(B)/bench/symbols: tests/bench/symbols.c $(REPORT_LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,BENCH)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -I. -O2 -g -MMD -MP -MF $@.d -o $@ $< $(REPORT_LIB_OBJ) $(CLI_LIBS)

unit: $(UNIT) $(B)/tests/pywalk.so ## the Check suites, not run
apps: $(APPS) $(if $(SAN),,sim) ## the client programs of the end-to-end tests

# Prints `N passed, N failed, N skipped` over the Check suites and pytest, and fails if one failed.
check: all unit apps ## unit suites and end-to-end tests; SAN=address,undefined or SAN=thread with sanitizers
	@scripts/run-tests $(B) '$(SAN)' $(PYTHON)

check-aarch64: ## the suites of core, built for aarch64 and run by qemu-user, where both are here
	@scripts/check-aarch64 $(B)

# Versions that are not here come from Debian, into build/pythons; ALL=1: Debian's of all
check-pythons: $(B)/tests/pywalk.so ## the walk over Python frames, in every Python from 3.9 to 3.14
	@scripts/check-pythons $(B)

lint: ## clang-format, clang-tidy, cppcheck, shellcheck
	@scripts/lint

# Quoted: a prefix may have a blank.
DEST = $(DESTDIR)$(PREFIX)
MAN := $(wildcard docs/*.1)
HEADERS := $(wildcard include/*.h)
COMPLETION := share/bash-completion/completions
install: all ## to PREFIX (/usr/local), below DESTDIR if set
	install -d "$(DEST)/bin" "$(DEST)/lib/gputally" "$(DEST)/lib/pkgconfig" "$(DEST)/include" \
	    "$(DEST)/share/man/man1" "$(DEST)/$(COMPLETION)"
	install -m 755 $(B)/gputally "$(DEST)/bin"
	install -m 755 $(B)/libgputally.so "$(DEST)/lib/gputally"
	install -m 644 $(HEADERS) "$(DEST)/include"
	install -m 644 $(MAN) "$(DEST)/share/man/man1"
	install -m 644 scripts/completions/gputally "$(DEST)/$(COMPLETION)"
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' gputally.pc.in > "$(DEST)/lib/pkgconfig/gputally.pc"

uninstall: ## what install put there, with the same PREFIX and DESTDIR
	rm -f "$(DEST)/bin/gputally" "$(DEST)/lib/gputally/libgputally.so" "$(DEST)/lib/pkgconfig/gputally.pc" \
	    "$(DEST)/$(COMPLETION)/gputally"
	for f in $(notdir $(HEADERS)); do rm -f "$(DEST)/include/$$f"; done
	for f in $(notdir $(MAN)); do rm -f "$(DEST)/share/man/man1/$$f"; done
	[ ! -d "$(DEST)/lib/gputally" ] || rmdir "$(DEST)/lib/gputally"

bench: all $(BENCH) ## what a range costs, as ratios and instructions
	$(Q)B=$(B) scripts/bench
	$(Q)B=$(B) scripts/bench-torch

clean: ## removes the build folder
	rm -rf $(B)

# build/torch and build/pythons hold others' folders of such names
-include $(shell test -d $(B) && find $(B) \( -name torch -o -name pythons \) -prune -o -type f -name '*.d' -print)
