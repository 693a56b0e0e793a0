/* SPDX-License-Identifier: MIT
 *
 * Fused groups against the same layers one by one: which are found, and that nothing in the
 * results tells them apart: losses, gradients, statistics and predictions are the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/fuse.h"
#include "nn/net.h"
#include "nn/threads.h"
#include "support/nets.h"

enum { N = 3, STEPS = 2 };
static const struct nn_ready no_listener;

static const char plain[] = "input 3x8x8\nclasses 4\n"
                            "conv 10 3x3 pad=1\nbn\nrelu\nmaxpool 2\n"
                            "conv 12 3x3 pad=1\nbn eps=1e-3 momentum=0.3\nrelu\n"
                            "conv 24 3x3 pad=1\nrelu\nmaxpool 2\ndropout .3\nflatten\n"
                            "dense 9\nbn\nrelu\ndense classes\n";

/* A first convolution whose ReLU goes with it; the second one's does not. */
static const char starting[] = "input 1x9x8\nclasses 4\n"
                               "conv 12 3x3\nrelu\nconv 10 3x3\nrelu\ndense 9\nrelu\n"
                               "dense classes\n";

/* Convolutions whose outputs outweigh their weights, pooled. */
static const char pooled[] = "input 1x18x18\nclasses 4\n"
                             "conv 9 3x3\nrelu\nmaxpool 2\nconv 12 1x1 bias=off\nrelu\n"
                             "maxpool 2\ndropout .3\ndense classes\n";

static const char residual[] = "input 3x8x8\nclasses 4\n"
                               "conv 12 3x3 pad=1\nbn\nrelu\nsave a\nmaxpool 2\nsave p\nload a\n"
                               "conv 12 3x3 pad=1 stride=2 bias=off\nbn\nrelu\nadd p\nsave b\n"
                               "conv 16 3x3 stride=2 pad=1\nbn\nsave c\nload b\n"
                               "conv 16 1x1 stride=2\nadd c\nrelu\nmaxpool 2\nflatten\n"
                               "dense classes\n";

/* bn as the first layer: no layer wants dx. */
static const char first[] =
    "input 10x6x4\nclasses 3\nbn\nrelu\nmaxpool 2\nbn\nrelu\ndense classes\n";

