/* core: the session file: where it comes to lie, what it says of the process, and that no limit or
 * full disk reaches the program. */
#include "tests/unit/core_reader.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include "core/ident.h"
#include "core/say.h"

static void call(const char *name)
{
    gt_push(API, name);
    gt_test_ticks++;
    gt_pop(GROUP(API));
}

/* 20,000 names that have nothing in common: more than fits where it matters. */
static void flood(void)
{
    char name[64];
    for (int i = 0; i < 20000; i++) {
        for (int k = 0; k < 40; k++)
            name[k] = (char)('g' + (i >> k % 15 & 1) + k % 13);
        name[40] = 0;
        call(name);
    }
}

/* Where the test's own folder was no good the file lies elsewhere: it must not stay there. */
static void remove_session(void)
{
    if (gt_session.path[0])
        unlink(gt_session.path);
}

static int in_folder(const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(gt_session.path, dir, n) == 0 && gt_session.path[n] == '/' &&
           !strchr(gt_session.path + n + 1, '/');
}

/* ---- what it says ---- */

static int open_fds(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

START_TEST(header)
{
    char buf[4096];
    struct stat s;
    struct gt_ident id;
    int fds = open_fds();
    setenv("GPUTALLY_RANK", "7", 1);
    setenv("GPUTALLY_OUTPUT", "here.%p", 1);
    call("a");
    ck_assert_int_eq(open_fds(), fds);
    ck_assert_int_eq(stat(gt_session.path, &s), 0);
    ck_assert_uint_eq(s.st_mode & 07777, 0600);
    ck_assert_uint_eq((uint64_t)s.st_size, gt_session.size_bytes);
    ck_assert_uint_le((uint64_t)s.st_blocks * 512, 512u << 10); /* sparse */
    struct rd v = rd_open(gt_session.path);
    const struct gt_header *h = rd_header(v);
    gt_ident_read(&id);
    ck_assert_int_eq(memcmp(h->magic, GT_MAGIC, 8), 0);
    ck_assert_uint_eq(h->version, GT_LAYOUT_VERSION);
    ck_assert_uint_eq(h->header_bytes, GT_HEADER_BYTES);
    ck_assert_uint_eq(h->state, GT_STATE_RUNNING);
    ck_assert_uint_eq(h->size_bytes, v.size);
    ck_assert_uint_le(h->used_bytes, v.size);
    ck_assert_uint_eq(h->pid, (uint32_t)getpid());
    ck_assert_uint_eq(h->ppid, (uint32_t)getppid());
    ck_assert_uint_ne(h->start_time, 0);
    ck_assert_uint_eq(h->start_time, id.start_time);
    ck_assert_uint_eq(h->pid_ns, id.pid_ns);
    ck_assert_uint_eq(strlen(h->boot_id), 36);
    ck_assert_int_eq(h->rank, 7);
    ck_assert_uint_eq(h->crash_safe, 1);
    ck_assert_uint_eq(h->clock, GT_CLOCK_MONOTONIC);
    ck_assert_uint_gt(h->start_realtime_ns, 1600000000ull * 1000000000u);
    buf[readlink("/proc/self/exe", buf, sizeof buf - 1)] = 0;
    ck_assert_str_eq(rd_text(v, h->exe), buf);
    ck_assert_str_eq(rd_text(v, h->cwd), getcwd(buf, sizeof buf));
    gethostname(buf, sizeof buf);
    ck_assert_str_eq(rd_text(v, h->host), buf);
    ck_assert_str_eq(rd_text(v, h->output), "here.%p");
    ck_assert_str_eq(rd_text(v, h->argv), program_invocation_name);
    const struct gt_str *config = rd_at(v, h->config, sizeof *config);
    ck_assert_ptr_nonnull(memmem(config->text, config->len, "GPUTALLY_RANK=7", 16));
    ck_assert_ptr_nonnull(memmem(config->text, config->len, "GPUTALLY_OUTPUT=here.%p", 24));
    gt_test_ticks += 1000;
    ck_assert_int_eq(gt_core_end(), 1);
    ck_assert_uint_eq(h->state, GT_STATE_ENDED);
    ck_assert_uint_eq(h->end.ticks, gt_test_ticks);
    ck_assert_uint_eq(h->stderr_same, 1);
}
END_TEST

START_TEST(nothing_recorded)
{
    gt_core_init();
    gt_pause();
    gt_resume();
    gt_domain("d");
    gt_keep("text");
    gt_name_category(GT_SOURCE_API, 0, 1, "c");
    gt_name_thread(GT_SOURCE_API, 0, "t");
    ck_assert_int_eq(gt_core_end(), 0);
    ck_assert_int_eq(rd_files(), 0);
}
END_TEST

START_TEST(other_program)
{
    setenv("GPUTALLY_EXE", "python*,other", 1);
    call("a");
    ck_assert_ptr_null(gt_session.base);
    ck_assert_int_eq(rd_files(), 0);
}
END_TEST

START_TEST(killed)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 1000; i++)
            call("a");
        gt_push(API, "open");
        kill(getpid(), SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    struct rd v = rd_open(rd_session_of(pid));
    ck_assert_uint_eq(rd_header(v)->state, GT_STATE_RUNNING);
    ck_assert_uint_eq(rd_calls(v, 0), 1000);
    const struct gt_slot *s = rd_slot(v, 0);
    ck_assert_uint_eq(s->depth, 1);
    const struct gt_frame_block *b = rd_at(v, s->frames, sizeof *b);
    ck_assert_str_eq(rd_text(v, rd_node(v, s, GT_RECORD_NODE(b->frames[0].record))->key), "open");
    ck_assert_uint_eq(b->frames[0].t0, 1000 + 1000);
}
END_TEST

