/* Stands in for NVIDIA's libnvToolsExt.so.1 (NVTX v2) so that nvtx_v2 can be linked the old way:
 * the functions do nothing, and push and pop say so with -2. */
#include <stddef.h>
#include <stdint.h>

int nvtxRangePushA(const char *text);
int nvtxRangePushA(const char *text)
{
    (void)text;
    return -2;
}

int nvtxRangePop(void);
int nvtxRangePop(void)
{
    return -2;
}

uint64_t nvtxRangeStartA(const char *text);
uint64_t nvtxRangeStartA(const char *text)
{
    (void)text;
    return 0;
}

void nvtxRangeEnd(uint64_t id);
void nvtxRangeEnd(uint64_t id)
{
    (void)id;
}

void nvtxMarkA(const char *text);
void nvtxMarkA(const char *text)
{
    (void)text;
}

void *nvtxDomainCreateA(const char *name);
void *nvtxDomainCreateA(const char *name)
{
    (void)name;
    return NULL;
}

int nvtxDomainRangePushEx(void *domain, const void *attributes);
int nvtxDomainRangePushEx(void *domain, const void *attributes)
{
    (void)domain;
    (void)attributes;
    return -2;
}

int nvtxDomainRangePop(void *domain);
int nvtxDomainRangePop(void *domain)
{
    (void)domain;
    return -2;
}
