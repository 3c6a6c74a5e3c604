/* The functions of one module by address, from the symbol tables of one or more files. Used by
 * symbols.c; single thread.
 *
 * A library may have half a million symbols, of which a report asks for a few thousand. So it tells
 * first which addresses it wants. One pass over the symbols keeps those that may be an answer;
 * these are sorted, and their names read when asked for. */
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
    uint64_t names, names_bytes; /* where in the file */
    char *text;                  /* the names, if they are not too many to be kept */
};

struct gt_code_span {
    uint64_t start, end;
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
    uint64_t *wanted; /* addresses; sorted and each once when made */
    size_t wanted_count, wanted_room;
    int made;          /* what follows is of all that is wanted */
    uint64_t range;    /* from code[0].start to the end of the last section */
    unsigned bits;     /* an address's bucket is (address - code[0].start) >> bits */
    uint32_t *first;   /* by bucket, and one more: how many of the wanted lie before it */
    uint64_t *parts;   /* by wanted address: the last start of a function with a size up to there */
    uint32_t *answers; /* by wanted address: 1 + its entry, or 1 + count; 0: not asked for yet */
    struct gt_symbol_entry *entries; /* what may be an answer, in the order of symbols_look.c */
    uint64_t *reach;                 /* by entry: the furthest end of those before it */
    const char **names;              /* by entry: demangled, once asked for */
    size_t count, room;
    struct gt_symbol_names *kept;
};

/* Sections with code of the file whose addresses count. */
void gt_symbol_table_code(struct gt_symbol_table *t, const struct gt_elf *e);
/* Adds the tables of a file, which stays open until gt_symbol_table_free. */
void gt_symbol_table_add(struct gt_symbol_table *t, struct gt_elf *e, uint64_t shift);
/* This address will be asked for. */
void gt_symbol_table_want(struct gt_symbol_table *t, uint64_t address);
/* The pass over all symbols, for what is wanted now. */
void gt_symbol_table_make(struct gt_symbol_table *t);
void gt_symbol_table_free(struct gt_symbol_table *t);

/* A copy that lives as long as the table. */
char *gt_symbol_table_keep(struct gt_symbol_table *t, const char *name);
/* The end of the code that `address` lies in; 0: it lies in none. */
uint64_t gt_symbol_table_section_end(const struct gt_symbol_table *t, uint64_t address);
/* In the order that symbols_look.c needs; and where the code of one ends. */
void gt_symbol_table_sort(struct gt_symbol_table *t);
uint64_t gt_symbol_table_end(const struct gt_symbol_table *t, const struct gt_symbol_entry *e);
/* The function at `address`: its demangled name, which the table keeps, and its start. NULL: none.
 * An address that was not wanted costs a pass of its own. */
const char *gt_symbol_table_at(struct gt_symbol_table *t, uint64_t address, uint64_t *start);
/* Whether there is one: nothing is demangled. */
int gt_symbol_table_has(struct gt_symbol_table *t, uint64_t address);

#endif
