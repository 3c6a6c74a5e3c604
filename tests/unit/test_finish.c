/* From session to files: names, other people's files, claims, failures, recover, report. The
 * commands run in children, as they exit when memory runs out. */
#include "session_builder.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "report/commands.h"
#include "report/finish.h"
#include "report/mem.h"
#include "report/session.h"

static struct sb b;
static struct gt_err e;
static struct gt_finish_result r;
static char session[64] = "gputally-0-boot-1-4711-123456-0.session";

static void setup(void)
{
    sb_folder();
    sb_init(&b, 1 << 20);
    sb_header(&b)->cwd = sb_text(&b, sb_folder_name);
    e.message[0] = 0;
    snprintf(session, sizeof session, "gputally-%u-boot-1-4711-123456-0.session",
             (unsigned)geteuid());
}

static void teardown(void)
{
    sb_free(&b);
    sb_folder_remove();
}

/* A session with something in it, and the variables of its program. */
static void session_of(const char *variables, size_t bytes)
{
    struct gt_slot *s = sb_slot(&b, "main", 8);
    sb_call(&b, s, sb_node(&b, s, 0, "work"), 1000, 1000);
    if (bytes)
        sb_header(&b)->config = sb_bytes(&b, variables, bytes);
    sb_save(&b, session);
}

static int finish(struct gt_finish_options o)
{
    return gt_finish_session(session, &o, &r, &e);
}

static int exists(const char *path)
{
    return !access(path, F_OK);
}

/* Runs a command with its stderr in the file `err`; returns its status. */
static int command(int (*run)(int, char **), long fail_at, const char *const *args)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int argc = 0;
        char *argv[16];
        while (args[argc])
            argv[argc] = strdup(args[argc]), argc++;
        argv[argc] = NULL;
        if (!freopen("err", "w", stderr) || !freopen("out", "w", stdout))
            _exit(99);
        gt_mem_fail_at = fail_at;
        int status = run(argc, argv);
        fflush(NULL);
        _exit(status);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "died of signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}
#define COMMAND(run, ...) command(run, 0, (const char *const[]){__VA_ARGS__, NULL})

static void contains(const char *path, const char *what)
{
    char *text = sb_read(path, NULL);
    ck_assert_msg(strstr(text, what) != NULL, "%s: no \"%s\" in:\n%.500s", path, what, text);
    free(text);
}

START_TEST(plain)
{
    session_of(NULL, 0);
    ck_assert_msg(finish((struct gt_finish_options){.hold_table = 1}) == 0, "%s", e.message);
    ck_assert_int_eq(r.recorded, 1);
    ck_assert_double_eq(r.self_ns, 1000);
    ck_assert_uint_eq(r.pid, 4711);
    ck_assert_str_eq(r.program, "app");
    ck_assert_str_eq(r.files, "gputally.app.4711.json");
    ck_assert_ptr_nonnull(strstr(r.table, "work"));
    contains("gputally.app.4711.json", "\"work\"");
    ck_assert(!exists(session));
    gt_finish_result_free(&r);
}
END_TEST

START_TEST(nothing_recorded)
{
    sb_slot(&b, "main", 8);
    sb_save(&b, session);
    ck_assert_int_eq(finish((struct gt_finish_options){0}), 0);
    ck_assert_int_eq(r.recorded, 0);
    ck_assert(!exists(session));
    ck_assert(!exists("gputally.app.4711.json"));
    gt_finish_result_free(&r);
}
END_TEST

START_TEST(patterns)
{
    static const char variables[] = "GPUTALLY_FORMAT=json,csv,tree\0GPUTALLY_QUIET=1";
    sb_header(&b)->output = sb_text(&b, "a/b %h/%e-%p-%%-%n-%x");
    session_of(variables, sizeof variables);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 0);
    ck_assert(exists("a/b node1/app-4711-%-0-%x.json"));
    ck_assert(exists("a/b node1/app-4711-%-0-%x.csv"));
    ck_assert(exists("a/b node1/app-4711-%-0-%x.tree.txt"));
    char *text = sb_read("err", NULL);
    ck_assert_str_eq(text, ""); /* quiet */
    free(text);
}
END_TEST

START_TEST(folder_as_output)
{
    sb_header(&b)->output = sb_text(&b, "results");
    ck_assert_int_eq(mkdir("results", 0700), 0);
    session_of(NULL, 0);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 0);
    ck_assert(exists("results/gputally.app.4711.json"));
    contains("err", "gputally: wrote results/gputally.app.4711.json; next: gputally report ");
}
END_TEST

