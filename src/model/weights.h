/* SPDX-License-Identifier: MIT
 *
 * A model's weights and running statistics as flat buffers, and their way into and out of
 * safetensors files, where every tensor has its canonical (PyTorch) name, shape and order
 * (docs/files.md). Other buffers of the weights' layout, such as an optimiser's, travel the same
 * way under names that the caller gives. What the numbers mean, and when they are saved, is the
 * caller's.
 */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include "nn/graph.h"

/* The file of a checkpoint that holds the weights. */
#define MODEL_WEIGHTS_FILE "model.safetensors"

/* For weights and slots that are not in this memory as a whole: the floats of one tensor at a time,
 * [from, from + count) of the flat buffer, in the order of the tensors, slot by slot. */
struct model_carrier {
    /* A tensor that is to be written; *memory_p stays until the next call. `slot` is -1 of the
     * weights. */
    base_status (*bring)(void *context, int slot, size_t from, size_t count,
                         const float **memory_p);
    /* One that was read. */
    base_status (*take)(void *context, int slot, size_t from, size_t count, const float *memory);
    void *context;
};

struct model_weights {
    const struct nn_graph *graph; /* borrowed */
    size_t floats;                /* of `weights` */
    float *weights, *statistics;
    int64_t *tracked; /* PyTorch's num_batches_tracked, one for each statistics tensor */
    const struct model_carrier *carrier; /* in place of `weights`; or NULL */
};

/* All zeros. On failure the result is zeros too. */
base_status model_weights_init(struct model_weights *w, const struct nn_graph *graph);
void model_weights_fini(struct model_weights *w); /* accepts zeros */

base_status model_weights_write(const struct model_weights *w, const char *path);
/* A tensor that is missing or has another shape is an error, except for num_batches_tracked, which
 * files from elsewhere may lack. F16 and BF16 become floats; names may have "module." before them.
 * partial: such a tensor keeps what it has; messages tell how many were taken and name the others;
 * a file with nothing in common is an error. */
base_status model_weights_read(const struct model_weights *w, const char *path, bool partial);

/* `count` buffers of the weights' layout: tensor P of buffer i is NAMES[i].P in the file. */
struct model_slots {
    const struct nn_graph *graph;
    int count;
    const char *const *names;
    float *const *at;
    const struct model_carrier *carrier; /* in place of `at`; or NULL */
    int first;                           /* the carrier's number of the first of them */
};

base_status model_slots_write(const struct model_slots *slots, const char *path);
base_status model_slots_read(const struct model_slots *slots, const char *path);

#endif
