/* Configuration: turns the GPUTALLY_ variables into a struct gt_config, with one warning for the
 * first thing that is wrong. Called by the library's constructor (before main, on the thread that
 * loads us) and by `gputally run`. No malloc, stdio or getenv: nothing else may be up yet.
 * Long, because the CLI takes this file of core (and config_window.c) and nothing that these would
 * need from others. */
#include "core/config.h"
#include "core/layout.h"
#include "core/text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define PREFIX "GPUTALLY_"
#define PREFIX_LEN (sizeof PREFIX - 1)

/* The header, one slot and its first chunk must fit; a gt_ref reaches no further. */
#define MEMORY_MIN (256ull << 10)
#define MEMORY_MAX ((uint64_t)UINT32_MAX * GT_ALIGN)
/* 2^24 records are 256 MiB a thread: more is a typing error. */
#define RING_MAX (1u << 24)

/* A report takes some 0.1 s to make. */
#define SNAPSHOT_MIN_NS 100000000u

enum type {
    BOOL,
    FORMATS,
    GLOBS,
    LEVEL,
    SIZE,
    TEXT,
    RANK,
    COUNT,
    SOURCES,
    WINDOW,
    SECONDS,
    SIGNAL,
    STACKS
};

#define OPTION(name, type, fallback, option, help) OPT_##name,
enum {
#include "core/config.def"
    OPTIONS
};
#undef OPTION

#define OPTION(name, type, fallback, option, help) type,
static const unsigned char types[] = {
#include "core/config.def"
};
#undef OPTION

#define OPTION(name, type, fallback, option, help) {#name, fallback, option, help, (type) == BOOL},
static const struct gt_option options[] = {
#include "core/config.def"
};
#undef OPTION

struct word {
    const char *name;
    uint32_t bits;
};
static const struct word source_words[] = {
#define SOURCE(id, number, word, help) | 1u << (number)
    {"all", 0
#include "core/sources.def"
    },
#undef SOURCE
#define SOURCE(id, number, word, help) {word, 1u << (number)},
#include "core/sources.def"
#undef SOURCE
    {NULL, 0}};
static const struct word stack_words[] = {{"0", 0},
                                          {"1", GT_STACKS_PYTHON | GT_STACKS_NATIVE},
                                          {"native", GT_STACKS_NATIVE},
                                          {"none", 0},
                                          {"python", GT_STACKS_PYTHON},
                                          {"ranges", GT_STACKS_RANGES},
                                          {NULL, 0}};
static const struct word format_words[] = {{"table", GT_FORMAT_TABLE},
                                           {"json", GT_FORMAT_JSON},
                                           {"csv", GT_FORMAT_CSV},
                                           {"tree", GT_FORMAT_TREE},
                                           {"folded", GT_FORMAT_FOLDED},
                                           {"tvm", GT_FORMAT_TVM},
                                           {"tvm-csv", GT_FORMAT_TVM_CSV},
                                           {"tvm-table", GT_FORMAT_TVM_TABLE},
                                           {"none", 0},
                                           {NULL, 0}};

const struct gt_option *gt_config_options(size_t *count)
{
    *count = OPTIONS;
    return options;
}

/* What the user typed, for a one-line message: cut, and without control characters. */
static void put_quoted(struct gt_text *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i == 64) {
            gt_text_add(b, "...");
            return;
        }
        gt_text_add_n(b, (unsigned char)s[i] < 32 || s[i] == 127 ? "?" : s + i, 1);
    }
}

static struct gt_text warn(struct gt_config *c, int option, const char *value)
{
    struct gt_text b;

    gt_text_init(&b, c->warning, sizeof c->warning);
    gt_text_add(&b, PREFIX);
    gt_text_add(&b, options[option].name);
    gt_text_add(&b, "=");
    put_quoted(&b, value, strlen(value));
    gt_text_add(&b, ": ");
    return b;
}

static void warn_text(struct gt_config *c, int option, const char *value, const char *why)
{
    struct gt_text b;

    if (c->warning[0])
        return;
    b = warn(c, option, value);
    gt_text_add(&b, why);
}

unsigned gt_config_distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned row[32];

    if (na > 31 || nb > 31)
        return UINT_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

