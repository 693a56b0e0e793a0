/* SPDX-License-Identifier: MIT
 *
 * Convolutions of a planar input with few channels: the first layer, whose input needs no gradient.
 * The image, with its padding around it when there is any, stays in L1 and is read where it lies:
 * tap k = (h,w,i), in the order of the weights (Ohwi8o), is an offset into it. A ReLU after the
 * convolution costs nothing: y is cut before it is stored, and dy masked by y as it is loaded.
 * Gradients of weights are summed over bands of rows, over a fixed number of groups of images, then
 * over groups, so results do not depend on the number of threads. Answers: direct_answer.c.
 */
#include <string.h>

#include "nn/conv/simd/direct.h"
#include "nn/simd/gemm.h"

enum {
    MAX_CHANNELS = 4,
    ROWS = 6,                       /* pixels of a forward tile */
    PANELS = NN_PANELS > 1 ? 2 : 1, /* channel blocks of a tile */
    BAND = 256,                     /* pixels of a band, or one row: summed in one go */
    GROUPS = 16,                    /* of images, in the gradient of the weights */
    MANY = 4,                       /* channel blocks of a forward task */
    TAPS = 6, /* of a backward tile, or one less: what leaves fewer of them empty */
};

struct layout {
    const struct nn_conv_shape *s;
    int taps, o8, pixels; /* K, O/8, HO*WO */
    int rows;             /* output rows of a band */
    int h, w;             /* of the image with its padding */
    bool padded;          /* such an image is made */
    size_t partial;       /* floats of a group's sums, [O8][K+1][8] */
    size_t mine;          /* floats of a thread: the padded image */
    size_t ones;          /* floats of a row of ones */
};

/* A pass over one image. */
struct image {
    const struct layout *l;
    const float *x;      /* with its padding */
    const int *offsets;  /* (K) of the taps of the first pixel */
    const float *dy, *y; /* y: NULL without a ReLU */
    const float *ones;
};

static struct layout layout_of(const struct nn_conv_shape *s)
{
    struct layout l = {.s = s,
                       .taps = s->kernel[0] * s->kernel[1] * s->in.c,
                       .o8 = nn_pad8(s->out.c) / 8,
                       .pixels = s->out.h * s->out.w,
                       .h = s->in.h + 2 * s->pad[0],
                       .w = s->in.w + 2 * s->pad[1],
                       .padded = s->pad[0] > 0 || s->pad[1] > 0};

    l.rows = s->out.w >= BAND ? 1 : nn_least(BAND / s->out.w, s->out.h);
    l.partial = (size_t)(l.taps + 1) * (size_t)l.o8 * 8;
    l.mine = l.padded ? nn_whole_lines((size_t)s->in.c * (size_t)l.h * (size_t)l.w) : 0;
    l.ones = nn_whole_lines((size_t)l.w);
    return l;
}

static bool direct_serves(const struct nn_conv_shape *s)
{
    return s->in.planar && s->groups == 1 && s->in.c <= MAX_CHANNELS &&
           s->kernel[0] * s->kernel[1] * s->in.c <= NN_DIRECT_TAPS && !s->want_dx;
}

static const struct nn_cost_rates rates[BASE_CPU_LEVELS] = {
    [BASE_CPU_portable] = {{89.3, 294, 1}, {151.3, 1, 1}},
    [BASE_CPU_avx2] = {{28.8, 57, 2}, {22.3, 99, 1}},
    [BASE_CPU_avx512] = {{28.8, 57, 2}, {22.3, 99, 1}},
};

static double direct_cost(const struct nn_conv_shape *shape, enum base_cpu_level level)
{
    return nn_cost_seconds(shape, &rates[level], nn_cost_plain(shape));
}

static size_t direct_scratch(const struct nn_conv_shape *shape, int threads)
{
    const struct layout l = layout_of(shape);

    if (shape->prepared)
        return NN_LEVEL(direct_answer_scratch)(shape, threads);
    return ((size_t)threads * l.mine + l.ones + GROUPS * l.partial) * sizeof(float);
}

static void find_offsets(const struct layout *l, int *offsets)
{
    for (int h = 0; h < l->s->kernel[0]; h++)
        for (int w = 0; w < l->s->kernel[1]; w++)
            for (int i = 0; i < l->s->in.c; i++)
                *offsets++ = (i * l->h + h) * l->w + w;
}

