/* SPDX-License-Identifier: MIT
 *
 * Networks whose weights and gradients are lent: the bits of an ordinary network, although all that
 * is not lent at the moment is NaN.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "nn/conv/kernelplan.h"
#include "support/nets.h"

enum { N = 2, NONE = -1, ANY = -2 };

static const struct nn_ready unheard;

static void check(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

/* ---- a lender ---- */

struct bank {
    struct nn_group *groups;
    int count;
    bool weights, gradients;
    const float *source;   /* all weights */
    float *collected;      /* all gradients */
    float *lent, *written; /* of the group that is out: memory of exactly its size */
    int out, expected;     /* the group that is out; the one that comes next */
    int borrowed[2];       /* loans of forwards, of backwards */
    int fail_at;           /* the loan that fails, counted from 1; 0: none */
};

static void spoil(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = NAN;
}

static base_status bank_borrow(void *context, struct nn_loan *loan)
{
    struct bank *bank = context;
    struct nn_range range;

    assert_int_equal(bank->out, NONE);
    assert_in_range(loan->group, 0, bank->count - 1);
    assert_true(bank->expected == ANY || bank->expected == loan->group);
    assert_int_equal(loan->next, loan->backward                  ? loan->group - 1
                                 : loan->group + 1 < bank->count ? loan->group + 1
                                                                 : NONE);
    if (++bank->borrowed[loan->backward] == bank->fail_at)
        return base_fail(BASE_ERR_PEER_LOST, "the bank is closed");
    range = bank->groups[loan->group].weights;
    bank->out = loan->group;
    bank->expected = loan->next;
    check(base_tensor(range.count, sizeof(float), "lent weights", &bank->lent));
    check(base_tensor(range.count, sizeof(float), "lent gradients", &bank->written));
    memcpy(bank->lent, bank->source + range.from, range.count * sizeof(float));
    spoil(bank->written, range.count);
    if (bank->weights)
        loan->weights = bank->lent;
    if (loan->backward && bank->gradients)
        loan->gradients = bank->written;
    return BASE_OK;
}

/* Of gaps between tensors, too: they are zeros, as without a lender. */
static void collect(struct bank *bank, struct nn_range range)
{
    memcpy(bank->collected + range.from, bank->written, range.count * sizeof(float));
}

struct lending {
    struct bank bank;
    const struct nn_graph *graph;
};

static base_status bank_give_back(void *context, const struct nn_loan *loan)
{
    struct lending *l = context;
    struct bank *bank = &l->bank;
    struct nn_range range = bank->groups[loan->group].weights;

    assert_int_equal(bank->out, loan->group);
    if (bank->weights)
        assert_ptr_equal(loan->weights, bank->lent);
    if (loan->backward && bank->gradients)
        collect(bank, range);
    spoil(bank->lent, range.count);
    base_free(bank->lent);
    base_free(bank->written);
    bank->lent = bank->written = NULL;
    bank->out = NONE;
    return BASE_OK;
}

static void lending_init(struct lending *l, const struct nn_graph *graph, int first, int last,
                         const float *source)
{
    *l = (struct lending){.graph = graph, .bank = {.source = source, .out = NONE, .expected = ANY}};
    l->bank.groups = nn_graph_groups(graph, first, last, &l->bank.count);
    check(base_tensor(nn_graph_weight_floats(graph), sizeof(float), "g", &l->bank.collected));
}

static void lending_fini(struct lending *l)
{
    base_free(l->bank.groups);
    base_free(l->bank.collected);
    base_free(l->bank.lent);
    base_free(l->bank.written);
}

/* Each pass begins with whatever group it likes. */
static void pass_begins(struct lending *l)
{
    assert_int_equal(l->bank.out, NONE);
    l->bank.expected = ANY;
}

/* ---- with and without ---- */

struct pair {
    struct nn_graph *graph;
    struct nn_setup setup;
    struct nn_net *plain, *borrower;
    struct lending lending;
    char *kernels;
};

