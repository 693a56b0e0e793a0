/* SPDX-License-Identifier: MIT
 *
 * A promise is a worker's head, the digest of its secret number, and the digests of all blocks of
 * its vector, slice by slice. An echo is the secret number, and for each worker a digest of all
 * that it has told: its promise, its parts, its slice of the result.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "train/robust_private.h"

enum { DIGEST = TRAIN_ROBUST_DIGEST, HEAD = TRAIN_HEAD * sizeof(float) };

/* Two programs may round in different ways: of the largest value, and of a distance. */
static const double NEAR = 1e-5, ALIKE = 1e-6;

size_t robust_promise_bytes(int size)
{
    return HEAD + DIGEST + (size_t)size * TRAIN_ROBUST_BLOCKS * DIGEST;
}

size_t robust_echo_bytes(int size)
{
    return DIGEST + (size_t)size * DIGEST;
}

static void digest(const void *bytes, size_t count, uint8_t *digest_p)
{
    uint8_t whole[BASE_SHA256_BYTES];

    base_sha256_bytes(bytes, count, whole);
    memcpy(digest_p, whole, DIGEST);
}

static uint8_t *promise_of(const struct train_robust *r, int rank)
{
    return r->promises + (size_t)rank * robust_promise_bytes(r->size);
}

static uint8_t *promised_block(const struct train_robust *r, int rank, int owner, int block)
{
    return promise_of(r, rank) + HEAD + DIGEST +
           ((size_t)owner * TRAIN_ROBUST_BLOCKS + (size_t)block) * DIGEST;
}

static uint8_t *echo_of(const struct train_robust *r, int rank)
{
    return r->echoes + (size_t)rank * robust_echo_bytes(r->size);
}

void robust_blame(struct train_robust *r, int rank, const char *why)
{
    if (r->blame.rank >= 0)
        return;
    r->blame.rank = rank;
    snprintf(r->blame.why, sizeof r->blame.why, "%s", why);
}

/* ---- promises ---- */

/* This worker's secret number of this step. */
static void secret_number(const struct train_robust *r, uint8_t number[DIGEST])
{
    uint8_t bytes[sizeof r->secret + sizeof r->step];

    memcpy(bytes, r->secret, sizeof r->secret);
    memcpy(bytes + sizeof r->secret, &r->step, sizeof r->step);
    digest(bytes, sizeof bytes, number);
}

base_status robust_promise(struct train_robust *r, const float *head)
{
    base_status st = BASE_OK;
    const struct train_attacker *own = r->setup.attackers->own;
    uint8_t number[DIGEST];

    memcpy(promise_of(r, r->rank), head, HEAD);
    secret_number(r, number);
    digest(number, DIGEST, promise_of(r, r->rank) + HEAD);
    for (int owner = 0; owner < r->size; owner++)
        for (int b = 0; b < TRAIN_ROBUST_BLOCKS; b++) {
            const struct robust_range block = robust_block(r, owner, b);
            uint8_t *promised = promised_block(r, r->rank, owner, b);

            digest(r->x + block.from, block.count * sizeof(float), promised);
            promised[0] ^= own != NULL && own->attack->breaks_promises;
        }
    TRY(robust_tell_all(r, ROBUST_PROMISE, r->promises, robust_promise_bytes(r->size)));
    for (int p = 0; p < r->size; p++)
        memcpy(r->heads + (size_t)p * TRAIN_HEAD, promise_of(r, p), HEAD);
out:
    return st;
}

bool robust_is_promised(const struct train_robust *r, int rank, int owner, int block,
                        const float *values)
{
    uint8_t found[DIGEST];

    digest(values, robust_block(r, owner, block).count * sizeof(float), found);
    return memcmp(found, promised_block(r, rank, owner, block), DIGEST) == 0;
}

/* ---- echoes ---- */

/* Of all that the worker of that rank has told everyone. */
static void digest_of_words(const struct train_robust *r, int rank, uint8_t *digest_p)
{
    const size_t parts =
        r->setup.aggregation->rule->distances ? TRAIN_ROBUST_BLOCKS * robust_pairs(r) : 0;
    const struct robust_range slice = robust_slice(r, rank);
    uint8_t all[3 * DIGEST];

    digest(promise_of(r, rank), robust_promise_bytes(r->size), all);
    digest(r->parts + (size_t)rank * parts, parts * sizeof *r->parts, all + DIGEST);
    digest(r->result + slice.from, slice.count * sizeof *r->result, all + 2 * DIGEST);
    digest(all, sizeof all, digest_p);
}

