/* SPDX-License-Identifier: MIT
 *
 * The reader of events: members of good lines, bad lines that are counted and passed over, lines
 * that are longer than its buffer or than it takes, a last line that is not complete.
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
#include <unistd.h>

#include "base/event_reader.h"
#include "base/mem.h"

static bool parses(const char *text)
{
    struct base_event_line line;

    return base_event_parse(text, strlen(text), &line);
}

static void test_members(void **state)
{
    static const char text[] =
        " {\"event\" : \"step\", \"step\":12,\"loss\":-1.5e-3,\"none\":null,"
        "\"name\":\"a \\\"quoted\\\" }\",\"list\":[1,{\"x\":\"]\"}],\"far\":1e999}\r";
    struct base_event_line line;

    (void)state;
    assert_true(base_event_parse(text, strlen(text), &line));
    assert_int_equal(line.field_count, 7);
    assert_true(base_event_is(&line, "step"));
    assert_false(base_event_is(&line, "ste"));
    assert_true(base_event_number(&line, "step") == 12);
    assert_true(base_event_number(&line, "loss") == -1.5e-3);
    assert_true(isnan(base_event_number(&line, "none")));
    assert_true(isnan(base_event_number(&line, "name")));
    assert_true(isnan(base_event_number(&line, "far")));
    assert_true(isnan(base_event_number(&line, "absent")));
    assert_null(base_event_field(&line, "ste"));
    assert_int_equal(base_event_field(&line, "list")->value_length, strlen("[1,{\"x\":\"]\"}]"));
    assert_null(base_event_json(&line)); /* 1e999 is no number for jansson */
}

static void test_bad_lines(void **state)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "{}",
                                      "[]",
                                      "{\"event\"}",
                                      "{\"event\":}",
                                      "{\"event\":1}",
                                      "{\"event\":\"a\"",
                                      "{\"event\":\"a\"}}",
                                      "{\"event\":\"a\"} {\"event\":\"a\"}",
                                      "{\"event\":\"a\",}",
                                      "{\"event\":\"a",
                                      "{\"event\":\"a\\",
                                      "{\"event\":\"a\",\"b\":[}",
                                      "{\"event\":\"a\",\"b\":0x10}",
                                      "{\"event\":\"a\",\"b\":nul}",
                                      "{\"event\":\"a\x01\"}",
                                      "{\"other\":\"a\"}"};
    char many[4096] = "{\"event\":\"a\"";

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parses(bad[i]))
            fail_msg("%s is taken", bad[i]);
    for (int i = 1; i < BASE_EVENT_FIELDS; i++)
        strcat(many, ",\"x\":1");
    strcat(many, "}");
    assert_true(parses(many));
    strcpy(many + strlen(many) - 1, ",\"x\":1}");
    assert_false(parses(many));
}

