/* SPDX-License-Identifier: MIT */
#include "support/convs.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

const struct convs_case convs_grid[] = {
    /* i  h   w   o   kernel  stride  pad   g  n  planar bias */
    {16, 8, 8, 24, {3, 3}, {1, 1}, {1, 1}, 1, 4, false, true},
    {16, 8, 8, 24, {3, 3}, {1, 1}, {1, 1}, 1, 4, false, false},
    {64, 2, 2, 64, {3, 3}, {1, 1}, {1, 1}, 1, 5, false, true},
    {16, 9, 7, 8, {3, 3}, {2, 2}, {1, 1}, 1, 3, false, true},
    {16, 8, 8, 32, {1, 1}, {1, 1}, {0, 0}, 1, 3, false, false},
    {16, 8, 8, 32, {1, 1}, {2, 2}, {0, 0}, 1, 3, false, true},
    {32, 12, 12, 16, {5, 5}, {1, 1}, {2, 2}, 1, 2, false, true},
    {10, 11, 13, 12, {3, 3}, {1, 1}, {1, 1}, 1, 3, false, true},
    {12, 6, 6, 10, {5, 3}, {2, 1}, {2, 0}, 1, 3, false, true},
    {8, 5, 5, 8, {2, 2}, {2, 2}, {0, 0}, 1, 2, false, true},
    {1, 28, 28, 32, {3, 3}, {1, 1}, {0, 0}, 1, 4, true, true},
    {3, 32, 32, 16, {3, 3}, {1, 1}, {1, 1}, 1, 4, true, true},
    {3, 17, 15, 10, {5, 5}, {2, 2}, {2, 2}, 1, 3, true, false},
    {10, 7, 9, 12, {3, 3}, {1, 1}, {1, 1}, 1, 2, true, true},
    {1, 1, 1, 3, {1, 1}, {1, 1}, {0, 0}, 1, 1, true, true},
    {16, 8, 8, 16, {3, 3}, {1, 1}, {1, 1}, 2, 3, false, true},
    {12, 7, 7, 18, {3, 3}, {1, 1}, {1, 1}, 3, 3, false, true},
    {12, 8, 8, 6, {1, 1}, {1, 1}, {0, 0}, 2, 3, false, false},
    {16, 9, 9, 16, {3, 3}, {2, 2}, {1, 1}, 16, 3, false, true},
    {10, 6, 6, 10, {3, 3}, {1, 1}, {1, 1}, 10, 3, false, true},
    {10, 6, 6, 20, {3, 3}, {1, 1}, {1, 1}, 10, 3, false, true},
    {4, 6, 6, 8, {3, 3}, {1, 1}, {1, 1}, 2, 3, true, true},
    /* partial tiles, remainders of channels, several blocks of images (the last) */
    {1, 5, 7, 8, {3, 3}, {1, 1}, {1, 1}, 1, 5, false, true},
    {3, 9, 9, 10, {3, 3}, {1, 1}, {1, 1}, 1, 5, false, true},
    {8, 26, 26, 12, {3, 3}, {1, 1}, {0, 0}, 1, 2, false, true},
    {24, 5, 7, 40, {3, 3}, {1, 1}, {0, 0}, 1, 5, false, false},
    {40, 9, 9, 64, {3, 3}, {1, 1}, {1, 1}, 1, 2, false, true},
    {264, 4, 4, 12, {3, 3}, {1, 1}, {1, 1}, 1, 2, false, true},
    {10, 6, 7, 12, {3, 3}, {1, 1}, {1, 0}, 1, 3, false, true},
    {8, 3, 3, 8, {3, 3}, {1, 1}, {0, 0}, 1, 3, false, true},
    {8, 1, 1, 24, {3, 3}, {1, 1}, {1, 1}, 1, 5, false, true},
    {12, 2, 2, 10, {3, 3}, {1, 1}, {1, 1}, 1, 5, false, true},
    {40, 2, 2, 24, {3, 3}, {1, 1}, {1, 1}, 1, 5, false, true},
    {1, 40, 40, 8, {3, 3}, {1, 1}, {1, 1}, 1, 20, false, true},
    {40, 9, 9, 24, {1, 1}, {1, 1}, {0, 0}, 1, 5, false, true},
    {10, 9, 7, 12, {1, 1}, {2, 2}, {0, 0}, 1, 5, false, true},
    {300, 3, 3, 8, {1, 1}, {1, 1}, {0, 0}, 1, 3, false, false},
    {4, 9, 9, 40, {5, 5}, {1, 1}, {2, 2}, 1, 5, true, true},
    {1, 3, 300, 8, {3, 3}, {1, 1}, {1, 1}, 1, 3, true, true},
    {3, 2, 1, 8, {3, 3}, {1, 1}, {2, 2}, 1, 18, true, true},
    {16, 8, 8, 24, {3, 3}, {2, 2}, {1, 1}, 1, 4, false, false},
    {10, 11, 13, 12, {3, 3}, {2, 2}, {1, 1}, 1, 3, false, true},
    {24, 6, 9, 40, {3, 3}, {2, 2}, {0, 0}, 1, 5, false, true},
    {40, 17, 18, 24, {3, 3}, {2, 2}, {0, 1}, 1, 2, false, true},
    {8, 1, 1, 24, {3, 3}, {2, 2}, {1, 1}, 1, 3, false, true},
    {1, 40, 40, 8, {3, 3}, {2, 2}, {1, 1}, 1, 20, false, true},
};

