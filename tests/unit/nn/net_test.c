/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/net.h"
#include "nn/optimiser.h"
#include "support/nets.h"

static const struct nn_ready no_listener;

static const char residual[] = "input 3x8x8\nclasses 4\n"
                               "conv 12 3x3 pad=1\nbn\nrelu\nsave a\n"
                               "conv 12 3x3 pad=1 bias=off\nbn\nrelu\nadd a\nsave b\n"
                               "conv 16 3x3 stride=2 pad=1\nbn\nsave c\nload b\n"
                               "conv 16 1x1 stride=2\nadd c\nrelu\ndropout .3\ngavgpool\nflatten\n"
                               "dense 9\nrelu\ndense classes\n";

static void check(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

/* Buffers of a model with starting weights. */
struct flat {
    float *weights, *gradients, *statistics;
};

static struct flat flat_new(const struct nn_graph *graph)
{
    struct flat f;

    check(base_tensor(nn_graph_weight_floats(graph), sizeof(float), "w", &f.weights));
    check(base_tensor(nn_graph_weight_floats(graph), sizeof(float), "g", &f.gradients));
    check(base_tensor(nn_graph_stat_floats(graph), sizeof(float), "s", &f.statistics));
    nn_graph_start(graph, 5, f.weights, f.statistics);
    return f;
}

/* The same starting values again, without computing them again. */
static struct flat flat_copy(const struct nn_graph *graph, const struct flat *from)
{
    struct flat f;
    size_t weights = nn_graph_weight_floats(graph), statistics = nn_graph_stat_floats(graph);

    check(base_tensor(weights, sizeof(float), "w", &f.weights));
    check(base_tensor(weights, sizeof(float), "g", &f.gradients));
    check(base_tensor(statistics, sizeof(float), "s", &f.statistics));
    memcpy(f.weights, from->weights, weights * sizeof(float));
    memcpy(f.statistics, from->statistics, statistics * sizeof(float));
    return f;
}

static void flat_free(struct flat *f)
{
    base_free(f->weights);
    base_free(f->gradients);
    base_free(f->statistics);
}

static struct nn_net *net_new(const struct nn_graph *graph, const struct flat *f, int first,
                              int last, int n_max)
{
    int end = last > 0 ? last : nn_graph_layers(graph);
    size_t weight = nn_graph_weights_of(graph, first, end).from;
    struct nn_net *net;
    struct nn_setup setup = {.first = first,
                             .last = last,
                             .n_max = n_max,
                             .training = true,
                             .weights = f->weights + weight,
                             .gradients = f->gradients + weight,
                             .statistics =
                                 f->statistics + nn_graph_stats_of(graph, first, end).from};

    check(nn_net_new(graph, &setup, &net));
    return net;
}

/* Loss and gradients of the model cut before layer `cut` equal those of the whole, bit for bit. */
static void check_cut(const struct nn_graph *graph, const struct support_batch *b, int cut,
                      const struct flat *start, double loss, const struct flat *whole)
{
    struct flat f = flat_copy(graph, start);
    int n_max = b->batch.n + 1;
    struct nn_net *left = net_new(graph, &f, 0, cut, n_max);
    struct nn_net *right = net_new(graph, &f, cut, 0, n_max);
    struct nn_outcome outcome;

    check(nn_net_forward(left, &b->batch, true, &outcome));
    assert_null(outcome.predicted);
    support_carry(left, right, b->batch.n, false);
    check(nn_net_forward(right, &b->batch, true, &outcome));
    assert_true(outcome.loss_sum == loss);
    check(nn_net_backward(right, 0.5f, no_listener));
    support_carry(left, right, b->batch.n, true);
    check(nn_net_backward(left, 0.5f, no_listener));
    if (memcmp(f.gradients, whole->gradients, nn_graph_weight_floats(graph) * sizeof(float)) != 0)
        fail_msg("gradients differ when cut before layer %d", cut);
    assert_memory_equal(f.statistics, whole->statistics,
                        nn_graph_stat_floats(graph) * sizeof(float));
    nn_net_free(left);
    nn_net_free(right);
    flat_free(&f);
}

static void check_all_cuts(struct nn_graph *graph, int n)
{
    struct flat start = flat_new(graph), whole = flat_copy(graph, &start);
    struct nn_net *net = net_new(graph, &whole, 0, 0, n + 1);
    struct support_batch b;
    struct nn_outcome outcome;
    struct nn_edge edge;

    support_batch_init(&b, graph, n, 1);
    assert_int_equal(nn_net_entering(net, &edge, 1), 0);
    assert_int_equal(nn_net_leaving(net, &edge, 1), 0);
    check(nn_net_forward(net, &b.batch, true, &outcome));
    check(nn_net_backward(net, 0.5f, no_listener));
    for (int cut = 1; cut < nn_graph_layers(graph); cut++)
        check_cut(graph, &b, cut, &start, outcome.loss_sum, &whole);
    support_batch_fini(&b);
    nn_net_free(net);
    flat_free(&whole);
    flat_free(&start);
    nn_graph_free(graph);
}

static void any_cut_gives_the_same_bits(void **state)
{
    (void)state;
    check_all_cuts(support_graph(residual), 3);
    check_all_cuts(support_zoo("vgg11"), 1);
}

/* A range in the middle: what passes through it untouched keeps its gradient. */
static void three_parts_give_the_same_bits(void **state)
{
    struct nn_graph *graph = support_graph(residual);
    struct flat whole = flat_new(graph);
    struct nn_net *net = net_new(graph, &whole, 0, 0, 3);
    struct support_batch b;
    struct nn_outcome outcome, part;
    int layers = nn_graph_layers(graph);

    (void)state;
    support_batch_init(&b, graph, 3, 1);
    check(nn_net_forward(net, &b.batch, true, &outcome));
    check(nn_net_backward(net, 0.5f, no_listener));
    for (int cut = 1; cut + 2 < layers; cut++) {
        struct flat f = flat_new(graph);
        struct nn_net *parts[3] = {net_new(graph, &f, 0, cut, 3),
                                   net_new(graph, &f, cut, cut + 2, 3),
                                   net_new(graph, &f, cut + 2, layers, 3)};

        for (int i = 0; i < 3; i++) {
            if (i > 0)
                support_carry(parts[i - 1], parts[i], 3, false);
            check(nn_net_forward(parts[i], &b.batch, true, &part));
        }
        assert_true(part.loss_sum == outcome.loss_sum);
        for (int i = 2; i >= 0; i--) {
            check(nn_net_backward(parts[i], 0.5f, no_listener));
            if (i > 0)
                support_carry(parts[i - 1], parts[i], 3, true);
        }
        assert_memory_equal(f.gradients, whole.gradients,
                            nn_graph_weight_floats(graph) * sizeof(float));
        for (int i = 0; i < 3; i++)
            nn_net_free(parts[i]);
        flat_free(&f);
    }
    support_batch_fini(&b);
    nn_net_free(net);
    flat_free(&whole);
    nn_graph_free(graph);
}

static void a_small_batch_in_a_large_network(void **state)
{
    struct nn_graph *graph = support_graph(residual);
    struct flat f = flat_new(graph), g = flat_new(graph);
    struct nn_net *exact = net_new(graph, &f, 0, 0, 3), *roomy = net_new(graph, &g, 0, 0, 8);
    struct support_batch full, b;
    struct nn_outcome first, second;

    (void)state;
    support_batch_init(&full, graph, 8, 2);
    support_batch_init(&b, graph, 3, 1);
    /* Leaves something after the three samples that come next. */
    check(nn_net_forward(roomy, &full.batch, true, &second));
    check(nn_net_backward(roomy, 1.0f, no_listener));
    nn_graph_start(graph, 5, g.weights, g.statistics);
    check(nn_net_forward(exact, &b.batch, true, &first));
    check(nn_net_backward(exact, 1.0f, no_listener));
    check(nn_net_forward(roomy, &b.batch, true, &second));
    check(nn_net_backward(roomy, 1.0f, no_listener));
    support_near(first.loss_sum, second.loss_sum, 1e-5);
    for (size_t i = 0; i < nn_graph_weight_floats(graph); i++)
        support_near(f.gradients[i], g.gradients[i], 1e-5);
    nn_net_free(exact);
    nn_net_free(roomy);
    flat_free(&f);
    flat_free(&g);
    support_batch_fini(&full);
    support_batch_fini(&b);
    nn_graph_free(graph);
}

struct ranges {
    size_t next, floats, count;
};

static void take_range(void *context, size_t offset, size_t count)
{
    struct ranges *r = context;

    assert_int_equal(offset + count, r->next); /* last to first, without gaps */
    r->next = offset;
    r->floats += count;
    r->count++;
}

static void ready_ranges_cover_the_buffer_backwards(void **state)
{
    struct nn_graph *graph = support_graph(residual);
    struct flat f = flat_new(graph);
    struct nn_net *net = net_new(graph, &f, 0, 0, 2);
    struct ranges r = {.next = nn_graph_weight_floats(graph)};
    struct support_batch b;
    struct nn_outcome outcome;

    (void)state;
    support_batch_init(&b, graph, 2, 1);
    check(nn_net_forward(net, &b.batch, true, &outcome));
    check(nn_net_backward(net, 1.0f, (struct nn_ready){take_range, &r}));
    assert_int_equal(r.next, 0);
    assert_int_equal(r.floats, nn_graph_weight_floats(graph));
    assert_int_equal(r.count, 9);
    support_batch_fini(&b);
    nn_net_free(net);
    flat_free(&f);
    nn_graph_free(graph);
}

static void mnist_cnn_learns_a_batch(void **state)
{
    struct nn_graph *graph = support_zoo("mnist-cnn");
    struct flat f = flat_new(graph);
    struct nn_net *net = net_new(graph, &f, 0, 0, 16);
    size_t count = nn_graph_weight_floats(graph);
    float *slot = base_calloc(count, sizeof *slot);
    const struct nn_optimiser *sgd;
    struct support_batch b;
    struct nn_outcome outcome;
    double before = 0;

    (void)state;
    support_batch_init(&b, graph, 16, 1);
    check(nn_optimiser_find("sgd", &sgd));
    for (uint64_t step = 1; step <= 40; step++) {
        struct nn_hyper hyper = {.lr = 0.02, .momentum = 0.9, .gradient_scale = 1, .step = step};
        struct nn_update update = {count, f.gradients, f.weights, {slot}, f.weights, {slot}};

        b.batch.samples.epoch = (uint32_t)step; /* another dropout each time */
        check(nn_net_forward(net, &b.batch, true, &outcome));
        if (step == 1)
            before = outcome.loss_sum / 16;
        check(nn_net_backward(net, 1.0f / 16, no_listener));
        sgd->update(&hyper, &update);
    }
    support_near(before, log(10), 0.2);
    check(nn_net_forward(net, &b.batch, false, &outcome));
    assert_true(outcome.loss_sum / 16 < 0.5 * before);
    assert_true(outcome.correct >= 12);
    support_batch_fini(&b);
    base_free(slot);
    nn_net_free(net);
    flat_free(&f);
    nn_graph_free(graph);
}

struct seen {
    int calls, n, index;
    float first;
};

static void see(void *context, const struct nn_node *node, int n, const float *values)
{
    struct seen *seen = context;

    seen->calls++;
    seen->n = n;
    seen->index = node->index;
    seen->first = values[0];
}

static void hooks_and_outputs(void **state)
{
    struct nn_graph *graph = support_graph("input 3x2x2\nclasses 3\nconv 4 1x1\nrelu\n"
                                           "dense classes\n");
    struct nn_setup setup = {.n_max = 2, .keep_outputs = true};
    struct nn_net *net;
    struct support_batch b;
    struct nn_outcome outcome;
    struct seen seen = {0};
    float conv[16], relu[16], scores[3], chances[3];

    (void)state;
    support_batch_init(&b, graph, 2, 1);
    check(nn_net_new(graph, &setup, &net));
    nn_graph_start(graph, 1, nn_net_weights(net), nn_net_statistics(net));
    nn_net_hook(net, 1, see, &seen);
    check(nn_net_forward(net, &b.batch, false, &outcome));
    check(nn_net_output(net, 0, 0, conv));
    check(nn_net_output(net, 1, 0, relu));
    for (int i = 0; i < 16; i++)
        assert_true(relu[i] == (conv[i] > 0 ? conv[i] : 0));
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.index, 1);
    assert_true(seen.first == relu[0]);
    check(nn_net_output(net, 2, 1, scores));
    check(nn_net_output(net, 3, 1, chances));
    support_near(chances[0] + chances[1] + chances[2], 1, 1e-6);
    support_near(log(chances[0] / chances[1]), scores[0] - scores[1], 1e-5);
    nn_net_hook(net, 1, NULL, NULL);
    check(nn_net_forward(net, &b.batch, false, &outcome));
    assert_int_equal(seen.calls, 1);
    assert_int_equal(nn_net_output(net, 9, 0, conv), BASE_ERR_INTERNAL);
    nn_net_free(net);
    support_batch_fini(&b);
    nn_graph_free(graph);
}

