/* SPDX-License-Identifier: MIT
 *
 * Cells hold every rating once and share no rows within a sub-epoch; an epoch of `mf` against the
 * same steps in double precision.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/cells.h"
#include "recsys/model_private.h"
#include "recsys/rotation.h"
#include "support/rated.h"

enum { USERS = 130, ITEMS = 90, EACH = 30, K = 16, BLOCKS = 3, ROTATIONS = 2 };
static const double RATE = 0.05, LAMBDA = 0.04, BIAS_LAMBDA = 0.01;

static struct rated rated;

struct fitted {
    struct base_team *team;
    void *options;
    struct recsys_fit *fit;
};

static void fit_open(struct fitted *f, const char *text)
{
    struct recsys_setup setup = {
        .scale = &rated.scale, .by_user = &rated.by_user, .by_item = &rated.by_item, .seed = 3};

    assert_int_equal(base_team_new(2, &f->team), BASE_OK);
    assert_int_equal(recsys_model_find(text, &setup.model, &f->options), BASE_OK);
    setup.options = f->options;
    setup.team = f->team;
    assert_int_equal(recsys_fit_new(&setup, &f->fit), BASE_OK);
}

static void fit_close(struct fitted *f)
{
    recsys_fit_free(f->fit);
    base_free(f->options);
    base_team_free(f->team);
}

/* The item at a place. */
static uint32_t item_at(const struct recsys_cells *c, uint32_t group, uint32_t row)
{
    for (uint32_t i = 0; i < ITEMS; i++)
        if (c->place[i] == group * (c->group_rows + 1) + row)
            return i;
    fail_msg("no item at %u, %u", group, row);
    return 0;
}

static double rating_of(uint32_t user, uint32_t item)
{
    const struct recsys_rows *rows = &rated.by_user;

    for (uint64_t k = rows->start[user]; k < rows->start[user + 1]; k++)
        if (rows->column[k] == item)
            return (double)recsys_value(&rated.scale, rows, k);
    fail_msg("user %u did not rate item %u", user, item);
    return 0;
}

/* Adds what the cells of some users have. */
static void check_cells(const struct recsys_fit *fit, const struct recsys_shape *shape,
                        uint64_t *ratings, double *share)
{
    struct recsys_cells c;
    uint32_t stripe_of[USERS];

    memset(stripe_of, -1, sizeof stripe_of);
    assert_int_equal(recsys_cells_init(&c, fit, shape), BASE_OK);
    for (uint32_t n = 0; n < shape->rotations * shape->stripes * shape->groups; n++) {
        const struct recsys_cell *cell = &c.cell[n];
        const uint32_t stripe = n / shape->groups, group = n % shape->groups;
        size_t at = 0;

        for (uint32_t r = 0; r < cell->run_count; r++) {
            const struct recsys_run run = cell->runs[r];
            const uint32_t user = shape->from + run.user;
            size_t end = at + (run.count + 7) / 8 * 8;

            assert_true(user < shape->to);
            assert_true(stripe_of[user] == UINT32_MAX || stripe_of[user] == stripe);
            stripe_of[user] = stripe;
            *ratings += run.count;
            for (uint32_t j = 0; j < run.count; j++, at++) {
                const double value = cell->code[at] * (double)c.scale + (double)c.offset;
                const uint32_t item = item_at(&c, group, cell->item[at]);

                assert_true(fabs(value + (double)fit->mean - rating_of(user, item)) < 1e-5);
            }
            for (; at < end; at++)
                assert_true(cell->code[at] == 0 && cell->item[at] == c.group_rows);
        }
    }
    for (uint32_t s = 0; s < shape->rotations * shape->stripes; s++)
        *share += (double)c.share[s];
    recsys_cells_fini(&c);
}

/* Every rating is in one cell of one of `parts` divisions of the users. */
static void one_cells(uint32_t stripes, uint32_t groups, uint32_t rotations, uint32_t parts)
{
    struct fitted f;
    uint64_t ratings = 0;
    double share = 0;

    fit_open(&f, "mf");
    for (uint32_t i = 0; i < parts; i++)
        check_cells(f.fit,
                    &(struct recsys_shape){USERS * i / parts, USERS * (i + 1) / parts, stripes,
                                           groups, rotations},
                    &ratings, &share);
    assert_int_equal(ratings, rated.by_user.count);
    assert_true(fabs(share - 1) < 1e-5);
    fit_close(&f);
}

