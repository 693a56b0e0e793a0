/* SPDX-License-Identifier: MIT
 *
 * Each aggregator against a plain reference, and its options.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/aggregator.h"
#include "train/strategy.h"

enum { MOST = 17, FLOATS = 1000 }; /* no multiple of what is sorted at a time */

static float values[MOST][FLOATS];
static struct train_row rows[MOST];

static void fill(int count)
{
    for (int r = 0; r < count; r++) {
        struct base_rng rng = base_rng_of(7, BASE_STREAM_TEST, 0, (uint32_t)count, (uint32_t)r);

        for (uint32_t i = 0; i < FLOATS; i++)
            values[r][i] = base_rng_unit(base_rng_u32(&rng, i)) - 0.5f;
        rows[r] = (struct train_row){.values = values[r],
                                     .worker = (uint32_t)r + 1,
                                     .samples = 100 + 10 * r,
                                     .loss = 0.1 + 0.05 * r,
                                     .judged = 0.2 + 0.1 * r,
                                     .age = r % 3};
    }
}

static void run(const char *text, int count, float *y, float *weights)
{
    struct train_aggregation aggregation;

    assert_int_equal(train_aggregation_find(text, &aggregation), BASE_OK);
    assert_int_equal(train_aggregate(&aggregation, rows, count, FLOATS, y, weights), BASE_OK);
    train_aggregation_fini(&aggregation);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* The mean of the sorted values without `cut` at each end. */
static double middle(int count, int cut, int column)
{
    float sorted[MOST];
    double sum = 0;

    for (int r = 0; r < count; r++)
        sorted[r] = values[r][column];
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    for (int r = cut; r < count - cut; r++)
        sum += (double)sorted[r];
    return sum / (count - 2 * cut);
}

static void check_middle(const char *text, int count, int cut)
{
    float y[FLOATS];

    run(text, count, y, NULL);
    for (int i = 0; i < FLOATS; i++)
        assert_true(fabs((double)y[i] - middle(count, cut, i)) < 1e-6);
}

static void test_median_and_trimmed_mean_of_sorted_columns(void **state)
{
    (void)state;
    for (int count = 1; count <= MOST; count++) {
        int fifth = (count + 4) / 5, most = (count - 1) / 2;

        fill(count);
        check_middle("median", count, most);
        check_middle("trimmed-mean", count, fifth < most ? fifth : most);
        check_middle("trimmed-mean:share=0.5", count, most);
        check_middle("trimmed-mean:share=0", count, 0);
    }
}

static void check_weights(const char *text, int count, const double *expected)
{
    float y[FLOATS], weights[MOST];
    double sum = 0;

    run(text, count, y, weights);
    for (int r = 0; r < count; r++)
        sum += expected[r];
    for (int r = 0; r < count; r++)
        assert_true(fabs((double)weights[r] - expected[r] / sum) < 1e-6);
    for (int i = 0; i < FLOATS; i++) {
        double mean = 0;

        for (int r = 0; r < count; r++)
            mean += expected[r] / sum * (double)values[r][i];
        assert_true(fabs((double)y[i] - mean) < 1e-6);
    }
}

static void test_means_by_their_weights(void **state)
{
    double by_samples[MOST], by_loss[MOST], by_trust[MOST], mean = 0;

    (void)state;
    fill(MOST);
    for (int r = 0; r < MOST; r++)
        mean += rows[r].loss / MOST;
    for (int r = 0; r < MOST; r++) {
        by_samples[r] = (double)rows[r].samples / (double)(1 + rows[r].age);
        by_loss[r] = by_samples[r] * fmin(fmax(rows[r].loss / mean, 0.5), 2);
        by_trust[r] = by_samples[r] * pow(0.2 / rows[r].judged, 2);
    }
    check_weights("average", MOST, by_samples);
    check_weights("weighted", MOST, by_loss);
    check_weights("weighted:bound=1", MOST, by_samples);
    check_weights("trust-weighted", MOST, by_trust);
}

static void test_a_lie_about_the_loss_is_bounded_and_does_not_help_with_the_manager(void **state)
{
    float y[FLOATS], weights[MOST];

    (void)state;
    fill(3);
    for (int r = 0; r < 3; r++)
        rows[r] = (struct train_row){.values = values[r], .samples = 100, .loss = 1, .judged = 1};
    rows[2].loss = 1e9;
    rows[2].judged = INFINITY;
    run("weighted", 3, y, weights);
    assert_true(weights[2] <= 0.81f); /* 2 beside 0.25 + 0.25 at the most */
    run("trust-weighted", 3, y, weights);
    assert_true(weights[2] == 0);
    rows[0].loss = rows[1].loss = rows[2].loss = 0; /* nothing to tell them apart by */
    run("weighted", 3, y, weights);
    assert_true(fabsf(weights[0] - weights[2]) < 1e-6f);
}

static void test_no_weight_is_an_error(void **state)
{
    struct train_aggregation aggregation;
    float y[FLOATS];

    (void)state;
    fill(2);
    rows[0].judged = rows[1].judged = NAN;
    assert_int_equal(train_aggregation_find("trust-weighted", &aggregation), BASE_OK);
    assert_int_equal(train_aggregate(&aggregation, rows, 2, FLOATS, y, NULL), BASE_ERR_DIVERGED);
    assert_non_null(strstr(base_message(), "none of 2 updates"));
    train_aggregation_fini(&aggregation);
}

/* Fewer than half honest: what points away from the trusted update, or is large, does not win. */
static void test_fltrust_follows_the_trusted_update(void **state)
{
    float y[FLOATS], weights[5];

    (void)state;
    fill(5);
    for (int r = 0; r < 5; r++)
        for (int i = 0; i < FLOATS; i++)
            values[r][i] = r == 2 || r == 4 ? 1.0f + 0.01f * (float)(i % 7) : -1e3f;
    rows[2].trusted = true;
    run("fltrust", 5, y, weights);
    assert_true(weights[0] == 0 && weights[1] == 0 && weights[3] == 0 && weights[4] > 0.49f);
    for (int i = 0; i < FLOATS; i++)
        assert_true(fabsf(y[i] - values[2][i]) < 1e-4f);
    rows[2].trusted = false; /* none is, and no majority takes its place */
    run("fltrust", 5, y, weights);
    assert_true(weights[0] == 0 && weights[2] == 0 && y[0] == 0 && y[FLOATS - 1] == 0);
}

/* A short update in the same direction is made long, but not its running statistics: from a
 * variance of 1 it would take more than there is. */
static void test_fltrust_takes_statistics_as_they_are(void **state)
{
    struct train_aggregation aggregation;
    float y[FLOATS];

    (void)state;
    fill(2);
    for (int i = 0; i < FLOATS; i++) {
        values[0][i] = i < FLOATS - 1 ? 1 : -0.5f;
        values[1][i] = i < FLOATS - 1 ? 0.01f : -0.9f;
    }
    rows[0].trusted = true;
    assert_int_equal(train_aggregation_find("fltrust", &aggregation), BASE_OK);
    aggregation.statistics = 1;
    assert_int_equal(train_aggregate(&aggregation, rows, 2, FLOATS, y, NULL), BASE_OK);
    assert_true(y[FLOATS - 1] == -0.5f && y[0] > 0.8f);
    train_aggregation_fini(&aggregation);
}

static int suspects(int count)
{
    int sum = 0;

    for (int r = 0; r < count; r++)
        sum += rows[r].suspect;
    return sum;
}

/* Alike, updates are averaged to the bit; one far away, one too near to the others, and two that
 * are the same are suspect; the last count as one. */
static void test_auto_goes_by_what_it_sees(void **state)
{
    float y[FLOATS], mean[FLOATS], weights[10], shares[10];
    double off = 0;

    (void)state;
    fill(10);
    run("average", 10, mean, NULL);
    run("auto", 10, y, NULL);
    assert_int_equal(suspects(10), 0);
    assert_memory_equal(y, mean, sizeof y);
    memcpy(values[4], mean, sizeof mean); /* nearer to all others than these to each other */
    run("auto:spread=1.5", 10, y, NULL);
    assert_int_equal(suspects(10), 0);
    run("auto", 10, y, NULL);
    assert_true(rows[4].suspect && suspects(10) == 1);
    fill(10);
    memcpy(values[2], values[7], sizeof values[2]);
    rows[2].samples = rows[7].samples = 150;
    rows[2].age = rows[7].age = 0;
    run("average", 10, mean, weights);
    run("auto", 10, y, shares);
    assert_true(rows[2].suspect && rows[7].suspect && suspects(10) == 2);
    assert_true(fabsf(shares[2] / shares[5] - weights[2] / weights[5] / 2) < 1e-6f);
    fill(10);
    for (int i = 0; i < FLOATS; i++)
        values[0][i] = values[1][i] = 1e3f;
    run("auto", 10, y, weights);
    assert_true(rows[0].suspect && rows[1].suspect && suspects(10) == 2);
    assert_true(weights[0] < 1e-3f && weights[1] < 1e-3f && weights[5] > 0.05f);
    for (int i = 0; i < FLOATS; i++)
        off = fmax(off, fabs((double)y[i] - (double)mean[i]));
    assert_true(off < 0.5);
}

static void refuse(const char *text, const char *message)
{
    struct train_aggregation aggregation;

    assert_int_equal(train_aggregation_find(text, &aggregation), BASE_ERR_USAGE);
    assert_null(aggregation.rule);
    assert_null(aggregation.options);
    assert_non_null(strstr(base_message(), message));
}

static void test_bad_names_and_options(void **state)
{
    const struct train_strategy *ddp, *zero;
    void *options;

    (void)state;
    refuse("mean", "average");
    refuse("average:x=1", "aggregator average has no option 'x'");
    refuse("trimmed-mean:share", "takes a value, share=X");
    refuse("trimmed-mean:share=0.6", "share");
    refuse("weighted:bound=0.5", "bound");
    refuse("krum:f=-1", "f");
    refuse("mixed:rule=means", "unknown aggregator 'means'");
    refuse("mixed:rule=krum/x=1", "aggregator krum has no option 'x'");
    refuse("mixed:rule=mixed", "the rule of itself");
    refuse("mixed:rule=fltrust", "judges the updates of workers one by one");
    refuse("mixed:rule=trust-weighted", "judges the updates of workers one by one");
    refuse("mixed:rule=weighted", "judges the updates of workers one by one");
    assert_int_equal(train_strategy_find("ddp", &ddp, &options), BASE_OK);
    assert_int_equal(train_strategy_aggregates(ddp, NULL), BASE_OK);
    assert_int_equal(train_strategy_aggregates(ddp, "median"), BASE_OK);
    base_free(options);
    assert_int_equal(train_strategy_find("zero", &zero, &options), BASE_OK);
    assert_int_equal(train_strategy_aggregates(zero, "median"), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "no use for --aggregate"));
    base_free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_and_trimmed_mean_of_sorted_columns),
        cmocka_unit_test(test_means_by_their_weights),
        cmocka_unit_test(test_a_lie_about_the_loss_is_bounded_and_does_not_help_with_the_manager),
        cmocka_unit_test(test_no_weight_is_an_error),
        cmocka_unit_test(test_auto_goes_by_what_it_sees),
        cmocka_unit_test(test_fltrust_follows_the_trusted_update),
        cmocka_unit_test(test_fltrust_takes_statistics_as_they_are),
        cmocka_unit_test(test_bad_names_and_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
