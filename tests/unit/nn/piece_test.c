/* SPDX-License-Identifier: MIT
 *
 * Several batches in flight give the bits of one after the other: in one network, and in networks
 * of neighbouring layers that hand each other what crosses their edges, as a pipeline does; also
 * where gradients of weights are computed after the forward and backward of a later batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/conv/kernelplan.h"
#include "nn/fuse.h"
#include "support/nets.h"

enum { N = 2, BATCHES = 5, MAX_STAGES = 3 };

static const struct nn_ready untold;

/* Everything that a piece can mix up: batch statistics, argmax of pools, dropout, residuals, a
 * blocked input that is copied. */
static const char vgg_like[] = "input 3x16x16\nclasses 10\n"
                               "conv 16 3x3 pad=1\nbn\nrelu\nmaxpool 2\n"
                               "conv 24 3x3 pad=1\nrelu\nmaxpool 2\ndropout .25\n"
                               "conv 32 3x3 pad=1\nbn\nrelu\ndropout .4\nmaxpool 2\n"
                               "flatten\ndense 40\nrelu\ndropout .5\ndense classes\n";
static const char blocked[] = "input 9x8x8\nclasses 4\nrelu\nsave a\nconv 9 3x3 pad=1\nbn\nadd a\n"
                              "avgpool 2\ndense classes\nmse\n";

