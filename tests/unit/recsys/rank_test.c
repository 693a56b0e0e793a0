/* SPDX-License-Identifier: MIT
 *
 * The best items of every model against a plain sort of all guesses; what is left out; ties; the
 * same lists for any number of threads and users at once; similar items against plain cosines.
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
#include "recsys/rank.h"
#include "support/fitted.h"

enum { USERS = 70, ITEMS = 90, EACH = 20, N = 12 };

static struct rated rated;

static int worse_last(const void *a, const void *b)
{
    const struct recsys_pick *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static bool has_seen(uint32_t user, uint32_t item)
{
    for (uint64_t k = rated.by_user.start[user]; k < rated.by_user.start[user + 1]; k++)
        if (rated.by_user.column[k] == item)
            return true;
    return false;
}

/* All that the user has not seen, by guesses one at a time. */
static uint32_t plain_order(const struct recsys_fit *fit, const float *row, uint32_t user,
                            const bool *barred, struct recsys_pick *order)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ITEMS; i++)
        if (!barred[i] && !has_seen(user, i))
            order[count++] = (struct recsys_pick){i, fit->model->guess(fit, row, i, 0).value};
    qsort(order, count, sizeof *order, worse_last);
    return count;
}

static struct recsys_wish wish_of(const struct recsys_fit *fit, uint32_t user)
{
    const struct recsys_buffer *rows = &fit->buffers[fit->answers];

    return (struct recsys_wish){rows->at + (size_t)user * rows->width,
                                rated.by_user.column + rated.by_user.start[user],
                                rated.by_user.start[user + 1] - rated.by_user.start[user]};
}

static void ranks(const char *model, const char *example, int threads)
{
    struct recsys_wish wishes[USERS];
    struct recsys_pick picks[USERS * N], order[ITEMS];
    uint32_t found[USERS];
    bool barred[ITEMS] = {[3] = true, [40] = true};
    struct fitted f;

    fitted_open(&f, &rated, model, example, threads, 5);
    fitted_train(&f);
    for (uint32_t u = 0; u < USERS; u++)
        wishes[u] = wish_of(f.fit, u);
    assert_int_equal(recsys_rank(f.fit, wishes, USERS, barred, N, picks, found), BASE_OK);
    for (uint32_t u = 0; u < USERS; u++) {
        const uint32_t left = plain_order(f.fit, wishes[u].row, u, barred, order);

        assert_int_equal(found[u], left < N ? left : N);
        for (uint32_t r = 0; r < found[u]; r++) {
            assert_int_equal(picks[u * N + r].item, order[r].item);
            assert_true(picks[u * N + r].score == order[r].score);
        }
    }
    fitted_close(&f);
}

static void test_every_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < recsys_model_count; i++)
        for (const char *const *e = recsys_model_registry[i]->examples; *e != NULL; e++)
            ranks(recsys_model_registry[i]->name, *e, 1 + (int)(i % 3));
}

/* An unknown user sees no item as better than another where the model says so: by number. */
static void test_ties(void **state)
{
    const struct recsys_wish stranger = {0};
    struct recsys_pick picks[N];
    uint32_t found;
    struct fitted f;

    (void)state;
    fitted_open(&f, &rated, "ials", "k=16,sweeps=1", 2, 5);
    assert_int_equal(recsys_rank(f.fit, &stranger, 1, NULL, N, picks, &found), BASE_OK);
    assert_int_equal(found, N);
    for (uint32_t r = 0; r < N; r++)
        assert_int_equal(picks[r].item, r);
    fitted_close(&f);
}

static void test_few_left(void **state)
{
    uint32_t seen[ITEMS], found[2];
    const struct recsys_wish wishes[2] = {{NULL, seen, ITEMS - 2}, {NULL, seen, ITEMS}};
    struct recsys_pick picks[2 * N];
    struct fitted f;

    (void)state;
    for (uint32_t i = 0; i < ITEMS; i++)
        seen[i] = i;
    fitted_open(&f, &rated, "bias-als", "", 2, 5);
    fitted_train(&f);
    assert_int_equal(recsys_rank(f.fit, wishes, 2, NULL, N, picks, found), BASE_OK);
    assert_int_equal(found[0], 2);
    assert_int_equal(found[1], 0);
    assert_true(picks[0].item >= ITEMS - 2 && picks[1].item >= ITEMS - 2);
    assert_int_equal(recsys_rank(f.fit, wishes, 0, NULL, N, picks, found), BASE_OK);
    assert_int_equal(recsys_rank(f.fit, wishes, 1, NULL, 0, picks, found), BASE_OK);
    assert_int_equal(found[0], 0);
    fitted_close(&f);
}