/* A name with the format's ending gets it once, and a number before it. */
START_TEST(ending_once)
{
    sb_header(&b)->output = sb_text(&b, "end.json");
    session_of("GPUTALLY_FORMAT=json,csv\0GPUTALLY_OUTPUT=end.json\0", 49);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 0);
    ck_assert(exists("end.json"));
    ck_assert(exists("end.json.csv"));
    ck_assert(!exists("end.json.json"));
    sb_header(&b)->pid = 4712;
    sb_save(&b, session);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 0);
    contains("err", "end.json is there already: writing end-1.json");
    contains("end-1.json", "4712");
    sb_header(&b)->output = sb_text(&b, ".json");
    sb_save(&b, session);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 0);
    ck_assert(exists(".json.json"));
}
END_TEST

/* Asked for silence or not, `recover` names its files; -q is for that. --list only looks. */
START_TEST(recover_tells)
{
    char *text;
    session_of("GPUTALLY_QUIET=1\0", 17);
    sb_header(&b)->state = GT_STATE_RUNNING;
    sb_save(&b, session);
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "--list", "."), 0);
    ck_assert(exists(session));
    contains("out", "recover      4711  app ");
    contains("out", session);
    contains("err", "");
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "-lc", "."), 0);
    ck_assert(exists(session));
    contains("out", "delete       4711  app ");
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "."), 0);
    contains("err", "gputally: wrote gputally.app.4711.json; next: gputally report ");
    contains("err", "1 recovered");
    sb_save(&b, session);
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "-q", "."), 0);
    text = sb_read("err", NULL);
    ck_assert_str_eq(text, "");
    free(text);
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "--list", "."), 0);
    text = sb_read("out", NULL);
    ck_assert_str_eq(text, "");
    free(text);
}
END_TEST

/* Whose table it is, where that is not plain. */
START_TEST(heading)
{
    session_of(NULL, 0);
    sb_header(&b)->state = GT_STATE_RUNNING;
    sb_save(&b, session);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 0);
    char *text = sb_read("err", NULL);
    const char *first = "gputally: process 4711 (app), killed\n---";
    ck_assert(!strncmp(text, first, strlen(first)));
    free(text);
    sb_save(&b, session);
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "."), 0);
    text = sb_read("err", NULL);
    ck_assert(!strncmp(text, first, strlen(first)));
    free(text);
}
END_TEST

START_TEST(others_files_stay)
{
    session_of(NULL, 0);
    sb_write("gputally.app.4711.json", "precious", 8);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", "--keep", session), 0);
    contains("gputally.app.4711.json", "precious");
    contains("err", "gputally.app.4711.json is there already: writing gputally.app.4711-1.json");
    contains("gputally.app.4711-1.json", "\"work\"");
    /* the same session once more, as after a kill: its own file is replaced */
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", "--keep", session), 0);
    ck_assert(!exists("gputally.app.4711-2.json"));
    /* the program that it became by exec is another one */
    sb_header(&b)->sequence = 1;
    sb_save(&b, session);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 0);
    ck_assert(exists("gputally.app.4711-2.json"));
}
END_TEST

START_TEST(exec_chain)
{
    char next[80];
    struct gt_slot *s = sb_slot(&b, "main", 8);
    sb_header(&b)->state = GT_STATE_RUNNING;
    sb_call(&b, s, sb_node(&b, s, 0, "work"), 1000, 1000);
    sb_save(&b, session);
    strcpy(next, session);
    strcpy(strrchr(next, '-'), "-1.session");
    sb_header(&b)->sequence = 1;
    sb_header(&b)->state = GT_STATE_ENDED;
    sb_save(&b, next);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", next), 0);
    ck_assert(!exists(session) && !exists(next));
    contains("gputally.app.4711.json", "\"ended\":\"exec\"");
    contains("gputally.app.4711-1.json", "\"ended\":\"exit\"");
}
END_TEST

