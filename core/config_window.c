/* The values of GPUTALLY_WINDOW and _SNAPSHOT*: parsed where config.c is, and for the same callers.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include "core/config.h"

#define MOST_SECONDS 1000000u

static int number(const char *s, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    if (!n)
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9' || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
            return -EINVAL;
    *out = v;
    return 0;
}

int gt_config_seconds(const char *s, size_t n, uint64_t *ns)
{
    const char *dot = memchr(s, '.', n);
    size_t whole = dot ? (size_t)(dot - s) : n, rest = dot ? n - whole - 1 : 0;
    uint64_t seconds = 0, part = 0;
    if ((whole && number(s, whole, &seconds)) || (rest && number(dot + 1, rest, &part)) ||
        !(whole + rest) || rest > 9 || seconds > MOST_SECONDS)
        return -EINVAL;
    for (; rest < 9; rest++)
        part *= 10;
    *ns = seconds * 1000000000u + part;
    return *ns ? 0 : -EINVAL;
}

int gt_config_signal(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } known[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"QUIT", SIGQUIT}};
    uint64_t n;
    if (!strncmp(name, "SIG", 3))
        name += 3;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            return known[i].number;
    if (strncmp(name, "RTMIN+", 6) || number(name + 6, strlen(name + 6), &n) ||
        n > (uint64_t)(SIGRTMAX - SIGRTMIN))
        return 0;
    return SIGRTMIN + (int)n;
}

/* If the text [s, s + n) begins with "WORD=", returns what is behind it. */
static const char *behind(const char *s, size_t n, const char *word)
{
    size_t k = strlen(word);
    return n >= k && !memcmp(s, word, k) ? s + k : NULL;
}

/* Takes ",skip=N" and ",count=N" off the end, whatever commas the name holds before them. */
static int parse_range(const char *s, struct gt_window_spec *out)
{
    size_t n = strlen(s);
    int skip = 0, count = 0;
    for (size_t i = n; i-- > 0;) {
        const char *v;
        if (s[i] != ',')
            continue;
        if ((v = behind(s + i + 1, n - i - 1, "skip="))) {
            if (skip++ || number(v, (size_t)(s + n - v), &out->skip))
                return -EINVAL;
        } else if ((v = behind(s + i + 1, n - i - 1, "count="))) {
            if (count++ || number(v, (size_t)(s + n - v), &out->count) || !out->count)
                return -EINVAL;
        } else {
            break;
        }
        n = i;
    }
    out->kind = GT_WINDOW_RANGE;
    out->range = s;
    out->range_bytes = n;
    return n && out->skip <= UINT64_MAX - out->count ? 0 : -EINVAL;
}

static int parse_time(const char *s, struct gt_window_spec *out)
{
    out->kind = GT_WINDOW_TIME;
    for (;;) {
        size_t n = strcspn(s, ",");
        const char *v;
        uint64_t *to;
        if ((v = behind(s, n, "delay=")))
            to = &out->delay_ns;
        else if ((v = behind(s, n, "duration=")))
            to = &out->duration_ns;
        else
            return -EINVAL;
        if (*to || gt_config_seconds(v, (size_t)(s + n - v), to))
            return -EINVAL;
        if (!s[n])
            return 0;
        s += n + 1;
    }
}

int gt_config_window(const char *value, struct gt_window_spec *out, const char **why)
{
    static const struct {
        const char *word;
        enum gt_window_kind kind;
    } words[] = {{"all", GT_WINDOW_ALL}, {"paused", GT_WINDOW_PAUSED}, {"torch", GT_WINDOW_TORCH}};
    struct gt_window_spec w = {.kind = GT_WINDOW_ALL};
    const char *name = behind(value, strlen(value), "range=");
    int rc = -EINVAL;
    *why = "give all, paused, torch, delay=S, duration=S, or range=NAME,skip=N,count=N";
    for (size_t i = 0; rc && i < sizeof words / sizeof *words; i++)
        if (!strcmp(value, words[i].word)) {
            w.kind = words[i].kind;
            rc = 0;
        }
    if (rc)
        rc = name ? parse_range(name, &w) : parse_time(value, &w);
    if (!rc)
        *out = w;
    return rc;
}
