/* Keeps the first error of a command. Called all over the report house; single thread. */
#include "report/err.h"
#include <stdarg.h>
#include <stdio.h>

int gt_err_set(struct gt_err *e, int code, const char *format, ...)
{
    if (e && !e->message[0]) {
        va_list ap;
        va_start(ap, format);
        vsnprintf(e->message, sizeof e->message, format, ap);
        va_end(ap);
        /* names may hold line breaks; a message is one line */
        for (char *p = e->message; *p; p++)
            if ((unsigned char)*p < 0x20 || *p == 0x7f)
                *p = '?';
    }
    return code;
}