static void check(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

/* ---- what is fused ---- */

/* "bn+relu+maxpool" at its first layer, "." at those it swallows, the rest by name. */
static void check_groups(const char *text, int from, int to, const char *want)
{
    struct nn_graph *graph = support_graph(text), *fused;
    char got[512] = "";

    fused = nn_graph_fuse(graph, from, to > 0 ? to : nn_graph_layers(graph));
    for (int i = 0; i < nn_graph_layers(fused); i++) {
        const struct nn_node *node = nn_graph_node(fused, i), *old = nn_graph_node(graph, i);
        bool swallowed = node->identity && !old->identity;

        assert_string_equal(node->name, old->name);
        assert_int_equal(node->params, old->params);
        strcat(got, i > 0 ? " " : "");
        strcat(got, swallowed ? "." : node->layer->name);
    }
    assert_string_equal(got, want);
    assert_int_equal(nn_graph_weight_floats(fused), nn_graph_weight_floats(graph));
    nn_graph_free(fused);
    nn_graph_free(graph);
}

/* The same for layers of an 8xSIZE image, without the dense layer that has to follow. */
static void check_image(const char *size, const char *layers, int from, int to, const char *want)
{
    char *text = base_format("input 8x%s\nclasses 3\n%sdense classes\n", size, layers);
    char *groups = base_format("%s dense softmax", want);

    check_groups(text, from, to, groups);
    base_free(text);
    base_free(groups);
}

static void groups_are_found(void **state)
{
    (void)state;
    check_groups(plain, 0, 0,
                 "conv bn+relu+maxpool . . conv bn+relu . conv relu+maxpool . dropout flatten "
                 ""
                 "dense bn+relu . dense softmax");
    check_groups(starting, 0, 0, "conv+relu . conv relu dense relu dense softmax");
    check_groups(pooled, 0, 0,
                 "conv+relu+maxpool . . conv+relu+maxpool+dropout . . . dense softmax");
    check_groups("input 1x9x8\nclasses 4\nconv 8 2x1\nrelu\nmaxpool 2\ndense classes\n", 0, 0,
                 "conv+relu+maxpool . . dense softmax");
    check_image("4x4", "relu\nmaxpool 2\nbn\nrelu\nbn\n", 0, 0, "relu+maxpool . bn+relu . bn");
    check_image("4x4", "relu\nmaxpool 2\ndropout 0\n", 0, 0, "relu+maxpool . dropout");
}

static void other_layers_between_prevent_it(void **state)
{
    (void)state;
    check_image("4x4",
                "bn\nsave a\nrelu\nadd a\nrelu\nsave b\nmaxpool 2\nsave c\nload b\navgpool 2\n"
                "add c\n",
                0, 0, "bn save relu add relu save maxpool save load avgpool add");
    check_image("4x4", "bn\ndropout .1\nrelu\ndropout .1\nmaxpool 2\n", 0, 0,
                "bn dropout relu dropout maxpool");
}

static void other_windows_are_not_fused(void **state)
{
    (void)state;
    check_image("6x6", "bn\nrelu\nmaxpool 3\n", 0, 0, "bn+relu . maxpool");
    check_image("6x6", "bn\nrelu\nmaxpool 2 stride=1\n", 0, 0, "bn+relu . maxpool");
    check_image("6x6", "bn\nrelu\nmaxpool 2 pad=1\n", 0, 0, "bn+relu . maxpool");
    check_image("6x6", "bn\nrelu\nmaxpool 2x1\n", 0, 0, "bn+relu . maxpool");
    check_image("6x6", "bn\nrelu\navgpool 2\n", 0, 0, "bn+relu . avgpool");
    check_image("6x5", "bn\nrelu\nmaxpool 2\n", 0, 0, "bn+relu . maxpool");
    check_image("5x6", "relu\nmaxpool 2\n", 0, 0, "relu maxpool");
}

static void groups_lie_inside_the_range(void **state)
{
    static const char layers[] = "bn\nrelu\nmaxpool 2\n";

    (void)state;
    check_image("4x4", layers, 0, 3, "bn+relu+maxpool . .");
    check_image("4x4", layers, 0, 2, "bn+relu . maxpool");
    check_image("4x4", layers, 1, 0, "bn relu+maxpool .");
    check_image("4x4", layers, 2, 0, "bn relu maxpool");
    check_image("4x4", layers, 0, 1, "bn relu maxpool");
}

/* ---- what comes out ---- */

/* As if another worker had almost the same sums. */
static void other_worker(void *context, float *sums, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++)
        sums[i] *= i % 7 == 3 ? 1.9f : 2.0f;
}

struct side {
    struct nn_net *left, *right; /* right: after the cut, or NULL */
    float *weights, *gradients, *statistics;
};

static void side_init(struct side *s, const struct nn_graph *graph, int cut, bool apart)
{
    struct nn_setup setup = {.n_max = N + 1, .training = true, .apart = apart, .last = cut};

    *s = (struct side){0};
    check(base_tensor(nn_graph_weight_floats(graph), sizeof(float), "w", &s->weights));
    check(base_tensor(nn_graph_weight_floats(graph), sizeof(float), "g", &s->gradients));
    check(base_tensor(nn_graph_stat_floats(graph), sizeof(float), "s", &s->statistics));
    setup.weights = s->weights;
    setup.gradients = s->gradients;
    setup.statistics = s->statistics;
    if (cut % 2 == 0)
        setup.reduce.sum = other_worker;
    check(nn_net_new(graph, &setup, &s->left));
    if (cut > 0) {
        setup.first = cut;
        setup.last = 0;
        check(nn_net_new(graph, &setup, &s->right));
    }
    nn_graph_start(graph, 5, s->weights, s->statistics);
    for (size_t i = 0; i < nn_graph_params(graph); i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);

        for (size_t e = 0; e < t->values && t->rank == 1; e++) /* no kind zeros and ones */
            s->weights[t->offset + e] += 0.1f * sinf((float)(e + 3 * i));
    }
}