START_TEST(claims)
{
    session_of(NULL, 0);
    struct gt_header *h = sb_header(&b);
    h->finisher = 1; /* lives, but is no gputally; or can't be looked at: then it may be one */
    sb_save(&b, session);
    char link[64];
    int visible = readlink("/proc/1/exe", link, sizeof link) > 0;
    int rc = gt_session_claim(session, &e);
    ck_assert_int_eq(rc, visible ? 0 : -EBUSY);
    e.message[0] = 0;
    pid_t pid = fork(); /* the same program as we: a living worker */
    if (pid == 0) {
        pause();
        _exit(0);
    }
    h->finisher = (uint32_t)pid;
    sb_save(&b, session);
    ck_assert_int_eq(finish((struct gt_finish_options){.quiet = 1}), -EBUSY);
    gt_finish_result_free(&r);
    ck_assert(exists(session));
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    e.message[0] = 0;
    ck_assert_msg(finish((struct gt_finish_options){.quiet = 1}) == 0, "%s", e.message);
    gt_finish_result_free(&r);
    ck_assert(exists("gputally.app.4711.json"));
}
END_TEST

START_TEST(unwritable)
{
    if (geteuid() == 0) {
        /* root may write everywhere: a file where a folder is needed stops him too */
        sb_write("blocked", "", 0);
    } else {
        ck_assert_int_eq(mkdir("blocked", 0500), 0);
    }
    sb_header(&b)->output = sb_text(&b, "blocked/report");
    session_of(NULL, 0);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 2);
    char hint[300];
    snprintf(hint, sizeof hint, "(session kept: %s; try: gputally report %s -o FILE)", session,
             session);
    contains("err", hint);
    contains("err", "blocked");
    char *text = sb_read("err", NULL);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
    free(text);
    ck_assert(exists(session));
}
END_TEST

static int limited(int argc, char **argv)
{
    struct rlimit l = {512, 512};
    setrlimit(RLIMIT_FSIZE, &l);
    return gt_cmd_finish(argc, argv);
}

START_TEST(file_size_limit)
{
    session_of(NULL, 0);
    ck_assert_int_eq(COMMAND(limited, "finish", session), 2);
    contains("err", "File too large");
    ck_assert(exists(session));
    ck_assert(!exists("gputally.app.4711.json"));
    ck_assert_int_eq(system("test -z \"$(ls -A | grep tmp)\""), 0);
}
END_TEST

START_TEST(stderr_of_another)
{
    sb_header(&b)->stderr_same = 0;
    session_of(NULL, 0);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 0);
    char *text = sb_read("err", NULL);
    ck_assert_str_eq(text, "");
    free(text);
    ck_assert(exists("gputally.app.4711.json"));
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", session), 2); /* gone: that is told */
    contains("err", "No such file");
}
END_TEST

START_TEST(from_standard_input)
{
    session_of(NULL, 0);
    int fd = open(session, O_RDONLY), saved = dup(0);
    ck_assert_int_ge(dup2(fd, 0), 0);
    ck_assert_int_eq(COMMAND(gt_cmd_finish, "finish", "-"), 0);
    dup2(saved, 0);
    close(fd);
    close(saved);
    contains("gputally.app.4711.json", "\"work\"");
}
END_TEST

START_TEST(recover)
{
    session_of(NULL, 0);
    sb_header(&b)->state = GT_STATE_RUNNING;
    ck_assert_int_eq(mkdir("gputally-run-77", 0700), 0);
    char other[128], foreign[128];
    snprintf(other, sizeof other, "gputally-run-77/%s", session);
    snprintf(foreign, sizeof foreign, "gputally-%u-x-0.session", (unsigned)geteuid());
    sb_header(&b)->pid = 4712;
    sb_save(&b, other);
    sb_write(foreign, "not ours", 8);
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "."), 0);
    ck_assert(exists("gputally.app.4711.json"));
    ck_assert(exists("gputally.app.4712.json"));
    contains("gputally.app.4712.json", "\"ended\":\"killed\"");
    contains("err", "not a gputally session");
    contains("err", "2 recovered");
    ck_assert(exists(foreign));
    /* killed before the header was written: the name says that its process is gone */
    snprintf(other, sizeof other, "gputally-%u-00000000-1-4713-1-0.session", (unsigned)geteuid());
    sb_write(other, "\0\0\0\0\0\0\0\0\0", 9);
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "."), 0);
    ck_assert(!exists(other));
    contains("err", "0 recovered, 1 empty");
    sb_save(&b, session);
    ck_assert_int_eq(COMMAND(gt_cmd_recover, "recover", "--clean", "."), 0);
    ck_assert(!exists(session));
    ck_assert(!exists("gputally.app.4712-1.json"));
    ck_assert(exists(foreign));
}
END_TEST

