/* SPDX-License-Identifier: MIT
 *
 * Linear discriminants from sums: by hand in one dimension, sums of two workers, a class without
 * samples, and data that has no solution. tests/dist/tables.sh compares with scikit-learn.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/closed.h"
#include "nn/graph.h"
#include "nn/zoo.h"

static const struct nn_closed *lda;
static const char *none;

static struct nn_graph *graph_of(int features, int classes)
{
    struct nn_graph *graph = NULL;
    char *text = NULL;

    assert_int_equal(nn_model_text("lda", &text), BASE_OK);
    assert_int_equal(nn_graph_new(text, "lda", (struct nn_shape){.c = features, .h = 1, .w = 1},
                                  classes, &graph),
                     BASE_OK);
    base_free(text);
    return graph;
}

struct solution {
    float weight[12], bias[4];
};

static base_status solve(const struct nn_graph *graph, const char *arguments, double *sums,
                         struct solution *solution_p)
{
    const struct nn_tensor *w = nn_graph_param(graph, 0), *b = nn_graph_param(graph, 1);
    float *weights = base_calloc(nn_graph_weight_floats(graph), sizeof *weights);
    base_status st = lda->solve(graph, arguments, sums, weights);

    nn_tensor_export(w, weights + w->offset, solution_p->weight);
    nn_tensor_export(b, weights + b->offset, solution_p->bias);
    base_free(weights);
    return st;
}

static double *sums_of(const struct nn_graph *graph)
{
    size_t count = 0;

    assert_int_equal(lda->count(graph, &count), BASE_OK);
    return base_calloc(count, sizeof(double));
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fmax(1, fabs(b))))
        fail_msg("%.9g is not %.9g", a, b);
}

/* Means -1 and 2, variance within classes (1+1+1+1+0)/5: w_k = mean_k / 0.8. */
static void test_by_hand(void **state)
{
    struct nn_graph *graph = graph_of(1, 2);
    const float x[] = {-2, 0, 1, 3, 2};
    const int32_t labels[] = {0, 0, 1, 1, 1};
    double *sums = sums_of(graph);
    struct solution s;

    (void)state;
    assert_int_equal(lda->add(graph, 5, x, labels, sums), BASE_OK);
    assert_int_equal(solve(graph, "0", sums, &s), BASE_OK);
    near((double)s.weight[0], -1 / 0.8);
    near((double)s.weight[1], 2 / 0.8);
    near((double)s.bias[0], log(0.4) - 0.5 / 0.8);
    near((double)s.bias[1], log(0.6) - 0.5 * 4 / 0.8);
    base_free(sums);
    nn_graph_free(graph);
}

/* 3 features, 3 classes of which one has no samples; in one piece, and in two that are added. */
static void test_workers(void **state)
{
    enum { N = 37 };
    struct nn_graph *graph = graph_of(3, 3);
    double *one = sums_of(graph), *a = sums_of(graph), *b = sums_of(graph);
    float x[N][3];
    int32_t labels[N];
    struct solution s, t;
    size_t count;

    (void)state;
    for (int i = 0; i < N; i++) {
        labels[i] = 2 * (i % 2);
        for (int j = 0; j < 3; j++)
            x[i][j] = (float)(sin(i * (j + 1.7)) + labels[i] * j);
    }
    assert_int_equal(lda->add(graph, N, x[0], labels, one), BASE_OK);
    assert_int_equal(lda->add(graph, 10, x[0], labels, a), BASE_OK);
    assert_int_equal(lda->add(graph, N - 10, x[10], labels + 10, b), BASE_OK);
    assert_int_equal(lda->count(graph, &count), BASE_OK);
    for (size_t i = 0; i < count; i++)
        a[i] += b[i];
    assert_int_equal(solve(graph, none, one, &s), BASE_OK);
    assert_int_equal(solve(graph, none, a, &t), BASE_OK);
    for (int i = 0; i < 9; i++)
        near((double)s.weight[i], (double)t.weight[i]);
    for (int i = 0; i < 3; i++)
        near((double)s.bias[i], (double)t.bias[i]);
    for (int j = 0; j < 3; j++) /* never predicted, wherever x is */
        assert_true(s.weight[3 + j] == s.weight[j]);
    assert_true(s.bias[1] < s.bias[0] - 1000);
    base_free(one);
    base_free(a);
    base_free(b);
    nn_graph_free(graph);
}

