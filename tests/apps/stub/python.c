/* Stand-ins for libpython: what the walk over frames reads, and nothing else. Two frames, as those
 * of PYTHON_MINOR 11; other numbers have to be refused before anybody looks.
 *   PYTHON_FREE   says of itself that it runs without a GIL
 *   PYTHON_WRONG  its frames are elsewhere: where 3.11 has them is an address that is none */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char at[256];
} object;

const unsigned long Py_Version = 0x03000000ul | PYTHON_MINOR << 16;
object PyCode_Type, PyUnicode_Type, PyBytes_Type;
struct {
    char cookie[8];
    uint64_t version, free_threaded, rest[200];
} _PyRuntime = {.cookie = "xdebugpy",
                .version = 0x03000000 | PYTHON_MINOR << 16,
#ifdef PYTHON_FREE
                .free_threaded = 1
#endif
};

int Py_IsInitialized(void);
int _Py_IsFinalizing(void);
const char *Py_GetVersion(void);
void *PyGILState_GetThisThreadState(void);

int Py_IsInitialized(void)
{
    return 1;
}

int _Py_IsFinalizing(void)
{
    return 0;
}

const char *Py_GetVersion(void)
{
    static char text[16];
    snprintf(text, sizeof text, "3.%d.0", PYTHON_MINOR);
    return text;
}

static object thread, cframe, frames[2], codes[2], file, names[2], table;

static void put(object *o, unsigned offset, const void *p)
{
    memcpy(o->at + offset, &p, sizeof p);
}

static void number(object *o, unsigned offset, uint64_t v, unsigned bytes)
{
    memcpy(o->at + offset, &v, bytes);
}

static object *text(object *o, const char *s)
{
    put(o, 8, &PyUnicode_Type);
    number(o, 16, strlen(s), 8);
    number(o, 32, 1u << 2 | 1u << 5 | 1u << 6, 4);
    strcpy(o->at + 48, s);
    return o;
}

/* Four words of code: a line of its own for the last two. */
void *PyGILState_GetThisThreadState(void)
{
    static const unsigned char lines[] = {0x80 | 13 << 3 | 1, 2 << 1, 0x80 | 13 << 3 | 1, 3 << 1};

    put(&thread, 56, &cframe);
    put(&table, 8, &PyBytes_Type);
    number(&table, 16, sizeof lines, 8);
    memcpy(table.at + 32, lines, sizeof lines);
    text(&file, "fake.py");
    for (int i = 0; i < 2; i++) {
        put(&codes[i], 8, &PyCode_Type);
        number(&codes[i], 16, 4, 8);
        number(&codes[i], 72, 10 * (i + 1), 4);
        put(&codes[i], 112, &file);
        put(&codes[i], 128, text(&names[i], i ? "outer" : "inner"));
        put(&codes[i], 136, &table);
        put(&frames[i], 32, &codes[i]);
        put(&frames[i], 56, codes[i].at + 184 + 4);
        put(&frames[i], 48, i ? NULL : &frames[1]);
        number(&frames[i], 68, i, 1);
    }
#ifdef PYTHON_WRONG
    put(&frames[0], 48, (void *)(uintptr_t)0x10);
#endif
    put(&cframe, 8, &frames[0]);
    return &thread;
}
