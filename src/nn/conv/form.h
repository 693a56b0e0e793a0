/* SPDX-License-Identifier: MIT
 *
 * What a file in nn/conv/forms includes: its description (nn/conv/conv.h), estimates of its time
 * (nn/conv/cost.h), and vectors of the CPU level that it is compiled for (nn/simd). Kernels keep no
 * state between calls: everything is in the scratch memory, which is laid out from shape and
 * threads each time. Their results do not depend on the number of threads.
 */
#ifndef NN_CONV_FORM_H
#define NN_CONV_FORM_H

#include "nn/conv/conv.h"
#include "nn/conv/cost.h"
#include "nn/simd/simd_private.h"

static inline int nn_least(int a, int b)
{
    return a < b ? a : b;
}

static inline int nn_most(int a, int b)
{
    return a > b ? a : b;
}

static inline int nn_divide_up(int a, int b)
{
    return (a + b - 1) / b;
}

/* Floats rounded up to whole cache lines. */
static inline size_t nn_whole_lines(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

#endif
