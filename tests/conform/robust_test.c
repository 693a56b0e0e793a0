/* SPDX-License-Identifier: MIT
 *
 * The robust all-reduce (train/robust.h) of 2 … 5 real processes, over every way in which groups
 * can be connected, with each rule that can do without a manager: all get the bits that one worker
 * gets, and they are what the rule makes of whole updates. Its bytes are counted. A worker that
 * returns a false slice is found out by all others, in as few steps as promised, and so is one that
 * accuses others; no honest worker is, nor one that another worker has misled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "support/groups.h"
#include "train/robust.h"

enum { FLOATS = 3001, MANY = 200000, TRIALS = 200, STEPS = 20 };

struct bench { /* of one process */
    struct train_team team;
    struct coll *coll;
    struct coll_space *space;
    struct train_aggregation aggregation;
    struct train_attackers attackers;
    struct train_robust robust;
    size_t floats;
    uint32_t samples[COMM_MAX_WORKERS];
    float *values; /* (size, floats): what every worker sends */
};

static float value_of(int rank, int64_t step, uint32_t i)
{
    struct base_rng rng =
        base_rng_of(7, BASE_STREAM_TEST, (uint32_t)rank, (uint32_t)step, i / 1024);

    return base_rng_unit(base_rng_u32(&rng, i % 1024)) - 0.4f + 0.01f * (float)(i % 7);
}

static void bench_open(struct bench *b, struct crew_worker *me, size_t floats)
{
    struct comm_group *group = groups_open(me, 0);
    struct train_exchange *x = &b->team.exchange;

    *b =
        (struct bench){.team = {.group = group, .view = *comm_group_view(group)}, .floats = floats};
    crew_check(coll_open(group, NULL, &b->coll) == BASE_OK);
    x->coll = b->coll;
    x->rank = comm_group_rank(group);
    x->size = comm_group_size(group);
    x->one_host = x->size > 1 && (comm_group_can_all(group) & COMM_CAN_SHARE) != 0;
    crew_check(coll_space_open(b->coll, "gradients", floats, &b->space) == BASE_OK);
    b->values = base_calloc((size_t)x->size * floats, sizeof *b->values);
}

static void bench_close(struct bench *b)
{
    struct comm_group *group = b->team.group;

    base_free(b->values);
    coll_space_close(b->space);
    coll_close(b->coll);
    comm_group_close(group);
}

static void bench_begin(struct bench *b, const char *rule, const char *attack)
{
    struct train_robust_setup setup = {.team = &b->team,
                                       .aggregation = &b->aggregation,
                                       .attackers = &b->attackers,
                                       .name = "aggregates",
                                       .space = b->space,
                                       .floats = b->floats};

    crew_check(train_aggregation_find(rule, &b->aggregation) == BASE_OK);
    b->aggregation.silent = true;
    crew_check(train_attackers_parse(attack, b->team.view.members[b->team.exchange.rank].id,
                                     &b->attackers) == BASE_OK);
    crew_check(train_robust_open(&b->robust, &setup) == BASE_OK);
}

static void bench_end(struct bench *b)
{
    train_robust_close(&b->robust);
    train_attackers_fini(&b->attackers);
    train_aggregation_fini(&b->aggregation);
}

/* All workers' values of that step; this worker's into the space. `idle`: a rank without samples.
 */
static void bench_step(struct bench *b, int64_t step, int idle)
{
    const struct train_exchange *x = &b->team.exchange;
    float head[TRAIN_HEAD] = {(float)x->rank + 1};

    for (int p = 0; p < x->size; p++) {
        b->samples[p] = p == idle ? 0 : 8 + (uint32_t)p;
        for (uint32_t i = 0; i < b->floats; i++)
            b->values[(size_t)p * b->floats + i] = value_of(p, step, i);
    }
    memcpy(coll_space_mine(b->space), b->values + (size_t)x->rank * b->floats,
           b->floats * sizeof(float));
    crew_check(train_robust_run(&b->robust, step, b->samples, head) == BASE_OK);
    for (int p = 0; p < x->size && b->robust.blame.rank < 0; p++)
        crew_check(b->robust.heads[p * TRAIN_HEAD] == (float)p + 1);
}

static void all_have_the_same(const struct bench *b)
{
    uint32_t all[COMM_MAX_WORKERS];
    uint32_t mine = base_crc32c(0, b->robust.result, b->floats * sizeof(float));

    crew_check(coll_all_gather(b->coll, &mine, sizeof mine, all) == BASE_OK);
    for (int p = 0; p < b->team.exchange.size; p++)
        crew_check(all[p] == mine);
}

/* What the rule makes of the updates where one place has them whole. */
static void as_whole(struct bench *b)
{
    struct train_row rows[COMM_MAX_WORKERS] = {0};
    float *y = base_calloc(b->floats, sizeof *y);
    int count = 0;

    for (int p = 0; p < b->team.exchange.size; p++)
        if (b->samples[p] > 0)
            rows[count++] = (struct train_row){.values = b->values + (size_t)p * b->floats,
                                               .worker = b->team.view.members[p].id,
                                               .samples = b->samples[p]};
    crew_check(train_aggregate(&b->aggregation, rows, count, b->floats, y, NULL) == BASE_OK);
    for (size_t i = 0; i < b->floats; i++)
        crew_check(fabsf(y[i] - b->robust.result[i]) <= 1e-6f);
    base_free(y);
}

