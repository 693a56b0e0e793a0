/* SPDX-License-Identifier: MIT
 *
 * Corrections of stale gradients, on two servers without a network: the arithmetic, and that both
 * servers of a slice have the same bits, also one that learns of the entries late.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "train/strategies/ps/server_private.h"

enum { WORKERS = 3, SERVERS = 2, FLOATS = 23, BLOCK = 8, BATCH = WORKERS * BLOCK, ENTRIES = 7 };

static const double LR = 0.5, LAMBDA = 3;

struct bench {
    struct train_job job;
    struct train_session session;
    float weights[FLOATS], momenta[FLOATS];
    struct ps_server server;
};

/* Who pushes with which entry, having read after which one; who was given a block before it. */
static const struct {
    int rank;
    uint64_t read, readers;
} history[ENTRIES] = {
    {0, 0, 1 << 0 | 1 << 1 | 1 << 2}, /* 1 */
    {1, 0, 1 << 0},                   /* 2 */
    {0, 1, 1 << 1},                   /* 3 */
    {2, 0, 1 << 0},                   /* 4: three entries late */
    {1, 2, 1 << 2},                   /* 5 */
    {2, 4, 1 << 1},                   /* 6 */
    {0, 3, 1 << 2},                   /* 7 */
};

static float value(int entry, int i)
{
    return sinf((float)(entry * FLOATS + i + 1));
}

static void begin(struct bench *b, int rank)
{
    *b = (struct bench){.job = {.lr = LR, .momentum = 0.9}};
    b->session.job = &b->job;
    b->session.team.exchange.rank = rank;
    b->session.team.exchange.size = WORKERS;
    b->session.plan.batch = BATCH;
    b->session.state.floats = FLOATS;
    b->session.state.weights = b->weights;
    b->session.state.slots[0] = b->momenta;
    assert_int_equal(nn_schedule_find("constant", &b->session.plan.schedule), BASE_OK);
    assert_int_equal(nn_optimiser_find("sgd", &b->session.state.optimiser), BASE_OK);
    for (int i = 0; i < FLOATS; i++)
        b->weights[i] = value(0, i);
    assert_int_equal(ps_server_open(&b->server, &b->session, (struct ps_seats){.servers = SERVERS},
                                    0, (struct train_rules){.consistency = TRAIN_ASP}, 10 * BATCH,
                                    NULL, 0),
                     BASE_OK);
    assert_int_equal(ps_server_correct(&b->server, LAMBDA), BASE_OK);
}

static void end(struct bench *b)
{
    ps_server_close(&b->server);
}

static struct train_log_entry entry_of(int number)
{
    struct train_log_entry e = {.number = (uint64_t)number,
                                .lr = LR / WORKERS,
                                .update = (uint64_t)number,
                                .readers = history[number - 1].readers,
                                .count = 1};

    e.of[0] = (struct train_outline){.rank = history[number - 1].rank,
                                     .clock = number,
                                     .read = history[number - 1].read,
                                     .block = {(number - 1) * BLOCK, BLOCK},
                                     .seen = BLOCK};
    return e;
}

/* The server gets the push of an entry, and what concerns its slices of its gradients. */
static void push(struct bench *b, int number)
{
    struct train_log_entry e = entry_of(number);
    struct ps_server *v = &b->server;
    float *to = v->pushes[e.of[0].rank];

    v->outlines[e.of[0].rank] = e.of[0];
    for (int i = 0; i < v->slice_count; i++)
        for (size_t j = 0; j < v->slices[i].count; j++)
            *to++ = value(number, (int)(v->slices[i].from + j));
}

static void learn(struct bench *b, int number)
{
    struct train_log_entry e = entry_of(number);

    assert_true(ps_server_is_entry(&b->server, &e));
    ps_server_learn(&b->server, &e, 1);
}

/* All versions of the weights, on one array, in plain C. */
static void compute_reference(float versions[ENTRIES + 1][FLOATS])
{
    float momenta[FLOATS] = {0}, squares[FLOATS];

    for (int i = 0; i < FLOATS; i++)
        versions[0][i] = value(0, i);
    for (int n = 1; n <= ENTRIES; n++)
        for (int i = 0; i < FLOATS; i++) {
            float g = value(n, i), now = versions[n - 1][i];
            float read = versions[history[n - 1].read][i];

            squares[i] = n == 1 ? g * g : 0.95f * squares[i] + 0.05f * g * g;
            g += (float)LAMBDA * g * g / sqrtf(squares[i]) * (now - read);
            momenta[i] = 0.9f * momenta[i] + g;
            versions[n][i] = now - (float)(LR / WORKERS) * momenta[i];
        }
}

