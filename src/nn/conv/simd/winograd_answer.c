/* SPDX-License-Identifier: MIT
 *
 * Winograd convolutions that only answer, with weights transformed once (winograd.c makes them anew
 * in every call). Tiles go in blocks whose transformed inputs V stay in L2. The weights of a group
 * of output channels pass by in the order they lie, all positions of it; then its products M, which
 * are few, are transformed back and stored through the tail. With many blocks each thread takes
 * blocks of its own; with few, all threads make V and then take groups. An element's sum has one
 * order for any batch and number of threads.
 *
 * Prepared weights: [O / GROUP][positions][I][GROUP], zeros after O.
 */
#include "base/team.h"
#include "nn/conv/simd/winograd.h"
#include "nn/simd/gemm.h"

enum {
    GROUP = NN_PANELS * 8,  /* outputs that are computed together */
    BLOCK_FLOATS = 3 << 16, /* of V of a block: it stays in L2, */
    BLOCK_TILES = 64,       /* but so many tiles pay for fetching weights that do not */
    CHANNELS = 4,           /* channel blocks that a thread transforms in one go */
    SKEW = 48,              /* floats between positions, against 4 KB aliasing */
    POSITIONS = 81,         /* of any form, at most */
};

/* Tiles go in bands: whole images, or some rows of tiles of a large one. */
struct layout {
    const struct nn_winograd_form *form;
    struct nn_tiling tiling; /* of an image */
    int i8, o8, groups, step;
    int rows, bands;  /* rows of tiles of a band, bands of an image */
    int tiles, block; /* tiles of a band, bands of a block */
    int all;          /* bands of the batch */
    bool shared;      /* all threads work on one block */
    struct nn_products v, m;
    size_t v_floats, m_floats;
};

static void cut_blocks(struct layout *l, int n, int threads)
{
    const size_t tile = (size_t)l->form->positions * l->v.tile;
    const size_t weights = (size_t)l->form->positions * (size_t)(l->i8 * l->o8) * 64;
    int room = nn_most((int)(BLOCK_FLOATS / tile), 1), blocks; /* room: tiles */

    if (weights > BLOCK_FLOATS)
        room = nn_most(room, BLOCK_TILES);
    l->rows = nn_least(l->tiling.rows, nn_most(room / l->tiling.columns, 1));
    l->bands = nn_divide_up(l->tiling.rows, l->rows);
    l->tiles = l->rows * l->tiling.columns;
    l->all = n * l->bands;
    blocks = nn_divide_up(l->all, nn_most(room / l->tiles, 1));
    l->shared = blocks < 2 * threads;
    l->block = nn_divide_up(l->all, blocks);
}

static struct layout layout_of(const struct nn_winograd_form *form, const struct nn_conv_shape *s,
                               int n, int threads)
{
    const size_t positions = (size_t)form->positions;
    struct layout l = {.form = form,
                       .tiling = {s->in.h, s->in.w, s->out.h, s->out.w,
                                  nn_divide_up(s->out.h, form->m), nn_divide_up(s->out.w, form->m),
                                  s->pad[0] * form->halo, s->pad[1] * form->halo},
                       .i8 = nn_pad8(s->in.c) / 8,
                       .o8 = nn_pad8(s->out.c) / 8,
                       .step = form->m * s->stride[0]};
    size_t tiles;

    l.groups = nn_divide_up(l.o8, NN_PANELS);
    l.v.tile = nn_winograd_row(l.i8);
    l.m.tile = GROUP;
    cut_blocks(&l, n, threads);
    tiles = (size_t)l.block * (size_t)l.tiles;
    l.v.position = tiles * l.v.tile + SKEW;
    l.m.position = tiles * l.m.tile + SKEW;
    l.v_floats = nn_whole_lines(positions * l.v.position);
    l.m_floats = nn_whole_lines(positions * l.m.position);
    return l;
}

