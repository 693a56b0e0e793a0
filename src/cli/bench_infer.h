/* SPDX-License-Identifier: MIT
 *
 * paceline bench infer MODEL: how fast a model answers, with nothing around it.
 */
#ifndef CLI_BENCH_INFER_H
#define CLI_BENCH_INFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "nn/shape.h"

struct cli_bench_infer {
    const char *model, *weights; /* weights: a safetensors file; NULL: initial weights */
    struct nn_shape input;       /* c 0: the model's own */
    const char *kernels;         /* NULL: chosen by rule */
    int classes, batch, threads;
    int64_t steps;
    bool paced, json;
};

base_status cli_bench_infer(const struct cli_bench_infer *b);

#endif
