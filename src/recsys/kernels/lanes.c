/* SPDX-License-Identifier: MIT
 *
 * Eight systems at once, one in each lane: Cholesky factors, solutions, and draws from normal
 * distributions. A matrix of 32 or 64 columns is too small to fill vectors by itself; eight of them
 * need no shuffles and no special ends.
 */
#include "recsys/kernels/kernels_private.h"

/* Element (i, j), j <= i, of the lower halves. */
RECSYS_INLINE size_t at(int i, int j)
{
    return (size_t)(i * (i + 1) / 2 + j) * RECSYS_LANES;
}

RECSYS_INLINE recsys_v8 root8(recsys_v8 x)
{
    for (int l = 0; l < 8; l++)
        x[l] = __builtin_sqrtf(x[l]);
    return x;
}

RECSYS_INLINE void transpose8(recsys_v8 r[8])
{
    recsys_v8 t[8];

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = RECSYS_MIX(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[2 * i + 1] = RECSYS_MIX(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        r[i] = RECSYS_MIX(t[i], t[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 1] = RECSYS_MIX(t[i], t[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        r[i + 2] = RECSYS_MIX(t[i + 1], t[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 3] = RECSYS_MIX(t[i + 1], t[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = RECSYS_MIX(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        t[i + 4] = RECSYS_MIX(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        r[i] = t[i];
}

void RECSYS_LEVEL(lanes_gather)(int k, const float *triangles, const float *prior,
                                const float *scale, float *lower)
{
    const size_t size = recsys_triangle_floats(k);
    const recsys_v8 factor = load8(scale);

    for (int i = 0; i < k; i++)
        for (int j = i / 8 * 8; j < k; j += 8) {
            const float *from = triangles + recsys_triangle_at(k, i, j);
            recsys_v8 r[8];

#pragma GCC unroll 8
            for (int l = 0; l < 8; l++)
                r[l] = load8(from + (size_t)l * size);
            transpose8(r);
            for (int c = j < i ? i - j : 0; c < 8; c++)
                store8(lower + at(j + c, i), factor * r[c] + splat8(prior[i * k + j + c]));
        }
}

/* The factor of a 4x4 block on the diagonal, once the columns before it were subtracted. */
RECSYS_INLINE void factor_block(recsys_v8 d[4][4])
{
#pragma GCC unroll 4
    for (int b = 0; b < 4; b++) {
#pragma GCC unroll 4
        for (int p = 0; p < b; p++)
            d[b][b] -= d[b][p] * d[b][p];
        d[b][b] = splat8(1) / root8(d[b][b]);
#pragma GCC unroll 4
        for (int a = b + 1; a < 4; a++) {
#pragma GCC unroll 4
            for (int p = 0; p < b; p++)
                d[a][b] -= d[a][p] * d[b][p];
            d[a][b] *= d[b][b];
        }
    }
}

RECSYS_INLINE void diagonal_block(float *lower, int j, recsys_v8 d[4][4])
{
#pragma GCC unroll 4
    for (int a = 0; a < 4; a++)
#pragma GCC unroll 4
        for (int b = 0; b <= a; b++)
            d[a][b] = load8(lower + at(j + a, j + b));
    for (int p = 0; p < j; p++) {
        recsys_v8 x[4];

#pragma GCC unroll 4
        for (int a = 0; a < 4; a++)
            x[a] = load8(lower + at(j + a, p));
#pragma GCC unroll 4
        for (int a = 0; a < 4; a++)
#pragma GCC unroll 4
            for (int b = 0; b <= a; b++)
                d[a][b] -= x[a] * x[b];
    }
    factor_block(d);
#pragma GCC unroll 4
    for (int a = 0; a < 4; a++)
#pragma GCC unroll 4
        for (int b = 0; b <= a; b++)
            store8(lower + at(j + a, j + b), d[a][b]);
}

/* Columns j … j+3 of the rows i and i+1, below the block d. */
RECSYS_INLINE void two_rows(float *lower, int i, int j, recsys_v8 d[4][4])
{
    float *row[2] = {lower + at(i, 0), lower + at(i + 1, 0)};
    const float *column[4] = {lower + at(j, 0), lower + at(j + 1, 0), lower + at(j + 2, 0),
                              lower + at(j + 3, 0)};
    recsys_v8 s[2][4];

#pragma GCC unroll 2
    for (int a = 0; a < 2; a++)
#pragma GCC unroll 4
        for (int b = 0; b < 4; b++)
            s[a][b] = load8(row[a] + (j + b) * 8);
    for (int p = 0; p < j; p++) {
        const recsys_v8 x = load8(row[0] + p * 8), y = load8(row[1] + p * 8);

#pragma GCC unroll 4
        for (int b = 0; b < 4; b++) {
            const recsys_v8 c = load8(column[b] + p * 8);

            s[0][b] -= x * c;
            s[1][b] -= y * c;
        }
    }
#pragma GCC unroll 2
    for (int a = 0; a < 2; a++)
#pragma GCC unroll 4
        for (int b = 0; b < 4; b++) {
#pragma GCC unroll 4
            for (int p = 0; p < b; p++)
                s[a][b] -= s[a][p] * d[b][p];
            s[a][b] *= d[b][b];
            store8(row[a] + (j + b) * 8, s[a][b]);
        }
}

void RECSYS_LEVEL(lanes_cholesky)(int k, float *lower)
{
    for (int j = 0; j < k; j += 4) {
        recsys_v8 d[4][4];

        diagonal_block(lower, j, d);
        for (int i = j + 4; i < k; i += 2)
            two_rows(lower, i, j, d);
    }
}

void RECSYS_LEVEL(lanes_solve)(int k, const float *lower, float *x, const float *noise)
{
    for (int i = 0; i < k; i++) {
        const float *row = lower + at(i, 0);
        recsys_v8 even = load8(x + 8 * i), odd = {0};
        int p = 0;

        for (; p + 1 < i; p += 2) {
            even -= load8(row + 8 * p) * load8(x + 8 * p);
            odd -= load8(row + 8 * p + 8) * load8(x + 8 * p + 8);
        }
        if (p < i)
            even -= load8(row + 8 * p) * load8(x + 8 * p);
        store8(x + 8 * i, (even + odd) * load8(row + 8 * i));
    }
    for (int i = 0; i < (noise != NULL ? k : 0); i++)
        store8(x + 8 * i, load8(x + 8 * i) + load8(noise + 8 * i));
    for (int i = k - 1; i >= 0; i--) {
        const float *row = lower + at(i, 0);
        const recsys_v8 z = load8(x + 8 * i) * load8(row + 8 * i);

        store8(x + 8 * i, z);
        for (int p = 0; p < i; p++)
            store8(x + 8 * p, load8(x + 8 * p) - z * load8(row + 8 * p));
    }
}
