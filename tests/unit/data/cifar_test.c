/* SPDX-License-Identifier: MIT
 *
 * CIFAR-10's binary files, whole, cut short, mislabelled and incomplete.
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

static void fails_with(base_status st, base_code code, const char *part)
{
    assert_int_equal(st, code);
    if (strstr(base_message(), part) == NULL)
        fail_msg("'%s' does not say '%s'", base_message(), part);
}

/* Record i of file f: label (f + i) % 10, every pixel f * 10 + i, the last one 255. */
static uint8_t *make_batch(int file, int records)
{
    uint8_t *bytes = base_calloc((size_t)records, DATA_CIFAR_RECORD);

    for (int i = 0; i < records; i++) {
        uint8_t *record = bytes + (size_t)i * DATA_CIFAR_RECORD;

        memset(record, file * 10 + i, DATA_CIFAR_RECORD);
        record[0] = (uint8_t)((file + i) % 10);
        record[DATA_CIFAR_RECORD - 1] = 255;
    }
    return bytes;
}

/* Batches of 1, 2, 3, 4, 5 and (test) 6 records. */
static void make_set(const char *folder)
{
    for (int file = 0; file < 6; file++) {
        uint8_t *bytes = make_batch(file, file + 1);
        char *name =
            file < 5 ? base_format("data_batch_%d.bin", file + 1) : base_strdup("test_batch.bin");

        support_write(folder, name, bytes, (size_t)(file + 1) * DATA_CIFAR_RECORD);
        base_free(name);
        base_free(bytes);
    }
}

static void test_folder(void **state)
{
    static const char names[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\n"
                                "truck\n\n";
    struct data_set *set = NULL;
    char *folder = support_scratch(), *inner = base_format("%s/cifar-10-batches-bin", folder);
    uint8_t pixels[3072];
    uint32_t at = 0;

    (void)state;
    make_set(inner);
    support_write(inner, "batches.meta.txt", names, sizeof names - 1);
    assert_int_equal(data_open(folder, &PLAIN, &set), BASE_OK); /* found one folder deeper */
    assert_string_equal(data_describe(set)->format, "cifar");
    assert_int_equal(data_describe(set)->channels, 3);
    assert_int_equal(data_describe(set)->count[DATA_TRAIN], 15);
    assert_int_equal(data_describe(set)->count[DATA_TEST], 6);
    assert_string_equal(data_describe(set)->class_names[9], "truck");
    for (int file = 0; file < 5; file++)
        for (int i = 0; i <= file; i++, at++) {
            assert_int_equal(data_label(set, DATA_TRAIN, at), (file + i) % 10);
            assert_int_equal(data_pixels(set, DATA_TRAIN, at, pixels), BASE_OK);
            assert_int_equal(pixels[0], file * 10 + i);
            assert_int_equal(pixels[3071], 255);
        }
    assert_int_equal(data_pixels(set, DATA_TEST, 5, pixels), BASE_OK);
    assert_int_equal(pixels[0], 55);
    data_close(set);
    support_write(inner, "batches.meta.txt", names, 9);
    fails_with(data_open(inner, &PLAIN, &set), BASE_ERR_DATA, "names 1 classes");
    base_free(inner);
    support_scratch_free(folder);
}

static void test_missing_batch(void **state)
{
    struct data_set *set = NULL;
    char *folder = support_scratch(), *gone = base_format("%s/data_batch_4.bin", folder);

    (void)state;
    make_set(folder);
    assert_int_equal(unlink(gone), 0);
    fails_with(data_open(folder, &PLAIN, &set), BASE_ERR_IO, "data_batch_4.bin");
    support_write(folder, "data_batch_4.bin", "", 0);
    fails_with(data_open(folder, &PLAIN, &set), BASE_ERR_DATA, "whole number of records");
    base_free(gone);
    support_scratch_free(folder);
}

static void test_records(void **state)
{
    uint8_t *bytes = make_batch(0, 2);
    int32_t labels[2];
    uint32_t records = 0;

    (void)state;
    for (size_t cut = 0; cut < 2 * DATA_CIFAR_RECORD; cut++)
        if (cut != DATA_CIFAR_RECORD)
            fails_with(data_cifar_records(bytes, cut, labels, &records), BASE_ERR_DATA,
                       "whole number of records");
    assert_int_equal(data_cifar_records(bytes, 2 * DATA_CIFAR_RECORD, labels, &records), BASE_OK);
    assert_int_equal(records, 2);
    assert_int_equal(labels[1], 1);
    bytes[DATA_CIFAR_RECORD] = 10;
    fails_with(data_cifar_records(bytes, 2 * DATA_CIFAR_RECORD, labels, &records), BASE_ERR_DATA,
               "label 10 of record 1");
    base_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_missing_batch),
        cmocka_unit_test(test_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
