/* SPDX-License-Identifier: MIT
 *
 * Models that only answer against evaluation by nn_net with every layer by itself and oneDNN's
 * convolutions: every layer's examples, the zoo, all batch sizes, every kernel; lanes side by side
 * in several threads; bad setups.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/conv/conv.h"
#include "nn/conv/prefer.h"
#include "nn/fuse.h"
#include "nn/infer.h"
#include "nn/threads.h"
#include "support/nets.h"

static const double tolerance = 2e-5;

static void check(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

static void *zeros(size_t floats)
{
    void *memory;

    check(base_tensor(floats + 1, sizeof(float), "test data", &memory));
    return memory;
}

struct model {
    struct nn_graph *graph;
    float *weights, *statistics, *x;
    int n, outputs; /* samples of x */
};

/* Takes the graph over. The statistics are not those of a start. */
static struct model model_new(struct nn_graph *graph, int n)
{
    struct model m = {.graph = graph, .n = n};

    m.weights = zeros(nn_graph_weight_floats(graph));
    m.statistics = zeros(nn_graph_stat_floats(graph));
    m.x = zeros((size_t)n * nn_shape_values(nn_graph_input(graph)));
    m.outputs = nn_graph_node(graph, nn_graph_layers(graph) - 1)->out.c;
    nn_graph_start(graph, 5, m.weights, m.statistics);
    for (size_t i = 0; i < nn_graph_stats(graph); i++) {
        const struct nn_tensor *t = nn_graph_stat(graph, i);

        support_fill(m.statistics + t->offset, t->values, (uint32_t)i);
        for (size_t e = 0; e < t->values; e++) /* variances are positive */
            m.statistics[t->offset + e] += i % 2 == 1 ? 1.5f : 0;
    }
    support_fill(m.x, (size_t)n * nn_shape_values(nn_graph_input(graph)), 77);
    return m;
}

static void model_free(struct model *m)
{
    nn_graph_free(m->graph);
    base_free(m->weights);
    base_free(m->statistics);
    base_free(m->x);
}

static struct nn_infer *infer_new(const struct model *m, int n_max, const char *kernels)
{
    struct nn_infer *infer;

    check(nn_infer_new(
        m->graph,
        &(struct nn_infer_setup){
            .weights = m->weights, .statistics = m->statistics, .n_max = n_max, .kernels = kernels},
        &infer));
    return infer;
}

static float *evaluation(const struct model *m)
{
    float *want = zeros((size_t)(m->n * m->outputs));
    struct nn_net *net;
    struct nn_outcome outcome;

    check(nn_net_new(
        m->graph,
        &(struct nn_setup){
            .n_max = m->n, .weights = m->weights, .statistics = m->statistics, .apart = true},
        &net));
    check(nn_net_forward(net, &(struct nn_batch){.n = m->n, .x = m->x}, false, &outcome));
    for (int i = 0; i < m->n; i++)
        check(nn_net_output(net, nn_graph_layers(m->graph) - 1, i, want + i * m->outputs));
    nn_net_free(net);
    return want;
}

/* Every batch size, from any place in x on; samples after the batch are not touched. */
static void check_batches(const struct model *m, struct nn_lane *lane, const float *want)
{
    const size_t values = nn_shape_values(nn_graph_input(m->graph));
    float *y = zeros((size_t)(m->n * m->outputs));

    for (int n = m->n; n >= 1; n--) {
        const int first = m->n - n;

        for (int i = 0; i < m->n * m->outputs; i++)
            y[i] = 7;
        check(nn_lane_run(lane, n, m->x + (size_t)first * values, y));
        for (int i = 0; i < n * m->outputs; i++)
            support_near((double)y[i], (double)want[first * m->outputs + i],
                         tolerance * fmax(1, fabs((double)want[first * m->outputs + i])));
        for (int i = n * m->outputs; i < m->n * m->outputs; i++)
            assert_true(y[i] == 7);
    }
    base_free(y);
}

/* Takes the graph over. */
static void check_model(struct nn_graph *graph, int n, const char *kernels)
{
    struct model m = model_new(graph, n);
    float *want = evaluation(&m);

    for (int threads = 1; threads <= 2; threads++) {
        struct nn_infer *infer = infer_new(&m, n, kernels);
        struct nn_lane *lane;

        nn_threads_set(threads);
        check(nn_lane_new(infer, &lane));
        check_batches(&m, lane, want);
        nn_lane_free(lane);
        nn_infer_free(infer);
    }
    nn_threads_set(0);
    base_free(want);
    model_free(&m);
}