static void run_rule(struct bench *b, const char *text)
{
    bench_begin(b, text, NULL);
    for (int step = 1; step <= 3; step++) {
        bench_step(b, step, step == 2 ? b->team.exchange.size - 1 : -1);
        crew_check(b->robust.blame.rank < 0);
        all_have_the_same(b);
        as_whole(b);
    }
    bench_end(b);
}

static void every_rule(struct crew_worker *me)
{
    struct bench b;

    bench_open(&b, me, FLOATS);
    for (size_t i = 0; i < train_aggregator_count; i++) {
        const struct train_aggregator *a = train_aggregator_registry[i];
        const char *const none[] = {"", NULL};
        const char *const *example = a->examples != NULL ? a->examples : none;

        for (; *example != NULL && !a->judges && !a->trusts && !a->believes; example++) {
            char *text = base_format("%s:%s", a->name, *example);

            run_rule(&b, text);
            base_free(text);
        }
    }
    bench_close(&b);
}

static void test_every_rule_makes_what_it_makes_of_whole_updates(void **state)
{
    static const int sizes[] = {2, 3, 5};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        groups_run(*state, sizes[i], every_rule);
}

/* ---- workers that do not share memory ---- */

static bool is_apart(const struct groups_way *way)
{
    return way->listens && !way->shares && !way->secret;
}

static void few_bytes(struct crew_worker *me)
{
    struct bench b;
    double least, sent;
    uint64_t before;

    bench_open(&b, me, MANY);
    bench_begin(&b, "mixed:rule=trimmed-mean", NULL);
    least = 2.0 * (me->workers - 1) / me->workers * MANY * sizeof(float);
    before = comm_group_bytes_sent(b.team.group);
    bench_step(&b, 1, -1);
    sent = (double)(comm_group_bytes_sent(b.team.group) - before);
    if (me->index == 0)
        print_message("%d workers: %.3f times the bytes of reduce-scatter and all-gather\n",
                      me->workers, sent / least);
    crew_check(sent <= 1.1 * least);
    bench_end(&b);
    bench_close(&b);
}

static void test_checks_cost_a_tenth_more_bytes(void **state)
{
    if (!is_apart(*state) || groups_brief())
        skip();
    groups_run(*state, 4, few_bytes);
    groups_run(*state, 8, few_bytes);
}

/* Steps until all honest workers blame the attacker, at most `most`; 0: they do not. */
static int steps_to_blame(struct bench *b, int attacker, int most)
{
    for (int step = 1; step <= most; step++) {
        int32_t mine, all[COMM_MAX_WORKERS];

        bench_step(b, step, -1);
        mine = b->robust.blame.rank;
        crew_check(coll_all_gather(b->coll, &mine, sizeof mine, all) == BASE_OK);
        for (int p = 0; p < b->team.exchange.size; p++)
            crew_check(p == attacker || all[p] == all[attacker == 0]);
        mine = all[attacker == 0];
        crew_check(mine < 0 || mine == attacker);
        if (mine == attacker)
            return step;
    }
    return 0;
}

/* Of so many trials with a new attacker each, how many end within `most` steps? */
static int found(struct bench *b, const char *kind, const char *rule, int trials, int most)
{
    int count = 0;

    for (int trial = 0; trial < trials; trial++) {
        const int attacker = trial % b->team.exchange.size;
        char *attack = base_format("%d:%s", attacker + 1, kind);

        bench_begin(b, rule, attack);
        count += steps_to_blame(b, attacker, most) > 0;
        bench_end(b);
        base_free(attack);
    }
    return count;
}

static void trials(struct crew_worker *me)
{
    const int all = groups_brief() ? 8 : TRIALS;
    struct bench b;
    int whole, some, one;

    bench_open(&b, me, FLOATS);
    whole = found(&b, "lie", "median", all, 1);
    some = found(&b, "lie=0.34", "geometric-median", all / 4, STEPS);
    one = found(&b, "lie=0", "median", all / 4, STEPS);
    if (me->index == 0)
        print_message(
            "%d workers, found in %d steps: lies about a slice (one step) %d of %d, a third "
            "of it %d of %d, one value %d of %d\n",
            me->workers, STEPS, whole, all, some, all / 4, one, all / 4);
    crew_check(whole == all);
    crew_check(some == all / 4);
    crew_check(one >= all / 4 - 10); /* 97 of 100 are expected */
    crew_check(found(&b, "accuse", "krum", 4, 1) == 4);
    bench_close(&b);
}

/* A worker misleads checkers: none of them is blamed, and a liar beside it is found. */
static void misleading(struct crew_worker *me)
{
    struct bench b;

    bench_open(&b, me, FLOATS);
    crew_check(found(&b, "mislead", "median", 4, 3) == 0); /* an honest one would fail a check */
    bench_begin(&b, "median", "1:mislead,3:lie");
    crew_check(steps_to_blame(&b, 2, 1) == 1);
    bench_end(&b);
    bench_close(&b);
}

static void test_misled_checkers_are_not_blamed(void **state)
{
    if (!is_apart(*state))
        skip();
    groups_run(*state, 4, misleading);
}

static void test_liars_are_found(void **state)
{
    if (!is_apart(*state))
        skip();
    groups_run(*state, 4, trials);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_makes_what_it_makes_of_whole_updates),
        cmocka_unit_test(test_checks_cost_a_tenth_more_bytes),
        cmocka_unit_test(test_liars_are_found),
        cmocka_unit_test(test_misled_checkers_are_not_blamed),
    };

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