/* What worker `teller` has heard of `rank`. */
static const uint8_t *heard(const struct train_robust *r, int teller, int rank)
{
    return echo_of(r, teller) + DIGEST + (size_t)rank * DIGEST;
}

enum robust_words robust_judge_words(const struct train_robust *r, int rank)
{
    const int others = r->size - 1;
    int same = 0;

    if (rank == r->rank)
        return ROBUST_ALIKE;
    for (int a = 0; a < r->size; a++)
        same += a != rank && memcmp(heard(r, a, rank), heard(r, r->rank, rank), DIGEST) == 0;
    return 2 * same > others ? ROBUST_ALIKE : 2 * same < others ? ROBUST_UNLIKE : ROBUST_UNCLEAR;
}

static base_status judge_words(struct train_robust *r, int rank)
{
    switch (robust_judge_words(r, rank)) {
    case ROBUST_ALIKE:
        break;
    case ROBUST_UNLIKE:
        robust_blame(r, rank, "tells workers different things");
        break;
    case ROBUST_UNCLEAR:
        return base_fail(BASE_ERR_DATA,
                         "half of the workers say that worker %u has told them something else than "
                         "this one: it has, or they lie",
                         r->setup.team->view.members[rank].id);
    }
    return BASE_OK;
}

base_status robust_echo(struct train_robust *r, uint64_t *seed_p)
{
    base_status st = BASE_OK;
    uint8_t numbers[COMM_MAX_WORKERS * DIGEST], found[DIGEST];

    secret_number(r, echo_of(r, r->rank));
    for (int p = 0; p < r->size; p++)
        digest_of_words(r, p, echo_of(r, r->rank) + DIGEST + (size_t)p * DIGEST);
    TRY(robust_tell_all(r, ROBUST_ECHO, r->echoes, robust_echo_bytes(r->size)));
    for (int p = 0; p < r->size; p++) {
        digest(echo_of(r, p), DIGEST, found);
        if (memcmp(found, promise_of(r, p) + HEAD, DIGEST) != 0)
            robust_blame(r, p, "tells another secret number than it has promised");
        TRY(judge_words(r, p));
        memcpy(numbers + (size_t)p * DIGEST, echo_of(r, p), DIGEST);
    }
    digest(numbers, (size_t)r->size * DIGEST, found);
    memcpy(seed_p, found, sizeof *seed_p);
out:
    return st;
}

/* ---- checks ---- */

struct check {
    int owner, block;
    struct robust_range range;
    size_t stride; /* floats from one row in `shown` to the next */
};

/* The block of an owner's slice that is checked. */
static struct check check_of(const struct train_robust *r, uint64_t seed, int owner)
{
    const int block =
        (int)(base_rng_mix(seed + 1 + (uint64_t)owner) % (uint64_t)TRAIN_ROBUST_BLOCKS);
    const struct robust_range range = robust_block(r, owner, block);

    return (struct check){owner, block, range, range.count};
}

static float *shown_row(const struct train_robust *r, const struct check *c, int rank)
{
    return r->shown + (size_t)rank * c->stride;
}

/* Is what the owner told of the distances in the block what they are? */
static bool distances_are_right(const struct train_robust *r, const struct check *c,
                                const struct train_row *rows)
{
    const size_t pairs = robust_pairs(r);
    const double *told =
        r->parts + ((size_t)c->owner * TRAIN_ROBUST_BLOCKS + (size_t)c->block) * pairs;
    double part[COMM_MAX_WORKERS * (COMM_MAX_WORKERS + 1) / 2];
    bool right = true;

    robust_part(r, rows, c->range.count, part);
    for (size_t i = 0; i < pairs; i++)
        right &= fabs(told[i] - part[i]) <= ALIKE * part[i];
    return right;
}

static bool result_is_right(const struct train_robust *r, const struct check *c,
                            const struct train_row *rows)
{
    const struct train_updates updates = {
        .rows = rows, .count = r->count, .distances = r->distances, .squares = r->squares};
    const float *told = r->result + c->range.from;
    float *y = shown_row(r, c, r->size);
    bool right = true;

    train_aggregate_combine(r->setup.aggregation, &updates, r->weights, c->range.count, y);
    for (size_t i = 0; i < c->range.count; i++) {
        double largest = 0;

        for (int row = 0; row < r->count; row++)
            largest = fmax(largest, fabs((double)rows[row].values[i]));
        right &= fabs((double)told[i] - (double)y[i]) <= NEAR * largest;
    }
    return right;
}

