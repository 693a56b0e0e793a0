/* SPDX-License-Identifier: MIT
 *
 * What implicit models need besides normal equations: products with Σ w y yᵀ without forming it
 * (conjugate gradients of `ials`), and the draw of one site of `bmf`'s implicit priors.
 */
#include "recsys/kernels/kernels_private.h"

enum { AHEAD = 16 }; /* entries that are fetched in advance: their rows are anywhere */

/* d (4) = the products of four rows with v. */
RECSYS_INLINE void four_products(const int k, const float *y, const float *v, float d[4])
{
    recsys_v8 s[4] = {{0}}, t;

#pragma GCC unroll 16
    for (int f = 0; f < k; f += 8) {
        const recsys_v8 x = load8(v + f);

#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            s[j] += x * load8(y + j * k + f);
    }
    t = pair8(pair8(s[0], s[1]), pair8(s[2], s[3]));
    for (int j = 0; j < 4; j++)
        d[j] = t[j] + t[j + 4];
}

RECSYS_INLINE void weigh_of(const int k, const float *panel, int n, const float *w, const float *c,
                            const float *v, float *out)
{
    recsys_v8 s[RECSYS_MAX_K / 8];

#pragma GCC unroll 16
    for (int f = 0; f < k; f += 8)
        s[f / 8] = load8(out + f);
    for (int j = 0; j < n; j += 4, panel += 4 * k) {
        float d[4];

        four_products(k, panel, v, d);
        for (int t = 0; t < 4; t++)
            d[t] = c != NULL ? c[j + t] - w[j + t] * d[t] : w[j + t] * d[t];
#pragma GCC unroll 4
        for (int t = 0; t < 4; t++)
#pragma GCC unroll 16
            for (int f = 0; f < k; f += 8)
                s[f / 8] += splat8(d[t]) * load8(panel + t * k + f);
    }
#pragma GCC unroll 16
    for (int f = 0; f < k; f += 8)
        store8(out + f, s[f / 8]);
}

/* The usual sizes get code of their own, in which the sum is in registers. */
void RECSYS_LEVEL(weigh)(int k, const float *panel, int n, const float *w, const float *c,
                         const float *v, float *out)
{
    switch (k) {
    case 32:
        weigh_of(32, panel, n, w, c, v, out);
        break;
    case 64:
        weigh_of(64, panel, n, w, c, v, out);
        break;
    default:
        weigh_of(k, panel, n, w, c, v, out);
    }
}

void RECSYS_LEVEL(gather)(int k, const float *rows, const uint32_t *index, int n, float *panel)
{
    for (int j = 0; j < n; j++) {
        const float *row = rows + index[j] * (size_t)k;

        if (j + AHEAD < n)
            for (int f = 0; f < k; f += 16)
                __builtin_prefetch(rows + index[j + AHEAD] * (size_t)k + f);
        for (int f = 0; f < k; f += 8, panel += 8)
            store8(panel, load8(row + f));
    }
}

void RECSYS_LEVEL(site)(const uint32_t *index, size_t count, const float *share, float precision,
                        const float *noise, float *rest, float *y)
{
    const recsys_v8 before = load8(y);
    recsys_v8 s = {0}, after, lost;
    float squares = 0, c;

    for (size_t e = 0; e < count; e++) {
        const float x = share[index[e]];

        if (e + AHEAD < count)
            __builtin_prefetch(rest + (size_t)index[e + AHEAD] * 8);
        squares += x * x;
        s += splat8(x) * load8(rest + (size_t)index[e] * 8);
    }
    c = squares + precision;
    after =
        (s + splat8(squares) * before) / splat8(c) + load8(noise) * splat8(1 / __builtin_sqrtf(c));
    lost = before - after;
    for (size_t e = 0; e < count; e++) {
        float *r = rest + (size_t)index[e] * 8;

        store8(r, load8(r) + splat8(share[index[e]]) * lost);
    }
    store8(y, after);
}
