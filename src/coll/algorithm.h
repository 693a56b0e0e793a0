/* SPDX-License-Identifier: MIT
 *
 * What a file in coll/algos/ provides: `const struct coll_algorithm coll_algorithm_NAME`: one way
 * to do one kind of operation. The file is called KIND-NAME.c ("all-reduce-ring.c"); people say
 * NAME. `auto` asks each algorithm that serves for its estimate and takes the least.
 */
#ifndef COLL_ALGORITHM_H
#define COLL_ALGORITHM_H

#include "coll/coll.h"

/* One call, as the algorithm sees it. */
struct coll_call {
    int root;
    const void *in; /* gather, scatter, all-gather */
    void *out;
    float *x;                 /* reductions, in place */
    size_t count;             /* bytes, or floats of reductions */
    struct coll_space *space; /* x lives there, NULL: private */
    size_t offset;            /* in the space */
    const struct coll_sum *sum;
    float *result; /* out, of a space's all-reduce; NULL: in x */
    uint32_t tag;  /* of all its messages */
    double deadline;
};

struct coll_algorithm {
    const char *name, *help; /* "ring", … */
    enum coll_kind kind;
    /* NULL when it serves the group, or why not, as in "needs shared memory between all ranks". */
    const char *(*unfit)(const struct coll *c);
    /* Estimated seconds on this group, for `auto`. */
    double (*estimate)(const struct coll *c, const struct coll_call *call);
    base_status (*run)(struct coll *c, struct coll_call *call);
};

extern const struct coll_algorithm *const coll_algorithm_registry[];
extern const size_t coll_algorithm_count;

#endif