static void side_fini(struct side *s)
{
    nn_net_free(s->left);
    nn_net_free(s->right);
    base_free(s->weights);
    base_free(s->gradients);
    base_free(s->statistics);
}

static double step(struct side *s, const struct nn_batch *batch, bool training)
{
    struct nn_outcome outcome;

    check(nn_net_forward(s->left, batch, training, &outcome));
    if (s->right != NULL) {
        support_carry(s->left, s->right, batch->n, false);
        check(nn_net_forward(s->right, batch, training, &outcome));
    }
    if (!training)
        return outcome.loss_sum;
    if (s->right != NULL) {
        check(nn_net_backward(s->right, 0.5f, no_listener));
        support_carry(s->left, s->right, batch->n, true);
    }
    check(nn_net_backward(s->left, 0.5f, no_listener));
    return outcome.loss_sum;
}

static void compare(const struct nn_tensor *t, const float *a, const float *b)
{
    for (size_t e = 0; e < t->floats; e++)
        if (a[t->offset + e] != b[t->offset + e])
            fail_msg("%s, element %zu: %.9g fused, %.9g apart", t->name, e,
                     (double)a[t->offset + e], (double)b[t->offset + e]);
}

static void check_same(const struct nn_graph *graph, int cut)
{
    struct side fused, apart;
    struct support_batch b;

    side_init(&fused, graph, cut, false);
    side_init(&apart, graph, cut, true);
    for (int number = 0; number < STEPS; number++) {
        support_batch_init(&b, graph, N, (uint32_t)number);
        assert_true(step(&fused, &b.batch, true) == step(&apart, &b.batch, true));
        for (size_t i = 0; i < nn_graph_params(graph); i++)
            compare(nn_graph_param(graph, i), fused.gradients, apart.gradients);
        for (size_t i = 0; i < nn_graph_stats(graph); i++)
            compare(nn_graph_stat(graph, i), fused.statistics, apart.statistics);
        support_batch_fini(&b);
    }
    support_batch_init(&b, graph, N + 1, 9);
    assert_true(step(&fused, &b.batch, false) == step(&apart, &b.batch, false));
    support_batch_fini(&b);
    side_fini(&fused);
    side_fini(&apart);
}

static void results_are_those_of_the_layers_apart(void **state)
{
    const char *const texts[] = {plain, starting, pooled, residual, first};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct nn_graph *graph = support_graph(texts[i]);

        for (int cut = 0; cut < nn_graph_layers(graph); cut++)
            check_same(graph, cut);
        nn_graph_free(graph);
    }
}

static double distance(const struct nn_tensor *t, const float *a, const float *b)
{
    double wrong = 0, norm = 0;

    for (size_t e = t->offset; e < t->offset + t->floats; e++) {
        wrong += pow((double)a[e] - (double)b[e], 2);
        norm += pow((double)b[e], 2);
    }
    return sqrt(wrong / norm);
}

/* A batch that is computed in several parts, the last a short one: the sums of gradients have
 * another order, nothing is lost or counted twice. */
static void parts_of_a_batch_add_up(void **state)
{
    struct nn_graph *graph = support_graph("input 1x130x130\nclasses 4\nconv 8 3x3 pad=1\nrelu\n"
                                           "maxpool 2\ndropout .3\nmaxpool 5\ndense classes\n");
    struct side fused, apart;
    struct support_batch b;

    (void)state;
    check_groups("input 1x130x130\nclasses 4\nconv 8 3x3 pad=1\nrelu\nmaxpool 2\ndropout .3\n"
                 "maxpool 5\ndense classes\n",
                 0, 0, "conv+relu+maxpool+dropout . . . maxpool dense softmax");
    side_init(&fused, graph, 0, false);
    side_init(&apart, graph, 0, true);
    support_batch_init(&b, graph, N, 3);
    assert_true(step(&fused, &b.batch, true) == step(&apart, &b.batch, true));
    for (size_t i = 0; i < nn_graph_params(graph); i++)
        assert_true(distance(nn_graph_param(graph, i), fused.gradients, apart.gradients) < 1e-6);
    assert_true(step(&fused, &b.batch, false) == step(&apart, &b.batch, false));
    support_batch_fini(&b);
    side_fini(&fused);
    side_fini(&apart);
    nn_graph_free(graph);
}

