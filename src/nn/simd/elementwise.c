/* SPDX-License-Identifier: MIT
 *
 * Kernels that treat a tensor as a row of numbers. Inputs and outputs may be the same memory.
 * A NaN passes through relu: a run that diverges must be seen at its loss.
 */
#include "base/rng.h"
#include "nn/simd/simd_private.h"

enum {
    SLICES = 256,        /* of square_sum: partial sums, whatever the number of threads */
    SMALL = 1 << 14,     /* elements below which a second thread costs more than it brings */
    BLOCKS = 64,         /* Philox blocks of four words made at once */
    DROP_SPAN = 1 << 12, /* elements of a dropout task; a multiple of 4 * BLOCKS */
    PHILOX_ROUNDS = 10,
};

void NN_LEVEL(relu)(size_t count, const float *x, float *y)
{
#pragma omp parallel for simd schedule(static) if (count > SMALL)
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}

void NN_LEVEL(relu_backward)(size_t count, const float *y, const float *dy, float *dx)
{
#pragma omp parallel for simd schedule(static) if (count > SMALL)
    for (size_t i = 0; i < count; i++) {
        const float grad = dy[i]; /* read in any case: a load that may not happen is a branch */

        dx[i] = y[i] > 0 ? grad : 0;
    }
}

void NN_LEVEL(add)(size_t count, const float *a, const float *b, float *sum)
{
#pragma omp parallel for simd schedule(static) if (count > SMALL)
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

void NN_LEVEL(scale)(size_t count, float factor, float *x)
{
#pragma omp parallel for simd schedule(static) if (count > SMALL)
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

#pragma omp parallel for schedule(static) if (count > SMALL)
    for (size_t s = 0; s < SLICES; s++) {
        const size_t at = s * length;

        if (at < count)
            part[s] = slice_squares(count - at < length ? count - at : length, x + at);
    }
    for (size_t s = 0; s < SLICES; s++)
        total += part[s];
    return total;
}

NN_INLINE uint32_t high(uint32_t a, uint32_t b)
{
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

/* Philox4x32-10 of blocks first … first+BLOCKS-1 (base/rng.c says the same for one block): word j
 * of block b is word[j][b]. The loops over blocks are what the compiler makes vectors of. */
static void philox(const struct base_rng *rng, uint32_t first, uint32_t word[4][BLOCKS])
{
    uint32_t k0 = rng->key[0], k1 = rng->key[1];

    for (uint32_t b = 0; b < BLOCKS; b++) {
        word[0][b] = first + b;
        word[1][b] = rng->counter[1];
        word[2][b] = rng->counter[2];
        word[3][b] = rng->counter[3];
    }
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
#pragma omp simd
        for (int b = 0; b < BLOCKS; b++) {
            const uint32_t even = word[0][b], odd = word[2][b];

            word[0][b] = high(odd, 0xCD9E8D57u) ^ word[1][b] ^ k0;
            word[1][b] = odd * 0xCD9E8D57u;
            word[2][b] = high(even, 0xD2511F53u) ^ word[3][b] ^ k1;
            word[3][b] = even * 0xD2511F53u;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Factors of elements 4*first … : 0 for the dead, `factor` for the living. */
static void drop_factors(const struct base_rng *rng, uint32_t first, float rate, float factor,
                         float factors[4 * BLOCKS])
{
    uint32_t word[4][BLOCKS];

    philox(rng, first, word);
    for (int b = 0; b < BLOCKS; b++)
        for (int j = 0; j < 4; j++)
            factors[4 * b + j] = base_rng_unit(word[j][b]) >= rate ? factor : 0;
}

static void drop_span(const struct base_rng *rng, size_t begin, size_t end, float rate,
                      const float *x, float *y)
{
    float factors[4 * BLOCKS];

    for (size_t i = begin; i < end; i += 4 * BLOCKS) {
        const size_t count = end - i < 4 * BLOCKS ? end - i : 4 * BLOCKS;

        drop_factors(rng, (uint32_t)(i / 4), rate, 1.0f / (1.0f - rate), factors);
#pragma omp simd
        for (size_t j = 0; j < count; j++) {
            const float value = x[i + j] * factors[j];

            y[i + j] = factors[j] > 0 ? value : 0;
        }
    }
}

/* x, y (n,floats); ids (n) */
void NN_LEVEL(dropout)(int n, size_t floats, float rate, uint64_t seed, uint32_t layer,
                       uint32_t epoch, const uint32_t *ids, const float *x, float *y)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int j = 0; j < n; j++)
        for (size_t at = 0; at < floats; at += DROP_SPAN) {
            const struct base_rng rng =
                base_rng_of(seed, BASE_STREAM_DROPOUT, layer, epoch, ids[j]);
            const size_t end = floats - at < DROP_SPAN ? floats : at + DROP_SPAN;

            drop_span(&rng, at, end, rate, x + (size_t)j * floats, y + (size_t)j * floats);
        }
}
