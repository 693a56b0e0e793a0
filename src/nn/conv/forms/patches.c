/* SPDX-License-Identifier: MIT
 *
 * Forward-only convolutions of blocked images as one matrix product: the patch of the image under
 * every output pixel becomes a row of taps, and the rows are multiplied by all weights, which are
 * read once for all pixels of a block. No arithmetic is saved, but no transformed weights, several
 * times the weights, come from far memory either: what counts when the batch is small. Threads own
 * ranges of output channels. An element's sum has one order for any batch and number of threads.
 *
 * Prepared weights: [O / GROUP][K][GROUP], K over (I/8,H,W,8) as the weights are, zeros after O.
 */
#include "base/team.h"
#include "nn/conv/form.h"
#include "nn/conv/simd/tail.h"
#include "nn/simd/gemm.h"

enum {
    GROUP = NN_PANELS * 8,  /* outputs that are computed together */
    BLOCK_FLOATS = 3 << 16, /* of patches at a time: they stay in L2, */
    BLOCK_PIXELS = 96,      /* but so many pixels at least pay for reading the weights */
    SKEW = 16,              /* floats between rows of patches, against 4 KB aliasing */
};

/* Pixels go in bands: whole images, or some rows of a large one. */
struct layout {
    const struct nn_conv_shape *s;
    int i8, o8, taps, groups;
    int rows, bands; /* output rows of a band, bands of an image */
    int pixels;      /* of a band */
    int block;       /* bands of a block */
    size_t depth;    /* K */
    size_t row;      /* floats from patch to patch */
    size_t patches;  /* floats of a block's */
    size_t products; /* floats of a thread: the outputs of a block and a group */
};

static struct layout layout_of(const struct nn_conv_shape *s, int n)
{
    struct layout l = {.s = s,
                       .i8 = nn_pad8(s->in.c) / 8,
                       .o8 = nn_pad8(s->out.c) / 8,
                       .taps = s->kernel[0] * s->kernel[1]};
    int room;

    l.depth = (size_t)l.i8 * (size_t)l.taps * 8;
    l.row = l.depth + (l.depth % 256 == 0 ? SKEW : 0);
    l.groups = (l.o8 + NN_PANELS - 1) / NN_PANELS;
    room = nn_most(BLOCK_PIXELS, (int)(BLOCK_FLOATS / l.row)); /* pixels */
    l.rows =
        nn_least(s->out.h, nn_most(room / s->out.w / 2 * 2, 2)); /* pairs: they may be pooled */
    l.bands = (s->out.h + l.rows - 1) / l.rows;
    l.pixels = l.rows * s->out.w;
    l.block = nn_least(nn_most(room / l.pixels, 1), n * l.bands);
    l.patches = nn_whole_lines((size_t)(l.block * l.pixels) * l.row);
    l.products = nn_whole_lines((size_t)(l.block * l.pixels) * GROUP);
    return l;
}

static bool patches_serves(const struct nn_conv_shape *s)
{
    return s->prepared && s->groups == 1 && !s->in.planar;
}

static size_t patches_scratch(const struct nn_conv_shape *shape, int threads)
{
    const struct layout l = layout_of(shape, shape->n_max);

    return (l.patches + (size_t)threads * l.products) * sizeof(float);
}

static size_t patches_prepared_floats(const struct nn_conv_shape *shape)
{
    const struct layout l = layout_of(shape, 1);

    return (size_t)l.groups * l.depth * GROUP;
}

/* w [O8][K][8] -> [O/GROUP][K][GROUP] */
static void patches_prepare(const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    const struct layout l = layout_of(shape, 1);

#pragma omp parallel for collapse(2)
    for (int g = 0; g < l.groups; g++)
        for (size_t k = 0; k < l.depth; k++)
            for (int p = 0; p < NN_PANELS; p++) {
                const int o = g * NN_PANELS + p;
                const nn_v8 value =
                    o < l.o8 ? nn_load(w + ((size_t)o * l.depth + k) * 8) : (nn_v8){0};

                nn_store(prepared + ((size_t)g * l.depth + k) * GROUP + (size_t)p * 8, value);
            }
}

/* The taps of channel block c under output pixel (row,column) of an image: to [taps][8] */
static void take_patch(const struct layout *l, const float *x, int row, int column, float *to)
{
    const struct nn_conv_shape *s = l->s;
    const int top = row * s->stride[0] - s->pad[0], left = column * s->stride[1] - s->pad[1];

    for (int i = top; i < top + s->kernel[0]; i++)
        for (int j = left; j < left + s->kernel[1]; j++, to += 8) {
            const bool inside = i >= 0 && i < s->in.h && j >= 0 && j < s->in.w;

            nn_store(to, inside ? nn_load(x + (size_t)(i * s->in.w + j) * 8) : (nn_v8){0});
        }
}

