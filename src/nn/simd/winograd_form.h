/* SPDX-License-Identifier: MIT
 *
 * The transforms of a Winograd form as straight-line vector code. The file that includes this
 * defines M (edge of an output tile), INPUT (edge of an input tile), STEP (from one input tile to
 * the next: M times the stride), POINTS (α), HALO, SUM and the matrices BT[POINTS][INPUT],
 * AT[M][POINTS], G[POINTS][3] as static const: everything is inlined and unrolled, so zeros vanish
 * and ones cost no multiplication. Not a header of declarations: it defines FORM and is included
 * once by a file.
 */
#include <string.h>

#include "nn/simd/winograd.h"

/* Where a tile of `size` rows (or columns) from `start` lies inside 0 … limit: begin … end. */
struct span {
    int begin, end;
};

NN_INLINE struct span inside(int start, int size, int limit)
{
    return (struct span){start < 0 ? -start : 0, start + size > limit ? limit - start : size};
}

NN_INLINE bool whole(struct span r, struct span c, int size)
{
    return r.begin == 0 && c.begin == 0 && r.end == size && c.end == size;
}

/* A tile from (row, column) of a plane of the given width on, zeros where it is not inside. */
NN_INLINE void tile_load(const float *plane, int width, int row, int column, struct span r,
                         struct span c, int size, nn_v8 *tile)
{
    const float *from = plane + ((ptrdiff_t)row * width + column) * 8;

    if (whole(r, c, size)) {
#pragma GCC unroll 9
        for (int i = 0; i < size; i++)
#pragma GCC unroll 9
            for (int j = 0; j < size; j++)
                tile[i * size + j] = nn_load(from + ((ptrdiff_t)i * width + j) * 8);
        return;
    }
#pragma GCC unroll 9
    for (int i = 0; i < size; i++)
#pragma GCC unroll 9
        for (int j = 0; j < size; j++)
            tile[i * size + j] = i >= r.begin && i < r.end && j >= c.begin && j < c.end
                                     ? nn_load(from + ((ptrdiff_t)i * width + j) * 8)
                                     : (nn_v8){0};
}

/* Asks for the tile that comes next: planes are far apart, no hardware prefetcher follows. */
NN_INLINE void tile_fetch(const float *plane, int width, int row, int column, int size)
{
    const float *from = plane + ((ptrdiff_t)row * width + column) * 8;

#pragma GCC unroll 9
    for (int i = 0; i < size; i++)
#pragma GCC unroll 9
        for (int j = 0; j < size; j += 2)
            __builtin_prefetch(from + ((ptrdiff_t)i * width + j) * 8);
}

/* Σ_i coefficient_i * from[i*step], with the coefficients of a column of a matrix. */
#define WEIGHTED(sum, count, coefficient, value)                                              \
    do {                                                                                      \
        (sum) = (nn_v8){0};                                                                   \
        _Pragma("GCC unroll 9") for (int i_ = 0; i_ < (count); i_++) if ((coefficient) != 0)( \
            sum) += (coefficient) * (value);                                                  \
    } while (0)

/* d (INPUT,INPUT) -> Bᵀ d B at the POINTS² positions */
static void input(const struct nn_tiling *t, int c8, const float *x, struct nn_products v)
{
    const size_t plane = (size_t)t->h * (size_t)t->w * 8;

    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * STEP - t->top;
        const int column = tile % t->columns * STEP - t->left;
        const struct span r = inside(row, INPUT, t->h), c = inside(column, INPUT, t->w);
        float *to = v.at + (size_t)tile * v.tile;

        for (int block = 0; block < c8; block++, to += 8) {
            nn_v8 d[INPUT * INPUT], half[POINTS][INPUT], sum;

            tile_load(x + (size_t)block * plane, t->w, row, column, r, c, INPUT, d);
            tile_fetch(x + (size_t)(block + 1) * plane, t->w, row, column, INPUT);
#pragma GCC unroll 9
            for (int j = 0; j < INPUT; j++)
#pragma GCC unroll 9
                for (int a = 0; a < POINTS; a++) {
                    WEIGHTED(sum, INPUT, BT[a][i_], d[i_ * INPUT + j]);
                    half[a][j] = sum;
                }
#pragma GCC unroll 9
            for (int a = 0; a < POINTS; a++)
#pragma GCC unroll 9
                for (int b = 0; b < POINTS; b++) {
                    WEIGHTED(sum, INPUT, BT[b][i_], half[a][i_]);
                    nn_store(to + (size_t)(a * POINTS + b) * v.position, sum);
                }
        }
    }
}