/* x (C,H,W), or a copy of it with padding in the thread's memory */
static const float *pad_image(const struct layout *l, const float *x, float *scratch)
{
    const struct nn_shape in = l->s->in;
    float *padded = scratch + (size_t)nn_thread() * l->mine;

    if (!l->padded)
        return x;
    memset(padded, 0, l->mine * sizeof *padded);
    for (int i = 0; i < in.c; i++)
        for (int h = 0; h < in.h; h++)
            memcpy(padded + (size_t)(i * l->h + h + l->s->pad[0]) * (size_t)l->w + l->s->pad[1],
                   x + (size_t)(i * in.h + h) * (size_t)in.w, (size_t)in.w * sizeof *padded);
    return padded;
}

/* ---- forward ---- */

/* `count` pixels of a row and `panels` channel blocks. */
struct outputs {
    const float *x; /* of the first pixel */
    const float *w, *b;
    float *y;
    bool relu;
};

NN_INLINE void store_cut(float *to, nn_v8 value, bool relu)
{
    nn_store(to, value);
    for (int lane = 0; lane < 8 && relu; lane += NN_LANES) {
        const nn_lanes part = nn_lanes_load(to + lane);

        nn_lanes_store(to + lane, (nn_lanes)(~(part < 0) & (nn_masks)part));
    }
}

NN_INLINE void outputs_of(const struct image *m, const struct outputs *t, int count, int panels)
{
    const int taps = m->l->taps, *offsets = m->offsets;
    const size_t step = (size_t)m->l->s->stride[1], panel = (size_t)taps * 8;
    const size_t plane = (size_t)m->l->pixels * 8;
    const float *x = t->x, *w = t->w;
    nn_v8 sum[ROWS][PANELS];

#pragma GCC unroll 8
    for (int r = 0; r < count; r++)
#pragma GCC unroll 2
        for (int p = 0; p < panels; p++)
            sum[r][p] = (nn_v8){0};
#pragma GCC unroll 2
    for (int k = 0; k < taps; k++, w += 8) {
        const float *at = x + offsets[k];

#pragma GCC unroll 8
        for (int r = 0; r < count; r++)
#pragma GCC unroll 2
            for (int p = 0; p < panels; p++)
                sum[r][p] += at[(size_t)r * step] * nn_load(w + (size_t)p * panel);
    }
#pragma GCC unroll 2
    for (int p = 0; p < panels; p++) {
        const nn_v8 bias = t->b ? nn_load(t->b + (size_t)p * 8) : (nn_v8){0};

#pragma GCC unroll 8
        for (int r = 0; r < count; r++)
            store_cut(t->y + (size_t)p * plane + (size_t)r * 8, sum[r][p] + bias, t->relu);
    }
}

static void outputs_run(const struct image *m, const struct outputs *t, int count, int panels)
{
#define CASE(number)                          \
    case number:                              \
        if (panels == 1)                      \
            outputs_of(m, t, number, 1);      \
        else                                  \
            outputs_of(m, t, number, PANELS); \
        break;
    switch (count) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(ROWS)
    }
#undef CASE
}

/* y of up to PANELS channel blocks of an image; rows are cut into tiles of equal size. */
static void image_forward(const struct image *m, struct outputs t, int panels)
{
    const struct nn_conv_shape *s = m->l->s;
    const int tiles = (s->out.w + ROWS - 1) / ROWS;

    for (int row = 0; row < s->out.h; row++) {
        t.x = m->x + (size_t)(row * s->stride[0]) * (size_t)m->l->w;
        for (int tile = 0; tile < tiles; tile++) {
            const int count = s->out.w * (tile + 1) / tiles - s->out.w * tile / tiles;

            outputs_run(m, &t, count, panels);
            t.x += count * s->stride[1];
            t.y += (size_t)count * 8;
        }
    }
}

/* x (n,C,H,W), w [O8][K][8], b (O) -> y (n,O8,HO,WO,8) */
static base_status direct_outputs(const struct nn_conv_work *work, int n, const float *x,
                                  const float *w, const float *b, bool relu, float *y,
                                  void *scratch)
{
    const struct layout l = layout_of(&work->shape);
    const size_t image = nn_shape_floats(work->shape.in), panel = (size_t)l.taps * 8;
    int offsets[NN_DIRECT_TAPS] = {0};

    find_offsets(&l, offsets);
#pragma omp parallel for collapse(2) schedule(static) num_threads(work->threads)
    for (int i = 0; i < n; i++)
        for (int first = 0; first < l.o8; first += MANY) {
            const struct image m = {
                .l = &l, .x = pad_image(&l, x + (size_t)i * image, scratch), .offsets = offsets};
            const int end = nn_least(first + MANY, l.o8);

            for (int o = first; o < end; o += PANELS)
                image_forward(
                    &m,
                    (struct outputs){.w = w + (size_t)o * panel,
                                     .b = b ? b + (size_t)o * 8 : NULL,
                                     .y = y + (size_t)(i * l.o8 + o) * (size_t)l.pixels * 8,
                                     .relu = relu},
                    nn_least(PANELS, end - o));
        }
    return BASE_OK;
}

