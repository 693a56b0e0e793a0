/* SPDX-License-Identifier: MIT
 *
 * Shares of a batch: even ones, and such that workers of different speed finish together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "train/run.h"
#include "train/shares.h"

/* A step of workers that compute so many samples a second, with the shares they have. */
static void step(struct train_shares *shares, const double *rates, uint32_t batch)
{
    struct train_effort efforts[COMM_MAX_WORKERS];

    for (int i = 0; i < shares->size; i++) {
        uint32_t first, count;

        data_share_of(train_shares_of(shares, i), batch, &first, &count);
        efforts[i] = (struct train_effort){.samples = count, .seconds = count / rates[i]};
    }
    train_shares_learn(shares, efforts);
}

static void test_even(void **state)
{
    struct train_shares shares;
    struct data_share share;

    (void)state;
    train_shares_even(&shares, 3);
    share = train_shares_of(&shares, 2);
    assert_true(share.from == 2 && share.to == 3 && share.total == 3);
    train_shares_even(&shares, 1);
    share = train_shares_of(&shares, 0);
    assert_true(share.from == 0 && share.to == 1 && share.total == 1);
}

static void test_speed(void **state)
{
    static const double rates[] = {60, 60, 40, 20};
    struct train_shares shares;
    uint32_t sum = 0;

    (void)state;
    train_shares_even(&shares, 4);
    assert_false(train_shares_improve(&shares, 90)); /* nothing is known */
    step(&shares, rates, 90);
    assert_true(train_shares_improve(&shares, 90));
    assert_int_equal(shares.known, 0);
    for (int i = 0; i < 4; i++)
        sum += shares.of[i];
    assert_int_equal(sum, 90);
    assert_int_equal(shares.of[0], 30);
    assert_int_equal(shares.of[1], 30);
    assert_int_equal(shares.of[2], 20);
    assert_int_equal(shares.of[3], 10);
    assert_int_equal(train_shares_of(&shares, 3).from, 80);
    step(&shares, rates, 90);
    assert_false(train_shares_improve(&shares, 90)); /* it is as good as it gets */
}

/* Compares as auto does, after steps of so many seconds; true: shares are to follow speed. */
static bool compare(struct train_shares *shares, const double *rates, uint32_t batch)
{
    struct train_effort efforts[COMM_MAX_WORKERS];

    for (int i = 0; i < shares->size; i++) {
        double samples = (double)shares->every * batch / shares->size;

        efforts[i] = (struct train_effort){0};
        if (rates[i] > 0)
            efforts[i] = (struct train_effort){.samples = samples, .seconds = samples / rates[i]};
    }
    train_shares_learn(shares, efforts);
    train_shares_pace(shares, efforts);
    return train_shares_unlike(shares, efforts, batch);
}

/* auto: alike workers keep even shares; bursts change nothing, four seconds do. */
static void test_auto(void **state)
{
    static const double alike[] = {500, 450}, unlike[] = {500, 200}, unknown[] = {500, 0};
    struct train_shares shares;
    int burst;

    (void)state;
    train_shares_even(&shares, 2);
    for (int i = 0; i < 20; i++) /* a crowded host says nothing */
        assert_false(compare(&shares, unknown, 10));
    for (int i = 0; i < 100; i++) {
        assert_false(compare(&shares, alike, 10));
        assert_true(shares.every >= 1 && shares.every <= 50); /* fifty steps are half a second */
    }
    assert_true(shares.every >= 40);
    for (int i = 0; i < 40; i++) /* bursts */
        assert_false(compare(&shares, i % 4 == 0 ? unlike : alike, 10));
    for (burst = 0; !compare(&shares, unlike, 10); burst++)
        assert_in_range(burst, 0, 10);
    assert_true(burst >= 3);
    assert_true(train_shares_improve(&shares, 10));
    assert_true(shares.by_speed && shares.of[0] == 7 && shares.of[1] == 3);
}