const size_t convs_grid_count = sizeof convs_grid / sizeof *convs_grid;

const struct convs_case convs_known[] = {
    {3, 32, 32, 64, {3, 3}, {1, 1}, {1, 1}, 1, 1, true, false},
    {64, 16, 16, 128, {3, 3}, {1, 1}, {1, 1}, 1, 1, false, true},
    {128, 8, 8, 256, {3, 3}, {1, 1}, {1, 1}, 1, 1, false, true},
    {256, 8, 8, 256, {3, 3}, {1, 1}, {1, 1}, 1, 1, false, true},
    {256, 4, 4, 512, {3, 3}, {1, 1}, {1, 1}, 1, 1, false, true},
    {512, 4, 4, 512, {3, 3}, {1, 1}, {1, 1}, 1, 1, false, true},
    {512, 2, 2, 512, {3, 3}, {1, 1}, {1, 1}, 1, 1, false, true},
    {64, 32, 32, 64, {3, 3}, {1, 1}, {1, 1}, 1, 1, false, false},
    {64, 32, 32, 128, {3, 3}, {2, 2}, {1, 1}, 1, 1, false, false},
    {64, 32, 32, 128, {1, 1}, {2, 2}, {0, 0}, 1, 1, false, false},
    {128, 16, 16, 256, {3, 3}, {2, 2}, {1, 1}, 1, 1, false, false},
    {256, 8, 8, 512, {3, 3}, {2, 2}, {1, 1}, 1, 1, false, false},
};

const size_t convs_known_count = sizeof convs_known / sizeof *convs_known;

static int out_size(int in, int kernel, int stride, int pad)
{
    return (in + 2 * pad - kernel) / stride + 1;
}

struct nn_conv_shape convs_shape(const struct convs_case *g)
{
    struct nn_conv_shape s = {.in = {g->i, g->h, g->w, g->planar, false},
                              .groups = g->groups,
                              .bias = g->bias,
                              .n_max = g->n_max,
                              .training = true,
                              .want_dx = !g->planar}; /* none of the network's input */

    memcpy(s.kernel, g->kernel, sizeof s.kernel);
    memcpy(s.stride, g->stride, sizeof s.stride);
    memcpy(s.pad, g->pad, sizeof s.pad);
    s.out = (struct nn_shape){g->o, out_size(g->h, g->kernel[0], g->stride[0], g->pad[0]),
                              out_size(g->w, g->kernel[1], g->stride[1], g->pad[1]), false, false};
    return s;
}

