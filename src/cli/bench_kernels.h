/* SPDX-License-Identifier: MIT
 *
 * `paceline bench kernels MODEL`: every candidate on every distinct convolution of a model, its
 * time on this machine beside its estimate, and what is chosen without timing.
 */
#ifndef CLI_BENCH_KERNELS_H
#define CLI_BENCH_KERNELS_H

#include "base/status.h"
#include "nn/shape.h"

struct cli_bench_kernels {
    const char *model;
    struct nn_shape input; /* c 0: the model's own */
    int classes;           /* 0: the model's own */
    int batch, threads;    /* threads 0: one for each core */
    int rounds;
    bool forward; /* without the backward */
    bool json;
};

base_status cli_bench_kernels(const struct cli_bench_kernels *setup);

#endif
