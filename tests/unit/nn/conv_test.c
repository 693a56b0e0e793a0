/* SPDX-License-Identifier: MIT
 *
 * Every convolution candidate of the registry against a plain fp64 loop, over a grid of awkward
 * shapes: values as exact as oneDNN's (L2, relative; F(4x4) within 1e-5), zeros in all padding,
 * nothing written outside the scratch it asked for, and the same bits for the same batch.
 * The same of what only answers, through every tail. conv_portable_test.c and conv_avx2_test.c
 * include this file to run it at their levels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/team.h"
#include "nn/conv.h"
#include "nn/simd/simd.h"
#include "nn/threads.h"

static const double tolerance = 1e-5, exact = 1e-6;
enum { GUARD = 64 /* bytes behind the scratch */, MAX_CANDIDATES = 16 };

struct grid {
    int i, h, w, o, kernel[2], stride[2], pad[2], groups, n_max;
    bool planar, bias;
};

static const struct grid grid[] = {
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

/* Convolutions of vgg11 and resnet18: long sums over many channels. */
static const struct grid known[] = {
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

static int out_size(int in, int kernel, int stride, int pad)
{
    return (in + 2 * pad - kernel) / stride + 1;
}

static struct nn_conv_shape shape_of(const struct grid *g)
{
    struct nn_conv_shape s = {.in = {g->i, g->h, g->w, g->planar, false},
                              .groups = g->groups,
                              .bias = g->bias,
                              .n_max = g->n_max,
                              .training = true,
                              .want_dx = !g->planar}; /* of the network's input: nobody */

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

struct buffers {
    size_t xs, ys, ws, os; /* floats of x, y (n_max samples), w, b */
    float *x, *y, *w, *b, *dx, *dy, *dw, *db;
    double *y_ref, *dx_ref, *dw_ref, *db_ref;
    char *scratch;
    size_t scratch_bytes;
};

static void *zeros(size_t count, size_t size)
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

static struct buffers buffers_new(const struct nn_conv_shape *s)
{
    const struct base_rng rng = base_rng_of(7, BASE_STREAM_TEST, 9, 0, 0);
    struct buffers b = {.xs = (size_t)s->n_max * nn_shape_floats(s->in),
                        .ys = (size_t)s->n_max * nn_shape_floats(s->out),
                        .ws = weight_floats(s),
                        .os = (size_t)nn_pad8(s->out.c)};
    uint32_t at = 0;

    b.x = zeros(b.xs, sizeof(float));
    b.dx = zeros(b.xs, sizeof(float));
    b.y = zeros(b.ys, sizeof(float));
    b.dy = zeros(b.ys, sizeof(float));
    b.w = zeros(b.ws, sizeof(float));
    b.dw = zeros(b.ws, sizeof(float));
    b.b = zeros(b.os, sizeof(float));
    b.db = zeros(b.os, sizeof(float));
    b.y_ref = zeros(b.ys, sizeof(double));
    b.dx_ref = zeros(b.xs, sizeof(double));
    b.dw_ref = zeros(b.ws, sizeof(double));
    b.db_ref = zeros(b.os, sizeof(double));
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

static void buffers_free(struct buffers *b)
{
    void *all[] = {b->x,  b->y,     b->w,      b->b,      b->dx,     b->dy,     b->dw,
                   b->db, b->y_ref, b->dx_ref, b->dw_ref, b->db_ref, b->scratch};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        base_free(all[i]);
}

/* All three passes for one output value: what it reads in x is where its gradient goes. */
static void reference_value(const struct nn_conv_shape *s, struct buffers *b, int j, int o, int at)
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

/* Adds sample j to the reference, after those before it. */
static void reference(const struct nn_conv_shape *s, int j, struct buffers *b)
{
    for (int o = 0; o < s->out.c; o++)
        for (int at = 0; at < s->out.h * s->out.w; at++)
            reference_value(s, b, j, o, at);
}

static double norm(size_t count, const double *values)
{
    double squares = 0;

    for (size_t i = 0; i < count; i++)
        squares += values[i] * values[i];
    return sqrt(squares);
}

static double distance(size_t count, const float *got, const double *want)
{
    double squares = 0;

    for (size_t i = 0; i < count; i++) {
        const double d = (double)got[i] - want[i];

        squares += d * d;
    }
    return sqrt(squares);
}

/* L2 error relative to the reference, over all memory: its padding is zero and is asked to be
 * exactly that. */
static double compare(size_t count, const float *got, const double *want)
{
    assert_true(norm(count, want) > 0);
    return distance(count, got, want) / norm(count, want);
}

/* Padding channels (c … pad8) of n samples are exactly zero. */
static void padding_zero(const struct nn_shape *s, int n, const float *memory)
{
    for (int c = s->c; c < nn_pad8(s->c) && !s->planar; c++)
        for (int j = 0; j < n; j++)
            for (int h = 0; h < s->h; h++)
                for (int w = 0; w < s->w; w++)
                    assert_true(
                        memory[(size_t)j * nn_shape_floats(*s) + nn_shape_at(*s, c, h, w)] == 0);
}

/* Memory that no canonical weight lies in is exactly zero. */
static void weight_padding_zero(const struct nn_conv_shape *s, const float *dw)
{
    const size_t count = weight_floats(s);
    char *used = zeros(count, 1);

    for (int o = 0; o < s->out.c; o++)
        for (int i = 0; i < s->in.c / s->groups; i++)
            for (int t = 0; t < s->kernel[0] * s->kernel[1]; t++)
                used[weight_at(s, o, i, t / s->kernel[1], t % s->kernel[1])] = 1;
    for (size_t i = 0; i < count; i++)
        if (!used[i])
            assert_true(dw[i] == 0);
    base_free(used);
}

static void spoil(size_t count, float *memory)
{
    for (size_t i = 0; i < count; i++)
        memory[i] = 7;
}

static void run(const struct nn_conv *conv, void *state, const struct nn_conv_shape *s, int n,
                struct buffers *b)
{
    spoil(b->ys, b->y);
    spoil(b->xs, b->dx);
    spoil(b->ws, b->dw);
    spoil(b->os, b->db);
    memset(b->scratch, 0x5a, b->scratch_bytes + GUARD);
    assert_int_equal(conv->forward(state, n, b->x, b->w, s->bias ? b->b : NULL, b->y, b->scratch),
                     BASE_OK);
    assert_int_equal(conv->backward(state, n, b->x, b->dy, b->w, b->dw, s->bias ? b->db : NULL,
                                    s->want_dx ? b->dx : NULL, b->scratch),
                     BASE_OK);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(b->scratch[b->scratch_bytes + i], 0x5a);
}

static double check(const struct nn_conv_shape *s, int n, struct buffers *b)
{
    const size_t xs = (size_t)n * nn_shape_floats(s->in), ys = (size_t)n * nn_shape_floats(s->out);
    double worst;

    worst = compare(ys, b->y, b->y_ref);
    if (s->want_dx)
        worst = fmax(worst, compare(xs, b->dx, b->dx_ref));
    worst = fmax(worst, compare(b->ws, b->dw, b->dw_ref));
    if (s->bias)
        worst = fmax(worst, compare(b->os, b->db, b->db_ref));
    for (size_t o = (size_t)s->out.c; o < b->os && s->bias; o++)
        assert_true(b->db[o] == 0);
    padding_zero(&s->out, n, b->y);
    if (s->want_dx)
        padding_zero(&s->in, n, b->dx);
    weight_padding_zero(s, b->dw);
    for (size_t i = xs; i < b->xs; i++) /* samples behind n are not touched */
        assert_true(b->dx[i] == 7);
    for (size_t i = ys; i < b->ys; i++)
        assert_true(b->y[i] == 7);
    return worst;
}

/* A candidate at work on a shape. */
struct work {
    const struct nn_conv *conv;
    void *state;
    size_t bytes; /* of scratch */
    double worst;
    struct base_team *team; /* of answers */
};

static double limit(const struct nn_conv *conv, double onednn)
{
    if (strcmp(conv->name, "onednn") == 0 || strncmp(conv->name, "winograd4", 9) == 0)
        return tolerance;
    return fmax(exact, 2 * onednn);
}

static size_t open_all(const struct nn_conv_shape *s, struct work *work)
{
    size_t count = 0;

    for (size_t c = 0; c < nn_conv_count; c++)
        if (nn_conv_registry[c]->serves(s)) {
            struct work *w = &work[count++];

            assert_true(count <= MAX_CANDIDATES);
            *w = (struct work){.conv = nn_conv_registry[c]};
            assert_int_equal(w->conv->open(s, &w->bytes, &w->state), BASE_OK);
        }
    return count;
}

static void take_scratch(struct buffers *b, size_t bytes)
{
    base_free(b->scratch);
    b->scratch_bytes = bytes;
    b->scratch = zeros(bytes + GUARD, 1);
}

static void one_shape(const struct grid *g)
{
    const struct nn_conv_shape s = shape_of(g);
    struct buffers b = buffers_new(&s);
    float *first = zeros(b.ws, sizeof *first);
    struct work work[MAX_CANDIDATES];
    const size_t count = open_all(&s, work);
    double onednn = 0;

    for (int n = 1; n <= s.n_max; n++) {
        reference(&s, n - 1, &b);
        for (struct work *w = work; w < work + count; w++) {
            take_scratch(&b, w->bytes);
            run(w->conv, w->state, &s, n, &b);
            w->worst = fmax(w->worst, check(&s, n, &b));
            if (strcmp(w->conv->name, "onednn") == 0)
                onednn = w->worst;
        }
    }
    for (struct work *w = work; w < work + count; w++) {
        take_scratch(&b, w->bytes);
        run(w->conv, w->state, &s, s.n_max, &b);
        memcpy(first, b.dw, b.ws * sizeof *first);
        run(w->conv, w->state, &s, s.n_max, &b);
        assert_memory_equal(first, b.dw, b.ws * sizeof *first);
        print_message("%-11s %3d->%2d %dx%d k%dx%d s%d g%-2d %s: %.1e  %s\n", w->conv->name, g->i,
                      g->o, g->h, g->w, g->kernel[0], g->kernel[1], g->stride[0], g->groups,
                      g->planar ? "planar" : "blocked", w->worst,
                      w->conv->implementation(w->state));
        assert_true(w->worst <= limit(w->conv, onednn));
        w->conv->close(w->state);
    }
    buffers_free(&b);
    base_free(first);
}

static void every_candidate_every_shape(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof grid / sizeof *grid; i++)
        one_shape(&grid[i]);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        one_shape(&known[i]);
}

/* Our own kernels: the number of threads does not change a bit, and no dx is wanted by some. */
static void any_number_of_threads(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof grid / sizeof *grid; i++)
        for (size_t c = 0; c < nn_conv_count; c++) {
            const struct nn_conv *conv = nn_conv_registry[c];
            const struct nn_conv_shape s = shape_of(&grid[i]);
            struct buffers b;
            float *dw, *dx, *y;

            if (!conv->serves(&s) || strcmp(conv->name, "onednn") == 0)
                continue;
            b = buffers_new(&s);
            dw = zeros(b.ws, sizeof *dw);
            dx = zeros(b.xs, sizeof *dx);
            y = zeros(b.ys, sizeof *y);
            for (int threads = 1; threads <= 5; threads += 2) {
                void *state;
                size_t bytes;

                nn_threads_set(threads);
                assert_int_equal(conv->open(&s, &bytes, &state), BASE_OK);
                take_scratch(&b, bytes);
                run(conv, state, &s, s.n_max, &b);
                if (threads == 1) {
                    memcpy(dw, b.dw, b.ws * sizeof *dw);
                    memcpy(dx, b.dx, b.xs * sizeof *dx);
                    memcpy(y, b.y, b.ys * sizeof *y);
                }
                assert_memory_equal(dw, b.dw, b.ws * sizeof *dw);
                assert_memory_equal(dx, b.dx, b.xs * sizeof *dx);
                assert_memory_equal(y, b.y, b.ys * sizeof *y);
                spoil(b.ws, b.dw);
                assert_int_equal(
                    conv->backward(state, s.n_max, b.x, b.dy, b.w, b.dw, NULL, NULL, b.scratch),
                    BASE_OK);
                assert_memory_equal(dw, b.dw, b.ws * sizeof *dw);
                conv->close(state);
            }
            buffers_free(&b);
            base_free(dw);
            base_free(dx);
            base_free(y);
        }
    nn_threads_set(0);
}

/* With a ReLU behind it: the bits of the passes one by one. */
static void relu_of(const struct nn_conv *conv, const struct nn_conv_shape *s)
{
    struct buffers b = buffers_new(s);
    float *y = zeros(b.ys, sizeof *y), *masked = zeros(b.ys, sizeof *masked);
    float *dw = zeros(b.ws, sizeof *dw), *db = zeros(b.os, sizeof *db);
    float *bias = s->bias ? b.b : NULL;
    size_t bytes;
    void *state;

    assert_int_equal(conv->open(s, &bytes, &state), BASE_OK);
    take_scratch(&b, bytes);
    assert_int_equal(conv->forward(state, s->n_max, b.x, b.w, bias, b.y, b.scratch), BASE_OK);
    for (size_t i = 0; i < b.ys; i++) {
        b.y[i] = b.y[i] < 0 ? 0 : b.y[i];
        masked[i] = b.y[i] > 0 ? b.dy[i] : 0;
    }
    assert_int_equal(conv->backward(state, s->n_max, b.x, masked, b.w, b.dw, s->bias ? b.db : NULL,
                                    NULL, b.scratch),
                     BASE_OK);
    spoil(b.ys, y);
    spoil(b.ws, dw);
    assert_int_equal(conv->forward_relu(state, s->n_max, b.x, b.w, bias, y, b.scratch), BASE_OK);
    assert_int_equal(
        conv->backward_relu(state, s->n_max, b.x, y, b.dy, dw, s->bias ? db : NULL, b.scratch),
        BASE_OK);
    assert_memory_equal(y, b.y, b.ys * sizeof *y);
    assert_memory_equal(dw, b.dw, b.ws * sizeof *dw);
    assert_memory_equal(db, b.db, b.os * sizeof *db);
    conv->close(state);
    buffers_free(&b);
    for (float **p = (float *[]){y, masked, dw, db, NULL}; *p; p++)
        base_free(*p);
}

static void relu_behind(void **unused)
{
    int cases = 0;

    (void)unused;
    for (size_t i = 0; i < sizeof grid / sizeof *grid; i++)
        for (size_t c = 0; c < nn_conv_count; c++) {
            const struct nn_conv_shape s = shape_of(&grid[i]);

            if (!nn_conv_registry[c]->serves(&s) || !nn_conv_registry[c]->forward_relu)
                continue;
            relu_of(nn_conv_registry[c], &s);
            cases++;
        }
    assert_true(cases > 3);
}

/* Six batch sizes through a cache of four: none is answered by another's plan. */
static void many_batch_sizes(void **unused)
{
    const struct grid g = {10, 6, 6, 12, {3, 3}, {1, 1}, {1, 1}, 1, 6, false, true};
    const struct nn_conv_shape s = shape_of(&g);
    struct work work[MAX_CANDIDATES];
    const size_t count = open_all(&s, work);
    struct buffers all[6];

    (void)unused;
    for (int n = 1; n <= 6; n++) {
        all[n - 1] = buffers_new(&s);
        for (int j = 0; j < n; j++)
            reference(&s, j, &all[n - 1]);
    }
    for (struct work *w = work; w < work + count; w++) {
        for (int i = 0; i < 13; i++) {
            const int n = 1 + i * 5 % 6;

            take_scratch(&all[n - 1], w->bytes);
            run(w->conv, w->state, &s, n, &all[n - 1]);
            assert_true(check(&s, n, &all[n - 1]) <= tolerance);
        }
        w->conv->close(w->state);
    }
    for (int n = 1; n <= 6; n++)
        buffers_free(&all[n - 1]);
}

/* The layers of the zoo's networks must not fall to oneDNN's reference code. */
static void no_reference_code(void **unused)
{
    static const struct grid zoo[] = {
        {1, 28, 28, 32, {3, 3}, {1, 1}, {0, 0}, 1, 8, true, true},
        {3, 32, 32, 64, {3, 3}, {1, 1}, {1, 1}, 1, 8, true, true},
        {64, 16, 16, 128, {3, 3}, {1, 1}, {1, 1}, 1, 8, false, true},
        {512, 2, 2, 512, {3, 3}, {1, 1}, {1, 1}, 1, 8, false, true},
        {64, 32, 32, 128, {3, 3}, {2, 2}, {1, 1}, 1, 8, false, false},
        {64, 32, 32, 128, {1, 1}, {2, 2}, {0, 0}, 1, 8, false, false},
        {32, 16, 16, 32, {3, 3}, {1, 1}, {1, 1}, 32, 8, false, true},
        {64, 16, 16, 64, {3, 3}, {1, 1}, {1, 1}, 2, 8, false, true},
    };
    const struct nn_conv *conv;

    (void)unused;
    if (!nn_simd_levels()[1])
        skip(); /* oneDNN has nothing but reference code for the oldest CPUs */
    for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++) {
        struct nn_conv_shape s = shape_of(&zoo[i]);
        size_t bytes;
        void *state;

        assert_int_equal(nn_conv_choose("onednn", &s, &conv), BASE_OK);
        assert_int_equal(conv->open(&s, &bytes, &state), BASE_OK);
        print_message("%3d->%3d %dx%d: %s, scratch %zu\n", zoo[i].i, zoo[i].o, zoo[i].h, zoo[i].w,
                      conv->implementation(state), bytes);
        assert_null(strstr(conv->implementation(state), "ref"));
        conv->close(state);
    }
}

static void choosing(void **unused)
{
    const struct nn_conv_shape s = shape_of(&grid[0]);
    const struct nn_conv *conv;

    (void)unused;
    assert_int_equal(nn_conv_choose(NULL, &s, &conv), BASE_OK);
    assert_string_equal(conv->name, "onednn");
    assert_int_equal(nn_conv_choose("winograd2", &s, &conv), BASE_OK);
    assert_string_equal(conv->name, "winograd2");
    assert_int_equal(nn_conv_choose("onednn", &s, &conv), BASE_OK);
    assert_string_equal(conv->name, "onednn");
    assert_int_equal(nn_conv_choose("onedn", &s, &conv), BASE_ERR_USAGE);
    assert_null(conv);
    assert_non_null(strstr(base_message(), "onednn"));
    assert_int_equal(nn_conv_choose("gemm1x1", &s, &conv), BASE_ERR_USAGE);
    assert_null(conv);
    for (size_t i = 0; i < nn_conv_count; i++)
        nn_conv_registry[i]->close(NULL);
}

/* Inference asks for no backward pass and gets none. */
static void inference(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof grid / sizeof *grid; i += 5) {
        struct nn_conv_shape s = shape_of(&grid[i]);
        struct buffers b = buffers_new(&s);
        struct work work[MAX_CANDIDATES];
        size_t count;

        s.training = s.want_dx = false;
        reference(&s, 0, &b);
        count = open_all(&s, work);
        for (struct work *w = work; w < work + count; w++) {
            take_scratch(&b, w->bytes);
            assert_int_equal(
                w->conv->forward(w->state, 1, b.x, b.w, s.bias ? b.b : NULL, b.y, b.scratch),
                BASE_OK);
            assert_true(compare(nn_shape_floats(s.out), b.y, b.y_ref) <= tolerance);
            w->conv->close(w->state);
        }
        buffers_free(&b);
    }
}

