/* SPDX-License-Identifier: MIT
 *
 * The event log: order, appending, lines too long, a ring that is full, a disk that is full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/events.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

enum { LIMIT = 64 << 20 };

static char folder[] = "/tmp/paceline-events-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return chdir("/") != 0 || base_remove_tree(folder) != BASE_OK;
}

static struct base_events *opened(const char *path)
{
    struct base_events *events = NULL;

    if (base_events_open(path, &events) != BASE_OK)
        fail_msg("%s", base_message());
    return events;
}

/* The file's lines, each a JSON object, in a list. */
static json_t *lines_of(const char *path)
{
    json_t *list = json_array();
    char *text = NULL, *rest = NULL;
    size_t count = 0;

    assert_int_equal(base_file_read(path, LIMIT, &text, &count), BASE_OK);
    assert_true(count == 0 || text[count - 1] == '\n');
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *object = NULL;

        assert_int_equal(base_json_parse(line, strlen(line), &object), BASE_OK);
        json_array_append_new(list, object);
    }
    base_free(text);
    return list;
}

static int64_t number(const json_t *list, size_t index, const char *key)
{
    int64_t value = -1;

    assert_int_equal(base_json_integer(json_array_get(list, index), key, &value), BASE_OK);
    return value;
}

/* What a killed process left: half a line goes, whole ones stay. */
static void test_torn_line(void **state)
{
    static const char *const left[] = {"{\"n\":1}\n{\"n\":", "{\"n\":1}\n", "{\"n", ""};

    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        size_t whole = i < 2;
        struct base_events *events;
        json_t *list;

        assert_int_equal(base_file_replace("torn", left[i], strlen(left[i])), BASE_OK);
        events = opened("torn");
        base_event(events, "{\"n\":2}");
        assert_int_equal(base_events_close(events), BASE_OK);
        list = lines_of("torn");
        assert_int_equal(json_array_size(list), whole + 1);
        assert_int_equal(number(list, whole, "n"), 2);
        json_decref(list);
    }
}

static void test_lines_in_order(void **state)
{
    json_t *list;

    (void)state;
    for (int run = 0; run < 2; run++) { /* the second appends */
        struct base_events *events = opened("order");

        for (int i = 0; i < 1000; i++)
            base_event(events, "{\"i\":%d,\"run\":%d}", i, run);
        assert_int_equal(base_events_close(events), BASE_OK);
    }
    list = lines_of("order");
    assert_int_equal(json_array_size(list), 2000);
    for (size_t i = 0; i < 2000; i++)
        assert_int_equal(number(list, i, "i") + 1000 * number(list, i, "run"), i);
    json_decref(list);
}

static void test_too_long_is_counted(void **state)
{
    struct base_events *events = opened("long");
    char *text = base_calloc(20000, 1);
    json_t *list;

    (void)state;
    memset(text, 'x', 19999);
    base_event(events, "{\"i\":1}");
    base_event(events, "{\"text\":\"%s\"}", text);
    base_event(events, "{\"i\":2}");
    assert_int_equal(base_events_close(events), BASE_OK);
    list = lines_of("long");
    assert_int_equal(json_array_size(list), 3);
    assert_int_equal(number(list, 1, "i"), 2);
    assert_int_equal(number(list, 2, "count"), 1);
    json_decref(list);
    base_free(text);
}

/* Far more than the ring holds, as fast as it goes: what is there is whole and in order, and
 * together with what was dropped it is everything. */
static void test_full_ring_drops_whole_lines(void **state)
{
    enum { EVENTS = 20000 };
    struct base_events *events = opened("full");
    char padding[1000];
    int64_t last = -1, dropped = 0;
    size_t count;
    json_t *list;

    (void)state;
    memset(padding, '.', sizeof padding - 1);
    padding[sizeof padding - 1] = '\0';
    for (int i = 0; i < EVENTS; i++)
        base_event(events, "{\"i\":%d,\"padding\":\"%s\"}", i, padding);
    assert_int_equal(base_events_close(events), BASE_OK);
    list = lines_of("full");
    count = json_array_size(list);
    if (json_object_get(json_array_get(list, count - 1), "count") != NULL)
        dropped = number(list, --count, "count");
    for (size_t i = 0; i < count; i++) {
        int64_t now = number(list, i, "i");

        assert_true(now > last);
        last = now;
    }
    assert_true(count > 900); /* a ring's worth at least */
    assert_int_equal((int64_t)count + dropped, EVENTS);
    json_decref(list);
}

static void test_no_place_to_write(void **state)
{
    struct base_events *events = (struct base_events *)folder;

    (void)state;
    assert_int_equal(base_events_open("absent/events", &events), BASE_ERR_IO);
    assert_null(events);
    assert_string_equal(base_message(), "cannot write absent/events: No such file or directory");
    base_event(events, "{\"ignored\":%d}", 1);
    assert_int_equal(mkfifo("fifo", 0666), 0);
    assert_int_equal(base_events_open("fifo", &events), BASE_ERR_IO);
    assert_non_null(strstr(base_message(), "fifo is a pipe"));
    assert_int_equal(base_events_close(NULL), BASE_OK);
}

static void test_full_disk_is_said(void **state)
{
    struct base_events *events;

    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    events = opened("/dev/full");
    base_event(events, "{\"i\":1}");
    assert_int_equal(base_events_close(events), BASE_ERR_IO);
    assert_string_equal(base_message(), "cannot write /dev/full: No space left on device");
}

/* What was told before a flush is in the file after it, whatever the writer's thread does. */
static void test_flush(void **state)
{
    struct base_events *events = opened("flushed.jsonl");

    (void)state;
    for (int i = 0; i < 100; i++) {
        json_t *list;

        base_event(events, "{\"step\":%d}", i);
        base_events_flush(events);
        list = lines_of("flushed.jsonl");
        assert_int_equal(json_array_size(list), i + 1);
        assert_int_equal(number(list, (size_t)i, "step"), i);
        json_decref(list);
    }
    base_events_flush(NULL);
    assert_int_equal(base_events_close(events), BASE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_in_order),
        cmocka_unit_test(test_torn_line),
        cmocka_unit_test(test_too_long_is_counted),
        cmocka_unit_test(test_full_ring_drops_whole_lines),
        cmocka_unit_test(test_no_place_to_write),
        cmocka_unit_test(test_full_disk_is_said),
        cmocka_unit_test(test_flush),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
