/* SPDX-License-Identifier: MIT
 *
 * Every layer of the registry by itself, and every fused one: each example it gives, gradients of
 * all parameters and of the input against central differences of the loss, zeros in all padding,
 * and the same results after another batch has left its values in the shared memory. A layer
 * without examples fails.
 *
 * The forward is fp32, so a difference over 2h carries noise of about 1e-7/h; a step that crosses
 * the kink of a relu or another winner of a pool shows as a difference between step h and h/2 and
 * is left out, and few may be.
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

enum { N = 4, N_MAX = 6 };
static const double step = 4e-3, tolerance = 0.02, kink = 0.01;
static const double least = 5e-3; /* a gradient so small is noise (a bias before bn has none) */
static const struct nn_ready no_listener;

struct bench {
    const char *text;
    bool apart;
    struct nn_graph *graph;
    struct nn_net *net;
    struct support_batch batch;
    float *canonical; /* room for any tensor */
    size_t checked, skipped;
};

static void check(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

static double loss(struct bench *b)
{
    struct nn_outcome outcome;

    check(nn_net_forward(b->net, &b->batch.batch, true, &outcome));
    return outcome.loss_sum;
}

/* Values that treat nothing kindly: no zeros, no ones. */
static void start(struct bench *b)
{
    float *weights = nn_net_weights(b->net);

    nn_graph_start(b->graph, 11, weights, nn_net_statistics(b->net));
    for (size_t i = 0; i < nn_graph_params(b->graph); i++) {
        const struct nn_tensor *t = nn_graph_param(b->graph, i);

        support_fill(b->canonical, t->values, (uint32_t)i + 50);
        for (size_t e = 0; e < t->values && t->start != NN_START_UNIFORM; e++)
            b->canonical[e] = b->canonical[e] * 0.5f + (t->start == NN_START_ONE ? 1.0f : 0.0f);
        if (t->start != NN_START_UNIFORM)
            nn_tensor_import(t, b->canonical, weights + t->offset);
    }
}

static void bench_init(struct bench *b, const char *text, bool apart)
{
    struct nn_setup setup = {
        .n_max = N_MAX, .training = true, .input_gradient = true, .apart = apart};
    struct support_batch other;
    struct nn_outcome outcome;
    size_t room;

    *b = (struct bench){.text = text, .apart = apart, .graph = support_graph(text)};
    room = nn_graph_weight_floats(b->graph) + N * nn_shape_floats(nn_graph_input(b->graph));
    b->canonical = base_calloc(room, sizeof *b->canonical);
    check(nn_net_new(b->graph, &setup, &b->net));
    start(b);
    /* A larger batch first, so that memory is not zero where the layers expect nothing. */
    support_batch_init(&other, b->graph, N_MAX, 9);
    check(nn_net_forward(b->net, &other.batch, true, &outcome));
    check(nn_net_backward(b->net, 1.0f, no_listener));
    support_batch_fini(&other);
    support_batch_init(&b->batch, b->graph, N, 1);
}

static void bench_fini(struct bench *b)
{
    nn_net_free(b->net);
    nn_graph_free(b->graph);
    support_batch_fini(&b->batch);
    base_free(b->canonical);
}

/* ---- gradients ---- */

/* What is moved: a tensor (through its canonical values) or the input. */
struct moved {
    const struct nn_tensor *tensor;
    float *values;
    size_t count;
};

static double loss_at(struct bench *b, const struct moved *m, size_t e, float value)
{
    m->values[e] = value;
    if (m->tensor != NULL)
        nn_tensor_import(m->tensor, m->values, nn_net_weights(b->net) + m->tensor->offset);
    return loss(b);
}

/* Differences over [-h, h] around element e: the slope, and by how much it bends in the middle. */
struct differences {
    double slope, bend;
};

static struct differences differ(struct bench *b, const struct moved *m, size_t e, double h,
                                 double middle)
{
    float old = m->values[e];
    float above = old + (float)h, below = old - (float)h;
    double high = loss_at(b, m, e, above), low = loss_at(b, m, e, below);
    double right = (high - middle) / ((double)above - (double)old);
    double left = (middle - low) / ((double)old - (double)below);

    m->values[e] = old;
    return (struct differences){(high - low) / ((double)above - (double)below), right - left};
}

static double root_mean_square(const float *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    return sqrt(sum / (double)count);
}

static void compare(struct bench *b, const struct moved *m, const float *gradient, const char *what)
{
    double scale = root_mean_square(gradient, m->count), middle = loss(b);

    for (size_t e = 0; e < m->count; e++) {
        struct differences full = differ(b, m, e, step, middle);
        struct differences half = differ(b, m, e, step / 2, middle);
        double want = (4 * half.slope - full.slope) / 3, got = (double)gradient[e];
        double size = fabs(got) + scale + least;

        b->checked++;
        /* A curve bends half as much over half the step, a kink does not. */
        if (fabs(full.slope - half.slope) > kink * size ||
            fabs(full.bend - 2 * half.bend) > 2 * kink * size) {
            b->skipped++;
            continue;
        }
        if (!(fabs(want - got) <= tolerance * size))
            fail_msg("%s: gradient of element %zu is %g, differences say %g, in\n%s", what, e, got,
                     want, b->text);
    }
    if (m->tensor != NULL)
        nn_tensor_import(m->tensor, m->values, nn_net_weights(b->net) + m->tensor->offset);
}

static void check_params(struct bench *b, const float *gradients)
{
    for (size_t i = 0; i < nn_graph_params(b->graph); i++) {
        const struct nn_tensor *t = nn_graph_param(b->graph, i);
        struct moved m = {.tensor = t, .values = b->canonical, .count = t->values};
        float *want = base_calloc(t->values, sizeof *want);

        nn_tensor_export(t, nn_net_weights(b->net) + t->offset, m.values);
        nn_tensor_export(t, gradients + t->offset, want);
        compare(b, &m, want, t->name);
        base_free(want);
    }
}

static void check_input(struct bench *b, const struct nn_edge *edge, const float *gradient)
{
    struct nn_shape s = edge->shape;
    struct moved m = {.values = b->batch.x, .count = N * nn_shape_values(s)};
    float *want = base_calloc(m.count, sizeof *want), *at = want;

    for (int j = 0; j < N; j++)
        for (int c = 0; c < s.c; c++)
            for (int h = 0; h < s.h; h++)
                for (int w = 0; w < s.w; w++)
                    *at++ = gradient[(size_t)j * nn_shape_floats(s) + nn_shape_at(s, c, h, w)];
    compare(b, &m, want, "the input");
    base_free(want);
}

static void check_gradients(struct bench *b)
{
    size_t floats = nn_graph_weight_floats(b->graph);
    float *gradients = base_calloc(floats, sizeof *gradients), *input;
    struct nn_edge edge;
    size_t room;

    assert_int_equal(nn_net_entering(b->net, &edge, 1), 1);
    room = N * nn_shape_floats(edge.shape) * sizeof(float);
    input = base_calloc(1, room);
    loss(b);
    check(nn_net_backward(b->net, 1.0f, no_listener));
    memcpy(gradients, nn_net_gradients(b->net), floats * sizeof *gradients);
    memcpy(input, edge.gradients, room);
    check_params(b, gradients);
    check_input(b, &edge, input);
    if (b->skipped * 20 > b->checked)
        fail_msg("%zu of %zu elements left out of\n%s", b->skipped, b->checked, b->text);
    base_free(gradients);
    base_free(input);
}

/* ---- padding ---- */

static void check_padding(struct nn_shape s, const float *values, const char *what)
{
    for (int j = 0; j < N && !s.planar; j++)
        for (int c = s.c; c < nn_pad8(s.c); c++)
            for (int h = 0; h < s.h; h++)
                for (int w = 0; w < s.w; w++)
                    if (values[(size_t)j * nn_shape_floats(s) + nn_shape_at(s, c, h, w)] != 0)
                        fail_msg("%s: channel %d of %d is not zero", what, c, s.c);
}

static void look(void *context, const struct nn_node *node, int n, const float *values)
{
    (void)context;
    assert_int_equal(n, N);
    check_padding(node->out, values, node->layer->name);
}

static void check_weight_padding(struct bench *b)
{
    const float *gradients = nn_net_gradients(b->net);

    for (size_t i = 0; i < nn_graph_params(b->graph); i++) {
        const struct nn_tensor *t = nn_graph_param(b->graph, i);
        float *again = base_calloc(t->floats, sizeof *again);

        nn_tensor_export(t, gradients + t->offset, b->canonical);
        nn_tensor_import(t, b->canonical, again);
        for (size_t e = 0; e < t->floats; e++)
            if (again[e] != gradients[t->offset + e])
                fail_msg("padding of the gradient of %s is not zero", t->name);
        base_free(again);
    }
}

/* Cuts before `cut` to see the gradients inside. */
static void check_inner_gradients(struct bench *b, int cut)
{
    struct nn_setup setup = {.last = cut,
                             .n_max = N_MAX,
                             .training = true,
                             .weights = nn_net_weights(b->net),
                             .apart = b->apart};
    struct nn_edge edges[8];
    struct nn_outcome outcome;
    struct nn_net *left, *right;
    int count;

    check(nn_net_new(b->graph, &setup, &left));
    setup.weights += nn_graph_weights_of(b->graph, 0, cut).count;
    setup.first = cut;
    setup.last = 0;
    check(nn_net_new(b->graph, &setup, &right));
    check(nn_net_forward(left, &b->batch.batch, true, &outcome));
    support_carry(left, right, N, false);
    count = nn_net_entering(right, edges, 8);
    for (int i = 0; i < count; i++)
        support_fill(edges[i].gradients, N * nn_shape_floats(edges[i].shape), 3);
    check(nn_net_forward(right, &b->batch.batch, true, &outcome));
    check(nn_net_backward(right, 1.0f, no_listener));
    for (int i = 0; i < count; i++)
        check_padding(edges[i].shape, edges[i].gradients,
                      nn_graph_node(b->graph, cut)->layer->name);
    nn_net_free(left);
    nn_net_free(right);
}

static void check_zeros(struct bench *b)
{
    int layers = nn_graph_layers(b->graph);

    for (int i = 0; i < layers; i++)
        nn_net_hook(b->net, i, look, NULL);
    loss(b);
    check(nn_net_backward(b->net, 1.0f, no_listener));
    check_weight_padding(b);
    for (int cut = 1; cut < layers; cut++)
        check_inner_gradients(b, cut);
}

/* ---- the registry ---- */

static bool uses(const struct nn_graph *graph, const struct nn_layer *layer)
{
    for (int i = 0; i < nn_graph_layers(graph); i++)
        if (nn_graph_node(graph, i)->layer == layer)
            return true;
    return false;
}

static bool fuses(const struct nn_graph *graph, const struct nn_layer *layer)
{
    struct nn_graph *fused = nn_graph_fuse(graph, 0, nn_graph_layers(graph));
    bool found = uses(fused, layer);

    nn_graph_free(fused);
    return found;
}

static void check_examples(const struct nn_layer *layer, bool apart)
{
    int count = 0;

    assert_non_null(layer->help);
    for (; layer->examples != NULL && layer->examples[count] != NULL; count++) {
        struct bench b;

        bench_init(&b, layer->examples[count], apart);
        assert_true(apart ? uses(b.graph, layer) : fuses(b.graph, layer));
        check_gradients(&b);
        check_zeros(&b);
        bench_fini(&b);
    }
    if (count == 0)
        fail_msg("the layer %s has no example", layer->name);
}

static void every_layer_matches_finite_differences(void **state)
{
    (void)state;
    assert_true(nn_layer_count >= 14);
    for (size_t i = 0; i < nn_layer_count; i++) {
        const struct nn_layer *layer = nn_layer_registry[i];

        assert_non_null(layer->usage);
        assert_memory_equal(layer->usage, layer->name, strlen(layer->name));
        check_examples(layer, true);
    }
}

static void every_fused_layer_matches_finite_differences(void **state)
{
    (void)state;
    assert_true(nn_fused_count >= 3);
    for (size_t i = 0; i < nn_fused_count; i++)
        check_examples(&nn_fused_registry[i]->layer, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_matches_finite_differences),
        cmocka_unit_test(every_fused_layer_matches_finite_differences),
    };

    nn_threads_set(1); /* tiny work: more threads only wait for each other */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
