/* SPDX-License-Identifier: MIT
 *
 * Folding batch norms: which layers take one over, what becomes of their tensors, and that values
 * are those of the formula.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/fold.h"
#include "support/nets.h"

struct model {
    struct nn_graph *graph;
    float *weights, *statistics;
};

static struct model model_new(const char *text)
{
    struct model m = {.graph = support_graph(text)};

    assert_int_equal(
        base_tensor(nn_graph_weight_floats(m.graph) + 1, sizeof(float), "weights", &m.weights),
        BASE_OK);
    assert_int_equal(
        base_tensor(nn_graph_stat_floats(m.graph) + 1, sizeof(float), "statistics", &m.statistics),
        BASE_OK);
    nn_graph_start(m.graph, 3, m.weights, m.statistics);
    for (size_t i = 0; i < nn_graph_stats(m.graph); i++) {
        const struct nn_tensor *t = nn_graph_stat(m.graph, i);

        for (size_t e = 0; e < t->values; e++)
            m.statistics[t->offset + e] = 0.3f + 0.01f * (float)((e * 7 + i) % 11);
    }
    return m;
}

static void model_free(struct model *m)
{
    base_free(m->weights);
    base_free(m->statistics);
    nn_graph_free(m->graph);
}

/* Names of all tensors of the folded model, weights then statistics. */
static void check_tensors(const char *text, const char *want)
{
    struct model m = model_new(text);
    struct nn_fold fold;
    char got[1024] = "";

    assert_int_equal(nn_fold_init(&fold, m.graph, m.weights, m.statistics), BASE_OK);
    for (size_t i = 0; i < nn_graph_params(fold.graph); i++) {
        strcat(got, got[0] ? " " : "");
        strcat(got, nn_graph_param(fold.graph, i)->name);
    }
    for (size_t i = 0; i < nn_graph_stats(fold.graph); i++) {
        strcat(got, " ");
        strcat(got, nn_graph_stat(fold.graph, i)->name);
    }
    assert_string_equal(got, want);
    assert_int_equal(nn_graph_layers(fold.graph), nn_graph_layers(m.graph));
    nn_fold_fini(&fold);
    model_free(&m);
}

static void what_folds(void **unused)
{
    (void)unused;
    check_tensors("input 3x4x4\nconv 9 3x3 bias=off name=c\nbn name=b\nrelu\ndense 3 name=d\n"
                  "bn name=e\nmse",
                  "c.weight c.bias d.weight d.bias");
    /* first, after a ReLU, after another: nothing to fold into */
    check_tensors(
        "input 8x4x4\nbn name=a\nrelu\nbn name=b\nconv 8 1x1 name=c\nbn name=d\nbn name=e\n"
        "dense 3 name=f\nmse",
        "a.weight a.bias b.weight b.bias c.weight c.bias e.weight e.bias f.weight f.bias "
        "a.running_mean a.running_var b.running_mean b.running_var e.running_mean "
        "e.running_var");
    /* a name in between: its readers want the convolution's own output */
    check_tensors("input 8x4x4\nconv 8 1x1 name=c bias=off\nsave s\nbn name=d\nadd s\n"
                  "dense 3 name=f\nmse",
                  "c.weight d.weight d.bias f.weight f.bias d.running_mean d.running_var");
    check_tensors("input 3x4x4\ndense 3 name=d\nmse", "d.weight d.bias");
}

/* Canonical values of a tensor by name. */
static float *values_of(const struct nn_graph *graph, const float *weights, const char *name)
{
    for (size_t i = 0; i < nn_graph_params(graph); i++) {
        const struct nn_tensor *t = nn_graph_param(graph, i);
        float *canonical;

        if (strcmp(t->name, name) != 0)
            continue;
        assert_int_equal(base_tensor(t->values, sizeof(float), "values", &canonical), BASE_OK);
        nn_tensor_export(t, weights + t->offset, canonical);
        return canonical;
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

/* `text` has a convolution c of `outputs` outputs with `inputs` weights each, and its bn b. */
static void check_values(const char *text, int outputs, int inputs, double eps, bool bias)
{
    struct model m = model_new(text);
    struct nn_fold fold;
    float *was, *was_bias = NULL, *is, *is_bias;
    const struct nn_tensor *mean = nn_graph_stat(m.graph, 0), *variance = nn_graph_stat(m.graph, 1);

    assert_int_equal(nn_fold_init(&fold, m.graph, m.weights, m.statistics), BASE_OK);
    was = values_of(m.graph, m.weights, "c.weight");
    if (bias)
        was_bias = values_of(m.graph, m.weights, "c.bias");
    is = values_of(fold.graph, fold.weights, "c.weight");
    is_bias = values_of(fold.graph, fold.weights, "c.bias");
    for (int o = 0; o < outputs; o++) {
        double factor = 1 / sqrt((double)m.statistics[variance->offset + (size_t)o] + eps);
        double own = bias ? (double)was_bias[o] : 0;

        for (int i = 0; i < inputs; i++)
            assert_true(fabs((double)is[o * inputs + i] - factor * (double)was[o * inputs + i]) <
                        1e-6);
        assert_true(fabs((double)is_bias[o] -
                         factor * (own - (double)m.statistics[mean->offset + (size_t)o])) < 1e-6);
    }
    base_free(was);
    base_free(was_bias);
    base_free(is);
    base_free(is_bias);
    nn_fold_fini(&fold);
    model_free(&m);
}

static void values_are_those_of_the_formula(void **unused)
{
    (void)unused;
    check_values("input 3x4x4\nconv 9 3x3 name=c\nbn name=b\ndense 3\nmse", 9, 27, 1e-5, true);
    check_values("input 12x4x4\nconv 10 3x3 bias=off name=c\nbn eps=1e-3 name=b\ndense 3\nmse", 10,
                 108, 1e-3, false);
    check_values("input 12x4x4\nconv 8 3x3 groups=4 name=c\nbn name=b\ndense 3\nmse", 8, 27, 1e-5,
                 true);
    check_values("input 5x3x2\ndense 9 name=c\nbn name=b\ndense 3\nmse", 9, 30, 1e-5, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_folds),
        cmocka_unit_test(values_are_those_of_the_formula),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