/* ---- forward only, with prepared weights and a tail ---- */

/* y_ref of n samples through the tail -> want (n,O,HO,WO), or half of HO and WO */
static void tail_reference(const struct nn_conv_shape *s, int n, const struct buffers *b,
                           const struct nn_conv_tail *tail, double *want)
{
    const int step = tail->pool ? 2 : 1;
    const struct nn_shape out = {s->out.c, s->out.h / step, s->out.w / step, false, false};

    for (int j = 0; j < n; j++)
        for (int c = 0; c < s->out.c; c++)
            for (int at = 0; at < s->out.h * s->out.w; at++) {
                const int h = at / s->out.w, w = at % s->out.w;
                const size_t y = (size_t)j * nn_shape_floats(s->out) + nn_shape_at(s->out, c, h, w);
                const size_t to =
                    (size_t)j * nn_shape_floats(out) + nn_shape_at(out, c, h / step, w / step);
                double value = b->y_ref[y] + (tail->add ? (double)tail->add[y] : 0);

                value = tail->relu ? fmax(value, 0) : value;
                want[to] = h % step == 0 && w % step == 0 ? value : fmax(want[to], value);
            }
}

static void one_answer(const struct work *w, const struct nn_conv_shape *s, int n,
                       struct buffers *b, const float *prepared, struct nn_conv_tail tail)
{
    const int step = tail.pool ? 2 : 1;
    const struct nn_shape out = {s->out.c, s->out.h / step, s->out.w / step, false, false};
    const size_t ys = (size_t)n * nn_shape_floats(out);
    double *want = zeros(b->ys, sizeof *want);