size_t NN_LEVEL(winograd_answer_scratch)(const struct nn_winograd_form *form,
                                         const struct nn_conv_shape *shape, int threads)
{
    size_t floats = 0;

    /* Not n_max alone: a smaller batch may divide into larger blocks. */
    for (int n = 1; n <= shape->n_max; n++) {
        const struct layout l = layout_of(form, shape, n, threads);
        const size_t now =
            (l.shared ? 1 : (size_t)threads) * l.v_floats + (size_t)threads * l.m_floats;

        floats = now > floats ? now : floats;
    }
    return floats * sizeof(float);
}

size_t NN_LEVEL(winograd_prepared_floats)(const struct nn_winograd_form *form,
                                          const struct nn_conv_shape *shape)
{
    const struct layout l = layout_of(form, shape, 1, 1);

    return (size_t)form->positions * (size_t)l.groups * GROUP * (size_t)l.i8 * 8;
}

/* w OIhw8i8o -> [O/GROUP][positions][I][GROUP] */
void NN_LEVEL(winograd_prepare)(const struct nn_winograd_form *form,
                                const struct nn_conv_shape *shape, const float *w, float *prepared)
{
    const struct layout l = layout_of(form, shape, 1, 1);
    const size_t position = (size_t)l.i8 * 8 * GROUP, group = (size_t)form->positions * position;

#pragma omp parallel for
    for (int o = 0; o < l.groups * NN_PANELS; o++)
        for (int i = 0; i < l.i8; i++) {
            _Alignas(64) float u[POSITIONS * 64] = {0};
            float *to = prepared + (size_t)(o / NN_PANELS) * group + (size_t)i * 8 * GROUP +
                        (size_t)(o % NN_PANELS) * 8;

            if (o < l.o8)
                form->weights(w + (size_t)(o * l.i8 + i) * 9 * 64, 64, u);
            for (int p = 0; p < form->positions; p++)
                for (int k = 0; k < 8; k++)
                    nn_store(to + (size_t)p * position + (size_t)k * GROUP,
                             nn_load(u + p * 64 + k * 8));
        }
}

/* A block of bands as its tasks see it. */
struct pass {
    const struct layout *l;
    int first, count; /* bands of the batch */
    const float *x, *u, *b;
    const struct nn_conv_tail *tail;
    float *y;
    int threads;
    float *scratch;
    float *v, *m; /* of the block; of the thread */
};

static size_t plane(int h, int w)
{
    return (size_t)h * (size_t)w * 8;
}

/* The tiling of a band: that of an image which begins there. */
static struct nn_tiling tiling_of(const struct layout *l, int band, int *row_p)
{
    const int row = band % l->bands * l->rows;
    struct nn_tiling t = l->tiling;

    t.rows = nn_least(l->rows, t.rows - row);
    *row_p = row;
    return t;
}

/* The block that begins with band `first`, and the thread's memory. */
static struct pass pass_at(const struct pass *whole, int first, int thread)
{
    const struct layout *l = whole->l;
    const size_t blocks = l->shared ? 1 : (size_t)whole->threads;
    struct pass p = *whole;

    p.first = first;
    p.count = nn_least(l->block, l->all - first);
    p.v = p.scratch + (l->shared ? 0 : (size_t)thread) * l->v_floats;
    p.m = p.scratch + blocks * l->v_floats + (size_t)thread * l->m_floats;
    return p;
}

/* x -> V of some channel blocks of the block's i-th band */
static void transform(const struct pass *p, int i, int c)
{
    const struct layout *l = p->l;
    const int band = p->first + i;
    int row;
    struct nn_tiling t = tiling_of(l, band, &row);
    struct nn_products v = l->v;

    t.top -= row * l->step;
    v.at = p->v + (size_t)(i * l->tiles) * v.tile + (size_t)c * 8;
    l->form->input(&t, nn_least(CHANNELS, l->i8 - c),
                   p->x + (size_t)(band / l->bands * l->i8 + c) * plane(t.h, t.w), v);
}