static void every_layer(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < nn_layer_count; i++)
        for (const char *const *e = nn_layer_registry[i]->examples; e && *e; e++)
            check_model(support_graph(*e), 5, NULL);
    for (size_t i = 0; i < nn_fused_count; i++)
        for (const char *const *e = nn_fused_registry[i]->layer.examples; e && *e; e++)
            check_model(support_graph(*e), 3, NULL);
}

/* Residual branches, dropout between convolution and ReLU, pools that do not halve, names. */
static const char residual[] = "input 3x8x8\nclasses 4\n"
                               "conv 12 3x3 pad=1\nbn\nrelu\nsave a\nmaxpool 2\nsave p\nload a\n"
                               "conv 12 3x3 pad=1 stride=2 bias=off\nbn\nrelu\nadd p\nsave b\n"
                               "conv 16 3x3 stride=2 pad=1\nbn\nsave c\nload b\n"
                               "conv 16 1x1 stride=2\nadd c\nrelu\nmaxpool 2\nflatten\n"
                               "dense 9\nbn\nrelu\ndropout .5\ndense classes\n";
static const char odd[] = "input 9x9x7\nconv 10 3x3\ndropout .5\nrelu\nmaxpool 2\nconv 12 2x2\n"
                          "bn\nrelu\nmaxpool 2x1\nbn\nrelu\ndense 3\nmse";
static const char grouped[] = "input 12x8x8\nsave s\nconv 12 3x3 pad=1 groups=4\nbn\nadd s\nrelu\n"
                              "maxpool 2\nconv 8 5x5 pad=2\nrelu\nmaxpool 2\ndense 3\nmse";

static void awkward_models(void **unused)
{
    (void)unused;
    check_model(support_graph(residual), 7, NULL);
    check_model(support_graph(odd), 7, NULL);
    check_model(support_graph(grouped), 7, NULL);
}

/* Convolutions of small sizes, of every kernel, stride and padding, with channels that fill no
 * block of 8 or 16, and all tails: a ReLU, a pool of two that halves or leaves a rest, both. */
static void odd_shapes(void **unused)
{
    static const char *const tails[] = {"", "relu\n", "maxpool 2\n", "relu\nmaxpool 2\n"};
    static const int sides[] = {1, 2, 3, 5, 6, 9}, channels[] = {3, 5, 17};
    int turn = 0;

    (void)unused;
    for (size_t s = 0; s < sizeof sides / sizeof *sides; s++)
        for (int kernel = 1; kernel <= 5; kernel += 2)
            for (int stride = 1; stride <= 2; stride++)
                for (int pad = 0; pad <= kernel / 2; pad++, turn++) {
                    const int side = sides[s], out = (side + 2 * pad - kernel) / stride + 1;
                    const int mix = turn + (int)s; /* so that sizes do not keep their tail */
                    char *text;

                    if (side + 2 * pad < kernel || (out < 2 && mix % 4 > 1))
                        continue;
                    text = base_format("input %dx%dx%d\nconv %d %dx%d stride=%d pad=%d\n%s"
                                       "conv 10 %dx%d pad=%d\nrelu\ndense 3\nmse",
                                       channels[mix % 3], side, side + turn % 2,
                                       channels[turn / 3 % 3], kernel, kernel, stride, pad,
                                       tails[mix % 4], kernel, kernel, kernel / 2);
                    check_model(support_graph(text), 1 + turn % 3, NULL);
                    for (size_t i = 0; i < nn_conv_count(); i++)
                        check_model(support_graph(text), 3, nn_conv_registry()[i]->name);
                    base_free(text);
                }
}

static void zoo(void **unused)
{
    (void)unused;
    check_model(support_zoo("mlp:24x2"), 4, NULL);
    check_model(support_zoo("mnist-cnn"), 5, NULL);
    check_model(support_zoo("vgg11"), 3, NULL);
    check_model(support_zoo("resnet18"), 3, NULL);
}

static void every_kernel(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < nn_conv_count(); i++) {
        check_model(support_graph(residual), 3, nn_conv_registry()[i]->name);
        check_model(support_graph(grouped), 3, nn_conv_registry()[i]->name);
    }
    check_model(support_zoo("mnist-cnn"), 3, "conv1=direct conv2=patches");
}

