/* SPDX-License-Identifier: MIT
 *
 * Batch normalisation over x (n,C8,S,8), in phases. Sums are taken by one thread per block of
 * channels, in a fixed order: short runs in fp32, their totals in double, so that the error does
 * not grow with n*S. The passes that write are parallel over (n,C8).
 */
#include "nn/simd/simd_private.h"

enum { RUN = 64 }; /* vectors summed in fp32, by two accumulators */

NN_INLINE nn_d8 widen(nn_v8 value)
{
    return __builtin_convertvector(value, nn_d8);
}

NN_INLINE void keep(float *to, nn_d8 total)
{
    nn_store(to, __builtin_convertvector(total, nn_v8));
}

/* A variance of zero may come out as less, by rounding; a NaN stays. */
NN_INLINE nn_d8 not_below_zero(nn_d8 value)
{
    for (int lane = 0; lane < 8; lane++)
        value[lane] = value[lane] < 0 ? 0 : value[lane];
    return value;
}

static size_t plane(int c8, int s, int i, int c)
{
    return ((size_t)i * (size_t)c8 + (size_t)c) * (size_t)s * 8;
}

/* Mean of the S vectors of one plane, to fp32. */
NN_INLINE nn_v8 plane_mean(int s, const float *from)
{
    nn_v8 sum = {0};

    for (size_t j = 0; j < (size_t)s * 8; j += 8)
        sum += nn_load(from + j);
    return sum / (float)s;
}

/* x (n,C8,S,8) -> sum, squares (C8*8): Σ x and Σ (x - mean)² in one pass, around a pivot: with
 * d = x - pivot, Σ (x - mean)² = Σ d² - (Σ d)²/M. The pivot is the mean of the first sample, and
 * the mean of one of n parts of the values is never more than sqrt(n-1) deviations from the mean
 * of all, so the difference loses no more than a factor n of fp32's precision, whatever the mean;
 * of values that are alike it loses nothing. */
void NN_LEVEL(bn_moments)(int n, int c8, int s, const float *x, float *sum, float *squares)
{
    const double count = (double)n * (double)s;

#pragma omp parallel for schedule(static)
    for (int c = 0; c < c8; c++) {
        const nn_v8 pivot = plane_mean(s, x + plane(c8, s, 0, c));
        nn_d8 total = {0}, total_2 = {0};

        for (int i = 0; i < n; i++) {
            const float *from = x + plane(c8, s, i, c);

            for (int run = s; run > 0; run -= RUN) {
                const int end = run < RUN ? run : RUN;
                nn_v8 part[2] = {0}, part_2[2] = {0};
                int j = 0;

                for (; j + 2 <= end; j += 2, from += 16)
                    for (int a = 0; a < 2; a++) {
                        const nn_v8 d = nn_load(from + a * 8) - pivot;

                        part[a] += d;
                        part_2[a] += d * d;
                    }
                for (; j < end; j++, from += 8) {
                    const nn_v8 d = nn_load(from) - pivot;

                    part[0] += d;
                    part_2[0] += d * d;
                }
                total += widen(part[0] + part[1]);
                total_2 += widen(part_2[0] + part_2[1]);
            }
        }
        keep(sum + (size_t)c * 8, total + count * widen(pivot));
        keep(squares + (size_t)c * 8, not_below_zero(total_2 - total * total / count));
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
    for (int c = 0; c < c8; c++) {
        const nn_v8 centre = nn_load(mean + (size_t)c * 8);
        nn_d8 total = {0}, total_x = {0};

        for (int i = 0; i < n; i++) {
            const float *from = x + plane(c8, s, i, c), *grad = dy + plane(c8, s, i, c);

            for (int run = s; run > 0; run -= RUN) {
                const int count = run < RUN ? run : RUN;
                nn_v8 part[2] = {0}, part_x[2] = {0};
                int j = 0;

                for (; j + 2 <= count; j += 2, from += 16, grad += 16)
                    for (int a = 0; a < 2; a++) {
                        const nn_v8 d = nn_load(grad + a * 8);

                        part[a] += d;
                        part_x[a] += d * (nn_load(from + a * 8) - centre);
                    }
                for (; j < count; j++, from += 8, grad += 8) {
                    const nn_v8 d = nn_load(grad);

                    part[0] += d;
                    part_x[0] += d * (nn_load(from) - centre);
                }
                total += widen(part[0] + part[1]);
                total_x += widen(part_x[0] + part_x[1]);
            }
        }
        keep(sum_dy + (size_t)c * 8, total);
        keep(sum_dyx + (size_t)c * 8, total_x);
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
