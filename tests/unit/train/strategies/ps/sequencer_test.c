/* SPDX-License-Identifier: MIT
 *
 * Workers of several speeds that stall at random: every sample comes into the log once, under every
 * consistency and across changes of it; ssp never lets a worker read older than its bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "train/strategies/ps/sequencer.h"

enum { SAMPLES = 24000, BATCH = 24, WORKERS = 5 };

struct world {
    struct ps_sequencer q;
    struct base_rng rng;
    uint32_t turn;
    int busy[WORKERS]; /* turns until the worker's block is computed; 0: it has none */
    int64_t reads;     /* grants, at each of which a worker reads the weights */
    int64_t times[SAMPLES];
    int64_t rounds, pushes;
    bool left[WORKERS];
};

static uint32_t draw(struct world *w, uint32_t below)
{
    uint32_t words[4];

    base_rng_block(&w->rng, w->turn++, words);
    return words[0] % below;
}

static void begin(struct world *w, enum train_consistency consistency, int64_t staleness,
                  int64_t backup, uint32_t seed)
{
    memset(w, 0, sizeof *w);
    w->rng = base_rng_of(seed, BASE_STREAM_SHUFFLE, 0, 0, 0);
    w->q.workers = WORKERS;
    w->q.rules = (struct train_rules){consistency, staleness, backup};
    ps_sequencer_init(&w->q, BATCH, 0, SAMPLES, NULL, 0);
    for (int i = 0; i < WORKERS; i++)
        ps_sequencer_ask(&w->q, i);
}

/* A worker begins a block, and reads the weights for it: no other one that computes, with whatever
 * was refused from them, is more than the bound behind it or ahead of it. */
static void check_read(const struct world *w, int worker)
{
    const struct ps_sequencer *q = &w->q;

    for (int i = 0; q->rules.consistency == TRAIN_SSP && i < WORKERS; i++)
        if (q->of[i].work == TRAIN_WORKS)
            assert_true(llabs(q->of[i].clock - q->of[worker].clock) <= q->rules.staleness);
}

static void grant(struct world *w)
{
    int worker;
    enum train_grant grant;

    while ((grant = ps_sequencer_grant(&w->q, &worker)) != TRAIN_GRANT_NONE) {
        if (grant == TRAIN_GRANT_OVER) {
            w->left[worker] = true;
            continue;
        }
        check_read(w, worker);
        w->reads++;
        /* worker 0 is slow; one of ten stalls */
        w->busy[worker] = 1 + (int)draw(w, 3) + (worker == 0 ? 4 : 0) + (draw(w, 10) == 0 ? 20 : 0);
    }
}

static void log_entries(struct world *w)
{
    int workers[COMM_MAX_WORKERS], count;

    while ((count = ps_sequencer_entry(&w->q, workers)) > 0) {
        int64_t samples = 0;

        w->rounds++;
        for (int i = 0; i < count; i++) {
            struct train_span block = w->q.of[workers[i]].block;

            assert_true(i == 0 || workers[i] > workers[i - 1]);
            for (int64_t j = 0; j < block.count; j++)
                w->times[block.from + j]++;
            samples += block.count;
            w->pushes++;
        }
        assert_true(samples > 0); /* momentum alone would move the weights */
    }
    w->q.durable = w->q.number;
}

static bool all_left(const struct world *w)
{
    for (int i = 0; i < WORKERS; i++)
        if (!w->left[i])
            return false;
    return true;
}

static void turn(struct world *w)
{
    for (int i = 0; i < WORKERS; i++)
        if (w->busy[i] > 0 && --w->busy[i] == 0)
            ps_sequencer_push(&w->q, i);
    log_entries(w);
    grant(w);
}

static void check_times(const struct world *w, int64_t end)
{
    for (int64_t i = 0; i < SAMPLES; i++)
        assert_int_equal(w->times[i], i < end);
}

static void test_bounds(void **state)
{
    int64_t reads = 0;

    (void)state;
    for (int64_t staleness = 0; staleness < 6; staleness++) {
        struct world w;
        int64_t turns = 0, ahead = 0;

        begin(&w, TRAIN_SSP, staleness, 0, (uint32_t)staleness);
        grant(&w);
        while (!all_left(&w)) {
            turn(&w);
            for (int i = 0; i < WORKERS; i++)
                if (w.q.of[i].clock - w.q.of[0].clock > ahead)
                    ahead = w.q.of[i].clock - w.q.of[0].clock;
            assert_true(++turns < 1000000);
        }
        check_times(&w, SAMPLES);
        assert_in_range(ahead, 1, staleness + 1); /* the slack is used, and no more */
        reads += w.reads;
    }
    assert_true(reads >= 10000);
}

