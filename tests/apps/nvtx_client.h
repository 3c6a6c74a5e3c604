/* What the NVTX test clients share. */
#ifndef NVTX_CLIENT_H
#define NVTX_CLIENT_H

#include "client.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define HAVE_NVTX 1
#endif
#endif

static __attribute__((unused)) int no_nvtx(void)
{
    fputs("skipped: built without NVTX headers\n", stderr);
    return 77;
}

#if HAVE_NVTX
#include <nvtx3/nvToolsExt.h>

static __attribute__((unused)) nvtxEventAttributes_t text_attr(const char *text)
{
    nvtxEventAttributes_t a = {0};

    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = text;
    return a;
}
#endif

#endif