static void test_cells(void **state)
{
    (void)state;
    one_cells(1, 1, 1, 1);
    one_cells(4, 4, 1, 1);
    one_cells(3, 3, 5, 1);
    one_cells(64, 64, 4, 1); /* more groups than some have items for */
    one_cells(2, 12, 3, 3);
    one_cells(1, 2, 4, USERS + 1); /* more parts than users */
}

static void test_too_many(void **state)
{
    struct fitted f;
    struct recsys_cells c;

    (void)state;
    fit_open(&f, "mf");
    assert_int_equal(recsys_cells_init(&c, f.fit,
                                       &(struct recsys_shape){.to = USERS,
                                                              .stripes = 1,
                                                              .groups = RECSYS_MOST_GROUPS + 1,
                                                              .rotations = 1}),
                     BASE_ERR_USAGE);
    recsys_cells_fini(&c);
    fit_close(&f);
}

/* As many items as 16 blocks cannot quite number. */
static void test_many_items(void **state)
{
    enum { MANY = 16 * (UINT16_MAX - 1) + 6 };
    struct rated_one two[] = {{0, 0, 0, 3}, {0, MANY - 1, 0, 4}};
    const struct rated kept = rated;
    struct fitted f;

    (void)state;
    rated_init(&rated, 1, MANY, two, 2, NULL);
    fit_open(&f, "mf:k=8");
    assert_int_equal(recsys_prepare(f.fit, 0), BASE_OK);
    fit_close(&f);
    rated_fini(&rated);
    rated = kept;
}

/* ---- an epoch ---- */

struct plain {
    double user[USERS][K], item[ITEMS][K];
};

static void plain_decay(struct plain *p, const struct recsys_cells *c, uint32_t group, double share)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        const double n = (double)recsys_row_count(&rated.by_item, i) * share;

        if (c->place[i] / (c->group_rows + 1) != group)
            continue;
        for (int f = 0; f < K - 2; f++)
            p->item[i][f] *= pow(1 - RATE * LAMBDA, n);
        p->item[i][K - 2] *= pow(1 - RATE * BIAS_LAMBDA, n);
    }
}

/* Eight ratings see the same row of the user. */
static void plain_batch(struct plain *p, const struct recsys_fit *fit, uint32_t user,
                        const uint32_t *items, uint32_t count, bool absolute)
{
    double was[K];

    memcpy(was, p->user[user], sizeof was);
    for (uint32_t j = 0; j < count; j++) {
        double *q = p->item[items[j]], e = rating_of(user, items[j]) - (double)fit->mean;

        for (int f = 0; f < K; f++)
            e -= was[f] * q[f];
        e = RATE * (absolute ? (e < 0 ? -1 : 1) : e);
        for (int f = 0; f < K; f++) {
            const double old = q[f];

            q[f] += f == K - 1 ? 0 : e * was[f];
            p->user[user][f] += f == K - 2 ? 0 : e * old;
        }
    }
}

static void plain_cell(struct plain *p, const struct recsys_fit *fit, const struct recsys_cells *c,
                       uint32_t n, bool absolute)
{
    const struct recsys_cell *cell = &c->cell[n];
    size_t at = 0;

    for (uint32_t r = 0; r < cell->run_count; r++) {
        const struct recsys_run run = cell->runs[r];

        for (int f = 0; f < K; f++)
            p->user[run.user][f] *= f == K - 2   ? 1
                                    : f == K - 1 ? pow(1 - RATE * BIAS_LAMBDA, run.count)
                                                 : pow(1 - RATE * LAMBDA, run.count);
        for (uint32_t j = 0; j < run.count; j += 8, at += 8) {
            const uint32_t count = run.count - j < 8 ? run.count - j : 8;
            uint32_t items[8];

            for (uint32_t b = 0; b < count; b++)
                items[b] = item_at(c, n % c->shape.groups, cell->item[at + b]);
            plain_batch(p, fit, run.user, items, count, absolute);
        }
    }
}

