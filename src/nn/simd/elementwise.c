/* SPDX-License-Identifier: MIT
 *
 * Kernels that treat a tensor as a row of numbers. Inputs and outputs may be the same memory.
 * A NaN passes through relu: a run that diverges must be seen at its loss.
 */
#include "nn/simd/simd_private.h"

enum {
    SLICES = 256, /* of square_sum: partial sums, whatever the number of threads */
};

void NN_LEVEL(relu)(size_t count, const float *x, float *y)
{
#pragma omp parallel for simd schedule(static) if (count > NN_SMALL)
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}

void NN_LEVEL(relu_backward)(size_t count, const float *y, const float *dy, float *dx)
{
#pragma omp parallel for simd schedule(static) if (count > NN_SMALL)
    for (size_t i = 0; i < count; i++) {
        const float grad = dy[i]; /* read in any case: a load that may not happen is a branch */

        dx[i] = y[i] > 0 ? grad : 0;
    }
}

void NN_LEVEL(add)(size_t count, const float *a, const float *b, float *sum)
{
#pragma omp parallel for simd schedule(static) if (count > NN_SMALL)
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

void NN_LEVEL(scale)(size_t count, float factor, float *x)
{
#pragma omp parallel for simd schedule(static) if (count > NN_SMALL)
    for (size_t i = 0; i < count; i++)
        x[i] *= factor;
}

static double slice_squares(size_t count, const float *x)
{
    double sum[16] = {0}, total = 0;
    size_t i = 0;

    for (; i + 16 <= count; i += 16)
        for (size_t lane = 0; lane < 16; lane++)
            sum[lane] += (double)x[i + lane] * (double)x[i + lane];
    for (; i < count; i++)
        total += (double)x[i] * (double)x[i];
    for (size_t lane = 0; lane < 16; lane++)
        total += sum[lane];
    return total;
}

double NN_LEVEL(square_sum)(size_t count, const float *x)
{
    const size_t length = (count / SLICES + 16) / 16 * 16;
    double part[SLICES] = {0}, total = 0;

#pragma omp parallel for schedule(static) if (count > NN_SMALL)
    for (size_t s = 0; s < SLICES; s++) {
        const size_t at = s * length;

        if (at < count)
            part[s] = slice_squares(count - at < length ? count - at : length, x + at);
    }
    for (size_t s = 0; s < SLICES; s++)
        total += part[s];
    return total;
}
