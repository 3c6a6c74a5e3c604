/* The session file: the one contract between the injected library, which writes it, and the report
 * house, which reads it. One mmapped file per process; every offset in it is a gt_ref.
 *
 * A reader may open the file while the process runs or after it was killed at any instruction:
 *   - everything reachable is append-only; a record's fixed fields are written before the
 *     store-release that makes it reachable (list head, node_count, depth);
 *   - counters of a node are written by one thread only, inside an odd/even bump of gt_slot.seq;
 *   - a reader believes nothing: it checks every ref, count and index against the file's size.
 *
 * Times are raw clock ticks (gt_header.clock says which clock); gt_pair converts them. */
#ifndef GT_LAYOUT_H
#define GT_LAYOUT_H

#include <stdint.h>

#define GT_MAGIC "GPUTALLY"
#define GT_LAYOUT_VERSION 4u

/* Offset in the file divided by GT_ALIGN; 0 means "none" (the header lies there). */
typedef uint32_t gt_ref;
#define GT_ALIGN 8u

#define GT_HEADER_BYTES 4096u

enum gt_clock_kind {
    GT_CLOCK_TSC = 1,       /* x86-64 time-stamp counter */
    GT_CLOCK_CNTVCT = 2,    /* aarch64 virtual counter */
    GT_CLOCK_MONOTONIC = 3, /* CLOCK_MONOTONIC_RAW, ticks are ns */
};

/* gt_header.state. RUNNING stays when the process was killed: whether it lives is told by its pid
 * and start time, not by this word. */
enum gt_state {
    GT_STATE_NEW = 0,     /* header not complete yet */
    GT_STATE_RUNNING = 1, /* being written */
    GT_STATE_ENDED = 2,   /* closed in order: `end` is valid, nothing is written any more */
    GT_STATE_EXEC = 3,    /* the process went on as another program; `end` is not valid */
};

/* Reasons why calls are not in the tree; gt_header.lost[] counts them. */
enum gt_lost {
    GT_LOST_MEMORY = 0, /* no memory for the thread's slot */
    GT_LOST_NESTED = 1, /* called from inside one of our own calls (a signal handler) */
    GT_LOST_DEEP = 2,   /* pushed deeper than GT_MAX_DEPTH */
    GT_LOST_LATE = 3,   /* after our destructor, in another library's */
    GT_LOST_KINDS = 8,
};

enum gt_source {
    GT_SOURCE_NONE = 0,
#define SOURCE(id, number, word, help) GT_SOURCE_##id = number,
#include "core/sources.def"
#undef SOURCE
    GT_SOURCES = 32,
};

#define GT_MAX_DEPTH 65536u     /* open ranges of one thread; deeper pushes are counted, not kept */
#define GT_MAX_NODES (1u << 28) /* a ring record has 28 bits for the node */
#define GT_RECORD_NODE(record) ((record) & (GT_MAX_NODES - 1))

/* A point that both clocks saw: (ticks, CLOCK_MONOTONIC_RAW in ns). */
struct gt_pair {
    uint64_t ticks;
    uint64_t mono_ns;
};

/* Interned text. Immutable. `text` is NUL-terminated, zero-padded to GT_ALIGN and may hold any byte
 * but NUL, unless the header says that the field is a NUL-separated list; then `len` rules. */
struct gt_str {
    uint32_t len;
    uint32_t hash;
    gt_ref next; /* writer's hash chain: readers ignore it */
    char text[];
};

/* A name that the program gave to something. Linked from gt_header.names, newest first. */
enum gt_name_kind { GT_NAME_CATEGORY = 1, GT_NAME_THREAD = 2 };
struct gt_name {
    gt_ref next;
    gt_ref text;
    gt_ref domain; /* of a category; 0: default domain */
    uint32_t kind;
    uint32_t source;
    uint32_t id; /* category number, or OS thread id */
};

/* ---- stacks: a trie of frames for each slot (core/trie.h writes it) ---- */

/* Ids below GT_TRIE_FIRST are no frames, but what lies below the outermost one. */
enum gt_trie_root {
    GT_TRIE_ROOT = 0,      /* nothing: the stack is whole. As a stack's id: no stack */
    GT_TRIE_OTHER = 1,     /* stacks for which there was no memory, or too many of one node */
    GT_TRIE_TRUNCATED = 2, /* more frames than the limit */
    GT_TRIE_CUT = 3,       /* more frames, but no way to tell where they are */
    GT_TRIE_FIRST = 4,
};

