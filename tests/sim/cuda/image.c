/* What is in an image that a program loads: a cubin (ELF), or a fatbin that holds some. Of several
   cubins that for compute capability 9.0, else the newest: the simulated GPU runs any. It has no
   compiler, so PTX is refused as by a driver that lacks its own. */
#include "sim.h"
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243B1u
#define FATBIN_MAGIC 0xBA55ED50u
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u

struct wrapper {
    uint32_t magic, version;
    const char *data;
};
struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};
struct part {
    uint16_t kind, version; /* kind 1: PTX, 2: ELF */
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t packed_bytes, unknown1;
    uint32_t unknown2, sm;
    uint32_t unknown3, unknown4;
    uint64_t flags;
    uint64_t unknown5, unpacked_bytes;
};

static size_t elf_bytes(const char *elf)
{
    Elf64_Ehdr h;
    Elf64_Shdr s;

    memcpy(&h, elf, sizeof h);
    size_t end = h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
    size_t segments = h.e_phoff + (size_t)h.e_phnum * h.e_phentsize;
    end = segments > end ? segments : end;
    for (int i = 0; i < h.e_shnum; i++) {
        memcpy(&s, elf + h.e_shoff + (size_t)i * h.e_shentsize, sizeof s);
        if (s.sh_type != SHT_NOBITS && s.sh_offset + s.sh_size > end)
            end = s.sh_offset + s.sh_size;
    }
    return end;
}

static CUresult keep(const char *elf, size_t bytes, char **out, size_t *size)
{
    *out = malloc(bytes);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(*out, elf, bytes);
    *size = bytes;
    return CUDA_SUCCESS;
}

static bool lz4_length(const unsigned char **p, const unsigned char *end, size_t *n)
{
    unsigned char more;

    if (*n != 15)
        return true;
    do {
        if (*p == end)
            return false;
        more = *(*p)++;
        *n += more;
    } while (more == 255);
    return true;
}

/* one block of LZ4: literals, then a copy of what came before, again and again */
static size_t lz4(char *to, size_t room, const unsigned char *p, size_t bytes)
{
    const unsigned char *end = p + bytes;
    size_t n = 0;

    while (p < end) {
        size_t literals = *p >> 4, match = *p & 15, back;

        p++;
        if (!lz4_length(&p, end, &literals) || literals > (size_t)(end - p) || literals > room - n)
            return 0;
        memcpy(to + n, p, literals);
        p += literals;
        n += literals;
        if (p == end)
            break;
        if (end - p < 2)
            return 0;
        back = p[0] | (size_t)p[1] << 8;
        p += 2;
        if (!lz4_length(&p, end, &match) || !back || back > n || match + 4 > room - n)
            return 0;
        for (match += 4; match; match--, n++)
            to[n] = to[n - back];
    }
    return n;
}

static CUresult unpack(const struct part *part, const char *data, char **out, size_t *size)
{
    size_t n = 0;
    char *room = malloc(part->unpacked_bytes);

    if (!room)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (part->flags & FLAG_LZ4) {
        n = lz4(room, part->unpacked_bytes, (const unsigned char *)data, part->packed_bytes);
    } else {
        void *library = dlopen("libzstd.so.1", RTLD_NOW);
        size_t (*decompress)(void *, size_t, const void *, size_t) =
            library
                ? (size_t(*)(void *, size_t, const void *, size_t))dlsym(library, "ZSTD_decompress")
                : NULL;

        if (!decompress)
            fprintf(stderr, "gtsim: a cubin is compressed with zstd and there is no libzstd.so.1: "
                            "use nvcc --no-compress\n");
        else
            n = decompress(room, part->unpacked_bytes, data, part->packed_bytes);
    }
    if (n != part->unpacked_bytes || memcmp(room, ELFMAG, SELFMAG)) {
        free(room);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *out = room;
    *size = n;
    return CUDA_SUCCESS;
}

static CUresult in_fatbin(const char *image, char **out, size_t *size)
{
    struct fatbin head;
    struct part part, best = {.kind = 0};
    const char *data = NULL;

    memcpy(&head, image, sizeof head);
    for (const char *p = image + head.header_bytes, *end = p + head.bytes; p < end;
         p += part.header_bytes + part.bytes) {
        memcpy(&part, p, sizeof part);
        if (!part.header_bytes)
            return CUDA_ERROR_INVALID_IMAGE;
        if (part.kind != 2 || (best.kind && best.sm == 90) || (part.sm != 90 && part.sm < best.sm))
            continue;
        best = part;
        data = p + part.header_bytes;
    }
    if (!best.kind)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (best.flags & (FLAG_LZ4 | FLAG_ZSTD))
        return unpack(&best, data, out, size);
    if (memcmp(data, ELFMAG, SELFMAG))
        return CUDA_ERROR_INVALID_IMAGE;
    return keep(data, best.bytes, out, size);
}

CUresult sim_cubin_of(const void *image, char **out, size_t *size)
{
    struct wrapper w;
    uint32_t magic;

    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&magic, image, sizeof magic);
    if (magic == WRAPPER_MAGIC) {
        memcpy(&w, image, sizeof w);
        image = w.data;
        memcpy(&magic, image, sizeof magic);
    }
    if (magic == FATBIN_MAGIC)
        return in_fatbin(image, out, size);
    if (!memcmp(image, ELFMAG, SELFMAG))
        return keep(image, elf_bytes(image), out, size);
    /* PTX starts with a comment or a directive */
    if (((const char *)image)[0] == '.' || ((const char *)image)[0] == '/')
        return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
    return CUDA_ERROR_INVALID_IMAGE;
}