static void pair_init(struct pair *p, const char *model, bool weights, bool gradients,
                      int in_flight)
{
    *p = (struct pair){.graph = support_zoo(model)};
    p->setup = (struct nn_setup){.n_max = N, .in_flight = in_flight, .training = true};
    check(nn_kernelplan_make(p->graph, &p->setup, (struct nn_kernelplan_wish){0}, &p->kernels));
    p->setup.kernels = p->kernels;
    check(nn_net_new(p->graph, &p->setup, &p->plain));
    nn_graph_start(p->graph, 5, nn_net_weights(p->plain), nn_net_statistics(p->plain));
    lending_init(&p->lending, p->graph, 0, nn_graph_layers(p->graph), nn_net_weights(p->plain));
    p->lending.bank.weights = weights;
    p->lending.bank.gradients = gradients;
    p->setup.lender = (struct nn_lender){.weights = weights,
                                         .gradients = gradients,
                                         .borrow = bank_borrow,
                                         .give_back = bank_give_back,
                                         .context = &p->lending};
    if (!weights)
        p->setup.weights = nn_net_weights(p->plain);
    check(nn_net_new(p->graph, &p->setup, &p->borrower));
    memcpy(nn_net_statistics(p->borrower), nn_net_statistics(p->plain),
           nn_graph_stat_floats(p->graph) * sizeof(float));
}

static void pair_fini(struct pair *p)
{
    nn_net_free(p->plain);
    nn_net_free(p->borrower);
    lending_fini(&p->lending);
    base_free(p->kernels);
    nn_graph_free(p->graph);
}

static const float *gradients_of(struct pair *p)
{
    return p->lending.bank.gradients ? p->lending.bank.collected : nn_net_gradients(p->borrower);
}

static void forward(struct pair *p, int piece, const struct support_batch *b)
{
    struct nn_outcome wanted, outcome;

    pass_begins(&p->lending);
    nn_net_piece(p->plain, piece);
    nn_net_piece(p->borrower, piece);
    check(nn_net_forward(p->plain, &b->batch, true, &wanted));
    check(nn_net_forward(p->borrower, &b->batch, true, &outcome));
    assert_true(outcome.loss_sum == wanted.loss_sum);
}

static void backward(struct pair *p, int piece)
{
    pass_begins(&p->lending);
    nn_net_piece(p->plain, piece);
    nn_net_piece(p->borrower, piece);
    check(nn_net_backward(p->plain, 1.0f / N, unheard));
    check(nn_net_backward(p->borrower, 1.0f / N, unheard));
    assert_memory_equal(gradients_of(p), nn_net_gradients(p->plain),
                        nn_graph_weight_floats(p->graph) * sizeof(float));
}

static void check_lending(const char *model, bool weights, bool gradients)
{
    struct support_batch one, two;
    struct pair p;

    pair_init(&p, model, weights, gradients, 2);
    assert_int_equal(nn_net_weights(p.borrower) == NULL, weights);
    assert_int_equal(nn_net_gradients(p.borrower) == NULL, gradients);
    support_batch_init(&one, p.graph, N, 1);
    support_batch_init(&two, p.graph, N - 1, 2);
    forward(&p, 0, &one);
    forward(&p, 1, &two);
    backward(&p, 0);
    backward(&p, 1);
    assert_int_equal(p.lending.bank.borrowed[0], weights ? 2 * p.lending.bank.count : 0);
    assert_int_equal(p.lending.bank.borrowed[1], 2 * p.lending.bank.count);
    assert_memory_equal(nn_net_statistics(p.borrower), nn_net_statistics(p.plain),
                        nn_graph_stat_floats(p.graph) * sizeof(float));
    support_batch_fini(&one);
    support_batch_fini(&two);
    pair_fini(&p);
}

static void lent_weights_give_the_same_bits(void **state)
{
    static const char *const models[] = {"mnist-cnn", "resnet18", "mlp:200x4"};

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_lending(models[i], true, true);
}

