/* SPDX-License-Identifier: MIT
 *
 * Convolutions of a model that only answers: each with the layers after it that its kernel can do
 * as it stores (an `add`, a ReLU, a maxpool 2x2), its kernels chosen by rule and their weights
 * prepared, once for all lanes.
 */
#ifndef NN_CONV_ANSWER_H
#define NN_CONV_ANSWER_H

#include "nn/conv/layer.h"
#include "nn/graph.h"

enum { NN_CONV_CHOICES = 2 };

/* A kernel for batches of `from` samples and more. */
struct nn_conv_choice {
    const struct nn_conv *conv;
    float *prepared; /* NULL: it reads the weights as they are */
    size_t floats;   /* of them */
    int uses;        /* how often one is used for one image */
    int from;
};

/* The configuration of such a node, shared by the networks of all lanes. */
struct nn_conv_answer {
    struct nn_conv_config config; /* first: the functions of nn/conv/layer.h read it */
    bool add, relu, pool;
    struct nn_conv_choice choice[NN_CONV_CHOICES]; /* smallest `from` first */
    int choices;
    float *bias; /* (O), padded; NULL: none, or no kernel has prepared weights */
};

/* Makes nodes[i], a convolution, such a node, and those after it that it does identities. `room`
 * nodes are there from i on. weights: the graph's; a node whose kernels have prepared theirs has no
 * tensors any more. kernels: a kernel plan (nn/net.h), or NULL for the rule. */
base_status nn_conv_answer_make(struct nn_node *nodes, int i, int room, int n_max,
                                const float *weights, const char *kernels,
                                struct nn_conv_answer **conv_p);

/* The kernel for batches of n. */
const struct nn_conv_choice *nn_conv_answer_choice(const struct nn_conv_answer *conv, int n);

void nn_conv_answer_free(struct nn_conv_answer *conv); /* accepts NULL */

#endif
