/* SPDX-License-Identifier: MIT
 *
 * Records of TensorBoard's files: their frames and CRCs, tags and lists of any length, values that
 * are not finite, the mark of steps that come again; and that a point costs next to nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/mem.h"
#include "train/tensorboard.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tensorboard_test_XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return base_remove_tree(folder) != BASE_OK;
}

/* The bytes of the only file of a kind; base_free. */
static char *bytes_of(const char *kind, size_t *count_p)
{
    char *place = base_format("%s/tensorboard/%s", folder, kind), *path, *bytes = NULL;
    char **names = NULL;
    size_t count = 0;

    assert_int_equal(base_list_dir(place, &names, &count), BASE_OK);
    assert_int_equal(count, 1);
    path = base_format("%s/%s", place, names[0]);
    assert_int_equal(base_file_read(path, 1 << 30, &bytes, count_p), BASE_OK);
    base_names_free(names, count);
    base_free(path);
    base_free(place);
    return bytes;
}

static uint32_t masked(const void *bytes, size_t count)
{
    uint32_t crc = base_crc32c_portable(0, bytes, count);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The next record, checked; NULL at the end. */
static const uint8_t *next_record(struct base_cursor *c, size_t *length_p)
{
    const uint8_t *head, *body;
    uint64_t length;
    uint32_t crc;

    if (base_cursor_left(c) == 0)
        return NULL;
    head = c->at;
    assert_int_equal(base_cursor_le64(c, &length), BASE_OK);
    assert_int_equal(base_cursor_le32(c, &crc), BASE_OK);
    assert_int_equal(crc, masked(head, 8));
    assert_int_equal(base_cursor_skip(c, length, &body), BASE_OK);
    assert_int_equal(base_cursor_le32(c, &crc), BASE_OK);
    assert_int_equal(crc, masked(body, length));
    *length_p = length;
    return body;
}

/* The same without its first nine bytes, the time, which must be there. */
static struct base_cursor next_event(struct base_cursor *c)
{
    size_t length = 0;
    const uint8_t *record = next_record(c, &length);

    assert_non_null(record);
    assert_true(length > 9 && record[0] == (1 << 3 | 1));
    return base_cursor_of(record + 9, length - 9);
}

static void assert_bytes(const struct base_cursor *c, const char *want, size_t count)
{
    assert_int_equal(base_cursor_left(c), count);
    assert_memory_equal(c->at, want, count);
}

#define ASSERT_EVENT(c, want)                        \
    do {                                             \
        struct base_cursor event = next_event(c);    \
        assert_bytes(&event, want, sizeof want - 1); \
    } while (0)

static void test_scalars(void **state)
{
    struct train_tensorboard *board = NULL;
    const struct train_scalar points[] = {{"a", 1}, {"b", NAN}, {"c", -2}, {"d", INFINITY}};
    struct base_cursor c;
    size_t count;
    char *bytes;

    (void)state;
    assert_int_equal(train_tensorboard_open(folder, 300, &board), BASE_OK);
    train_tensorboard_scalars(board, 301, points, 4);
    train_tensorboard_scalars(board, 302, points + 1, 1); /* nothing that could be written */
    train_tensorboard_back(board, 4);
    train_tensorboard_close(board);
    train_tensorboard_close(NULL);
    bytes = bytes_of("scalars", &count);
    c = base_cursor_of(bytes, count);
    ASSERT_EVENT(&c, "\x10\x00\x1a\x0d"
                     "brain.Event:2");
    ASSERT_EVENT(&c, "\x10\xad\x02\x3a\x02\x08\x01"); /* step 301: what was there is void */
    ASSERT_EVENT(&c, "\x10\xad\x02\x2a\x14"
                     "\x0a\x08\x0a\x01"
                     "a\x15\x00\x00\x80\x3f"
                     "\x0a\x08\x0a\x01"
                     "c\x15\x00\x00\x00\xc0");
    ASSERT_EVENT(&c, "\x10\x05\x3a\x02\x08\x01");
    assert_null(next_record(&c, &count));
    base_free(bytes);
}

/* A tag of more than 127 bytes needs longer lengths around it; so do 20 bins. */
static void test_lengths(void **state)
{
    struct train_tensorboard *board = NULL;
    uint64_t bins[20] = {1, 2};
    struct train_histogram h = {
        .low = -1, .high = 1, .sum = 1, .squares = 2, .count = 3, .bins = bins, .bin_count = 20};
    char tag[200];
    struct base_cursor c;
    size_t count, length = 0;
    char *bytes;

    (void)state;
    memset(tag, 't', sizeof tag);
    tag[199] = '\0';
    assert_int_equal(train_tensorboard_open(folder, 0, &board), BASE_OK);
    train_tensorboard_histogram(board, 1, tag, &h);
    h.high = h.low; /* all values are one */
    train_tensorboard_histogram(board, 1, tag, &h);
    train_tensorboard_close(board);
    bytes = bytes_of("histograms", &count);
    c = base_cursor_of(bytes, count);
    assert_non_null(next_record(&c, &length));
    assert_non_null(next_record(&c, &length));
    /* Time, step, the heads of Summary and Value, the tag, the histogram's head, five doubles and
     * two lists. */
    assert_int_equal(length, 9 + 2 + 3 + 3 + (3 + 199) + 3 + 45 + 2 * (3 + 160));
    assert_non_null(next_record(&c, &length));
    assert_int_equal(length, 9 + 2 + 3 + 3 + (3 + 199) + 2 + 45 + 2 * (2 + 8));
    assert_null(next_record(&c, &length));
    base_free(bytes);
}

/* Of the thread that trains. A step of 5 ms with four points may spend 0.1 % of it here, which is
 * 1.2 us a point; it is a tenth of that. */
static void test_cost(void **state)
{
    enum { STEPS = 20000, POINTS = 4 };
    struct train_scalar points[POINTS] = {{"loss/train", 0.5},
                                          {"accuracy/train", 0.5},
                                          {"learning_rate", 0.5},
                                          {"samples_per_second", 0.5}};
    struct train_tensorboard *board = NULL;
    struct base_cursor c;
    size_t count, length, records = 0;
    double began, spent = 0, process = base_process_cpu();
    char *bytes;

    (void)state;
    assert_int_equal(train_tensorboard_open(folder, 0, &board), BASE_OK);
    for (int i = 0; i < STEPS; i += 1000) {
        began = base_thread_cpu();
        for (int k = 1; k <= 1000; k++)
            train_tensorboard_scalars(board, i + k, points, POINTS);
        spent += base_thread_cpu() - began;
        train_tensorboard_flush(board); /* here steps come faster than they can be written */
    }
    train_tensorboard_close(board);
    print_message("%.0f ns of CPU a point, %.0f with the writer's\n", 1e9 * spent / STEPS / POINTS,
                  1e9 * (base_process_cpu() - process) / STEPS / POINTS);
    assert_true(spent / STEPS / POINTS < 1.2e-6);
    bytes = bytes_of("scalars", &count);
    c = base_cursor_of(bytes, count);
    while (next_record(&c, &length) != NULL)
        records++;
    assert_int_equal(records, 1 + STEPS);
    base_free(bytes);
}

static void test_refused(void **state)
{
    struct train_tensorboard *board = NULL;

    (void)state;
    assert_int_equal(train_tensorboard_open("/proc/none", 0, &board), BASE_ERR_IO);
    assert_null(board);
    train_tensorboard_scalars(NULL, 1, NULL, 0);
    train_tensorboard_back(NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_scalars, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_lengths, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_cost, make_folder, remove_folder),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
