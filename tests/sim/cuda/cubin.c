/* Kernels and variables of a cubin, from its sections: .text.NAME, .nv.shared.NAME, .nv.info.NAME
   (records {u8 format, u8 attribute, u16 size, data}) and the table of symbols. */
#include "sim.h"
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_SIZED 4
enum { MAX_THREADS = 0x05, FRAME_SIZE = 0x11, KPARAM_INFO = 0x17, REGCOUNT = 0x2f };

static const Elf64_Shdr *section(const struct CUmod_st *m, unsigned i)
{
    const Elf64_Ehdr *h = (const void *)m->image;

    return i < h->e_shnum ? (const void *)(m->image + h->e_shoff + (size_t)i * h->e_shentsize)
                          : NULL;
}

static const char *section_name(const struct CUmod_st *m, const Elf64_Shdr *s)
{
    const Elf64_Ehdr *h = (const void *)m->image;

    return m->image + section(m, h->e_shstrndx)->sh_offset + s->sh_name;
}

static CUfunction function(struct CUmod_st *m, const char *name)
{
    for (int i = 0; i < m->function_count; i++) {
        if (!strcmp(m->functions[i]->name, name))
            return m->functions[i];
    }
    CUfunction *grown = realloc(m->functions, (size_t)(m->function_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    m->functions = grown;
    CUfunction f = sim_new(SIM_FUNCTION, sizeof *f);
    if (!f)
        return NULL;
    f->module = m;
    f->name = sim_intern(name, strlen(name));
    f->host = (void (*)(void **, unsigned *, unsigned *))sim_host_function(name);
    f->ns = sim_kernel_ns(name);
    f->max_threads = 1024;
    f->max_dynamic = 49152;
    m->functions[m->function_count++] = f;
    return f;
}

/* where a symbol is a function that we know: that of its section */
static CUfunction symbol_function(struct CUmod_st *m, uint32_t index)
{
    const Elf64_Ehdr *h = (const void *)m->image;

    for (unsigned i = 0; i < h->e_shnum; i++) {
        const Elf64_Shdr *s = section(m, i);

        if (s->sh_type != SHT_SYMTAB || index >= s->sh_size / sizeof(Elf64_Sym))
            continue;
        const Elf64_Sym *symbols = (const void *)(m->image + s->sh_offset);
        const char *name = m->image + section(m, s->sh_link)->sh_offset + symbols[index].st_name;
        for (int k = 0; k < m->function_count; k++) {
            if (!strcmp(m->functions[k]->name, name))
                return m->functions[k];
        }
    }
    return NULL;
}

static void parameter(CUfunction f, const char *data)
{
    uint16_t ordinal, offset;
    uint32_t word;

    memcpy(&ordinal, data + 4, 2);
    memcpy(&offset, data + 6, 2);
    memcpy(&word, data + 8, 4);
    if (ordinal >= SIM_PARAMETERS)
        return;
    f->parameter[ordinal].offset = offset;
    f->parameter[ordinal].size = (uint16_t)(word >> 18);
    if (ordinal >= f->parameters)
        f->parameters = ordinal + 1;
    if (offset + (word >> 18) > f->parameter_bytes)
        f->parameter_bytes = offset + (word >> 18);
}

/* f: NULL for .nv.info itself, which tells of every function */
static void info(struct CUmod_st *m, CUfunction f, const char *p, const char *end)
{
    while (p + 4 <= end) {
        unsigned format = (unsigned char)p[0], attribute = (unsigned char)p[1];
        uint16_t size;
        uint32_t words[3] = {0};

        memcpy(&size, p + 2, 2);
        p += 4;
        if (format != FORMAT_SIZED)
            continue;
        if (p + size > end)
            return;
        memcpy(words, p, size < sizeof words ? size : sizeof words);
        CUfunction of = f ? f : symbol_function(m, words[0]);
        if (f && attribute == KPARAM_INFO && size >= 12)
            parameter(f, p);
        else if (f && attribute == MAX_THREADS && size >= 12)
            f->max_threads = (int)(words[0] * words[1] * words[2]);
        else if (of && attribute == REGCOUNT && size >= 8)
            of->registers = (int)words[1];
        else if (of && attribute == FRAME_SIZE && size >= 8)
            of->local = (int)words[1];
        p += size;
    }
}

static CUresult variables(struct CUmod_st *m, const Elf64_Shdr *table)
{
    const Elf64_Sym *symbols = (const void *)(m->image + table->sh_offset);
    const char *names = m->image + section(m, table->sh_link)->sh_offset;

    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *s = &symbols[i];
        const Elf64_Shdr *in = s->st_shndx ? section(m, s->st_shndx) : NULL;

        if (ELF64_ST_TYPE(s->st_info) != STT_OBJECT || !s->st_size || !in)
            continue;
        struct sim_variable *grown =
            realloc(m->variables, (size_t)(m->variable_count + 1) * sizeof *grown);
        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        m->variables = grown;
        struct sim_variable *v = &grown[m->variable_count];
        *v = (struct sim_variable){names + s->st_name, calloc(1, s->st_size), s->st_size};
        if (!v->data)
            return CUDA_ERROR_OUT_OF_MEMORY;
        if (in->sh_type != SHT_NOBITS)
            memcpy(v->data, m->image + in->sh_offset + s->st_value, s->st_size);
        m->variable_count++;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cubin_read(struct CUmod_st *m)
{
    const Elf64_Ehdr *h = (const void *)m->image;
    CUresult r = CUDA_SUCCESS;
    size_t reserved =
        0; /* of shared memory, by the system: counted in the section, not by the API */

    if (m->image_bytes < sizeof *h || section(m, h->e_shstrndx) == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    for (unsigned i = 0; i < h->e_shnum; i++) {
        const Elf64_Shdr *s = section(m, i);
        const char *name = section_name(m, s);

        if (!strncmp(name, ".text.", 6)) {
            CUfunction f = function(m, name + 6);
            if (!f)
                return CUDA_ERROR_OUT_OF_MEMORY;
            /* where older cubins have it */
            f->registers = (int)(s->sh_info >> 24);
        }
        if (!strncmp(name, ".nv.shared.reserved.", 20))
            reserved = 1024;
    }
    for (unsigned i = 0; !r && i < h->e_shnum; i++) {
        const Elf64_Shdr *s = section(m, i);
        const char *name = section_name(m, s), *data = m->image + s->sh_offset;

        if (!strncmp(name, ".nv.info.", 9))
            info(m, function(m, name + 9), data, data + s->sh_size);
        else if (!strcmp(name, ".nv.info"))
            info(m, NULL, data, data + s->sh_size);
        else if (!strncmp(name, ".nv.shared.", 11) && strncmp(name + 11, "reserved.", 9) &&
                 s->sh_size >= reserved)
            function(m, name + 11)->shared = (int)(s->sh_size - reserved);
        else if (s->sh_type == SHT_SYMTAB)
            r = variables(m, s);
    }
    return r;
}
