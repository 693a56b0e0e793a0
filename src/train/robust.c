/* SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "train/distances.h"
#include "train/robust_private.h"

struct robust_range robust_slice(const struct train_robust *r, int rank)
{
    struct robust_range slice;

    coll_slice(r->setup.floats, rank, r->size, &slice.from, &slice.count);
    return slice;
}

struct robust_range robust_block(const struct train_robust *r, int rank, int block)
{
    const struct robust_range slice = robust_slice(r, rank);
    struct robust_range part;

    coll_slice(slice.count, block, TRAIN_ROBUST_BLOCKS, &part.from, &part.count);
    part.from += slice.from;
    return part;
}

size_t robust_pairs(const struct train_robust *r)
{
    return (size_t)r->count * ((size_t)r->count + 1) / 2;
}

/* ---- a view ---- */

/* Of a slice of so many floats. */
static size_t longest_block(size_t floats)
{
    return coll_longest_slice(floats, TRAIN_ROBUST_BLOCKS);
}

double train_robust_memory(double floats, int workers)
{
    /* The result, the rows of a slice, and the shown rows of a block. */
    return workers < 2 ? 0 : floats * sizeof(float) * (2 + 1.0 / TRAIN_ROBUST_BLOCKS);
}

/* What checks need. */
static base_status open_checks(struct train_robust *r)
{
    base_status st = BASE_OK;
    const size_t n = (size_t)r->size;

    if (getrandom(r->secret, sizeof r->secret, 0) != sizeof r->secret)
        TRY(base_fail(BASE_ERR_IO, "no random numbers: %m"));
    TRY(base_tensor(n * r->longest, sizeof(float), "slices of all workers", &r->rows));
    TRY(base_tensor((n + 1) * longest_block(r->longest), sizeof(float), "checked blocks",
                    &r->shown));
    r->promises = base_calloc(n, robust_promise_bytes(r->size));
    r->echoes = base_calloc(n, robust_echo_bytes(r->size));
out:
    return st;
}

base_status train_robust_open(struct train_robust *r, const struct train_robust_setup *setup)
{
    base_status st = BASE_OK;
    const struct train_exchange *x = &setup->team->exchange;
    const size_t n = (size_t)x->size;

    *r = (struct train_robust){.setup = *setup,
                               .rank = x->rank,
                               .size = x->size,
                               .trusting = x->one_host,
                               .longest = coll_longest_slice(setup->floats, x->size),
                               .blame.rank = -1};
    r->x = coll_space_mine(setup->space) + setup->offset;
    TRY(coll_space_open(x->coll, setup->name, setup->floats, &r->results));
    r->result = coll_space_mine(r->results);
    r->parts = base_calloc(n * TRAIN_ROBUST_BLOCKS * n * (n + 1) / 2, sizeof *r->parts);
    r->distances = base_calloc(n * n, sizeof *r->distances);
    r->squares = base_calloc(n, sizeof *r->squares);
    if (!r->trusting)
        TRY(open_checks(r));
out:
    if (st != BASE_OK)
        train_robust_close(r);
    return st;
}

void train_robust_close(struct train_robust *r)
{
    coll_space_close(r->results);
    base_free(r->rows);
    base_free(r->shown);
    base_free(r->promises);
    base_free(r->echoes);
    base_free(r->parts);
    base_free(r->distances);
    base_free(r->squares);
    *r = (struct train_robust){0};
}

/* ---- distances and weights ---- */

void robust_make_finite(float *x, size_t floats)
{
#pragma omp simd
    for (size_t i = 0; i < floats; i++)
        x[i] = fabsf(x[i]) <= FLT_MAX ? x[i] : 0;
}

static bool all_are_finite(const float *x, size_t floats)
{
    int bad = 0;

#pragma omp simd reduction(| : bad)
    for (size_t i = 0; i < floats; i++)
        bad |= !(fabsf(x[i]) <= FLT_MAX);
    return bad == 0;
}

void robust_part(const struct train_robust *r, const struct train_row *rows, size_t floats,
                 double *part)
{
    double *d = train_distances_new(rows, r->count, floats);
    double *squares = train_squares_new(rows, r->count, floats);
    size_t at = 0;

    for (int i = 0; i < r->count; i++) {
        for (int j = 0; j < i; j++)
            part[at++] = d[i * r->count + j];
        part[at++] = squares[i];
    }
    base_free(d);
    base_free(squares);
}

