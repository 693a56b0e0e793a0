/* SPDX-License-Identifier: MIT
 *
 * The kernel plan: which form (nn/conv/conv.h) computes each convolution of a model,
 * "features.0=direct features.4=winograd4 …". One worker makes it and hands it to the others; it
 * is kept in run.json and in checkpoints, so that a resumed run computes the same bits. Unless
 * timing is asked for, a plan depends on the model, the batch and the CPU level alone.
 */
#ifndef NN_CONV_KERNELPLAN_H
#define NN_CONV_KERNELPLAN_H

#include "nn/conv/conv.h"
#include "nn/net.h"

/* A convolution of a model, and the candidate that computes it. */
struct nn_planned {
    const struct nn_node *node;
    struct nn_conv_shape shape;
    const struct nn_conv *conv;
};

/* The convolutions of the setup's range, the cheapest candidate of each (nn_conv_cheapest) at this
 * process's CPU level. The setup's n_max and training count. base_free. */
struct nn_planned *nn_kernelplan_layers(const struct nn_graph *graph, const struct nn_setup *setup,
                                        int *count_p);

/* What a person wants of it. */
struct nn_kernelplan_wish {
    /* "auto" or NULL: the cheapest by estimate; a form's name: that one wherever it serves;
     * a plan: taken as it is */
    const char *kernels;
    bool tune; /* with "auto": the fastest by trial (nn/conv/tune.h), with the cache of this person
                */
};

base_status nn_kernelplan_make(const struct nn_graph *graph, const struct nn_setup *setup,
                               struct nn_kernelplan_wish wish, char **plan_p);

/* Are all kernels that a wish names known? Whether they serve is seen when there is a model. */
base_status nn_kernelplan_check(const char *kernels);

/* The form that a plan ("a=x b=y", or "x" for all) gives to a layer; NULL when it gives none.
 * base_free. */
char *nn_kernelplan_kernel(const char *plan, const struct nn_node *node);

/* Forward flops of one sample that are really done with a plan: the fast forms do fewer. */
double nn_kernelplan_flops(const struct nn_graph *graph, const char *plan);

#endif
