/* SPDX-License-Identifier: MIT
 *
 * Ten training steps against PyTorch: losses, an evaluation, the norms of every tensor and of how
 * far it moved, from the *.txt beside this file (make_golden.py made them and defines the
 * samples). Every convolution candidate runs on all layers it serves. Dropout is off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "nn/conv/conv.h"
#include "nn/net.h"
#include "nn/optimiser.h"
#include "nn/zoo.h"

enum { STEPS = 10, NAME = 64, TENSORS = 128, CLASSES = 10 };

struct norms {
    char name[NAME];
    double norm, moved; /* |w|, |w - start|; no `moved` for statistics */
};

struct golden {
    char model[NAME];
    uint64_t seed;
    int steps, batch;
    double lr, momentum, weight_decay;
    double loss[STEPS], evaluation;
    struct norms params[TENSORS], stats[TENSORS];
    size_t param_count, stat_count;
};

/* A network in training, with what one run of it needs. */
struct bench {
    const struct golden *golden;
    struct nn_graph *graph;
    struct nn_net *net;
    float *start, *momentum; /* weight buffers: before the first step; the optimiser's slot */
    float *x;                /* (batch,C,H,W) */
    int32_t *labels;
    uint32_t *ids;
};

static void must(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

static void check_close(const char *what, const char *name, double got, double want, double error)
{
    if (!(fabs(got - want) <= error))
        fail_msg("%s %s is %.9g, PyTorch has %.9g (off by %.2g, allowed %.2g)", what, name, got,
                 want, fabs(got - want), error);
}

static void read_line(const char *line, struct golden *g)
{
    struct norms t = {0};
    double value;
    int step;

    if (line[0] == '#' || sscanf(line, "model %63s", g->model) == 1 ||
        sscanf(line, "seed %" SCNu64, &g->seed) == 1 || sscanf(line, "steps %d", &g->steps) == 1 ||
        sscanf(line, "batch %d", &g->batch) == 1 || sscanf(line, "lr %lf", &g->lr) == 1 ||
        sscanf(line, "momentum %lf", &g->momentum) == 1 ||
        sscanf(line, "weight_decay %lf", &g->weight_decay) == 1 ||
        sscanf(line, "evaluation %lf", &g->evaluation) == 1)
        return;
    if (sscanf(line, "loss %d %lf", &step, &value) == 2 && step >= 1 && step <= STEPS)
        g->loss[step - 1] = value;
    else if (sscanf(line, "param %63s %lf %lf", t.name, &t.norm, &t.moved) == 3 &&
             g->param_count < TENSORS)
        g->params[g->param_count++] = t;
    else if (sscanf(line, "stat %63s %lf", t.name, &t.norm) == 2 && g->stat_count < TENSORS)
        g->stats[g->stat_count++] = t;
    else
        fail_msg("a golden file has the line '%s'", line);
}

static void read_golden(const char *model, struct golden *g)
{
    char *path = base_format("%s/golden/%s.txt", TEST_SOURCE_DIR, model);
    char *text = NULL, *rest = NULL;
    size_t count = 0;

    *g = (struct golden){0};
    must(base_file_read(path, 1 << 20, &text, &count));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_line(line, g);
    assert_string_equal(g->model, model);
    assert_int_equal(g->steps, STEPS);
    for (int i = 0; i < STEPS; i++)
        assert_true(g->loss[i] > 0);
    base_free(text);
    base_free(path);
}

/* The zoo's text without its dropout lines; the layers that matter have names of their own. */
static struct nn_graph *graph_of(const char *model)
{
    struct base_str kept = {0};
    struct nn_graph *graph = NULL;
    char *text = NULL, *rest = NULL;

    must(nn_model_text(model, &text));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "dropout", 7) != 0)
            base_str_add(&kept, "%s\n", line);
    must(nn_graph_new(kept.text, model, (struct nn_shape){0}, 0, &graph));
    base_str_fini(&kept);
    base_free(text);
    return graph;
}

static void bench_init(struct bench *b, const struct golden *g, const char *kernels)
{
    *b = (struct bench){.golden = g, .graph = graph_of(g->model)};

    const struct nn_setup setup = {.n_max = g->batch, .training = true, .kernels = kernels};
    const size_t floats = nn_graph_weight_floats(b->graph), n = (size_t)g->batch;

    must(nn_net_new(b->graph, &setup, &b->net));
    must(base_tensor(floats, sizeof(float), "starting weights", &b->start));
    must(base_tensor(floats, sizeof(float), "momentum", &b->momentum));
    must(base_tensor(n * nn_shape_values(nn_graph_input(b->graph)), sizeof(float), "x", &b->x));
    must(base_tensor(n, sizeof *b->labels, "labels", &b->labels));
    must(base_tensor(n, sizeof *b->ids, "ids", &b->ids));
    nn_graph_start(b->graph, g->seed, nn_net_weights(b->net), nn_net_statistics(b->net));
    memcpy(b->start, nn_net_weights(b->net), floats * sizeof(float));
}

