/* SPDX-License-Identifier: MIT
 *
 * Every convolution candidate of the registry against a plain fp64 loop, over a grid of awkward
 * shapes: values as exact as oneDNN's (L2, relative; F(4x4) within 1e-5), zeros in all padding,
 * nothing written outside the scratch it asked for, and the same bits for the same batch.
 * conv_portable_test.c and conv_avx2_test.c include this file to run it at their levels; what only
 * answers is in conv_answer_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nn/simd/simd.h"
#include "nn/threads.h"
#include "support/convs.h"

static const double exact = 1e-6;

static void run(const struct nn_conv_work *work, int n, struct convs_buffers *b)
{
    const struct nn_conv_shape *s = &work->shape;

    convs_spoil(b->ys, b->y);
    convs_spoil(b->xs, b->dx);
    convs_spoil(b->ws, b->dw);
    convs_spoil(b->os, b->db);
    memset(b->scratch, 0x5a, b->scratch_bytes + CONVS_GUARD);
    assert_int_equal(
        work->conv->forward(work, n, b->x, b->w, s->bias ? b->b : NULL, b->y, b->scratch), BASE_OK);
    assert_int_equal(work->conv->backward(work, n, b->x, b->dy, b->w, b->dw, s->bias ? b->db : NULL,
                                          s->want_dx ? b->dx : NULL, b->scratch),
                     BASE_OK);
    for (size_t i = 0; i < CONVS_GUARD; i++)
        assert_int_equal(b->scratch[b->scratch_bytes + i], 0x5a);
}

static double check(const struct nn_conv_shape *s, int n, struct convs_buffers *b)
{
    const size_t xs = (size_t)n * nn_shape_floats(s->in), ys = (size_t)n * nn_shape_floats(s->out);
    double worst;

    worst = convs_compare(ys, b->y, b->y_ref);
    if (s->want_dx)
        worst = fmax(worst, convs_compare(xs, b->dx, b->dx_ref));
    worst = fmax(worst, convs_compare(b->ws, b->dw, b->dw_ref));
    if (s->bias)
        worst = fmax(worst, convs_compare(b->os, b->db, b->db_ref));
    for (size_t o = (size_t)s->out.c; o < b->os && s->bias; o++)
        assert_true(b->db[o] == 0);
    convs_assert_padding(&s->out, n, b->y);
    if (s->want_dx)
        convs_assert_padding(&s->in, n, b->dx);
    convs_assert_weight_padding(s, b->dw);
    for (size_t i = xs; i < b->xs; i++) /* samples after n are not touched */
        assert_true(b->dx[i] == 7);
    for (size_t i = ys; i < b->ys; i++)
        assert_true(b->y[i] == 7);
    return worst;
}

static double limit(const struct nn_conv *conv, double onednn)
{
    if (strcmp(conv->name, "onednn") == 0 || strncmp(conv->name, "winograd4", 9) == 0)
        return CONVS_TOLERANCE;
    return fmax(exact, 2 * onednn);
}

static void one_shape(const struct convs_case *g)
{
    const struct nn_conv_shape s = convs_shape(g);
    struct convs_buffers b = convs_buffers_new(&s);
    float *first = convs_zeros(b.ws, sizeof *first);
    struct convs_work work[CONVS_MAX_CANDIDATES];
    const size_t count = convs_open(&s, work);
    double onednn = 0;

    for (int n = 1; n <= s.n_max; n++) {
        convs_reference(&s, n - 1, &b);
        for (struct convs_work *w = work; w < work + count; w++) {
            convs_take_scratch(&b, w->work.scratch_bytes);
            run(&w->work, n, &b);
            w->worst = fmax(w->worst, check(&s, n, &b));
            if (strcmp(w->work.conv->name, "onednn") == 0)
                onednn = w->worst;
        }
    }
    for (struct convs_work *w = work; w < work + count; w++) {
        const struct nn_conv *conv = w->work.conv;

        convs_take_scratch(&b, w->work.scratch_bytes);
        run(&w->work, s.n_max, &b);
        memcpy(first, b.dw, b.ws * sizeof *first);
        run(&w->work, s.n_max, &b);
        assert_memory_equal(first, b.dw, b.ws * sizeof *first);
        print_message("%-11s %3d->%2d %dx%d k%dx%d s%d g%-2d %s: %.1e  %s\n", conv->name, g->i,
                      g->o, g->h, g->w, g->kernel[0], g->kernel[1], g->stride[0], g->groups,
                      g->planar ? "planar" : "blocked", w->worst,
                      conv->implementation != NULL ? conv->implementation(&w->work)
                                                   : base_cpu_level_name(base_cpu_level()));
        assert_true(w->worst <= limit(conv, onednn));
        nn_conv_work_fini(&w->work);
    }
    convs_buffers_free(&b);
    base_free(first);
}