static int seen_as[4];

static void see(void *context, const struct nn_node *node, int n, const float *values)
{
    (void)context;
    assert_non_null(values);
    seen_as[node->index] = n * node->out.h;
}

/* What a group computes inside is not an output. */
static void outputs_inside_a_group_are_not_told(void **state)
{
    struct nn_graph *graph = support_graph("input 8x4x4\nclasses 3\nbn\nrelu\nmaxpool 2\n"
                                           "dense classes\n");
    static const int want[2][4] = {{0, 0, 2 * N, N}, {4 * N, 4 * N, 2 * N, N}};
    struct support_batch b;
    struct nn_outcome outcome;
    float values[8 * 4 * 4];

    (void)state;
    support_batch_init(&b, graph, N, 1);
    for (int kind = 0; kind < 3; kind++) {
        struct nn_setup setup = {.n_max = N, .apart = kind == 1, .keep_outputs = kind == 2};
        struct nn_net *net;

        check(nn_net_new(graph, &setup, &net));
        nn_graph_start(graph, 1, nn_net_weights(net), nn_net_statistics(net));
        memset(seen_as, 0, sizeof seen_as);
        for (int i = 0; i < 4; i++)
            nn_net_hook(net, i, see, NULL);
        check(nn_net_forward(net, &b.batch, false, &outcome));
        assert_memory_equal(seen_as, want[kind > 0], sizeof seen_as);
        for (int i = 0; i < 2; i++)
            assert_int_equal(nn_net_output(net, i, 0, values) == BASE_OK, kind == 2);
        nn_net_free(net);
    }
    support_batch_fini(&b);
    nn_graph_free(graph);
}

/* A bad range is refused, not fused. */
static void bad_ranges_are_refused(void **state)
{
    struct nn_graph *graph = support_graph(first);
    struct nn_setup setup = {.n_max = 1, .first = -1};
    struct nn_net *net;

    (void)state;
    assert_int_not_equal(nn_net_new(graph, &setup, &net), BASE_OK);
    assert_null(net);
    setup = (struct nn_setup){.n_max = 1, .last = 100};
    assert_int_not_equal(nn_net_new(graph, &setup, &net), BASE_OK);
    assert_null(net);
    nn_graph_free(graph);
}

static void fusing_saves_memory(void **state)
{
    const char *const models[] = {"mnist-cnn", "vgg11"};

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct nn_graph *graph = support_zoo(models[i]);
        struct nn_setup setup = {.n_max = 8, .training = true};
        struct nn_net *fused, *apart;

        check(nn_net_new(graph, &setup, &fused));
        setup.apart = true;
        check(nn_net_new(graph, &setup, &apart));
        assert_true(nn_net_activation_bytes(fused) < nn_net_activation_bytes(apart));
        nn_net_free(fused);
        nn_net_free(apart);
        nn_graph_free(graph);
    }
}

static void zoo_models_give_the_same_bits(void **state)
{
    const char *const models[] = {"mnist-cnn", "vgg11"};

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct nn_graph *graph = support_zoo(models[i]);

        check_same(graph, 0);
        nn_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_found),
        cmocka_unit_test(other_layers_between_prevent_it),
        cmocka_unit_test(other_windows_are_not_fused),
        cmocka_unit_test(groups_lie_inside_the_range),
        cmocka_unit_test(results_are_those_of_the_layers_apart),
        cmocka_unit_test(parts_of_a_batch_add_up),
        cmocka_unit_test(outputs_inside_a_group_are_not_told),
        cmocka_unit_test(bad_ranges_are_refused),
        cmocka_unit_test(fusing_saves_memory),
        cmocka_unit_test(zoo_models_give_the_same_bits),
    };

    nn_threads_set(1); /* tiny work: more threads only wait for each other */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