/* A fast worker does more than a slow one; with bsp all do the same. */
static void test_asp_and_bsp(void **state)
{
    struct world asp, bsp;

    (void)state;
    begin(&asp, TRAIN_ASP, 0, 0, 1);
    begin(&bsp, TRAIN_BSP, 0, 0, 1);
    grant(&asp);
    grant(&bsp);
    while (!all_left(&asp))
        turn(&asp);
    while (!all_left(&bsp))
        turn(&bsp);
    check_times(&asp, SAMPLES);
    check_times(&bsp, SAMPLES);
    assert_int_equal(bsp.rounds, SAMPLES / BATCH);
    assert_int_equal(asp.rounds, asp.pushes);
    for (int i = 1; i < WORKERS; i++) {
        assert_int_equal(bsp.q.of[i].clock, bsp.q.of[0].clock);
        assert_true(asp.q.of[i].clock > asp.q.of[0].clock);
    }
}

/* Late pushes are dropped, and their samples are issued again. */
static void test_backup(void **state)
{
    struct world w;

    (void)state;
    begin(&w, TRAIN_BSP, 0, 1, 2);
    grant(&w);
    while (!all_left(&w))
        turn(&w);
    check_times(&w, SAMPLES);
    assert_true(w.reads > w.pushes);
    assert_true(w.q.of[1].clock > w.q.of[0].clock);
}

/* The slow worker never pushes: its block is done by the others in the next round. */
static void test_backup_goes_on(void **state)
{
    struct world w;
    int entered[COMM_MAX_WORKERS];

    (void)state;
    begin(&w, TRAIN_BSP, 0, 1, 2);
    grant(&w);
    for (int round = 0; round < 5; round++) {
        const int64_t low = w.q.ledger.low;

        for (int i = 1; i < WORKERS; i++)
            ps_sequencer_push(&w.q, i);
        assert_int_equal(ps_sequencer_entry(&w.q, entered), WORKERS - 1);
        w.q.durable = w.q.number;
        grant(&w);
        assert_true(round == 0 || w.q.ledger.low > low);
        assert_true(w.q.ledger.done_count <= 1);
    }
}

/* The same world with fewer samples. */
static void begin_short(struct world *w, struct train_rules rules, int64_t samples, uint32_t seed)
{
    begin(w, rules.consistency, rules.staleness, rules.backup, seed);
    ps_sequencer_init(&w->q, BATCH, 0, samples, NULL, 0);
    for (int i = 0; i < WORKERS; i++)
        ps_sequencer_ask(&w->q, i);
    grant(w);
}

/* The last batch has fewer samples than there are workers, and the first push of each is rubbish:
 * workers without a sample make no entry, and others compute the samples. */
static void test_rubbish_of_few_samples(void **state)
{
    (void)state;
    for (int64_t few = 1; few < WORKERS; few++) {
        bool refused[WORKERS] = {0};
        int64_t turns = 0;
        struct world w;

        begin_short(&w, (struct train_rules){TRAIN_BSP, 0, 0}, BATCH + few, (uint32_t)few);
        while (!all_left(&w)) {
            for (int i = 0; i < WORKERS; i++) {
                struct train_span block = w.q.of[i].block;

                if (w.busy[i] == 0 || --w.busy[i] > 0)
                    continue;
                if (w.q.of[i].shared && block.from >= BATCH && block.count > 0) {
                    ps_sequencer_refuse(&w.q, i);
                    refused[i] = true;
                } else {
                    ps_sequencer_push(&w.q, i);
                }
            }
            log_entries(&w);
            grant(&w);
            assert_false(w.q.hopeless);
            assert_true(++turns < 1000);
        }
        check_times(&w, BATCH + few);
        assert_int_equal(refused[0] + refused[1] + refused[2] + refused[3] + refused[4], few);
    }
}

