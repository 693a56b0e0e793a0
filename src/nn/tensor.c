/* SPDX-License-Identifier: MIT
 *
 * Memory order against canonical order, and starting values. The functions walk a tensor in
 * canonical order (O,I,H,W) and ask `position` where an element lives; nothing else in the
 * program knows the orders, except the kernels that read them. No state: any thread.
 */
#include "nn/tensor.h"

#include <string.h>

#include "base/rng.h"
#include "nn/shape.h"

struct nn_tensor nn_tensor_vector(int count, enum nn_start start, float bound)
{
    return (struct nn_tensor){
        .order = NN_VECTOR, .rank = 1, .dims = {count, 1, 1, 1}, .start = start, .bound = bound};
}

void nn_tensor_size(struct nn_tensor *t)
{
    size_t o = (size_t)t->dims[0], i = (size_t)t->dims[1];
    size_t hw = (size_t)t->dims[2] * (size_t)t->dims[3];

    t->values = o * i * hw;
    if (t->order != NN_PLAIN)
        o = (size_t)nn_pad8(t->dims[0]);
    if (t->order == NN_K_BLOCKED)
        i = (size_t)nn_pad8(t->dims[1]);
    t->floats = o * i * hw;
}

/* Index in memory of canonical element (o,i,h,w). */
static size_t position(const struct nn_tensor *t, size_t o, size_t i, size_t h, size_t w)
{
    size_t ni = (size_t)t->dims[1], nh = (size_t)t->dims[2], nw = (size_t)t->dims[3];
    size_t k, k_count = ni * nh * nw;

    switch (t->order) {
    case NN_VECTOR:
        return o;
    case NN_PLAIN:
        return ((o * ni + i) * nh + h) * nw + w;
    case NN_K_BLOCKED:
        k = ((i / NN_BLOCK * nh + h) * nw + w) * NN_BLOCK + i % NN_BLOCK;
        k_count = (size_t)nn_pad8(t->dims[1]) * nh * nw;
        break;
    case NN_K_HWI:
        k = (h * nw + w) * ni + i;
        break;
    default: /* NN_K_CHW */
        k = (i * nh + h) * nw + w;
        break;
    }
    return (o / NN_BLOCK * k_count + k) * NN_BLOCK + o % NN_BLOCK;
}

/* Where canonical element `index` is in memory. */
static size_t place(const struct nn_tensor *t, size_t index)
{
    size_t ni = (size_t)t->dims[1], nh = (size_t)t->dims[2], nw = (size_t)t->dims[3];
    size_t w = index % nw, h = index / nw % nh, i = index / (nw * nh) % ni;

    return position(t, index / (nw * nh * ni), i, h, w);
}

void nn_tensor_export(const struct nn_tensor *tensor, const float *memory, float *canonical)
{
#pragma omp parallel for
    for (size_t e = 0; e < tensor->values; e++)
        canonical[e] = memory[place(tensor, e)];
}

void nn_tensor_import(const struct nn_tensor *tensor, const float *canonical, float *memory)
{
    memset(memory, 0, tensor->floats * sizeof *memory);
#pragma omp parallel for
    for (size_t e = 0; e < tensor->values; e++)
        memory[place(tensor, e)] = canonical[e];
}

void nn_tensor_scale(const struct nn_tensor *tensor, const double *factors, const float *from,
                     float *to)
{
    const size_t outputs = (size_t)tensor->dims[0];
    const size_t lanes = tensor->order == NN_PLAIN ? 1 : NN_BLOCK; /* outputs side by side */
    const size_t panels = (outputs + lanes - 1) / lanes, panel = tensor->floats / panels;

#pragma omp parallel for
    for (size_t p = 0; p < panels; p++)
        for (size_t e = p * panel; e < (p + 1) * panel; e++) {
            const size_t o = p * lanes + e % lanes;

            to[e] = o < outputs ? (float)(factors[o] * (double)from[e]) : 0;
        }
}

static void start_uniform(const struct nn_tensor *t, uint64_t seed, uint32_t ordinal, float *memory)
{
    struct base_rng rng = base_rng_of(seed, BASE_STREAM_INIT, ordinal, 0, 0);
    size_t blocks = (t->values + 3) / 4;

#pragma omp parallel for
    for (size_t b = 0; b < blocks; b++) {
        uint32_t words[4];

        base_rng_block(&rng, (uint32_t)b, words);
        for (size_t e = 4 * b; e < t->values && e < 4 * b + 4; e++)
            memory[place(t, e)] = (2.0f * base_rng_unit(words[e % 4]) - 1.0f) * t->bound;
    }
}

void nn_tensor_start(const struct nn_tensor *tensor, uint64_t seed, uint32_t ordinal, float *memory)
{
    memset(memory, 0, tensor->floats * sizeof *memory);
    if (tensor->start == NN_START_UNIFORM)
        start_uniform(tensor, seed, ordinal, memory);
    if (tensor->start == NN_START_ONE)
        for (size_t e = 0; e < tensor->values; e++)
            memory[place(tensor, e)] = 1.0f;
}
