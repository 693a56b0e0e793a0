/* SPDX-License-Identifier: MIT
 *
 * Batch normalisation over x (n,C8,S,8), in phases. Sums are taken by one thread per block of
 * channels (sums.h); the passes that write are parallel over (n,C8).
 */
#include "nn/simd/sums.h"

static size_t plane(int c8, int s, int i, int c)
{
    return ((size_t)i * (size_t)c8 + (size_t)c) * (size_t)s * 8;
}

/* Mean of the S vectors of one plane, to fp32. */
NN_INLINE nn_lanes plane_mean(int s, const float *from)
{
    nn_lanes sum = {0};

    for (size_t j = 0; j < (size_t)s * 8; j += 8)
        sum += nn_lanes_load(from + j);
    return sum / (float)s;
}

/* From Σ d and Σ d², d = x - pivot, of `count` values. A variance of zero may come out as less,
 * by rounding; a NaN stays. */
NN_INLINE void store_moments(const struct nn_sums *sums, nn_lanes pivot, double count, float *sum,
                             float *squares)
{
    for (int lane = 0; lane < NN_LANES; lane++) {
        const double d = sums->total[lane / (NN_LANES / 2)][lane % (NN_LANES / 2)];
        const double d2 = sums->total_2[lane / (NN_LANES / 2)][lane % (NN_LANES / 2)];
        const double around_mean = d2 - d * d / count;

        sum[lane] = (float)(d + count * (double)pivot[lane]);
        squares[lane] = (float)(around_mean < 0 ? 0 : around_mean);
    }
}

/* x (n,C8,S,8) -> sum, squares (C8*8): Σ x and Σ (x - mean)² in one pass, around a pivot: with
 * d = x - pivot, Σ (x - mean)² = Σ d² - (Σ d)²/M. The pivot is the mean of the first sample, and
 * the mean of one of n equal parts is never more than sqrt(n-1) deviations from the mean of all,
 * so the difference costs at most a factor n of fp32's precision, and next to none when samples
 * are alike. */
void NN_LEVEL(bn_moments)(int n, int c8, int s, const float *x, float *sum, float *squares)
{
#pragma omp parallel for schedule(static)
    for (int block = 0; block < c8 * 8; block += NN_LANES) {
        const size_t first = plane(c8, s, 0, block / 8) + (size_t)block % 8;
        const nn_lanes pivot = plane_mean(s, x + first);
        struct nn_sums sums = {0};

        for (int i = 0; i < n; i++) {
            const float *from = x + plane(c8, s, i, block / 8) + (size_t)block % 8;

            for (int j = 0; j < s; j += 2, from += 16) {
                for (int odd = 0; odd < 2 && j + odd < s; odd++) {
                    const nn_lanes d = nn_lanes_load(from + odd * 8) - pivot;

                    nn_sums_add(&sums, odd, d, d);
                }
                nn_sums_added(&sums);
            }
            nn_sums_flush(&sums);
        }
        store_moments(&sums, pivot, (double)n * (double)s, sum + block, squares + block);
    }
}

/* x, y (n,C8,S,8); scale, shift (C8*8) */
void NN_LEVEL(bn_apply)(int n, int c8, int s, const float *x, const float *scale,
                        const float *shift, float *y)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < n; i++)
        for (int c = 0; c < c8; c++) {
            const size_t at = plane(c8, s, i, c);
            const nn_v8 factor = nn_load(scale + (size_t)c * 8);
            const nn_v8 offset = nn_load(shift + (size_t)c * 8);

            for (size_t j = 0; j < (size_t)s * 8; j += 8)
                nn_store(y + at + j, nn_load(x + at + j) * factor + offset);
        }
}

/* x, dy (n,C8,S,8); mean, sum_dy, sum_dyx (C8*8) */
void NN_LEVEL(bn_backward_sums)(int n, int c8, int s, const float *x, const float *mean,
                                const float *dy, float *sum_dy, float *sum_dyx)
{
#pragma omp parallel for schedule(static)
    for (int block = 0; block < c8 * 8; block += NN_LANES) {
        const nn_lanes centre = nn_lanes_load(mean + block);
        struct nn_sums sums = {0};

        for (int i = 0; i < n; i++) {
            const size_t at = plane(c8, s, i, block / 8) + (size_t)block % 8;
            const float *from = x + at, *grad = dy + at;

            for (int j = 0; j < s; j += 2, from += 16, grad += 16) {
                for (int odd = 0; odd < 2 && j + odd < s; odd++)
                    nn_sums_add(&sums, odd, nn_lanes_load(grad + odd * 8),
                                nn_lanes_load(from + odd * 8) - centre);
                nn_sums_added(&sums);
            }
            nn_sums_flush(&sums);
        }
        nn_sums_store(sums.total, sum_dy + block);
        nn_sums_store(sums.total_2, sum_dyx + block);
    }
}

/* x, dy, dx (n,C8,S,8); a, b, c (C8*8) */
void NN_LEVEL(bn_backward)(int n, int c8, int s, const float *x, const float *dy, const float *a,
                           const float *b, const float *c, float *dx)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < n; i++)
        for (int block = 0; block < c8; block++) {
            const size_t at = plane(c8, s, i, block);
            const nn_v8 va = nn_load(a + (size_t)block * 8);
            const nn_v8 vb = nn_load(b + (size_t)block * 8);
            const nn_v8 vc = nn_load(c + (size_t)block * 8);

            for (size_t j = 0; j < (size_t)s * 8; j += 8)
                nn_store(dx + at + j, va * nn_load(dy + at + j) + (vb * nn_load(x + at + j) + vc));
        }
}
