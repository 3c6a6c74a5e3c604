/* See wrote.h. Called by run_folder.c, cmd_recover.c and (the words only) finish.c. */
#include "report/wrote.h"
#include <stdio.h>
#include <string.h>

/* A command of more files than this is no longer read, let alone pasted. */
#define FEW 4

const char *gt_wrote_ended(enum gt_ended ended)
{
    static const char *const words[GT_ENDED_KINDS] = {
        [GT_ENDED_EXEC] = "went on as another program",
        [GT_ENDED_KILLED] = "killed",
        [GT_ENDED_RUNNING] = "still running",
    };
    return words[ended] ? words[ended] : "";
}

void gt_wrote_heading(unsigned pid, const char *program, enum gt_ended ended)
{
    const char *how = gt_wrote_ended(ended);
    fprintf(stderr, "gputally: process %u (%s)%s%s\n", pid, program ? program : "unknown",
            *how ? ", " : "", how);
}

/* A path as the user can paste it into a shell. */
static void path(const char *text, size_t len)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:@%/\n";

    if (strspn(text, safe) >= len) {
        fprintf(stderr, "%.*s", (int)len, text);
        return;
    }
    fputc('\'', stderr);
    for (size_t i = 0; i < len; i++)
        fputs(text[i] == '\'' ? "'\\''" : (char[2]){text[i], 0}, stderr);
    fputc('\'', stderr);
}

static int is_report(const char *file, size_t len)
{
    /* TVM's form has but a part of what the native one has */
    if (len > 9 && !memcmp(file + len - 9, ".tvm.json", 9))
        return 0;
    return len > 5 && !memcmp(file + len - 5, ".json", 5);
}

static const char *next(const char *file)
{
    return file + strcspn(file, "\n") + (file[strcspn(file, "\n")] == '\n');
}

/* How many reports are in the list; prints them, each after a blank, if `print`. */
static size_t reports(const char *files, int print)
{
    size_t n = 0;
    for (const char *s = files; s && *s; s = next(s)) {
        size_t len = strcspn(s, "\n");
        if (!is_report(s, len))
            continue;
        n++;
        if (print) {
            fputc(' ', stderr);
            path(s, len);
        }
    }
    return n;
}

void gt_wrote_others(const char *files)
{
    for (const char *s = files; s && *s; s = next(s)) {
        fputs("gputally: wrote ", stderr);
        path(s, strcspn(s, "\n"));
        fputc('\n', stderr);
    }
}

const char *gt_wrote_group(int shapes)
{
    return shapes ? "shape" : "thread";
}

void gt_wrote_last(const char *files, const char *others, int shapes)
{
    const char *lead = "gputally: wrote ";
    size_t more = reports(others, 0);

    if (!files || !*files)
        return;
    for (const char *s = files; *s; s = next(s)) {
        fputs(lead, stderr);
        path(s, strcspn(s, "\n"));
        lead = ", ";
    }
    if (reports(files, 0)) {
        fputs("; next: gputally report", stderr);
        reports(files, 1);
        if (more && more < FEW)
            reports(others, 1);
        fprintf(stderr, " --group-by %s", gt_wrote_group(shapes));
        if (more >= FEW)
            fprintf(stderr, "; it takes several files, --sum adds them up");
    }
    fputc('\n', stderr);
}
