/* SPDX-License-Identifier: MIT
 *
 * idx files: good ones in every spelling, and every way that one can be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "data/data_private.h"
#include "support/datafiles.h"

static const struct data_options PLAIN = {.unit_range = true};

static void fails_with(base_status st, const char *part)
{
    assert_int_equal(st, BASE_ERR_DATA);
    if (strstr(base_message(), part) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), part);
}

static void test_parses(void **state)
{
    uint8_t *bytes = NULL;
    struct data_idx idx;
    size_t size = support_idx_images(3, 5, 4, &bytes);

    (void)state;
    assert_int_equal(data_idx_images(bytes, size, &idx), BASE_OK);
    assert_int_equal(idx.count, 3);
    assert_int_equal(idx.height, 5);
    assert_int_equal(idx.width, 4);
    assert_ptr_equal(idx.values, bytes + 16);
    fails_with(data_idx_labels(bytes, size, &idx), "holds images, not labels");
    base_free(bytes);
}

static void test_every_truncation(void **state)
{
    uint8_t *bytes = NULL;
    struct data_idx idx;
    size_t size = support_idx_images(2, 3, 3, &bytes);

    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = base_calloc(cut, 1); /* its own block: a read past the end is seen */

        memcpy(copy, bytes, cut);
        fails_with(data_idx_images(copy, cut, &idx), "ends too early");
        base_free(copy);
    }
    base_free(bytes);
    size = support_idx_labels(5, 5, &bytes);
    for (size_t cut = 0; cut < size; cut++)
        fails_with(data_idx_labels(bytes, cut, &idx), "ends too early");
    base_free(bytes);
}

static void test_every_gzip_truncation(void **state)
{
    uint8_t *bytes = NULL, *packed = NULL, *idx = NULL;
    size_t size = support_idx_images(2, 3, 3, &bytes), unpacked = 0;
    size_t count = support_gzip(bytes, size, &packed);

    (void)state;
    for (size_t cut = 0; cut < count; cut++) {
        assert_int_equal(data_idx_inflate(packed, cut, &idx, &unpacked), BASE_ERR_DATA);
        assert_null(idx);
    }
    assert_int_equal(data_idx_inflate(packed, count, &idx, &unpacked), BASE_OK);
    assert_int_equal(unpacked, size);
    assert_memory_equal(idx, bytes, size);
    base_free(idx);
    base_free(packed);
    base_free(bytes);
}

static void test_gzip_of_other_length(void **state)
{
    uint8_t *bytes = NULL, *packed = NULL, *idx = NULL;
    size_t size = support_idx_images(2, 3, 3, &bytes), unpacked = 0, count;
    uint8_t *longer = base_calloc(size + 100000, 1);

    (void)state;
    memcpy(longer, bytes, size);
    count = support_gzip(longer, size + 1, &packed);
    fails_with(data_idx_inflate(packed, count, &idx, &unpacked), "more bytes once unpacked");
    base_free(packed);
    count = support_gzip(longer, size + 100000, &packed); /* a small bomb behind a modest header */
    fails_with(data_idx_inflate(packed, count, &idx, &unpacked), "more bytes once unpacked");
    base_free(packed);
    count = support_gzip(longer, size - 1, &packed);
    fails_with(data_idx_inflate(packed, count, &idx, &unpacked), "ends too early");
    base_free(packed);
    count = support_gzip(bytes, size, &packed);
    packed = base_realloc(packed, count + 3, 1);
    memset(packed + count, 0, 3);
    fails_with(data_idx_inflate(packed, count + 3, &idx, &unpacked), "3 bytes too many");
    packed[count - 6] ^= 1; /* the checksum */
    fails_with(data_idx_inflate(packed, count, &idx, &unpacked), "damaged");
    base_free(packed);
    base_free(longer);
    base_free(bytes);
}

/* A header that promises gigabytes in a file of a few bytes costs neither memory nor time. */
static void test_gzip_bomb(void **state)
{
    uint8_t header[16] = {0, 0, 8, 3, 0, 4, 0, 0, 0, 0, 16, 0, 0, 0, 16, 0};
    uint8_t *packed = NULL, *idx = NULL;
    size_t count = support_gzip(header, sizeof header, &packed), unpacked = 0;

    (void)state;
    fails_with(data_idx_inflate(packed, count, &idx, &unpacked), "too many for");
    base_free(packed);
}

