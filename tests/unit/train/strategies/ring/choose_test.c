/* SPDX-License-Identifier: MIT
 *
 * The rule on paper takes as long as the formula says; what is left open is chosen by it, within
 * what fits, and the same in every call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <cmocka.h>

#include "support/nets.h"
#include "train/strategies/ring/choose.h"

/* Even stages whose worker takes 1 for each part of a micro-batch. */
static struct ring_outlook play(int workers, int laps, int pieces, bool split, bool overlap)
{
    struct ring_cut cut = {.workers = workers,
                           .stages = workers * laps,
                           .spare = split ? workers : 0,
                           .overlap = overlap};
    struct ring_times times;
    struct ring_outlook outlook;

    for (int i = 0; i < cut.stages; i++)
        for (int part = 0; part < RING_PARTS; part++)
            times.part[i][part] = 1.0 / laps;
    ring_foresee(&cut, &times, pieces, &outlook);
    return outlook;
}

static void test_formula(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 8; workers++)
        for (int laps = 1; laps <= 2; laps++) {
            double n = workers, m = 4 * workers;
            struct ring_outlook ready = play(workers, laps, (int)m, true, false),
                                fused = play(workers, 1, (int)m, false, false),
                                ahead = play(workers, laps, (int)m, true, true);

            /* 1F1B's bubble is exact; the ready rule's is a lower bound, and nearly kept. */
            assert_true(fabs(fused.idle - (n - 1) / (m + n - 1)) < 1e-9);
            assert_true(ready.idle >= (n - 1) / (3 * laps * m + n - 1) - 1e-9);
            assert_true(ready.idle <= 1.6 * (n - 1) / (3 * laps * m + n - 1) + 1e-9);
            /* No worker waits where the next step follows at once. */
            assert_true(fabs(ahead.idle) < 1e-9 && fabs(ahead.seconds - 3 * m) < 1e-9);
            for (int i = 0; i < workers; i++)
                assert_true(fabs(ready.busy[i] - 3 * m) < 1e-9);
        }
}

/* One worker of three takes twice as long: the others wait for it. */
static void test_uneven(void **state)
{
    struct ring_cut cut = {.workers = 3, .stages = 3, .spare = 3};
    struct ring_times times = {{{1, 1, 1}, {2, 2, 2}, {1, 1, 1}}};
    struct ring_outlook outlook;

    (void)state;
    ring_foresee(&cut, &times, 32, &outlook);
    assert_true(outlook.seconds >= 32 * 6 && outlook.seconds < 32 * 6 + 8);
    assert_true(fabs(outlook.idle - (1 - 32 * 12 / (3 * outlook.seconds))) < 1e-9);
}

static struct ring_options open_options(void)
{
    return (struct ring_options){.order = RING_ANY, .replicate = "on", .split = true};
}

static void test_choice(void **state)
{
    struct nn_graph *graph = support_zoo("mlp:1024x8");
    struct ring_options a = open_options(), b = open_options(), given = open_options();

    (void)state;
    assert_true(ring_choose(&a, graph, 2, 512, 1));
    assert_in_range(a.microbatches, 2, 64);
    assert_true(ring_choose(&b, graph, 2, 512, 1));
    assert_int_equal(a.microbatches, b.microbatches);
    assert_int_equal(a.chosen.workers, 2);
    /* Where steps overlap three keep both workers at work; where they do not, more are worth it. */
    b = open_options();
    a.overlap = RING_OVERLAP_AUTO;
    b.overlap = RING_OVERLAP_OFF;
    assert_true(ring_choose(&a, graph, 2, 512, 1) && ring_choose(&b, graph, 2, 512, 1));
    assert_int_equal(a.microbatches, 3);
    assert_int_equal(b.microbatches, 4);
    /* Less memory was asked for: more pieces, until there are no more. */
    assert_true(ring_choose(&b, graph, 2, 512, 8));
    assert_int_equal(b.microbatches, 8);
    assert_false(ring_choose(&b, graph, 2, 512, 128));
    given.microbatches = 3;
    given.laps = 2;
    given.order = RING_FOLD;
    assert_true(ring_choose(&given, graph, 2, 512, 1));
    assert_int_equal(given.microbatches, 3);
    assert_int_equal(given.chosen.stages, 4);
    assert_int_equal(given.chosen.order, RING_FOLD);
    assert_false(ring_choose(&given, graph, 2, 512, 6));
    a = open_options();
    assert_true(ring_choose(&a, graph, 4, 3, 1)); /* no more pieces than samples */
    assert_in_range(a.microbatches, 1, 3);
    nn_graph_free(graph);
}

static bool never(void *context, const struct ring_options *options)
{
    (void)options;
    ++*(int *)context;
    return false;
}

/* Where stages are even and messages cost nothing more laps are better, if there is memory. */
static void test_laps(void **state)
{
    struct nn_graph *graph = support_zoo("mlp:1024x16");
    struct ring_options options = open_options();
    struct ring_costs costs;
    int asked = 0;

    (void)state;
    options.microbatches = 8;
    ring_costs_estimate(graph, 256, &costs);
    for (int i = 0; i < costs.units; i++)
        costs.at[i] = (struct ring_unit){.part = {1, 1, 1}};
    ring_choose_cut(&options, &costs, 4, (struct ring_fits){0});
    assert_true(options.chosen.stages > 4);
    ring_choose_cut(&options, &costs, 4, (struct ring_fits){never, &asked});
    assert_true(asked > 0);
    assert_int_equal(options.chosen.stages, 4);
    for (int i = 0; i < costs.units; i++)
        costs.at[i].message = 5;
    ring_choose_cut(&options, &costs, 4, (struct ring_fits){0});
    assert_int_equal(options.chosen.stages, 4);
    ring_costs_fini(&costs);
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_laps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