static void predictions_without_labels(void **state)
{
    struct nn_graph *graph = support_graph("input 4x1x1\nclasses 4\ndense classes\nmse\n");
    struct nn_setup setup = {.n_max = 2};
    float x[8] = {0, 0, 9, 0, 7, 1, 0, 0}, eye[16] = {0};
    int32_t labels[2] = {2, 3}, wrong[2] = {0, 4};
    struct nn_batch batch = {.n = 2, .x = x};
    struct nn_outcome outcome;
    struct nn_net *net;

    (void)state;
    check(nn_net_new(graph, &setup, &net));
    for (int i = 0; i < 4; i++)
        eye[5 * i] = 1;
    nn_tensor_import(nn_graph_param(graph, 0), eye, nn_net_weights(net));
    check(nn_net_forward(net, &batch, false, &outcome));
    assert_int_equal(outcome.predicted[0], 2);
    assert_int_equal(outcome.predicted[1], 0);
    assert_int_equal(outcome.correct, 0);
    assert_true(outcome.loss_sum == 0);
    batch.samples.labels = labels;
    check(nn_net_forward(net, &batch, false, &outcome));
    assert_int_equal(outcome.correct, 1);
    support_near(outcome.loss_sum, 64 / 4.0 + (49 + 1 + 1) / 4.0, 1e-6);
    assert_int_equal(nn_net_backward(net, 1, no_listener), BASE_ERR_INTERNAL);
    batch.samples.labels = wrong;
    assert_int_equal(nn_net_forward(net, &batch, false, &outcome), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "label 4"));
    batch.n = 3;
    assert_int_equal(nn_net_forward(net, &batch, false, &outcome), BASE_ERR_INTERNAL);
    nn_net_free(net);
    nn_graph_free(graph);
}