/* ---- backward ---- */

/* What `rows` rows of output from `row` on add to the sums of taps k … */
struct sums {
    int k, row, rows;
    const float *dy, *y; /* of the rows, in the first of the panels */
    float *to;           /* [panel][K+1][8], from tap k on */
    bool add;
};

/* dy where y > 0 */
NN_INLINE nn_v8 load_masked(const float *dy, const float *y)
{
    union {
        nn_v8 whole;
        nn_lanes part[8 / NN_LANES];
    } value;

    for (int i = 0; i < 8 / NN_LANES; i++) {
        const nn_masks alive = nn_lanes_load(y + i * NN_LANES) > 0;

        value.part[i] = (nn_lanes)(alive & (nn_masks)nn_lanes_load(dy + i * NN_LANES));
    }
    return value.whole;
}

/* Taps after the last read ones: the first of them gives the bias's sum, the rest is dropped. */
NN_INLINE void sums_of(const struct image *m, const struct sums *t, int count, int panels,
                       bool masked)
{
    const struct layout *l = m->l;
    const size_t step = (size_t)l->s->stride[1], plane = (size_t)l->pixels * 8;
    const size_t panel = (size_t)(l->taps + 1) * 8;
    const int columns = l->s->out.w;
    const float *tap[TAPS], *dy = t->dy, *y = t->y;
    nn_v8 sum[TAPS][PANELS];

    for (int r = 0; r < count; r++)
        for (int p = 0; p < panels; p++)
            sum[r][p] = (nn_v8){0};
    for (int row = t->row; row < t->row + t->rows; row++) {
        for (int r = 0; r < count; r++)
            tap[r] = t->k + r < l->taps ? m->x + m->offsets[t->k + r] +
                                              (size_t)(row * l->s->stride[0]) * (size_t)l->w
                                        : m->ones;
        for (size_t at = 0; at < (size_t)columns * step; at += step, dy += 8, y += masked ? 8 : 0) {
            nn_v8 grad[PANELS];

#pragma GCC unroll 2
            for (int p = 0; p < panels; p++)
                grad[p] = masked ? load_masked(dy + (size_t)p * plane, y + (size_t)p * plane)
                                 : nn_load(dy + (size_t)p * plane);
#pragma GCC unroll 8
            for (int r = 0; r < count; r++)
#pragma GCC unroll 2
                for (int p = 0; p < panels; p++)
                    sum[r][p] += tap[r][at] * grad[p];
        }
    }
    for (int p = 0; p < panels; p++)
        for (int r = 0; r < count && t->k + r <= l->taps; r++) {
            float *to = t->to + (size_t)p * panel + (size_t)r * 8;

            nn_store(to, t->add ? nn_load(to) + sum[r][p] : sum[r][p]);
        }
}

NN_INLINE void sums_through(const struct image *m, const struct sums *t, int count, int panels)
{
    if (m->y)
        sums_of(m, t, count, panels, true);
    else
        sums_of(m, t, count, panels, false);
}

static void sums_run(const struct image *m, const struct sums *t, int count, int panels)
{
    if (count == TAPS && panels == 1)
        sums_through(m, t, TAPS, 1);
    else if (count == TAPS)
        sums_through(m, t, TAPS, PANELS);
    else if (panels == 1)
        sums_through(m, t, TAPS - 1, 1);
    else
        sums_through(m, t, TAPS - 1, PANELS);
}

/* Taps of a tile, for K+1 of them. */
static int tile_taps(int all)
{
    const int wide = (all + TAPS - 1) / TAPS * TAPS, narrow = (all + TAPS - 2) / (TAPS - 1);

    return wide <= narrow * (TAPS - 1) ? TAPS : TAPS - 1;
}

