/* SPDX-License-Identifier: MIT
 *
 * Cuts of models: every layer is placed once, what is computed as one stays together, and the
 * worker with the most to do has nearly as little as the best cut of all would give it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "support/nets.h"
#include "train/strategies/ring/costs.h"

/* ---- against an exhaustive search ---- */

/* A number below `below`; the same ones in every run. */
static uint32_t draw(uint64_t *rng, uint32_t below)
{
    *rng += 0x9e3779b97f4a7c15;
    return (uint32_t)(base_rng_mix(*rng) % below);
}

struct search {
    const double *costs, *slow;
    int units;
    struct ring_cut *cut;
    double of[COMM_MAX_WORKERS], best;
};

/* All ways to place the units from `at` on in the stages from `stage` on. */
static void place_rest(struct search *s, int stage, int at)
{
    int worker, left = s->cut->stages - 1 - stage;
    double before;

    if (stage == s->cut->stages) {
        double most = 0;

        for (int i = 0; i < s->cut->workers; i++)
            most = fmax(most, s->of[i]);
        s->best = fmin(s->best, most);
        return;
    }
    worker = ring_cut_worker(s->cut, stage);
    before = s->of[worker];
    for (int end = at + 1; end <= s->units - left; end++) {
        s->of[worker] += s->costs[end - 1] * (s->slow != NULL ? s->slow[worker] : 1);
        if (s->of[worker] >= s->best)
            break;
        if (left > 0 || end == s->units)
            place_rest(s, stage + 1, end);
    }
    s->of[worker] = before;
}

static void check_costs(const double *costs, int units, const double *slow, int workers, int laps,
                        enum ring_order order, double tolerance)
{
    struct ring_cut cut = {.workers = workers, .stages = workers * laps, .order = order};
    struct search all = {
        .costs = costs, .slow = slow, .units = units, .cut = &cut, .best = INFINITY};

    ring_cut_costs(costs, units, slow, &cut);
    assert_int_equal(cut.first[0], 0);
    assert_int_equal(cut.first[cut.stages], units);
    for (int i = 0; i < cut.stages; i++)
        assert_true(cut.first[i] < cut.first[i + 1]);
    place_rest(&all, 0, 0);
    if (ring_cut_largest(costs, slow, &cut) > all.best * tolerance)
        fail_msg("%d units, %d workers, %d laps: %g, but %g is possible", units, workers, laps,
                 ring_cut_largest(costs, slow, &cut), all.best);
}

static void test_against_all_cuts(void **state)
{
    uint64_t rng = 19;
    double costs[16], slow[4];

    (void)state;
    for (int i = 0; i < 100; i++) {
        int units = 8 + (int)draw(&rng, 9);

        for (int j = 0; j < 4; j++)
            slow[j] = 1 + draw(&rng, 300) / 100.0;

        for (int j = 0; j < units; j++)
            costs[j] = (double)(1 + draw(&rng, 1000));
        for (int workers = 2; workers <= 4; workers++) {
            check_costs(costs, units, NULL, workers, 1, RING_AROUND, 1.000001);
            check_costs(costs, units, NULL, workers, 2, (enum ring_order)(i % 2), 1.000001);
            check_costs(costs, units, slow, workers, 1, RING_AROUND, 1.000001);
            check_costs(costs, units, slow, workers, 2, (enum ring_order)(i % 2), 1.000001);
        }
    }
}

/* ---- models ---- */

static void test_cuts_of_models(void **state)
{
    static const char *const models[] = {"vgg11", "resnet18"};

    (void)state;
    for (int m = 0; m < 2; m++) {
        struct nn_graph *graph = support_zoo(models[m]);
        struct ring_costs c;
        double costs[128];

        ring_costs_estimate(graph, 16, &c);
        assert_in_range(c.units, 8, 100);
        for (int i = 0; i < c.units; i++)
            costs[i] = c.at[i].part[0] + c.at[i].part[1] + c.at[i].part[2];
        for (int workers = 2; workers <= 4; workers++)
            for (int laps = 1; laps <= 2; laps++)
                check_costs(costs, c.units, NULL, workers, laps, RING_AROUND, 1.02);
        ring_costs_fini(&c);
        nn_graph_free(graph);
    }
}

/* Workers that differ by chance are alike; of a slow one the slowness is taken out of the costs,
 * and what one of them did not measure is estimated. */
