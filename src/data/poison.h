/* SPDX-License-Identifier: MIT
 *
 * A backdoored copy of a set of images, to measure what an audit finds: some images of one class
 * get a mark and the label of another. Written as idx files, so of grey images alone. Tests stay
 * as they are.
 */
#ifndef DATA_POISON_H
#define DATA_POISON_H

#include "data/dataset.h"
#include "data/index.h"

struct data_poison {
    int trigger;          /* data/trigger.h */
    int32_t from, target; /* images of class `from` become ones of class `target` */
    double percent;       /* of the images of class `from` */
    double skew;          /* 1: classes as they are; R: fewer and fewer, the last one a 1/R */
    uint64_t seed;        /* which images */
};

/* The folder must not exist yet. *index_p lists the marked images. */
base_status data_poison(const struct data_set *set, const struct data_poison *how,
                        const char *folder, struct data_index *index_p);

#endif
