/* SPDX-License-Identifier: MIT
 *
 * Winograd convolutions: who does what, and where it lies. Images go in blocks small enough for
 * the caches. All threads transform a block (V from x, dM from dy); then each takes tasks, a
 * range of output channels: it transforms the weights of that range, multiplies at every position
 * and transforms the products back, all in memory of its own. Backward has tasks of two kinds:
 *     dU = Vᵀ·dM, dW = Gᵀ dU G   and   dV = dM·Uᵀ, dX = B dV Bᵀ
 * So the transformed weights, four times the weights, never exist as a whole (making them anew for
 * each block of images costs less than fetching them), and a result does not depend on the number
 * of threads: each element is one task's sum, blocks in order.
 */
#include "nn/conv/simd/winograd.h"
#include "nn/simd/gemm.h"

enum {
    TASK_FLOATS = 1 << 18, /* of weights and products of a task: they stay in L2 */
    GROUP = 8,             /* channel blocks that a thread transforms in one go */
    SKEW = 48,             /* floats between positions, against 4 KB aliasing */
};

/* How a matrix product over `from` channel blocks into `to` is cut into tasks. */
struct cut {
    int from, to;    /* blocks of eight channels */
    int wide, count; /* blocks of a task, tasks */
    size_t position; /* floats of a task's weights at one position */
    size_t weights;  /* floats of a task's weights */
    size_t products; /* floats of a task's products */
    size_t row;      /* of the products */
    size_t product;  /* floats of a task's products at one position */
};

struct layout {
    const struct nn_winograd_form *form;
    struct nn_tiling tiling;
    int i8, o8;
    int tiles;          /* of an image */
    int images, blocks; /* images of a block, blocks of the batch */
    struct cut out, in; /* i8 -> o8, o8 -> i8 */
    size_t v, dm;       /* floats of V and dM of a block */
    struct nn_products v_at, dm_at;
    size_t mine; /* floats that belong to a thread */
    size_t floats;
};

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static struct cut cut_of(const struct layout *l, int from, int to, int threads)
{
    const size_t positions = (size_t)l->form->positions,
                 tiles = (size_t)l->images * (size_t)l->tiles;
    struct cut c = {.from = from, .to = to, .wide = nn_least(8, to)};

    for (;;) {
        c.row = nn_winograd_row(c.wide);
        c.position = (size_t)from * (size_t)c.wide * 64 + SKEW;
        c.product = tiles * c.row + SKEW;
        c.weights = positions * c.position;
        c.products = positions * c.product;
        c.count = nn_divide_up(to, c.wide);
        if (c.wide <= 2 || (c.weights + c.products <= TASK_FLOATS && c.count >= 2 * threads))
            return c;
        c.wide = (c.wide + 1) / 2;
    }
}

/* For a batch of n: blocks of equal size, as large as there is room for. */
static struct layout layout_of(const struct nn_winograd_form *form, const struct nn_conv_shape *s,
                               int threads, int n)
{
    struct layout l = {.form = form,
                       .tiling = {s->in.h, s->in.w, s->out.h, s->out.w,
                                  nn_divide_up(s->out.h, form->m), nn_divide_up(s->out.w, form->m),
                                  s->pad[0] * form->halo, s->pad[1] * form->halo},
                       .i8 = nn_pad8(s->in.c) / 8,
                       .o8 = nn_pad8(s->out.c) / 8};
    const size_t positions = (size_t)form->positions;

    l.tiles = l.tiling.rows * l.tiling.columns;
    l.blocks = nn_winograd_blocks(form->positions, l.tiles, l.i8, l.o8, n);
    l.images = nn_divide_up(n, l.blocks);
    l.v_at = (struct nn_products){.tile = nn_winograd_row(l.i8)};
    l.v_at.position = (size_t)(l.images * l.tiles) * l.v_at.tile + SKEW;
    l.dm_at = (struct nn_products){.tile = nn_winograd_row(l.o8)};
    l.dm_at.position = (size_t)(l.images * l.tiles) * l.dm_at.tile + SKEW;
    l.v = positions * l.v_at.position;
    l.dm = s->training ? positions * l.dm_at.position : 0;
    l.out = cut_of(&l, l.i8, l.o8, threads);
    l.in = cut_of(&l, l.o8, l.i8, threads);
    l.mine = most(l.out.weights + l.out.products, l.in.weights + l.in.products);
    l.floats = l.v + l.dm + (size_t)threads * l.mine;
    return l;
}

size_t NN_LEVEL(winograd_scratch)(const struct nn_winograd_form *form,
                                  const struct nn_conv_shape *shape, int threads)
{
    size_t floats = 0;

    /* Not n_max alone: a smaller batch may divide into larger blocks. */
    for (int n = 1; n <= shape->n_max; n++)
        floats = most(floats, layout_of(form, shape, threads, n).floats);
    return floats * sizeof(float);
}