static void test_measured(void **state)
{
    struct nn_graph *graph = support_zoo("mlp:64x6");
    struct ring_options options = {.laps = 1, .split = true};
    struct ring_unit all[3][16] = {0};
    struct ring_costs c;
    struct ring_times times;
    struct ring_cut cut;

    (void)state;
    ring_costs_estimate(graph, 16, &c);
    assert_in_range(c.units, 6, 16);
    assert_false(ring_costs_measured(&c, &all[0][0], 3)); /* nothing is known */
    for (int worker = 0; worker < 3; worker++)
        for (int i = 1; i < c.units; i++)
            for (int part = 0; part < RING_PARTS; part++)
                (&all[0][0])[worker * c.units + i].part[part] =
                    (i + 1) * (part + 1) * (worker == 1 ? 4.0 : 1.0 + 0.02 * worker);
    assert_true(ring_costs_measured(&c, &all[0][0], 3));
    assert_true(fabs(c.slow[0] - 1) < 1e-9 && fabs(c.slow[1] - 4) < 1e-9);
    for (int i = 1; i < c.units; i++)
        assert_true(fabs(c.at[i].part[1] / (2.0 * (i + 1)) - 1) < 1e-9);
    assert_true(c.at[0].part[0] > 0 && isfinite(c.at[0].part[0]));
    ring_costs_cut(&c, &options, 3, 1, RING_AROUND, &cut);
    ring_costs_times(&c, &cut, &times); /* the slow one has less to do, and takes about as long */
    assert_true(times.part[1][0] / 4 < times.part[0][0] && times.part[1][0] / 4 < times.part[2][0]);
    assert_true(ring_costs_unevenness(&c, &cut) >= 1);
    for (int i = 1; i < c.units; i++)
        for (int part = 0; part < RING_PARTS; part++)
            (&all[0][0])[c.units + i].part[part] = (i + 1) * (part + 1) * 1.05;
    assert_true(ring_costs_measured(&c, &all[0][0], 3));
    assert_true(c.slow[0] == 1 && c.slow[1] == 1 && c.slow[2] == 1);
    ring_costs_fini(&c);
    nn_graph_free(graph);
}

static void check_model(const char *model)
{
    struct nn_graph *graph = support_zoo(model);

    for (int workers = 1; workers <= 9; workers++)
        for (int64_t laps = 1; laps <= 3; laps++) {
            struct ring_options options = {.microbatches = 4, .laps = laps, .order = RING_FOLD};
            struct ring_cut cut;
            int placed = 0;

            ring_cut_make(graph, &options, workers, &cut);
            assert_in_range(cut.stages, 1, workers * laps);
            for (int worker = 0; worker < workers; worker++) {
                int stages[RING_MAX_LAPS], count = ring_cut_stages(&cut, worker, stages);

                for (int i = 0; i < count; i++) {
                    assert_int_equal(ring_cut_worker(&cut, stages[i]), worker);
                    placed += cut.first[stages[i] + 1] - cut.first[stages[i]];
                }
            }
            assert_int_equal(placed, nn_graph_layers(graph));
            assert_int_equal(cut.first[cut.stages], nn_graph_layers(graph));
        }
    nn_graph_free(graph);
}

static void test_every_layer_once(void **state)
{
    (void)state;
    check_model("mnist-cnn");
    check_model("vgg11");
    check_model("resnet18");
    check_model("mlp:8x2");
}

/* What crosses a cut is what the two networks there say. */
static void test_crossings(void **state)
{
    struct nn_graph *graph = support_zoo("resnet18");
    struct nn_edge edges[8];
    int layers = nn_graph_layers(graph);

    (void)state;
    for (int layer = 1; layer < layers - 1; layer += 3) {
        struct nn_net *net = NULL;
        size_t floats = 0;
        int count;

        assert_int_equal(
            nn_net_new(graph, &(struct nn_setup){.first = layer, .n_max = 1, .training = true},
                       &net),
            BASE_OK);
        count = nn_net_entering(net, edges, 8);
        assert_in_range(count, 1, 8);
        for (int i = 0; i < count; i++)
            floats += nn_shape_floats(edges[i].shape);
        assert_int_equal(floats, ring_cut_crossing(graph, layer));
        nn_net_free(net);
    }
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_all_cuts), cmocka_unit_test(test_cuts_of_models),
        cmocka_unit_test(test_measured),         cmocka_unit_test(test_every_layer_once),
        cmocka_unit_test(test_crossings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