/* One tile of input_back; `full`: all of it is inside the image. */
NN_INLINE void input_back_tile(const float *from, size_t position, int width, struct span r,
                               struct span c, bool full, float *to)
{
    nn_v8 half[INPUT][POINTS], sum;

#pragma GCC unroll 9
    for (int b = 0; b < POINTS; b++) {
        nn_v8 d[POINTS];

#pragma GCC unroll 9
        for (int a = 0; a < POINTS; a++)
            d[a] = nn_load(from + (size_t)(a * POINTS + b) * position);
#pragma GCC unroll 9
        for (int i = 0; i < INPUT; i++) {
            WEIGHTED(sum, POINTS, BT[i_][i], d[i_]);
            half[i][b] = sum;
        }
    }
#pragma GCC unroll 9
    for (int i = 0; i < INPUT; i++)
#pragma GCC unroll 9
        for (int j = 0; j < INPUT; j++) {
            float *cell = to + ((ptrdiff_t)i * width + j) * 8;

            if (!full && (i < r.begin || i >= r.end || j < c.begin || j >= c.end))
                continue;
            WEIGHTED(sum, POINTS, BT[i_][j], half[i][i_]);
            nn_store(cell, nn_load(cell) + sum);
        }
}

/* The adjoint of input: dx = Σ over tiles of B dV Bᵀ, which overlap. */
static void input_back(const struct nn_tiling *t, int c8, struct nn_products v, float *dx)
{
    const size_t plane = (size_t)t->h * (size_t)t->w * 8;

    memset(dx, 0, (size_t)c8 * plane * sizeof *dx);
    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * STEP - t->top;
        const int column = tile % t->columns * STEP - t->left;
        const struct span r = inside(row, INPUT, t->h), c = inside(column, INPUT, t->w);
        const float *from = v.at + (size_t)tile * v.tile;
        float *to = dx + ((ptrdiff_t)row * t->w + column) * 8;

        for (int block = 0; block < c8; block++, from += 8, to += plane)
            if (whole(r, c, INPUT))
                input_back_tile(from, v.position, t->w, r, c, true, to);
            else
                input_back_tile(from, v.position, t->w, r, c, false, to);
    }
}

/* One tile of output. */
NN_INLINE void output_tile(const float *from, size_t position, nn_v8 bias, int width, struct span r,
                           struct span c, bool full, float *to)
{
    nn_v8 half[M][POINTS], sum;

#pragma GCC unroll 9
    for (int p = 0; p < POINTS; p++) {
        nn_v8 d[POINTS];

#pragma GCC unroll 9
        for (int a = 0; a < POINTS; a++)
            d[a] = nn_load(from + (size_t)(a * POINTS + p) * position);
#pragma GCC unroll 9
        for (int i = 0; i < M; i++) {
            WEIGHTED(sum, POINTS, AT[i][i_], d[i_]);
            half[i][p] = sum;
        }
    }
#pragma GCC unroll 9
    for (int i = 0; i < M; i++)
#pragma GCC unroll 9
        for (int j = 0; j < M; j++) {
            if (!full && (i >= r.end || j >= c.end))
                continue;
            WEIGHTED(sum, POINTS, AT[j][i_], half[i][i_]);
            nn_store(to + ((size_t)i * (size_t)width + (size_t)j) * 8, sum + bias);
        }
}

/* products (POINTS²) -> Aᵀ m A + b, of which the part inside the image is kept */
static void output(const struct nn_tiling *t, int c8, struct nn_products m, const float *b,
                   float *y)
{
    const size_t plane = (size_t)t->ho * (size_t)t->wo * 8;

    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * M, column = tile % t->columns * M;
        const struct span r = inside(row, M, t->ho), c = inside(column, M, t->wo);
        const float *from = m.at + (size_t)tile * m.tile;
        float *to = y + ((size_t)row * (size_t)t->wo + (size_t)column) * 8;

        for (int block = 0; block < c8; block++, from += 8, to += plane) {
            const nn_v8 bias = b ? nn_load(b + (size_t)block * 8) : (nn_v8){0};

            if (whole(r, c, M))
                output_tile(from, m.position, bias, t->wo, r, c, true, to);
            else
                output_tile(from, m.position, bias, t->wo, r, c, false, to);
        }
    }
}