/* ---- lanes side by side ---- */

enum { LANES = 4, ROUNDS = 5 };

struct side {
    const struct model *m;
    const struct nn_infer *infer;
    const float *want;
    int threads;
    bool equal;
};

static void *side_run(void *context)
{
    struct side *s = context;
    const size_t bytes = (size_t)(s->m->n * s->m->outputs) * sizeof(float);
    float *y = zeros(bytes / sizeof(float));
    struct nn_lane *lane;

    nn_threads_set(s->threads);
    s->equal = nn_lane_new(s->infer, &lane) == BASE_OK;
    for (int i = 0; i < ROUNDS && s->equal; i++)
        s->equal =
            nn_lane_run(lane, s->m->n, s->m->x, y) == BASE_OK && memcmp(y, s->want, bytes) == 0;
    nn_lane_free(lane);
    base_free(y);
    return NULL;
}

static void lanes_share_weights_only(void **unused)
{
    struct model m = model_new(support_graph(residual), 6);
    struct nn_infer *infer = infer_new(&m, 6, NULL);
    float *want = zeros((size_t)(m.n * m.outputs));
    struct nn_lane *lane;
    struct side sides[LANES];
    pthread_t threads[LANES];

    (void)unused;
    nn_threads_set(1);
    check(nn_lane_new(infer, &lane));
    check(nn_lane_run(lane, m.n, m.x, want));
    for (int i = 0; i < LANES; i++) {
        sides[i] = (struct side){&m, infer, want, 1 + i % 2, false};
        assert_int_equal(pthread_create(&threads[i], NULL, side_run, &sides[i]), 0);
    }
    for (int i = 0; i < LANES; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(sides[i].equal);
    }
    nn_threads_set(0);
    nn_lane_free(lane);
    nn_infer_free(infer);
    base_free(want);
    model_free(&m);
}

/* With one kernel a layer, who else is in the batch does not change a bit. */
static void a_batch_changes_no_bit(void **unused)
{
    struct model m = model_new(support_zoo("mnist-cnn"), 9);
    const size_t values = nn_shape_values(nn_graph_input(m.graph));
    float *together = zeros((size_t)(m.n * m.outputs)), *alone = zeros((size_t)m.outputs);

    (void)unused;
    for (size_t k = 0; k < nn_conv_count(); k++) {
        struct nn_infer *infer;
        struct nn_lane *lane;

        if (nn_conv_registry()[k]->answer == NULL)
            continue;
        infer = infer_new(&m, m.n, nn_conv_registry()[k]->name);
        check(nn_lane_new(infer, &lane));
        check(nn_lane_run(lane, m.n, m.x, together));
        for (int i = 0; i < m.n; i++) {
            check(nn_lane_run(lane, 1, m.x + (size_t)i * values, alone));
            assert_memory_equal(alone, together + i * m.outputs, (size_t)m.outputs * sizeof(float));
        }
        nn_lane_free(lane);
        nn_infer_free(infer);
    }
    base_free(together);
    base_free(alone);
    model_free(&m);
}

/* The buffers may go once the model is made; a lane may go before another one. */
static void the_weights_are_its_own(void **unused)
{
    struct model m = model_new(support_graph(residual), 2);
    struct nn_infer *infer = infer_new(&m, 2, NULL);
    float *want = evaluation(&m), *y = zeros((size_t)(m.n * m.outputs));
    struct nn_lane *lane, *other;

    (void)unused;
    memset(m.weights, 0x5a, nn_graph_weight_floats(m.graph) * sizeof(float));
    memset(m.statistics, 0x5a, nn_graph_stat_floats(m.graph) * sizeof(float));
    check(nn_lane_new(infer, &lane));
    check(nn_lane_new(infer, &other));
    nn_lane_free(other);
    check(nn_lane_run(lane, 2, m.x, y));
    for (int i = 0; i < m.n * m.outputs; i++)
        support_near((double)y[i], (double)want[i], tolerance);
    nn_lane_free(lane);
    nn_infer_free(infer);
    base_free(want);
    base_free(y);
    model_free(&m);
}

/* ---- the rule ---- */