/* Adds an image to sums [O8][K+1][8]. */
static void image_sums(const struct image *m, bool add, float *sums)
{
    const struct layout *l = m->l;
    const int all = l->taps + 1, count = tile_taps(all);

    for (int row = 0; row < l->s->out.h; row += l->rows)
        for (int o = 0; o < l->o8; o += PANELS) {
            const size_t at = ((size_t)o * (size_t)l->pixels + (size_t)(row * l->s->out.w)) * 8;

            for (int k = 0; k < all; k += count)
                sums_run(m,
                         &(struct sums){.k = k,
                                        .row = row,
                                        .rows = nn_least(l->rows, l->s->out.h - row),
                                        .dy = m->dy + at,
                                        .y = m->y ? m->y + at : NULL,
                                        .to = sums + ((size_t)o * (size_t)all + (size_t)k) * 8,
                                        .add = add || row > 0},
                         count, nn_least(PANELS, l->o8 - o));
        }
}

/* The sums of all groups -> dw [O8][K][8], db */
static void add_groups(const struct layout *l, const float *sums, float *dw, float *db)
{
    for (int o = 0; o < l->o8; o++)
        for (int k = 0; k <= l->taps; k++) {
            const float *from = sums + ((size_t)o * (size_t)(l->taps + 1) + (size_t)k) * 8;
            nn_v8 sum = nn_load(from);

            for (int g = 1; g < GROUPS; g++)
                sum += nn_load(from + (size_t)g * l->partial);
            if (k < l->taps)
                nn_store(dw + ((size_t)o * (size_t)l->taps + (size_t)k) * 8, sum);
            else if (db)
                nn_store(db + (size_t)o * 8, sum);
        }
}

/* x (n,C,H,W), dy, y (n,O8,HO,WO,8) -> dw [O8][K][8], db (O); y NULL: no ReLU */
static base_status direct_backward_relu(const struct nn_conv_work *work, int n, const float *x,
                                        const float *y, const float *dy, float *dw, float *db,
                                        void *scratch)
{
    const struct layout l = layout_of(&work->shape);
    const size_t in = nn_shape_floats(l.s->in), out = nn_shape_floats(l.s->out);
    float *ones = (float *)scratch + (size_t)work->threads * l.mine, *partial = ones + l.ones;
    int offsets[NN_DIRECT_TAPS] = {0};

    find_offsets(&l, offsets);
    for (size_t i = 0; i < l.ones; i++)
        ones[i] = 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(work->threads)
    for (int g = 0; g < GROUPS; g++) {
        const int begin = n * g / GROUPS, end = n * (g + 1) / GROUPS;
        float *sums = partial + (size_t)g * l.partial;

        if (begin == end)
            memset(sums, 0, l.partial * sizeof *sums);
        for (int i = begin; i < end; i++)
            image_sums(&(struct image){.l = &l,
                                       .x = pad_image(&l, x + (size_t)i * in, scratch),
                                       .offsets = offsets,
                                       .dy = dy + (size_t)i * out,
                                       .y = y ? y + (size_t)i * out : NULL,
                                       .ones = ones},
                       i > begin, sums);
    }
    add_groups(&l, partial, dw, db);
    return BASE_OK;
}

static base_status direct_backward(const struct nn_conv_work *work, int n, const float *x,
                                   const float *dy, const float *w, float *dw, float *db, float *dx,
                                   void *scratch)
{
    (void)w;
    (void)dx;
    return direct_backward_relu(work, n, x, NULL, dy, dw, db, scratch);
}

static base_status direct_forward(const struct nn_conv_work *work, int n, const float *x,
                                  const float *w, const float *b, float *y, void *scratch)
{
    return direct_outputs(work, n, x, w, b, false, y, scratch);
}

static base_status direct_forward_relu(const struct nn_conv_work *work, int n, const float *x,
                                       const float *w, const float *b, float *y, void *scratch)
{
    return direct_outputs(work, n, x, w, b, true, y, scratch);
}

static int direct_uses(const struct nn_conv_shape *shape)
{
    return shape->out.h * shape->out.w;
}

const struct nn_conv NN_LEVEL(conv_direct) = {
    .name = "direct",
    .help = "first layers with up to four channels: any small kernel and stride",
    .share = 1,
    .serves = direct_serves,
    .cost = direct_cost,
    .scratch = direct_scratch,
    .forward = direct_forward,
    .backward = direct_backward,
    .forward_relu = direct_forward_relu,
    .backward_relu = direct_backward_relu,
    .prepared_floats = NN_LEVEL(direct_prepared_floats),
    .prepare = NN_LEVEL(direct_prepare),
    .uses = direct_uses,
    .answer = NN_LEVEL(direct_answer),
};
