/* SPDX-License-Identifier: MIT
 *
 * How several workers share an epoch of stochastic gradient steps (Gemulla et al., KDD 2011): users
 * stay with a worker, items travel. The rows of items are in *bundles*, of which each worker has
 * some at a time. A worker goes over the ratings that its users have given to the items of one
 * bundle, and passes the bundle on. In a *rotation* every bundle comes to every worker once, for a
 * part of its users; an epoch has several rotations.
 *
 *     TRY(rotation->lay_out(fit, &part));      // once; part of a worker
 *     rotation->begin(fit);                    // an epoch: the items' rows go into bundles
 *     …for each rotation r and bundle b, in an order that is the same in every epoch:
 *         rotation->train(fit, users, r, b);
 *     …all bundles are here…
 *     rotation->end(fit);                      // and back into the items' rows
 */
#ifndef RECSYS_ROTATION_H
#define RECSYS_ROTATION_H

#include "recsys/model.h"

struct recsys_part {
    uint32_t from, to; /* this worker's users: from … to-1 */
    uint32_t bundles;  /* of items, of all workers together */
    uint32_t least;    /* threads that should find work in a bundle; the same on all workers */
};

struct recsys_rotation {
    int users; /* the buffer whose rows stay with a worker */
    /* Lays out the ratings of the part; what was laid out before is given up. */
    base_status (*lay_out)(struct recsys_fit *fit, const struct recsys_part *part);
    /* What that takes, about, for each of `workers`. */
    double (*bytes)(const struct recsys_fit *fit, int workers);
    uint32_t (*count)(const struct recsys_fit *fit); /* of rotations in an epoch */
    void (*begin)(struct recsys_fit *fit);
    /* Changes `users`, rows of the part's users, and the bundle. */
    void (*train)(struct recsys_fit *fit, float *users, uint32_t rotation, uint32_t bundle);
    /* Its memory; bundles lie one after another and have as many floats each. */
    float *(*bundle)(const struct recsys_fit *fit, uint32_t bundle, size_t *floats_p);
    void (*end)(struct recsys_fit *fit);
};

#endif
