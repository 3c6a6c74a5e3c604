/* In which order TVM's table shows its rows where nothing in the report says so. It adds rows up in
 * a std::unordered_map and sorts with std::sort, both of libstdc++; to print what it prints, rows
 * of equal length must come as theirs do. Pure; used by out_tvm_table.c. */
#ifndef GT_TVM_ORDER_H
#define GT_TVM_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Distinct keys -> their order in such a map, when they were put in one after the other. */
struct gt_tvm_map {
    struct gt_tvm_entry *entries;
    uint32_t *buckets; /* 0: empty; else 1 + the entry before the first of the bucket */
    size_t count, room, bucket_count;
    uint32_t first; /* 1 + the first entry in order, 0: none */
    uint32_t *index;
    size_t index_size;
};
struct gt_tvm_entry {
    const char *key; /* borrowed as long as the map lives */
    size_t length;
    uint64_t hash;
    uint32_t next; /* 1 + the entry behind, 0: none */
};
void gt_tvm_map_init(struct gt_tvm_map *m);
void gt_tvm_map_fini(struct gt_tvm_map *m);
/* Number of the entry with this key: as many were put in before it. It is new if the number is the
 * count there was. */
uint32_t gt_tvm_map_put(struct gt_tvm_map *m, const char *key, size_t length);
/* The entries' numbers in the map's order, to order[0 … count - 1]. */
void gt_tvm_map_order(const struct gt_tvm_map *m, uint32_t *order);

/* Sorts by by[item], largest first. */
void gt_tvm_sort(uint32_t *items, size_t count, const double *by);

#endif
