/* SPDX-License-Identifier: MIT
 *
 * From the ratings of a row to its normal equations: gathers the rated rows into a panel and adds
 * panelᵀ panel to a triangle. Twelve accumulators of a 4x24 tile (with AVX-512 sixteen, 8x32) stay
 * in registers while they run down the panel, so that a multiply-add costs little more than itself.
 */
#include "recsys/kernels/kernels_private.h"

/* to (rows, 8 wide) += panel[:, row…]ᵀ panel[:, column…]; `to` is in tiles of 8x8. */
RECSYS_INLINE void tile(int k, const float *panel, int n, int row, int column, float *to,
                        const int rows, const int wide)
{
    recsys_v8 sum[8][3];
    const float *p = panel;

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int v = 0; v < wide; v++)
            sum[r][v] = load8(to + r * 8 + v * 64);
    for (int j = 0; j < n; j++, p += k) {
        recsys_v8 b[3];

#pragma GCC unroll 3
        for (int v = 0; v < wide; v++)
            b[v] = load8(p + column + 8 * v);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const recsys_v8 a = splat8(p[row + r]);

#pragma GCC unroll 3
            for (int v = 0; v < wide; v++)
                sum[r][v] += a * b[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int v = 0; v < wide; v++)
            store8(to + r * 8 + v * 64, sum[r][v]);
}

#if defined(__AVX512F__)
typedef float v16 __attribute__((vector_size(64)));
typedef float v16_at __attribute__((vector_size(64), aligned(4), may_alias));

/* The same for 8 rows and twice as many columns: a register holds a row of two tiles. */
RECSYS_INLINE void tile_pairs(int k, const float *panel, int n, int row, int column, float *to,
                              const int pairs)
{
    v16 sum[8][2];
    const float *p = panel;

#    pragma GCC unroll 8
    for (int r = 0; r < 8; r++)
#    pragma GCC unroll 2
        for (int v = 0; v < pairs; v++)
            sum[r][v] = RECSYS_MIX(load8(to + r * 8 + v * 128), load8(to + r * 8 + v * 128 + 64), 0,
                                   1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int j = 0; j < n; j++, p += k) {
        v16 b[2];

#    pragma GCC unroll 2
        for (int v = 0; v < pairs; v++)
            b[v] = *(const v16_at *)(p + column + 16 * v);
#    pragma GCC unroll 8
        for (int r = 0; r < 8; r++)
#    pragma GCC unroll 2
            for (int v = 0; v < pairs; v++)
                sum[r][v] += p[row + r] * b[v];
    }
#    pragma GCC unroll 8
    for (int r = 0; r < 8; r++)
#    pragma GCC unroll 2
        for (int v = 0; v < pairs; v++) {
            store8(to + r * 8 + v * 128, RECSYS_MIX(sum[r][v], sum[r][v], 0, 1, 2, 3, 4, 5, 6, 7));
            store8(to + r * 8 + v * 128 + 64,
                   RECSYS_MIX(sum[r][v], sum[r][v], 8, 9, 10, 11, 12, 13, 14, 15));
        }
}
#endif

/* Functions of their own: inlined into one, their loops would share registers badly. Rows i … i+7
 * and `wide` tiles of columns. */
#define TILES(name, body)                                                                      \
    static __attribute__((noinline)) void name(int k, const float *panel, int n, int i, int j, \
                                               float *to)                                      \
    {                                                                                          \
        body;                                                                                  \
    }
TILES(one_tile, tile(k, panel, n, i, j, to, 8, 1))
#if defined(__AVX512F__)
TILES(two_tiles, tile_pairs(k, panel, n, i, j, to, 1))
TILES(four_tiles, tile_pairs(k, panel, n, i, j, to, 2))
#else
TILES(half_of_two, tile(k, panel, n, i, j, to, 4, 2))
TILES(half_of_three, tile(k, panel, n, i, j, to, 4, 3))
#endif

/* As many of the `left` tiles as fit the registers; returns how many. */
static int some_tiles(int k, const float *panel, int n, int i, int j, int left, float *to)
{
#if defined(__AVX512F__)
    const int wide = left >= 4 ? 4 : left >= 2 ? 2 : 1;

    if (wide == 4)
        four_tiles(k, panel, n, i, j, to);
    else if (wide == 2)
        two_tiles(k, panel, n, i, j, to);
#else
    const int wide = left == 3 || left > 4 ? 3 : left >= 2 ? 2 : 1;

    if (wide == 3) {
        half_of_three(k, panel, n, i, j, to);
        half_of_three(k, panel, n, i + 4, j, to + 32);
    } else if (wide == 2) {
        half_of_two(k, panel, n, i, j, to);
        half_of_two(k, panel, n, i + 4, j, to + 32);
    }
#endif
    if (wide == 1)
        one_tile(k, panel, n, i, j, to);
    return wide;
}

enum { LINE = 16 }; /* floats */

/* A few lines of the rows to come; `at` counts lines. */
static int fetch(const struct recsys_ahead *next, int k, int at, int lines)
{
    const int per_row = (k + LINE - 1) / LINE, end = next->count * per_row;

    for (; lines > 0 && at < end; lines--, at++)
        __builtin_prefetch(next->rows + (size_t)next->index[at / per_row] * (size_t)k +
                           at % per_row * LINE);
    return at;
}

