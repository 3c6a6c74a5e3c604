/* The model: what one or more processes recorded, as flat arrays. Loaders append to it (load.c,
 * load_json.c), group.c and the writers only read. Times are int64 ns unless a name says otherwise.
 * Indices are positions in the arrays; -1 or, for strings, 0 means "none". Single thread. */
#ifndef GT_MODEL_H
#define GT_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Id of an interned string; 0 is "". Every string is valid UTF-8 without NUL: bad bytes were
 * replaced by U+FFFD when it came in, so no writer has to look. */
typedef uint32_t gt_text;
/* Every model knows these. */
enum { GT_TEXT_NONE, GT_TEXT_TOTAL /* "Total" */, GT_TEXT_NO_SHAPES /* "[]" */ };

enum gt_device { GT_CPU, GT_CUDA, GT_XPU, GT_PRIVATEUSE1, GT_DEVICES };
extern const char *const gt_device_names[GT_DEVICES];
extern const char *const gt_use_devices[GT_DEVICES]; /* PyTorch's use_device; NULL for the CPU */

/* What could not be measured as asked, a process: X(name). In JSON under the same names. */
/* clang-format off */
#define GT_LOST_NAMES(X) \
    X(memory) X(nested) X(deep) X(late) X(unbalanced) X(overlapped) X(folded) X(clamped) \
    X(inherited) X(left_open) X(cut) X(silent) X(duplicates) X(torn) \
    X(unattributed) X(device_records) X(unfinished) \
    X(stack_missing) X(stack_truncated) X(stack_cut) X(stack_folded)
/* clang-format on */
enum gt_lost_index {
#define X(name) GT_LOST_INDEX_##name,
    GT_LOST_NAMES(X)
#undef X
        GT_LOST_INDICES
};
extern const char *const gt_lost_names[GT_LOST_INDICES];

enum gt_ended { GT_ENDED_EXIT, GT_ENDED_EXEC, GT_ENDED_KILLED, GT_ENDED_RUNNING, GT_ENDED_KINDS };
extern const char *const gt_ended_names[GT_ENDED_KINDS];

/* Values of a payload or a counter; all zero when count is 0. */
struct gt_values {
    int64_t count;
    double sum, min, max, last;
};

/* A named value, of one of the kinds that TVM's Report knows: what a row, a device or a
 * configuration has beside the fields of this model. */
enum gt_metric_kind {
    GT_METRIC_COUNT,
    GT_METRIC_MICROSECONDS,
    GT_METRIC_PERCENT,
    GT_METRIC_RATIO,
    GT_METRIC_STRING,
    GT_METRIC_KINDS
};
extern const char *const gt_metric_names[GT_METRIC_KINDS]; /* "count", … as in TVM's JSON */

struct gt_metric {
    gt_text name;
    uint8_t kind;  /* enum gt_metric_kind */
    gt_text text;  /* STRING */
    int64_t count; /* COUNT */
    double real;   /* the other kinds; finite */
};

struct gt_list {
    uint32_t first, count; /* in gt_model.lists, of metrics in gt_model.metrics */
};

/* Lists of positions in frames, innermost first. Texts of a list of events are `python`. */
struct gt_stack {
    struct gt_list python, native;
    struct gt_list shown; /* what views show; set by gt_stacks_show */
};

/* ---- stacks ---- */

/* A file that native frames lie in. */
struct gt_stack_module {
    gt_text path;
    gt_text build_id; /* lower-case hex, "" if it has none */
    uint8_t no_names; /* enum gt_no_names of report/symbols.h; see gt_stacks_no_names */
};

enum gt_stack_kind {
    GT_STACK_IS_PYTHON, /* function, file, line */
    GT_STACK_IS_NATIVE, /* module and offset; function where it is known, file and line by --lines
                         */
    GT_STACK_IS_TEXT,   /* function: the whole text, of a list of events */
    GT_STACK_IS_NOTE,   /* function: "(truncated)", "(cut)", "(other stacks)" */
    GT_STACK_KINDS
};
extern const char *const gt_no_names[]; /* of JSON, by enum gt_no_names; the first is NULL */
extern const char *const gt_stack_kinds[GT_STACK_KINDS]; /* "python", … as in JSON */

struct gt_stack_frame {
    uint8_t kind;    /* enum gt_stack_kind */
    uint8_t exact;   /* NATIVE: offset is that of an interrupted instruction, no return address */
    uint8_t entry;   /* PYTHON: outermost of one call of the interpreter's loop */
    uint8_t inlined; /* NATIVE: into the frame behind it */
    uint32_t line;   /* 0: not known */
    gt_text function, file;
    uint32_t module; /* NATIVE: 1 + position in modules; 0: not known */
    uint64_t offset; /* NATIVE: address in the module's file (ELF); without module the address */
    gt_text text;    /* what views show; set by gt_stacks_show */
};