static int close_enough(unsigned d, size_t typed)
{
    return d <= 1 + typed / 4;
}

static void warn_unknown(struct gt_config *c, const char *name, size_t len)
{
    struct gt_text b;
    unsigned best = UINT_MAX, at = 0;

    if (c->warning[0])
        return;
    for (unsigned i = 0; i < OPTIONS; i++) {
        unsigned d = gt_config_distance(name, len, options[i].name, strlen(options[i].name));
        if (d < best)
            best = d, at = i;
    }
    gt_text_init(&b, c->warning, sizeof c->warning);
    gt_text_add(&b, PREFIX);
    put_quoted(&b, name, len);
    gt_text_add(&b, ": unknown variable");
    if (best != UINT_MAX && close_enough(best, len)) {
        gt_text_add(&b, ", did you mean " PREFIX);
        gt_text_add(&b, options[at].name);
        gt_text_add(&b, "?");
    }
    gt_text_add(&b, " (known after " PREFIX ":");
    for (unsigned i = 0; i < OPTIONS; i++) {
        gt_text_add(&b, " ");
        gt_text_add(&b, options[i].name);
    }
    gt_text_add(&b, ")");
}

static void warn_word(struct gt_config *c, int option, const char *value, const char *word,
                      size_t len, const struct word *words)
{
    struct gt_text b;
    unsigned best = UINT_MAX;
    const char *near = NULL;

    if (c->warning[0])
        return;
    for (const struct word *w = words; w->name; w++) {
        unsigned d = gt_config_distance(word, len, w->name, strlen(w->name));
        if (d < best)
            best = d, near = w->name;
    }
    b = warn(c, option, value);
    gt_text_add(&b, "unknown name '");
    put_quoted(&b, word, len);
    gt_text_add(&b, "'");
    if (near && close_enough(best, len)) {
        gt_text_add(&b, ", did you mean ");
        gt_text_add(&b, near);
        gt_text_add(&b, "?");
    }
    gt_text_add(&b, " (known:");
    for (const struct word *w = words; w->name; w++) {
        gt_text_add(&b, " ");
        gt_text_add(&b, w->name);
    }
    gt_text_add(&b, ")");
}

/* The next name of a comma-separated list, blanks around it dropped. Returns 0 at the end. */
static int next_word(const char **list, const char **word, size_t *len)
{
    const char *s = *list, *end;

    while (*s == ',' || *s == ' ')
        s++;
    if (!*s)
        return 0;
    end = s + strcspn(s, ",");
    *list = end;
    while (end > s && end[-1] == ' ')
        end--;
    *word = s;
    *len = end - s;
    return 1;
}

static const struct word *find_word(const struct word *words, const char *word, size_t len)
{
    for (; words->name; words++)
        if (strlen(words->name) == len && !memcmp(words->name, word, len))
            return words;
    return NULL;
}

/* `but_from`: what a list that begins by taking something away begins with; 0: none may. */
static int parse_words(struct gt_config *c, int option, const char *value, const struct word *words,
                       uint32_t but_from, uint32_t *out)
{
    const char *list = value, *word;
    size_t len;
    uint32_t bits = 0;
    int any = 0, none = 0;

    while (next_word(&list, &word, &len)) {
        int minus = but_from && word[0] == '-';
        const struct word *w = find_word(words, word + minus, len - minus);

        if (!w) {
            warn_word(c, option, value, word + minus, len - minus, words);
            return -EINVAL;
        }
        /* a list that begins by taking something away means "all but" */
        if (minus && !any)
            bits = but_from;
        bits = minus ? bits & ~w->bits : bits | w->bits;
        none |= !w->bits;
        any = 1;
    }
    if (!any || (none && bits)) {
        warn_text(c, option, value, any ? "none goes with no other name" : "names nothing");
        return -EINVAL;
    }
    *out = bits;
    return 0;
}

/* Digits at *s, moved past them. Returns -EINVAL if there are none or they overflow. */
static int parse_number(const char **s, uint64_t *out)
{
    const char *p = *s;
    uint64_t n = 0;

    if (*p < '0' || *p > '9')
        return -EINVAL;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return -EINVAL;
    *s = p;
    *out = n;
    return 0;
}

