/* SPDX-License-Identifier: MIT
 *
 * The kernel plan: which candidate of nn/kernels computes each convolution of a model,
 * "features.0=direct features.4=winograd4 …". One worker makes it and hands it to the others; it
 * is kept in run.json and in checkpoints, so that a resumed run computes the same bits.
 */
#ifndef NN_TUNE_H
#define NN_TUNE_H

#include "nn/net.h"

/* `wish`: "auto" (or NULL) times the candidates of each shape on this machine and takes the
 * fastest that agrees with the reference; a candidate's name takes it wherever it serves; a plan
 * is taken as it is. `cache` is a file of earlier timings, read and replaced; NULL: none. The
 * setup's range, n_max and training count; its threads are those in force. */
base_status nn_tune(const struct nn_graph *graph, const struct nn_setup *setup, const char *wish,
                    const char *cache, char **plan_p);

/* Are all kernels that a wish names known? Whether they serve is seen when there is a model. */
base_status nn_tune_check(const char *wish);

/* Where this person's timings are remembered, or NULL; base_free. */
char *nn_tune_cache(void);

/* The candidate that a plan ("a=x b=y", or "x" for all) gives to a layer; NULL when it gives none.
 * base_free. */
char *nn_tune_kernel(const char *plan, const struct nn_node *node);

/* Forward flops of one sample that are really done with a plan: the fast forms do fewer. */
double nn_tune_flops(const struct nn_graph *graph, const char *plan);

#endif
