/* Configuration: the GPUTALLY_ variables of one process, parsed and checked against config.def.
 * Used by the library's constructor and by `gputally run` (which checks before it starts anything).
 * No malloc, no stdio: it runs in the host before main. */
#ifndef GT_CONFIG_H
#define GT_CONFIG_H

#include <stddef.h>
#include <stdint.h>

enum gt_format {
    GT_FORMAT_TABLE = 1,
    GT_FORMAT_JSON = 2,
    GT_FORMAT_CSV = 4,
    GT_FORMAT_TREE = 8,
    GT_FORMAT_FOLDED = 16,
    GT_FORMAT_TVM = 32,
    GT_FORMAT_TVM_CSV = 64,
    GT_FORMAT_TVM_TABLE = 128,
};

/* Set by `run` for the processes below it; not for users, so not in config.def:
 * the folder whose sessions `run` turns into reports. */
#define GT_RUN_DIR_VARIABLE "GPUTALLY_RUN_DIR"
/* In the run folder: `run` has looked for the last time, whoever ends now finishes itself. */
#define GT_RUN_CLOSED "closed"
/* There too: a link to the folder that `run` was started in, where relative outputs are meant. */
#define GT_RUN_BASE "base"

/* GPUTALLY_WINDOW: when recording is on. */
enum gt_window_kind {
    GT_WINDOW_ALL,    /* always */
    GT_WINDOW_PAUSED, /* from the first resume on */
    GT_WINDOW_TIME,   /* from delay_ns on, for duration_ns */
    GT_WINDOW_RANGE,  /* inside ranges of a name */
    GT_WINDOW_TORCH,  /* while the program's own torch.profiler runs */
};
struct gt_window_spec {
    enum gt_window_kind kind;
    uint64_t delay_ns, duration_ns; /* 0: none */
    const char *range;              /* glob of labels, not terminated */
    size_t range_bytes;
    uint64_t skip, count; /* ranges of that name: so many not, then so many; count 0: all others */
};
/* Parses a value of GPUTALLY_WINDOW; borrows it. Returns 0, or -EINVAL with *why what to give. */
int gt_config_window(const char *value, struct gt_window_spec *out, const char **why);
/* Decimal seconds, up to a million, as ns; 0 is refused. Returns 0 or -EINVAL. Pure. */
int gt_config_seconds(const char *s, size_t n, uint64_t *ns);
/* Number of a signal by its name, with or without SIG; 0 for those that no report can be asked for
 * with. Pure. */
int gt_config_signal(const char *name);

/* GPUTALLY_WITH_STACK: what stacks are made of, and whose calls have one besides PyTorch's
 * operators and the calls of a device's API. */
enum gt_stacks {
    GT_STACKS_PYTHON = 1,
    GT_STACKS_NATIVE = 2,
    GT_STACKS_RANGES = 4, /* annotations too */
};

struct gt_config {
    /* all strings point into `text`, or are constants */
    const char *output;            /* %q{VAR} and %r expanded, the rest left for the report house */
    const char *session_dir;       /* "" : default */
    const char *run_dir;           /* "" : not under `run` */
    const char *tmpdir;            /* $TMPDIR, "" if not set */
    const char *exe;               /* globs */
    const char *include, *exclude; /* globs of names, "": not given */
    /* not parsed: the constructor fills these in, "" until then */
    const char *cwd, *library;
    struct gt_window_spec window;
    uint64_t snapshot_ns; /* 0: none */
    int snapshot_signal;  /* 0: none */
    uint64_t memory_bytes;
    uint32_t ring_records; /* 0 or a power of two */
    uint32_t sources;      /* bit 1 << enum gt_source */
    uint32_t formats;      /* enum gt_format, 0: none */
    uint32_t stacks;       /* enum gt_stacks, 0: none */
    int rank;              /* -1: none */
    int log;               /* 0, 1, 2 */
    int children, disable, quiet, record_shapes;
    int capture_overload_names, profile_memory, with_flops; /* of PyTorch's operators */
    /* NUL-separated NAME=VALUE list of the GPUTALLY_ variables that were set */
    const char *set;
    size_t set_bytes;
    /* the first thing that was wrong, "" if nothing: one line without newline */
    char warning[512];
    char text[12288];
};

/* Parses `envp` (NULL-terminated, borrowed until return) into *c. A variable that is unknown or has
 * a value it can't have keeps its default and leaves the first such thing in c->warning.
 * Returns 0, or -E2BIG if the values do not fit c->text (those that did not keep their defaults).
 * Thread-safe as long as nobody changes envp. */
int gt_config_parse(struct gt_config *c, char *const envp[]);

/* One row of config.def, for help and completion. */
struct gt_option {
    const char *name;     /* without GPUTALLY_ */
    const char *fallback; /* default */
    const char *option;   /* long option of `run`, or NULL */
    const char *help;
    int is_bool; /* the option takes no argument: --name and --no-name */
};
/* The table and its length; constant. */
const struct gt_option *gt_config_options(size_t *count);

/* How many letters a typing error changed, put in or left out: the edit distance of two names of at
 * most 31 characters, UINT_MAX for longer ones. For "did you mean". Pure. */
unsigned gt_config_distance(const char *a, size_t a_len, const char *b, size_t b_len);

/* 1 if `name` matches one of the comma-separated globs (* and ?), else 0. Pure. */
int gt_config_glob(const char *globs, const char *name);

/* A name as the views show it: `domain:name`, or the bare name in the default domain (""). */
struct gt_label {
    const char *domain, *name;
    size_t domain_bytes, name_bytes;
};
/* 1 if the label matches the one glob of n bytes. Pure. */
int gt_config_match(const char *glob, size_t n, const struct gt_label *l);
/* 1 if INCLUDE and EXCLUDE together leave the label out. Pure. */
int gt_config_left_out(const struct gt_config *c, const struct gt_label *l);

#endif
