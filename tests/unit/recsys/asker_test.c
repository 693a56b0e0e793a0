/* SPDX-License-Identifier: MIT
 *
 * Users who ask a model: known ones, known ones with more ratings, new ones; and why they get what
 * they get.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "recsys/asker.h"
#include "support/fitted.h"

enum { USERS = 60, ITEMS = 80, EACH = 20 };

static struct rated rated;
static struct fitted fitted;
static uint32_t numbers[ITEMS];
static struct recsys_saved saved;

static void test_known(void **state)
{
    struct recsys_asker asker;
    const struct recsys_rows *rows = &rated.by_user;

    (void)state;
    assert_int_equal(recsys_asker_init(&saved, 7, NULL, 0, &asker), BASE_OK);
    assert_int_equal(asker.count, rows->start[8] - rows->start[7]);
    assert_memory_equal(asker.wish.seen, rows->column + rows->start[7],
                        asker.count * sizeof(uint32_t));
    assert_ptr_equal(asker.wish.row, fitted.fit->buffers[fitted.fit->answers].at + 7 * 16);
    recsys_asker_fini(&asker);
}

/* The order in which ratings are given does not matter; of an item that comes again, the last. */
static void test_new(void **state)
{
    const struct recsys_rating given[] = {{9, 2, 0}, {3, 4, 0}, {40, 1, 0}, {9, 5, 0}};
    const struct recsys_rating plain[] = {{3, 4, 0}, {9, 5, 0}, {40, 1, 0}};
    struct recsys_asker asker;
    float row[16];

    (void)state;
    assert_int_equal(recsys_asker_init(&saved, RECSYS_UNKNOWN, given, 4, &asker), BASE_OK);
    assert_int_equal(asker.count, 3);
    assert_memory_equal(asker.ratings, plain, sizeof plain);
    assert_int_equal(asker.seen[1], 9);
    assert_int_equal(recsys_fold(fitted.fit, plain, 3, row), BASE_OK);
    assert_memory_equal(asker.wish.row, row, sizeof row);
    recsys_asker_fini(&asker);
    assert_int_equal(recsys_asker_init(&saved, RECSYS_UNKNOWN, NULL, 0, &asker), BASE_OK);
    assert_null(asker.wish.row); /* an unknown user, of whom nothing is known */
    recsys_asker_fini(&asker);
}

/* A known user's added ratings join those of training, and stand in for older ones. */
static void test_more(void **state)
{
    const uint64_t from = rated.by_user.start[5], to = rated.by_user.start[6];
    const uint32_t old = rated.by_user.column[from];
    uint32_t fresh = 0;
    struct recsys_asker asker;
    struct recsys_rating added[2] = {{0}};

    (void)state;
    for (uint64_t k = from; k < to && rated.by_user.column[k] == fresh; k++)
        fresh++;
    added[0] = (struct recsys_rating){fresh, 3, 0};
    added[1] = (struct recsys_rating){old, 0.5f, 0};
    assert_int_equal(recsys_asker_init(&saved, 5, added, 2, &asker), BASE_OK);
    assert_int_equal(asker.count, to - from + 1);
    assert_non_null(asker.folded);
    for (uint32_t j = 0; j < asker.count; j++) {
        assert_true(j == 0 || asker.seen[j] > asker.seen[j - 1]);
        assert_int_equal(asker.seen[j], asker.ratings[j].item);
        assert_true(asker.ratings[j].item != old || asker.ratings[j].value == 0.5f);
    }
    recsys_asker_fini(&asker);
}

static void refuse(struct recsys_rating rating, const char *sentence)
{
    struct recsys_asker asker;

    assert_int_equal(recsys_asker_init(&saved, RECSYS_UNKNOWN, &rating, 1, &asker), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), sentence));
    assert_null(asker.ratings);
}

static void test_bad(void **state)
{
    (void)state;
    refuse((struct recsys_rating){ITEMS, 3, 0}, "does not know");
    refuse((struct recsys_rating){4, 7, 0}, "item 104 is rated 7; the model's ratings are 0.5 … 5");
    refuse((struct recsys_rating){4, NAN, 0}, "item 104");
}

static void test_because(void **state)
{
    struct recsys_asker asker;
    struct recsys_cause few[2], all[ITEMS];
    uint32_t found, count;

    (void)state;
    assert_int_equal(recsys_asker_init(&saved, 7, NULL, 0, &asker), BASE_OK);
    assert_int_equal(recsys_because(&saved, &asker, 33, ITEMS, all, &count), BASE_OK);
    assert_true(count > 2 && count < asker.count); /* some ratings speak against it */
    for (uint32_t c = 0; c < count; c++)
        assert_true(all[c].part > 0 && (c == 0 || all[c].part <= all[c - 1].part));
    assert_int_equal(recsys_because(&saved, &asker, 33, 2, few, &found), BASE_OK);
    assert_int_equal(found, 2);
    assert_memory_equal(few, all, sizeof few);
    recsys_asker_fini(&asker);
}

static int set_up(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    fitted_open(&fitted, &rated, "mf", "k=16,sweeps=10", 1, 5);
    fitted_train(&fitted);
    for (uint32_t i = 0; i < ITEMS; i++)
        numbers[i] = 100 + i;
    saved = (struct recsys_saved){.fit = fitted.fit,
                                  .scale = rated.scale,
                                  .items = {.count = ITEMS, .number = numbers},
                                  .rated = rated.by_user};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fitted_close(&fitted);
    rated_fini(&rated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known), cmocka_unit_test(test_new),     cmocka_unit_test(test_more),
        cmocka_unit_test(test_bad),   cmocka_unit_test(test_because),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