static void kernel_plan_is_told_and_taken(void **state)
{
    struct nn_graph *graph = support_graph(residual);
    struct nn_setup setup = {.n_max = 1};
    struct nn_net *net, *again;

    (void)state;
    check(nn_net_new(graph, &setup, &net));
    assert_string_equal(nn_net_kernels(net), "0=onednn 4=onednn 9=onednn 13=onednn");
    setup.kernels = nn_net_kernels(net);
    check(nn_net_new(graph, &setup, &again));
    assert_string_equal(nn_net_kernels(again), nn_net_kernels(net));
    nn_net_free(again);
    setup.kernels = "9=nonesuch";
    assert_int_equal(nn_net_new(graph, &setup, &again), BASE_ERR_USAGE);
    assert_null(again);
    assert_non_null(strstr(base_message(), "nonesuch"));
    setup = (struct nn_setup){.n_max = 0};
    assert_int_equal(nn_net_new(graph, &setup, &again), BASE_ERR_USAGE);
    nn_net_free(net);
    nn_graph_free(graph);
}

/* Stands for a second worker that has the same samples. */
static void twice(void *context, float *sums, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++)
        sums[i] *= 2;
}

static void reduce_sums_over_workers(void **state)
{
    struct nn_graph *graph = support_graph("input 9x3x3\nclasses 3\nconv 8 1x1\nbn\nrelu\n"
                                           "dense classes\n");
    struct flat one = flat_new(graph), two = flat_new(graph);
    struct nn_setup setup = {.n_max = 4, .training = true};
    struct nn_net *whole, *half;
    struct support_batch b;
    struct nn_outcome outcome;
    size_t values;

    (void)state;
    support_batch_init(&b, graph, 4, 1);
    values = 2 * nn_shape_values(nn_graph_input(graph));
    memcpy(b.x + values, b.x, values * sizeof *b.x);
    memcpy(b.labels + 2, b.labels, 2 * sizeof *b.labels);
    setup.weights = one.weights, setup.gradients = one.gradients;
    setup.statistics = one.statistics;
    check(nn_net_new(graph, &setup, &whole));
    setup.weights = two.weights, setup.gradients = two.gradients;
    setup.statistics = two.statistics;
    setup.reduce = (struct nn_reduce){.sum = twice};
    check(nn_net_new(graph, &setup, &half));
    check(nn_net_forward(whole, &b.batch, true, &outcome));
    check(nn_net_backward(whole, 1, no_listener));
    b.batch.n = 2;
    check(nn_net_forward(half, &b.batch, true, &outcome));
    check(nn_net_backward(half, 1, no_listener));
    for (size_t i = 0; i < nn_graph_weight_floats(graph); i++)
        support_near(one.gradients[i], 2 * two.gradients[i], 1e-5);
    for (size_t i = 0; i < nn_graph_stat_floats(graph); i++)
        support_near(one.statistics[i], two.statistics[i], 1e-6);
    nn_net_free(whole);
    nn_net_free(half);
    flat_free(&one);
    flat_free(&two);
    support_batch_fini(&b);
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_gives_the_same_bits),
        cmocka_unit_test(three_parts_give_the_same_bits),
        cmocka_unit_test(a_small_batch_in_a_large_network),
        cmocka_unit_test(ready_ranges_cover_the_buffer_backwards),
        cmocka_unit_test(mnist_cnn_learns_a_batch),
        cmocka_unit_test(hooks_and_outputs),
        cmocka_unit_test(predictions_without_labels),
        cmocka_unit_test(kernel_plan_is_told_and_taken),
        cmocka_unit_test(reduce_sums_over_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