static void check_version(const struct bench *b, const float *expected)
{
    for (int i = 0; i < b->server.slice_count; i++)
        for (size_t j = 0; j < b->server.slices[i].count; j++) {
            float want = expected[b->server.slices[i].from + j];

            assert_true(fabsf(b->server.slices[i].weights[j] - want) <= 1e-5f * (1 + fabsf(want)));
        }
}

/* Each slice is the first one of one server and the second one of the other. */
static void check_same_bits(const struct bench *a, const struct bench *b)
{
    for (int i = 0; i < 2; i++) {
        const struct train_slice *one = &a->server.slices[i], *two = &b->server.slices[1 - i];

        assert_int_equal(one->from, two->from);
        assert_int_equal(one->count, two->count);
        assert_memory_equal(one->weights, two->weights, one->count * sizeof(float));
    }
}

static void test_arithmetic(void **state)
{
    static float versions[ENTRIES + 1][FLOATS];
    static struct bench b[SERVERS];

    (void)state;
    compute_reference(versions);
    for (int i = 0; i < SERVERS; i++)
        begin(&b[i], i);
    for (int n = 1; n <= ENTRIES; n++) {
        for (int i = 0; i < SERVERS; i++) {
            push(&b[i], n);
            learn(&b[i], n);
            check_version(&b[i], versions[n]);
        }
        check_same_bits(&b[0], &b[1]);
    }
    for (int i = 0; i < SERVERS; i++)
        end(&b[i]);
}

/* Server 1 has pushes and hears of entries 5 to 7 only after the loss of a worker, from what server
 * 0 knows; the last of them first. */
static void test_late_entries(void **state)
{
    static struct bench b[SERVERS];
    struct train_log_entry late[3];

    (void)state;
    for (int i = 0; i < SERVERS; i++)
        begin(&b[i], i);
    for (int n = 1; n <= ENTRIES; n++) {
        push(&b[0], n);
        learn(&b[0], n);
        push(&b[1], n);
        if (n <= 4)
            learn(&b[1], n);
        else
            late[ENTRIES - n] = entry_of(n);
    }
    ps_server_learn(&b[1].server, late, 3);
    assert_int_equal(b[1].server.applied, ENTRIES);
    check_same_bits(&b[0], &b[1]);
    for (int i = 0; i < SERVERS; i++)
        end(&b[i]);
}

/* A worker that was told to read after entry 3 gets these weights when more entries were applied;
 * one that reads after the newest gets the newest. */
static void test_reads(void **state)
{
    static struct bench b;
    float expected[FLOATS] = {0}, read[FLOATS] = {0};
    const struct train_slice *own;
    uint64_t number;

    (void)state;
    begin(&b, 0);
    own = &b.server.slices[0];
    for (int n = 1; n <= 6; n++) {
        push(&b, n);
        learn(&b, n);
        if (n == 3)
            memcpy(expected + own->from, own->weights, own->count * sizeof(float));
    }
    assert_int_equal(ps_server_read(&b.server, 3, read, &number), BASE_OK);
    assert_int_equal(number, 3);
    assert_memory_equal(read, expected, sizeof read);
    assert_int_equal(ps_server_read(&b.server, 6, read, &number), BASE_OK);
    assert_int_equal(number, 6);
    assert_memory_equal(read + own->from, own->weights, own->count * sizeof(float));
    end(&b);
}

/* An entry cannot name readers that there are not. */
static void test_wrong_readers(void **state)
{
    static struct bench b;
    struct train_log_entry e = entry_of(1);

    (void)state;
    begin(&b, 0);
    e.readers = UINT64_C(1) << WORKERS;
    assert_false(ps_server_is_entry(&b.server, &e));
    e.readers = UINT64_C(1) << (WORKERS - 1);
    assert_true(ps_server_is_entry(&b.server, &e));
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_late_entries),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_wrong_readers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
