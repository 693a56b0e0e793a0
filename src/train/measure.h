/* SPDX-License-Identifier: MIT
 *
 * Training steps on random numbers, for measuring: no data, no files, nothing but compute.
 */
#ifndef TRAIN_MEASURE_H
#define TRAIN_MEASURE_H

#include "nn/net.h"

struct train_measure_setup {
    const char *model;
    struct nn_shape input; /* c 0: the model's own */
    int classes;           /* 0: the model's own */
    int batch, threads;    /* threads 0: one for each core */
    const char *kernels;   /* as --kernels of train */
    bool tune;             /* as --tune of train */
};

struct train_measure;

base_status train_measure_new(const struct train_measure_setup *setup,
                              struct train_measure **measure_p);
void train_measure_free(struct train_measure *measure); /* accepts NULL */

/* One step (forward, backward, sgd with momentum) on the same batch each time. */
base_status train_measure_step(struct train_measure *measure, double *seconds_p, double *loss_p);

/* What the update took of the newest step. */
double train_measure_update(const struct train_measure *measure);

/* Bytes a second that so many threads together read and write, measured now. */
base_status train_measure_memory(int threads, double *rate_p);

const struct nn_graph *train_measure_graph(const struct train_measure *measure);
struct nn_net *train_measure_net(struct train_measure *measure);
int train_measure_threads(const struct train_measure *measure);

/* FMA peak of that many threads, in flop/s, measured now. */
double train_measure_peak(int threads);

#endif
