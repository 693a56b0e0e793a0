/* SPDX-License-Identifier: MIT
 *
 * The transforms of a Winograd form as straight-line vector code. The form's file defines M (edge
 * of an output tile), INPUT (edge of an input tile), STEP (from one input tile to the next: M times
 * the stride), POINTS (α), PAIRS, HALO, SUM, the matrices BT[POINTS][INPUT], AT[M][POINTS],
 * G[POINTS][3] and its `rates` (nn/conv/cost.h) as static const, and then includes this file:
 * everything is inlined and unrolled, so zeros vanish and ones cost no multiplication. Not a header
 * of declarations: it defines what WINOGRAD_SLOTS puts into the form's description.
 *
 * PAIRS: the points 1 + 2k and 2 + 2k, k < PAIRS, are p and -p. Their rows of BT and G and their
 * columns of AT are equal at even places and opposite at odd ones; what they share is computed
 * once.
 */
#include <string.h>

#include "nn/conv/simd/tail.h"
#include "nn/conv/simd/winograd.h"

enum { MOST = 9 }; /* rows of a tile, of any form */

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

/* The part of a tile that is inside the image, `from` its corner, zeros around it. */
static void tile_copy(const float *from, int width, struct span r, struct span c, int size,
                      float *tile)
{
    memset(tile, 0, (size_t)(size * size * 8) * sizeof *tile);
    for (int i = r.begin; i < r.end; i++)
        for (int j = c.begin; j < c.end; j++)
            nn_store(tile + (i * size + j) * 8, nn_load(from + ((ptrdiff_t)i * width + j) * 8));
}

/* Asks for the tile that comes next: planes are far apart, no hardware prefetcher follows. */
NN_INLINE void tile_fetch(const float *from, int width, int size)
{
#pragma GCC unroll 9
    for (int i = 0; i < size; i++)
#pragma GCC unroll 9
        for (int j = 0; j < size; j += 2)
            __builtin_prefetch(from + ((ptrdiff_t)i * width + j) * 8);
}

NN_INLINE bool leads(int point) /* the first of a pair */
{
    return point % 2 == 1 && point < 2 * PAIRS;
}

NN_INLINE bool follows(int point)
{
    return point > 0 && leads(point - 1);
}

/* sum += coefficient * value, where `empty` says that there is no sum yet. */
NN_INLINE void add_to(nn_v8 *sum, bool *empty, float coefficient, nn_v8 value)
{
    if (coefficient == 0)
        return;
    *sum = *empty ? coefficient * value : *sum + coefficient * value;
    *empty = false;
}

/* to[point] = Σ_i m[point*row + i*column] * from[i] */
NN_INLINE void to_points(const float *m, int row, int column, int count, const nn_v8 *from,
                         nn_v8 *to)
{
#pragma GCC unroll 9
    for (int point = 0; point < POINTS; point++) {
        nn_v8 even = {0}, odd = {0};
        bool no_even = true, no_odd = true;

        if (follows(point))
            continue;
#pragma GCC unroll 9
        for (int i = 0; i < count; i++)
            if (leads(point) && i % 2 == 1)
                add_to(&odd, &no_odd, m[point * row + i * column], from[i]);
            else
                add_to(&even, &no_even, m[point * row + i * column], from[i]);
        to[point] = leads(point) ? even + odd : even;
        if (leads(point))
            to[point + 1] = even - odd;
    }
}

/* The adjoint: to[i] = Σ_point m[i*row + point*column] * from[point] */
NN_INLINE void from_points(const float *m, int row, int column, int count, const nn_v8 *from,
                           nn_v8 *to)
{
    nn_v8 even[POINTS], odd[POINTS];

#pragma GCC unroll 9
    for (int point = 0; point < POINTS; point++) {
        if (follows(point))
            continue;
        even[point] = leads(point) ? from[point] + from[point + 1] : from[point];
        odd[point] = leads(point) ? from[point] - from[point + 1] : from[point];
    }
#pragma GCC unroll 9
    for (int i = 0; i < count; i++) {
        bool empty = true;

        to[i] = (nn_v8){0};
#pragma GCC unroll 9
        for (int point = 0; point < POINTS; point++)
            if (!follows(point))
                add_to(&to[i], &empty, m[i * row + point * column],
                       i % 2 == 1 ? odd[point] : even[point]);
    }
}

