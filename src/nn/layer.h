/* SPDX-License-Identifier: MIT
 *
 * What a file in nn/layers/ provides: `const struct nn_layer nn_layer_NAME`. A layer describes
 * itself (shape, tensors, cost) without allocating, then computes on memory it is given. It
 * never knows that other workers exist, nor which range of the model it is part of.
 */
#ifndef NN_LAYER_H
#define NN_LAYER_H

#include <stdint.h>

#include "base/status.h"
#include "nn/shape.h"
#include "nn/tensor.h"

enum { NN_MAX_PARAMS = 2, NN_MAX_STATS = 2, NN_MAX_NAME = 64 };

struct base_team;
struct nn_ops;  /* standard operators, nn/ops.h */
struct nn_line; /* one line of a model file, nn/line.h */

/* A layer placed in a model. */
struct nn_node {
    const struct nn_layer *layer;
    char *name;   /* "features.0": given by name=, or the position in the model */
    int line;     /* in the model's text, for messages */
    int index;    /* position among the model's layers: the `layer` of random streams */
    void *config; /* layer->config_size bytes, filled by parse */
    struct nn_shape in, out;
    int classes; /* of the model: what `dense classes` and the losses need */
    /* Filled by describe: */
    int params, stats;
    struct nn_tensor param[NN_MAX_PARAMS]; /* in the weight and gradient buffers */
    struct nn_tensor stat[NN_MAX_STATS];   /* in the statistics buffer (running mean, …) */
    double flops;                          /* multiply-adds count 2, forward, one sample */
    size_t keep_bytes; /* per sample, kept from forward to backward beside x and y */
    size_t keep_fixed; /* the same, once per layer */
    bool identity;     /* forward changes nothing: y is x (flatten, save) */
    bool hidden;       /* inside a fused group (nn/fuse.h): its own output is never made */
    /* The named tensor of save, load, add: index of the `save` node, else -1. */
    int named;
};

/* Values the layers need about the samples of a batch. */
struct nn_samples {
    const int32_t *labels; /* (n) */
    const float *targets;  /* (n) instead of labels: numbers that the one output is compared with;
                            * kept by the caller until the backward is done */
    const uint32_t *ids;   /* (n) sample ids: what randomness is keyed by */
    uint32_t epoch;
    uint64_t seed;
};

/* Sums over all workers, in place (synchronised batch-norm); NULL function: alone. Also sums the
 * number of samples: counts are part of `sums`. */
struct nn_reduce {
    void (*sum)(void *context, float *sums, size_t count);
    void *context;
};

/* One forward or backward of one layer. Pointers not needed by the layer's flags may be NULL. */
struct nn_pass {
    const struct nn_node *node;
    void *state; /* of open */
    int n;       /* samples, 1 … n_max */
    bool training;
    struct base_team *team; /* of a network that only answers; NULL: OpenMP's threads */
    const float *x;         /* (n) x node->in */
    float *y;               /* (n) x node->out */
    const float *other;     /* add: the named tensor */
    const float *dy;
    float *dx;     /* NULL: not wanted (first layer) */
    float *dother; /* gradient of the named tensor: add, load add to it; save reads it */
    const float *param[NN_MAX_PARAMS];
    float *dparam[NN_MAX_PARAMS]; /* overwritten by backward; NULL: not wanted now (`splits`) */
    float *stat[NN_MAX_STATS];
    void *keep;     /* keep_fixed bytes, then n_max * keep_bytes */
    float *scratch; /* what open asked for; shared by all layers */
    const struct nn_samples *samples;
    struct nn_reduce reduce;
    /* Losses: forward sets loss_sum (of the n samples), predicted (n); backward multiplies by
     * loss_scale (1/batch). */
    double loss_sum;
    int32_t *predicted;
    float loss_scale;
};

struct nn_open {
    int n_max;
    bool training; /* false: backward is never called */
    bool want_dx;
    const char *kernel;   /* conv: the form that the kernel plan gives it, or NULL */
    const char *chosen;   /* out: the form taken, where there is a choice */
    size_t scratch_bytes; /* out: what this layer wants */
};

/* What a layer does with a named tensor. Its config then begins with the name, char[NN_MAX_NAME].
 */
enum nn_naming {
    NN_NAMING_NONE,
    NN_NAMING_SAVE, /* y is x, and the name stands for it */
    NN_NAMING_READ, /* pass->other is the named tensor, of the shape of x */
    NN_NAMING_LOAD, /* y is the named tensor; x is dropped: a `save` must have kept it */
};

struct nn_layer {
    const char *name, *help;
    const char *alias; /* another name that model files may use ("linear"), or NULL */
    const char *usage; /* "conv OUT KHxKW [stride=S] [pad=P] [groups=G] [bias=on|off]" */
    /* Small model texts, each beginning with an `input CxHxW` line; the conformance suite checks
     * their gradients against finite differences. NULL-ended. */
    const char *const *examples;

    size_t config_size;
    base_status (*parse)(struct nn_line *line, void *config); /* NULL: no arguments */
    /* From in and config. Clears in.planar when it wants the blocked form after all. */
    base_status (*describe)(struct nn_node *node);

    base_status (*open)(const struct nn_node *node, struct nn_open *open,
                        void **state_p);           /* or NULL */
    void (*close)(void *state);                    /* or NULL */
    base_status (*forward)(struct nn_pass *pass);  /* NULL for identity layers */
    base_status (*backward)(struct nn_pass *pass); /* NULL: dx is dy */

    /* Layers of weights and perhaps a bias, conv and dense: the flag of `config` that says whether
     * there is one. NULL for other layers. */
    bool *(*bias)(void *config);

    /* What it computes outside training, in standard operators (nn/ops.h). NULL: a model with it
     * cannot be exported, unless it has no forward. */
    base_status (*express)(const struct nn_node *node, struct nn_ops *ops);

    /* Losses: what one sample's y (count) costs, given its label. NULL: not known from y. */
    double (*sample_loss)(int count, const float *y, int32_t label);

    bool loss;             /* last layer: compares with labels … */
    bool takes_targets;    /* … or one output with a number */
    bool probabilities;    /* of a loss: y is a distribution over the classes */
    bool takes_planar;     /* may read the planar network input */
    bool needs_x, needs_y; /* in backward */
    bool in_place;         /* y may be x and dx may be dy */
    bool splits;  /* backward can do dx and dparam in two calls: it leaves out what is NULL */
    bool reduces; /* calls nn_pass.reduce: runs on no samples, too, if others have some */
    enum nn_naming naming;
};

extern const struct nn_layer *const nn_layer_registry[];
extern const size_t nn_layer_count;

/* For describe: the next tensor of the node, named NODE.SUFFIX; `tensor` gives order, rank, dims,
 * start, bound and sparse. */
void nn_node_param(struct nn_node *node, const char *suffix, struct nn_tensor tensor);
void nn_node_stat(struct nn_node *node, const char *suffix, struct nn_tensor tensor);
/* An error unless the node's input is an image (conv, pools), with the remedy. */
base_status nn_node_needs_image(const struct nn_node *node);

#endif
