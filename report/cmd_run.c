/* gputally run: starts a program with the library in it, waits, and turns what it and its children
 * recorded into reports. Exit status and signal are the program's; nothing of ours may change them.
 */
#include "report/commands.h"
#include "report/elf_target.h"
#include "report/place.h"
#include "report/run_child.h"
#include "report/run_env.h"
#include "report/run_folder.h"
#include "report/run_preload.h"
#include "report/run_say.h"
#include "report/watch.h"
#include "core/config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Often enough that ten thousand short children do not fill /dev/shm, seldom enough to cost
 * nothing. */
#define SWEEP_MS 500

extern char **environ;

static const struct {
    char letter;
    const char *option;
} shorts[] = {{'o', "output"}, {'f', "format"}, {'q', "quiet"}};
#define SHORTS (sizeof shorts / sizeof *shorts)

static char short_of(const char *option)
{
    for (size_t i = 0; i < SHORTS; i++)
        if (!strcmp(shorts[i].option, option))
            return shorts[i].letter;
    return 0;
}

static void help(FILE *f)
{
    size_t n;
    const struct gt_option *o = gt_config_options(&n);

    fputs("Usage: gputally run [options] [--] COMMAND [ARGUMENTS]\n"
          "Runs COMMAND and reports what it and its children did. The exit status is COMMAND's.\n"
          "\nOptions; each sets the variable of its name: --session-dir is GPUTALLY_SESSION_DIR.\n",
          f);
    for (size_t i = 0; i < n; i++) {
        char left[64], letter[8] = "    ";
        if (!o[i].option)
            continue;
        if (short_of(o[i].option))
            snprintf(letter, sizeof letter, "-%c, ", short_of(o[i].option));
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o[i].is_bool ? "[no-]" : "", o[i].option,
                 o[i].is_bool ? "" : " VALUE");
        fprintf(f, "  %-34s %s", left, o[i].help);
        if (*o[i].fallback)
            fprintf(f, " [%s]", o[i].fallback);
        fputc('\n', f);
    }
    fputs("  -h, --help                         this text\n"
          "\nExamples:\n"
          "  gputally run -- python train.py\n"
          "  gputally run -o 'out/%e.%p' -f table,json,csv -- ./app --its-own-option\n"
          "  mpirun -n 4 gputally run -q -o 'rank%r' -- ./app\n",
          f);
}

/* By position in gt_config_options: how the option was typed the last time, for messages. */
static const char *typed[64];

static int set(struct gt_run_env *e, const char *name, const char *value)
{
    char variable[64];

    snprintf(variable, sizeof variable, "GPUTALLY_%s", name);
    return gt_run_env_set(e, variable, value);
}

static const struct gt_option *find_option(const char *name, size_t len)
{
    size_t n;
    const struct gt_option *o = gt_config_options(&n);

    for (size_t i = 0; i < n; i++)
        if (o[i].option && strlen(o[i].option) == len && !memcmp(o[i].option, name, len))
            return &o[i];
    return NULL;
}

static int bad_option(const char *option, const char *why)
{
    fprintf(stderr, "gputally: %s: %s; see gputally run --help\n", option, why);
    return -EINVAL;
}

/* One option at argv[*at]; moves *at past its value. Sets it in both environments: `own` has only
 * what was given on the command line. */
static int take_option(char **argv, int *at, struct gt_run_env *env, struct gt_run_env *own)
{
    const char *arg = argv[*at], *name = arg + 2, *value = NULL;
    const struct gt_option *o = NULL;
    size_t n;

    if (arg[1] != '-') {
        for (size_t i = 0; i < SHORTS; i++)
            if (shorts[i].letter == arg[1])
                o = find_option(shorts[i].option, strlen(shorts[i].option));
        if (o && o->is_bool && arg[2])
            o = NULL;
        else if (o && arg[2])
            value = arg + 2;
    } else {
        size_t len = strcspn(name, "=");
        o = find_option(name, len);
        if (o && name[len])
            value = name + len + 1;
        if (!o && !strncmp(name, "no-", 3) && (o = find_option(name + 3, strlen(name + 3)))) {
            if (!o->is_bool)
                o = NULL;
            value = "0";
        }
    }
    if (!o)
        return bad_option(arg, "unknown option");
    if (o - gt_config_options(&n) < (ptrdiff_t)(sizeof typed / sizeof *typed))
        typed[o - gt_config_options(&n)] = arg;
    if (o->is_bool && !value)
        value = "1";
    if (!value && !(value = argv[++*at]))
        return bad_option(arg, "needs a value");
    if (set(env, o->name, value) || set(own, o->name, value)) {
        fputs("gputally: no memory\n", stderr);
        return -ENOMEM;
    }
    return 0;
}

