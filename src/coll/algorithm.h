/* SPDX-License-Identifier: MIT
 *
 * What a file in coll/algos/ provides: `const struct coll_algorithm coll_algorithm_NAME`: one way
 * to do one kind of operation. The file is called KIND-NAME.c ("all-reduce-ring.c"); people say
 * NAME. `auto` asks each algorithm that serves for its estimate and takes the least.
 */
#ifndef COLL_ALGORITHM_H
#define COLL_ALGORITHM_H

#include "coll/coll.h"

/* Which sum a reduction computes, bit for bit; scaled values are rounded before they are added. */
enum coll_order {
    COLL_ORDER_NONE,  /* no reduction */
    COLL_ORDER_RANKS, /* (x0 + x1) + x2 … */
    COLL_ORDER_RING,  /* of slice s: (x[s+1] + x[s+2]) + … + x[s], around the ring */
    COLL_ORDER_TREE,  /* ranks from p, the largest power of two, on are added to 0 …; then halves
                         of p are added to each other: x[r] += x[r + p/2], x[r + p/4] … */
    COLL_ORDER_OTHER, /* a library's own; the same ranks give the same bits */
    COLL_ORDER_HOSTS, /* ranks of each host in order; then hosts in the order of their leaders */
};

/* One call, as the algorithm sees it. There are at least two ranks and one byte. */
struct coll_call {
    enum coll_kind kind;
    int root;
    const void *in;           /* gather, scatter: one rank's part, or all */
    void *out;                /* all-gather: all parts, this rank's is in place */
    float *x;                 /* reductions, in place; all-gather of slices */
    size_t count;             /* bytes, or floats of x */
    struct coll_space *space; /* x lives there, NULL: private */
    size_t offset;            /* in the space */
    const struct coll_sum *sum;
    enum coll_order order; /* of coll_direct's sums, without scales; NONE: that of its team */
    bool in_place;         /* the sum must be in x; otherwise wherever `result` says */
    float *result;         /* of an all-reduce; x unless the algorithm sets it */
    uint32_t tag;          /* of all its messages */
    double deadline;
};

struct coll_algorithm {
    const char *name, *help; /* "ring", … */
    enum coll_kind kind;
    enum coll_order order;
    /* NULL when it serves the group, or why not, as in "needs shared memory between all ranks". */
    const char *(*unfit)(const struct coll *c);
    /* Estimated seconds on this group, for `auto`. The same on every rank: nothing may enter that
     * differs between ranks or hosts. */
    double (*estimate)(const struct coll *c, const struct coll_call *call);
    base_status (*run)(struct coll *c, struct coll_call *call);
};

extern const struct coll_algorithm *const coll_algorithm_registry[];
extern const size_t coll_algorithm_count;

#endif