static void check(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

/* ---- one after the other ---- */

/* What each batch gave, and the statistics after all of them. */
struct results {
    const struct nn_graph *graph;
    struct support_batch batches[BATCHES];
    char *kernels;
    double loss[BATCHES];
    int correct[BATCHES];
    float *gradients[BATCHES], *statistics;
};

/* The last batch is a smaller one. */
static void make_batches(struct results *r)
{
    for (int i = 0; i < BATCHES; i++) {
        support_batch_init(&r->batches[i], r->graph, i + 1 < BATCHES ? N : N - 1, (uint32_t)i);
        for (int j = 0; j < r->batches[i].batch.n; j++)
            r->batches[i].ids[j] = (uint32_t)(1000 * i + j);
    }
}

static void results_init(struct results *r, const struct nn_graph *graph)
{
    struct nn_setup setup = {.n_max = N, .training = true};
    size_t floats = nn_graph_weight_floats(graph), stats = nn_graph_stat_floats(graph);
    struct nn_outcome outcome;
    struct nn_net *net;

    *r = (struct results){.graph = graph};
    check(nn_kernelplan_make(graph, &setup, (struct nn_kernelplan_wish){0}, &r->kernels));
    setup.kernels = r->kernels;
    check(nn_net_new(graph, &setup, &net));
    nn_graph_start(graph, 5, nn_net_weights(net), nn_net_statistics(net));
    make_batches(r);
    for (int i = 0; i < BATCHES; i++) {
        check(nn_net_forward(net, &r->batches[i].batch, true, &outcome));
        check(nn_net_backward(net, 1.0f / N, untold));
        r->loss[i] = outcome.loss_sum;
        r->correct[i] = outcome.correct;
        r->gradients[i] = base_calloc(floats, sizeof(float));
        memcpy(r->gradients[i], nn_net_gradients(net), floats * sizeof(float));
    }
    r->statistics = base_calloc(stats, sizeof(float));
    memcpy(r->statistics, nn_net_statistics(net), stats * sizeof(float));
    nn_net_free(net);
}

static void results_fini(struct results *r)
{
    for (int i = 0; i < BATCHES; i++) {
        support_batch_fini(&r->batches[i]);
        base_free(r->gradients[i]);
    }
    base_free(r->statistics);
    base_free(r->kernels);
}

/* ---- in flight ---- */

/* A model cut into stages, each with the floats of its layers alone. */
struct pipeline {
    const struct results *wanted;
    int stages, in_flight;
    int cuts[MAX_STAGES + 1];
    bool split; /* gradients of weights come a batch later */
    struct nn_net *net[MAX_STAGES];
    float *gradients[BATCHES]; /* of the whole model */
};

static void pipeline_init(struct pipeline *p)
{
    const struct nn_graph *graph = p->wanted->graph;

    for (int i = 0; i < BATCHES; i++)
        p->gradients[i] = base_calloc(nn_graph_weight_floats(graph), sizeof(float));
    for (int i = 0; i < p->stages; i++) {
        struct nn_setup setup = {.first = p->cuts[i],
                                 .last = p->cuts[i + 1],
                                 .n_max = N,
                                 .in_flight = p->in_flight,
                                 .training = true,
                                 .split = p->split,
                                 .kernels = p->wanted->kernels};

        check(nn_net_new(graph, &setup, &p->net[i]));
        nn_graph_start_layers(graph, p->cuts[i], p->cuts[i + 1], 5, nn_net_weights(p->net[i]),
                              nn_net_statistics(p->net[i]));
    }
}

static void pipeline_forward(struct pipeline *p, int number)
{
    const struct support_batch *b = &p->wanted->batches[number];
    struct nn_outcome outcome;

    for (int i = 0; i < p->stages; i++) {
        nn_net_piece(p->net[i], number % p->in_flight);
        if (i > 0)
            support_carry(p->net[i - 1], p->net[i], b->batch.n, false);
        check(nn_net_forward(p->net[i], &b->batch, true, &outcome));
    }
    assert_true(outcome.loss_sum == p->wanted->loss[number]);
    assert_int_equal(outcome.correct, p->wanted->correct[number]);
}

/* The network of a stage, about to compute gradients of a batch. */
static struct nn_net *pipeline_stage(struct pipeline *p, int stage, int number)
{
    const struct nn_graph *graph = p->wanted->graph;
    struct nn_range range = nn_graph_weights_of(graph, p->cuts[stage], p->cuts[stage + 1]);

    nn_net_piece(p->net[stage], number % p->in_flight);
    nn_net_gradients_at(p->net[stage], p->gradients[number] + range.from);
    return p->net[stage];
}

static void pipeline_backward(struct pipeline *p, int number)
{
    for (int i = p->stages - 1; i >= 0; i--) {
        struct nn_net *net = pipeline_stage(p, i, number);

        if (i + 1 < p->stages)
            support_carry(net, p->net[i + 1], p->wanted->batches[number].batch.n, true);
        check(nn_net_backward(net, 1.0f / N, untold));
    }
}

/* What the backward left out, and the check of all of it. */
static void pipeline_learn(struct pipeline *p, int number)
{
    const struct nn_graph *graph = p->wanted->graph;

    for (int i = 0; i < p->stages; i++) {
        struct nn_range range = nn_graph_weights_of(graph, p->cuts[i], p->cuts[i + 1]);
        struct nn_net *net = pipeline_stage(p, i, number);

        for (int job = nn_net_deferred(net); job-- > 0;)
            check(nn_net_backward_deferred(net, job, untold));
        if (memcmp(p->gradients[number] + range.from, p->wanted->gradients[number] + range.from,
                   range.count * sizeof(float)) != 0)
            fail_msg("batch %d, layers %d to %d, %d in flight%s: other gradients", number,
                     p->cuts[i], p->cuts[i + 1] - 1, p->in_flight, p->split ? ", split" : "");
    }
}

static void pipeline_check_statistics(const struct pipeline *p)
{
    for (int i = 0; i < p->stages; i++) {
        struct nn_range range = nn_graph_stats_of(p->wanted->graph, p->cuts[i], p->cuts[i + 1]);

        assert_memory_equal(nn_net_statistics(p->net[i]), p->wanted->statistics + range.from,
                            range.count * sizeof(float));
    }
}

/* Fills the pipeline, then a backward and a forward in turns, then empties it. One piece is taken
 * by a batch whose gradients of weights are late. */
static void check_pipeline(struct pipeline *p)
{
    int began = 0, late = p->split && p->in_flight > 1;

    pipeline_init(p);
    for (int done = 0; done < BATCHES; done++) {
        for (; began < BATCHES && began < done + p->in_flight - late; began++)
            pipeline_forward(p, began);
        pipeline_backward(p, done);
        if (done >= late)
            pipeline_learn(p, done - late);
    }
    if (late)
        pipeline_learn(p, BATCHES - 1);
    pipeline_check_statistics(p);
    for (int i = 0; i < p->stages; i++)
        nn_net_free(p->net[i]);
    for (int i = 0; i < BATCHES; i++)
        base_free(p->gradients[i]);
}

static void check_both(struct pipeline p)
{
    check_pipeline(&p);
    p.split = true;
    check_pipeline(&p);
}

/* Between fused groups of the whole model: inside of one, a cut changes what is fused. */
static bool may_cut(const struct nn_graph *graph, int before)
{
    struct nn_graph *fused = nn_graph_fuse(graph, 0, nn_graph_layers(graph));
    bool may = !nn_graph_node(fused, before - 1)->hidden;

    nn_graph_free(fused);
    return may;
}

static void check_whole(const struct results *wanted)
{
    for (int in_flight = 1; in_flight <= 3; in_flight++)
        check_both((struct pipeline){.wanted = wanted,
                                     .stages = 1,
                                     .in_flight = in_flight,
                                     .cuts = {0, nn_graph_layers(wanted->graph)}});
}

static void check_graph(struct nn_graph *graph)
{
    struct results wanted;
    int layers = nn_graph_layers(graph);

    results_init(&wanted, graph);
    check_whole(&wanted);
    for (int cut = 1; cut < layers; cut++)
        if (may_cut(graph, cut))
            check_both((struct pipeline){
                .wanted = &wanted, .stages = 2, .in_flight = 2, .cuts = {0, cut, layers}});
    results_fini(&wanted);
    nn_graph_free(graph);
}

static void small_models_cut_anywhere(void **state)
{
    (void)state;
    check_graph(support_graph(vgg_like));
    check_graph(support_graph(blocked));
}

static void mnist_cnn(void **state)
{
    (void)state;
    check_graph(support_zoo("mnist-cnn"));
}

/* Cut twice, each time within a residual block, so that two tensors cross. */
static void resnet18_across_residuals(void **state)
{
    struct nn_graph *graph = support_zoo("resnet18");
    struct pipeline p = {.stages = 3, .in_flight = 3, .cuts = {0, 0, 0, nn_graph_layers(graph)}};
    struct results wanted;
    struct nn_edge edges[4];
    int wish[] = {nn_graph_layers(graph) / 4, nn_graph_layers(graph) / 2};

    (void)state;
    results_init(&wanted, graph);
    p.wanted = &wanted;
    for (int i = 0; i < 2; i++)
        for (int cut = wish[i]; p.cuts[i + 1] == 0; cut++) {
            struct nn_setup setup = {.last = cut, .n_max = 1, .training = true};
            struct nn_net *net;

            if (!may_cut(graph, cut))
                continue;
            check(nn_net_new(graph, &setup, &net));
            if (nn_net_leaving(net, edges, 4) == 2)
                p.cuts[i + 1] = cut;
            nn_net_free(net);
        }
    check_both(p);
    results_fini(&wanted);
    nn_graph_free(graph);
}

/* ---- pieces have memory of their own ---- */

static void edges_and_predictions_are_of_a_piece(void **state)
{
    struct nn_graph *graph = support_graph(blocked);
    int layers = nn_graph_layers(graph);
    struct nn_setup setup = {
        .first = 4, .last = layers, .n_max = 2, .in_flight = 2, .training = true};
    struct nn_edge first[3], second[3];
    struct support_batch b;
    struct nn_outcome one, two;
    struct nn_net *net;
    int count;

    (void)state;
    support_batch_init(&b, graph, 2, 1);
    check(nn_net_new(graph, &setup, &net));
    count = nn_net_entering(net, first, 3);
    assert_int_equal(count, 2); /* the current tensor and `a` */
    nn_net_piece(net, 1);
    assert_int_equal(nn_net_entering(net, second, 3), count);
    for (int i = 0; i < count; i++) {
        assert_true(first[i].values != second[i].values);
        assert_true(first[i].gradients != second[i].gradients);
    }
    assert_int_equal(nn_net_backward(net, 1, untold), BASE_ERR_INTERNAL);
    nn_net_piece(net, 0);
    check(nn_net_forward(net, &b.batch, true, &one));
    nn_net_piece(net, 1);
    assert_int_equal(nn_net_backward(net, 1, untold), BASE_ERR_INTERNAL); /* not its forward */
    check(nn_net_forward(net, &b.batch, true, &two));
    assert_true(one.predicted != two.predicted);
    check(nn_net_backward(net, 1, untold));
    nn_net_piece(net, 0);
    check(nn_net_backward(net, 1, untold));
    nn_net_free(net);
    support_batch_fini(&b);
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_models_cut_anywhere),
        cmocka_unit_test(mnist_cnn),
        cmocka_unit_test(resnet18_across_residuals),
        cmocka_unit_test(edges_and_predictions_are_of_a_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