/* The adjoint of output: A dY Aᵀ; what is outside the image counts as zero. */
static void output_back(const struct nn_tiling *t, int c8, const float *dy, struct nn_products m)
{
    const size_t plane = (size_t)t->ho * (size_t)t->wo * 8;

    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * M, column = tile % t->columns * M;
        const struct span r = inside(row, M, t->ho), c = inside(column, M, t->wo);
        float *to = m.at + (size_t)tile * m.tile;

        for (int block = 0; block < c8; block++, to += 8) {
            nn_v8 d[M * M], half[POINTS][M], sum;

            tile_load(dy + (size_t)block * plane, t->wo, row, column, r, c, M, d);
            tile_fetch(dy + (size_t)(block + 1) * plane, t->wo, row, column, M);
#pragma GCC unroll 9
            for (int j = 0; j < M; j++)
#pragma GCC unroll 9
                for (int a = 0; a < POINTS; a++) {
                    WEIGHTED(sum, M, AT[i_][a], d[i_ * M + j]);
                    half[a][j] = sum;
                }
#pragma GCC unroll 9
            for (int a = 0; a < POINTS; a++)
#pragma GCC unroll 9
                for (int b = 0; b < POINTS; b++) {
                    WEIGHTED(sum, M, AT[i_][b], half[a][i_]);
                    nn_store(to + (size_t)(a * POINTS + b) * m.position, sum);
                }
        }
    }
}

/* g [3][3][8][8] -> G g Gᵀ, [POINTS²][8][8] */
static void weights(const float *w, size_t position, float *u)
{
    for (int row = 0; row < 8; row++, w += 8, u += 8) {
        nn_v8 half[POINTS][3], sum;

#pragma GCC unroll 9
        for (int j = 0; j < 3; j++) {
            const nn_v8 g[3] = {nn_load(w + (size_t)j * 64), nn_load(w + (size_t)(3 + j) * 64),
                                nn_load(w + (size_t)(6 + j) * 64)};

#pragma GCC unroll 9
            for (int a = 0; a < POINTS; a++) {
                WEIGHTED(sum, 3, G[a][i_], g[i_]);
                half[a][j] = sum;
            }
        }
#pragma GCC unroll 9
        for (int a = 0; a < POINTS; a++)
#pragma GCC unroll 9
            for (int b = 0; b < POINTS; b++) {
                WEIGHTED(sum, 3, G[b][i_], half[a][i_]);
                nn_store(u + (size_t)(a * POINTS + b) * position, sum);
            }
    }
}

/* The adjoint of weights: dg (+)= Gᵀ dU G */
static void weights_back(const float *du, size_t position, bool add, float *dw)
{
    for (int row = 0; row < 8; row++, du += 8, dw += 8) {
        nn_v8 half[3][POINTS], sum;

#pragma GCC unroll 9
        for (int b = 0; b < POINTS; b++) {
            nn_v8 d[POINTS];

#pragma GCC unroll 9
            for (int a = 0; a < POINTS; a++)
                d[a] = nn_load(du + (size_t)(a * POINTS + b) * position);
#pragma GCC unroll 9
            for (int i = 0; i < 3; i++) {
                WEIGHTED(sum, POINTS, G[i_][i], d[i_]);
                half[i][b] = sum;
            }
        }
#pragma GCC unroll 9
        for (int i = 0; i < 3; i++)
#pragma GCC unroll 9
            for (int j = 0; j < 3; j++) {
                float *to = dw + (size_t)(i * 3 + j) * 64;

                WEIGHTED(sum, POINTS, G[i_][j], half[i][i_]);
                nn_store(to, add ? nn_load(to) + sum : sum);
            }
    }
}

static const struct nn_winograd_form form = {
    .m = M,
    .positions = POINTS * POINTS,
    .halo = HALO,
    .sum = SUM * POINTS + SUM,
    .input = input,
    .output = output,
    .output_back = output_back,
    .input_back = input_back,
    .weights = weights,
    .weights_back = weights_back,
};

static size_t scratch_bytes(const struct nn_conv_shape *shape, int threads)
{
    return NN_LEVEL(winograd_scratch)(&form, shape, threads);
}

static void forward(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                    const float *w, const float *b, float *y, float *scratch)
{
    NN_LEVEL(winograd_forward)(&form, shape, threads, n, x, w, b, y, scratch);
}

static void backward(const struct nn_conv_shape *shape, int threads, int n, const float *x,
                     const float *dy, const float *w, float *dw, float *db, float *dx,
                     float *scratch)
{
    NN_LEVEL(winograd_backward)(&form, shape, threads, n, x, dy, w, dw, db, dx, scratch);
}

const struct nn_simd_conv CONV = {scratch_bytes, forward, backward};
