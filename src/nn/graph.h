/* SPDX-License-Identifier: MIT
 *
 * A model described: layers, shapes, named tensors, cost. Parsing allocates no weight. Any
 * contiguous range of layers can be instantiated alone (nn/net.h).
 *
 * Text: one layer a line, `#` starts a comment; `input CxHxW` and `classes N` lines give what is
 * assumed when no data set says otherwise; `save NAME` keeps the current tensor under a name,
 * `add NAME` adds it, `load NAME` goes on from it (a second branch). docs/model-files.md.
 */
#ifndef NN_GRAPH_H
#define NN_GRAPH_H

#include "nn/layer.h"

enum { NN_MAX_LAYERS = 4096, NN_MAX_TEXT = 1 << 20 };

struct nn_graph;

/* `origin` names the text in messages. input.c == 0: the text's own `input`; classes == 0: its
 * own `classes`. A model without a loss gets `softmax`, one of a single class `mse`: it
 * predicts a number. */
base_status nn_graph_new(const char *text, const char *origin, struct nn_shape input, int classes,
                         struct nn_graph **graph_p);
void nn_graph_free(struct nn_graph *graph); /* accepts NULL */

int nn_graph_layers(const struct nn_graph *graph);
const struct nn_node *nn_graph_node(const struct nn_graph *graph, int index);
/* By name or by number; -1 and an error with the nearest name when there is none. */
base_status nn_graph_find(const struct nn_graph *graph, const char *name, int *index_p);
const char *nn_graph_text(const struct nn_graph *graph);
struct nn_shape nn_graph_input(const struct nn_graph *graph);
int nn_graph_classes(const struct nn_graph *graph);
/* Can its one output be compared with a number (nn_samples.targets)? */
bool nn_graph_predicts_number(const struct nn_graph *graph);

/* Tensors in order: of the weight buffer (also the gradient and optimiser buffers) and of the
 * statistics buffer. */
size_t nn_graph_params(const struct nn_graph *graph);
const struct nn_tensor *nn_graph_param(const struct nn_graph *graph, size_t index);
size_t nn_graph_stats(const struct nn_graph *graph);
const struct nn_tensor *nn_graph_stat(const struct nn_graph *graph, size_t index);

size_t nn_graph_weight_floats(const struct nn_graph *graph); /* length of the weight buffer */
size_t nn_graph_stat_floats(const struct nn_graph *graph);
uint64_t nn_graph_parameters(const struct nn_graph *graph); /* canonical values: 9,231,114 */
double nn_graph_flops(const struct nn_graph *graph);        /* forward, one sample */

/* Floats [from, from + count) of a flat buffer. */
struct nn_range {
    size_t from, count;
};
/* The floats of layers first … last-1, the gaps after their tensors included. Neighbouring layers
 * have neighbouring floats: the ranges of a model that is cut anywhere cover each buffer. */
struct nn_range nn_graph_weights_of(const struct nn_graph *graph, int first, int last);
struct nn_range nn_graph_stats_of(const struct nn_graph *graph, int first, int last);

/* A few neighbouring layers with weights: what is lent to a network at once (nn/net.h). */
struct nn_group {
    int first, last; /* layers first … last-1; the first and the last of them have weights */
    struct nn_range weights; /* in the model's weight buffer */
};
/* The groups of layers first … last-1 in order; they cover the weights of these layers. A group
 * begins at a layer with more than vectors (a `bn` stays with the `conv` before it) as soon as the
 * one before has 64 KB. base_free. */
struct nn_group *nn_graph_groups(const struct nn_graph *graph, int first, int last, int *count_p);

/* For nn/fuse.h and nn/fold.h: a graph whose nodes may be changed and whose all else is that of
 * `graph`, which must outlive it. nn_graph_free. */
struct nn_graph *nn_graph_view(const struct nn_graph *graph, struct nn_node **nodes_p);
/* After the tensors of a view's nodes were changed: places them in buffers of the view's own. */
void nn_graph_place(struct nn_graph *view);

/* Fills a weight buffer and a statistics buffer with their starting values. */
void nn_graph_start(const struct nn_graph *graph, uint64_t seed, float *weights, float *stats);
/* The same for buffers that hold layers first … last-1 alone (nn_graph_weights_of …). */
void nn_graph_start_layers(const struct nn_graph *graph, int first, int last, uint64_t seed,
                           float *weights, float *stats);

#endif
