/* SPDX-License-Identifier: MIT
 *
 * Collective operations of a group. Every rank calls the same operations with the same counts in
 * the same order; tags catch a rank that does not. Reductions are of float, in fp32, with an order
 * of summation that depends on the ranks and the algorithm alone: the same ranks in the same order
 * give the same bits.
 *
 * Failures are those of comm/group.h; after one the buffers are undefined and the group is void.
 *
 * Several `struct coll` may exist over one group: the one of all its ranks, and parts, which are of
 * some of them. A thread uses them in turns as it likes; ranks that belong to two must agree about
 * the order in which they use these two, and get an error if they do not.
 */
#ifndef COLL_COLL_H
#define COLL_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "comm/endpoint.h"
#include "comm/group.h"

enum coll_kind {
    COLL_BROADCAST,
    COLL_GATHER,
    COLL_SCATTER,
    COLL_REDUCE_SCATTER,
    COLL_ALL_GATHER,
    COLL_ALL_REDUCE,
    COLL_BARRIER,
    COLL_KINDS
};
extern const char *const coll_kind_names[COLL_KINDS]; /* "broadcast", "all-reduce", … */

enum coll_wire { COLL_FP32, COLL_BF16 };    /* what travels; sums are fp32 either way */
extern const char *const coll_wire_names[]; /* "fp32", "bf16"; NULL-ended */

struct coll;

/* forced: NULL, or algorithms by name, "ring" or "all-reduce=ring broadcast=tree": where a name
 * does not serve the group, an error says why. */
base_status coll_open(struct comm_group *group, const char *forced, struct coll **coll_p);
/* The same for some ranks of `c` alone, which become ranks 0 … count - 1 in the order of `ranks`;
 * only they call this, with the same arguments. It shares memory, algorithms and barriers with no
 * other part: ranks that are not of it may compute meanwhile. `key` tells apart parts of the same
 * ranks. The loss of any worker of the group ends its operations, of one outside the part, too: the
 * group is void. The library's own collectives (mpi) serve the whole group only. Close it before
 * `c`. */
base_status coll_open_part(struct coll *c, const char *key, const int *ranks, int count,
                           const char *forced, struct coll **part_p);
void coll_close(struct coll *coll); /* accepts NULL; close its spaces first */
/* Bytes that coll_open takes where `locals` of `size` ranks share memory: of each rank, and once
 * for all of these. */
void coll_memory(int size, int locals, uint64_t *own_p, uint64_t *shared_p);
int coll_size(const struct coll *coll);
int coll_rank(const struct coll *coll);
int coll_locals(const struct coll *coll); /* ranks that share memory with this one, and itself */
/* From now on; every rank must do so between the same operations. */
base_status coll_force(struct coll *c, const char *forced);
/* Are all names known? Whether they serve a group is seen when there is one. */
base_status coll_force_check(const char *forced);
struct comm_group *coll_group(const struct coll *coll);

/* Seconds that any one operation may take; default 60. */
void coll_patience(struct coll *coll, double seconds);

/* Σ scale[r]·x[r]; scale NULL: the sum. For a sample-weighted mean scale[r] = n[r] / Σn: every
 * rank must pass the same numbers. */
struct coll_sum {
    const float *scale; /* one a rank */
    enum coll_wire wire;
};

/* Slices: rank r's part of `count` elements. Multiples of 16 floats but for the last. */
void coll_slice(size_t count, int rank, int size, size_t *offset_p, size_t *count_p);
/* Values of the largest slice. */
size_t coll_longest_slice(size_t count, int size);