/* What a node's pc says. Plain: a return address, so the call is the instruction before it. */
#define GT_TRIE_EXACT (UINT64_C(1) << 63)  /* the address of an instruction that was interrupted */
#define GT_TRIE_PYTHON (UINT64_C(1) << 62) /* no address: a line of Python, see the next four */
#define GT_TRIE_ENTRY                                                                              \
    (UINT64_C(1) << 61) /* outermost frame of its call of the interpreter's loop */
#define GT_TRIE_LINE(pc) ((uint32_t)((pc) >> 32) & 0xffffffu) /* 0: not known */
#define GT_TRIE_CODE(pc) ((gt_ref)(pc))                       /* its struct gt_code */
#define GT_TRIE_PYTHON_PC(code, line) (GT_TRIE_PYTHON | (uint64_t)((line)&0xffffffu) << 32 | (code))

/* A frame below its caller's: stacks that begin alike share their beginning. */
struct gt_trie_node {
    uint64_t pc;     /* 0 for ids below GT_TRIE_FIRST */
    uint32_t parent; /* id of the caller, smaller than its own */
    uint32_t module; /* id of the struct gt_module that pc lies in; 0: none, or not known */
};

/* Nodes `first` to `first + capacity - 1`; how many there are is told by gt_slot.stack_count. */
struct gt_trie_chunk {
    gt_ref next; /* 0: none */
    uint32_t first;
    uint32_t capacity;
    uint32_t reserved;
    struct gt_trie_node nodes[];
};

/* A code object of Python. Immutable. */
struct gt_code {
    gt_ref file; /* co_filename */
    gt_ref name; /* co_qualname, co_name before Python 3.11 */
    uint32_t first_line;
};

/* A file that was mapped while a stack went through it. Immutable, linked from gt_header.modules,
 * newest first. One that was unloaded and loaded again is another. */
#define GT_BUILD_ID_MAX 32u
struct gt_module {
    gt_ref next;
    uint32_t id;             /* 1, 2, 3, … */
    gt_ref path;             /* as the loader has it; the program itself: its executable */
    uint32_t build_id_bytes; /* 0: it has none */
    uint64_t bias;           /* address - bias is the address in the file (ELF virtual address) */
    uint64_t start, end;     /* of its mappings */
    uint8_t build_id[GT_BUILD_ID_MAX];
};

/* ---- what devices did: kernels, copies, sets ---- */

enum gt_activity_kind { GT_ACTIVITY_KERNEL = 1, GT_ACTIVITY_COPY = 2, GT_ACTIVITY_SET = 3 };
enum gt_device_type { GT_DEVICE_CUDA = 1, GT_DEVICE_XPU = 2 };
enum gt_activity_flags {
    GT_ACTIVITY_LEGACY = 1, /* timed by a pair of events, not by the device's own records */
    GT_ACTIVITY_FOLDED = 2, /* stands for many sizes of launches */
};
#define GT_ACTIVITY_NOBODY UINT32_MAX /* slot: who launched it is not known */

/* How a kernel was launched. */
struct gt_launch {
    uint32_t grid[3], block[3];
    uint32_t shared_static, shared_dynamic; /* bytes of a block */
    uint32_t registers;                     /* of a thread */
};

/* All activities of one kind and name that one place in one slot's tree launched. Two cache
 * lines. */
struct gt_activity {
    /* immutable once activity_count covers it */
    uint32_t slot;   /* gt_slot.id; GT_ACTIVITY_NOBODY */
    uint32_t node;   /* index there */
    gt_ref name;     /* of a kernel as the linker knows it, else "Memcpy HtoD" and the like */
    uint32_t device; /* number, of its kind of device */
    uint8_t kind;    /* enum gt_activity_kind */
    uint8_t source;  /* enum gt_source: whose API */
    uint8_t flags;   /* enum gt_activity_flags */
    uint8_t type;    /* enum gt_device_type */
    struct gt_launch launch; /* of kernels; all 0: many */
    /* counters */
    uint64_t count;
    uint64_t total_ns, min_ns, max_ns; /* from start to end on the device; min UINT64_MAX at 0 */
    double sumsq_ns2;
    uint64_t bytes;
    uint64_t
        delays; /* how many of them tell how long they waited from their launch to their start */
    uint64_t delay_ns, delay_max_ns;
};