static void either_may_be_lent_alone(void **state)
{
    (void)state;
    check_lending("mnist-cnn", false, true);
    check_lending("mnist-cnn", true, false);
}

static void a_range_borrows_its_own_groups(void **state)
{
    struct nn_graph *graph = support_zoo("vgg11");
    int first = 8, last = 18, count;
    float *weights = base_calloc(nn_graph_weight_floats(graph), sizeof *weights);
    float *stats = base_calloc(nn_graph_stat_floats(graph), sizeof *stats);
    struct nn_setup setup = {.first = first, .last = last, .n_max = N, .training = true};
    struct nn_edge edge;
    struct lending l;
    struct nn_outcome outcome;
    struct nn_net *net;

    (void)state;
    nn_graph_start(graph, 5, weights, stats);
    lending_init(&l, graph, first, last, weights);
    l.bank.weights = l.bank.gradients = true;
    count = l.bank.count;
    setup.lender = (struct nn_lender){true, true, bank_borrow, bank_give_back, &l};
    check(nn_net_new(graph, &setup, &net));
    assert_int_equal(nn_net_entering(net, &edge, 1), 1);
    support_fill(edge.values, N * nn_shape_floats(edge.shape), 1);
    check(nn_net_forward(net, &(struct nn_batch){.n = N}, true, &outcome));
    pass_begins(&l);
    check(nn_net_backward(net, 1, unheard));
    assert_int_equal(l.bank.borrowed[0] + l.bank.borrowed[1], 2 * count);
    nn_net_free(net);
    lending_fini(&l);
    base_free(weights);
    base_free(stats);
    nn_graph_free(graph);
}

/* ---- weights on their way ---- */

struct arrivals {
    const float *source; /* all weights */
    float *weights;      /* those that are there; the others are NaN */
    size_t there;        /* floats from the beginning on */
    bool lost;
};

static base_status arrive(void *context, size_t offset, size_t count)
{
    struct arrivals *a = context;

    if (a->lost && a->there > 0)
        return base_fail(BASE_ERR_PEER_LOST, "the sender is lost");
    assert_in_range(offset, a->there, a->there + 64); /* a gap between tensors at most */
    memcpy(a->weights + offset, a->source + offset, count * sizeof *a->weights);
    a->there = offset + count;
    return BASE_OK;
}

/* The network that the pair borrows with is of no use here: one more has a buffer of its own. */
static void check_awaiting(const char *model, bool lost)
{
    struct arrivals a = {.lost = lost};
    struct support_batch b;
    struct nn_outcome wanted, outcome;
    struct nn_net *net;
    struct pair p;
    size_t floats;

    pair_init(&p, model, false, true, 1);
    floats = nn_graph_weight_floats(p.graph);
    a.source = nn_net_weights(p.plain);
    check(base_tensor(floats, sizeof(float), "weights", &a.weights));
    spoil(a.weights, floats);
    p.setup.lender = (struct nn_lender){0};
    p.setup.await = (struct nn_await){arrive, &a};
    p.setup.weights = a.weights;
    check(nn_net_new(p.graph, &p.setup, &net));
    memcpy(nn_net_statistics(net), nn_net_statistics(p.plain),
           nn_graph_stat_floats(p.graph) * sizeof(float));
    support_batch_init(&b, p.graph, N, 1);
    check(nn_net_forward(p.plain, &b.batch, true, &wanted));
    if (lost) {
        assert_int_equal(nn_net_forward(net, &b.batch, true, &outcome), BASE_ERR_PEER_LOST);
        assert_int_equal(nn_net_backward(net, 1, unheard), BASE_ERR_INTERNAL);
    } else {
        check(nn_net_forward(net, &b.batch, true, &outcome));
        assert_true(outcome.loss_sum == wanted.loss_sum);
        assert_in_range(a.there, floats - 64, floats);
    }
    support_batch_fini(&b);
    nn_net_free(net);
    base_free(a.weights);
    pair_fini(&p);
}

