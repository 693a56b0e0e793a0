/* SPDX-License-Identifier: MIT
 *
 * Standard normals from random words by Box and Muller's method, eight at a time. Logarithm, sine
 * and cosine are polynomials of their own: the C library's would be called one by one, and its bits
 * differ from one version to the next. Their error is below 1e-6, except for normals near zero.
 */
#include "recsys/kernels/kernels_private.h"

typedef uint32_t u8 __attribute__((vector_size(32)));
typedef uint32_t u8_at __attribute__((vector_size(32), aligned(4), may_alias));

/* -2 ln u, 0 < u < 1. With m in [1,2), ln m = 2 artanh((m-1)/(m+1)). The sign is dropped: just
 * below one, what rounding leaves may be negative. */
RECSYS_INLINE recsys_v8 minus_two_log(recsys_v8 u)
{
    const recsys_i8 bits = (recsys_i8)u;
    const recsys_v8 exponent = __builtin_convertvector((bits >> 23) - 127, recsys_v8);
    const recsys_v8 m = (recsys_v8)((bits & 0x7fffff) | 0x3f800000);
    const recsys_v8 s = (m - 1) / (m + 1), q = s * s;
    const recsys_v8 series =
        ((((((q / 13 + 1 / 11.0f) * q + 1 / 9.0f) * q + 1 / 7.0f) * q + 1 / 5.0f) * q + 1 / 3.0f) *
             q +
         1);
    const recsys_v8 log = exponent * 0.693147181f + 2 * s * series;

    return (recsys_v8)((recsys_i8)(-2 * log) & 0x7fffffff);
}

/* Taylor's series; |x| <= pi. */
RECSYS_INLINE recsys_v8 sine(recsys_v8 x, recsys_v8 q)
{
    recsys_v8 s = q * 2.81145725e-15f - 7.64716373e-13f;

    s = s * q + 1.60590438e-10f;
    s = s * q - 2.50521084e-8f;
    s = s * q + 2.75573192e-6f;
    s = s * q - 1.98412698e-4f;
    s = s * q + 8.33333333e-3f;
    s = s * q - 1.66666667e-1f;
    return x * (s * q + 1);
}

RECSYS_INLINE recsys_v8 cosine(recsys_v8 q)
{
    recsys_v8 s = q * -1.56192070e-16f + 4.77947733e-14f;

    s = s * q - 1.14707456e-11f;
    s = s * q + 2.08767570e-9f;
    s = s * q - 2.75573192e-7f;
    s = s * q + 2.48015873e-5f;
    s = s * q - 1.38888889e-3f;
    s = s * q + 4.16666667e-2f;
    s = s * q - 0.5f;
    return s * q + 1;
}

/* z[i] and z[count/2 + i] are the two normals of the words i and count/2 + i. */
void RECSYS_LEVEL(normals)(int count, const uint32_t *words, float *z)
{
    const int half = count / 2;

    for (int i = 0; i < half; i += 8) {
        const recsys_i8 a = (recsys_i8)(*(const u8_at *)(words + i) >> 9);
        const recsys_i8 b = (recsys_i8)(*(const u8_at *)(words + half + i) >> 8);
        const recsys_v8 u = (__builtin_convertvector(a, recsys_v8) + 0.5f) * 0x1p-23f;
        const recsys_v8 turn = __builtin_convertvector(b, recsys_v8) * 0x1p-24f - 0.5f;
        const recsys_v8 x = turn * 6.28318531f, q = x * x;
        recsys_v8 radius = minus_two_log(u);

        for (int l = 0; l < 8; l++)
            radius[l] = __builtin_sqrtf(radius[l]);
        store8(z + i, radius * cosine(q));
        store8(z + half + i, radius * sine(x, q));
    }
}
