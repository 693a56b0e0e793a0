/* SPDX-License-Identifier: MIT
 *
 * Means in every wire format (train/mean.h) over every way in which groups can be connected, of 1 …
 * 5 real processes: all get the same bits; an exact format gives the weighted mean; of the others,
 * what has come and the mean of the residuals are together the mean of what was sent, in this view
 * and in the next.
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
#include "support/groups.h"
#include "train/mean.h"

enum { FLOATS = 3001, ROUNDS = 6 };

/* What worker `rank` sends; the same on every worker. Every fourth is padding. */
static float value_of(int rank, int round, uint32_t i)
{
    struct base_rng rng =
        base_rng_of(3, BASE_STREAM_TEST, (uint32_t)rank, (uint32_t)round, i / 1024);

    return i % 4 == 3 ? 0 : base_rng_unit(base_rng_u32(&rng, i % 1024)) - 0.4f;
}

struct room {
    struct train_team team;
    struct coll *coll;
    float x[FLOATS], residual[FLOATS];
    double came[FLOATS], sent[FLOATS];
};

static void all_have_the_same(struct room *r)
{
    uint32_t mine = base_crc32c(0, r->x, sizeof r->x), all[COMM_MAX_WORKERS];

    crew_check(coll_all_gather(r->coll, &mine, sizeof mine, all) == BASE_OK);
    for (int i = 0; i < r->team.exchange.size; i++)
        crew_check(all[i] == mine);
}

/* `weights`: rank + 1, or 1 for all. */
static void run_round(struct room *r, struct train_mean *mean, int round, bool weighted)
{
    const struct train_fault none = {0};
    int rank = r->team.exchange.rank, size = r->team.exchange.size;

    for (uint32_t i = 0; i < FLOATS; i++) {
        double sum = 0, weights = 0;

        for (int k = 0; k < size; k++) {
            double weight = weighted ? k + 1 : 1;

            sum += weight * (double)value_of(k, round, i);
            weights += weight;
        }
        r->x[i] = value_of(rank, round, i);
        r->sent[i] += sum / weights;
    }
    crew_check(train_mean_run(mean, r->x, weighted ? (uint32_t)rank + 1 : 1, &none, round + 1) ==
               BASE_OK);
    all_have_the_same(r);
    for (uint32_t i = 0; i < FLOATS; i++)
        r->came[i] += (double)r->x[i];
}

/* Rank 0 knows what all together still lack. */
static void check_what_is_left(struct room *r, struct train_mean *mean)
{
    float *left = r->x;

    crew_check(train_mean_of_residuals(mean, left) == BASE_OK);
    for (uint32_t i = 0; r->team.exchange.rank == 0 && i < FLOATS; i++) {
        crew_check(fabs(r->came[i] + (double)left[i] - r->sent[i]) < 0.05);
        crew_check(i % 4 != 3 || (r->came[i] == 0 && left[i] == 0));
    }
}

static void run_format(struct room *r, const char *text)
{
    struct train_wiring wiring;
    struct train_mean mean;

    crew_check(train_wire_find(text, &wiring) == BASE_OK);
    memset(r->residual, 0, sizeof r->residual);
    memset(r->came, 0, sizeof r->came);
    memset(r->sent, 0, sizeof r->sent);
    for (int view = 0; view < 2; view++) { /* the residual goes on */
        bool exact = wiring.wire->exact;

        crew_check(train_mean_open(&mean, &r->team, &wiring, exact ? NULL : r->residual, FLOATS) ==
                   BASE_OK);
        for (int round = 0; round < ROUNDS; round++)
            run_round(r, &mean, view * ROUNDS + round, exact);
        if (!exact && r->team.exchange.size > 1)
            check_what_is_left(r, &mean);
        train_mean_close(&mean);
    }
    for (uint32_t i = 0; wiring.wire->exact && i < FLOATS; i++)
        crew_check(fabs(r->came[i] - r->sent[i]) < 1e-5);
    train_wiring_fini(&wiring);
}

static void every_format(struct crew_worker *me)
{
    static const char *const texts[] = {"fp32", "bf16", "int8", "int4", "topk/share=0.1/bits=4"};
    struct room *r = base_calloc(1, sizeof *r);
    struct comm_group *group = groups_open(me, 0);

    r->team = (struct train_team){.group = group, .view = *comm_group_view(group)};
    r->team.exchange.rank = comm_group_rank(group);
    r->team.exchange.size = comm_group_size(group);
    crew_check(coll_open(group, NULL, &r->coll) == BASE_OK);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        run_format(r, texts[i]);
    coll_close(r->coll);
    comm_group_close(group);
    base_free(r);
}

static void test_every_format(void **state)
{
    static const int sizes[] = {1, 2, 3, 5};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        groups_run(*state, sizes[i], every_format);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_format)};

    return groups_main(argc, argv, tests, sizeof tests / sizeof tests[0], NULL);
}
