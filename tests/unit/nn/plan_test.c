/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/plan.h"
#include "support/nets.h"

static struct nn_plan *plan(const struct nn_graph *graph, struct nn_plan_setup setup)
{
    struct nn_plan *p;

    if (setup.last == 0)
        setup.last = nn_graph_layers(graph);
    if (nn_plan_new(graph, &setup, &p) != BASE_OK)
        fail_msg("%s", base_message());
    return p;
}

/* No two buffers that live at the same time share a byte; all lie inside the block. */
static void check_apart(const struct nn_plan *p)
{
    for (int i = 0; i < p->count; i++) {
        const struct nn_plan_buffer *a = &p->buffers[i];

        assert_true(a->offset + a->bytes <= p->bytes);
        assert_int_equal(a->offset % BASE_ALIGN, 0);
        assert_true(a->begin <= a->end);
        for (int j = 0; j < i; j++) {
            const struct nn_plan_buffer *b = &p->buffers[j];
            bool meet = a->begin <= b->end && b->begin <= a->end;

            if (meet && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
                fail_msg("buffers %d and %d share memory", i, j);
        }
    }
}

static void buffers_never_meet(void **state)
{
    static const char *const models[] = {"vgg11", "resnet18", "mnist-cnn", "mlp:9x3"};

    (void)state;
    for (size_t m = 0; m < 4; m++) {
        struct nn_graph *graph = support_zoo(models[m]);

        for (int kind = 0; kind < 16; kind++) {
            struct nn_plan_setup setup = {.n = 3,
                                          .training = kind & 1,
                                          .keep_outputs = kind & 2,
                                          .input_gradient = kind & 4,
                                          .split = kind & 8};
            struct nn_plan *p = plan(graph, setup);

            check_apart(p);
            nn_plan_free(p);
        }
        for (int cut = 1; cut + 3 < nn_graph_layers(graph); cut += 2) {
            struct nn_plan *p = plan(
                graph,
                (struct nn_plan_setup){.first = cut, .last = cut + 3, .n = 2, .training = true});

            check_apart(p);
            assert_true(p->enters >= 1 && p->leaves >= 1);
            nn_plan_free(p);
        }
        nn_graph_free(graph);
    }
}

/* Several batches in flight: what lives from forward to backward is in the kept part, and nothing
 * lies half in it. */
static void check_kept(const struct nn_plan *p, int in_flight)
{
    for (int i = 0; i < p->count; i++) {
        const struct nn_plan_buffer *b = &p->buffers[i];
        bool lives_on = b->begin < p->layers && b->end >= p->layers;

        if (b->offset + b->bytes > p->kept && (lives_on || b->offset < p->kept))
            fail_msg("buffer %d, alive from %d to %d, lies outside of the kept part", i, b->begin,
                     b->end);
    }
    assert_int_equal(p->total, (size_t)in_flight * p->kept + p->bytes - p->kept);
}

static void batches_in_flight_share_what_does_not_last(void **state)
{
    static const char *const models[] = {"vgg11", "resnet18", "mnist-cnn", "mlp:9x3"};

    (void)state;
    for (size_t m = 0; m < 4; m++) {
        struct nn_graph *graph = support_zoo(models[m]);
        struct nn_plan_setup setup = {.n = 3, .training = true};
        struct nn_plan *one = plan(graph, setup);

        assert_int_equal(one->kept, one->bytes);
        assert_int_equal(one->total, one->bytes);
        for (setup.in_flight = 2; setup.in_flight <= 4; setup.in_flight++) {
            struct nn_plan *p = plan(graph, setup);

            check_apart(p);
            check_kept(p, setup.in_flight);
            assert_true(p->total <= (size_t)setup.in_flight * one->total);
            assert_true(p->kept < one->bytes);
            nn_plan_free(p);
        }
        for (setup.first = 1; setup.first + 3 < nn_graph_layers(graph); setup.first += 2) {
            struct nn_plan *p;

            setup.last = setup.first + 3;
            p = plan(graph, setup);
            check_apart(p);
            check_kept(p, setup.in_flight);
            nn_plan_free(p);
        }
        nn_plan_free(one);
        nn_graph_free(graph);
    }
}

static void in_place_only_when_nobody_looks(void **state)
{
    struct nn_graph *graph =
        support_graph("input 8x4x4\nconv 8 1x1\nrelu\nsave a\nconv 8 1x1\nbn\nrelu\nadd a\n"
                      "relu\ndense 2\n");
    struct nn_plan *p = plan(graph, (struct nn_plan_setup){.n = 1, .training = true});

    (void)state;
    assert_int_equal(p->nodes[1].x, p->nodes[1].y);     /* conv does not need its y */
    assert_int_equal(p->nodes[2].x, p->nodes[2].y);     /* save is the identity */
    assert_int_not_equal(p->nodes[4].x, p->nodes[4].y); /* bn needs x */
    assert_int_equal(p->nodes[5].x, p->nodes[5].y);
    assert_int_not_equal(p->nodes[6].x, p->nodes[6].y); /* relu before needs its y */
    assert_int_equal(p->nodes[6].other, p->nodes[2].y);
    assert_int_equal(p->nodes[7].dx, p->nodes[7].dy);
    assert_int_equal(p->nodes[0].dx, NN_PLAN_NONE); /* no layer wants it */
    assert_true(p->nodes[6].first_use);
    assert_int_equal(p->nodes[6].dother, p->nodes[2].dother);
    nn_plan_free(p);
    p = plan(graph, (struct nn_plan_setup){.n = 1, .keep_outputs = true});
    for (int i = 0; i < p->layers; i++)
        assert_true(p->nodes[i].y_stays);
    assert_int_not_equal(p->nodes[1].x, p->nodes[1].y);
    nn_plan_free(p);
    nn_graph_free(graph);
}

/* A chain without training needs two buffers at a time. */
static void inference_reuses_memory(void **state)
{
    struct nn_graph *graph =
        support_graph("input 8x4x4\nconv 8 1x1\nconv 8 1x1\nconv 8 1x1\nconv 8 1x1\nflatten\n"
                      "dense 8\n");
    struct nn_plan *p = plan(graph, (struct nn_plan_setup){.n = 2});
    size_t image = 2 * 8 * 16 * sizeof(float);

    (void)state;
    assert_true(p->bytes >= 2 * image && p->bytes <= 2 * image + 4 * 64);
    nn_plan_free(p);
    nn_graph_free(graph);
}

static void refuses_nonsense(void **state)
{
    struct nn_graph *graph = support_graph("input 4x1x1\ndense 3\ndense 2\n");
    struct nn_plan_setup setup = {.last = 2, .n = 0};
    struct nn_plan *p;

    (void)state;
    assert_int_equal(nn_plan_new(graph, &setup, &p), BASE_ERR_USAGE);
    assert_null(p);
    setup.n = 1;
    setup.in_flight = -1;
    assert_int_equal(nn_plan_new(graph, &setup, &p), BASE_ERR_USAGE);
    setup.in_flight = 1 << 20;
    assert_int_equal(nn_plan_new(graph, &setup, &p), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "in flight"));
    setup.in_flight = 2;
    setup.first = 2;
    assert_int_equal(nn_plan_new(graph, &setup, &p), BASE_ERR_INTERNAL);
    setup.first = 0;
    setup.last = 9;
    assert_int_equal(nn_plan_new(graph, &setup, &p), BASE_ERR_INTERNAL);
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_never_meet),
        cmocka_unit_test(batches_in_flight_share_what_does_not_last),
        cmocka_unit_test(in_place_only_when_nobody_looks),
        cmocka_unit_test(inference_reuses_memory),
        cmocka_unit_test(refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