struct cells { /* floats from a row of a tile to the next, from a column to the next */
    size_t row, column;
};

/* A tile of count x count -> m · tile · mᵀ at the POINTS² positions */
NN_INLINE void spread(const float *m, int row, int column, int count, const float *from,
                      struct cells cells, float *to, size_t position)
{
    nn_v8 half[MOST][POINTS];

#pragma GCC unroll 9
    for (int j = 0; j < count; j++) {
        nn_v8 d[MOST];

#pragma GCC unroll 9
        for (int i = 0; i < count; i++)
            d[i] = nn_load(from + (size_t)i * cells.row + (size_t)j * cells.column);
        to_points(m, row, column, count, d, half[j]);
    }
#pragma GCC unroll 9
    for (int a = 0; a < POINTS; a++) {
        nn_v8 d[MOST], v[POINTS];

#pragma GCC unroll 9
        for (int j = 0; j < count; j++)
            d[j] = half[j][a];
        to_points(m, row, column, count, d, v);
#pragma GCC unroll 9
        for (int b = 0; b < POINTS; b++)
            nn_store(to + (size_t)(a * POINTS + b) * position, v[b]);
    }
}

/* The adjoint: the positions at `from` -> m · positions · mᵀ, plus `bias` or what is there */
NN_INLINE void collect(const float *m, int row, int column, int count, const float *from,
                       size_t position, const nn_v8 *bias, float *to, struct cells cells)
{
    nn_v8 half[POINTS][MOST];

#pragma GCC unroll 9
    for (int b = 0; b < POINTS; b++) {
        nn_v8 d[POINTS];

#pragma GCC unroll 9
        for (int a = 0; a < POINTS; a++)
            d[a] = nn_load(from + (size_t)(a * POINTS + b) * position);
        from_points(m, row, column, count, d, half[b]);
    }
#pragma GCC unroll 9
    for (int i = 0; i < count; i++) {
        nn_v8 d[POINTS], y[MOST];

#pragma GCC unroll 9
        for (int b = 0; b < POINTS; b++)
            d[b] = half[b][i];
        from_points(m, row, column, count, d, y);
#pragma GCC unroll 9
        for (int j = 0; j < count; j++) {
            float *cell = to + (size_t)i * cells.row + (size_t)j * cells.column;

            nn_store(cell, y[j] + (bias ? *bias : nn_load(cell)));
        }
    }
}

/* d (INPUT,INPUT) -> Bᵀ d B at the POINTS² positions */
static void winograd_input(const struct nn_tiling *t, int c8, const float *x, struct nn_products v)
{
    const size_t plane = (size_t)t->h * (size_t)t->w * 8;
    _Alignas(64) float edge[INPUT * INPUT * 8];

    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * STEP - t->top;
        const int column = tile % t->columns * STEP - t->left;
        const struct span r = inside(row, INPUT, t->h), c = inside(column, INPUT, t->w);
        const float *from = x + ((ptrdiff_t)row * t->w + column) * 8;
        const bool full = whole(r, c, INPUT);
        float *to = v.at + (size_t)tile * v.tile;

        for (int block = 0; block < c8; block++, from += plane, to += 8) {
            tile_fetch(from + plane, t->w, INPUT);
            if (!full)
                tile_copy(from, t->w, r, c, INPUT, edge);
            spread(&BT[0][0], INPUT, 1, INPUT, full ? from : edge,
                   (struct cells){full ? (size_t)t->w * 8 : INPUT * 8, 8}, to, v.position);
        }
    }
}

/* The adjoint of input: dx = Σ over tiles of B dV Bᵀ, which overlap. */
static void winograd_input_back(const struct nn_tiling *t, int c8, struct nn_products v, float *dx)
{
    const size_t plane = (size_t)t->h * (size_t)t->w * 8;
    const nn_v8 zero = {0};
    _Alignas(64) float edge[INPUT * INPUT * 8];

    memset(dx, 0, (size_t)c8 * plane * sizeof *dx);
    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * STEP - t->top;
        const int column = tile % t->columns * STEP - t->left;
        const struct span r = inside(row, INPUT, t->h), c = inside(column, INPUT, t->w);
        const float *from = v.at + (size_t)tile * v.tile;
        float *to = dx + ((ptrdiff_t)row * t->w + column) * 8;

        for (int block = 0; block < c8; block++, from += 8, to += plane) {
            if (whole(r, c, INPUT)) {
                collect(&BT[0][0], 1, INPUT, INPUT, from, v.position, NULL, to,
                        (struct cells){(size_t)t->w * 8, 8});
                continue;
            }
            collect(&BT[0][0], 1, INPUT, INPUT, from, v.position, &zero, edge,
                    (struct cells){INPUT * 8, 8});
            for (int i = r.begin; i < r.end; i++)
                for (int j = c.begin; j < c.end; j++) {
                    float *cell = to + ((ptrdiff_t)i * t->w + j) * 8;

                    nn_store(cell, nn_load(cell) + nn_load(edge + (i * INPUT + j) * 8));
                }
        }
    }
}