START_TEST(report)
{
    session_of(NULL, 0);
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report"), 1);
    contains("err", "Usage: gputally report");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", session), 0);
    contains("out", "Self CPU time total: 1.000us");
    ck_assert(exists(session));
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-o", "x.json", session), 0);
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-o", "x.json", session), 2);
    contains("err", "x.json: the file exists; --force replaces it");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "--force", "-o", "x.json", session), 0);
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "x.json", session, "-g", "thread"), 0);
    contains("out", "main/4711");
    contains("err", "session: counted once: its process is in a file before it");
    contains("out", "Self CPU time total: 1.000us");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "x.json", "-g", "thread", "-g", "rank"), 0);
    contains("out", "main/4711");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-f", "tree", "-n", "3", "x.json"), 2);
    contains("err", "--row-limit is for tables");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-g", "shape", "-o", "y.tree.txt", "x.json"),
                     2);
    contains("err", "--group-by is for tables");
    ck_assert(!exists("y.tree.txt"));
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-o", "x.tree.txt", session), 0);
    contains("x.tree.txt", "thread slot 0 main");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-s", "color", session), 2);
    contains("err", "--sort-by color: there is self_cpu_time_total");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-f", "xml", session), 2);
    contains("err", "there is table json csv tree");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-n", "x", session), 2);
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-o", "none/x.json", session), 2);
    contains("err", "gputally: none/x.json: there is no folder none\n");
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "none.json"), 2);
    contains("err", "gputally: none.json: No such file or directory");
}
END_TEST

/* Each allocation fails once: out of memory is one line and status 2, and finish keeps the session.
 */
static void starve(int (*run)(int, char **), const char *const *args)
{
    for (long n = 1;; n++) {
        ck_assert_int_lt(n, 20000);
        int status = command(run, n, args);
        if (status == 0)
            return;
        ck_assert_int_eq(status, 2);
        char *text = sb_read("err", NULL);
        ck_assert_str_eq(text, "gputally: out of memory\n");
        free(text);
        ck_assert(exists(session));
    }
}

START_TEST(out_of_memory)
{
    session_of(NULL, 0);
    starve(gt_cmd_report, (const char *const[]){"report", session, NULL});
    ck_assert_int_eq(COMMAND(gt_cmd_report, "report", "-o", "x.json", session), 0);
    starve(gt_cmd_report, (const char *const[]){"report", "-f", "csv", "x.json", NULL});
    starve(gt_cmd_finish, (const char *const[]){"finish", session, NULL});
    ck_assert(!exists(session));
}
END_TEST

START_TEST(killed_in_the_middle)
{
    static const char variables[] = "GPUTALLY_FORMAT=json,csv";
    session_of(variables, sizeof variables);
    unsigned char *good = malloc(b.used);
    memcpy(good, b.data, b.used);
    uint32_t random = 3;
    for (int i = 0; i < 60; i++) {
        sb_write(session, good, b.used);
        pid_t pid = fork();
        if (pid == 0) {
            gt_finish_session(session, &(struct gt_finish_options){.quiet = 1}, &r, &e);
            _exit(0);
        }
        random = random * 1664525 + 1013904223;
        for (volatile uint32_t k = (random >> 8) % 400000; k; k--)
            ;
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        if (exists(session)) {
            e.message[0] = 0;
            ck_assert_msg(finish((struct gt_finish_options){.quiet = 1}) == 0, "%s", e.message);
            gt_finish_result_free(&r);
        }
        contains("gputally.app.4711.json", "\"coverage\"");
        contains("gputally.app.4711.csv", "\"work\",1,");
        ck_assert(!exists("gputally.app.4711-1.json"));
        ck_assert(!exists("gputally.app.4711-1.csv"));
        ck_assert_int_eq(unlink("gputally.app.4711.json") | unlink("gputally.app.4711.csv"), 0);
        ck_assert_int_eq(system("test -z \"$(ls -A | grep tmp)\""), 0);
    }
    free(good);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("finish");
    TCase *t = tcase_create("finish");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, plain);
    tcase_add_test(t, nothing_recorded);
    tcase_add_test(t, patterns);
    tcase_add_test(t, folder_as_output);
    tcase_add_test(t, others_files_stay);
    tcase_add_test(t, exec_chain);
    tcase_add_test(t, claims);
    tcase_add_test(t, unwritable);
    tcase_add_test(t, file_size_limit);
    tcase_add_test(t, stderr_of_another);
    tcase_add_test(t, from_standard_input);
    tcase_add_test(t, recover);
    tcase_add_test(t, recover_tells);
    tcase_add_test(t, heading);
    tcase_add_test(t, ending_once);
    tcase_add_test(t, report);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, killed_in_the_middle);
    suite_add_tcase(s, t);
    return sb_run(s);
}