    spoil(b->ys, b->y);
    memset(b->scratch, 0x5a, b->scratch_bytes + GUARD);
    assert_int_equal(w->conv->answer(w->state, w->team, n, b->x, prepared, s->bias ? b->b : NULL,
                                     &tail, b->y, b->scratch),
                     BASE_OK);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(b->scratch[b->scratch_bytes + i], 0x5a);
    tail_reference(s, n, b, &tail, want);
    assert_true(distance(ys, b->y, want) <=
                tolerance * norm((size_t)n * nn_shape_floats(s->out), b->y_ref));
    padding_zero(&out, n, b->y);
    for (size_t i = ys; i < b->ys; i++)
        assert_true(b->y[i] == 7);
    base_free(want);
}

static void all_tails(const struct work *w, const struct nn_conv_shape *s, int n, struct buffers *b,
                      const float *prepared)
{
    for (int bits = 0; bits < 8; bits++) {
        const struct nn_conv_tail tail = {
            .add = bits & 1 ? b->dy : NULL, .relu = bits & 2, .pool = bits & 4};

        if (!tail.pool || (s->out.h % 2 == 0 && s->out.w % 2 == 0))
            one_answer(w, s, n, b, prepared, tail);
    }
}

static void answers_of(const struct grid *g, int threads)
{
    struct nn_conv_shape s = shape_of(g);
    struct buffers b = buffers_new(&s);
    struct work work[MAX_CANDIDATES];
    struct base_team *team;
    size_t count;

    s.training = s.want_dx = false;
    s.prepared = true;
    nn_threads_set(threads);
    assert_int_equal(base_team_new(threads, &team), BASE_OK);
    count = open_all(&s, work);
    for (int j = 0; j < s.n_max; j++)
        reference(&s, j, &b);
    for (struct work *w = work; w < work + count; w++) {
        float *prepared;

        if (w->conv->answer != NULL) {
            prepared = zeros(w->conv->prepared_floats(&s), sizeof *prepared);
            w->conv->prepare(&s, b.w, prepared);
            take_scratch(&b, w->bytes);
            w->team = team;
            for (int n = 1; n <= s.n_max; n++)
                if (n < 5 || n == s.n_max)
                    all_tails(w, &s, n, &b, prepared);
            base_free(prepared);
        }
        w->conv->close(w->state);
    }
    base_team_free(team);
    buffers_free(&b);
    nn_threads_set(0);
}

static void every_answer_every_shape(void **unused)
{
    static const struct grid large[] = {
        /* several blocks and bands: shared by the threads, and one for each */
        {64, 16, 16, 32, {3, 3}, {1, 1}, {1, 1}, 1, 9, false, true},
        {16, 70, 66, 8, {3, 3}, {1, 1}, {1, 1}, 1, 2, false, true},
        {16, 70, 66, 8, {3, 3}, {2, 2}, {1, 1}, 1, 2, false, true},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof grid / sizeof *grid; i++)
        answers_of(&grid[i], 1 + (int)i % 3);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        answers_of(&known[i], 1 + (int)i % 3);
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        for (int threads = 1; threads <= 3; threads++)
            answers_of(&large[i], threads);
}

#ifndef LEVEL
#    define LEVEL ""
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_candidate_every_shape),
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(relu_behind),
        cmocka_unit_test(many_batch_sizes),
        cmocka_unit_test(no_reference_code),
        cmocka_unit_test(choosing),
        cmocka_unit_test(inference),
        cmocka_unit_test(every_answer_every_shape),
    };

    setenv("PACELINE_CPU", LEVEL, 1); /* "": the best */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
