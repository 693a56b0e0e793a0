/* SPDX-License-Identifier: MIT
 *
 * Opening by name and path, the validation split, normalisation, the digest.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "data/data_private.h"
#include "support/datafiles.h"

static void fails_with(const char *what, const struct data_options *options, base_code code,
                       const char *part)
{
    struct data_set *set = NULL;

    assert_int_equal(data_open(what, options, &set), code);
    assert_null(set);
    if (strstr(base_message(), part) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), part);
}

static void test_unknown(void **state)
{
    const struct data_options options = {0};
    char *folder = support_scratch();

    (void)state;
    fails_with("mnits", &options, BASE_ERR_USAGE, "did you mean 'mnist'");
    fails_with("no-such-set-at-all", &options, BASE_ERR_USAGE, "synthetic");
    fails_with("no/such/folder", &options, BASE_ERR_IO, "file or folder not found");
    fails_with(folder, &options, BASE_ERR_DATA, "idx: MNIST's files"); /* lists the formats */
    support_write(folder, "notes.txt", "hello", 5);
    fails_with(folder, &options, BASE_ERR_DATA, "in no format");
    support_scratch_free(folder);
}

static void test_split(void **state)
{
    struct data_options options = {.validation = 0.25, .seed = 3};
    struct data_set *set = NULL, *again = NULL, *other = NULL, *whole = NULL;
    bool seen[200] = {0}, differs = false;
    const char *what = "synthetic:shape=1x8x8,train=200,test=10";

    (void)state;
    assert_int_equal(data_open(what, &options, &set), BASE_OK);
    assert_int_equal(data_open(what, &options, &again), BASE_OK);
    options.seed = 4;
    assert_int_equal(data_open(what, &options, &other), BASE_OK);
    options.validation = 0;
    assert_int_equal(data_open(what, &options, &whole), BASE_OK);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 150);
    assert_int_equal(data_describe(set)->count[DATA_VALIDATION], 50);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 10);
    assert_int_equal(data_describe(whole)->count[DATA_VALIDATION], 0);
    assert_string_equal(data_describe(set)->digest, data_describe(whole)->digest);
    for (int part = 0; part < DATA_PARTS; part++)
        for (uint32_t i = 0; part != DATA_TEST && i < data_describe(set)->count[part]; i++) {
            uint8_t a[64], b[64];
            uint32_t at = 0;

            assert_int_equal(data_pixels(set, (enum data_part)part, i, a), BASE_OK);
            assert_int_equal(data_pixels(again, (enum data_part)part, i, b), BASE_OK);
            assert_memory_equal(a, b, 64);
            assert_int_equal(data_pixels(other, (enum data_part)part, i, b), BASE_OK);
            differs = differs || memcmp(a, b, 64) != 0;
            for (; at < 200; at++) {
                assert_int_equal(data_pixels(whole, DATA_TRAIN, at, b), BASE_OK);
                if (memcmp(a, b, 64) == 0)
                    break;
            }
            assert_true(at < 200 && !seen[at]);
            seen[at] = true;
            assert_int_equal(data_label(set, (enum data_part)part, i),
                             data_label(whole, DATA_TRAIN, at));
        }
    assert_true(differs);
    data_close(set);
    data_close(again);
    data_close(other);
    data_close(whole);
}

static void test_bad_split(void **state)
{
    const char *what = "synthetic:shape=1x8x8,train=4";

    (void)state;
    fails_with(what, &(struct data_options){.validation = 0.95}, BASE_ERR_USAGE, "0 to 0.9");
    fails_with(what, &(struct data_options){.validation = -1}, BASE_ERR_USAGE, "0 to 0.9");
    fails_with(what, &(struct data_options){.validation = NAN}, BASE_ERR_USAGE, "0 to 0.9");
    fails_with(what, &(struct data_options){.validation = 0.1}, BASE_ERR_DATA, "empty");
    fails_with(what, &(struct data_options){.validation = 0.9}, BASE_ERR_DATA, "empty");
}

/* The pixels of the 3 images are 0 … 19, 7 … 26, 14 … 33. */
static void test_statistics(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch();
    double sum = 0, squares = 0;

    (void)state;
    support_idx_set(folder, 3, 1);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 20; k++) {
            sum += i * 7 + k;
            squares += (i * 7 + k) * (i * 7 + k);
        }
    sum /= 60 * 255.0;
    squares /= 60 * 255.0 * 255.0;
    assert_int_equal(data_open(folder, &(struct data_options){0}, &set), BASE_OK);
    assert_true(fabs(data_describe(set)->mean[0] - sum) < 1e-7);
    assert_true(fabs(data_describe(set)->deviation[0] - sqrt(squares - sum * sum)) < 1e-7);
    data_close(set);
    assert_int_equal(data_open(folder, &(struct data_options){.unit_range = true}, &set), BASE_OK);
    assert_true(data_describe(set)->mean[0] == 0 && data_describe(set)->deviation[0] == 1);
    data_close(set);
    support_scratch_free(folder);
}

/* One level only: nothing to divide by. Without samples there is no set. */
static void test_flat_and_empty(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch();
    uint8_t *bytes = NULL;
    size_t size = support_idx_images(2, 5, 4, &bytes);

    (void)state;
    support_idx_set(folder, 2, 0);
    memset(bytes + 16, 51, size - 16);
    support_write(folder, "train-images-idx3-ubyte", bytes, size);
    assert_int_equal(data_open(folder, &(struct data_options){0}, &set), BASE_OK);
    assert_true(fabsf(data_describe(set)->mean[0] - 0.2f) < 1e-6f);
    assert_true(data_describe(set)->deviation[0] == 1);
    data_close(set);
    base_free(bytes);
    support_idx_set(folder, 0, 0);
    fails_with(folder, &(struct data_options){0}, BASE_ERR_DATA, "holds no samples");
    support_scratch_free(folder);
}

static void test_digest_sees_changes(void **state)
{
    struct data_set *set = NULL;
    char before[BASE_SHA256_HEX], *folder = support_scratch();
    uint8_t *bytes = NULL;
    size_t size;

    (void)state;
    support_idx_set(folder, 9, 2);
    assert_int_equal(data_open(folder, &(struct data_options){0}, &set), BASE_OK);
    strcpy(before, data_describe(set)->digest);
    data_close(set);
    size = support_idx_images(9, 5, 4, &bytes);
    bytes[size - 1] ^= 1;
    support_write(folder, "train-images-idx3-ubyte", bytes, size);
    assert_int_equal(data_open(folder, &(struct data_options){0}, &set), BASE_OK);
    assert_string_not_equal(before, data_describe(set)->digest);
    data_close(set);
    base_free(bytes);
    support_scratch_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown),        cmocka_unit_test(test_split),
        cmocka_unit_test(test_bad_split),      cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_flat_and_empty), cmocka_unit_test(test_digest_sees_changes),
    };

    data_close(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
