/* SPDX-License-Identifier: MIT
 *
 * What implicit models need besides normal equations: products with Σ w y yᵀ without forming it
 * (conjugate gradients of `ials`), and the draw of one site of `bmf`'s implicit priors.
 */
#include "recsys/kernels/kernels_private.h"

/* d (4) = the products of four rows with v. */
RECSYS_INLINE void four_products(int k, const float *y, const float *v, float d[4])
{
    recsys_v8 s[4] = {{0}}, t;

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

void RECSYS_LEVEL(weigh)(int k, const float *panel, int n, const float *w, const float *c,
                         const float *v, float *out)
{
    for (int j = 0; j < n; j += 4, panel += 4 * k) {
        float d[4];

        four_products(k, panel, v, d);
        for (int t = 0; t < 4; t++)
            d[t] = c != NULL ? c[j + t] - w[j + t] * d[t] : w[j + t] * d[t];
        for (int f = 0; f < k; f += 8) {
            recsys_v8 s = load8(out + f);

#pragma GCC unroll 4
            for (int t = 0; t < 4; t++)
                s += splat8(d[t]) * load8(panel + t * k + f);
            store8(out + f, s);
        }
    }
}

enum { AHEAD = 16 }; /* entries; the rows of a site are anywhere */

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