struct gt_activity_chunk {
    gt_ref next;
    uint32_t first, capacity; /* as in gt_node_chunk */
    uint32_t reserved[13];
    struct gt_activity activities[];
};

enum gt_node_kind {
    GT_KIND_ROOT = 0,    /* index 0 of every slot: never counted */
    GT_KIND_RANGE = 1,   /* push/pop on one thread */
    GT_KIND_ASYNC = 2,   /* start/end: child of the root, self time 0 */
    GT_KIND_MARK = 3,    /* an instant: count only */
    GT_KIND_COUNTER = 4, /* sampled values: see gt_extra */
};

/* PyTorch's RecordScope, as far as we use it. USER marks a row as the user's annotation. */
enum gt_scope { GT_SCOPE_FUNCTION = 0, GT_SCOPE_BACKWARD = 1, GT_SCOPE_USER = 7 };

enum gt_node_flags {
    GT_NODE_FOLDED = 1, /* stands for many names: a template, "other shapes" or "(other)" */
};

/* Values seen at a node: NVTX payloads or a counter's samples. */
struct gt_extra {
    uint64_t count;
    double sum, min, max, last;
};

/* What only some nodes have: memory that PyTorch reported, and what it calls duplicates. By enum
 * gt_memory_kind; bytes allocated minus freed. */
enum gt_memory_kind { GT_MEMORY_CPU = 0, GT_MEMORY_DEVICE = 1, GT_MEMORY_KINDS = 2 };
struct gt_op_stats {
    int64_t self_memory[GT_MEMORY_KINDS]; /* while it was the innermost range */
    int64_t memory[GT_MEMORY_KINDS];      /* inside its counted calls; of operators only */
    /* calls that are not in the node's counters, because they were the only child of an operator of
     * the same name: their children are the parent's, their self time and memory are too */
    uint64_t dup_count, dup_ticks, dup_self_ticks;
};

/* One place in a thread slot's calling context tree: (parent, source, domain, category, kind, key,
 * shapes, stack). 128 bytes, two cache lines: who it is, and what it counted. */
struct gt_node {
    /* immutable once node_count covers it */
    uint32_t parent; /* index in this slot, smaller than its own; the root is its own parent */
    gt_ref key;
    gt_ref domain;     /* 0: the source's default domain */
    uint32_t category; /* 0: none */
    gt_ref shapes;     /* text "[[2, 3], []]"; 0: not recorded */
    gt_ref overload;   /* operator overload; 0: none */
    uint32_t stack;    /* native frames: id in the slot's trie; 0: none */
    uint8_t source;    /* enum gt_source */
    uint8_t kind;      /* enum gt_node_kind */
    uint8_t scope;     /* enum gt_scope, or another RecordScope id */
    uint8_t flags;     /* enum gt_node_flags */
    /* counters */
    uint64_t count;
    uint64_t failed;
    uint64_t self_ticks;
    uint64_t total_ticks;
    uint64_t min_ticks; /* UINT64_MAX while count is 0 */
    uint64_t max_ticks;
    double sumsq_ticks; /* sum of squared durations, for the standard deviation */
    uint64_t bytes;
    uint64_t flops;
    gt_ref extra;    /* struct gt_extra, 0: none */
    gt_ref op;       /* struct gt_op_stats, 0: none */
    uint32_t python; /* Python frames: id in the slot's trie; 0: none. Immutable like `stack` */
    uint32_t reserved[1];
    int64_t driver_memory; /* bytes that its calls got from a device's driver, minus given back */
};

/* Nodes of a slot lie in chunks; chunk 0 holds indices 0..capacity-1, the next goes on from there.
 */
struct gt_node_chunk {
    gt_ref next;
    uint32_t first;    /* index of nodes[0] */
    uint32_t capacity; /* nodes in this chunk; how many are valid is told by gt_slot.node_count */
    uint32_t reserved[13];
    struct gt_node nodes[];
};