static void test_bad_headers(void **state)
{
    static const struct {
        uint8_t header[16];
        const char *says;
    } cases[] = {
        {{0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}, "not an idx file"},
        {{0, 0, 8, 1, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 1}, "holds labels, not images"},
        {{0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "0x1 pixels"},
        {{0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 16, 1}, "1x4097 pixels"},
        {{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}, "ends too early"},
        {{0, 0, 8, 3, 255, 255, 255, 255, 0, 0, 16, 0, 0, 0, 16, 0}, "ends too early"},
    };
    struct data_idx idx;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        fails_with(data_idx_images(cases[i].header, 16, &idx), cases[i].says);
}

static void test_counts_and_labels(void **state)
{
    uint8_t values[3] = {0, 9, 10};
    struct data_idx images = {.count = 3}, labels = {.count = 3, .values = values};
    int32_t numbers[3];

    (void)state;
    fails_with(data_idx_check(&images, &labels, 10, numbers), "label 10 of sample 2");
    assert_int_equal(data_idx_check(&images, &labels, 11, numbers), BASE_OK);
    assert_int_equal(numbers[2], 10);
    images.count = 4;
    fails_with(data_idx_check(&images, &labels, 11, numbers), "4 images but 3 labels");
}

static void test_folder(void **state)
{
    struct data_set *set = NULL;
    const struct data_info *info;
    uint8_t pixels[20];
    char *folder = support_scratch();

    (void)state;
    support_idx_set(folder, 23, 4);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    info = data_describe(set);
    assert_string_equal(info->format, "idx");
    assert_int_equal(info->count[DATA_TRAIN], 23);
    assert_int_equal(info->count[DATA_TEST], 4);
    assert_int_equal(info->height, 5);
    assert_int_equal(info->width, 4);
    assert_string_equal(info->class_names[7], "7");
    assert_int_equal(data_label(set, DATA_TRAIN, 13), 3);
    assert_int_equal(data_pixels(set, DATA_TRAIN, 13, pixels), BASE_OK);
    assert_int_equal(pixels[19], 13 * 7 + 19);
    data_close(set);
    support_scratch_free(folder);
}

/* Packed with dots in the names, it is the same set. */
static void test_spellings(void **state)
{
    struct data_set *plain = NULL, *packed = NULL;
    char *folder = support_scratch(), *other = support_scratch();
    uint8_t *bytes = NULL;
    size_t size;

    (void)state;
    support_idx_set(folder, 12, 12);
    size = support_idx_images(12, 5, 4, &bytes);
    support_write_gzip(other, "train-images.idx3-ubyte.gz", bytes, size);
    support_write(other, "t10k-images.idx3-ubyte", bytes, size);
    base_free(bytes);
    size = support_idx_labels(12, 10, &bytes);
    support_write_gzip(other, "train-labels-idx1-ubyte.gz", bytes, size);
    support_write(other, "t10k-labels.idx1-ubyte", bytes, size);
    base_free(bytes);
    assert_int_equal(data_open(folder, &PLAIN, &plain), BASE_OK);
    assert_int_equal(data_open(other, &PLAIN, &packed), BASE_OK);
    assert_string_equal(data_describe(plain)->digest, data_describe(packed)->digest);
    data_close(plain);
    data_close(packed);
    support_scratch_free(folder);
    support_scratch_free(other);
}

static void test_single_file(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch();
    char *train = base_format("%s/train-images-idx3-ubyte", folder);
    char *test = base_format("%s/t10k-images-idx3-ubyte", folder);
    char *labels = base_format("%s/t10k-labels-idx1-ubyte", folder);

    (void)state;
    support_idx_set(folder, 6, 4);
    assert_int_equal(data_open(train, &PLAIN, &set), BASE_OK);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 6);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 0);
    data_close(set);
    assert_int_equal(data_open(test, &PLAIN, &set), BASE_OK);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 0);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 4);
    data_close(set);
    assert_int_equal(unlink(labels), 0);
    fails_with(data_open(test, &PLAIN, &set), "t10k-labels-idx1-ubyte is not beside it");
    fails_with(data_open(folder, &PLAIN, &set), "has no t10k-labels-idx1-ubyte");
    assert_null(set);
    base_free(train);
    base_free(test);
    base_free(labels);
    support_scratch_free(folder);
}