static void every_candidate_every_shape(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < convs_grid_count; i++)
        one_shape(&convs_grid[i]);
    for (size_t i = 0; i < convs_known_count; i++)
        one_shape(&convs_known[i]);
}

/* Our own kernels: the number of threads does not change a bit, and no dx is wanted by some. */
static void any_number_of_threads(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < convs_grid_count; i++)
        for (size_t c = 0; c < nn_conv_count(); c++) {
            const struct nn_conv *conv = nn_conv_registry()[c];
            const struct nn_conv_shape s = convs_shape(&convs_grid[i]);
            struct convs_buffers b;
            float *dw, *dx, *y;

            if (!conv->serves(&s) || strcmp(conv->name, "onednn") == 0)
                continue;
            b = convs_buffers_new(&s);
            dw = convs_zeros(b.ws, sizeof *dw);
            dx = convs_zeros(b.xs, sizeof *dx);
            y = convs_zeros(b.ys, sizeof *y);
            for (int threads = 1; threads <= 5; threads += 2) {
                struct nn_conv_work work;

                nn_threads_set(threads);
                assert_int_equal(nn_conv_work_init(&work, conv, &s), BASE_OK);
                convs_take_scratch(&b, work.scratch_bytes);
                run(&work, s.n_max, &b);
                if (threads == 1) {
                    memcpy(dw, b.dw, b.ws * sizeof *dw);
                    memcpy(dx, b.dx, b.xs * sizeof *dx);
                    memcpy(y, b.y, b.ys * sizeof *y);
                }
                assert_memory_equal(dw, b.dw, b.ws * sizeof *dw);
                assert_memory_equal(dx, b.dx, b.xs * sizeof *dx);
                assert_memory_equal(y, b.y, b.ys * sizeof *y);
                convs_spoil(b.ws, b.dw);
                assert_int_equal(
                    conv->backward(&work, s.n_max, b.x, b.dy, b.w, b.dw, NULL, NULL, b.scratch),
                    BASE_OK);
                assert_memory_equal(dw, b.dw, b.ws * sizeof *dw);
                nn_conv_work_fini(&work);
            }
            convs_buffers_free(&b);
            base_free(dw);
            base_free(dx);
            base_free(y);
        }
    nn_threads_set(0);
}

/* Followed by a ReLU: the bits of the passes one by one. */
static void relu_of(const struct nn_conv *conv, const struct nn_conv_shape *s)
{
    struct convs_buffers b = convs_buffers_new(s);
    float *y = convs_zeros(b.ys, sizeof *y), *masked = convs_zeros(b.ys, sizeof *masked);
    float *dw = convs_zeros(b.ws, sizeof *dw), *db = convs_zeros(b.os, sizeof *db);
    float *bias = s->bias ? b.b : NULL;
    struct nn_conv_work work;

    assert_int_equal(nn_conv_work_init(&work, conv, s), BASE_OK);
    convs_take_scratch(&b, work.scratch_bytes);
    assert_int_equal(conv->forward(&work, s->n_max, b.x, b.w, bias, b.y, b.scratch), BASE_OK);
    for (size_t i = 0; i < b.ys; i++) {
        b.y[i] = b.y[i] < 0 ? 0 : b.y[i];
        masked[i] = b.y[i] > 0 ? b.dy[i] : 0;
    }
    assert_int_equal(conv->backward(&work, s->n_max, b.x, masked, b.w, b.dw, s->bias ? b.db : NULL,
                                    NULL, b.scratch),
                     BASE_OK);
    convs_spoil(b.ys, y);
    convs_spoil(b.ws, dw);
    assert_int_equal(conv->forward_relu(&work, s->n_max, b.x, b.w, bias, y, b.scratch), BASE_OK);
    assert_int_equal(
        conv->backward_relu(&work, s->n_max, b.x, y, b.dy, dw, s->bias ? db : NULL, b.scratch),
        BASE_OK);
    assert_memory_equal(y, b.y, b.ys * sizeof *y);
    assert_memory_equal(dw, b.dw, b.ws * sizeof *dw);
    assert_memory_equal(db, b.db, b.os * sizeof *db);
    nn_conv_work_fini(&work);
    convs_buffers_free(&b);
    for (float **p = (float *[]){y, masked, dw, db, NULL}; *p; p++)
        base_free(*p);
}