base_status coll_broadcast(struct coll *c, int root, void *bytes, size_t count);
/* root's `all` has size·count bytes, rank by rank; others pass NULL. */
base_status coll_gather(struct coll *c, int root, const void *mine, size_t count, void *all);
base_status coll_scatter(struct coll *c, int root, const void *all, size_t count, void *mine);
base_status coll_all_gather(struct coll *c, const void *mine, size_t count, void *all);
/* In place. On return this rank's slice of x (coll_slice) holds the sum; the rest is undefined. */
base_status coll_reduce_scatter(struct coll *c, float *x, size_t count, const struct coll_sum *sum);
/* In place. Each rank brings its own slice; on return every rank has all slices. */
base_status coll_all_gather_slices(struct coll *c, float *x, size_t count);
base_status coll_all_reduce(struct coll *c, float *x, size_t count, const struct coll_sum *sum);
base_status coll_barrier(struct coll *c);

/* A space: buffers of `floats` that live in shared memory where ranks share a host, one for each
 * rank, and one for results. Gradients that live here are summed at memory speed: no rank copies
 * in or out. Where ranks do not share memory it is private memory and the calls still work. */
struct coll_space;
base_status coll_space_open(struct coll *c, const char *key, size_t floats,
                            struct coll_space **space_p);
void coll_space_close(struct coll_space *space); /* accepts NULL */
float *coll_space_mine(struct coll_space *space);
float *coll_space_of(struct coll_space *space, int rank); /* NULL: of another host */
/* The sum of all ranks' [offset, offset + count) is at *result_p + 0 … count until the next call
 * for any of that range; it may be in the space's result, which all ranks share and must not be
 * written to, or in the rank's own buffer. */
base_status coll_space_all_reduce(struct coll *c, struct coll_space *space, size_t offset,
                                  size_t count, const struct coll_sum *sum, float **result_p);

/* Where all ranks share memory: what each rank has in [offset, offset + count) at the moment,
 * summed in the order of ranks. It waits for no rank: meet before and after it. */
void coll_space_sum(struct coll_space *space, size_t offset, size_t count, float *y);

/* Memory under a key of this view that the ranks of one host share, zeros at first, all of it
 * present: one rank makes the pages, then the others map them, because many that make them at once
 * get into each other's way. Closed by comm_shared_close. */
base_status coll_share(struct coll *c, const char *key, size_t bytes, struct comm_shared *shared_p);

/* Asynchronous: the group's engine (comm/engine.h) runs what is started here, in the order it was
 * started, which must be the same on every rank, the synchronous calls above included: they go
 * through the engine, too, while the group has one. coll_open wants a group without. Everything
 * started ends before comm_engine_end returns, OK or with the group's failure. */
base_status coll_start_all_reduce(struct coll *c, struct coll_space *space, size_t offset,
                                  size_t count, const struct coll_sum *sum, uint64_t *ticket_p);

/* A vector of `whole` floats that no rank needs to have as a whole. The ranks keep its slices
 * (coll_slice): slice r is kept by rank r, its owner, and by the copies - 1 ranks after it, around.
 * The operations below are about floats [from, from + count) of it, which every rank has or gets at
 * [offset, offset + count) of its buffer in the space. All ranks pass the same numbers. */
struct coll_owned {
    size_t whole, from, count;
    int copies; /* 1 … size */
};
/* Sums the range over all ranks: kept[i] (i < copies) is this rank's memory of slice rank - i,
 * around, which gets the sums that belong there. The bits are those of coll_space_all_reduce of the
 * whole vector; if that is a library's own, those of its sums in rank order. Afterwards the
 * range in the space is undefined. */
base_status coll_start_reduce_owned(struct coll *c, struct coll_space *space, size_t offset,
                                    const struct coll_owned *range, float *const *kept,
                                    uint64_t *ticket_p);
/* Every rank gets the range from its owners; `mine` is this rank's own slice. */
base_status coll_start_gather_owned(struct coll *c, struct coll_space *space, size_t offset,
                                    const struct coll_owned *range, const float *mine,
                                    uint64_t *ticket_p);

/* Waits until the operation of that ticket and all before it are complete. */
base_status coll_async_wait(struct coll *c, uint64_t ticket, float **result_p);
double coll_async_busy(const struct coll *c); /* seconds that such operations have run */

#endif