static int parse_size(const char *s, uint64_t *out)
{
    uint64_t n;
    int shift = 0;

    if (parse_number(&s, &n))
        return -EINVAL;
    switch (*s | 32) {
    case 'k':
        shift = 10;
        break;
    case 'm':
        shift = 20;
        break;
    case 'g':
        shift = 30;
        break;
    }
    if (shift) {
        s++;
        if (!strcmp(s, "iB") || !strcmp(s, "B"))
            s += strlen(s);
    }
    if (*s || n > UINT64_MAX >> shift)
        return -EINVAL;
    n <<= shift;
    if (n < MEMORY_MIN || n > MEMORY_MAX)
        return -ERANGE;
    *out = n;
    return 0;
}

static int parse_bool(const char *s, int *out)
{
    static const char *const yes[] = {"1", "yes", "on", "true"}, *const no[] = {"0", "no", "off",
                                                                                "false"};

    for (unsigned i = 0; i < 4; i++) {
        if (!strcmp(s, yes[i]))
            return *out = 1, 0;
        if (!strcmp(s, no[i]))
            return *out = 0, 0;
    }
    return -EINVAL;
}

static int parse_rank(const char *s, int *out)
{
    uint64_t n;

    if (parse_number(&s, &n) || *s || n > INT_MAX)
        return -EINVAL;
    *out = (int)n;
    return 0;
}

/* Like getenv on `envp`, but an empty variable counts as unset. */
static const char *find(char *const envp[], const char *name, size_t len)
{
    for (; *envp; envp++)
        if (!strncmp(*envp, name, len) && (*envp)[len] == '=')
            return (*envp)[len + 1] ? *envp + len + 1 : NULL;
    return NULL;
}
#define FIND(envp, name) find(envp, name, sizeof(name) - 1)

/* The launcher's rank. SLURM_PROCID alone is also set (to 0) in a batch script, and RANK alone may
 * be anybody's: each needs a witness. */
static int launcher_rank(char *const envp[])
{
    const char *v;
    int rank;

    if ((v = FIND(envp, "OMPI_COMM_WORLD_RANK")) && !parse_rank(v, &rank))
        return rank;
    if ((v = FIND(envp, "PMI_RANK")) && !parse_rank(v, &rank))
        return rank;
    if ((v = FIND(envp, "PMIX_RANK")) && !parse_rank(v, &rank))
        return rank;
    if ((FIND(envp, "SLURM_STEP_ID") || FIND(envp, "SLURM_STEPID")) &&
        (v = FIND(envp, "SLURM_PROCID")) && !parse_rank(v, &rank))
        return rank;
    if (FIND(envp, "LOCAL_RANK") && (v = FIND(envp, "RANK")) && !parse_rank(v, &rank))
        return rank;
    return -1;
}

/* Another text for the pattern: its own % must survive the report house's expansion. */
static void put_escaped(struct gt_text *b, const char *s)
{
    for (; *s; s++)
        gt_text_add_n(b, *s == '%' ? "%%" : s, *s == '%' ? 2 : 1);
}

static void put_rank(struct gt_text *b, int rank)
{
    char digits[12];
    int at = sizeof digits;

    if (rank < 0) {
        gt_text_add(b, "norank");
        return;
    }
    do
        digits[--at] = '0' + rank % 10;
    while (rank /= 10);
    gt_text_add_n(b, digits + at, sizeof digits - at);
}

/* A mistake in the pattern costs that piece, not the place the user chose for the files: an unknown
 * %x stays as it is typed, an unset variable is empty. */
static void expand_output(struct gt_config *c, const char *value, char *const envp[],
                          struct gt_text *b)
{
    const char *s = value;

    while (*s) {
        const char *end, *v;

        if (*s != '%') {
            gt_text_add_n(b, s++, 1);
        } else if (s[1] == 'r') {
            put_rank(b, c->rank);
            s += 2;
        } else if (s[1] == 'q' && s[2] == '{' && (end = strchr(s, '}'))) {
            v = find(envp, s + 3, end - s - 3);
            if (v)
                put_escaped(b, v);
            else
                warn_text(c, OPT_OUTPUT, value, "%q{...} names a variable that is not set");
            s = end + 1;
        } else if (s[1] && strchr("phetn%", s[1])) {
            gt_text_add_n(b, s, 2);
            s += 2;
        } else {
            warn_text(c, OPT_OUTPUT, value, "unknown pattern; known: %p %h %r %e %t %n %q{VAR} %%");
            gt_text_add(b, "%%");
            s++;
        }
    }
}

