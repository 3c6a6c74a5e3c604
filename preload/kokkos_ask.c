/* Whether getenv may answer Kokkos with our path. Called by dl.c when one of its two variables is
 * asked for and not set: once or twice in a process.
 *
 * Kokkos does not take every answer quietly:
 *   - since 3.7 it looks at both variables, warns when the old one is set, and aborts when they
 *     differ. So the old one is for a Kokkos that does not know the new one.
 *   - 3.3 to 3.6 throw if the old one differs from --kokkos-tools-library.
 *   - one that was built without dlopen prints that it ignores the variable.
 *   - a list of tools is split at ';'.
 * Which Kokkos asks is told by the image that holds the name it asks for, a literal: what that
 * image mentions. */
#include "kokkos_ask.h"

#include <link.h>
#include <string.h>
#include "core/sys.h"
#include "dl.h"

struct image {
    uintptr_t literal;
    uintptr_t base;
    const ElfW(Phdr) * parts;
    unsigned count;
};

/* For dl_iterate_phdr: 1 when it is this image. The caller runs in it, so it stays. */
static int holds(struct dl_phdr_info *info, size_t size, void *data)
{
    struct image *image = data;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD &&
            image->literal - info->dlpi_addr - part->p_vaddr < part->p_memsz) {
            image->base = info->dlpi_addr;
            image->parts = info->dlpi_phdr;
            image->count = info->dlpi_phnum;
            return 1;
        }
    }
    return 0;
}

/* The constants of a program that was built with AddressSanitizer have poisoned bytes between them:
 * memmem and memcmp, which it watches, would be reported as the program's own error. */
static __attribute__((no_sanitize("address"))) int same(const char *a, const char *b, size_t n)
{
    while (n && *a == *b) {
        n--;
        a++;
        b++;
    }
    return n == 0;
}

/* Is `text`, not followed by `but`, in what the file holds and nobody writes to? */
static __attribute__((no_sanitize("address"))) int mentions(const struct image *image,
                                                            const char *text, const char *but)
{
    size_t len = strlen(text), but_len = strlen(but);

    for (unsigned i = 0; i < image->count; i++) {
        const ElfW(Phdr) *part = &image->parts[i];
        const char *at = (const char *)(image->base + part->p_vaddr);

        if (part->p_type != PT_LOAD || (part->p_flags & (PF_R | PF_W)) != PF_R)
            continue;
        for (size_t left = part->p_filesz; left >= len; left--, at++)
            if (*at == *text && same(at, text, len) &&
                (!but_len || left - len < but_len || !same(at + len, but, but_len)))
                return 1;
    }
    return 0;
}

/* Kokkos has taken its options out of argv by now. */
static int option_given(void)
{
    static const char option[] = "--kokkos-tools-lib";
    char buf[2048];
    size_t kept = 0;
    int found = 0, fd = gt_sys_open("/proc/self/cmdline", O_RDONLY, 0);
    long n;

    if (fd < 0)
        return 1;
    while (!found && (n = gt_sys_read(fd, buf + kept, sizeof(buf) - kept)) > 0) {
        kept += (size_t)n;
        found = memmem(buf, kept, option, sizeof(option) - 1) != NULL;
        if (kept >= sizeof(option)) { /* it may lie across two reads */
            memmove(buf, buf + kept - sizeof(option), sizeof(option));
            kept = sizeof(option);
        }
    }
    gt_sys_close(fd);
    return found;
}

int gt_kokkos_asked(const char *name)
{
    struct image image = {.literal = (uintptr_t)name};
    const char *self = gt_dl_self();

    if (!self || strchr(self, ';') || gt_dl_environment(GT_KOKKOS_VARIABLE) ||
        gt_dl_environment(GT_KOKKOS_OLD_VARIABLE))
        return 0;
    dl_iterate_phdr(holds, &image);
    /* the names of the functions it would look up; invoke_kokkosp_callback is in all builds */
    if (!mentions(&image, "kokkosp_", "callback"))
        return 0;
    if (strcmp(name, GT_KOKKOS_VARIABLE) == 0)
        return 1;
    return !mentions(&image, GT_KOKKOS_VARIABLE, "") && !option_given();
}