/* M (T,GROUP) = V (T,I) * U [I][GROUP] at every position */
static void multiply(const struct pass *p, int group)
{
    const struct layout *l = p->l;
    const int depth = l->i8 * 8, positions = l->form->positions;
    const int panels = nn_least(NN_PANELS, l->o8 - group * NN_PANELS);
    const float *u = p->u + (size_t)(group * positions) * (size_t)depth * GROUP;

    for (int position = 0; position < positions; position++)
        for (int at = 0; at < depth; at += NN_DEPTH) {
            const int slice = nn_least(NN_DEPTH, depth - at);

            nn_gemm_packed((struct nn_tile){.a = p->v + (size_t)position * l->v.position + at,
                                            .b = u,
                                            .c = p->m + (size_t)position * l->m.position,
                                            .a_row = l->v.tile,
                                            .a_step = 1,
                                            .b_step = GROUP,
                                            .b_panel = 8,
                                            .c_row = GROUP,
                                            .c_panel = 8,
                                            .depth = slice,
                                            .add = at > 0},
                           p->count * l->tiles, panels);
            u += (size_t)slice * GROUP;
        }
}

/* M -> y of the block's i-th band */
static void output(const struct pass *p, int group, int i)
{
    const struct layout *l = p->l;
    const int band = p->first + i, c = group * NN_PANELS;
    int row;
    struct nn_tiling t = tiling_of(l, band, &row);
    const size_t image = (size_t)(band / l->bands * l->o8 + c) * plane(t.ho, t.wo);
    const size_t above = plane(row * l->form->m, t.wo);
    struct nn_conv_tail tail = *p->tail;
    struct nn_products m = l->m;

    m.at = p->m + (size_t)(i * l->tiles) * m.tile;
    if (tail.add)
        tail.add += image + above;
    l->form->answer(&t, row, nn_least(NN_PANELS, l->o8 - c), m, p->b ? p->b + (size_t)c * 8 : NULL,
                    &tail, p->y + (tail.pool ? image / 4 + above / 4 : image + above));
}

static void compute_group(const struct pass *p, int group)
{
    multiply(p, group);
    for (int i = 0; i < p->count; i++)
        output(p, group, i);
}

/* ---- tasks of a team ---- */

/* One thread and its own block. */
static void block_task(const void *context, int block, int thread)
{
    const struct pass *whole = context;
    const struct layout *l = whole->l;
    const struct pass p = pass_at(whole, block * l->block, thread);

    for (int i = 0; i < p.count; i++)
        for (int c = 0; c < l->i8; c += CHANNELS)
            transform(&p, i, c);
    for (int group = 0; group < l->groups; group++)
        compute_group(&p, group);
}

/* All threads and one block: CHANNELS channel blocks of a band, */
static void input_task(const void *context, int unit, int thread)
{
    const struct pass *p = context;
    const int parts = nn_divide_up(p->l->i8, CHANNELS);

    (void)thread;
    transform(p, unit / parts, unit % parts * CHANNELS);
}

/* and then GROUP output channels. */
static void group_task(const void *context, int group, int thread)
{
    const struct pass *block = context;
    const struct pass p = pass_at(block, block->first, thread);

    compute_group(&p, group);
}

/* x (n,I8,H,W,8), b (O) -> y (n,O8,HO,WO,8), or half of HO and WO */
base_status NN_LEVEL(winograd_answer)(const struct nn_winograd_form *form,
                                      const struct nn_conv_work *work, struct base_team *team,
                                      int n, const float *x, const float *prepared, const float *b,
                                      const struct nn_conv_tail *tail, float *y, float *scratch)
{
    const struct layout l = layout_of(form, &work->shape, n, work->threads);
    const struct pass whole = {.l = &l,
                               .x = x,
                               .u = prepared,
                               .b = b,
                               .tail = tail,
                               .y = y,
                               .threads = work->threads,
                               .scratch = scratch};

    if (!l.shared) {
        base_team_run(team, nn_divide_up(l.all, l.block), block_task, &whole);
        return BASE_OK;
    }
    for (int first = 0; first < l.all; first += l.block) {
        const struct pass p = pass_at(&whole, first, 0);

        base_team_run(team, p.count * nn_divide_up(l.i8, CHANNELS), input_task, &p);
        base_team_run(team, l.groups, group_task, &p);
    }
    return BASE_OK;
}
