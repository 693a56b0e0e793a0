/* SPDX-License-Identifier: MIT
 *
 * Forward-only convolutions of a planar input with few channels: as forms/direct.c, with weights
 * prepared as [O / GROUP][K][GROUP], k = (h,w,i), and outputs that pass through the tail two rows
 * at a time, straight from L1. Threads own pairs of rows, so that one image keeps all of them busy.
 */
#include "nn/conv/simd/direct.h"

#include <string.h>

#include "base/team.h"
#include "nn/conv/simd/tail.h"
#include "nn/simd/gemm.h"

enum {
    GROUP = NN_PANELS * 8,
    WIDE = sizeof(nn_widest) / sizeof(float),
    WIDES = GROUP / WIDE,
};

struct layout {
    const struct nn_conv_shape *s;
    int taps, o8, groups;
    int h, w;        /* of the image with its padding */
    size_t image;    /* floats of it */
    size_t products; /* floats of a thread: (2,WO,GROUP) */
};

static struct layout layout_of(const struct nn_conv_shape *s)
{
    struct layout l = {.s = s,
                       .taps = s->kernel[0] * s->kernel[1] * s->in.c,
                       .o8 = nn_pad8(s->out.c) / 8,
                       .h = s->in.h + 2 * s->pad[0],
                       .w = s->in.w + 2 * s->pad[1]};

    l.groups = (l.o8 + NN_PANELS - 1) / NN_PANELS;
    l.image = nn_whole_lines((size_t)s->in.c * (size_t)l.h * (size_t)l.w);
    l.products = nn_whole_lines((size_t)(2 * s->out.w) * GROUP);
    return l;
}

size_t NN_LEVEL(direct_answer_scratch)(const struct nn_conv_shape *shape, int threads)
{
    const struct layout l = layout_of(shape);

    return ((size_t)shape->n_max * l.image + (size_t)threads * l.products) * sizeof(float);
}

size_t NN_LEVEL(direct_prepared_floats)(const struct nn_conv_shape *shape)
{
    const struct layout l = layout_of(shape);

    return (size_t)l.groups * (size_t)l.taps * GROUP;
}

/* w [O8][K][8] -> [O/GROUP][K][GROUP], zeros after O */
void NN_LEVEL(direct_prepare)(const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    const struct layout l = layout_of(shape);

    memset(prepared, 0, (size_t)(l.groups * l.taps) * GROUP * sizeof *prepared);
    for (int o = 0; o < l.o8; o++)
        for (int k = 0; k < l.taps; k++)
            nn_store(prepared + (size_t)(o / NN_PANELS * l.taps + k) * GROUP +
                         (size_t)(o % NN_PANELS) * 8,
                     nn_load(w + (size_t)(o * l.taps + k) * 8));
}

/* x (C,H,W) with zeros around it */
static void pad_image(const struct layout *l, const float *x, float *padded)
{
    const struct nn_shape in = l->s->in;

    memset(padded, 0, l->image * sizeof *padded);
    for (int i = 0; i < in.c; i++)
        for (int h = 0; h < in.h; h++)
            memcpy(padded + (size_t)(i * l->h + h + l->s->pad[0]) * (size_t)l->w + l->s->pad[1],
                   x + (size_t)(i * in.h + h) * (size_t)in.w, (size_t)in.w * sizeof *padded);
}

/* One group of outputs at `count` pixels of a row. */
struct tile {
    const float *x, *w;
    const int *offsets;
    int taps;
    size_t step;
    float *to; /* (count,GROUP) */
};

NN_INLINE void tile_of(const struct tile *t, int count)
{
    nn_widest sum[NN_ROWS][WIDES];
    const float *w = t->w;

#pragma GCC unroll 12
    for (int r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int p = 0; p < WIDES; p++)
            sum[r][p] = (nn_widest){0};
    for (int k = 0; k < t->taps; k++, w += GROUP) {
        const float *at = t->x + t->offsets[k];

#pragma GCC unroll 12
        for (int r = 0; r < count; r++)
#pragma GCC unroll 4
            for (int p = 0; p < WIDES; p++)
                sum[r][p] += at[(size_t)r * t->step] * *(const nn_widest_at *)(w + p * WIDE);
    }
#pragma GCC unroll 12
    for (int r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int p = 0; p < WIDES; p++)
            *(nn_widest_at *)(t->to + r * GROUP + p * WIDE) = sum[r][p];
}

static void tile_run(const struct tile *t, int count)
{
#define CASE(number)          \
    case number:              \
        tile_of(t, (number)); \
        break;
    switch (count) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#if defined(__AVX512F__)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
#endif
    }