enum gt_frame_flags {
    GT_FRAME_STEP = 2,   /* a range of GPUTALLY_WINDOW=range=NAME */
    GT_FRAME_IN = 4,     /* one that holds the window open */
    GT_FRAME_SILENT = 1, /* opened while paused, or inherited over fork: closes without counting */
};

/* An ended call of an operator that may turn out to be a duplicate: it is the only child so far of
 * one of the same name. Not in its node's counters yet. If it stays the only child it never gets
 * there: see struct gt_op_stats. */
struct gt_held {
    void *link; /* the writer's own */
    uint64_t ticks, self_ticks, flops;
    int64_t memory[GT_MEMORY_KINDS], self_memory[GT_MEMORY_KINDS];
    uint64_t count;  /* not 0: it is being counted, its node has so many calls then */
    uint32_t record; /* as in gt_frame; 0: nothing is held. Written last */
    uint32_t reserved;
};

/* An open range. `link` is the writer's own pointer and means nothing to a reader. */
struct gt_frame {
    uint64_t t0;
    uint64_t kid_ticks; /* time of the children that have ended; see GT_FRAME_CLOSING */
    uint64_t token;     /* tells objects of one source apart; 0 for ranges */
    void *link;
    /* of PyTorch's operators, else 0. Memory: while it was the innermost operator, and what its
     * children had. While `held` is set, an operator right above is the held one, being closed. */
    int64_t self_memory[GT_MEMORY_KINDS], kid_memory[GT_MEMORY_KINDS];
    uint64_t flops;
    struct gt_held held;
    uint32_t kids; /* operators that were opened right above it */
    /* the writer's own: of a backward operator and all in it, the stack of the forward one */
    uint32_t forward;
    uint32_t record; /* kind << 28 | node index, as in the ring */
    uint32_t group;  /* source << 24 | domain id: what a pop must match */
    uint32_t level;  /* open frames of the same group below */
    uint32_t flags;
};

/* While a frame is being closed its kid_ticks is minus the number of calls that its node will have
 * counted then. So the reader of a killed process knows what to do with it: if the node has that
 * many, the frame has been counted already. */
#define GT_FRAME_CLOSING(f) ((int64_t)(f)->kid_ticks < 0)

#define GT_FRAMES_PER_BLOCK 46u
struct gt_frame_block {
    gt_ref next; /* block with the deeper frames; kept when the depth falls */
    uint32_t reserved;
    struct gt_frame frames[GT_FRAMES_PER_BLOCK];
};

/* An open start/end range; lives in the slot that started it, freed by whoever ends it. */
/* ENDING: claimed by the thread that ends it, not counted yet: to a reader still open. */
enum gt_async_state { GT_ASYNC_FREE = 0, GT_ASYNC_OPEN = 0xa5, GT_ASYNC_ENDING = 0x5a };
struct gt_async {
    uint64_t t0;
    gt_ref key; /* while free: the writer's own link */
    gt_ref domain;
    uint32_t domain_id;
    uint32_t category;
    uint32_t generation; /* part of the id: an old id finds another number */
    uint8_t source;
    uint8_t scope;
    uint8_t state; /* enum gt_async_state */
    uint8_t reserved;
    gt_ref slot;     /* whose it is */
    uint32_t window; /* number of the window it was started in */
};

#define GT_ASYNCS_PER_BLOCK 64u
struct gt_async_block {
    gt_ref next;
    uint32_t reserved;
    struct gt_async entries[GT_ASYNCS_PER_BLOCK];
};

/* One finished range in the ring: 16 bytes. A duration over 32 bits is GT_RING_ESCAPE there and the
 * next record holds it: kind GT_RING_EXTENSION, t0 = the duration. */
#define GT_RING_ESCAPE 0xffffffffu
enum gt_ring_kind {
    GT_RING_EMPTY = 0,
    GT_RING_RANGE = 1,
    GT_RING_ASYNC = 2,
    GT_RING_MARK = 3,
    GT_RING_EXTENSION = 15
};
struct gt_record {
    uint64_t t0;
    uint32_t dur;
    uint32_t kind_node; /* kind << 28 | node index */
};

#define GT_ALLOCATION_BUSY UINT64_MAX /* address of a place that is being written */

