/* See symbols_xz.h. By liblzma. */
#include "report/symbols_xz.h"
#include "report/mem.h"
#include <lzma.h>
#include <stdlib.h>

/* Real ones hold up to some MiB; a section of 1 MiB can be made to hold 7 GiB. */
#define MOST (64u << 20)
/* xz -9 needs 65 MiB to be read, the default 9 */
#define MEMORY (128u << 20)

uint8_t *gt_symbols_unxz(const uint8_t *bytes, size_t n, size_t *size)
{
    lzma_stream s = LZMA_STREAM_INIT;
    uint8_t *to = NULL;
    size_t room = 0;
    lzma_ret rc = lzma_stream_decoder(&s, MEMORY, 0);
    s.next_in = bytes;
    s.avail_in = n;
    while (rc == LZMA_OK && room < MOST) {
        size_t used = room;
        room = room ? 2 * room : n < MOST / 8 ? 4 * n + 1024 : MOST / 2;
        room = room > MOST ? MOST : room;
        to = gt_mem_resize(to, room, 1);
        s.next_out = to + used;
        s.avail_out = room - used;
        while (rc == LZMA_OK && s.avail_out)
            rc = lzma_code(&s, LZMA_FINISH);
    }
    *size = room - s.avail_out;
    lzma_end(&s);
    if (rc != LZMA_STREAM_END) {
        free(to);
        return NULL;
    }
    return to;
}