static void bench_fini(struct bench *b)
{
    nn_net_free(b->net);
    nn_graph_free(b->graph);
    base_free(b->start);
    base_free(b->momentum);
    base_free(b->x);
    base_free(b->labels);
    base_free(b->ids);
}

/* Half the signed pattern of the sample's class, half signed noise of its own. */
static void make_sample(uint64_t seed, uint32_t id, size_t count, float *x, int32_t *label_p)
{
    struct base_rng classes = base_rng_of(seed, BASE_STREAM_TEST, 0, 0, id);
    uint32_t label = base_rng_u32(&classes, 0) % CLASSES;
    struct base_rng pattern = base_rng_of(seed, BASE_STREAM_TEST, 1, 0, label);
    struct base_rng noise = base_rng_of(seed, BASE_STREAM_TEST, 2, 0, id);

    for (uint32_t i = 0; i < count; i++) {
        float a = 2.0f * base_rng_unit(base_rng_u32(&pattern, i)) - 1.0f;
        float b = 2.0f * base_rng_unit(base_rng_u32(&noise, i)) - 1.0f;

        x[i] = 0.5f * a + 0.5f * b;
    }
    *label_p = (int32_t)label;
}

static double forward(struct bench *b, int number, bool training)
{
    const int n = b->golden->batch;
    const size_t values = nn_shape_values(nn_graph_input(b->graph));
    struct nn_outcome outcome;

    for (int i = 0; i < n; i++) {
        b->ids[i] = (uint32_t)(number * n + i);
        make_sample(b->golden->seed, b->ids[i], values, b->x + (size_t)i * values, &b->labels[i]);
    }
    must(nn_net_forward(
        b->net,
        &(struct nn_batch){
            .n = n,
            .x = b->x,
            .samples = {.labels = b->labels, .ids = b->ids, .seed = b->golden->seed}},
        training, &outcome));
    return outcome.loss_sum / n;
}

static void update(struct bench *b, int step)
{
    const struct golden *g = b->golden;
    const struct nn_optimiser *sgd = NULL;
    const struct nn_hyper hyper = {.lr = g->lr,
                                   .momentum = g->momentum,
                                   .weight_decay = g->weight_decay,
                                   .gradient_scale = 1,
                                   .step = (uint64_t)step};
    float *weights = nn_net_weights(b->net);

    must(nn_optimiser_find("sgd", &sgd));
    sgd->update(&hyper, &(struct nn_update){.count = nn_graph_weight_floats(b->graph),
                                            .gradient = nn_net_gradients(b->net),
                                            .weight_in = weights,
                                            .weight_out = weights,
                                            .slot_in = {b->momentum},
                                            .slot_out = {b->momentum}});
}

/* L2 norms of a tensor's canonical values, and of their distance from `start` (or from zero). */
static struct norms measure(const struct nn_tensor *tensor, const float *values, const float *start)
{
    struct norms t = {0};
    float *now = NULL, *before = NULL;

    must(base_tensor(tensor->values, sizeof(float), tensor->name, &now));
    must(base_tensor(tensor->values, sizeof(float), tensor->name, &before));
    nn_tensor_export(tensor, values + tensor->offset, now);
    if (start)
        nn_tensor_export(tensor, start + tensor->offset, before);
    for (size_t i = 0; i < tensor->values; i++) {
        double change = (double)now[i] - (double)before[i];

        t.norm += (double)now[i] * (double)now[i];
        t.moved += change * change;
    }
    base_free(now);
    base_free(before);
    t.norm = sqrt(t.norm);
    t.moved = sqrt(t.moved);
    return t;
}

