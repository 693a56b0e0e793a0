/* SPDX-License-Identifier: MIT
 *
 * Models as lists of operators: what reads what, where vectors and images meet, what
 * is left of folded batch norms; and every example of every layer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/fold.h"
#include "nn/ops.h"
#include "support/nets.h"

/* "Conv(input,a.weight,a.bias) Relu(a/Conv) …" */
static char *list_text(const struct nn_ops *ops)
{
    struct base_str s = {0};

    for (size_t i = 0; i < ops->count; i++) {
        const struct nn_op *op = ops->at[i];

        base_str_add(&s, "%s%s(", i > 0 ? " " : "", op->type);
        for (int k = 0; k < op->inputs; k++)
            base_str_add(&s, "%s%s", k > 0 ? "," : "",
                         op->input[k].value != NULL ? op->input[k].value
                                                    : op->input[k].tensor->name);
        base_str_add(&s, ")");
    }
    return base_str_take(&s);
}

static void assert_list(const char *model, const char *expected)
{
    struct nn_graph *graph = support_graph(model);
    struct nn_ops ops;
    char *text;

    if (nn_ops_init(&ops, graph) != BASE_OK)
        fail_msg("%s", base_message());
    text = list_text(&ops);
    assert_string_equal(text, expected);
    base_free(text);
    nn_ops_fini(&ops);
    nn_ops_fini(&ops);
    nn_graph_free(graph);
}

static void test_lists(void **state)
{
    (void)state;
    assert_list("input 3x4x4\nconv 8 3x3 name=a\ndropout 0.5\nrelu name=b\ndense 2 name=c\n",
                "Conv(input,a.weight,a.bias) Relu(a/Conv) Flatten(b/Relu) "
                "Gemm(c/Flatten,c.weight,c.bias) Softmax(c/Gemm)");
    /* a flattened tensor is flattened once, and a score of one pixel is a vector */
    assert_list("input 9x1x1\nflatten\nflatten\nmse\n", "Flatten(input) Identity(0/Flatten)");
    assert_list("input 3x4x4\ngavgpool name=g\n",
                "GlobalAveragePool(input) Flatten(g/GlobalAveragePool) Softmax(1/Flatten)");
    /* what add reads is made a vector where the other one is */
    assert_list("input 4x1x1\nsave a\ndense 4 bias=off name=d\nadd a name=s\n",
                "Flatten(input) Gemm(d/Flatten,d.weight) Flatten(input) Add(d/Gemm,s/Flatten) "
                "Softmax(s/Add)");
    assert_list("input 3x2x2\nrelu name=r\nsave a\nrelu name=q\nsave b\nload a\nadd b name=s\n"
                "gavgpool name=g\n",
                "Relu(input) Relu(r/Relu) Add(r/Relu,q/Relu) GlobalAveragePool(s/Add) "
                "Flatten(g/GlobalAveragePool) Softmax(7/Flatten)");
}

static void test_folded(void **state)
{
    struct nn_graph *graph = support_graph("input 3x4x4\nconv 8 3x3 bias=off name=a\nbn name=n\n"
                                           "bn name=m\ndense 2 name=c\n");
    float *weights = base_calloc(nn_graph_weight_floats(graph), sizeof *weights);
    float *statistics = base_calloc(nn_graph_stat_floats(graph), sizeof *statistics);
    struct nn_fold fold;
    struct nn_ops ops;
    char *text;

    (void)state;
    assert_int_equal(nn_fold_init(&fold, graph, weights, statistics), BASE_OK);
    assert_int_equal(nn_ops_init(&ops, fold.graph), BASE_OK);
    text = list_text(&ops);
    assert_string_equal(
        text, "Conv(input,a.weight,a.bias) "
              "BatchNormalization(a/Conv,m.weight,m.bias,m.running_mean,m.running_var) "
              "Flatten(m/BatchNormalization) Gemm(c/Flatten,c.weight,c.bias) Softmax(c/Gemm)");
    base_free(text);
    nn_ops_fini(&ops);
    nn_fold_fini(&fold);
    base_free(weights);
    base_free(statistics);
    nn_graph_free(graph);
}