static const char *preferred(int channels, int side, int n)
{
    const struct nn_shape s = {channels, side, side, false, false};

    return nn_prefer(&(struct nn_conv_shape){.in = s,
                                             .out = s,
                                             .kernel = {3, 3},
                                             .stride = {1, 1},
                                             .pad = {1, 1},
                                             .groups = 1,
                                             .n_max = n,
                                             .prepared = true},
                     n)
        ->name;
}

static void the_rule(void **unused)
{
    const struct nn_shape s = {8, 4, 4, false, false};

    (void)unused;
    assert_string_equal(preferred(512, 4, 1), "patches"); /* weights are fetched once */
    assert_string_equal(preferred(512, 4, 64), "winograd4");
    assert_string_equal(preferred(64, 32, 1), "winograd4"); /* few weights, many pixels */
    assert_string_equal(preferred(512, 2, 1), "toeplitz2");
    assert_string_equal(preferred(512, 2, 64), "toeplitz2");
    assert_string_equal(nn_prefer(&(struct nn_conv_shape){.in = s,
                                                          .out = s,
                                                          .kernel = {3, 3},
                                                          .stride = {1, 1},
                                                          .groups = 2,
                                                          .n_max = 1,
                                                          .prepared = true},
                                  1)
                            ->name,
                        "onednn"); /* no other serves groups */
}

static void two_kernels(void **unused)
{
    struct model m = model_new(support_graph("input 512x4x4\nconv 512 3x3 pad=1 name=c\nbn\nrelu\n"
                                             "dense 3\nmse"),
                               8);
    struct nn_infer *infer = infer_new(&m, 64, NULL);
    struct nn_infer_cost one = nn_infer_cost(infer, 1), many = nn_infer_cost(infer, 64);

    (void)unused;
    assert_non_null(strstr(nn_infer_kernels(infer), "c=patches,winograd4@"));
    assert_true(one.weight_bytes < many.weight_bytes);
    assert_true(one.executed_flops >= one.nominal_flops * 0.9);
    assert_true(many.executed_flops < many.nominal_flops * 0.5);
    nn_infer_free(infer);
    model_free(&m);
    check_model(support_graph("input 512x4x4\nconv 512 3x3 pad=1\nbn\nrelu\ndense 3\nmse"), 9,
                NULL);
}

/* ---- bad setups ---- */

static void expect(const struct model *m, struct nn_infer_setup setup, base_status want,
                   const char *words)
{
    struct nn_infer *infer;

    assert_int_equal(nn_infer_new(m->graph, &setup, &infer), want);
    assert_null(infer);
    if (strstr(base_message(), words) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), words);
}

static void bad_setups(void **unused)
{
    struct model m = model_new(support_graph(residual), 2);
    const struct nn_infer_setup good = {
        .weights = m.weights, .statistics = m.statistics, .n_max = 2};
    struct nn_infer_setup bad = good;
    struct nn_infer *infer;
    struct nn_lane *lane;
    float y[16];

    (void)unused;
    bad.n_max = 0;
    expect(&m, bad, BASE_ERR_USAGE, "at least 1");
    bad = good;
    bad.weights = NULL;
    expect(&m, bad, BASE_ERR_INTERNAL, "no weights");
    bad = good;
    bad.kernels = "winograd";
    expect(&m, bad, BASE_ERR_USAGE, "winograd2");
    bad.kernels = "0=winograd4"; /* a planar input */
    expect(&m, bad, BASE_ERR_USAGE, "does not serve");
    check(nn_infer_new(m.graph, &good, &infer));
    check(nn_lane_new(infer, &lane));
    assert_int_equal(nn_lane_run(lane, 0, m.x, y), BASE_ERR_INTERNAL);
    assert_int_equal(nn_lane_run(lane, 3, m.x, y), BASE_ERR_INTERNAL);
    check(nn_lane_run(lane, 2, m.x, y));
    nn_lane_free(lane);
    nn_lane_free(NULL);
    nn_infer_free(infer);
    nn_infer_free(NULL);
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer),
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(awkward_models),
        cmocka_unit_test(zoo),
        cmocka_unit_test(every_kernel),
        cmocka_unit_test(lanes_share_weights_only),
        cmocka_unit_test(a_batch_changes_no_bit),
        cmocka_unit_test(the_weights_are_its_own),
        cmocka_unit_test(the_rule),
        cmocka_unit_test(two_kernels),
        cmocka_unit_test(bad_setups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