/* products (POINTS²) -> Aᵀ m A + b, of which the part inside the image is kept */
static void winograd_output(const struct nn_tiling *t, int c8, struct nn_products m, const float *b,
                            float *y)
{
    const size_t plane = (size_t)t->ho * (size_t)t->wo * 8;
    _Alignas(64) float edge[M * M * 8];

    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * M, column = tile % t->columns * M;
        const struct span r = inside(row, M, t->ho), c = inside(column, M, t->wo);
        const bool full = whole(r, c, M);
        const float *from = m.at + (size_t)tile * m.tile;
        float *to = y + ((size_t)row * (size_t)t->wo + (size_t)column) * 8;

        for (int block = 0; block < c8; block++, from += 8, to += plane) {
            const nn_v8 bias = b ? nn_load(b + (size_t)block * 8) : (nn_v8){0};

            collect(&AT[0][0], POINTS, 1, M, from, m.position, &bias, full ? to : edge,
                    (struct cells){full ? (size_t)t->wo * 8 : M * 8, 8});
            for (int i = 0; i < r.end && !full; i++)
                memcpy(to + (size_t)(i * t->wo) * 8, edge + i * M * 8,
                       (size_t)(c.end * 8) * sizeof *to);
        }
    }
}

/* products (POINTS²) -> Aᵀ m A + b, through the tail */
static void winograd_answer_tiles(const struct nn_tiling *t, int above, int c8,
                                  struct nn_products m, const float *b,
                                  const struct nn_conv_tail *tail, float *y)
{
    const size_t width = (size_t)t->wo * 8, plane = (size_t)t->ho * width;
    const int pool = tail->pool ? 2 : 1;
    _Alignas(64) float values[M * M * 8];

    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * M, column = tile % t->columns * M;
        const size_t at = (size_t)row * width + (size_t)column * 8;
        const float *from = m.at + (size_t)tile * m.tile;
        struct nn_rectangle r = {.h = inside(row, M, t->ho - above * M).end,
                                 .w = inside(column, M, t->wo).end,
                                 .from = values,
                                 .from_row = M * 8,
                                 .from_column = 8,
                                 .add = tail->add ? tail->add + at : NULL,
                                 .add_row = width,
                                 .to = y + (size_t)(row / pool) * (width / (size_t)pool) +
                                       (size_t)(column / pool) * 8,
                                 .to_row = width / (size_t)pool,
                                 .relu = tail->relu};

        for (int block = 0; block < c8; block++, from += 8) {
            const nn_v8 bias = b ? nn_load(b + (size_t)block * 8) : (nn_v8){0};

            collect(&AT[0][0], POINTS, 1, M, from, m.position, &bias, values,
                    (struct cells){M * 8, 8});
            if (tail->pool)
                nn_tail_pool(&r);
            else
                nn_tail_store(&r);
            r.add += r.add ? plane : 0;
            r.to += plane / (size_t)(pool * pool);
        }
    }
}

/* The adjoint of output: A dY Aᵀ; what is outside the image counts as zero. */
static void winograd_output_back(const struct nn_tiling *t, int c8, const float *dy,
                                 struct nn_products m)
{
    const size_t plane = (size_t)t->ho * (size_t)t->wo * 8;
    _Alignas(64) float edge[M * M * 8];