/* Where canonical weight (o,i,r,c) is in memory (nn/tensor.h). */
static int weight_at(const struct nn_conv_shape *s, int o, int i, int r, int c)
{
    const int kh = s->kernel[0], kw = s->kernel[1];

    if (s->groups > 1)
        return ((o * (s->in.c / s->groups) + i) * kh + r) * kw + c;
    if (s->in.planar)
        return ((((o / 8) * kh + r) * kw + c) * s->in.c + i) * 8 + o % 8;
    return ((((o / 8) * (nn_pad8(s->in.c) / 8) + i / 8) * kh + r) * kw + c) * 64 + (i % 8) * 8 +
           o % 8;
}

static size_t weight_floats(const struct nn_conv_shape *s)
{
    const size_t taps = (size_t)s->kernel[0] * (size_t)s->kernel[1];

    if (s->groups > 1)
        return (size_t)s->out.c * ((size_t)s->in.c / (size_t)s->groups) * taps;
    return (size_t)nn_pad8(s->out.c) * (size_t)(s->in.planar ? s->in.c : nn_pad8(s->in.c)) * taps;
}

void *convs_zeros(size_t count, size_t size)
{
    void *memory;

    assert_int_equal(base_tensor(count + 1, size, "test data", &memory), BASE_OK);
    return memory;
}

static void fill_values(const struct nn_shape *s, int n, uint32_t stream, float *memory)
{
    const struct base_rng rng = base_rng_of(7, BASE_STREAM_TEST, stream, 0, 0);
    uint32_t i = 0;

    for (int j = 0; j < n; j++)
        for (int c = 0; c < s->c; c++)
            for (int h = 0; h < s->h; h++)
                for (int w = 0; w < s->w; w++)
                    memory[(size_t)j * nn_shape_floats(*s) + nn_shape_at(*s, c, h, w)] =
                        2 * base_rng_unit(base_rng_u32(&rng, i++)) - 1;
}

struct convs_buffers convs_buffers_new(const struct nn_conv_shape *s)
{
    const struct base_rng rng = base_rng_of(7, BASE_STREAM_TEST, 9, 0, 0);
    struct convs_buffers b = {.xs = (size_t)s->n_max * nn_shape_floats(s->in),
                              .ys = (size_t)s->n_max * nn_shape_floats(s->out),
                              .ws = weight_floats(s),
                              .os = (size_t)nn_pad8(s->out.c)};
    uint32_t at = 0;

    b.x = convs_zeros(b.xs, sizeof(float));
    b.dx = convs_zeros(b.xs, sizeof(float));
    b.y = convs_zeros(b.ys, sizeof(float));
    b.dy = convs_zeros(b.ys, sizeof(float));
    b.w = convs_zeros(b.ws, sizeof(float));
    b.dw = convs_zeros(b.ws, sizeof(float));
    b.b = convs_zeros(b.os, sizeof(float));
    b.db = convs_zeros(b.os, sizeof(float));
    b.y_ref = convs_zeros(b.ys, sizeof(double));
    b.dx_ref = convs_zeros(b.xs, sizeof(double));
    b.dw_ref = convs_zeros(b.ws, sizeof(double));
    b.db_ref = convs_zeros(b.os, sizeof(double));
    fill_values(&s->in, s->n_max, 1, b.x);
    fill_values(&s->out, s->n_max, 2, b.dy);
    for (int o = 0; o < s->out.c; o++) {
        b.b[o] = base_rng_unit(base_rng_u32(&rng, at++)) - 0.5f;
        for (int i = 0; i < s->in.c / s->groups; i++)
            for (int t = 0; t < s->kernel[0] * s->kernel[1]; t++)
                b.w[weight_at(s, o, i, t / s->kernel[1], t % s->kernel[1])] =
                    base_rng_unit(base_rng_u32(&rng, at++)) - 0.5f;
    }
    return b;
}

void convs_buffers_free(struct convs_buffers *b)
{
    void *all[] = {b->x,  b->y,     b->w,      b->b,      b->dx,     b->dy,     b->dw,
                   b->db, b->y_ref, b->dx_ref, b->dw_ref, b->db_ref, b->scratch};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        base_free(all[i]);
}