static void one_epoch(const char *text, bool absolute)
{
    struct fitted f;
    struct recsys_cells c;
    struct plain *p = base_calloc(1, sizeof *p);

    fit_open(&f, text);
    assert_int_equal(recsys_cells_init(&c, f.fit,
                                       &(struct recsys_shape){.to = USERS,
                                                              .stripes = BLOCKS,
                                                              .groups = BLOCKS,
                                                              .rotations = ROTATIONS}),
                     BASE_OK);
    for (int i = 0; i < USERS * K; i++)
        p->user[i / K][i % K] = (double)f.fit->buffers[0].at[i];
    for (int i = 0; i < ITEMS * K; i++)
        p->item[i / K][i % K] = (double)f.fit->buffers[1].at[i];
    assert_int_equal(recsys_sweep(f.fit), BASE_OK);
    for (uint32_t r = 0; r < ROTATIONS; r++)
        for (uint32_t turn = 0; turn < BLOCKS; turn++)
            for (uint32_t s = 0; s < BLOCKS; s++) {
                const uint32_t group = (s + turn) % BLOCKS;

                plain_decay(p, &c, group, (double)c.share[r * BLOCKS + s]);
                plain_cell(p, f.fit, &c, recsys_cell_at(&c.shape, r, s, group), absolute);
            }
    for (int i = 0; i < USERS * K; i++)
        assert_true(fabs((double)f.fit->buffers[0].at[i] - p->user[i / K][i % K]) < 2e-4);
    for (int i = 0; i < ITEMS * K; i++)
        assert_true(fabs((double)f.fit->buffers[1].at[i] - p->item[i / K][i % K]) < 2e-4);
    recsys_cells_fini(&c);
    fit_close(&f);
    base_free(p);
}

/* Two workers in one process take turns: their epochs reach what one reaches. */
static void test_rotation(void **state)
{
    enum { WORKERS = 2, BUNDLES = 2 * WORKERS, EPOCHS = 8 };
    struct fitted one, f[WORKERS];
    float *users[WORKERS], *bundles;
    struct recsys_score score = {0}, divided = {0};
    const struct recsys_rotation *rotation;

    (void)state;
    fit_open(&one, "mf:k=16,sweeps=8");
    for (int e = 0; e < EPOCHS; e++)
        assert_int_equal(recsys_sweep(one.fit), BASE_OK);
    for (uint32_t w = 0; w < WORKERS; w++) {
        fit_open(&f[w], "mf:k=16,sweeps=8");
        rotation = f[w].fit->model->rotation;
        assert_int_equal(
            rotation->lay_out(
                f[w].fit,
                &(struct recsys_part){USERS * w / WORKERS, USERS * (w + 1) / WORKERS, BUNDLES, 1}),
            BASE_OK);
        users[w] = recsys_at(f[w].fit, rotation->users, USERS * w / WORKERS);
    }
    bundles = base_calloc(BUNDLES * rotation->floats(f[0].fit), sizeof *bundles);
    for (int e = 0; e < EPOCHS; e++) {
        for (uint32_t w = 0; w < WORKERS; w++)
            rotation->begin(f[w].fit, 2 * w, 2 * w + 2, bundles);
        for (uint32_t turn = 0; turn < BUNDLES * rotation->count(one.fit); turn++)
            for (uint32_t w = 0; w < WORKERS; w++) {
                const uint32_t b = (2 * w + turn) % BUNDLES;

                rotation->train(f[w].fit, users[w], bundles, turn / BUNDLES, b);
            }
        for (int w = 0; w < WORKERS; w++) {
            for (uint32_t b = 0; b < BUNDLES; b++)
                rotation->end(f[w].fit, b, b + 1, bundles, recsys_at(f[w].fit, 1, 0));
            assert_int_equal(recsys_finish(f[w].fit), BASE_OK);
        }
    }
    assert_int_equal(recsys_score(one.fit, &rated.by_user, 0, USERS, &score), BASE_OK);
    for (uint32_t w = 0; w < WORKERS; w++)
        assert_int_equal(recsys_score(f[w].fit, &rated.by_user, USERS * w / WORKERS,
                                      USERS * (w + 1) / WORKERS, &divided),
                         BASE_OK);
    assert_true(score.count == divided.count);
    assert_true(fabs(sqrt(score.squared / score.count) - sqrt(divided.squared / score.count)) <
                0.02);
    assert_memory_equal(recsys_at(f[0].fit, 1, 0), recsys_at(f[1].fit, 1, 0),
                        (size_t)ITEMS * 16 * sizeof(float));
    for (int w = 0; w < WORKERS; w++)
        fit_close(&f[w]);
    fit_close(&one);
    base_free(bundles);
}