/* "GPUTALLY_FORMAT=foo: why" as "--format foo: why", or "-f foo: why": what the user typed. */
static void tell_mistake(const char *warning)
{
    const char *name = warning + sizeof "GPUTALLY_" - 1, *value = strchr(warning, '=');
    size_t n;
    const struct gt_option *o = gt_config_options(&n);

    for (size_t i = 0; value && i < n && i < sizeof typed / sizeof *typed; i++) {
        size_t len = strlen(o[i].name);
        if (!typed[i] || (size_t)(value - name) != len || memcmp(name, o[i].name, len))
            continue;
        len = typed[i][1] == '-' ? strcspn(typed[i], "=") : 2;
        fprintf(stderr, "gputally: %.*s %s\n", (int)len, typed[i], value + 1);
        return;
    }
    fprintf(stderr, "gputally: %s\n", warning);
}

/* A mistake on the command line ends it before anything has started; one in a variable that may
 * have been set long ago is a warning. */
static int check(const struct gt_run_env *env, const struct gt_run_env *own, struct gt_config *c)
{
    gt_config_parse(c, own->v);
    if (c->warning[0]) {
        /* an unset %q{VAR} is only seen as such with the whole environment */
        char first[sizeof c->warning];
        memcpy(first, c->warning, sizeof first);
        gt_config_parse(c, env->v);
        if (!strcmp(first, c->warning)) {
            tell_mistake(c->warning);
            return -EINVAL;
        }
    } else {
        gt_config_parse(c, env->v);
    }
    if (c->warning[0] && c->log >= 1)
        fprintf(stderr, "gputally: %s\n", c->warning);
    struct gt_err err = {""};
    if (gt_run_env_get(own, "GPUTALLY_OUTPUT") &&
        c->formats & ~(uint32_t)(GT_FORMAT_TABLE | GT_FORMAT_TVM_TABLE) &&
        gt_place_check(c->output, &err)) {
        fprintf(stderr, "gputally: --output %s: %s\n", c->output, err.message);
        return -EINVAL;
    }
    return 0;
}

/* The program's environment gets the preload: 1. What can't take one runs without, and is told: 0.
 */
static int inject(struct gt_run_env *env, const struct gt_elf_target *t, const char *command,
                  const struct gt_run_folder *folder, int quiet)
{
    char library[PATH_MAX], plain[PATH_MAX], runtime[PATH_MAX];
    struct gt_err err = {""};
    const char *folder_path = *folder->path ? folder->path : NULL;

    if (t->kind != GT_TARGET_OK && t->kind != GT_TARGET_UNKNOWN) {
        if (!quiet)
            fprintf(stderr, "gputally: %s: not recorded: %s; children of it are%s\n", command,
                    t->why, t->kind == GT_TARGET_STATIC ? " if they are dynamic" : " not either");
        /* a static program only hands the variable down; in the others it would do harm or nothing
         */
        if (t->kind != GT_TARGET_STATIC)
            return 0;
    }
    if (gt_run_find_library(library, &err) ||
        gt_run_plain_path(library, folder_path, plain, &err)) {
        fprintf(stderr, "gputally: %s; %s runs without it\n", err.message, command);
        return 0;
    }
    if (*t->sanitizer) {
        if (gt_run_resolve(t->path, t->sanitizer, env, runtime))
            snprintf(runtime, sizeof runtime, "%s", t->sanitizer);
    } else {
        gt_run_library_sanitizer(library, env, runtime);
    }
    if (gt_run_set_preload(env, plain, runtime) ||
        (folder_path && gt_run_env_set(env, GT_RUN_DIR_VARIABLE, folder_path))) {
        fprintf(stderr, "gputally: no memory; %s runs without it\n", command);
        return 0;
    }
    return 1;
}

