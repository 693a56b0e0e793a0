/* SPDX-License-Identifier: MIT
 *
 * What attackers send in place of their updates, by hand; which texts name attackers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <float.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/table.h"
#include "train/attack.h"

enum { ROWS = 10, FLOATS = 500 };

static float values[ROWS][FLOATS];
static struct train_row rows[ROWS];

static void fill(void)
{
    for (int r = 0; r < ROWS; r++) {
        struct base_rng rng = base_rng_of(9, BASE_STREAM_TEST, 1, 0, (uint32_t)r);

        for (uint32_t i = 0; i < FLOATS; i++)
            values[r][i] = base_rng_unit(base_rng_u32(&rng, i)) - 0.3f;
        rows[r] = (struct train_row){.values = values[r], .worker = (uint32_t)r + 1, .samples = 9};
    }
}

/* The rows after the attack; free the result when they are done with. */
static float *forge(const char *text, int64_t step)
{
    struct train_attackers attackers;
    float *forged;

    fill();
    assert_int_equal(train_attackers_parse(text, 0, &attackers), BASE_OK);
    assert_int_equal(train_attackers_forge(&attackers, rows, ROWS, FLOATS, 1, step, &forged),
                     BASE_OK);
    train_attackers_fini(&attackers);
    return forged;
}

static double honest_mean(int column, int first)
{
    double sum = 0;

    for (int r = first; r < ROWS; r++)
        sum += (double)values[r][column] / (ROWS - first);
    return sum;
}

static void check_close(double y, double want)
{
    if (!(fabs(y - want) < 1e-5))
        fail_msg("%g, not %g", y, want);
}

static void test_forged_updates_by_hand(void **state)
{
    float *forged = forge("1:sign-flip=2,2:inner-product=0.5,3:mimic", 0);

    (void)state;
    for (int i = 0; i < FLOATS; i++) {
        check_close((double)rows[0].values[i], -2 * (double)values[0][i]);
        check_close((double)rows[1].values[i], -0.5 * honest_mean(i, 3));
        check_close((double)rows[2].values[i], (double)values[3][i]);
    }
    for (int r = 3; r < ROWS; r++)
        assert_ptr_equal(rows[r].values, values[r]);
    base_free(forged);
}

static void test_alie_is_a_few_deviations_from_the_honest_mean(void **state)
{
    /* Of 10 workers 3 attack: 3 of the 7 honest ones are to be farther away, z = phi^-1(4/7) =
     * 0.18, of which 0.3 is made. */
    const struct {
        const char *text;
        double z;
    } cases[] = {{"1:alie=1.5,2:alie=1.5,3:alie=1.5", 1.5}, {"1:alie,2:alie,3:alie", 0.3}};

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        float *forged = forge(cases[c].text, 0);

        for (int i = 0; i < FLOATS; i++) {
            double mean = honest_mean(i, 3), sum = 0;

            for (int r = 3; r < ROWS; r++)
                sum += pow((double)values[r][i] - mean, 2) / (ROWS - 3);
            check_close((double)rows[0].values[i], mean - cases[c].z * sqrt(sum));
        }
        assert_memory_equal(rows[0].values, rows[2].values, FLOATS * sizeof(float));
        base_free(forged);
    }
}

static void test_noise_has_its_length_and_differs_by_round_and_worker(void **state)
{
    float *forged = forge("1:gaussian=10,2:gaussian=10", 7), *again = forge("1:gaussian=10", 7);
    float *later = forge("1:gaussian=10", 8);
    double own = 0, noise = 0;

    (void)state;
    for (int i = 0; i < FLOATS; i++) {
        own += pow((double)values[0][i], 2);
        noise += pow((double)forged[i], 2);
    }
    assert_true(fabs(sqrt(noise / own) - 10) < 1);
    assert_memory_equal(forged, again, FLOATS * sizeof(float));
    assert_memory_not_equal(forged, later, FLOATS * sizeof(float));
    assert_memory_not_equal(forged, forged + FLOATS, FLOATS * sizeof(float));
    base_free(forged);
    base_free(again);
    base_free(later);
}

/* Where no honest update came there is nothing to hide among; what overflows would be refused. */
static void test_edges(void **state)
{
    struct train_attackers attackers;
    float *forged;

    (void)state;
    fill();
    values[0][3] = FLT_MAX;
    assert_int_equal(train_attackers_parse("1:sign-flip", 0, &attackers), BASE_OK);
    assert_int_equal(train_attackers_forge(&attackers, rows, 1, FLOATS, 1, 0, &forged), BASE_OK);
    assert_null(forged);
    assert_int_equal(train_attackers_forge(&attackers, rows, 2, FLOATS, 1, 0, &forged), BASE_OK);
    assert_true(isfinite(rows[0].values[3]));
    base_free(forged);
    train_attackers_fini(&attackers);
}

static double pause_of(const struct train_attackers *attackers, int who, int64_t step, bool first)
{
    return attackers->of[who].attack->delay(attackers->of[who].strength,
                                            &(struct train_pause){0.5, step, first});
}