static void relu_after(void **unused)
{
    int cases = 0;

    (void)unused;
    for (size_t i = 0; i < convs_grid_count; i++)
        for (const struct nn_conv *const *conv = nn_conv_registry(); *conv != NULL; conv++) {
            const struct nn_conv_shape s = convs_shape(&convs_grid[i]);

            if (!(*conv)->serves(&s) || (*conv)->forward_relu == NULL)
                continue;
            relu_of(*conv, &s);
            cases++;
        }
    assert_true(cases > 3);
}

/* Six batch sizes through a cache of four: none is answered by another's plan. */
static void many_batch_sizes(void **unused)
{
    const struct convs_case g = {10, 6, 6, 12, {3, 3}, {1, 1}, {1, 1}, 1, 6, false, true};
    const struct nn_conv_shape s = convs_shape(&g);
    struct convs_work work[CONVS_MAX_CANDIDATES];
    const size_t count = convs_open(&s, work);
    struct convs_buffers all[6];

    (void)unused;
    for (int n = 1; n <= 6; n++) {
        all[n - 1] = convs_buffers_new(&s);
        for (int j = 0; j < n; j++)
            convs_reference(&s, j, &all[n - 1]);
    }
    for (struct convs_work *w = work; w < work + count; w++) {
        for (int i = 0; i < 13; i++) {
            const int n = 1 + i * 5 % 6;

            convs_take_scratch(&all[n - 1], w->work.scratch_bytes);
            run(&w->work, n, &all[n - 1]);
            assert_true(check(&s, n, &all[n - 1]) <= CONVS_TOLERANCE);
        }
        nn_conv_work_fini(&w->work);
    }
    for (int n = 1; n <= 6; n++)
        convs_buffers_free(&all[n - 1]);
}

/* The layers of the zoo's networks must not fall to oneDNN's reference code. */
static void no_reference_code(void **unused)
{
    static const struct convs_case zoo[] = {
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
    if (base_cpu_best() == BASE_CPU_portable)
        skip(); /* oneDNN has nothing but reference code for the oldest CPUs */
    for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++) {
        struct nn_conv_shape s = convs_shape(&zoo[i]);
        struct nn_conv_work work;

        assert_int_equal(nn_conv_choose("onednn", &s, &conv), BASE_OK);
        assert_int_equal(nn_conv_work_init(&work, conv, &s), BASE_OK);
        print_message("%3d->%3d %dx%d: %s, scratch %zu\n", zoo[i].i, zoo[i].o, zoo[i].h, zoo[i].w,
                      conv->implementation(&work), work.scratch_bytes);
        assert_null(strstr(conv->implementation(&work), "ref"));
        nn_conv_work_fini(&work);
    }
}

static void choosing(void **unused)
{
    const struct nn_conv_shape s = convs_shape(&convs_grid[0]);
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
    nn_conv_work_fini(&(struct nn_conv_work){0});
    for (const struct nn_conv *const *form = nn_conv_registry(); *form != NULL; form++)
        nn_conv_work_fini(&(struct nn_conv_work){.conv = *form});
}

#ifndef LEVEL
#    define LEVEL ""
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_candidate_every_shape),
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(relu_after),
        cmocka_unit_test(many_batch_sizes),
        cmocka_unit_test(no_reference_code),
        cmocka_unit_test(choosing),
    };

    setenv("PACELINE_CPU", LEVEL, 1); /* "": the best */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
