/* SPDX-License-Identifier: MIT
 *
 * Convolutions that only answer, against a plain fp64 loop: without a backward pass, and with
 * prepared weights through every tail. conv_answer_portable_test.c and conv_answer_avx2_test.c
 * include this file to run it at their levels.
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
#include "base/team.h"
#include "nn/threads.h"
#include "support/convs.h"

/* Inference asks for no backward pass and gets none. */
static void inference(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < convs_grid_count; i += 5) {
        struct nn_conv_shape s = convs_shape(&convs_grid[i]);
        struct convs_buffers b = convs_buffers_new(&s);
        struct convs_work work[CONVS_MAX_CANDIDATES];
        size_t count;

        s.training = s.want_dx = false;
        convs_reference(&s, 0, &b);
        count = convs_open(&s, work);
        for (struct convs_work *w = work; w < work + count; w++) {
            convs_take_scratch(&b, w->work.scratch_bytes);
            assert_int_equal(
                w->work.conv->forward(&w->work, 1, b.x, b.w, s.bias ? b.b : NULL, b.y, b.scratch),
                BASE_OK);
            assert_true(convs_compare(nn_shape_floats(s.out), b.y, b.y_ref) <= CONVS_TOLERANCE);
            nn_conv_work_fini(&w->work);
        }
        convs_buffers_free(&b);
    }
}

/* y_ref of n samples through the tail -> want (n,O,HO,WO), or half of HO and WO */
static void tail_reference(const struct nn_conv_shape *s, int n, const struct convs_buffers *b,
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

static void one_answer(const struct nn_conv_work *work, struct base_team *team, int n,
                       struct convs_buffers *b, const float *prepared, struct nn_conv_tail tail)
{
    const struct nn_conv_shape *s = &work->shape;
    const int step = tail.pool ? 2 : 1;
    const struct nn_shape out = {s->out.c, s->out.h / step, s->out.w / step, false, false};
    const size_t ys = (size_t)n * nn_shape_floats(out);
    double *want = convs_zeros(b->ys, sizeof *want);

    convs_spoil(b->ys, b->y);
    memset(b->scratch, 0x5a, b->scratch_bytes + CONVS_GUARD);
    assert_int_equal(work->conv->answer(work, team, n, b->x, prepared, s->bias ? b->b : NULL, &tail,
                                        b->y, b->scratch),
                     BASE_OK);
    for (size_t i = 0; i < CONVS_GUARD; i++)
        assert_int_equal(b->scratch[b->scratch_bytes + i], 0x5a);
    tail_reference(s, n, b, &tail, want);
    assert_true(convs_distance(ys, b->y, want) <=
                CONVS_TOLERANCE * convs_norm((size_t)n * nn_shape_floats(s->out), b->y_ref));
    convs_assert_padding(&out, n, b->y);
    for (size_t i = ys; i < b->ys; i++)
        assert_true(b->y[i] == 7);
    base_free(want);
}

static void all_tails(const struct nn_conv_work *work, struct base_team *team, int n,
                      struct convs_buffers *b, const float *prepared)
{
    const struct nn_shape out = work->shape.out;

    for (int bits = 0; bits < 8; bits++) {
        const struct nn_conv_tail tail = {
            .add = bits & 1 ? b->dy : NULL, .relu = bits & 2, .pool = bits & 4};

        if (!tail.pool || (out.h % 2 == 0 && out.w % 2 == 0))
            one_answer(work, team, n, b, prepared, tail);
    }
}

static void answers_of(const struct convs_case *g, int threads)
{
    struct nn_conv_shape s = convs_shape(g);
    struct convs_buffers b = convs_buffers_new(&s);
    struct convs_work work[CONVS_MAX_CANDIDATES];
    struct base_team *team;
    size_t count;

    s.training = s.want_dx = false;
    s.prepared = true;
    nn_threads_set(threads);
    assert_int_equal(base_team_new(threads, &team), BASE_OK);
    count = convs_open(&s, work);
    for (int j = 0; j < s.n_max; j++)
        convs_reference(&s, j, &b);
    for (struct convs_work *w = work; w < work + count; w++) {
        const struct nn_conv *conv = w->work.conv;
        float *prepared;

        if (conv->answer != NULL) {
            prepared = convs_zeros(conv->prepared_floats(&s), sizeof *prepared);
            conv->prepare(&s, b.w, prepared);
            convs_take_scratch(&b, w->work.scratch_bytes);
            for (int n = 1; n <= s.n_max; n++)
                if (n < 5 || n == s.n_max)
                    all_tails(&w->work, team, n, &b, prepared);
            base_free(prepared);
        }
        nn_conv_work_fini(&w->work);
    }
    base_team_free(team);
    convs_buffers_free(&b);
    nn_threads_set(0);
}

static void every_answer_every_shape(void **unused)
{
    static const struct convs_case large[] = {
        /* several blocks and bands: shared by the threads, and one for each */
        {64, 16, 16, 32, {3, 3}, {1, 1}, {1, 1}, 1, 9, false, true},
        {16, 70, 66, 8, {3, 3}, {1, 1}, {1, 1}, 1, 2, false, true},
        {16, 70, 66, 8, {3, 3}, {2, 2}, {1, 1}, 1, 2, false, true},
    };

    (void)unused;
    for (size_t i = 0; i < convs_grid_count; i++)
        answers_of(&convs_grid[i], 1 + (int)i % 3);
    for (size_t i = 0; i < convs_known_count; i++)
        answers_of(&convs_known[i], 1 + (int)i % 3);
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
        cmocka_unit_test(inference),
        cmocka_unit_test(every_answer_every_shape),
    };

    setenv("PACELINE_CPU", LEVEL, 1); /* "": the best */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