static void check_tensors(const struct bench *b)
{
    const struct golden *g = b->golden;

    assert_int_equal(nn_graph_params(b->graph), g->param_count);
    assert_int_equal(nn_graph_stats(b->graph), g->stat_count);
    for (size_t i = 0; i < g->param_count; i++) {
        const struct nn_tensor *tensor = nn_graph_param(b->graph, i);
        const struct norms *want = &g->params[i];
        struct norms got = measure(tensor, nn_net_weights(b->net), b->start);

        assert_string_equal(tensor->name, want->name);
        /* Kernels that differ by 3e-6 flip a ReLU or a maximum here and there, and a batch-norm's
         * bias, which starts at zero, then moves 3e-3 otherwise; weights decide the norms of the
         * rest. A bias before batch-norm has no gradient but rounding: a share of its norm. */
        check_close("norm of", want->name, got.norm, want->norm,
                    1e-3 * want->norm + 1e-2 * want->moved);
        check_close("movement of", want->name, got.moved, want->moved,
                    1e-2 * want->moved + 1e-6 * want->norm);
    }
    for (size_t i = 0; i < g->stat_count; i++) {
        const struct nn_tensor *tensor = nn_graph_stat(b->graph, i);
        struct norms got = measure(tensor, nn_net_statistics(b->net), NULL);

        assert_string_equal(tensor->name, g->stats[i].name);
        check_close("norm of", tensor->name, got.norm, g->stats[i].norm, 1e-3 * g->stats[i].norm);
    }
}

static void run(const struct golden *g, const char *candidate, const char *kernels)
{
    struct bench b;
    double worst = 0;

    bench_init(&b, g, kernels);
    for (int step = 1; step <= g->steps; step++) {
        double want = g->loss[step - 1], loss = forward(&b, step - 1, true);
        char name[16];

        snprintf(name, sizeof name, "%d", step);
        check_close("loss of step", name, loss, want, 1e-4 * want);
        worst = fmax(worst, fabs(loss - want) / want);
        must(nn_net_backward(b.net, 1.0f / (float)g->batch, (struct nn_ready){0}));
        update(&b, step);
    }
    check_close("evaluation of", g->model, forward(&b, g->steps, false), g->evaluation,
                1e-4 * g->evaluation);
    check_tensors(&b);
    print_message("%s with %s: losses within %.1e\n", g->model, candidate, worst);
    bench_fini(&b);
}

/* "LAYER=NAME …" for the layers that the candidate serves, tried one at a time on borrowed
 * buffers; empty when it serves none. */
static char *plan_of(const struct golden *g, const char *candidate)
{
    struct nn_graph *graph = graph_of(g->model);
    struct base_str plan = {0};
    float *weights = NULL, *gradients = NULL, *statistics = NULL;

    must(base_tensor(nn_graph_weight_floats(graph), sizeof(float), "weights", &weights));
    must(base_tensor(nn_graph_weight_floats(graph), sizeof(float), "gradients", &gradients));
    must(base_tensor(nn_graph_stat_floats(graph), sizeof(float), "statistics", &statistics));
    for (int i = 0; i < nn_graph_layers(graph); i++) {
        const struct nn_node *node = nn_graph_node(graph, i);
        const struct nn_setup setup = {.first = i,
                                       .last = i + 1,
                                       .n_max = g->batch,
                                       .training = true,
                                       .weights = weights,
                                       .gradients = gradients,
                                       .statistics = statistics,
                                       .kernels = candidate};
        struct nn_net *net = NULL;
        base_status st;

        if (strcmp(node->layer->name, "conv") != 0)
            continue;
        st = nn_net_new(graph, &setup, &net);
        if (st == BASE_OK)
            base_str_add(&plan, "%s%s=%s", plan.length ? " " : "", node->name, candidate);
        else if (st != BASE_ERR_USAGE) /* what a candidate that does not serve is */
            must(st);
        nn_net_free(net);
    }
    base_free(weights);
    base_free(gradients);
    base_free(statistics);
    nn_graph_free(graph);
    return base_str_take(&plan);
}

static void run_all(const char *model)
{
    struct golden golden;
    int ran = 0;

    read_golden(model, &golden);
    for (size_t i = 0; i < nn_conv_count(); i++) {
        const char *candidate = nn_conv_registry()[i]->name;
        char *plan = plan_of(&golden, candidate);

        if (plan[0] != '\0') {
            run(&golden, candidate, plan);
            ran++;
        }
        base_free(plan);
    }
    assert_true(ran >= 1);
}

static void test_mnist_cnn(void **state)
{
    (void)state;
    run_all("mnist-cnn");
}

static void test_vgg11(void **state)
{
    (void)state;
    run_all("vgg11");
}

static void test_resnet18(void **state)
{
    (void)state;
    run_all("resnet18");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mnist_cnn),
        cmocka_unit_test(test_vgg11),
        cmocka_unit_test(test_resnet18),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
