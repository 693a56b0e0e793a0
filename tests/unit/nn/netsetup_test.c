/* SPDX-License-Identifier: MIT
 *
 * What a network is estimated to need against what the process really has after a step. Not with
 * sanitizers, which have memory of their own for every byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/conv/kernelplan.h"
#include "support/nets.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static const struct nn_ready unheard;

static void check(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

static double resident(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* A forward of every piece, then the backwards. */
static void step(struct nn_net *net, const struct nn_setup *setup, struct support_batch *b)
{
    struct nn_outcome outcome;
    int pieces = setup->in_flight > 0 ? setup->in_flight : 1;

    for (int i = 0; i < pieces; i++) {
        nn_net_piece(net, i);
        check(nn_net_forward(net, &b->batch, true, &outcome));
    }
    for (int i = 0; i < pieces; i++) {
        nn_net_piece(net, i);
        check(nn_net_backward(net, 1, unheard));
    }
}

static void check_estimate(const char *model, struct nn_setup setup)
{
    struct nn_graph *graph = support_zoo(model);
    struct nn_memory memory;
    struct support_batch b;
    struct nn_net *net;
    double before, is, said;
    char *kernels;

    support_batch_init(&b, graph, setup.n_max, 1);
    check(nn_net_memory(graph, &setup, &memory));
    check(nn_kernelplan_make(graph, &setup, (struct nn_kernelplan_wish){0}, &kernels));
    setup.kernels = kernels;
    said = (double)nn_memory_total(&memory, 0);
    before = resident();
    check(nn_net_new(graph, &setup, &net));
    step(net, &setup, &b);
    is = resident() - before;
    print_message("%s, layers %d to %d, %d in flight: %.1f MB estimated (%.1f activations, %.1f "
                  "scratch), %.1f MB used\n",
                  model, setup.first, setup.last, setup.in_flight, said / 1e6,
                  (double)memory.activations / 1e6, (double)memory.scratch / 1e6, is / 1e6);
    if (!SANITIZED && (is > said + 1e6 || is < 0.9 * said))
        fail_msg("%s: %.0f bytes used where %.0f were estimated", model, is, said);
    nn_net_free(net);
    base_free(kernels);
    support_batch_fini(&b);
    nn_graph_free(graph);
}

static void networks_use_what_was_estimated(void **state)
{
    static const struct nn_setup setups[] = {
        {.n_max = 16, .training = true},
        {.n_max = 16, .training = true, .in_flight = 3},
        {.n_max = 16, .training = true, .in_flight = 3, .last = 12},
        {.n_max = 16, .training = true, .in_flight = 2, .first = 12},
        {.n_max = 16, .training = true, .apart = true},
    };

    (void)state;
    check_estimate("mnist-cnn", setups[0]); /* its threads and code stay: not measured twice */
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
        check_estimate("vgg11", setups[i]);
    check_estimate("resnet18", setups[1]);
}

static struct nn_memory memory_of(const struct nn_graph *graph, struct nn_setup setup)
{
    struct nn_memory memory;

    check(nn_net_memory(graph, &setup, &memory));
    return memory;
}

static void an_estimate_has_parts(void **state)
{
    struct nn_graph *graph = support_zoo("vgg11");
    uint64_t weights = 4 * nn_graph_weight_floats(graph);
    int layers = nn_graph_layers(graph), cut = 15;
    struct nn_setup setup = {.n_max = 8, .training = true}, range = setup;
    struct nn_memory whole = memory_of(graph, setup), more, left, right;

    (void)state;
    assert_int_equal(whole.weights, weights);
    assert_int_equal(whole.gradients, weights);
    assert_int_equal(whole.statistics, 4 * nn_graph_stat_floats(graph));
    assert_int_equal(nn_memory_total(&whole, 2) - nn_memory_total(&whole, 0), 2 * weights);
    range.last = cut;
    left = memory_of(graph, range);
    range.first = cut, range.last = layers;
    right = memory_of(graph, range);
    assert_int_equal(left.weights + right.weights, weights);
    assert_int_equal(left.gradients + right.gradients, weights);
    assert_int_equal(left.statistics + right.statistics, whole.statistics);
    setup.in_flight = 3;
    more = memory_of(graph, setup);
    assert_true(more.activations > 2 * whole.activations);
    assert_true(more.activations < 3 * whole.activations);
    assert_int_equal(more.scratch, whole.scratch);
    setup.lender.weights = setup.lender.gradients = true;
    more = memory_of(graph, setup);
    assert_int_equal(more.weights + more.gradients, 0);
    setup = (struct nn_setup){.n_max = 8};
    assert_int_equal(memory_of(graph, setup).gradients, 0);
    nn_graph_free(graph);
}

static void estimates_refuse_what_networks_refuse(void **state)
{
    struct nn_graph *graph = support_zoo("mnist-cnn");
    struct nn_memory memory;

    (void)state;
    assert_int_equal(nn_net_memory(graph, &(struct nn_setup){.n_max = 0}, &memory), BASE_ERR_USAGE);
    assert_int_equal(nn_net_memory(graph, &(struct nn_setup){.n_max = 1, .first = -1}, &memory),
                     BASE_ERR_INTERNAL);
    assert_int_equal(nn_net_memory(graph, &(struct nn_setup){.n_max = 1, .last = 99}, &memory),
                     BASE_ERR_INTERNAL);
    assert_int_equal(
        nn_net_memory(graph, &(struct nn_setup){.n_max = 1, .kernels = "nonesuch"}, &memory),
        BASE_ERR_USAGE);
    assert_int_equal(nn_memory_total(&memory, 1), 0);
    nn_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_use_what_was_estimated),
        cmocka_unit_test(an_estimate_has_parts),
        cmocka_unit_test(estimates_refuse_what_networks_refuse),
    };

    mallopt(M_MMAP_THRESHOLD, 1 << 16); /* what is freed goes back and is not taken again */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