static int place(struct gt_config *c, size_t *used, const char *s, size_t len, const char **out)
{
    char *at = c->text + *used;

    if (len >= sizeof c->text - *used)
        return -E2BIG;
    memcpy(at, s, len);
    at[len] = 0;
    *used += len + 1;
    *out = at;
    return 0;
}

static void parse_one(struct gt_config *c, int option, const char *v)
{
    uint64_t n;
    uint32_t bits = 0;
    const char *s = v;
    int *flag;

    switch (types[option]) {
    case BOOL:
        flag = option == OPT_CHILDREN                 ? &c->children
               : option == OPT_DISABLE                ? &c->disable
               : option == OPT_QUIET                  ? &c->quiet
               : option == OPT_CAPTURE_OVERLOAD_NAMES ? &c->capture_overload_names
               : option == OPT_PROFILE_MEMORY         ? &c->profile_memory
               : option == OPT_WITH_FLOPS             ? &c->with_flops
                                                      : &c->record_shapes;
        if (parse_bool(v, flag))
            warn_text(c, option, v, "give 0 or 1");
        break;
    case FORMATS:
        parse_words(c, option, v, format_words, 0, &c->formats);
        break;
    case SOURCES:
        /* all but: of what is recorded by default */
        parse_words(c, option, options[option].fallback, source_words, UINT32_MAX, &bits);
        parse_words(c, option, v, source_words, bits, &c->sources);
        break;
    case LEVEL:
        if (parse_number(&s, &n) || *s || n > 2)
            warn_text(c, option, v, "give 0, 1 or 2");
        else
            c->log = (int)n;
        break;
    case SIZE:
        if (parse_size(v, &c->memory_bytes))
            warn_text(c, option, v, "give a size from 256K to 32G, like 64M");
        break;
    case COUNT:
        if (parse_number(&s, &n) || *s || n > RING_MAX || (n & (n - 1)))
            warn_text(c, option, v, "give 0 or a power of two up to 16777216");
        else
            c->ring_records = (uint32_t)n;
        break;
    case SECONDS:
        if (gt_config_seconds(v, strlen(v), &n) || n < SNAPSHOT_MIN_NS)
            warn_text(c, option, v, "give seconds, 0.1 or more");
        else
            c->snapshot_ns = n;
        break;
    case SIGNAL:
        c->snapshot_signal = gt_config_signal(v);
        if (!c->snapshot_signal)
            warn_text(c, option, v, "give USR1, USR2, HUP, QUIT or RTMIN+N");
        break;
    case STACKS:
        if (parse_words(c, option, v, stack_words, 0, &bits))
            break;
        if (bits == GT_STACKS_RANGES) /* of the usual kinds */
            bits |= GT_STACKS_PYTHON | GT_STACKS_NATIVE;
        c->stacks = bits;
        break;
    case WINDOW:
        if (gt_config_window(v, &c->window, &s))
            warn_text(c, option, v, s);
        break;
    case RANK:
        if (parse_rank(v, &c->rank))
            warn_text(c, option, v, "give a number from 0 to 2147483647");
        break;
    }
}

static void set_defaults(struct gt_config *c, char *const envp[])
{
    memset(c, 0, offsetof(struct gt_config, warning));
    c->warning[0] = 0;
    c->text[0] = 0;
    c->output = options[OPT_OUTPUT].fallback;
    c->session_dir = options[OPT_SESSION_DIR].fallback;
    c->exe = options[OPT_EXE].fallback;
    c->include = c->exclude = "";
    c->run_dir = c->tmpdir = c->cwd = c->library = "";
    c->set = c->text;
    for (int i = 0; i < OPTIONS; i++)
        if (types[i] != TEXT && types[i] != GLOBS && options[i].fallback[0])
            parse_one(c, i, options[i].fallback);
    c->rank = launcher_rank(envp);
}