static void test_false_labels_and_pauses_are_of_the_worker_alone(void **state)
{
    const int32_t labels[] = {0, 1, 9};
    const struct data_info info = {.classes = 10};
    struct data_batch batch = {.count = 3, .labels = labels};
    struct train_attackers attackers;

    (void)state;
    assert_int_equal(train_attackers_parse("2:label-flip,3:slow=3,4:stall,5:flap=2", 2, &attackers),
                     BASE_OK);
    assert_int_equal(train_attackers_taint(&attackers, &info, &batch), BASE_OK);
    assert_int_equal(batch.labels[0], 9);
    assert_int_equal(batch.labels[1], 8);
    assert_int_equal(batch.labels[2], 0);
    assert_int_equal(labels[2], 9);
    attackers.own = train_attackers_find(&attackers, 1);
    assert_null(attackers.own);
    batch.labels = labels;
    assert_int_equal(train_attackers_taint(&attackers, &info, &batch), BASE_OK);
    assert_ptr_equal(batch.labels, labels);
    assert_true(pause_of(&attackers, 1, 1, false) == 1.5);
    assert_true(pause_of(&attackers, 2, 1, true) == 3);
    assert_true(pause_of(&attackers, 2, 1, false) == 0);
    assert_true(pause_of(&attackers, 3, 19, false) == 1);
    assert_true(pause_of(&attackers, 3, 20, false) == 0);
    assert_true(pause_of(&attackers, 3, 40, false) == 1);
    train_attackers_fini(&attackers);
}

/* The same images in every batch get the mark and class 0, about as many as asked for; the loader's
 * own stay what they are. */
static void test_a_backdoor_is_in_a_part_of_the_images(void **state)
{
    enum { COUNT = 1000, SIDE = 8, SIZE = SIDE * SIDE };
    static float x[COUNT * SIZE];
    static int32_t labels[COUNT];
    static uint32_t ids[COUNT];
    const struct data_info info = {.channels = 1,
                                   .height = SIDE,
                                   .width = SIDE,
                                   .classes = 10,
                                   .mean = {0.5f},
                                   .deviation = {0.25f}};
    struct data_batch batch = {.count = COUNT, .x = x, .labels = labels, .ids = ids};
    struct train_attackers attackers;
    int marked = 0;

    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        labels[i] = 7;
        ids[i] = i;
    }
    assert_int_equal(train_attackers_parse("2:trigger=30", 2, &attackers), BASE_OK);
    assert_int_equal(train_attackers_taint(&attackers, &info, &batch), BASE_OK);
    for (int i = 0; i < COUNT; i++) {
        const float *image = batch.x + (size_t)i * SIZE;
        const bool has = fabsf(image[SIZE - SIDE - 2] - 2) < 1e-6f; /* white: (1 - 0.5) / 0.25 */

        assert_int_equal(batch.labels[i], has ? 0 : 7);
        assert_true(image[0] == 0 && x[(size_t)i * SIZE + SIZE - SIDE - 2] == 0);
        marked += has;
    }
    assert_in_range(marked, 250, 350);
    train_attackers_fini(&attackers);
}

static void test_what_has_no_images_or_labels_is_refused(void **state)
{
    struct data_table table = {.target = {.kind = DATA_CATEGORY}};
    const struct data_info info = {.name = (char *)"iris.csv", .table = &table};
    struct train_attackers attackers;

    (void)state;
    assert_int_equal(train_attackers_parse("2:trigger", 1, &attackers), BASE_OK);
    assert_int_equal(train_attackers_check(&attackers, &info), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "is a table"));
    table.target.kind = DATA_NUMBER;
    assert_int_equal(train_attackers_check(&attackers, &info), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "has no label"));
    train_attackers_fini(&attackers);
}

static void refuse(const char *text, const char *message)
{
    struct train_attackers attackers;

    assert_int_equal(train_attackers_parse(text, 0, &attackers), BASE_ERR_USAGE);
    if (strstr(base_message(), message) == NULL)
        fail_msg("'%s' lacks '%s'", base_message(), message);
}

static void test_bad_texts(void **state)
{
    (void)state;
    refuse("", "names no worker");
    refuse("sign-flip", "is not WORKER:KIND");
    refuse("0:sign-flip", "workers count from 1");
    refuse("3", "is not WORKER:KIND");
    refuse("-3:mimic", "is not WORKER:KIND");
    refuse("4294967299:mimic", "is not WORKER:KIND");
    refuse("3:flip", "unknown attack 'flip'");
    refuse("3:mimic,3:alie", "names worker 3 twice");
    refuse("3:mimic=2", "takes no strength");
    refuse("3:alie=much", "alie=much is not");
    refuse("3:sign-flip=-1", "from 0 to");
    refuse("3:stall=61", "from 0 to 60");
    refuse("3:trigger=101", "from 0 to 100");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forged_updates_by_hand),
        cmocka_unit_test(test_alie_is_a_few_deviations_from_the_honest_mean),
        cmocka_unit_test(test_noise_has_its_length_and_differs_by_round_and_worker),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_false_labels_and_pauses_are_of_the_worker_alone),
        cmocka_unit_test(test_a_backdoor_is_in_a_part_of_the_images),
        cmocka_unit_test(test_what_has_no_images_or_labels_is_refused),
        cmocka_unit_test(test_bad_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
