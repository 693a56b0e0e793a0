/* SPDX-License-Identifier: MIT
 *
 * Synthetic classes: options, determinism, and that a class cannot be told by its mean image.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "data/data_private.h"

static const struct data_options PLAIN = {.unit_range = true};

static struct data_set *opened(const char *what)
{
    struct data_set *set = NULL;

    if (data_open(what, &PLAIN, &set) != BASE_OK)
        fail_msg("%s", base_message());
    return set;
}

static void test_options(void **state)
{
    struct data_set *set = opened("synthetic");
    const struct data_info *info = data_describe(set);

    (void)state;
    assert_int_equal(info->classes, 10);
    assert_int_equal(info->channels * info->height * info->width, 784);
    assert_int_equal(info->count[DATA_TRAIN], 4000);
    assert_int_equal(info->count[DATA_TEST], 1000);
    data_close(set);
    set = opened("synthetic:classes=3,shape=3x16x20,train=30,test=0,seed=7,noise=0");
    info = data_describe(set);
    assert_int_equal(info->classes, 3);
    assert_int_equal(info->channels, 3);
    assert_int_equal(info->height, 16);
    assert_int_equal(info->width, 20);
    assert_int_equal(info->count[DATA_TEST], 0);
    data_close(set);
    data_close(opened("synthetic:shape=1x4x4,train=8")); /* smaller than a glyph */
}

static void test_bad_options(void **state)
{
    static const char *const bad[] = {
        "synthetic:classes=1",    "synthetic:classes=257",
        "synthetic:classes=",     "synthetic:classes=3x",
        "synthetic:shape=28x28",  "synthetic:shape=5x28x28",
        "synthetic:shape=1x3x28", "synthetic:shape=1x28x28x1",
        "synthetic:shape=",       "synthetic:train=0",
        "synthetic:train=-1",     "synthetic:noise=256",
        "synthetic:labels=false", "synthetic:colour=red",
        "synthetic:classes",      "synthetic:seed=18446744073709551616",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct data_set *set = NULL;

        assert_int_equal(data_open(bad[i], &PLAIN, &set), BASE_ERR_DATA);
        assert_non_null(strstr(base_message(), "synthetic"));
    }
}

static void test_deterministic(void **state)
{
    struct data_set *a = opened("synthetic"), *b = opened("synthetic");
    struct data_set *other = opened("synthetic:seed=2");
    uint8_t x[784], y[784];

    (void)state;
    assert_string_equal(data_describe(a)->digest, data_describe(b)->digest);
    assert_string_not_equal(data_describe(a)->digest, data_describe(other)->digest);
    assert_int_equal(data_pixels(a, DATA_TRAIN, 77, x), BASE_OK);
    assert_int_equal(data_pixels(b, DATA_TRAIN, 77, y), BASE_OK);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(data_pixels(a, DATA_TEST, 77, y), BASE_OK);
    assert_memory_not_equal(x, y, sizeof x);
    assert_int_equal(data_pixels(other, DATA_TRAIN, 77, y), BASE_OK);
    assert_memory_not_equal(x, y, sizeof x);
    data_close(a);
    data_close(b);
    data_close(other);
}

/* Pinned: a change of these pixels changes every figure measured with them. */
static void test_pinned(void **state)
{
    struct data_set *set = opened("synthetic");
    uint8_t pixels[784];
    char hex[BASE_SHA256_HEX];

    (void)state;
    assert_int_equal(data_pixels(set, DATA_TEST, 123, pixels), BASE_OK);
    base_sha256(pixels, sizeof pixels, hex);
    assert_string_equal(hex, "3aef80980b8de032360e3da04e1e9efa7db5ae64e958d831978d116dc361ae78");
    data_close(set);
}

/* The nearest class mean, a linear model, does hardly better than chance (0.1). */
static void test_means_say_nothing(void **state)
{
    struct data_set *set = opened("synthetic");
    static float means[10][784];
    int right = 0;

    (void)state;
    memset(means, 0, sizeof means);
    for (uint32_t i = 0; i < 4000; i++) {
        uint8_t x[784];

        assert_int_equal(data_pixels(set, DATA_TRAIN, i, x), BASE_OK);
        for (int k = 0; k < 784; k++)
            means[data_label(set, DATA_TRAIN, i)][k] += (float)x[k] / 400.0f;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        uint8_t x[784];
        int best = 0;
        float least = 1e30f;

        assert_int_equal(data_pixels(set, DATA_TEST, i, x), BASE_OK);
        for (int c = 0; c < 10; c++) {
            float sum = 0;

            for (int k = 0; k < 784; k++)
                sum += ((float)x[k] - means[c][k]) * ((float)x[k] - means[c][k]);
            if (sum < least) {
                least = sum;
                best = c;
            }
        }
        right += best == data_label(set, DATA_TEST, i);
    }
    assert_true(right < 250);
    data_close(set);
}

/* Shuffled labels are as many of each class, at other places; the images stay. */
static void test_shuffled(void **state)
{
    struct data_set *set = opened("synthetic"), *mixed = opened("synthetic:labels=shuffled");
    int counts[10] = {0}, same = 0;
    uint8_t x[784], y[784];

    (void)state;
    for (uint32_t i = 0; i < 4000; i++) {
        counts[data_label(mixed, DATA_TRAIN, i)]++;
        same += data_label(mixed, DATA_TRAIN, i) == data_label(set, DATA_TRAIN, i);
    }
    for (int c = 0; c < 10; c++)
        assert_int_equal(counts[c], 400);
    assert_in_range(same, 300, 500);
    assert_int_equal(data_pixels(set, DATA_TRAIN, 5, x), BASE_OK);
    assert_int_equal(data_pixels(mixed, DATA_TRAIN, 5, y), BASE_OK);
    assert_memory_equal(x, y, sizeof x);
    data_close(set);
    data_close(mixed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),           cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_deterministic),     cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_means_say_nothing), cmocka_unit_test(test_shuffled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
