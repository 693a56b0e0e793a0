/* SPDX-License-Identifier: MIT
 *
 * Maps: whole files, empty ones, what cannot be opened, and a file that is cut short while a thread
 * copies from it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

enum { LARGE = 1 << 20 };

static char folder[] = "/tmp/paceline-map-XXXXXX";

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

static void must(base_status st)
{
    if (st != BASE_OK)
        fail_msg("%s", base_message());
}

static struct base_map large(const char *path)
{
    char *bytes = base_calloc(LARGE, 1);
    struct base_map map;

    memset(bytes, 'x', LARGE);
    must(base_file_replace(path, bytes, LARGE));
    must(base_map_open(path, &map));
    base_free(bytes);
    return map;
}

static void test_map(void **state)
{
    struct base_map map;

    (void)state;
    must(base_file_replace("mapped", "12345", 5));
    must(base_map_open("mapped", &map));
    assert_int_equal(map.count, 5);
    assert_memory_equal(map.bytes, "12345", 5);
    base_map_close(&map);
    base_map_close(&map); /* twice is fine */
    must(base_file_replace("empty", "", 0));
    must(base_map_open("empty", &map));
    assert_null(map.bytes);
    assert_int_equal(map.count, 0);
    base_map_close(&map);
    assert_int_equal(base_map_open("absent", &map), BASE_ERR_IO);
    assert_null(map.bytes);
}

static void test_copy(void **state)
{
    struct base_map map;
    char bytes[4] = {0};

    (void)state;
    must(base_file_replace("copied", "12345", 5));
    must(base_map_open("copied", &map));
    must(base_map_copy(&map, 2, 3, bytes));
    assert_string_equal(bytes, "345");
    must(base_map_copy(&map, 5, 0, bytes));
    base_map_close(&map);
}

/* More than once, and what is still there can be read as before. */
static void *copy_what_is_gone(void *argument)
{
    const struct base_map *map = argument;
    char bytes[64];

    for (int i = 0; i < 3; i++)
        if (base_map_copy(map, 0, sizeof bytes, bytes) != BASE_OK || bytes[63] != 'x' ||
            base_map_copy(map, LARGE - sizeof bytes, sizeof bytes, bytes) != BASE_ERR_DATA ||
            strcmp(base_message(), "cut was cut short while it was in use") != 0)
            return "wrong";
    return "right";
}

static void test_cut_short(void **state)
{
    struct base_map map = large("cut");
    void *said;
    pthread_t thread;

    (void)state;
    assert_int_equal(truncate("cut", 64), 0);
    assert_string_equal(copy_what_is_gone(&map), "right");
    assert_int_equal(pthread_create(&thread, NULL, copy_what_is_gone, &map), 0);
    assert_int_equal(pthread_join(thread, &said), 0);
    assert_string_equal(said, "right");
    base_map_close(&map);
}

/* A plain access still ends the process with the signal, and not in a loop. */
static void test_other_accesses(void **state)
{
    struct base_map map = large("plain");
    pid_t child;
    int status;

    (void)state;
    assert_int_equal(truncate("plain", 0), 0);
    child = fork();
    if (child == 0) {
        alarm(10);
        _exit(((const volatile uint8_t *)map.bytes)[LARGE - 1]);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    base_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_other_accesses),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