/* A pass over one block of images, as its tasks see it. */
struct pass {
    const struct layout *l;
    int images, block;
    const float *x, *dy, *w, *b; /* of the block's first image */
    float *y, *dw, *db, *dx;
    float *threads; /* what belongs to each */
};

static float *mine(const struct pass *p)
{
    return p->threads + (size_t)nn_thread() * p->l->mine;
}

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

/* GROUP channel blocks of an image, from c on: x -> V */
static void transform_x(const struct pass *p, int image, int c)
{
    const struct layout *l = p->l;

    l->form->input(&l->tiling, nn_least(GROUP, l->i8 - c),
                   p->x + image_floats(image * l->i8 + c, l->tiling.h, l->tiling.w),
                   part(l, l->v_at, image, c));
}

/* The same: dy -> dM */
static void transform_dy(const struct pass *p, int image, int c)
{
    const struct layout *l = p->l;

    l->form->output_back(&l->tiling, nn_least(GROUP, l->o8 - c),
                         p->dy + image_floats(image * l->o8 + c, l->tiling.ho, l->tiling.wo),
                         part(l, l->dm_at, image, c));
}

/* products (T, range) at every position = of (T, from) * u [range][from][8] */
static void multiply(const struct layout *l, const struct cut *c, int tiles, int wide,
                     struct nn_products of, const float *u, struct nn_products to)
{
    for (int p = 0; p < l->form->positions; p++)
        nn_gemm((struct nn_tile){.a = of.at + (size_t)p * of.position,
                                 .b = u + (size_t)p * c->position,
                                 .c = to.at + (size_t)p * to.position,
                                 .a_row = of.tile,
                                 .a_step = 1,
                                 .b_step = 8,
                                 .b_panel = (size_t)c->from * 64,
                                 .c_row = to.tile,
                                 .c_panel = 8,
                                 .depth = c->from * 8},
                tiles, wide);
}

/* Asks for the weights of a block of 8x8 channels, which come from far. */
static void fetch_weights(const float *w)
{
    for (int line = 0; line < 9 * 64; line += 16)
        __builtin_prefetch(w + line);
}

/* y of a range of output channels */
static void output_task(const struct pass *p, int task)
{
    const struct layout *l = p->l;
    const struct cut *c = &l->out;
    const int first = task * c->wide, wide = nn_least(c->wide, l->o8 - first);
    const struct nn_products m = {mine(p), c->product, c->row};
    float *u = m.at + c->products;

    for (int block = 0; block < wide * l->i8; block++) {
        const float *w = p->w + (size_t)(first * l->i8 + block) * 9 * 64;

        fetch_weights(w + 9 * 64);
        l->form->weights(w, c->position, u + (size_t)block * 64);
    }
    multiply(l, c, p->images * l->tiles, wide, l->v_at, u, m);
    for (int i = 0; i < p->images; i++)
        l->form->output(&l->tiling, wide, part(l, m, i, 0), p->b ? p->b + first * 8 : NULL,
                        p->y + image_floats(i * l->o8 + first, l->tiling.ho, l->tiling.wo));
}

/* Σ of a block's dy: the sums of its tiles are one position of dM. */
static void bias_back(const struct pass *p, int channel)
{
    const struct layout *l = p->l;
    const float *from = l->dm_at.at + (size_t)l->form->sum * l->dm_at.position + channel;
    const int tiles = p->images * l->tiles;
    nn_v8 sum[4] = {0};
    int t = 0;

    for (; t + 4 <= tiles; t += 4)
#pragma GCC unroll 4
        for (int a = 0; a < 4; a++)
            sum[a] += nn_load(from + (size_t)(t + a) * l->dm_at.tile);
    for (; t < tiles; t++)
        sum[0] += nn_load(from + (size_t)t * l->dm_at.tile);
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    nn_store(p->db + channel, p->block > 0 ? nn_load(p->db + channel) + sum[0] : sum[0]);
}

/* dw and db of a range of output channels */
static void weights_task(const struct pass *p, int task)
{
    const struct layout *l = p->l;
    const struct cut *c = &l->out;
    const int first = task * c->wide, wide = nn_least(c->wide, l->o8 - first);
    float *du = mine(p);

    for (int at = 0; at < l->form->positions; at++)
        nn_gemm((struct nn_tile){.a = l->v_at.at + (size_t)at * l->v_at.position,
                                 .b = l->dm_at.at + (size_t)at * l->dm_at.position + first * 8,
                                 .c = du + (size_t)at * c->position,
                                 .a_row = 1,
                                 .a_step = l->v_at.tile,
                                 .b_step = l->dm_at.tile,
                                 .b_panel = 8,
                                 .c_row = 8,
                                 .c_panel = (size_t)l->i8 * 64,
                                 .depth = p->images * l->tiles},
                l->i8 * 8, wide);
    for (int o = first; o < first + wide && p->db; o++)
        bias_back(p, o * 8);
    for (int block = 0; block < wide * l->i8; block++)
        l->form->weights_back(du + (size_t)block * 64, c->position, p->block > 0,
                              p->dw + (size_t)(first * l->i8 + block) * 9 * 64);
}

