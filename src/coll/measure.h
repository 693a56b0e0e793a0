/* SPDX-License-Identifier: MIT
 *
 * How long collective operations take on an opened group, and what the machine could do. Every rank
 * calls with the same arguments; the times are rank 0's.
 */
#ifndef COLL_MEASURE_H
#define COLL_MEASURE_H

#include "coll/coll.h"

struct coll_measure; /* buffers for operations of up to so many bytes */
base_status coll_measure_open(struct coll *c, size_t most, struct coll_measure **measure_p);
void coll_measure_close(struct coll_measure *m); /* accepts NULL */

struct coll_case {
    enum coll_kind kind;
    size_t bytes;       /* of the whole buffer: gather, scatter, all-gather: of all parts */
    bool shared;        /* it lives in a space: reductions and all-gathers of slices */
    const char *forced; /* as for coll_open, NULL: auto */
    bool engine;        /* through the group's engine: started by this thread and waited for */
};

/* Turns of every case in turn until `seconds` have passed; median and least of each. */
struct coll_times {
    double median, min;
    int turns;
};
base_status coll_measure_all(struct coll_measure *m, const struct coll_case *cases, int count,
                             double seconds, struct coll_times *times_p);

/* The algorithm that serves the case. */
const char *coll_measure_algorithm(struct coll_measure *m, const struct coll_case *one);
/* Bytes a second and rank that a perfect algorithm would have to move through its link. */
double coll_bus_bandwidth(const struct coll_case *one, int workers, double seconds);

/* What bounds all algorithms: seconds that the bytes of a case take at the speed that was measured
 * of memory, where all ranks share it, or of the links between neighbours. */
struct coll_limits {
    double memory_read, memory_write, link; /* bytes a second: all ranks together; one link */
};
base_status coll_measure_limits(struct coll_measure *m, struct coll_limits *limits_p);
double coll_limit(const struct coll_measure *m, const struct coll_case *one,
                  const struct coll_limits *limits);

#endif