/* ---- where it lies ---- */

START_TEST(run_dir_first)
{
    char dir[160];
    snprintf(dir, sizeof dir, "%s/run", rd_dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    setenv("GPUTALLY_RUN_DIR", dir, 1);
    call("a");
    ck_assert(in_folder(dir));
}
END_TEST

START_TEST(folder_missing)
{
    char path[1200];
    if (_i == 0)
        snprintf(path, sizeof path, "%s/nowhere", rd_dir);
    else if (_i == 1)
        snprintf(path, sizeof path, "/dev/null");
    else /* too long for a name of ours */
        snprintf(path, sizeof path, "%s/%0600d", rd_dir, 0);
    setenv("GPUTALLY_SESSION_DIR", path, 1);
    call("a");
    int elsewhere = gt_session.path[0] && !in_folder(path);
    uint64_t calls = rd_calls(rd_self(), 0);
    remove_session();
    ck_assert(elsewhere);
    ck_assert_uint_eq(calls, 1);
}
END_TEST

START_TEST(folder_not_ours)
{
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
        RD_SKIP("can't become another user");
    if (geteuid() != 65534 && chmod(rd_dir, 0500) < 0)
        RD_SKIP("can't take the right to write away");
    call("a");
    int elsewhere = gt_session.path[0] && !in_folder(rd_dir);
    remove_session();
    ck_assert(elsewhere);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

static void own_path(uint32_t sequence, char *path, size_t bytes)
{
    struct gt_ident id;
    gt_ident_read(&id);
    snprintf(path, bytes, "%s/gputally-%u-%.8s-%lu-%u-%lu-%u.session", rd_dir, id.uid, id.boot_id,
             id.pid_ns, id.pid, id.start_time, sequence);
}

/* A file, links to somebody's file and to nothing, a folder: none of them is touched. */
START_TEST(names_taken)
{
    char path[512], victim[160], buf[32] = "";
    int fd;
    snprintf(victim, sizeof victim, "%s/victim", rd_dir);
    fd = open(victim, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_eq(write(fd, "precious", 8), 8);
    close(fd);
    own_path(0, path, sizeof path);
    ck_assert_int_eq(link(victim, path), 0);
    own_path(1, path, sizeof path);
    ck_assert_int_eq(symlink(victim, path), 0);
    own_path(2, path, sizeof path);
    ck_assert_int_eq(symlink("nothing", path), 0);
    own_path(3, path, sizeof path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    call("a");
    own_path(4, path, sizeof path);
    ck_assert_str_eq(gt_session.path, path);
    ck_assert_uint_eq(rd_header(rd_self())->sequence, 4);
    fd = open(victim, O_RDONLY);
    ck_assert_int_eq(read(fd, buf, sizeof buf), 8);
    close(fd);
    ck_assert_str_eq(buf, "precious");
    ck_assert_int_eq(rd_files(), 6);
}
END_TEST

/* After an exec: what this very process left before is marked, what had ended is not. */
START_TEST(older_sessions)
{
    char path[512];
    call("a");
    if (_i)
        gt_core_end();
    ck_assert_int_eq(gt_session_find_older(), -EALREADY); /* a second copy of us in this image */
    ck_assert_uint_eq(gt_session.sequence, 0);
    gt_session.header->image[0]++; /* as after an exec */
    ck_assert_int_eq(gt_session_find_older(), 0);
    ck_assert_uint_eq(rd_header(rd_self())->state, _i ? GT_STATE_ENDED : GT_STATE_EXEC);
    ck_assert_uint_eq(gt_session.sequence, 1);
    own_path(1, path, sizeof path);
    ck_assert_int_eq(symlink(gt_session.path, path), 0);
    gt_session_find_older(); /* not through a link */
    ck_assert_uint_eq(gt_session.sequence, 1);
}
END_TEST

START_TEST(no_older_sessions)
{
    gt_core_init();
    gt_session_find_older();
    ck_assert_uint_eq(gt_session.sequence, 0);
    call("a");
    ck_assert_uint_eq(rd_header(rd_self())->sequence, 0);
}
END_TEST

/* ---- limits ---- */

static void limit(int what, uint64_t bytes)
{
    struct rlimit r = {bytes, bytes};
    ck_assert_int_eq(setrlimit(what, &r), 0);
}

/* From here on what comes to stderr lies in a file; said() gives it back. */
static char said_path[160];
static void listen_to_stderr(void)
{
    snprintf(said_path, sizeof said_path, "%s/stderr", rd_dir);
    int fd = open(said_path, O_CREAT | O_RDWR | O_APPEND, 0600);
    ck_assert_int_eq(dup2(fd, 2), 2);
    close(fd);
}
static const char *said(void)
{
    static char text[4096];
    int fd = open(said_path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    close(fd);
    text[n < 0 ? 0 : n] = 0;
    return text;
}
static int lines(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

/* SIGXFSZ would kill the test. */
START_TEST(file_size_limit)
{
    limit(RLIMIT_FSIZE, 1u << 20);
    flood();
    flood();
    ck_assert_uint_eq(gt_session.size_bytes, 1u << 20);
    ck_assert_uint_eq(rd_header(rd_self())->crash_safe, 1);
    ck_assert_uint_eq(rd_header(rd_self())->memory_full, 1);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 40000);
}
END_TEST

START_TEST(private_memory)
{
    listen_to_stderr();
    limit(RLIMIT_FSIZE, _i ? 100000 : 8192);
    call("a");
    ck_assert_str_eq(gt_session.path, "");
    ck_assert_uint_eq(rd_header(rd_self())->crash_safe, 0);
    ck_assert_int_eq(rd_files(), 1); /* the messages */
    flood();
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 20001);
    ck_assert_uint_eq(rd_header(rd_self())->memory_full, 0);
    ck_assert_ptr_nonnull(strstr(said(), "gputally: no place for a session file (too little"));
    ck_assert_int_eq(lines(said()), 1);
    /* a fork child has no place either, and nothing of its parent's */
    pid_t pid = fork();
    if (pid == 0) {
        call("kid");
        CHILD_CHECK(rd_calls(rd_self(), 0) == 1);
        CHILD_CHECK(gt_core_end() == 1);
        _exit(0);
    }
    rd_wait(pid);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 20001);
    ck_assert_int_eq(gt_core_end(), 1);
}
END_TEST

static uint64_t address_space(void)
{
    uint64_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_int_eq(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

START_TEST(address_space_limit)
{
    if (RD_SANITIZED)
        RD_SKIP("sanitizers need the whole address space");
    limit(RLIMIT_AS, address_space() + (16u << 20));
    flood();
    ck_assert_uint_le(gt_session.size_bytes, 2u << 20);
    ck_assert_uint_ge(gt_session.size_bytes, 256u << 10);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 20000);
    ck_assert_ptr_nonnull(malloc(6u << 20)); /* the program's part is still there */
}
END_TEST

START_TEST(no_address_space)
{
    if (RD_SANITIZED)
        RD_SKIP("sanitizers need the whole address space");
    listen_to_stderr();
    limit(RLIMIT_AS, address_space() + (1u << 20));
    ck_assert_int_eq(gt_push(API, "a"), -1);
    ck_assert_int_eq(gt_pop(GROUP(API)), -1);
    ck_assert_ptr_null(gt_session.base);
    ck_assert_str_eq(said(), "gputally: no memory for a session: nothing is recorded in this "
                             "process\n");
    ck_assert_int_eq(gt_core_end(), 0);
    ck_assert_int_eq(rd_files(), 1);
}
END_TEST

/* ---- file systems ---- */

/* Our own view of the mounts, with a tmpfs at the test's folder. */
static int mount_tmpfs(const char *where, const char *options, unsigned long flags)
{
    return mount("none", where, "tmpfs", flags, options) == 0;
}
static int own_mounts(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* The disk fills up under us: an error where others get SIGBUS. */
START_TEST(full_tmpfs)
{
    static char junk[65536];
    char path[160];
    struct rd v;
    if (!own_mounts() || !mount_tmpfs(rd_dir, "size=32m", 0))
        RD_SKIP("may not mount");
    call("a");
    ck_assert(in_folder(rd_dir));
    ck_assert_uint_eq(gt_session.size_bytes, 4u << 20);
    snprintf(path, sizeof path, "%s/junk", rd_dir);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    memset(junk, 1, sizeof junk);
    while (write(fd, junk, sizeof junk) > 0 || errno != ENOSPC)
        ;
    flood();
    flood();
    v = rd_self();
    ck_assert_uint_eq(rd_calls(v, 0), 40001);
    ck_assert_uint_eq(rd_header(v)->memory_full, 1);
    ck_assert_uint_lt(atomic_load(&gt_session.ready_bytes), v.size);
    /* room again: no harm */
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    flood();
    ck_assert_uint_eq(rd_calls(v, 0), 60001);
    ck_assert_int_eq(gt_core_end(), 1);
}
END_TEST

/* Full from the start: not even the header has room, though there seems to be some. */
START_TEST(too_small_tmpfs)
{
    if (!own_mounts() || !mount_tmpfs(rd_dir, _i ? "size=1m" : "size=64m,nr_inodes=1", 0))
        RD_SKIP("may not mount");
    call("a");
    int elsewhere = gt_session.path[0] && !in_folder(rd_dir), left = rd_files();
    remove_session();
    ck_assert(elsewhere);
    ck_assert_int_eq(left, 0);
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 1);
}
END_TEST

START_TEST(all_read_only)
{
    char dir[96], err[] = "/var/tmp/gputally-test-XXXXXX";
    strcpy(dir, rd_dir);
    unsetenv("TMPDIR");
    setenv("GPUTALLY_SESSION_DIR", "/dev/shm", 1);
    if (!own_mounts())
        RD_SKIP("may not mount");
    int fd = mkstemp(err);
    if (fd < 0)
        RD_SKIP("no other place to write to");
    unlink(err);
    if (!mount_tmpfs("/tmp", "size=64m", MS_RDONLY) || !mount_tmpfs("/dev/shm", "", MS_RDONLY))
        RD_SKIP("may not mount");
    ck_assert_int_eq(dup2(fd, 2), 2);
    call("a");
    flood();
    char text[1024] = "";
    ck_assert_int_gt(pread(fd, text, sizeof text - 1, 0), 0);
    ck_assert_ptr_nonnull(strstr(text, "(read-only)"));
    ck_assert_int_eq(lines(text), 1);
    ck_assert_str_eq(gt_session.path, "");
    ck_assert_uint_eq(rd_calls(rd_self(), 0), 20001);
}
END_TEST

/* ---- file descriptors ---- */

/* A daemon closes all it has; and where 0, 1, 2 were closed before, none of them becomes ours. */
START_TEST(closed_fds)
{
    /* Check's own pipe is somewhere among the others: a child does it */
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 64; i++)
            close(i);
        call("a");
        for (int i = 0; i < 64; i++)
            if (fcntl(i, F_GETFD) != -1)
                _exit(8);
        flood();
        if (rd_calls(rd_self(), 0) != 20001 || rd_header(rd_self())->memory_full)
            _exit(7);
        if (gt_core_end() != 1)
            _exit(6);
        _exit(0);
    }
    rd_wait(pid);
    ck_assert_uint_eq(rd_calls(rd_open(rd_session_of(pid)), 0), 20001);
}
END_TEST

/* Whoever has fd 2 now gets none of our words. */
START_TEST(stderr_is_another_file)
{
    gt_core_init();
    listen_to_stderr();
    gt_say(GT_SAY_WARNING, "not for you");
    ck_assert_int_eq(gt_say_possible(), 0);
    call("a");
    gt_core_end();
    ck_assert_str_eq(said(), "");
    ck_assert_uint_eq(rd_header(rd_self())->stderr_same, 0);
}
END_TEST

START_TEST(say)
{
    char longer[3000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    listen_to_stderr();
    gt_core_init();
    gt_say(GT_SAY_NOTE, "quiet");
    gt_say(GT_SAY_WARNING, "a", "b", "c");
    ck_assert_str_eq(said(), "gputally: abc\n");
    gt_say(GT_SAY_WARNING, longer);
    ck_assert_int_eq(lines(said()), 2);
}
END_TEST

START_TEST(unknown_variable)
{
    listen_to_stderr();
    setenv("GPUTALLY_MEMROY", "1G", 1);
    gt_core_init();
    ck_assert_str_eq(said(), ""); /* not before something is recorded */
    call("a");
    call("a");
    ck_assert_ptr_nonnull(strstr(said(), "did you mean GPUTALLY_MEMORY?"));
    ck_assert_int_eq(lines(said()), 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("core_session");
    TCase *t = rd_case(s, "all");
    tcase_add_test(t, header);
    tcase_add_test(t, nothing_recorded);
    tcase_add_test(t, other_program);
    tcase_add_test(t, killed);
    tcase_add_test(t, run_dir_first);
    tcase_add_loop_test(t, folder_missing, 0, 3);
    tcase_add_test(t, folder_not_ours);
    tcase_add_test(t, names_taken);
    tcase_add_loop_test(t, older_sessions, 0, 2);
    tcase_add_test(t, no_older_sessions);
    tcase_add_test(t, file_size_limit);
    tcase_add_loop_test(t, private_memory, 0, 2);
    tcase_add_test(t, address_space_limit);
    tcase_add_test(t, no_address_space);
    tcase_add_test(t, full_tmpfs);
    tcase_add_loop_test(t, too_small_tmpfs, 0, 2);
    tcase_add_test(t, all_read_only);
    tcase_add_test(t, closed_fds);
    tcase_add_test(t, stderr_is_another_file);
    tcase_add_test(t, say);
    tcase_add_test(t, unknown_variable);
    return rd_run(s);
}