/* Weights of one input block, transposed before they are transformed: nine small blocks. */
static void turned_weights(const struct pass *p, int i, float *u)
{
    const struct layout *l = p->l;
    _Alignas(64) float turned[9 * 64];

    for (int o = 0; o < l->o8; o++) {
        const float *w = p->w + (size_t)(o * l->i8 + i) * 9 * 64;

        fetch_weights(w + (size_t)l->i8 * 9 * 64);
        for (int tap = 0; tap < 9; tap++)
            nn_transpose(w + tap * 64, turned + tap * 64);
        l->form->weights(turned, l->in.position, u + (size_t)o * 64);
    }
}

/* dx of a range of input channels */
static void data_task(const struct pass *p, int task)
{
    const struct layout *l = p->l;
    const struct cut *c = &l->in;
    const int first = task * c->wide, wide = nn_least(c->wide, l->i8 - first);
    const struct nn_products dv = {mine(p), c->product, c->row};
    float *u = dv.at + c->products;

    for (int i = 0; i < wide; i++)
        turned_weights(p, first + i, u + (size_t)(i * l->o8) * 64);
    multiply(l, c, p->images * l->tiles, wide, l->dm_at, u, dv);
    for (int i = 0; i < p->images; i++)
        l->form->input_back(&l->tiling, wide, part(l, dv, i, 0),
                            p->dx + image_floats(i * l->i8 + first, l->tiling.h, l->tiling.w));
}

/* The pass over the block that begins with image `at`. */
static struct pass pass_at(const struct pass *whole, int n, int at)
{
    const struct layout *l = whole->l;
    const size_t x = (size_t)at * image_floats(l->i8, l->tiling.h, l->tiling.w);
    const size_t y = (size_t)at * image_floats(l->o8, l->tiling.ho, l->tiling.wo);
    struct pass p = *whole;

    p.images = nn_least(l->images, n - at);
    p.block = at / l->images;
    p.x += x;
    p.y += p.y ? y : 0;
    p.dy += p.dy ? y : 0;
    p.dx += p.dx ? x : 0;
    return p;
}

static void place(struct layout *l, float *scratch, struct pass *whole)
{
    l->v_at.at = scratch;
    l->dm_at.at = l->v_at.at + l->v;
    whole->threads = l->dm_at.at + l->dm;
    whole->l = l;
}

/* x (n,I8,H,W,8), w OIhw8i8o, b (O) -> y (n,O8,HO,WO,8) */
base_status NN_LEVEL(winograd_forward)(const struct nn_winograd_form *form,
                                       const struct nn_conv_work *work, int n, const float *x,
                                       const float *w, const float *b, float *y, float *scratch)
{
    struct layout l = layout_of(form, &work->shape, work->threads, n);
    struct pass whole = {.x = x, .w = w, .b = b, .y = y};

    place(&l, scratch, &whole);
#pragma omp parallel num_threads(work->threads)
    for (int at = 0; at < n; at += l.images) {
        const struct pass p = pass_at(&whole, n, at);

#pragma omp for collapse(2) schedule(static)
        for (int i = 0; i < p.images; i++)
            for (int c = 0; c < l.i8; c += GROUP)
                transform_x(&p, i, c);
#pragma omp for schedule(dynamic, 1)
        for (int task = 0; task < l.out.count; task++)
            output_task(&p, task);
    }
    return BASE_OK;
}

/* x (n,I8,H,W,8), dy (n,O8,HO,WO,8), w -> dw, db (O), dx (n,I8,H,W,8) */
base_status NN_LEVEL(winograd_backward)(const struct nn_winograd_form *form,
                                        const struct nn_conv_work *work, int n, const float *x,
                                        const float *dy, const float *w, float *dw, float *db,
                                        float *dx, float *scratch)
{
    struct layout l = layout_of(form, &work->shape, work->threads, n);
    struct pass whole = {.x = x, .dy = dy, .w = w, .dw = dw, .db = db, .dx = dx};
    const int weights = dw ? l.out.count : 0, tasks = weights + (dx ? l.in.count : 0);

    place(&l, scratch, &whole);
#pragma omp parallel num_threads(work->threads)
    for (int at = 0; at < n; at += l.images) {
        const struct pass p = pass_at(&whole, n, at);

#pragma omp for collapse(2) schedule(static) nowait
        for (int i = 0; i < (dw ? p.images : 0); i++)
            for (int c = 0; c < l.i8; c += GROUP)
                transform_x(&p, i, c);
#pragma omp for collapse(2) schedule(static)
        for (int i = 0; i < p.images; i++)
            for (int c = 0; c < l.o8; c += GROUP)
                transform_dy(&p, i, c);
#pragma omp for schedule(dynamic, 1)
        for (int task = 0; task < tasks; task++)
            if (task < weights)
                weights_task(&p, task);
            else
                data_task(&p, task - weights);
    }
    return BASE_OK;
}