static void test_epoch(void **state)
{
    (void)state;
    one_epoch("mf:k=16,blocks=3,rotations=2,lambda=0.04,bias-lambda=0.01,rate=0.05", false);
}

static void test_absolute(void **state)
{
    (void)state;
    one_epoch("mf:k=16,blocks=3,rotations=2,lambda=0.04,bias-lambda=0.01,rate=0.05,loss=absolute",
              true);
}

/* ---- scales ---- */

static void stretch(float factor)
{
    struct recsys_scale *s = &rated.scale;

    s->lowest *= factor;
    s->highest *= factor;
    s->step *= factor;
    for (uint32_t l = 0; l < s->levels; l++)
        s->level[l] *= factor;
}

static double squared(const struct recsys_fit *fit, const float *row, uint32_t user)
{
    const struct recsys_rows *rows = &rated.by_user;
    double sum = 0;

    for (uint64_t k = rows->start[user]; k < rows->start[user + 1]; k++) {
        const float guess =
            row != NULL ? recsys_predict_row(fit, row, rows->column[k], 0).value : fit->mean;

        sum += pow((double)(guess - recsys_value(&rated.scale, rows, k)), 2);
    }
    return sum;
}

/* A new user with the ratings of a known one is understood better than by the mean. */
static void folds(const struct recsys_fit *fit, uint32_t user)
{
    const struct recsys_rows *rows = &rated.by_user;
    const uint32_t count = (uint32_t)recsys_row_count(rows, user);
    struct recsys_rating *mine = base_calloc(count, sizeof *mine);
    float row[RECSYS_MAX_K];

    for (uint32_t j = 0; j < count; j++)
        mine[j] = (struct recsys_rating){
            .item = rows->column[rows->start[user] + j],
            .value = recsys_value(&rated.scale, rows, rows->start[user] + j)};
    assert_int_equal(recsys_fold(fit, mine, count, row), BASE_OK);
    assert_true(squared(fit, row, user) < 0.8 * squared(fit, NULL, user));
    base_free(mine);
}

static double rmse(void)
{
    struct fitted f;
    struct recsys_score score = {0};

    fit_open(&f, "mf");
    for (int64_t s = 0; s < f.fit->sweeps; s++)
        assert_int_equal(recsys_sweep(f.fit), BASE_OK);
    assert_int_equal(recsys_score(f.fit, &rated.test, 0, USERS, &score), BASE_OK);
    for (uint32_t user = 0; user < 5; user++)
        folds(f.fit, user);
    fit_close(&f);
    return sqrt(score.squared / score.count);
}

/* The defaults serve every scale: ten times the ratings have ten times the error. */
static void test_scales(void **state)
{
    const double usual = rmse();

    (void)state;
    for (int factor = 10; factor <= 1000; factor *= 10) {
        double found;

        stretch((float)factor);
        found = rmse();
        stretch(1 / (float)factor);
        if (!(fabs(found - factor * usual) < 0.1 * factor * usual))
            fail_msg("the error is %g for a scale of %d times that with %g", found, factor, usual);
    }
}

static int make_ratings(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    return 0;
}

static int free_ratings(void **state)
{
    (void)state;
    rated_fini(&rated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),      cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_many_items), cmocka_unit_test(test_epoch),
        cmocka_unit_test(test_rotation),   cmocka_unit_test(test_absolute),
        cmocka_unit_test(test_scales),
    };

    return cmocka_run_group_tests(tests, make_ratings, free_ratings);
}