/* Any push may be rubbish: the leg ends, or there is no hope left; it never stands still. */
static void test_random_rubbish(void **state)
{
    static const struct train_rules rules[] = {{TRAIN_BSP, 0, 0}, {TRAIN_BSP, 0, 1},
                                               {TRAIN_BSP, 0, 3}, {TRAIN_SSP, 0, 0},
                                               {TRAIN_SSP, 2, 0}, {TRAIN_ASP, 0, 0}};
    enum { RULES = sizeof rules / sizeof *rules };
    int whole[RULES] = {0}, hopeless[RULES] = {0};

    (void)state;
    for (uint32_t seed = 0; seed < 300 * RULES; seed++) {
        int64_t samples = 1 + seed / RULES % 90, turns = 0;
        struct world w;

        begin_short(&w, rules[seed % RULES], samples, seed);
        while (!all_left(&w) && !w.q.hopeless) {
            for (int i = 0; i < WORKERS; i++)
                if (w.busy[i] == 0 || --w.busy[i] > 0)
                    continue;
                else if (draw(&w, 5) < 2)
                    ps_sequencer_refuse(&w.q, i);
                else
                    ps_sequencer_push(&w.q, i);
            if (turns == 10 && seed % 2 == 1)
                ps_sequencer_end(&w.q);
            log_entries(&w);
            grant(&w);
            assert_true(++turns < 10000);
        }
        if (!w.q.hopeless)
            check_times(&w, w.q.ledger.end);
        whole[seed % RULES] += !w.q.hopeless;
        hopeless[seed % RULES] += w.q.hopeless;
    }
    for (int i = 0; i < RULES; i++)
        assert_true(whole[i] > 10 && hopeless[i] > 10);
}

/* Worker 4 pushes nothing but rubbish, others now and then: it costs time and no sample. */
static void test_rubbish(void **state)
{
    static const struct train_rules rules[] = {
        {TRAIN_BSP, 0, 0}, {TRAIN_BSP, 0, 1}, {TRAIN_SSP, 1, 0}, {TRAIN_ASP, 0, 0}};

    (void)state;
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        struct world w;
        int64_t turns = 0, refused = 0;

        begin(&w, rules[k].consistency, rules[k].staleness, rules[k].backup, (uint32_t)k);
        grant(&w);
        while (!all_left(&w)) {
            for (int i = 0; i < WORKERS; i++) {
                if (w.busy[i] == 0 || --w.busy[i] > 0)
                    continue;
                if (i == 4 || draw(&w, 40) == 0) {
                    struct train_span block = w.q.of[i].block;

                    ps_sequencer_refuse(&w.q, i);
                    refused++;
                    grant(&w); /* it does not get the same one again */
                    assert_true(block.count == 0 || w.busy[i] == 0 ||
                                w.q.of[i].block.from != block.from);
                } else {
                    ps_sequencer_push(&w.q, i);
                }
            }
            log_entries(&w);
            grant(&w);
            assert_false(w.q.hopeless);
            assert_true(++turns < 100000);
        }
        check_times(&w, SAMPLES);
        assert_true(refused > 100);
    }
}

/* All push rubbish; or one block makes rubbish of any worker. */
static void test_hopeless(void **state)
{
    (void)state;
    for (int consistency = TRAIN_BSP; consistency <= TRAIN_ASP; consistency++)
        for (int poisoned = 0; poisoned < 2; poisoned++) {
            struct world w;
            int64_t turns = 0, refused = 0;

            begin(&w, (enum train_consistency)consistency, 2, 0, 7);
            grant(&w);
            while (!w.q.hopeless) {
                for (int i = 0; i < WORKERS; i++) {
                    struct train_span block = w.q.of[i].block;

                    if (w.busy[i] == 0 || --w.busy[i] > 0)
                        continue;
                    if (poisoned && (block.from > 50 || block.from + block.count <= 50)) {
                        ps_sequencer_push(&w.q, i);
                    } else {
                        ps_sequencer_refuse(&w.q, i);
                        refused++;
                    }
                }
                log_entries(&w);
                grant(&w);
                assert_true(++turns < 1000);
            }
            assert_true(refused <= WORKERS * WORKERS);
        }
}

/* Legs of different rules, each of which ends where the one before was stopped. */
static void test_changes_of_consistency(void **state)
{
    struct world w;

    (void)state;
    begin(&w, TRAIN_BSP, 2, 0, 4);
    for (uint32_t leg = 0; w.q.ledger.low < SAMPLES; leg++) {
        if (leg > 0) {
            w.q.rules = (struct train_rules){(enum train_consistency)(leg % 3), 2, leg % 2};
            ps_sequencer_init(&w.q, BATCH, w.q.ledger.low, SAMPLES, NULL, 0);
            memset(w.left, 0, sizeof w.left);
            for (int i = 0; i < WORKERS; i++)
                ps_sequencer_ask(&w.q, i);
        }
        grant(&w);
        for (int i = 0; i < 40; i++)
            turn(&w);
        ps_sequencer_end(&w.q);
        while (!all_left(&w))
            turn(&w);
    }
    check_times(&w, SAMPLES);
}