enum gt_stack_form {
    GT_STACK_AUTO, /* Python frames where there are any, else native ones */
    GT_STACK_PYTHON,
    GT_STACK_NATIVE,
    GT_STACK_JOINED, /* native frames with the interpreter's replaced by Python's */
    GT_STACK_FORMS
};
extern const char *const gt_stack_forms[GT_STACK_FORMS]; /* "auto", … as for --stack */

enum gt_row_flags {
    GT_ROW_FOLDED = 1,     /* stands for many names */
    GT_ROW_ASYNC = 2,      /* start/end range: self 0 */
    GT_ROW_ANNOTATION = 4, /* a range that the user marked */
    GT_ROW_LEGACY = 8,     /* device time from event pairs */
    GT_ROW_TORN = 16,      /* the process was killed in the middle of an update */
    GT_ROW_REMOTE = 32,    /* of another host: PyTorch's is_remote */
    GT_ROW_FRAME = 64,     /* no call but a frame above some: only in what arrange.h makes */
};

/* How a kernel was launched, and how long its launches waited for their start. */
struct gt_launched {
    uint32_t grid[3], block[3], shared_static, shared_dynamic, registers;
    uint32_t device; /* number, among those of its kind */
    int64_t delays, delay_ns, delay_max_ns;
};

/* What is added up where several rows become one: fields of gt_row and gt_avg. */
#define GT_SUMMED(FIELD)                                                                           \
    FIELD(count);                                                                                  \
    FIELD(failed);                                                                                 \
    FIELD(self_ns);                                                                                \
    FIELD(total_ns);                                                                               \
    FIELD(self_device_ns);                                                                         \
    FIELD(device_ns);                                                                              \
    FIELD(bytes);                                                                                  \
    FIELD(flops);                                                                                  \
    FIELD(memory);                                                                                 \
    FIELD(self_memory);                                                                            \
    FIELD(device_memory);                                                                          \
    FIELD(self_device_memory);                                                                     \
    FIELD(driver_memory);                                                                          \
    FIELD(self_driver_memory);                                                                     \
    FIELD(leaked)

/* A place in a call tree. `kind` is enum gt_node_kind of core/layout.h (never ROOT). */
struct gt_row {
    int32_t parent;             /* row index, smaller than its own; -1: outermost */
    uint32_t thread;            /* index in threads */
    gt_text key, domain, label; /* label: what views show, `domain:key` */
    gt_text shapes, overload, category_name;
    uint32_t category;                   /* 0: none */
    uint32_t stack;                      /* 1 + position in stacks, 0: none */
    uint8_t source, kind, scope, device; /* device: enum gt_device */
    uint32_t flags;                      /* enum gt_row_flags */
    int64_t count, failed;
    int64_t self_ns, total_ns;
    int64_t min_ns, max_ns; /* 0 while count is 0 */
    double sumsq_ns2;       /* sum of squared durations */
    int64_t self_device_ns, device_ns;
    int64_t bytes, flops;
    int64_t memory, self_memory, device_memory, self_device_memory;
    /* what the device's driver gave, minus what it got back; how much of it was never given back */
    int64_t driver_memory, self_driver_memory, leaked;
    struct gt_values values;
    uint32_t launched;      /* of rows of a device: 1 + position in gt_model.launched; 0: none */
    struct gt_list metrics; /* of a process that is a TVM report: all its columns, as they came */
};

/* A thread slot: one thread after the other may have used it. */
struct gt_thread {
    uint32_t process;
    uint32_t slot;
    uint32_t tid;    /* who used it last */
    int64_t threads; /* how many used it */
    gt_text name;
    int64_t inside_ns; /* time inside outermost ranges */
};

struct gt_process {
    int64_t pid, ppid, start_time, sequence;
    gt_text boot_id, exe, cwd, host, library, output, clock;
    gt_text base;                /* where relative outputs are meant; of sessions only */
    struct gt_list argv, config; /* config: NAME=VALUE */
    int64_t rank;                /* -1: none */
    int64_t start_unix_ns, duration_ns;
    uint8_t ended; /* enum gt_ended */
    uint8_t memory_full, crash_safe, approximate;
    uint8_t tvm;             /* no process: a report of TVM, its calls are rows of one thread */
    struct gt_list settings; /* metrics: the configuration of a TVM report */
    uint8_t end_known; /* 0: killed or gone on by exec; it ends with the latest event it shows */
    uint8_t profile_memory; /* memory was asked for: its columns are shown, 0 or not */
    uint8_t device;         /* enum gt_device: the one in use as far as its rows don't tell */
    int64_t lost[GT_LOST_INDICES];
    int64_t recorded_ns; /* how long the window was open: all of it without GPUTALLY_WINDOW */
    double call_ns;      /* what a range costs where it was recorded, 0: not known */
    int64_t excluded;    /* calls left out by INCLUDE and EXCLUDE */
};

/* A range that was open at the end. Its time up to then is counted in `row`. */
struct gt_open {
    int32_t row;
    int64_t since_ns; /* after the start of the process */
};