static void a_forward_awaits_each_group(void **state)
{
    (void)state;
    check_awaiting("mnist-cnn", false);
    check_awaiting("resnet18", false);
    check_awaiting("mnist-cnn", true);
}

/* ---- when things go wrong ---- */

static void a_failed_loan_fails_the_pass(void **state)
{
    struct support_batch b;
    struct nn_outcome outcome;
    struct pair p;

    (void)state;
    pair_init(&p, "mnist-cnn", true, true, 1);
    support_batch_init(&b, p.graph, N, 1);
    p.lending.bank.fail_at = 2;
    assert_int_equal(nn_net_forward(p.borrower, &b.batch, true, &outcome), BASE_ERR_PEER_LOST);
    assert_non_null(strstr(base_message(), "the bank is closed"));
    assert_int_equal(nn_net_backward(p.borrower, 1, unheard), BASE_ERR_INTERNAL);
    p.lending.bank.fail_at = 0; /* the next pass begins anew */
    memcpy(nn_net_statistics(p.borrower), nn_net_statistics(p.plain),
           nn_graph_stat_floats(p.graph) * sizeof(float));
    forward(&p, 0, &b);
    backward(&p, 0);
    support_batch_fini(&b);
    pair_fini(&p);
}

static void alone(void *context, float *sums, size_t count)
{
    (void)context;
    (void)count;
    sums[0] += 1; /* so that there are samples elsewhere */
}

/* A worker without samples gives back gradients of zero; unless others count on its sums, nothing
 * else changes. */
static void check_no_samples(const char *model, bool reduces)
{
    struct nn_graph *graph = support_zoo(model);
    size_t floats = nn_graph_weight_floats(graph);
    float *weights = base_calloc(floats, sizeof *weights);
    float *stats = base_calloc(nn_graph_stat_floats(graph), sizeof *stats);
    float *before = base_calloc(nn_graph_stat_floats(graph), sizeof *before);
    struct nn_setup setup = {
        .n_max = N, .training = true, .reduce = {.sum = reduces ? alone : NULL}};
    int32_t label = 0;
    struct nn_batch batch = {.samples = {.labels = &label}};
    struct nn_outcome outcome;
    struct lending l;
    struct nn_net *net;

    nn_graph_start(graph, 5, weights, before);
    lending_init(&l, graph, 0, nn_graph_layers(graph), weights);
    l.bank.weights = l.bank.gradients = true;
    setup.lender = (struct nn_lender){true, true, bank_borrow, bank_give_back, &l};
    setup.statistics = stats;
    memcpy(stats, before, nn_graph_stat_floats(graph) * sizeof *stats);
    check(nn_net_new(graph, &setup, &net));
    check(nn_net_forward(net, &batch, true, &outcome));
    pass_begins(&l);
    check(nn_net_backward(net, 1, unheard));
    for (size_t i = 0; i < floats; i++)
        assert_true(l.bank.collected[i] == 0);
    assert_int_equal(l.bank.borrowed[1], l.bank.count);
    if (!reduces)
        assert_memory_equal(stats, before, nn_graph_stat_floats(graph) * sizeof *stats);
    nn_net_free(net);
    lending_fini(&l);
    base_free(weights);
    base_free(stats);
    base_free(before);
    nn_graph_free(graph);
}

static void no_samples_are_no_gradients(void **state)
{
    (void)state;
    check_no_samples("mnist-cnn", true);
    check_no_samples("mnist-cnn", false);
    check_no_samples("resnet18", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lent_weights_give_the_same_bits),
        cmocka_unit_test(either_may_be_lent_alone),
        cmocka_unit_test(a_range_borrows_its_own_groups),
        cmocka_unit_test(a_forward_awaits_each_group),
        cmocka_unit_test(a_failed_loan_fails_the_pass),
        cmocka_unit_test(no_samples_are_no_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
