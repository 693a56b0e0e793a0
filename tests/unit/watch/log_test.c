/* SPDX-License-Identifier: MIT
 *
 * The tails of log files: whole lines only, in the order of their times, the newest 200, whatever
 * the files are like.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "watch/log.h"

static void append(const char *folder, const char *name, const char *text, size_t times)
{
    char *path = base_format("%s/%s", folder, name);
    FILE *file = fopen(path, "a");

    for (size_t i = 0; i < times; i++)
        assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    base_free(path);
}

static void test_files(void **state)
{
    char folder[] = "/tmp/log_test_XXXXXX";
    struct watch_log log = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(watch_log_read(&log, "/nonexistent"), 0);
    append(folder, "log-2.txt", "2026-01-01T00:00:02Z two\n2026-01-01T00:00:04Z fo", 1);
    append(folder, "log-10.txt", "2026-01-01T00:00:03Z three\n\n", 1);
    append(folder, "log-1.txt~", "not a log\n", 1);
    append(folder, "xlog-1.txt", "not a log\n", 1);
    assert_int_equal(watch_log_read(&log, folder), 2);
    assert_string_equal(log.lines[0].text, "2026-01-01T00:00:02Z two");
    assert_int_equal(log.lines[0].worker, 2);
    assert_string_equal(log.lines[1].text, "2026-01-01T00:00:03Z three");
    assert_int_equal(log.lines[1].worker, 10);
    assert_int_equal(watch_log_read(&log, folder), 0);
    append(folder, "log-2.txt", "ur\n", 1);
    assert_int_equal(watch_log_read(&log, folder), 1);
    assert_string_equal(log.lines[2].text, "2026-01-01T00:00:04Z four");

    /* More than is read at once: the newest, from the beginning of a line on. */
    append(folder, "log-2.txt", "2026-01-01T00:00:05Z five\n", 100000);
    assert_in_range(watch_log_read(&log, folder), 200, 1000);
    assert_int_equal(log.count, WATCH_LOG_LINES);
    for (size_t i = 0; i < log.count; i++)
        assert_string_equal(log.lines[i].text, "2026-01-01T00:00:05Z five");
    assert_int_equal(watch_log_read(&log, folder), 0);
    watch_log_fini(&log);
    assert_int_equal(base_remove_tree(folder), BASE_OK);
}

/* Files are read one after the other; what has no time of its own stays below its line. */
static void test_order(void **state)
{
    struct watch_log log = {0};

    (void)state;
    for (int i = 0; i < 150; i++)
        watch_log_take(&log, 1, "2026-01-01T00:00:09Z new\n", 25);
    for (int i = 0; i < 150; i++)
        watch_log_take(&log, 2, "2026-01-01T00:00:01Z old\n", 25);
    watch_log_take(&log, 2, "2026-01-01T00:00:05Z result\naccuracy\n", 37);
    assert_int_equal(log.count, WATCH_LOG_LINES);
    assert_int_equal(log.read, 302);
    assert_string_equal(log.lines[47].text, "2026-01-01T00:00:01Z old");
    assert_string_equal(log.lines[48].text, "2026-01-01T00:00:05Z result");
    assert_string_equal(log.lines[49].text, "accuracy");
    for (size_t i = 50; i < log.count; i++)
        assert_string_equal(log.lines[i].text, "2026-01-01T00:00:09Z new");
    watch_log_fini(&log);
}

static void test_take(void **state)
{
    char *wide = base_calloc(1, 5001);
    struct watch_log log = {0};

    (void)state;
    assert_int_equal(watch_log_take(&log, 1, "", 0), 0);
    assert_int_equal(watch_log_take(&log, 1, "half", 4), 0);
    assert_int_equal(watch_log_take(&log, 1, "\n\n\n", 3), 3);
    assert_int_equal(log.count, 0);
    memset(wide, 'x', 5000);
    wide[4999] = '\n';
    assert_int_equal(watch_log_take(&log, 1, wide, 5000), 5000);
    assert_int_equal(strlen(log.lines[0].text), WATCH_LOG_LENGTH);
    watch_log_fini(&log);
    base_free(wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_take),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