/* Channel block c of a band -> its part of the band's patches */
static void take_patches(const struct layout *l, const float *x, int band, int c, float *patches)
{
    const struct nn_conv_shape *s = l->s;
    const float *plane =
        x + ((size_t)(band / l->bands * l->i8 + c) * (size_t)s->in.h * (size_t)s->in.w * 8);
    const int first = band % l->bands * l->rows, last = nn_least(first + l->rows, s->out.h);

    patches += (size_t)(c * l->taps) * 8;
    for (int row = first; row < last; row++)
        for (int column = 0; column < s->out.w; column++, patches += l->row)
            take_patch(l, plane, row, column, patches);
}

/* A block of bands as its tasks see it. */
struct pass {
    const struct layout *l;
    int first, count; /* bands of the batch */
    const float *x, *w, *b;
    const struct nn_conv_tail *tail;
    float *y;                  /* of the whole batch */
    float *patches, *products; /* of the block; of all threads */
};

/* A channel block of a band -> patches */
static void patches_task(const void *context, int unit, int thread)
{
    const struct pass *p = context;
    const struct layout *l = p->l;
    const int i = unit / l->i8, c = unit % l->i8;

    (void)thread;
    take_patches(l, p->x, p->first + i, c, p->patches + (size_t)(i * l->pixels) * l->row);
}

/* One channel block of a band: from (pixels, GROUP) -> y */
static void finish(const struct pass *p, int band, int panel, const float *from)
{
    const struct layout *l = p->l;
    const struct nn_shape out = l->s->out;
    const int first = band % l->bands * l->rows;
    const size_t plane = (size_t)(band / l->bands * l->o8 + panel) * (size_t)(out.h * out.w) * 8;
    const size_t at = plane + (size_t)(first * out.w) * 8;
    struct nn_rectangle r = {.h = nn_least(l->rows, out.h - first),
                             .w = out.w,
                             .from = from,
                             .from_row = (size_t)out.w * GROUP,
                             .from_column = GROUP,
                             .bias = p->b ? nn_load(p->b + (size_t)panel * 8) : (nn_v8){0},
                             .add = p->tail->add ? p->tail->add + at : NULL,
                             .add_row = (size_t)out.w * 8,
                             .to = p->y + at,
                             .to_row = (size_t)out.w * 8,
                             .relu = p->tail->relu};

    if (!p->tail->pool) {
        nn_tail_store(&r);
        return;
    }
    r.to = p->y + plane / 4 + (size_t)(first / 2 * (out.w / 2)) * 8;
    r.to_row /= 2;
    nn_tail_pool(&r);
}

/* GROUP output channels of the block */
static void group_task(const void *context, int group, int thread)
{
    const struct pass *p = context;
    const struct layout *l = p->l;
    float *c = p->products + (size_t)thread * l->products;
    const int first = group * NN_PANELS, panels = nn_least(NN_PANELS, l->o8 - first);
    struct nn_tile t = {.a = p->patches,
                        .b = p->w + (size_t)group * l->depth * GROUP,
                        .c = c,
                        .a_row = l->row,
                        .a_step = 1,
                        .b_step = GROUP,
                        .b_panel = 8,
                        .c_row = GROUP,
                        .c_panel = 8};

    for (size_t at = 0; at < l->depth; at += NN_DEPTH) {
        t.depth = nn_least(NN_DEPTH, (int)(l->depth - at));
        t.add = at > 0;
        nn_gemm_packed(t, p->count * l->pixels, panels);
        t.a += NN_DEPTH;
        t.b += (size_t)NN_DEPTH * GROUP;
    }
    for (int i = 0; i < p->count; i++)
        for (int panel = 0; panel < panels; panel++)
            finish(p, p->first + i, first + panel,
                   c + (size_t)(i * l->pixels) * GROUP + (size_t)panel * 8);
}

static int patches_uses(const struct nn_conv_shape *shape)
{
    return shape->out.h * shape->out.w;
}

/* x (n,I8,H,W,8) -> y (n,O8,HO,WO,8), or half of HO and WO */
static base_status patches_answer(const struct nn_conv_work *work, struct base_team *team, int n,
                                  const float *x, const float *prepared, const float *b,
                                  const struct nn_conv_tail *tail, float *y, void *scratch)
{
    const struct layout l = layout_of(&work->shape, n);
    float *patches = scratch;
    struct pass p = {.l = &l,
                     .x = x,
                     .w = prepared,
                     .b = b,
                     .tail = tail,
                     .y = y,
                     .patches = patches,
                     .products = patches + l.patches};

    for (; p.first < n * l.bands; p.first += l.block) {
        p.count = nn_least(l.block, n * l.bands - p.first);
        base_team_run(team, p.count * l.i8, patches_task, &p);
        base_team_run(team, l.groups, group_task, &p);
    }
    return BASE_OK;
}

const struct nn_conv NN_LEVEL(conv_patches) = {
    .name = "patches",
    .help = "answers only: any kernel and stride, weights read once; for small batches",
    .share = 1,
    .serves = patches_serves,
    .scratch = patches_scratch,
    .prepared_floats = patches_prepared_floats,
    .prepare = patches_prepare,
    .uses = patches_uses,
    .answer = patches_answer,
};
