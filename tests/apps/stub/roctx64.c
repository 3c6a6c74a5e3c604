/* Stands in for AMD's libroctx64.so.4: keeps levels and ids as that does, and counts its calls. */
#include <stdint.h>

static __thread int level;
static uint64_t last_id;
static unsigned calls;

#define CALL() __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED)

/* of the stand-in only */
unsigned roctxStubCalls(void);
unsigned roctxStubCalls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

uint32_t roctx_version_major(void);
uint32_t roctx_version_major(void)
{
    return 4;
}

void roctxMarkA(const char *text);
void roctxMarkA(const char *text)
{
    (void)text;
    CALL();
}

int roctxRangePushA(const char *text);
int roctxRangePushA(const char *text)
{
    (void)text;
    CALL();
    return level++;
}

int roctxRangePop(void);
int roctxRangePop(void)
{
    CALL();
    return level ? --level : -1;
}

uint64_t roctxRangeStartA(const char *text);
uint64_t roctxRangeStartA(const char *text)
{
    (void)text;
    CALL();
    return __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
}

void roctxRangeStop(uint64_t id);
void roctxRangeStop(uint64_t id)
{
    (void)id;
    CALL();
}

int roctxProfilerPause(uint64_t tid);
int roctxProfilerPause(uint64_t tid)
{
    (void)tid;
    CALL();
    return 0;
}

int roctxProfilerResume(uint64_t tid);
int roctxProfilerResume(uint64_t tid)
{
    (void)tid;
    CALL();
    return 0;
}

int roctxNameOsThread(const char *name);
int roctxNameOsThread(const char *name)
{
    CALL();
    return name ? 0 : -5;
}