#undef CASE
}

struct pass {
    const struct layout *l;
    const int *offsets;
    const float *x, *w, *b;
    const struct nn_conv_tail *tail;
    float *y;
    float *images, *products; /* with their padding; of all threads */
};

/* Products (rows,WO,GROUP) of one channel block -> y */
static void finish(const struct pass *p, int image, int row, int rows, int panel, const float *from)
{
    const struct nn_shape out = p->l->s->out;
    const size_t width = (size_t)out.w * 8;
    const size_t plane = (size_t)(image * p->l->o8 + panel) * (size_t)out.h * width;
    const size_t at = plane + (size_t)row * width;
    struct nn_rectangle r = {.h = rows,
                             .w = out.w,
                             .from = from,
                             .from_row = (size_t)out.w * GROUP,
                             .from_column = GROUP,
                             .bias = p->b ? nn_load(p->b + (size_t)panel * 8) : (nn_v8){0},
                             .add = p->tail->add ? p->tail->add + at : NULL,
                             .add_row = width,
                             .to = p->y + at,
                             .to_row = width,
                             .relu = p->tail->relu};

    if (!p->tail->pool) {
        nn_tail_store(&r);
        return;
    }
    r.to = p->y + plane / 4 + (size_t)(row / 2) * (width / 2);
    r.to_row = width / 2;
    nn_tail_pool(&r);
}

static void pad_task(const void *context, int image, int thread)
{
    const struct pass *p = context;
    const size_t i = (size_t)image;

    (void)thread;
    pad_image(p->l, p->x + i * nn_shape_floats(p->l->s->in), p->images + i * p->l->image);
}

static int pairs_of_rows(const struct layout *l)
{
    return (l->s->out.h + 1) / 2;
}

/* Two rows of output of an image, all channels */
static void rows_task(const void *context, int unit, int thread)
{
    const struct pass *p = context;
    const struct layout *l = p->l;
    const struct nn_conv_shape *s = l->s;
    const int image = unit / pairs_of_rows(l), row = unit % pairs_of_rows(l) * 2;
    const int rows = nn_least(2, s->out.h - row), tiles = (s->out.w + NN_ROWS - 1) / NN_ROWS;
    float *products = p->products + (size_t)thread * l->products;

    for (int group = 0; group < l->groups; group++) {
        struct tile t = {.w = p->w + (size_t)(group * l->taps) * GROUP,
                         .offsets = p->offsets,
                         .taps = l->taps,
                         .step = (size_t)s->stride[1],
                         .to = products};

        for (int r = row; r < row + rows; r++) {
            t.x = p->images + (size_t)image * l->image + (size_t)(r * s->stride[0]) * (size_t)l->w;
            for (int i = 0; i < tiles; i++) {
                const int count = s->out.w * (i + 1) / tiles - s->out.w * i / tiles;

                tile_run(&t, count);
                t.x += count * s->stride[1];
                t.to += (size_t)count * GROUP;
            }
        }
        for (int o = group * NN_PANELS; o < nn_least((group + 1) * NN_PANELS, l->o8); o++)
            finish(p, image, row, rows, o, products + (size_t)(o % NN_PANELS) * 8);
    }
}

static void find_offsets(const struct layout *l, int *offsets)
{
    for (int h = 0; h < l->s->kernel[0]; h++)
        for (int w = 0; w < l->s->kernel[1]; w++)
            for (int i = 0; i < l->s->in.c; i++)
                *offsets++ = (i * l->h + h) * l->w + w;
}

/* x (n,C,H,W) -> y (n,O8,HO,WO,8), or half of HO and WO */
base_status NN_LEVEL(direct_answer)(const struct nn_conv_work *work, struct base_team *team, int n,
                                    const float *x, const float *prepared, const float *b,
                                    const struct nn_conv_tail *tail, float *y, void *scratch)
{
    const struct layout l = layout_of(&work->shape);
    float *images = scratch;
    int offsets[NN_DIRECT_TAPS] = {0};
    const struct pass p = {.l = &l,
                           .offsets = offsets,
                           .x = x,
                           .w = prepared,
                           .b = b,
                           .tail = tail,
                           .y = y,
                           .images = images,
                           .products = images + (size_t)n * l.image};

    find_offsets(&l, offsets);
    base_team_run(team, n, pad_task, &p);
    base_team_run(team, n * pairs_of_rows(&l), rows_task, &p);
    return BASE_OK;
}