    for (int tile = 0; tile < t->rows * t->columns; tile++) {
        const int row = tile / t->columns * M, column = tile % t->columns * M;
        const struct span r = inside(row, M, t->ho), c = inside(column, M, t->wo);
        const float *from = dy + ((size_t)row * (size_t)t->wo + (size_t)column) * 8;
        const bool full = whole(r, c, M);
        float *to = m.at + (size_t)tile * m.tile;

        for (int block = 0; block < c8; block++, from += plane, to += 8) {
            tile_fetch(from + plane, t->wo, M);
            if (!full)
                tile_copy(from, t->wo, r, c, M, edge);
            spread(&AT[0][0], 1, POINTS, M, full ? from : edge,
                   (struct cells){full ? (size_t)t->wo * 8 : M * 8, 8}, to, m.position);
        }
    }
}

/* g [3][3][8][8] -> G g Gᵀ, [POINTS²][8][8] */
static void winograd_weights(const float *w, size_t position, float *u)
{
    const struct cells taps = {3 * 64, 64};

    for (int row = 0; row < 8; row++, w += 8, u += 8)
        spread(&G[0][0], 3, 1, 3, w, taps, u, position);
}

/* The adjoint of weights: dg (+)= Gᵀ dU G */
static void winograd_weights_back(const float *du, size_t position, bool add, float *dw)
{
    const struct cells taps = {3 * 64, 64};
    const nn_v8 zero = {0};

    for (int row = 0; row < 8; row++, du += 8, dw += 8)
        if (add)
            collect(&G[0][0], 1, 3, 3, du, position, NULL, dw, taps);
        else
            collect(&G[0][0], 1, 3, 3, du, position, &zero, dw, taps);
}

static const struct nn_winograd_form form = {
    .m = M,
    .positions = POINTS * POINTS,
    .halo = HALO,
    .sum = SUM * POINTS + SUM,
    .input = winograd_input,
    .output = winograd_output,
    .answer = winograd_answer_tiles,
    .output_back = winograd_output_back,
    .input_back = winograd_input_back,
    .weights = winograd_weights,
    .weights_back = winograd_weights_back,
};

/* ---- what a form of this kind is, but for its name ---- */

static bool winograd_serves(const struct nn_conv_shape *s)
{
    return s->kernel[0] == 3 && s->kernel[1] == 3 && s->stride[0] == STEP / M &&
           s->stride[1] == STEP / M && s->pad[0] <= 1 && s->pad[1] <= 1 && s->groups == 1 &&
           !s->in.planar;
}

static double winograd_cost(const struct nn_conv_shape *shape, enum base_cpu_level level)
{
    return nn_cost_seconds(shape, &rates[level], nn_cost_winograd(shape, M, POINTS * POINTS));
}

static size_t winograd_scratch(const struct nn_conv_shape *shape, int threads)
{
    return shape->prepared ? NN_LEVEL(winograd_answer_scratch)(&form, shape, threads)
                           : NN_LEVEL(winograd_scratch)(&form, shape, threads);
}

static base_status winograd_forward(const struct nn_conv_work *work, int n, const float *x,
                                    const float *w, const float *b, float *y, void *scratch)
{
    return NN_LEVEL(winograd_forward)(&form, work, n, x, w, b, y, scratch);
}

static base_status winograd_backward(const struct nn_conv_work *work, int n, const float *x,
                                     const float *dy, const float *w, float *dw, float *db,
                                     float *dx, void *scratch)
{
    return NN_LEVEL(winograd_backward)(&form, work, n, x, dy, w, dw, db, dx, scratch);
}

static size_t winograd_prepared_floats(const struct nn_conv_shape *shape)
{
    return NN_LEVEL(winograd_prepared_floats)(&form, shape);
}

static void winograd_prepare(const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    NN_LEVEL(winograd_prepare)(&form, shape, w, prepared);
}

static int winograd_uses(const struct nn_conv_shape *shape)
{
    return nn_divide_up(shape->out.h, M) * nn_divide_up(shape->out.w, M);
}

static base_status winograd_answer(const struct nn_conv_work *work, struct base_team *team, int n,
                                   const float *x, const float *prepared, const float *b,
                                   const struct nn_conv_tail *tail, float *y, void *scratch)
{
    return NN_LEVEL(winograd_answer)(&form, work, team, n, x, prepared, b, tail, y, scratch);
}

#define WINOGRAD_SLOTS                                                                            \
    .share = POINTS * POINTS / (9.0 * M * M), .cost = winograd_cost, .scratch = winograd_scratch, \
    .forward = winograd_forward, .backward = winograd_backward,                                   \
    .prepared_floats = winograd_prepared_floats, .prepare = winograd_prepare,                     \
    .uses = winograd_uses, .answer = winograd_answer
