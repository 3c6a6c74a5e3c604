/* The first thing that went wrong, carried up to whoever prints it. */
#ifndef GT_ERR_H
#define GT_ERR_H

/* message: "FILE: why", without "gputally: " and without newline; "" while nothing is wrong. */
struct gt_err {
    char message[1024];
};

/* Keeps the first message only. Returns `code`, so that a failing function can return it. */
int gt_err_set(struct gt_err *e, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
