/* gputally doctor: tries what recording needs, says what was found and what to do. */
#include "report/commands.h"
#include "report/elf_floor.h"
#include "report/run_env.h"
#include "report/run_preload.h"
#include "core/config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef PR_GET_TSC
#define PR_GET_TSC 25
#define PR_TSC_ENABLE 1
#endif

extern char **environ;

static int broken;

enum verdict { FINE, NOTE, BROKEN };

static void tell(enum verdict v, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void tell(enum verdict v, const char *what, const char *format, ...)
{
    static const char *const words[] = {"ok", "note", "FAIL"};
    va_list ap;

    printf("%-5s %-15s ", words[v], what);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
    broken |= v == BROKEN;
}

/* Runs argv with `env` and gives its stderr (first line). Returns its exit status, -1 if it had
 * none. */
static int try_program(char *const argv[], char *const env[], char *line, size_t n)
{
    int fds[2], status;
    ssize_t got;
    pid_t child;

    line[0] = 0;
    if (pipe2(fds, O_CLOEXEC))
        return -1;
    fflush(NULL);
    child = fork();
    if (!child) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(fds[1], 2);
        execvpe(argv[0], argv, env);
        _exit(127);
    }
    close(fds[1]);
    got = child < 0 ? -1 : read(fds[0], line, n - 1);
    line[got < 0 ? 0 : got] = 0;
    line[strcspn(line, "\n")] = 0;
    close(fds[0]);
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static void check_library(void)
{
    char library[PATH_MAX], runtime[PATH_MAX], line[512];
    struct gt_run_env env;
    struct gt_err err = {""};
    unsigned major, minor;

    if (gt_run_find_library(library, &err)) {
        tell(BROKEN, "library", "%s; run make, or make install", err.message);
        return;
    }
    if (gt_elf_glibc_floor(library, &major, &minor))
        tell(BROKEN, "library", "%s: not a 64-bit ELF file; build it again", library);
    else
        tell(FINE, "library", "%s, needs glibc %u.%u, here is %s", library, major, minor,
             gnu_get_libc_version());
    if (strpbrk(library, " :\t\n"))
        tell(NOTE, "library path",
             "has a blank or colon: gputally run works, LD_PRELOAD by hand can't name it");
    if (gt_run_env_init(&env, environ))
        return;
    gt_run_library_sanitizer(library, &env, runtime);
    if (gt_run_set_preload(&env, library, runtime) || gt_run_env_set(&env, "GPUTALLY_DISABLE", "1"))
        return;
    if (!strpbrk(library, " :\t\n")) {
        int status = try_program((char *[]){"true", NULL}, env.v, line, sizeof line);
        if (status || line[0])
            tell(BROKEN, "preload", "a program with it in ends with %d: %s", status, line);
        else
            tell(FINE, "preload", "loads into a program, which runs on as before");
    }
    gt_run_env_free(&env);
}

static const char *file_system(long type)
{
    static const struct {
        unsigned type;
        const char *name;
    } known[] = {{0x01021994, "tmpfs"},  {0xEF53, "ext4"},        {0x58465342, "xfs"},
                 {0x9123683E, "btrfs"},  {0x794c7630, "overlay"}, {0x6969, "nfs"},
                 {0x0BD00BD0, "lustre"}, {0x2FC12FC1, "zfs"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == (unsigned)type)
            return known[i].name;
    return "another";
}

static int try_folder(const char *folder)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof path, "%s/gputally-doctor-XXXXXX", folder);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(path);
    close(fd);
    return 0;
}

