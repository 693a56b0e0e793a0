/* SPDX-License-Identifier: MIT
 *
 * A network that predicts a number: loss and gradients of `dense 1` and `mse` by hand, the loss
 * that a model without one gets, and models that cannot.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "nn/net.h"

static struct nn_graph *graph_of(const char *text)
{
    struct nn_graph *graph = NULL;

    assert_int_equal(
        nn_graph_new(text, "test", (struct nn_shape){.c = 2, .h = 1, .w = 1}, 1, &graph), BASE_OK);
    return graph;
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6))
        fail_msg("%.9g is not %.9g", a, b);
}

/* y = 3 a - b + 0.5; targets are off by 1 and by -2. */
static void test_by_hand(void **state)
{
    struct nn_graph *graph = graph_of("dense classes");
    struct nn_net *net = NULL;
    struct nn_outcome outcome;
    const float x[] = {1, 2, -1, 1}, targets[] = {2.5, -5.5};
    const float weight[] = {3, -1}, bias[] = {0.5};
    float dweight[2], dbias[1], y;
    const struct nn_tensor *w = nn_graph_param(graph, 0), *b = nn_graph_param(graph, 1);

    (void)state;
    assert_string_equal(nn_graph_node(graph, 1)->layer->name, "mse");
    assert_true(nn_graph_predicts_number(graph));
    assert_int_equal(nn_net_new(graph, &(struct nn_setup){.n_max = 2, .training = true}, &net),
                     BASE_OK);
    nn_tensor_import(w, weight, nn_net_weights(net) + w->offset);
    nn_tensor_import(b, bias, nn_net_weights(net) + b->offset);
    assert_int_equal(
        nn_net_forward(net, &(struct nn_batch){.n = 2, .x = x, .samples = {.targets = targets}},
                       true, &outcome),
        BASE_OK);
    near(outcome.loss_sum, 5);
    assert_int_equal(outcome.correct, 0);
    assert_int_equal(nn_net_output(net, nn_net_last(net), 1, &y), BASE_OK);
    near((double)y, -3.5);
    assert_int_equal(nn_net_backward(net, 0.5f, (struct nn_ready){0}), BASE_OK);
    nn_tensor_export(w, nn_net_gradients(net) + w->offset, dweight);
    nn_tensor_export(b, nn_net_gradients(net) + b->offset, dbias);
    near((double)dweight[0], -1 * 1 + 2 * -1); /* errors -1 and 2, times x */
    near((double)dweight[1], -1 * 2 + 2 * 1);
    near((double)dbias[0], 1);
    nn_net_free(net);
    nn_graph_free(graph);
}

static void test_other_losses(void **state)
{
    struct nn_graph *graph = graph_of("dense classes\nsoftmax");
    struct nn_net *net = NULL;
    struct nn_outcome outcome;
    const float x[] = {1, 2}, targets[] = {2.5};

    (void)state;
    assert_false(nn_graph_predicts_number(graph));
    assert_int_equal(nn_net_new(graph, &(struct nn_setup){.n_max = 1}, &net), BASE_OK);
    assert_int_equal(
        nn_net_forward(net, &(struct nn_batch){.n = 1, .x = x, .samples = {.targets = targets}},
                       false, &outcome),
        BASE_ERR_MODEL);
    assert_non_null(strstr(base_message(), "cannot predict a number"));
    nn_net_free(net);
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_other_losses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