static char *made_file(const char *bytes, size_t count)
{
    char *path = base_strdup("/tmp/event_reader_XXXXXX");
    FILE *file = fdopen(mkstemp(path), "w");

    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Reads all; the steps of its events, added up. */
static double total(const char *bytes, size_t count, size_t *events_p, size_t *damaged_p)
{
    char *path = made_file(bytes, count);
    struct base_event_reader *reader = NULL;
    const struct base_event_line *line;
    double sum = 0;

    *events_p = 0;
    assert_int_equal(base_event_reader_open(path, &reader), BASE_OK);
    for (; (line = base_event_next(reader)) != NULL; ++*events_p)
        sum += base_event_number(line, "step");
    assert_null(base_event_next(reader));
    *damaged_p = base_event_reader_damaged(reader);
    base_event_reader_close(reader);
    unlink(path);
    base_free(path);
    return sum;
}

static void test_files(void **state)
{
    static const char text[] = "{\"event\":\"step\",\"step\":1}\nrubbish\n\n"
                               "{\"event\":\"step\",\"step\":2}\n{\"event\":\"step\",\"ste";
    static const char zero[] = "{\"event\":\"step\",\"step\":1}\0\n{\"event\":\"step\",\"step\":4}";
    size_t events, damaged;

    (void)state;
    assert_true(total(text, strlen(text), &events, &damaged) == 3);
    assert_int_equal(events, 2);
    assert_int_equal(damaged, 2);
    assert_true(total(zero, sizeof zero - 1, &events, &damaged) == 4);
    assert_int_equal(damaged, 1);
    assert_true(total("", 0, &events, &damaged) == 0);
    assert_int_equal(events + damaged, 0);
}

/* A line of `length` bytes between two short ones. */
static void try_length(size_t length, size_t want_events, size_t want_damaged)
{
    static const char first[] = "{\"event\":\"step\",\"step\":1,\"x\":\"", last[] = "\"}\n";
    static const char other[] = "{\"event\":\"step\",\"step\":10}\n";
    size_t fill = length - strlen(first) - strlen(last) + 1, count = 0, events, damaged;
    char *bytes = base_calloc(length + 3 * sizeof other, 1);
    double sum;

    memcpy(bytes, other, strlen(other));
    count = strlen(other);
    memcpy(bytes + count, first, strlen(first));
    memset(bytes + count + strlen(first), 'x', fill);
    count += strlen(first) + fill;
    memcpy(bytes + count, last, strlen(last));
    count += strlen(last);
    memcpy(bytes + count, other, strlen(other));
    count += strlen(other);
    sum = total(bytes, count, &events, &damaged);
    assert_int_equal(events, want_events);
    assert_int_equal(damaged, want_damaged);
    assert_true(sum == (want_damaged > 0 ? 20 : 21));
    base_free(bytes);
}

static void test_long_lines(void **state)
{
    (void)state;
    for (size_t length = (256 << 10) - 60; length < (256 << 10) + 4; length++)
        try_length(length, 3, 0);
    try_length(3 << 20, 3, 0);
    try_length(BASE_EVENT_BYTES - 100, 3, 0);
    try_length(BASE_EVENT_BYTES + 100, 2, 1);
    try_length(3 * (size_t)BASE_EVENT_BYTES, 2, 1);
}

static void append(const char *path, const char *text)
{
    FILE *file = fopen(path, "a");

    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A file that is being written: half a line waits for its rest, or is cut off and replaced. */
static void test_follow(void **state)
{
    static const char whole[] = "{\"event\":\"step\",\"step\":1}\n";
    char *path = made_file(whole, strlen(whole));
    struct base_event_reader *reader = NULL;

    (void)state;
    assert_int_equal(base_event_reader_open(path, &reader), BASE_OK);
    base_event_reader_follow(reader);
    assert_true(base_event_number(base_event_next(reader), "step") == 1);
    assert_null(base_event_next(reader));
    append(path, "{\"event\":\"step\",\"st");
    assert_null(base_event_next(reader));
    append(path, "ep\":2}\n{\"event\":\"ste");
    assert_true(base_event_number(base_event_next(reader), "step") == 2);
    assert_null(base_event_next(reader));
    assert_int_equal(truncate(path, (off_t)(2 * strlen(whole))), 0); /* as a resumed run does */
    append(path, "{\"event\":\"step\",\"step\":3}\n");
    assert_true(base_event_number(base_event_next(reader), "step") == 3);
    assert_null(base_event_next(reader));
    assert_int_equal(base_event_reader_damaged(reader), 0);
    base_event_reader_close(reader);
    unlink(path);
    base_free(path);
}

static void test_no_file(void **state)
{
    struct base_event_reader *reader;

    (void)state;
    assert_int_equal(base_event_reader_open("/nonexistent", &reader), BASE_ERR_IO);
    assert_null(reader);
    assert_int_equal(base_event_reader_open("/tmp", &reader), BASE_ERR_IO);
    base_event_reader_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members), cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_files),   cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_no_file), cmocka_unit_test(test_follow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