/* The shell tells a program its own path in `_`. */
static void fix_underscore(struct gt_run_env *env, const char *path)
{
    const char *old = gt_run_env_get(env, "_");
    char own[PATH_MAX], resolved[PATH_MAX];

    if (old && !gt_run_own_path(own) && realpath(old, resolved) && !strcmp(own, resolved))
        gt_run_env_set(env, "_", path);
}

/* Until the program ends: reports of children that have, and snapshots if they were asked for. */
static void wait_and_sweep(struct gt_run_child *child, struct gt_run_folder *folder,
                           uint64_t snapshot_ms)
{
    uint64_t step = snapshot_ms && snapshot_ms < SWEEP_MS ? snapshot_ms : SWEEP_MS,
             left = snapshot_ms;
    while (!gt_run_child_wait(child, (int)(snapshot_ms && left < step ? left : step))) {
        gt_run_folder_sweep(folder);
        if (!snapshot_ms)
            continue;
        left -= left < step ? left : step;
        if (left)
            continue;
        gt_watch_folder(folder->path);
        left = snapshot_ms;
    }
    gt_watch_folder_end();
}

static int start_and_wait(char **command, struct gt_run_env *env, const struct gt_config *c,
                          struct gt_run_child *child)
{
    struct gt_run_folder folder;
    struct gt_elf_target target;
    char path[PATH_MAX];
    int injected, rc = gt_elf_target_find(command[0], gt_run_env_get(env, "PATH"), path);

    if (rc)
        return gt_run_say_not_started(command[0], rc);
    gt_elf_target_read(path, &target);
    if (!c->quiet)
        gt_run_say_launcher(command[0]);
    if (gt_run_folder_make(&folder, c->session_dir, gt_run_env_get(env, "TMPDIR")))
        fputs("gputally: no folder for sessions can be made; each process reports on its own\n",
              stderr);
    folder.quiet = c->quiet;
    injected = inject(env, &target, command[0], &folder, c->quiet);
    fix_underscore(env, path);
    fflush(NULL);

    rc = gt_run_child_start(child, path, command, env->v);
    folder.program_pid = folder.first_pid = rc ? 0 : child->pid;
    if (!rc)
        wait_and_sweep(child, &folder, c->snapshot_ns / 1000000);
    if (!rc)
        gt_run_folder_died(&folder, child->pid);
    gt_run_folder_close(&folder);
    gt_run_folder_print(&folder);
    if (!rc && injected && *folder.path && c->log >= 2 && !c->quiet && !folder.reports &&
        !folder.living && !folder.failed && !folder.note)
        gt_run_say_nothing(c);
    gt_run_folder_free(&folder);
    fflush(NULL);
    return rc ? gt_run_say_not_started(command[0], rc) : gt_run_child_leave(child);
}

int gt_cmd_run(int argc, char **argv)
{
    static struct gt_config config;
    struct gt_run_env env, own;
    struct gt_run_child child;
    int at = 1, rc;

    if (gt_run_env_init(&env, environ) || gt_run_env_init(&own, (char *[]){NULL})) {
        fputs("gputally: no memory\n", stderr);
        return 2;
    }
    for (rc = 0; !rc && at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
        if (!strcmp(argv[at], "--")) {
            at++;
            break;
        }
        if (!strcmp(argv[at], "-h") || !strcmp(argv[at], "--help")) {
            help(stdout);
            gt_run_env_free(&env);
            gt_run_env_free(&own);
            return fflush(stdout) ? 2 : 0;
        }
        rc = take_option(argv, &at, &env, &own);
    }
    gt_run_child_prepare(&child);
    if (!rc)
        rc = check(&env, &own, &config);
    if (rc) {
        rc = 2;
    } else if (at >= argc) {
        help(stderr);
        rc = 1;
    } else {
        rc = start_and_wait(argv + at, &env, &config, &child);
    }
    gt_run_env_free(&env);
    gt_run_env_free(&own);
    return rc;
}
