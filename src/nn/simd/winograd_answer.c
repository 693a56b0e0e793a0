/* SPDX-License-Identifier: MIT
 *
 * Winograd convolutions that only answer, with weights transformed once (winograd.c makes them anew
 * in every call). Three stages a block of images: all threads transform x into V; then they divide
 * the matrix products among them, position by position, so that the transformed weights pass once
 * in the order they lie; then they transform the products M back and store them through the tail.
 * An element's sum has one order for any batch and number of threads.
 *
 * Prepared weights: [positions][O / GROUP][I][GROUP], zeros behind O.
 */
#include "nn/simd/gemm.h"
#include "nn/simd/winograd.h"

enum {
    GROUP = NN_PANELS * 8, /* outputs that are computed together */
    NEAR_FLOATS = 1 << 18, /* of V and M of a block: they stay in L2, */
    FAR_FLOATS = 1 << 23,  /* or, where the weights do not, up to this many */
    CHANNELS = 4,          /* channel blocks that a thread transforms in one go */
    SKEW = 48,             /* floats between positions, against 4 KB aliasing */
};

struct layout {
    const struct nn_winograd_form *form;
    struct nn_tiling tiling;
    int i8, o8, groups;
    int tiles;  /* of an image */
    int images; /* of a block */
    struct nn_products v, m;
    size_t v_floats, m_floats;
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int divide_up(int a, int b)
{
    return (a + b - 1) / b;
}

/* Row length of c8 channel blocks: no long power of two, whose rows would fall into one set. */
static size_t row_of(int c8)
{
    const size_t row = (size_t)c8 * 8;

    return row % 128 == 0 ? row + 16 : row;
}

/* Images of a block. Either V and M stay in L2 and the weights come anew for every block, or as few
 * blocks as possible and V and M go through farther memory: whichever moves less. */
static int block_images(const struct layout *l, int n)
{
    const size_t image =
        (size_t)l->form->positions * (size_t)l->tiles * (row_of(l->i8) + row_of(l->o8));
    const size_t weights = (size_t)l->form->positions * (size_t)l->i8 * (size_t)l->o8 * 64;
    const int near = least(n, (int)(NEAR_FLOATS / image)), far = (int)(FAR_FLOATS / image);
    const int blocks = divide_up(n, far > 1 ? far : 1);

    if (near > 0 &&
        (size_t)divide_up(n, near) * weights <= (size_t)blocks * weights + 2 * (size_t)n * image)
        return divide_up(n, divide_up(n, near));
    return divide_up(n, blocks);
}

static struct layout layout_of(const struct nn_winograd_form *form, const struct nn_conv_shape *s,
                               int n)
{
    const size_t positions = (size_t)form->positions;
    struct layout l = {.form = form,
                       .tiling = {s->in.h, s->in.w, s->out.h, s->out.w,
                                  divide_up(s->out.h, form->m), divide_up(s->out.w, form->m),
                                  s->pad[0] * form->halo, s->pad[1] * form->halo},
                       .i8 = nn_pad8(s->in.c) / 8,
                       .o8 = nn_pad8(s->out.c) / 8};

    l.groups = divide_up(l.o8, NN_PANELS);
    l.tiles = l.tiling.rows * l.tiling.columns;
    l.images = block_images(&l, n);
    l.v.tile = row_of(l.i8);
    l.m.tile = row_of(l.o8);
    l.v.position = (size_t)(l.images * l.tiles) * l.v.tile + SKEW;
    l.m.position = (size_t)(l.images * l.tiles) * l.m.tile + SKEW;
    l.v_floats = positions * l.v.position;
    l.m_floats = positions * l.m.position;
    return l;
}

size_t NN_LEVEL(winograd_answer_scratch)(const struct nn_winograd_form *form,
                                         const struct nn_conv_shape *shape)
{
    size_t floats = 0;

    /* Not n_max alone: a smaller batch may divide into larger blocks. */
    for (int n = 1; n <= shape->n_max; n++) {
        const struct layout l = layout_of(form, shape, n);

        if (l.v_floats + l.m_floats > floats)
            floats = l.v_floats + l.m_floats;
    }
    return floats * sizeof(float);
}

size_t NN_LEVEL(winograd_prepared_floats)(const struct nn_winograd_form *form,
                                          const struct nn_conv_shape *shape)
{
    const struct layout l = layout_of(form, shape, 1);

    return (size_t)form->positions * (size_t)l.groups * GROUP * (size_t)l.i8 * 8;
}

/* w OIhw8i8o -> [positions][O/GROUP][I][GROUP] */
void NN_LEVEL(winograd_prepare)(const struct nn_winograd_form *form,
                                const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    const struct layout l = layout_of(form, shape, 1);
    const size_t group = (size_t)l.i8 * 8 * GROUP, position = (size_t)l.groups * group;

    memset(prepared, 0, (size_t)form->positions * position * sizeof *prepared);
#pragma omp parallel for collapse(2)
    for (int o = 0; o < l.o8; o++)
        for (int i = 0; i < l.i8; i++) {
            _Alignas(64) float u[81 * 64]; /* positions of any form */
            float *to = prepared + (size_t)(o / NN_PANELS) * group + (size_t)i * 8 * GROUP +
                        (size_t)(o % NN_PANELS) * 8;

            form->weights(w + (size_t)(o * l.i8 + i) * 9 * 64, 64, u);
            for (int p = 0; p < form->positions; p++)
                for (int k = 0; k < 8; k++)
                    nn_store(to + (size_t)p * position + (size_t)k * GROUP,
                             nn_load(u + p * 64 + k * 8));
        }
}

/* A block of images as its tasks see it. */
struct pass {
    const struct layout *l;
    int first, images;
    const float *x, *u, *b; /* x: of the whole batch */
    const struct nn_conv_tail *tail;
    float *y;
};

static size_t image_floats(int c8, int h, int w)
{
    return (size_t)c8 * (size_t)h * (size_t)w * 8;
}

/* From channel block c of an image on. */
static struct nn_products part(const struct layout *l, struct nn_products p, int image, int c)
{
    p.at += (size_t)(image * l->tiles) * p.tile + (size_t)c * 8;
    return p;
}

static void input_task(const struct pass *p, int image, int c)
{
    const struct layout *l = p->l;

    l->form->input(&l->tiling, least(CHANNELS, l->i8 - c),
                   p->x + image_floats((p->first + image) * l->i8 + c, l->tiling.h, l->tiling.w),
                   part(l, l->v, image, c));
}

/* M (T,GROUP) = V (T,I) * U [I][GROUP] at one position */
static void product_task(const struct pass *p, int position, int group)
{
    const struct layout *l = p->l;
    const int panels = least(NN_PANELS, l->o8 - group * NN_PANELS);
    const int depth = l->i8 * 8;
    struct nn_tile t = {.a = l->v.at + (size_t)position * l->v.position,
                        .b = p->u + (size_t)(position * l->groups + group) * (size_t)depth * GROUP,
                        .c = l->m.at + (size_t)position * l->m.position + (size_t)group * GROUP,
                        .a_row = l->v.tile,
                        .a_step = 1,
                        .b_step = GROUP,
                        .b_panel = 8,
                        .c_row = l->m.tile,
                        .c_panel = 8};

    for (int at = 0; at < depth; at += NN_DEPTH) {
        t.depth = least(NN_DEPTH, depth - at);
        t.add = at > 0;
        nn_gemm_packed(t, p->images * l->tiles, panels);
        t.a += NN_DEPTH;
        t.b += (size_t)NN_DEPTH * GROUP;
    }
}

static void output_task(const struct pass *p, int image, int c)
{
    const struct layout *l = p->l;
    const struct nn_tiling *t = &l->tiling;
    const size_t at = image_floats((p->first + image) * l->o8 + c, t->ho, t->wo);
    struct nn_conv_tail tail = *p->tail;

    if (tail.add)
        tail.add += at;
    l->form->answer(t, least(CHANNELS, l->o8 - c), part(l, l->m, image, c),
                    p->b ? p->b + (size_t)c * 8 : NULL, &tail, p->y + (tail.pool ? at / 4 : at));
}

/* x (n,I8,H,W,8), b (O) -> y (n,O8,HO,WO,8), or half of HO and WO */
void NN_LEVEL(winograd_answer)(const struct nn_winograd_form *form,
                               const struct nn_conv_shape *shape, int threads, int n,
                               const float *x, const float *prepared, const float *b,
                               const struct nn_conv_tail *tail, float *y, float *scratch)
{
    struct layout l = layout_of(form, shape, n);

    l.v.at = scratch;
    l.m.at = scratch + l.v_floats;
#pragma omp parallel num_threads(threads)
    for (int first = 0; first < n; first += l.images) {
        const struct pass p = {&l, first, least(l.images, n - first), x, prepared, b, tail, y};

#pragma omp for collapse(2) schedule(static)
        for (int i = 0; i < p.images; i++)
            for (int c = 0; c < l.i8; c += CHANNELS)
                input_task(&p, i, c);
#pragma omp for collapse(2) schedule(static)
        for (int position = 0; position < form->positions; position++)
            for (int group = 0; group < l.groups; group++)
                product_task(&p, position, group);
#pragma omp for collapse(2) schedule(static)
        for (int i = 0; i < p.images; i++)
            for (int c = 0; c < l.o8; c += CHANNELS)
                output_task(&p, i, c);
    }
}
