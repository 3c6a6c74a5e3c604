/*
 * Times of records. Without more they are the driver's virtual clock. A client may register a clock
 * of its own: calls are then timed by it at once, and times of the device are turned into it along
 * the straight line through two moments at which both clocks were read, as CUPTI documents.
 */
#include "tests/sim/cupti/cupti_sim.h"

static CUpti_TimestampCallbackFunc theirs; /* written with the lock held, read without */
static struct moment {
    uint64_t device, client;
} first, last;

static uint64_t read_client(void)
{
    int before = cupti_inside;
    cupti_inside = 1;
    uint64_t t = theirs();
    cupti_inside = before;
    return t;
}

uint64_t cupti_now(void)
{
    if (theirs)
        return read_client();
    return cupti_driver.now ? cupti_driver.now() : 0;
}

void cupti_read_clocks(void)
{
    if (!theirs || !cupti_driver.now)
        return;
    struct moment m = {cupti_driver.now(), read_client()};
    if (!first.device)
        first = m;
    if (m.device > last.device)
        last = m;
}

/* The device's time begins with cuInit; without a moment before the first work there is no line. */
void cupti_read_first(void)
{
    if (!theirs || first.device)
        return;
    cupti_lock();
    cupti_read_clocks();
    cupti_unlock();
}

uint64_t cupti_device_time(uint64_t ns)
{
    if (!theirs)
        return ns;
    __int128 step = (__int128)ns - (__int128)first.device;
    if (last.device > first.device && last.client > first.client)
        step =
            step * (__int128)(last.client - first.client) / (__int128)(last.device - first.device);
    return (uint64_t)((__int128)first.client + step);
}

SIM_API CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
    if (!function)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult r = cupti_attach();
    if (r)
        return CUPTI_ERROR_NOT_INITIALIZED;
    cupti_lock();
    theirs = function;
    first = last = (struct moment){0, 0};
    cupti_read_clocks();
    cupti_unlock();
    return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    if (!timestamp)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (cupti_attach())
        return CUPTI_ERROR_NOT_INITIALIZED;
    *timestamp = cupti_now();
    return CUPTI_SUCCESS;
}

void cupti_clock_reset(void)
{
    cupti_lock();
    theirs = NULL;
    cupti_unlock();
}