int gt_config_parse(struct gt_config *c, char *const envp[])
{
    static const char run_dir[] = GT_RUN_DIR_VARIABLE;
    const char *values[OPTIONS] = {NULL}, *kept;
    size_t used = 0;
    struct gt_text expanded;
    int rc = 0;

    set_defaults(c, envp);

    for (char *const *e = envp; *e; e++) {
        const char *name = *e + PREFIX_LEN, *eq;
        int i;

        if (strncmp(*e, PREFIX, PREFIX_LEN) || !(eq = strchr(name, '=')))
            continue;
        if (!strncmp(*e, run_dir, sizeof run_dir - 1) && (*e)[sizeof run_dir - 1] == '=')
            continue;
        for (i = 0; i < OPTIONS; i++)
            if (strlen(options[i].name) == (size_t)(eq - name) &&
                !memcmp(options[i].name, name, eq - name))
                break;
        if (i == OPTIONS)
            warn_unknown(c, name, eq - name);
        else if (values[i] || !eq[1])
            continue; /* getenv sees the first only; empty is unset */
        if (place(c, &used, *e, strlen(*e), &kept)) {
            rc = -E2BIG;
            continue;
        }
        if (i < OPTIONS)
            values[i] = kept + PREFIX_LEN + (eq - name) + 1;
    }
    c->set_bytes = used;

    for (int i = 0; i < OPTIONS; i++)
        if (values[i])
            parse_one(c, i, values[i]);
    if (values[OPT_SESSION_DIR])
        c->session_dir = values[OPT_SESSION_DIR];
    if (values[OPT_EXE])
        c->exe = values[OPT_EXE];
    if (values[OPT_INCLUDE])
        c->include = values[OPT_INCLUDE];
    if (values[OPT_EXCLUDE])
        c->exclude = values[OPT_EXCLUDE];

    kept = find(envp, run_dir, sizeof run_dir - 1);
    if (kept && place(c, &used, kept, strlen(kept), &c->run_dir))
        rc = -E2BIG;
    kept = FIND(envp, "TMPDIR");
    if (kept && place(c, &used, kept, strlen(kept), &c->tmpdir))
        rc = -E2BIG;

    /* needs the rank, so it comes last; the default needs no expansion */
    if (values[OPT_OUTPUT]) {
        if (used >= sizeof c->text)
            return -E2BIG;
        gt_text_init(&expanded, c->text + used, sizeof c->text - used);
        expand_output(c, values[OPT_OUTPUT], envp, &expanded);
        if (expanded.cut)
            rc = -E2BIG;
        else
            c->output = expanded.buf;
    }
    return rc;
}

/* Byte number i of a label, 0 behind its end. */
static char label_at(const struct gt_label *l, size_t i)
{
    if (l->domain_bytes) {
        if (i <= l->domain_bytes)
            return i < l->domain_bytes ? l->domain[i] : ':';
        i -= l->domain_bytes + 1;
    }
    return i < l->name_bytes ? l->name[i] : 0;
}

int gt_config_match(const char *glob, size_t n, const struct gt_label *l)
{
    const char *end = glob + n, *star = NULL;
    size_t bytes = l->name_bytes + (l->domain_bytes ? l->domain_bytes + 1 : 0), at = 0, retry = 0;

    while (at < bytes) {
        if (glob < end && *glob == '*') {
            star = glob++;
            retry = at;
        } else if (glob < end && (*glob == '?' || *glob == label_at(l, at))) {
            glob++;
            at++;
        } else if (star) {
            glob = star + 1;
            at = ++retry;
        } else {
            return 0;
        }
    }
    while (glob < end && *glob == '*')
        glob++;
    return glob == end;
}

static int match_list(const char *globs, const struct gt_label *l)
{
    while (*globs) {
        const char *end = globs + strcspn(globs, ",");

        if (end > globs && gt_config_match(globs, (size_t)(end - globs), l))
            return 1;
        globs = *end ? end + 1 : end;
    }
    return 0;
}

int gt_config_glob(const char *globs, const char *name)
{
    return match_list(globs, &(struct gt_label){.name = name, .name_bytes = strlen(name)});
}

int gt_config_left_out(const struct gt_config *c, const struct gt_label *l)
{
    return (*c->include && !match_list(c->include, l)) || match_list(c->exclude, l);
}
