/* SPDX-License-Identifier: MIT
 *
 * Stochastic gradient steps over a cell of ratings. A user's row stays in registers for its run,
 * eight ratings are taken at a time: eight products, one joint reduction, eight updates. Biases are
 * the last two columns: a user's row is (…, 1, b_u), an item's (…, b_i, 1). The L2 term of a user
 * is applied once a run, by the number of its ratings there; that of an item is the caller's.
 */
#include "recsys/kernels/kernels_private.h"

#if defined(__AVX2__)
#    include <immintrin.h>
#endif

enum { BATCH = 8, AHEAD = 2 * BATCH, MOST = RECSYS_MAX_K / 8 };

static const recsys_i8 not_own = {-1, -1, -1, -1, -1, -1, -1, 0}; /* all but b_u */
static const recsys_i8 not_one = {-1, -1, -1, -1, -1, -1, 0, -1}; /* all but the 1 of a user */
static const recsys_v8 user_one = {0, 0, 0, 0, 0, 0, 1, 0};

RECSYS_INLINE recsys_v8 keep(recsys_v8 x, recsys_i8 mask)
{
    return (recsys_v8)((recsys_i8)x & mask);
}

/* The codes as ints. gcc 12 would convert one by one: the one place that names an instruction. */
RECSYS_INLINE recsys_i8 codes(const uint8_t *code)
{
#if defined(__AVX2__)
    return (recsys_i8)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)code));
#else
    return (recsys_i8){code[0], code[1], code[2], code[3], code[4], code[5], code[6], code[7]};
#endif
}

/* Rate times error for eight ratings; zero where the code is. */
RECSYS_INLINE recsys_v8 errors(const struct recsys_sgd *s, const uint8_t *code, recsys_v8 guess,
                               const bool absolute)
{
    const recsys_i8 c = codes(code);
    const recsys_v8 rating = __builtin_convertvector(c, recsys_v8) * s->scale + s->offset;
    recsys_v8 e = rating - guess;

    if (absolute) {
        const recsys_v8 one = splat8(1);

        e = (recsys_v8)(((recsys_i8)e & INT32_MIN) | (recsys_i8)one);
    }
    return keep(e * s->rate, c > 0);
}

RECSYS_INLINE void fetch(int k, const float *items, const uint16_t *item)
{
    for (int j = 0; j < BATCH; j++)
        for (int f = 0; f < k; f += 16)
            __builtin_prefetch(items + (size_t)item[j] * (size_t)k + f, 1);
}

/* One batch: p, the user's row of `wide` vectors, and the rows of eight items. */
RECSYS_INLINE void batch(const struct recsys_sgd *s, const uint16_t *item, const uint8_t *code,
                         recsys_v8 *p, const int wide, const bool absolute)
{
    const size_t k = (size_t)wide * 8;
    float *q[BATCH];
    recsys_v8 a[BATCH];
    float e[BATCH] __attribute__((aligned(32)));

#pragma GCC unroll 8
    for (int j = 0; j < BATCH; j++) {
        q[j] = s->items + item[j] * k;
        a[j] = p[0] * load8(q[j]);
    }
#pragma GCC unroll 16
    for (int v = 1; v < wide; v++)
#pragma GCC unroll 8
        for (int j = 0; j < BATCH; j++)
            a[j] += p[v] * load8(q[j] + 8 * v);
    store8(e, errors(s, code, totals8(a), absolute));
#pragma GCC unroll 16
    for (int v = 0; v < wide; v++) {
        const recsys_v8 mine = v == wide - 1 ? keep(p[v], not_own) : p[v];
        recsys_v8 even = p[v], odd = {0};

#pragma GCC unroll 8
        for (int j = 0; j < BATCH; j++) {
            const recsys_v8 x = load8(q[j] + 8 * v), step = splat8(e[j]);

            if (j % 2 == 0)
                even += step * x;
            else
                odd += step * x;
            store8(q[j] + 8 * v, x + step * mine);
        }
        p[v] = even + odd;
    }
    p[wide - 1] = keep(p[wide - 1], not_one) + user_one;
}

RECSYS_INLINE void cell_of(const struct recsys_sgd *s, const struct recsys_cell *cell,
                           const int wide, const bool absolute)
{
    const size_t k = (size_t)wide * 8;
    const uint16_t *item = cell->item;
    const uint8_t *code = cell->code;

    for (uint32_t r = 0; r < cell->run_count; r++) {
        const struct recsys_run run = cell->runs[r];
        float *row = s->users + run.user * k;
        recsys_v8 p[MOST];

        if (r + 1 < cell->run_count)
            for (size_t f = 0; f < k; f += 16)
                __builtin_prefetch(s->users + cell->runs[r + 1].user * k + f, 1);
#pragma GCC unroll 16
        for (int v = 0; v < wide; v++)
            p[v] = load8(row + 8 * v) * s->decay[run.count];
        p[wide - 1][7] = row[k - 1] * s->bias_decay[run.count];
        p[wide - 1] = keep(p[wide - 1], not_one) + user_one;
        for (uint32_t n = 0; n < run.count; n += BATCH, item += BATCH, code += BATCH) {
            if (wide <= 8)
                fetch((int)k, s->items, item + AHEAD);
            batch(s, item, code, p, wide, absolute);
        }
#pragma GCC unroll 16
        for (int v = 0; v < wide; v++)
            store8(row + 8 * v, p[v]);
    }
}

/* The usual sizes get code of their own, in which the user's row is in registers. */
RECSYS_INLINE void by_size(const struct recsys_sgd *s, const struct recsys_cell *cell,
                           const bool absolute)
{
    switch (s->k) {
    case 16:
        cell_of(s, cell, 2, absolute);
        break;
    case 32:
        cell_of(s, cell, 4, absolute);
        break;
    case 64:
        cell_of(s, cell, 8, absolute);
        break;
    default:
        cell_of(s, cell, s->k / 8, absolute);
    }
}

void RECSYS_LEVEL(sgd)(const struct recsys_sgd *sgd, const struct recsys_cell *cell)
{
    if (sgd->absolute)
        by_size(sgd, cell, true);
    else
        by_size(sgd, cell, false);
}
