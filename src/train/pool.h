/* SPDX-License-Identifier: MIT
 *
 * Where in a pool of memory the weights and gradients lie that are lent to a network group by group
 * (nn/net.h): as little memory as possible, because at any time only a few groups are there. While
 * a group computes, the weights of the next one are gathered and the gradients of the one before
 * are summed, one after the other on the group's engine. Pure arithmetic of the groups' sizes: all
 * workers have the same places.
 */
#ifndef TRAIN_POOL_H
#define TRAIN_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct train_pool {
    int groups;
    size_t floats; /* of the pool */
    /* Offset of each group's weights in a forward and in a backward, and of its gradients; NULL:
     * not lent. */
    size_t *forward, *backward, *gradients;
};

/* `floats`: of each group. */
void train_pool_plan(struct train_pool *pool, const size_t *floats, int groups, bool weights,
                     bool gradients);
void train_pool_fini(struct train_pool *pool); /* accepts zeros */

#endif