void RECSYS_LEVEL(syrk)(int k, const float *panel, int n, float *triangle,
                        const struct recsys_ahead *next)
{
    const int blocks = k / 8, tiles = blocks * (blocks + 1) / 2;
    const int lines = (recsys_panel(k) * ((k + LINE - 1) / LINE) + tiles - 1) / tiles * 3;
    int at = 0;

    for (int i = 0; i < blocks; i++)
        for (int j = i; j < blocks;) {
            if (next != NULL)
                at = fetch(next, k, at, lines);
            j += some_tiles(k, panel, n, 8 * i, 8 * j, blocks - j,
                            triangle + recsys_triangle_at(k, 8 * i, 8 * j));
        }
}

/* ---- gathering ---- */

/* All columns but those of the two biases. */
static const recsys_i8 factors_only = {-1, -1, -1, -1, -1, -1, 0, 0};

RECSYS_INLINE recsys_v8 masked(recsys_v8 x)
{
    return (recsys_v8)((recsys_i8)x & factors_only);
}

/* The last vector is masked in registers: a scalar store would stall the loads that follow. */
RECSYS_INLINE float pack_one(const struct recsys_pack *p, const float *x, recsys_v8 one, float *to)
{
    for (int f = 0; f < p->k - 8; f += 8)
        store8(to + f, load8(x + f));
    store8(to + p->k - 8, masked(load8(x + p->k - 8)) + one);
    return x[p->other_own];
}

/* With a third side the panel has the sum of both rows: <p,q> + <p,d> = <p,q+d>. */
RECSYS_INLINE float pack_two(const struct recsys_pack *p, const float *x, const float *d,
                             recsys_v8 one, float *to)
{
    const int last = p->k - 8;
    recsys_v8 a = masked(load8(x + last)), b = masked(load8(d + last)), product = a * b;

    store8(to + last, a + b + one);
    for (int f = 0; f < last; f += 8) {
        a = load8(x + f);
        b = load8(d + f);
        product += a * b;
        store8(to + f, a + b);
    }
    return x[p->other_own] + d[p->k - 1] + total8(product);
}

void RECSYS_LEVEL(pack)(const struct recsys_pack *p, float *panel, float *y)
{
    const size_t k = (size_t)p->k;
    recsys_v8 one = {0};

    one[p->own - (p->k - 8)] = 1;
    if (p->more == NULL)
        for (int j = 0; j < p->n; j++)
            y[j] -= pack_one(p, p->rows + p->index[j] * k, one, panel + (size_t)j * k);
    else
        for (int j = 0; j < p->n; j++)
            y[j] -= pack_two(p, p->rows + p->index[j] * k, p->more + p->more_index[j] * k, one,
                             panel + (size_t)j * k);
    if (p->weight == NULL)
        return;
    for (int j = 0; j < p->n; j++) {
        y[j] *= p->weight[j];
        for (size_t f = 0; f < k; f += 8)
            store8(panel + (size_t)j * k + f,
                   load8(panel + (size_t)j * k + f) * splat8(p->weight[j]));
    }
}

/* Four vectors of the sum in registers at a time. */
RECSYS_INLINE void project_some(int k, const float *panel, const float *y, int n, float *sum,
                                const int wide)
{
    recsys_v8 s[4];

#pragma GCC unroll 4
    for (int v = 0; v < wide; v++)
        s[v] = load8(sum + 8 * v);
    for (int j = 0; j < n; j++, panel += k)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            s[v] += splat8(y[j]) * load8(panel + 8 * v);
#pragma GCC unroll 4
    for (int v = 0; v < wide; v++)
        store8(sum + 8 * v, s[v]);
}

double RECSYS_LEVEL(project)(int k, const float *panel, const float *y, int n, float *sum)
{
    double squares = 0;
    int f = 0;

    for (; f + 32 <= k; f += 32)
        project_some(k, panel + f, y, n, sum + f, 4);
    for (; f < k; f += 8)
        project_some(k, panel + f, y, n, sum + f, 1);
    for (int j = 0; j < n; j++)
        squares += (double)y[j] * (double)y[j];
    return squares;
}

float RECSYS_LEVEL(quadratic)(int k, const float *triangle, const float *x)
{
    recsys_v8 diagonal = {0}, above = {0};

    for (int i = 0; i < k; i += 8)
        for (int j = i; j < k; j += 8) {
            const float *t = triangle + recsys_triangle_at(k, i, j);
            recsys_v8 s = {0};

            for (int c = 0; c < 8; c++)
                s += splat8(x[i + c]) * load8(t + 8 * c);
            if (i == j)
                diagonal += s * load8(x + j);
            else
                above += s * load8(x + j);
        }
    return total8(diagonal) + 2 * total8(above);
}

float RECSYS_LEVEL(dot)(int k, const float *a, const float *b)
{
    recsys_v8 s = load8(a) * load8(b);

    for (int f = 8; f < k; f += 8)
        s += load8(a + f) * load8(b + f);
    return total8(s);
}