/* The second feature is the first: a shrinkage of 0 leaves nothing to invert. */
static void test_no_solution(void **state)
{
    struct nn_graph *graph = graph_of(2, 2);
    const float x[] = {-2, -2, 0, 0, 1, 1, 3, 3}, constant[] = {1, 1, 1, 1};
    const int32_t labels[] = {0, 0, 1, 1};
    double *sums = sums_of(graph), *flat = sums_of(graph);
    struct solution s;

    (void)state;
    assert_int_equal(lda->add(graph, 4, x, labels, sums), BASE_OK);
    assert_int_equal(solve(graph, "0", sums, &s), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "shrink it more, as in --model lda:0.01"));
    assert_int_equal(lda->add(graph, 2, constant, labels, flat), BASE_OK);
    assert_int_equal(solve(graph, none, flat, &s), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "no feature varies within a class"));
    base_free(sums);
    base_free(flat);
    nn_graph_free(graph);
}

/* Of one sample a class, what is left of the sums of squares is rounding. */
static void test_one_sample_a_class(void **state)
{
    struct nn_graph *graph = graph_of(3, 3);
    const float x[] = {-0.823f,    -0.3693f, 1.6768f,  -0.0009f, 42.3016f,
                       2490.3494f, -0.6792f, -0.0027f, 0.0013f};
    const int32_t labels[] = {0, 1, 2};
    double *sums = sums_of(graph);
    struct solution s;

    (void)state;
    assert_int_equal(lda->add(graph, 3, x, labels, sums), BASE_OK);
    assert_int_equal(solve(graph, none, sums, &s), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "no feature varies within a class"));
    base_free(sums);
    nn_graph_free(graph);
}

/* The text of a manifest need not be that of its model's name. */
static void test_other_model(void **state)
{
    struct nn_graph *graph = NULL;
    size_t count;

    (void)state;
    assert_int_equal(nn_graph_new("input 4x1x1\nclasses 2\ndense 3\ndense classes\n", "other",
                                  (struct nn_shape){0}, 0, &graph),
                     BASE_OK);
    assert_int_equal(lda->count(graph, &count), BASE_ERR_MODEL);
    assert_non_null(strstr(base_message(), "lda is one `dense classes`"));
    nn_graph_free(graph);
}

static void test_names(void **state)
{
    struct nn_graph *graph = graph_of(4097, 2);
    char *text = NULL;
    size_t count;

    (void)state;
    assert_int_equal(lda->count(graph, &count), BASE_ERR_MODEL);
    assert_int_equal(nn_model_text("lda:0.5", &text), BASE_OK);
    base_free(text);
    assert_int_equal(nn_model_text("lda:1", &text), BASE_ERR_USAGE);
    assert_int_equal(nn_model_text("lda:", &text), BASE_ERR_USAGE);
    assert_int_equal(nn_model_text("lda:x", &text), BASE_ERR_USAGE);
    nn_graph_free(graph);
}

static void test_memory(void **state)
{
    struct nn_graph *graph = graph_of(100, 2), *large = graph_of(4097, 2);
    const uint64_t sums = 2 + 2 * 100 + 100 * 101 / 2;

    (void)state;
    assert_int_equal(nn_closed_memory(lda, graph, 0),
                     8 * sums + sizeof(float) * nn_graph_weight_floats(graph));
    assert_int_equal(nn_closed_memory(lda, graph, 10) - nn_closed_memory(lda, graph, 0),
                     8 * 10 * 100);
    assert_int_equal(nn_closed_memory(lda, large, 1), 0);
    assert_int_equal(nn_closed_memory(NULL, graph, 1), 0);
    nn_graph_free(graph);
    nn_graph_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),     cmocka_unit_test(test_workers),
        cmocka_unit_test(test_no_solution), cmocka_unit_test(test_one_sample_a_class),
        cmocka_unit_test(test_other_model), cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),
    };

    lda = nn_zoo_find("lda", &none)->closed;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
