/* The functions of one module by address, from the symbol tables of one or more files. Used by
 * symbols.c; single thread.
 *
 * A library may have half a million symbols, of which a report asks for a few thousand. So they are
 * only put into buckets by address; a bucket is sorted, and names are read, when asked for. */
#ifndef GT_SYMBOLS_TABLE_H
#define GT_SYMBOLS_TABLE_H

#include "report/elf_file.h"

/* The module, its debug file, .gnu_debugdata: .symtab and .dynsym of each. */
#define GT_SYMBOL_SOURCES 6

struct gt_symbol_source {
    struct gt_elf *elf;
    const Elf64_Shdr *symbols;
    uint64_t shift; /* added to its addresses */
    int whole;      /* has local functions too: what is between two symbols belongs to the first */
    uint64_t count; /* symbols */
    uint64_t names, names_bytes; /* where in the file */
    char *text;                  /* the names, if they are not too many to be kept */
};

struct gt_code_span {
    uint64_t start, end;
};

struct gt_symbol_bucket {
    uint32_t first, count; /* entries */
    uint64_t reach;        /* end of the longest function that starts before this bucket */
    uint64_t own;          /* likewise, in it */
    int sorted;
};

struct gt_symbol_entry {
    uint64_t start : 48;
    uint64_t source : 3;
    uint64_t bind : 2;   /* 0 global, 1 weak, 2 local */
    uint64_t open : 1;   /* no size: up to the next one, if its table is whole */
    uint64_t chosen : 1; /* the best of all that have its start */
    uint64_t spare : 9;
    uint32_t size;
    uint32_t name; /* where among the names */
};

/* Memory of names that were asked for. */
struct gt_symbol_names {
    struct gt_symbol_names *next;
    size_t used;
    char text[];
};

struct gt_symbol_table {
    struct gt_symbol_source sources[GT_SYMBOL_SOURCES];
    unsigned source_count;
    struct gt_code_span *code; /* sections with code, by address */
    size_t code_count;
    unsigned bits; /* an address's bucket is (address - code[0].start) >> bits */
    struct gt_symbol_bucket *buckets;
    size_t bucket_count;
    struct gt_symbol_entry *entries;
    const char **names; /* demangled, by entry, once asked for */
    struct gt_symbol_names *kept;
    size_t count;
};

/* Sections with code of the file whose addresses count. */
void gt_symbol_table_code(struct gt_symbol_table *t, const struct gt_elf *e);
/* Adds the tables of a file, which stays open until gt_symbol_table_free. */
void gt_symbol_table_add(struct gt_symbol_table *t, struct gt_elf *e, uint64_t shift);
void gt_symbol_table_build(struct gt_symbol_table *t);
void gt_symbol_table_free(struct gt_symbol_table *t);

/* A copy that lives as long as the table. */
char *gt_symbol_table_keep(struct gt_symbol_table *t, const char *name);
/* The end of the code that `address` lies in; 0: it lies in none. */
uint64_t gt_symbol_table_section_end(const struct gt_symbol_table *t, uint64_t address);
/* The function at `address`: its demangled name, which the table keeps, and its start. NULL: none.
 */
const char *gt_symbol_table_at(struct gt_symbol_table *t, uint64_t address, uint64_t *start);

#endif