/* A block that a device's driver gave out and that was not given back yet. */
struct gt_allocation {
    _Atomic uint64_t address; /* or handle, which may be small; 0: a free place */
    uint64_t bytes;
    uint32_t slot, node; /* the call that it came from; UINT32_MAX: nothing was recorded then */
    uint32_t device;     /* number */
    uint32_t source;     /* enum gt_source */
    /* what it goes with if nobody frees it, by the source's own number; 0: nothing */
    _Atomic uint64_t owner;
};

#define GT_ALLOCATIONS 16384u
#define GT_MEMORY_DEVICES 16u /* the last one stands for all behind it */
struct gt_device_memory {
    _Atomic int64_t live, peak;                        /* bytes, of blocks that are followed */
    _Atomic uint64_t allocations, frees, not_followed; /* the last: no place in the table */
};
struct gt_memory_table {
    struct gt_device_memory devices[GT_MEMORY_DEVICES];
    uint32_t capacity; /* places, a power of two */
    uint32_t reserved;
    struct gt_allocation entries[];
};

enum gt_slot_state { GT_SLOT_FREE = 0, GT_SLOT_LIVE = 1 };

/* Everything one thread (and, after its end, the next one) records. Linked from gt_header.slots. */
struct gt_slot {
    /* fixed */
    gt_ref next;
    uint32_t id;            /* 0, 1, 2, … in order of creation */
    gt_ref chunks;          /* first gt_node_chunk */
    gt_ref frames;          /* first gt_frame_block */
    gt_ref ring;            /* gt_record[ring_records]; 0: no memory for one */
    uint32_t ring_records;  /* a power of two */
    _Atomic gt_ref asyncs;  /* first gt_async_block, 0: none */
    _Atomic uint32_t state; /* enum gt_slot_state */
    /* who uses it now, or used it last */
    char name[16];
    uint32_t tid;
    uint32_t threads; /* how many threads have used it so far */
    /* written by the owner */
    _Atomic uint64_t seq; /* odd while a node is being updated */
    /* A call without a frame (a mark, a start/end range, a sample) that is being counted when seq
     * is odd: commit_node will have counted commit_count calls; if it has not yet, one is missing.
     * commit_count 0: none. Where the call is a start/end range, commit_async is its gt_async:
     * while that is not free the range still is an open one and nothing is missing. Frames tell for
     * themselves (GT_FRAME_CLOSING); when one leaves from below others and these are moved down,
     * two neighbours may be the same for a moment. */
    uint64_t commit_count;
    uint32_t commit_node;
    gt_ref commit_async;
    _Atomic uint32_t node_count;
    _Atomic uint32_t depth; /* open frames */
    _Atomic uint64_t
        ring_head;       /* records written so far; the newest is ring[(ring_head - 1) % n] */
    struct gt_pair last; /* refreshed whenever the ring wraps */
    /* what could not be measured as asked */
    uint64_t unbalanced; /* pops and ends that matched nothing */
    uint64_t overlapped; /* ranges that ended while younger ones, not silent, were open */
    uint64_t folded;     /* calls counted under a folded name */
    uint64_t clamped;    /* negative durations, counted as 0 */
    uint64_t inherited;  /* frames that were open over a fork */
    uint64_t left_open;  /* ranges still open when their thread ended: closed and counted then */
    uint64_t silent;     /* pushes, starts, marks while paused */
    uint64_t duplicates; /* ranges that another source records too, and better */
    uint64_t cut;        /* ranges that were open when the window was shut: counted up to then */
    uint64_t excluded;   /* calls left out by INCLUDE and EXCLUDE */
    _Atomic gt_ref async_free; /* entries that others ended: the writer's own list */
    uint32_t window;           /* windows that were shut when it was last used: see gt_header */
    /* stacks */
    _Atomic gt_ref stacks;        /* first gt_trie_chunk; 0: none */
    _Atomic uint32_t stack_count; /* nodes of the trie, the roots counted */
    uint32_t reserved;
    uint64_t stack_missing;              /* calls without the stack that was asked for: no memory */
    uint64_t stack_truncated, stack_cut; /* captures: see enum gt_trie_root */
    uint64_t stack_folded;               /* calls counted under "other stacks" of their node */
};

#define GT_WINDOW_ENDS 64u