/* All three passes for one output value: what it reads in x is where its gradient goes. */
static void reference_value(const struct nn_conv_shape *s, struct convs_buffers *b, int j, int o,
                            int at)
{
    const int group = s->in.c / s->groups, first = o / (s->out.c / s->groups) * group;
    const int row = at / s->out.w, column = at % s->out.w;
    const size_t y = (size_t)j * nn_shape_floats(s->out) + nn_shape_at(s->out, o, row, column);
    const double dy = (double)b->dy[y];
    double sum = s->bias ? (double)b->b[o] : 0;

    b->db_ref[o] += dy;
    for (int i = 0; i < group; i++)
        for (int r = 0; r < s->kernel[0]; r++)
            for (int c = 0; c < s->kernel[1]; c++) {
                const int h = row * s->stride[0] - s->pad[0] + r;
                const int w = column * s->stride[1] - s->pad[1] + c;
                size_t x;
                int weight;

                if (h < 0 || h >= s->in.h || w < 0 || w >= s->in.w)
                    continue;
                x = (size_t)j * nn_shape_floats(s->in) + nn_shape_at(s->in, first + i, h, w);
                weight = weight_at(s, o, i, r, c);
                sum += (double)b->x[x] * (double)b->w[weight];
                b->dx_ref[x] += dy * (double)b->w[weight];
                b->dw_ref[weight] += dy * (double)b->x[x];
            }
    b->y_ref[y] = sum;
}

void convs_reference(const struct nn_conv_shape *s, int j, struct convs_buffers *b)
{
    for (int o = 0; o < s->out.c; o++)
        for (int at = 0; at < s->out.h * s->out.w; at++)
            reference_value(s, b, j, o, at);
}

double convs_norm(size_t count, const double *values)
{
    double squares = 0;

    for (size_t i = 0; i < count; i++)
        squares += values[i] * values[i];
    return sqrt(squares);
}

double convs_distance(size_t count, const float *got, const double *want)
{
    double squares = 0;

    for (size_t i = 0; i < count; i++) {
        const double d = (double)got[i] - want[i];

        squares += d * d;
    }
    return sqrt(squares);
}

double convs_compare(size_t count, const float *got, const double *want)
{
    assert_true(convs_norm(count, want) > 0);
    return convs_distance(count, got, want) / convs_norm(count, want);
}

void convs_assert_padding(const struct nn_shape *s, int n, const float *memory)
{
    for (int c = s->c; c < nn_pad8(s->c) && !s->planar; c++)
        for (int j = 0; j < n; j++)
            for (int h = 0; h < s->h; h++)
                for (int w = 0; w < s->w; w++)
                    assert_true(
                        memory[(size_t)j * nn_shape_floats(*s) + nn_shape_at(*s, c, h, w)] == 0);
}

void convs_assert_weight_padding(const struct nn_conv_shape *s, const float *dw)
{
    const size_t count = weight_floats(s);
    char *used = convs_zeros(count, 1);

    for (int o = 0; o < s->out.c; o++)
        for (int i = 0; i < s->in.c / s->groups; i++)
            for (int t = 0; t < s->kernel[0] * s->kernel[1]; t++)
                used[weight_at(s, o, i, t / s->kernel[1], t % s->kernel[1])] = 1;
    for (size_t i = 0; i < count; i++)
        if (!used[i])
            assert_true(dw[i] == 0);
    base_free(used);
}

void convs_spoil(size_t count, float *memory)
{
    for (size_t i = 0; i < count; i++)
        memory[i] = 7;
}

size_t convs_open(const struct nn_conv_shape *s, struct convs_work *work)
{
    size_t count = 0;

    for (const struct nn_conv *const *conv = nn_conv_registry(); *conv != NULL; conv++)
        if ((*conv)->serves(s)) {
            struct convs_work *w = &work[count++];

            assert_true(count <= CONVS_MAX_CANDIDATES);
            *w = (struct convs_work){0};
            assert_int_equal(nn_conv_work_init(&w->work, *conv, s), BASE_OK);
        }
    return count;
}

void convs_take_scratch(struct convs_buffers *b, size_t bytes)
{
    base_free(b->scratch);
    b->scratch_bytes = bytes;
    b->scratch = convs_zeros(bytes + CONVS_GUARD, 1);
}