static const int64_t *attribute(const struct nn_op *op, const char *name, int count)
{
    for (int i = 0; i < op->attributes; i++)
        if (strcmp(op->attribute[i].name, name) == 0) {
            assert_int_equal(op->attribute[i].count, count);
            return op->attribute[i].numbers;
        }
    fail_msg("%s has no %s", op->type, name);
    return NULL;
}

static void test_attributes(void **state)
{
    struct nn_graph *graph =
        support_graph("input 8x9x9\nconv 8 3x1 stride=2x1 pad=1x0 groups=4\navgpool 3x2 pad=1\n"
                      "bn eps=0.25\nflatten\ndense 3\n");
    struct nn_ops ops;

    (void)state;
    assert_int_equal(nn_ops_init(&ops, graph), BASE_OK);
    assert_memory_equal(attribute(ops.at[0], "kernel_shape", 2), ((int64_t[]){3, 1}), 16);
    assert_memory_equal(attribute(ops.at[0], "strides", 2), ((int64_t[]){2, 1}), 16);
    assert_memory_equal(attribute(ops.at[0], "pads", 4), ((int64_t[]){1, 0, 1, 0}), 32);
    assert_int_equal(*attribute(ops.at[0], "group", 0), 4);
    assert_memory_equal(attribute(ops.at[1], "strides", 2), ((int64_t[]){3, 2}), 16);
    assert_int_equal(*attribute(ops.at[1], "count_include_pad", 0), 1);
    assert_string_equal(ops.at[2]->attribute[0].name, "epsilon");
    assert_true(ops.at[2]->attribute[0].real && ops.at[2]->attribute[0].number == 0.25f);
    assert_true(ops.at[2]->input[3].statistic && !ops.at[2]->input[1].statistic);
    assert_int_equal(*attribute(ops.at[4], "transB", 0), 1);
    nn_ops_fini(&ops);
    nn_graph_free(graph);
}

static void test_refused(void **state)
{
    struct nn_graph *graph = support_graph("input 3x4x4\nconv 2 1x1\nsave i\nflatten\nsave v\n"
                                           "load i\nadd v\ndense 2\n");
    struct nn_graph *other = support_graph("input 3x4x4\nrelu name=strange\ndense 2\n"), *view;
    struct nn_layer closed = *nn_graph_node(other, 0)->layer;
    struct nn_node *nodes = NULL;
    struct nn_ops ops;

    (void)state;
    assert_int_equal(nn_ops_init(&ops, graph), BASE_ERR_MODEL);
    assert_non_null(strstr(base_message(), "line 7: add cannot be exported"));
    assert_null(ops.at);
    /* a layer that says nothing of itself */
    closed.express = NULL;
    view = nn_graph_view(other, &nodes);
    nodes[0].layer = &closed;
    assert_int_equal(nn_ops_init(&ops, view), BASE_ERR_MODEL);
    assert_string_equal(base_message(),
                        "layer strange (relu) cannot be exported: it has no form in ONNX");
    nn_graph_free(view);
    nn_graph_free(other);
    nn_graph_free(graph);
}

static void assert_expressible(const char *model)
{
    struct nn_graph *graph = support_graph(model);
    struct nn_ops ops;

    if (nn_ops_init(&ops, graph) != BASE_OK)
        fail_msg("%s: %s", model, base_message());
    assert_true(ops.count > 0);
    for (size_t i = 0; i < ops.count; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(ops.at[i]->output, ops.at[j]->output);
    nn_ops_fini(&ops);
    nn_graph_free(graph);
}

static void test_every_layer(void **state)
{
    (void)state;
    for (size_t i = 0; i < nn_layer_count; i++) /* one that says nothing of itself may be there */
        for (const char *const *example = nn_layer_registry[i]->examples; *example != NULL;
             example++)
            if (nn_layer_registry[i]->express != NULL || nn_layer_registry[i]->forward == NULL)
                assert_expressible(*example);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_folded),
        cmocka_unit_test(test_attributes),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_every_layer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