static void test_not_numbers(void **state)
{
    const struct recsys_wish stranger = {0};
    struct recsys_pick picks[N];
    uint32_t found;
    struct fitted f;

    (void)state;
    fitted_open(&f, &rated, "bias-als", "", 1, 5);
    f.fit->buffers[1].at[7] = NAN;
    assert_int_equal(recsys_rank(f.fit, &stranger, 1, NULL, N, picks, &found), BASE_ERR_DIVERGED);
    fitted_close(&f);
}

/* ---- similar items ---- */

static void test_similar(void **state)
{
    struct recsys_pick picks[ITEMS];
    double mean[14] = {0};
    uint32_t found;
    struct fitted f;

    (void)state;
    fitted_open(&f, &rated, "mf", "k=16,sweeps=10", 1, 5);
    fitted_train(&f);
    for (uint32_t i = 0; i < ITEMS; i++)
        for (int c = 0; c < 14; c++)
            mean[c] += (double)f.fit->buffers[1].at[i * 16 + (uint32_t)c] / ITEMS;
    assert_int_equal(recsys_similar(f.fit, 5, ITEMS, picks, &found), BASE_OK);
    assert_int_equal(found, ITEMS - 1);
    for (uint32_t r = 0; r < found; r++) {
        double ab = 0, aa = 0, bb = 0;

        for (int c = 0; c < 14; c++) {
            const double a = (double)f.fit->buffers[1].at[5 * 16 + c] - mean[c];
            const double b =
                (double)f.fit->buffers[1].at[picks[r].item * 16 + (uint32_t)c] - mean[c];

            ab += a * b;
            aa += a * a;
            bb += b * b;
        }
        assert_int_not_equal(picks[r].item, 5);
        assert_true(fabs((double)picks[r].score - ab / sqrt(aa * bb)) < 1e-6);
        assert_true(r == 0 || picks[r].score <= picks[r - 1].score);
    }
    fitted_close(&f);
}

/* An item that has the same ratings as another is the most similar one, in every factor model. */
static void test_twins(void **state)
{
    static const char *const models[][2] = {{"mf", "k=16,sweeps=30,lambda=0.02"},
                                            {"bmf", "k=16,sweeps=30"},
                                            {"ials", "k=16,sweeps=10"}};
    struct rated_one *all = base_calloc(2000, sizeof *all);
    uint64_t count = 0;
    struct rated twins;

    (void)state;
    for (uint32_t u = 0; u < 60; u++)
        for (uint32_t i = 0; i < 20; i++) {
            const float value = 1 + (float)((u * 5 + i * 3 + u * i) % 7) / 2;

            if ((u * u * 31 + i * i * 17 + u * i * 7) % 29 >= 15)
                continue;
            all[count++] = (struct rated_one){u, i, 86400, value};
            if (i == 4) /* 20 is the twin of 4 */
                all[count++] = (struct rated_one){u, 20, 86400, value};
        }
    rated_init(&twins, 60, 21, all, count, NULL);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct recsys_pick pick[3];
        uint32_t found;
        struct fitted f;

        fitted_open(&f, &twins, models[m][0], models[m][1], 1, 5);
        fitted_train(&f);
        assert_int_equal(recsys_similar(f.fit, 4, 3, pick, &found), BASE_OK);
        if (pick[0].item != 20 || pick[0].score < 0.5f)
            fail_msg("%s: item %u is most like 4 (%.3f)", models[m][0], pick[0].item,
                     (double)pick[0].score);
        fitted_close(&f);
    }
    rated_fini(&twins);
    base_free(all);
}

static void test_no_factors(void **state)
{
    struct recsys_pick picks[N];
    uint32_t found;
    struct fitted f;

    (void)state;
    fitted_open(&f, &rated, "bias-stat", "", 1, 5);
    assert_int_equal(recsys_similar(f.fit, 5, N, picks, &found), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "bias-stat has no factors"));
    fitted_close(&f);
}

static int set_up(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rated_fini(&rated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model), cmocka_unit_test(test_ties),
        cmocka_unit_test(test_few_left),    cmocka_unit_test(test_not_numbers),
        cmocka_unit_test(test_similar),     cmocka_unit_test(test_twins),
        cmocka_unit_test(test_no_factors),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