/* Of all blocks of this worker's slice, whose rows are in r->row. */
static void make_parts(struct train_robust *r)
{
    const size_t pairs = robust_pairs(r), from = robust_slice(r, r->rank).from;
    double *mine = r->parts + (size_t)r->rank * TRAIN_ROBUST_BLOCKS * pairs;
    struct train_row rows[COMM_MAX_WORKERS];

    for (int b = 0; b < TRAIN_ROBUST_BLOCKS; b++) {
        const struct robust_range block = robust_block(r, r->rank, b);

        for (int i = 0; i < r->count; i++)
            rows[i].values = r->row[i].values + (block.from - from);
        robust_part(r, rows, block.count, mine + (size_t)b * pairs);
    }
}

/* The sums of all owners' parts, in the order of slices. */
static void add_parts(struct train_robust *r)
{
    const size_t pairs = robust_pairs(r);
    const int n = r->count;

    memset(r->distances, 0, (size_t)n * (size_t)n * sizeof *r->distances);
    memset(r->squares, 0, (size_t)n * sizeof *r->squares);
    for (int part = 0; part < r->size * TRAIN_ROBUST_BLOCKS; part++) {
        const double *at = r->parts + (size_t)part * pairs;

        for (int i = 0; i < n; i++) {
            for (int j = 0; j < i; j++)
                r->distances[i * n + j] += *at++;
            r->squares[i] += *at++;
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            r->distances[j * n + i] = r->distances[i * n + j];
}

static struct train_updates updates_of(const struct train_robust *r)
{
    return (struct train_updates){
        .rows = r->row, .count = r->count, .distances = r->distances, .squares = r->squares};
}

/* Owners whose distances are no numbers, or larger than finite rows can have, have lied. Of others
 * the sums are finite. */
static void judge_parts(struct train_robust *r)
{
    const size_t of_owner = TRAIN_ROBUST_BLOCKS * robust_pairs(r);
    const double most = 5.0 * FLT_MAX * FLT_MAX * (double)r->longest; /* 4, and rounding */

    for (int p = 0; p < r->size; p++)
        for (size_t i = 0; i < of_owner; i++)
            if (!(r->parts[(size_t)p * of_owner + i] >= 0 &&
                  r->parts[(size_t)p * of_owner + i] <= most))
                robust_blame(r, p, "tells distances that are none");
}

/* ---- one step ---- */

/* Workers that have samples have a row. */
static void begin(struct train_robust *r, int64_t step, const uint32_t *samples)
{
    r->step = step;
    r->blame.rank = -1;
    r->count = 0;
    for (int p = 0; p < r->size; p++) {
        if (samples[p] == 0)
            continue;
        r->rank_of[r->count] = p;
        r->row[r->count++] =
            (struct train_row){.worker = r->setup.team->view.members[p].id, .samples = samples[p]};
    }
    robust_make_finite(r->x, r->setup.floats);
}

/* This worker's slice of the result. */
static void make_result(struct train_robust *r)
{
    const struct train_attacker *own = r->setup.attackers->own;
    const struct robust_range slice = robust_slice(r, r->rank);
    const struct train_updates updates = updates_of(r);
    float *y = r->result + slice.from;

    train_aggregate_combine(r->setup.aggregation, &updates, r->weights, slice.count, y);
    if (own != NULL && own->attack->lie != NULL && slice.count > 0)
        own->attack->lie(own->strength, (uint64_t)r->step, slice.count, y);
}

static base_status give_rows(struct train_robust *r)
{
    base_status st = BASE_OK;
    const struct robust_range own = robust_slice(r, r->rank);
    struct robust_mail mail[COMM_MAX_WORKERS];

    for (int p = 0; p < r->size; p++) {
        const struct robust_range slice = robust_slice(r, p);

        mail[p] = (struct robust_mail){.out = r->x + slice.from,
                                       .in = r->rows + (size_t)p * r->longest,
                                       .out_bytes = slice.count * sizeof(float),
                                       .in_bytes = own.count * sizeof(float)};
    }
    TRY(robust_talk(r, ROBUST_ROWS, mail));
    for (int p = 0; p < r->size; p++) {
        float *values = r->rows + (size_t)p * r->longest;

        for (int b = 0; b < TRAIN_ROBUST_BLOCKS && p != r->rank; b++)
            if (!robust_is_promised(r, p, r->rank, b,
                                    values + (robust_block(r, r->rank, b).from - own.from)))
                robust_blame(r, p, "sends other values than it has promised");
        robust_make_finite(values, own.count);
    }
    for (int i = 0; i < r->count; i++)
        r->row[i].values = r->rank_of[i] == r->rank ? r->x + own.from
                                                    : r->rows + (size_t)r->rank_of[i] * r->longest;
out:
    return st;
}

static base_status give_results(struct train_robust *r)
{
    base_status st = BASE_OK;
    const struct robust_range own = robust_slice(r, r->rank);
    struct robust_mail mail[COMM_MAX_WORKERS];

    for (int p = 0; p < r->size; p++) {
        const struct robust_range slice = robust_slice(r, p);

        mail[p] = (struct robust_mail){.out = r->result + own.from,
                                       .in = r->result + slice.from,
                                       .out_bytes = own.count * sizeof(float),
                                       .in_bytes = slice.count * sizeof(float)};
    }
    TRY(robust_talk(r, ROBUST_RESULTS, mail));
    for (int p = 0; p < r->size; p++) {
        const struct robust_range slice = robust_slice(r, p);

        if (!all_are_finite(r->result + slice.from, slice.count))
            robust_blame(r, p, "returns results that are no numbers");
    }
out:
    return st;
}

/* Everything is where all can see it, and no worker is checked. */
static base_status run_together(struct train_robust *r, const float *head)
{
    base_status st = BASE_OK;
    struct coll *coll = r->setup.team->exchange.coll;
    const size_t bytes = TRAIN_ROBUST_BLOCKS * robust_pairs(r) * sizeof *r->parts;
    const size_t from = robust_slice(r, r->rank).from;
    const struct train_updates updates = updates_of(r);

    TRY(coll_all_gather(coll, head, TRAIN_HEAD * sizeof *head, r->heads));
    for (int i = 0; i < r->count; i++) /* all are complete: all have told their heads */
        r->row[i].values = coll_space_of(r->setup.space, r->rank_of[i]) + r->setup.offset + from;
    if (r->setup.aggregation->rule->distances) {
        make_parts(r);
        TRY(coll_all_gather(coll, (const uint8_t *)r->parts + (size_t)r->rank * bytes, bytes,
                            r->parts));
        add_parts(r);
    }
    TRY(train_aggregate_weigh(r->setup.aggregation, r->row, &updates, r->weights));
    make_result(r);
    TRY(coll_all_gather_slices(coll, r->result, r->setup.floats));
out:
    return st;
}

static bool is_blamed(const struct train_robust *r)
{
    return r->blame.rank >= 0;
}

static base_status run_apart(struct train_robust *r, const float *head)
{
    base_status st = BASE_OK;
    const struct train_updates updates = updates_of(r);
    uint64_t seed = 0;

    TRY(robust_promise(r, head));
    TRY(give_rows(r));
    if (is_blamed(r))
        goto out;
    if (r->setup.aggregation->rule->distances) {
        make_parts(r);
        TRY(robust_tell_all(r, ROBUST_PARTS, r->parts,
                            TRAIN_ROBUST_BLOCKS * robust_pairs(r) * sizeof *r->parts));
        judge_parts(r);
        if (is_blamed(r))
            goto out;
        add_parts(r);
    }
    TRY(train_aggregate_weigh(r->setup.aggregation, r->row, &updates, r->weights));
    make_result(r);
    TRY(give_results(r));
    if (!is_blamed(r))
        TRY(robust_echo(r, &seed));
    if (!is_blamed(r))
        TRY(robust_check(r, seed));
out:
    return st;
}

base_status train_robust_run(struct train_robust *r, int64_t step, const uint32_t *samples,
                             const float *head)
{
    begin(r, step, samples);
    return r->trusting ? run_together(r, head) : run_apart(r, head);
}