/* A stop ends a leg at a step's end, with no hole before it. */
static void test_end(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 30; seed++) {
        struct world w;

        begin(&w, (enum train_consistency)(seed % 3), 2, seed % 2, seed);
        grant(&w);
        for (uint32_t i = 0; i < 20 + seed; i++)
            turn(&w);
        ps_sequencer_end(&w.q);
        while (!all_left(&w))
            turn(&w);
        assert_true(w.q.ledger.low > 0 && w.q.ledger.low < SAMPLES);
        assert_int_equal(w.q.ledger.low % BATCH, 0);
        check_times(&w, w.q.ledger.low);
    }
}

/* A leg that goes on after a loss: some samples above the first are in the weights. */
static void test_holes(void **state)
{
    const struct train_span done[] = {{0, 7}, {20, 30}};

    (void)state;
    for (int consistency = 0; consistency < 3; consistency++) {
        struct world w;

        begin(&w, (enum train_consistency)consistency, 2, 0, 9);
        ps_sequencer_init(&w.q, BATCH, 0, SAMPLES, done, 2);
        for (int i = 0; i < 2; i++)
            for (int64_t j = 0; j < done[i].count; j++)
                w.times[done[i].from + j]++;
        for (int i = 0; i < WORKERS; i++)
            ps_sequencer_ask(&w.q, i);
        grant(&w);
        while (!all_left(&w))
            turn(&w);
        check_times(&w, SAMPLES);
    }
}

/* No worker goes on before its push would survive. */
static void test_durable(void **state)
{
    struct world w;
    int workers[COMM_MAX_WORKERS], worker;

    (void)state;
    begin(&w, TRAIN_ASP, 0, 0, 1);
    grant(&w);
    ps_sequencer_push(&w.q, 3);
    assert_int_equal(ps_sequencer_entry(&w.q, workers), 1);
    assert_int_equal(workers[0], 3);
    assert_int_equal(ps_sequencer_grant(&w.q, &worker), TRAIN_GRANT_NONE);
    w.q.durable = w.q.number;
    assert_int_equal(ps_sequencer_grant(&w.q, &worker), TRAIN_GRANT_BLOCK);
    assert_int_equal(worker, 3);
}

/* Ranks 0 and 1 only serve: rank 2 is the first of three workers. */
static void test_servers_apart(void **state)
{
    struct ps_sequencer q = {.rules = {.consistency = TRAIN_BSP}, .workers = 3, .first_worker = 2};
    int64_t next = 0;
    int workers[COMM_MAX_WORKERS], rank;

    (void)state;
    ps_sequencer_init(&q, BATCH, 0, SAMPLES, NULL, 0);
    assert_int_equal(ps_sequencer_unit(&q), BATCH);
    for (int i = 2; i < 5; i++)
        ps_sequencer_ask(&q, i);
    for (int i = 2; i < 5; i++) { /* shares of a third, in the order of ranks */
        assert_int_equal(ps_sequencer_grant(&q, &rank), TRAIN_GRANT_BLOCK);
        assert_int_equal(rank, i);
        assert_true(q.of[rank].shared);
        assert_int_equal(q.of[rank].block.from, next);
        assert_int_equal(q.of[rank].block.count, BATCH / 3);
        next += BATCH / 3;
    }
    assert_int_equal(ps_sequencer_grant(&q, &rank), TRAIN_GRANT_NONE);
    for (int i = 2; i < 5; i++)
        ps_sequencer_push(&q, i);
    assert_int_equal(ps_sequencer_entry(&q, workers), 3);
    assert_int_equal(workers[0], 2);
    assert_int_equal(workers[2], 4);
    assert_int_equal(q.ledger.low, BATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_asp_and_bsp),
        cmocka_unit_test(test_backup),
        cmocka_unit_test(test_backup_goes_on),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_rubbish_of_few_samples),
        cmocka_unit_test(test_random_rubbish),
        cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_changes_of_consistency),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_durable),
        cmocka_unit_test(test_servers_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