/* Page 0. Strings are gt_refs to gt_str; a missing one is 0. */
struct gt_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    _Atomic uint32_t state;    /* enum gt_state */
    _Atomic uint32_t finisher; /* pid that turns this session into a report now; 0: none */
    uint64_t size_bytes;       /* length of the mapping; the file may be sparse */
    _Atomic uint64_t used_bytes;
    /* the process */
    uint32_t pid, ppid;
    uint64_t start_time; /* /proc/PID/stat field 22, clock ticks since boot */
    uint64_t pid_ns;     /* inode of its pid namespace */
    char boot_id[40];    /* /proc/sys/kernel/random/boot_id */
    gt_ref exe;          /* path */
    gt_ref argv;         /* NUL-separated */
    gt_ref cwd;          /* at the start of the process */
    gt_ref host;
    gt_ref config;        /* NUL-separated NAME=VALUE of every GPUTALLY_ variable that was set */
    gt_ref output;        /* GPUTALLY_OUTPUT with %q{VAR} and %r already expanded, rest as given */
    gt_ref library;       /* path of the library that wrote this */
    int32_t rank;         /* -1: none */
    uint32_t sequence;    /* sessions of this process (fork child: 0; after exec: 1, 2, …) */
    uint32_t crash_safe;  /* 0: lived in private memory, came through a pipe */
    uint32_t stderr_same; /* at the end: fd 2 still was the file it was at the start */
    /* the clock */
    uint32_t clock;       /* enum gt_clock_kind */
    uint32_t memory_full; /* GPUTALLY_MEMORY (or the disk) ran out at some time */
    struct gt_pair start;
    struct gt_pair end;
    uint64_t start_realtime_ns; /* CLOCK_REALTIME at `start` */
    /* lists */
    _Atomic gt_ref slots;
    _Atomic gt_ref names;
    _Atomic gt_ref modules;    /* struct gt_module */
    _Atomic gt_ref activities; /* first gt_activity_chunk; entry 0 is for what has no other place */
    _Atomic uint32_t activity_count;
    _Atomic uint64_t activity_seq;  /* odd while one is being updated */
    uint64_t activities_nobodys;    /* activities whose launch is not known */
    uint64_t activities_lost;       /* that the device's own tool says it lost */
    _Atomic uint64_t launches_open; /* launches whose activity has not come yet */
    _Atomic uint32_t slot_count;
    gt_ref base; /* folder that relative outputs are meant from; 0: cwd */
    _Atomic uint64_t lost[GT_LOST_KINDS];
    /* Written by the first who makes a report of a process that has no `end`: the second point of
     * its clock. Kept here because the files of a second try, after the first was killed, must be
     * the same. */
    struct gt_pair seen;
    uint32_t seen_death; /* 1: `seen` is when the process ended, as its parent `run` saw it */
    uint32_t call_ps;  /* likewise written once: what a range costs here, in ps. 0: not known yet */
    uint64_t image[2]; /* the kernel's AT_RANDOM: another one after each exec */
    /* GPUTALLY_WINDOW. A slot whose `window` is smaller than window_shuts had no call since then:
     * its open ranges and start/end ranges end at window_ends[window]. */
    uint64_t window_since;         /* when it was opened; 0: it is shut */
    uint64_t window_ticks;         /* how long it was open before */
    uint64_t window_shut_ns;       /* CLOCK_MONOTONIC_RAW at which it shuts; 0: not by time */
    _Atomic uint32_t window_shuts; /* how often it was shut */
    _Atomic gt_ref memory;         /* struct gt_memory_table; 0: no driver gave any */
    uint64_t window_ends[GT_WINDOW_ENDS]; /* when, by number modulo; the latest ones */
};

_Static_assert(sizeof(struct gt_node) == 128, "two cache lines");
_Static_assert(sizeof(struct gt_activity) == 128, "two cache lines");
_Static_assert(sizeof(struct gt_activity_chunk) == 64, "keeps them aligned");
_Static_assert(sizeof(struct gt_node_chunk) == 64, "keeps the nodes aligned");
_Static_assert(sizeof(struct gt_frame) == 176, "no padding");
_Static_assert(sizeof(struct gt_record) == 16, "no padding");
_Static_assert(sizeof(struct gt_header) <= GT_HEADER_BYTES, "fits page 0");

#endif