static void check_folder(const struct gt_config *c)
{
    const char *const folders[] = {c->session_dir, "/dev/shm", getenv("TMPDIR"), "/tmp"};
    struct rlimit limit;

    for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *name;
        struct statfs fs;
        int rc;

        if (!folders[i] || !*folders[i])
            continue;
        rc = try_folder(folders[i]);
        if (rc) {
            tell(NOTE, "session folder", "%s: %s; the next one is tried", folders[i],
                 strerror(-rc));
            continue;
        }
        if (statfs(folders[i], &fs))
            continue;
        name = file_system(fs.f_type);
        unsigned long long room = (unsigned long long)fs.f_bavail * fs.f_bsize;
        int small = room / 8 < c->memory_bytes;
        int safe = !strcmp(name, "tmpfs") || !strcmp(name, "ext4") || !strcmp(name, "xfs");
        tell(small ? NOTE : FINE, "session folder", "%s, %s, %llu MiB free%s", folders[i], name,
             room >> 20,
             small ? ": a session takes at most 1/8 of it, less than GPUTALLY_MEMORY; set "
                     "GPUTALLY_SESSION_DIR to a roomier one"
                   : "");
        if (!safe)
            tell(NOTE, "crash safety",
                 "only on tmpfs, ext4 and xfs; set GPUTALLY_SESSION_DIR to such a folder");
        if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
            limit.rlim_cur < c->memory_bytes)
            tell(NOTE, "file size limit", "ulimit -f is %llu KiB: sessions are kept that small",
                 (unsigned long long)limit.rlim_cur >> 10);
        return;
    }
    tell(BROKEN, "session folder", "none can be written; set GPUTALLY_SESSION_DIR");
}

static void check_clock(void)
{
    const char *const source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char name[64] = "";
    FILE *f = fopen(source, "re");

    if (f) {
        if (fgets(name, sizeof name, f))
            name[strcspn(name, "\n")] = 0;
        fclose(f);
    }
#if defined __x86_64__
    int tsc = 0;
    if (strcmp(name, "tsc"))
        tell(NOTE, "clock", "the kernel uses %s, not tsc: clock_gettime, a little slower",
             *name ? name : "an unknown clock source");
    else if (prctl(PR_GET_TSC, &tsc, 0, 0, 0) == 0 && tsc != PR_TSC_ENABLE)
        tell(NOTE, "clock", "rdtsc is forbidden here (PR_SET_TSC): clock_gettime");
    else
        tell(FINE, "clock", "tsc");
#else
    tell(FINE, "clock", "cntvct (the kernel uses %s)", *name ? name : "an unknown clock source");
#endif
}

static void check_kernel(void)
{
    long page = sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        tell(BROKEN, "kernel", "mmap: %s", strerror(errno));
    else if (madvise(p, page, MADV_POPULATE_WRITE))
        tell(NOTE, "kernel", "no MADV_POPULATE_WRITE (Linux 5.14): sessions grow by fallocate");
    else
        tell(FINE, "kernel", "MADV_POPULATE_WRITE works");
    if (p != MAP_FAILED)
        munmap(p, page);
    tell(FINE, "rights", "none needed: no root, no ptrace, no perf_event");
}

/* What the library opens for frames that have no usable unwind data. */
static void check_unwind(void)
{
    if (dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL))
        tell(FINE, "stacks", "libunwind.so.8 is here");
    else
        tell(
            NOTE, "stacks",
            "no libunwind.so.8: native stacks end at code without unwind data; install libunwind8");
}

static void check_clients(void)
{
    char line[512];
    int status =
        try_program((char *[]){"python3", "-c", "import nvtx", NULL}, environ, line, sizeof line);

    if (!status)
        tell(FINE, "python nvtx", "python3 can import nvtx");
    else if (status == 127)
        tell(NOTE, "python nvtx", "no python3 here");
    else
        tell(NOTE, "python nvtx",
             "python3 has no nvtx module; for annotations in Python: pip install nvtx");
    tell(FINE, "jansson", "%s", JANSSON_VERSION);
}

int gt_cmd_doctor(int argc, char **argv)
{
    static struct gt_config config;

    if (argc > 1) {
        int asked = !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help");
        fputs("Usage: gputally doctor\n"
              "Says what recording would find here and what to do. Exit status 0: it would work.\n",
              asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    broken = 0;
    gt_config_parse(&config, environ);
    if (config.warning[0])
        tell(NOTE, "variables", "%s", config.warning);
    check_library();
    check_folder(&config);
    check_clock();
    check_kernel();
    check_unwind();
    check_clients();
    if (fflush(stdout))
        return 2;
    return broken ? 2 : 0;
}