static void test_class_names(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch();
    static const char ten[] = "a\nb\nc\nd\ne\nf f\r\ng\nh\ni\nj\n\n",
                      eight[] = "1\n2\n3\n4\n5\n6\n7\n8";

    (void)state;
    support_idx_set(folder, 20, 0);
    support_write(folder, "classes.txt", ten, sizeof ten - 1);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    assert_string_equal(data_describe(set)->class_names[5], "f f");
    assert_string_equal(data_describe(set)->class_names[9], "j");
    data_close(set);
    support_write(folder, "classes.txt", eight, sizeof eight - 1);
    fails_with(data_open(folder, &PLAIN, &set), "label 8 of sample 8 is out of range");
    support_write(folder, "classes.txt", "\n", 1);
    fails_with(data_open(folder, &PLAIN, &set), "must name 1 to 256 classes");
    support_write(folder, "classes.txt", "a\n\nb", 4);
    fails_with(data_open(folder, &PLAIN, &set), "no class name on line 2");
    support_scratch_free(folder);
}

/* By name, and by number where no class has that name. */
static void test_class_find(void **state)
{
    static const char names[] = "9\n8\n7\n6\n5\n4\n3\n2\n1\nnone\n";
    static const struct {
        const char *text;
        int32_t label;
    } good[] = {{"8", 1}, {"1", 8}, {"none", 9}, {"0", 0}};
    struct data_set *set = NULL;
    char *folder = support_scratch();
    int32_t label;

    (void)state;
    support_idx_set(folder, 20, 0);
    support_write(folder, "classes.txt", names, sizeof names - 1);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(data_class_find(data_describe(set), good[i].text, &label), BASE_OK);
        assert_int_equal(label, good[i].label);
    }
    assert_int_equal(data_class_find(data_describe(set), "10", &label), BASE_ERR_USAGE);
    assert_int_equal(data_class_find(data_describe(set), "-1", &label), BASE_ERR_USAGE);
    assert_int_equal(data_class_find(data_describe(set), "", &label), BASE_ERR_USAGE);
    data_close(set);
    support_scratch_free(folder);
}

static void test_sizes_differ(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch();
    uint8_t *bytes = NULL;
    size_t size = support_idx_images(4, 4, 5, &bytes);

    (void)state;
    support_idx_set(folder, 20, 4);
    support_write(folder, "t10k-images-idx3-ubyte", bytes, size);
    fails_with(data_open(folder, &PLAIN, &set), "of another size");
    support_write(folder, "t10k-images-idx3-ubyte", bytes, size - 1);
    fails_with(data_open(folder, &PLAIN, &set), "t10k-images-idx3-ubyte: ends too early");
    base_free(bytes);
    support_scratch_free(folder);
}

/* The images are mapped: a file that is cut short after it was opened is named. */
static void test_cut_while_open(void **state)
{
    char *folder = support_scratch(), *path = base_format("%s/train-images-idx3-ubyte", folder);
    struct data_set *set = NULL;
    uint8_t pixels[20];

    (void)state;
    support_idx_set(folder, 1000, 2);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK);
    assert_int_equal(data_pixels(set, DATA_TRAIN, 999, pixels), BASE_OK);
    assert_int_equal(truncate(path, 36), 0);
    assert_int_equal(data_pixels(set, DATA_TRAIN, 0, pixels), BASE_OK);
    fails_with(data_pixels(set, DATA_TRAIN, 999, pixels), "train-images-idx3-ubyte was cut short");
    data_close(set);
    base_free(path);
    support_scratch_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parses),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_gzip_truncation),
        cmocka_unit_test(test_gzip_of_other_length),
        cmocka_unit_test(test_gzip_bomb),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_counts_and_labels),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_single_file),
        cmocka_unit_test(test_class_names),
        cmocka_unit_test(test_class_find),
        cmocka_unit_test(test_sizes_differ),
        cmocka_unit_test(test_cut_while_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
