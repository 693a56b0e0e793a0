/* SPDX-License-Identifier: MIT
 *
 * The status socket: an answer, no job there, a silent one, a path longer than socket addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cluster/status.h"

static char folder[] = "/tmp/paceline-status-XXXXXX";

static void *answer(void *argument)
{
    int fd = *(int *)argument;
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    json_t *status = json_pack("{s:i}", "view", 3);

    if (poll(&poller, 1, 10000) == 1)
        cluster_status_answer(fd, status);
    json_decref(status);
    return NULL;
}

static void ask_and_answer(const char *path)
{
    json_t *status;
    struct stat file;
    pthread_t thread;
    int fd;

    assert_int_equal(cluster_status_listen(path, &fd), BASE_OK);
    assert_int_equal(lstat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(pthread_create(&thread, NULL, answer, &fd), 0);
    assert_int_equal(cluster_status_ask(path, base_now() + 10, &status), BASE_OK);
    assert_int_equal(json_integer_value(json_object_get(status, "view")), 3);
    json_decref(status);
    pthread_join(thread, NULL);
    cluster_status_close(path, fd);
    assert_false(base_exists(path));
}

static void test_answer(void **state)
{
    char *path = base_format("%s/short", folder);

    (void)state;
    ask_and_answer(path);
    base_free(path);
}

static void test_long_path(void **state)
{
    char *deep = base_format("%s/%0120d", folder, 7), *path = base_format("%s/status", deep);

    (void)state;
    assert_int_equal(base_make_dirs(deep), BASE_OK);
    ask_and_answer(path);
    base_free(path);
    base_free(deep);
}

static void test_nobody(void **state)
{
    char *path = base_format("%s/left", folder);
    json_t *status;
    int fd;

    (void)state;
    assert_int_equal(cluster_status_ask(path, base_now() + 1, &status), BASE_ERR_USAGE);
    assert_int_equal(cluster_status_listen(path, &fd), BASE_OK);
    assert_int_equal(cluster_status_ask(path, base_now() + 0.05, &status), BASE_ERR_TIMEOUT);
    assert_null(status);
    close(fd); /* as a killed job leaves it */
    assert_int_equal(cluster_status_ask(path, base_now() + 1, &status), BASE_ERR_USAGE);
    ask_and_answer(path);
    base_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answer),
                                       cmocka_unit_test(test_long_path),
                                       cmocka_unit_test(test_nobody)};
    int failed;

    if (mkdtemp(folder) == NULL)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    base_ignore(base_remove_tree(folder));
    return failed;
}
