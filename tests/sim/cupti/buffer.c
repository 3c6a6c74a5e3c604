/*
 * Activity buffers. One is filled at a time, whatever context or thread a record is of; the client
 * is asked for it when the first record needs room. A full one goes to the worker thread, which
 * hands it to the client, as in the real CUPTI; a flush hands out the rest on the caller's thread.
 */
#include "tests/sim/cupti/cupti_sim.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct buffer {
    uint8_t *data;
    size_t size, used, records, most; /* most: of records, 0: as many as fit */
    struct buffer *next;
};

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static struct buffer *current;
static struct buffer *full, **full_end = &full;
static size_t dropped;

/* ---- the worker. Its own lock: the client's callback may take any time. */
static pthread_mutex_t delivery = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* one at a time */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pid_t worker_of; /* the process that has a worker; a forked child starts its own */

void cupti_lock(void)
{
    pthread_mutex_lock(&lock);
}

void cupti_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* In order, one at a time, with no lock on records held. */
static void deliver(void)
{
    pthread_mutex_lock(&delivery);
    for (;;) {
        cupti_lock();
        struct buffer *b = full;
        if (b) {
            full = b->next;
            if (!full)
                full_end = &full;
        }
        CUpti_BuffersCallbackCompleteFunc give = complete;
        cupti_unlock();
        if (!b)
            break;
        int before = cupti_inside;
        cupti_inside = 1;
        give(NULL, 0, b->data, b->size, b->used);
        cupti_inside = before;
        free(b);
    }
    pthread_mutex_unlock(&delivery);
}

static void *work(void *unused)
{
    (void)unused;
    for (;;) {
        cupti_lock();
        while (!full)
            pthread_cond_wait(&wake, &lock);
        cupti_unlock();
        deliver();
    }
    return NULL;
}

static void start_worker(void)
{
    if (worker_of == getpid())
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t t;
    if (!pthread_create(&t, NULL, work, NULL)) {
        pthread_detach(t);
        worker_of = getpid();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void retire(void)
{
    if (!current)
        return;
    current->next = NULL;
    *full_end = current;
    full_end = &current->next;
    current = NULL;
}

static bool room(size_t size)
{
    if (current && current->used + size <= current->size &&
        (!current->most || current->records < current->most))
        return true;
    if (current) {
        retire();
        start_worker();
        pthread_cond_signal(&wake);
    }
    struct buffer *b = calloc(1, sizeof *b);
    if (!b)
        return false;
    int before = cupti_inside;
    cupti_inside = 1;
    request(&b->data, &b->size, &b->most);
    cupti_inside = before;
    if (!b->data || b->size < size) {
        /* too small a buffer still goes back to its owner */
        if (b->data) {
            current = b;
            retire();
        } else {
            free(b);
        }
        return false;
    }
    current = b;
    return true;
}

void cupti_put(const void *record, size_t size)
{
    if (!request)
        return; /* a kind was enabled with no callbacks: the header says there are no records */
    size = (size + 7) & ~(size_t)7;
    if (!room(size)) {
        dropped++;
        return;
    }
    memcpy(current->data + current->used, record, size);
    current->used += size;
    current->records++;
}

SIM_API CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                   CUpti_BuffersCallbackCompleteFunc completed)
{
    if (!requested || !completed)
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_lock();
    request = requested;
    complete = completed;
    cupti_unlock();
    return CUPTI_SUCCESS;
}

/* An activity whose end the clock has not reached has no record yet, so no buffer is held back; it
   comes with a later flush, forced or not. */
SIM_API CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    cupti_lock();
    if (!complete) {
        cupti_unlock();
        return CUPTI_ERROR_INVALID_OPERATION;
    }
    cupti_unlock();
    if (cupti_driver.poll)
        cupti_driver.poll();
    cupti_lock();
    cupti_record_graphs();
    cupti_record_flush();
    retire();
    cupti_unlock();
    deliver();
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiActivityFlush(CUcontext context, uint32_t streamId, uint32_t flag)
{
    (void)context, (void)streamId;
    return cuptiActivityFlushAll(flag);
}

/* By the period only full buffers are handed out, and those go to the worker at once. */
SIM_API CUptiResult cuptiActivityFlushPeriod(uint32_t time)
{
    (void)time;
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId,
                                                      size_t *count)
{
    (void)context, (void)streamId;
    if (!count)
        return CUPTI_ERROR_INVALID_PARAMETER;
    cupti_lock();
    *count = dropped;
    dropped = 0;
    cupti_unlock();
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t validBufferSizeBytes,
                                               CUpti_Activity **record)
{
    if (!buffer || !record)
        return CUPTI_ERROR_INVALID_PARAMETER;
    uint8_t *at = buffer, *end = buffer + validBufferSizeBytes;
    if (*record) {
        size_t size = cupti_record_size((*record)->kind);
        if (!size)
            return CUPTI_ERROR_INVALID_KIND;
        at = (uint8_t *)*record + ((size + 7) & ~(size_t)7);
    }
    if (at >= end)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    CUpti_ActivityKind kind;
    if ((size_t)(end - at) < sizeof kind)
        return CUPTI_ERROR_INVALID_KIND;
    memcpy(&kind, at, sizeof kind);
    size_t size = cupti_record_size(kind);
    if (!size || (size_t)(end - at) < size)
        return CUPTI_ERROR_INVALID_KIND;
    *record = (CUpti_Activity *)(void *)at;
    return CUPTI_SUCCESS;
}

/* Detached: what is in a buffer goes to the client, who owns its memory. */
void cupti_buffers_reset(void)
{
    cupti_lock();
    retire();
    bool give = complete != NULL;
    cupti_unlock();
    if (give)
        deliver();
    cupti_lock();
    request = NULL;
    complete = NULL;
    cupti_unlock();
}