/* A worker whose row is not the promised one; -1: there is none. */
static int find_unpromised(const struct train_robust *r, const struct check *c)
{
    for (int p = 0; p < r->size; p++)
        if (!robust_is_promised(r, p, c->owner, c->block, shown_row(r, c, p)))
            return p;
    return -1;
}

/* Who is wrong about the block, by the rows that were shown; -1: no worker is. */
static int find_wrong(struct train_robust *r, const struct check *c, const char **why_p)
{
    struct train_row rows[COMM_MAX_WORKERS];
    const int unpromised = find_unpromised(r, c);

    *why_p = "shows other values than it has promised";
    if (unpromised >= 0)
        return unpromised;
    for (int i = 0; i < r->count; i++) {
        float *values = shown_row(r, c, r->rank_of[i]);

        robust_make_finite(values, c->range.count);
        rows[i] = r->row[i];
        rows[i].values = values;
    }
    *why_p = "tells wrong distances in its slice";
    if (r->setup.aggregation->rule->distances && !distances_are_right(r, c, rows))
        return c->owner;
    *why_p = "returns a wrong slice of the result";
    return result_is_right(r, c, rows) ? -1 : c->owner;
}

/* The rows of a block for each checker. */
static base_status give_blocks(struct train_robust *r, uint64_t seed, int shift,
                               const struct check *mine)
{
    const struct train_attacker *own = r->setup.attackers->own;
    const float *values = own != NULL && own->attack->misleads ? r->result : r->x;
    struct robust_mail mail[COMM_MAX_WORKERS];

    for (int p = 0; p < r->size; p++) {
        const struct check theirs = check_of(r, seed, (p - shift + r->size) % r->size);

        mail[p] = (struct robust_mail){.out = values + theirs.range.from,
                                       .in = shown_row(r, mine, p),
                                       .out_bytes = theirs.range.count * sizeof(float),
                                       .in_bytes = mine->range.count * sizeof(float)};
    }
    memcpy(shown_row(r, mine, r->rank), r->x + mine->range.from, mine->range.count * sizeof(float));
    return robust_talk(r, ROBUST_CHECK, mail);
}

/* What a checker says. It may have been given rows that no other worker has seen: that is no false
 * alarm, and all check the block in its place. */
enum { RIGHT, WRONG, UNPROMISED };

static uint8_t verdict_of(struct train_robust *r, const struct check *mine)
{
    const struct train_attacker *own = r->setup.attackers->own;
    const char *why;

    if (own != NULL && own->attack->accuses)
        return WRONG;
    if (find_unpromised(r, mine) >= 0)
        return UNPROMISED;
    return find_wrong(r, mine, &why) >= 0 ? WRONG : RIGHT;
}

/* All see the rows of a block, and find out who is wrong: at least `checker`, if it has said that
 * the owner is. */
static base_status show(struct train_robust *r, const struct check *c, int checker, uint8_t verdict)
{
    base_status st = BASE_OK;
    const char *why;
    int wrong;

    memcpy(shown_row(r, c, r->rank), r->x + c->range.from, c->range.count * sizeof(float));
    TRY(robust_tell_all(r, ROBUST_SHOW, r->shown, c->range.count * sizeof(float)));
    wrong = find_wrong(r, c, &why);
    if (wrong >= 0)
        robust_blame(r, wrong, why);
    else if (verdict != UNPROMISED)
        robust_blame(r, checker, "says that a right result is wrong");
out:
    return st;
}

base_status robust_check(struct train_robust *r, uint64_t seed)
{
    base_status st = BASE_OK;
    const int shift = 1 + (int)(seed % ((uint64_t)r->size - 1));
    const struct check mine = check_of(r, seed, (r->rank - shift + r->size) % r->size);
    uint8_t verdicts[COMM_MAX_WORKERS] = {0};

    TRY(give_blocks(r, seed, shift, &mine));
    verdicts[r->rank] = verdict_of(r, &mine);
    TRY(robust_tell_all(r, ROBUST_VERDICT, verdicts, sizeof verdicts[0]));
    /* Up to the first finding: what else is wrong is found in a later step. */
    for (int checker = 0; checker < r->size && r->blame.rank < 0; checker++) {
        const struct check theirs = check_of(r, seed, (checker - shift + r->size) % r->size);

        if (verdicts[checker] != RIGHT)
            TRY(show(r, &theirs, checker, verdicts[checker]));
    }
out:
    return st;
}