/* What was measured of a whole device. */
struct gt_device_metrics {
    uint32_t process;
    gt_text device; /* "cpu0" */
    struct gt_list metrics;
};

struct gt_model {
    struct gt_process *processes;
    struct gt_thread *threads;
    struct gt_row *rows;
    struct gt_open *open;
    gt_text *lists;
    struct gt_metric *metrics;
    struct gt_device_metrics *devices;
    struct gt_stack *stacks;
    struct gt_stack_frame *frames;
    struct gt_stack_module *modules;
    struct gt_launched *launched;
    size_t process_count, thread_count, row_count, open_count, list_count;
    size_t metric_count, device_count;
    size_t process_room, thread_room, row_room, open_room, list_room;
    size_t metric_room, device_room;
    size_t stack_count, frame_count, module_count;
    size_t stack_room, frame_room, module_room;
    size_t launched_count, launched_room;
    uint32_t *stack_hash, *frame_hash, *module_hash;
    size_t stack_hash_size, frame_hash_size, module_hash_size;
    /* strings */
    struct gt_string *strings;
    size_t string_count, string_room;
    uint32_t *hash;
    size_t hash_size;
    char *scratch;
    size_t scratch_room;
};

void gt_model_init(struct gt_model *m);
void gt_model_fini(struct gt_model *m);

/* Interns `len` bytes (cut at a NUL). */
gt_text gt_model_text(struct gt_model *m, const char *text, size_t len);
gt_text gt_model_textz(struct gt_model *m, const char *text);
/* NUL-terminated; lives as long as the model. *len may be NULL. */
const char *gt_model_string(const struct gt_model *m, gt_text id, size_t *len);

/* Each appends a zeroed element; the pointer is good until the next append. */
struct gt_process *gt_model_process(struct gt_model *m);
struct gt_thread *gt_model_thread(struct gt_model *m);
struct gt_row *gt_model_row(struct gt_model *m);
struct gt_open *gt_model_open(struct gt_model *m);
struct gt_device_metrics *gt_model_device(struct gt_model *m);
struct gt_launched *gt_model_launched(struct gt_model *m);
/* Appends to *l, whose metrics must be the last ones. */
struct gt_metric *gt_model_metric(struct gt_model *m, struct gt_list *l);
void gt_model_list(struct gt_model *m, struct gt_list *l, gt_text text);

/* Stacks (stacks.c): each module, frame and stack is there once. The id of a module or stack is 1 +
 * its position, 0: none; that of a frame its position. Lists are innermost frame first. */
uint32_t gt_stacks_module(struct gt_model *m, const struct gt_stack_module *module);
uint32_t gt_stacks_frame(struct gt_model *m, const struct gt_stack_frame *frame);
uint32_t gt_stacks_add(struct gt_model *m, const uint32_t *python, size_t pythons,
                       const uint32_t *native, size_t natives);
/* A stack that is known by its texts alone. */
uint32_t gt_stacks_texts(struct gt_model *m, const gt_text *texts, size_t count);
/* By module why its functions have no names; 0 where one has, or where no frame lies in it. The
 * caller frees. */
uint8_t *gt_stacks_no_names(const struct gt_model *m);
/* For --lines: in every stack the frames of the list by[frame] stand for that frame from now on;
 * count 0: it stays. `by` has one for each frame there was when it was made. */
void gt_stacks_replace(struct gt_model *m, const struct gt_list *by, size_t count);

/* Sets what views show of all stacks (stacks_show.c). Called once all is loaded; without it they
 * show none but texts. */
void gt_stacks_show(struct gt_model *m, enum gt_stack_form form);
/* Takes the frames away whose text is one of `globs` (* ? and [], several with commas). */
void gt_stacks_hide(struct gt_model *m, const char *globs);
/* What is shown of a stack: positions in frames, at most the `most` innermost ones; 0: all. */
struct gt_list gt_stacks_shown(const struct gt_model *m, uint32_t stack, uint32_t most);
/* Its text of frame number i in such a list. */
gt_text gt_stacks_text(const struct gt_model *m, struct gt_list shown, uint32_t i);

/* Sets label from domain and key, and the times inside outermost ranges, of everything from these
 * positions on: loaders call it last. */
void gt_model_label(struct gt_model *m, struct gt_row *r);
void gt_model_finish(struct gt_model *m, size_t first_thread, size_t first_row);

/* 1 if the row is a timed call: a range or an async range that counted. */
int gt_row_counts(const struct gt_row *r);
/* 1 if anything was recorded: a call, a mark, a sample, or something lost. */
int gt_model_recorded(const struct gt_model *m);

/* "api", "nvtx", …; "none" for unknown numbers. */
const char *gt_source_name(uint32_t source);

/* a + b, stopping at the ends of int64: hostile files must not overflow. */
static inline int64_t gt_add(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}
void gt_values_add(struct gt_values *to, const struct gt_values *from);

#endif
