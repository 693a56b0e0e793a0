/* SPDX-License-Identifier: MIT
 *
 * How several workers share an epoch of stochastic gradient steps (Gemulla et al., KDD 2011): users
 * stay with a worker, items travel. The rows of items are in *bundles*, of which each worker has
 * some at a time. A worker goes over the ratings that its users have given to the items of one
 * bundle, and passes the bundle on. In a *rotation* every bundle comes to every worker once, for a
 * part of its users; an epoch has several rotations.
 *
 *     TRY(rotation->lay_out(fit, &part));       // once; part of a worker
 *     …memory for all bundles, one after another, rotation->floats(fit) each, zeros at first…
 *     rotation->begin(fit, from, to, bundles);  // an epoch: the items' rows go into bundles
 *     …for each rotation r and bundle b, in an order that is the same in every epoch:
 *         rotation->train(fit, users, bundles, r, b);
 *     rotation->end(fit, from, to, bundles, items);    // and into rows of items
 *
 * Every bundle is begun and ended by one worker, or by all that have memory of their own for it.
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
    size_t (*floats)(const struct recsys_fit *fit);  /* of a bundle */
    /* An epoch begins for this worker, with bundles from … to-1: the items' rows go there. */
    void (*begin)(struct recsys_fit *fit, uint32_t from, uint32_t to, float *bundles);
    /* Changes `users`, rows of the part's users, and the bundle. */
    void (*train)(struct recsys_fit *fit, float *users, float *bundles, uint32_t rotation,
                  uint32_t bundle);
    /* Bundles from … to-1 go into `items`, the rows of all items. */
    void (*end)(const struct recsys_fit *fit, uint32_t from, uint32_t to, const float *bundles,
                float *items);
};

#endif