/* The text of a run's events: what is done again is told again, and shares are even where a run was
 * resumed or a view began without a word of them. */
static void test_recorded(void **state)
{
    static const char events[] = "{\"event\":\"view\",\"step\":0}\n"
                                 "{\"event\":\"shares\",\"step\":21,\"samples\":[10,20]}\n"
                                 "{\"event\":\"shares\",\"step\":41,\"samples\":[12,18]}\n"
                                 "{\"event\":\"resume\",\"step\":30}\n"
                                 "{\"event\":\"step\",\"step\":31}\n"
                                 "{\"event\":\"view\",\"step\":50}\n"
                                 "{\"event\":\"shares\",\"step\":51,\"samples\":[15,15]}\n";
    char path[] = "/tmp/paceline-shares-XXXXXX", *text;
    struct train_run run = {.events = path};
    struct train_shares_plan plan;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(base_file_replace(path, events, strlen(events)), BASE_OK);
    assert_int_equal(train_shares_recorded(&run, &text), BASE_OK);
    assert_string_equal(text, "at:21=10/20,31=1/1,51=15/15");
    assert_int_equal(train_shares_plan_parse(text, &plan), BASE_OK);
    assert_null(train_shares_plan_at(&plan, 20));
    assert_int_equal(train_shares_plan_at(&plan, 30)->of[1], 20);
    assert_int_equal(train_shares_plan_at(&plan, 31)->of[1], 1);
    assert_int_equal(train_shares_plan_at(&plan, 1000)->of[1], 15);
    train_shares_plan_fini(&plan);
    base_free(text);
    assert_int_equal(base_file_replace(path, "", 0), BASE_OK);
    assert_int_equal(train_shares_recorded(&run, &text), BASE_OK);
    assert_string_equal(text, "even");
    base_free(text);
    unlink(path);
}

/* A worker becomes slow: three steps later its share is right within a tenth. */
static void test_change(void **state)
{
    static const double before[] = {50, 50}, after[] = {50, 25};
    struct train_shares shares;

    (void)state;
    train_shares_even(&shares, 2);
    for (int i = 0; i < 20; i++)
        step(&shares, before, 90);
    assert_false(train_shares_improve(&shares, 90));
    for (int i = 0; i < 3; i++)
        step(&shares, after, 90);
    assert_true(train_shares_improve(&shares, 90));
    assert_in_range(shares.of[1], 28, 34);
}

/* What does not pay is left as it is. */
static void test_alike(void **state)
{
    static const double rates[] = {100, 95, 105};
    struct train_shares shares;

    (void)state;
    train_shares_even(&shares, 3);
    step(&shares, rates, 300);
    assert_false(train_shares_improve(&shares, 300));
}

/* Products of samples and shares are more than 32 bits hold. */
static void test_large(void **state)
{
    static const double rates[] = {1000, 1000}, uneven[] = {1000, 3000};
    struct train_shares shares;

    (void)state;
    train_shares_even(&shares, 2);
    step(&shares, rates, 131072);
    assert_false(train_shares_improve(&shares, 131072));
    train_shares_even(&shares, 2);
    step(&shares, uneven, 131072);
    assert_true(train_shares_improve(&shares, 131072));
    assert_in_range(shares.of[0], 32760, 32776);
}

static void test_small(void **state)
{
    static const double rates[] = {1000, 1};
    struct train_shares shares;

    (void)state;
    train_shares_even(&shares, 2);
    step(&shares, rates, 4);
    assert_true(train_shares_improve(&shares, 4));
    assert_int_equal(shares.of[0], 3);
    assert_int_equal(shares.of[1], 1); /* a worker without samples could not tell its speed */
    train_shares_even(&shares, 2);
    step(&shares, rates, 3);
    assert_false(train_shares_improve(&shares, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even),   cmocka_unit_test(test_speed),
        cmocka_unit_test(test_auto),   cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_change), cmocka_unit_test(test_alike),
        cmocka_unit_test(test_small),  cmocka_unit_test(test_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
