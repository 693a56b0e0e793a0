/* SPDX-License-Identifier: MIT
 *
 * The runs of a lab that are not done yet, one after the other, or side by side where the lab
 * allows it and the cores suffice. One thread.
 */
#ifndef LAB_WORK_H
#define LAB_WORK_H

#include "lab/results.h"

struct lab_work {
    const struct lab *lab;
    struct lab_results *results;
    int cores;  /* of this machine */
    bool fresh; /* the command has --fresh */
    /* What came of it: */
    size_t total, done; /* runs that were asked for, and have a record now */
    json_t *failures;   /* objects: case, seed, message; json_decref */
};

/* Goes through all selected points, the seeds outermost: cases take turns, so that a machine whose
 * speed changes slowly treats them alike. A run that fails is told, and the others go on. A signal
 * (base/stop.h) ends it: the runs under way are asked to stop, do not count, and the status is
 * BASE_ERR_INTERRUPTED. */
base_status lab_work(struct lab_work *work);

/* Selected runs that are not done; *seconds_p: how long they may take, by those that are; NAN:
 * nothing is known yet. */
size_t lab_left(const struct lab_work *work, double *seconds_p);

/* "40 s", "12 min", "3.5 h". */
struct lab_span {
    char text[32];
};
struct lab_span lab_span(double seconds);

#endif
