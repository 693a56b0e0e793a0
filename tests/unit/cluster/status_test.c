/* SPDX-License-Identifier: MIT
 *
 * The status socket: an answer, no job there, a silent one, a path longer than socket addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cluster/status.h"

static char folder[] = "/tmp/paceline-status-XXXXXX";

static json_t *ask(const char *what)
{
    return json_pack("{s:s}", "ask", what);
}

/* Answers one request with {"asked": what was asked, or null}. */
static void *answer(void *argument)
{
    struct cluster_status *status = argument;
    double deadline = base_now() + 10;

    while (base_now() < deadline) {
        struct pollfd fds[32];
        json_t *request, *answer;
        int client;

        poll(fds, (nfds_t)cluster_status_watch(status, fds, 32), 100);
        if (!cluster_status_next(status, base_now(), &client, &request))
            continue;
        answer = json_pack("{s:O?}", "asked", json_object_get(request, "ask"));
        cluster_status_answer(status, client, answer);
        json_decref(answer);
        json_decref(request);
        break;
    }
    return NULL;
}

static void ask_and_answer(const char *path)
{
    json_t *request = ask("status"), *got;
    struct cluster_status *status;
    struct stat file;
    pthread_t thread;

    assert_int_equal(cluster_status_open(path, &status), BASE_OK);
    assert_int_equal(lstat(path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(pthread_create(&thread, NULL, answer, status), 0);
    assert_int_equal(cluster_status_ask(path, request, base_now() + 10, &got), BASE_OK);
    assert_string_equal(json_string_value(json_object_get(got, "asked")), "status");
    json_decref(got);
    json_decref(request);
    pthread_join(thread, NULL);
    cluster_status_close(status);
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

static void test_no_job(void **state)
{
    char *path = base_format("%s/left", folder);
    json_t *request = ask("status"), *got;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(cluster_status_ask(path, request, base_now() + 1, &got), BASE_ERR_USAGE);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(cluster_status_ask(path, request, base_now() + 0.05, &got), BASE_ERR_TIMEOUT);
    assert_null(got);
    close(fd); /* as a killed job leaves it */
    assert_int_equal(cluster_status_ask(path, request, base_now() + 1, &got), BASE_ERR_USAGE);
    ask_and_answer(path);
    json_decref(request);
    base_free(path);
}

/* A connection to the socket that has sent these bytes, and has ended its request if asked to. */
static int client_that_says(const char *path, const void *bytes, size_t count, bool ends)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(fd, bytes, count, 0), count);
    if (ends)
        shutdown(fd, SHUT_WR);
    return fd;
}

/* The other side has closed the connection without a word. */
static void expect_cut_off(int fd)
{
    char byte;

    assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN);
    close(fd);
}

static void test_bad_requests(void **state)
{
    char *path = base_format("%s/bad", folder), *flood = base_calloc(1, 5000);
    struct cluster_status *status;
    json_t *request;
    int clients[3], client;
    double now = base_now();

    (void)state;
    assert_int_equal(cluster_status_open(path, &status), BASE_OK);
    clients[0] = client_that_says(path, "[1]", 3, true);
    clients[1] = client_that_says(path, flood, 5000, true);
    clients[2] = client_that_says(path, "{\"ask\"", 6, false);
    /* What is no object is still to be answered; a flood is not. */
    assert_true(cluster_status_next(status, now, &client, &request));
    assert_null(request);
    assert_false(cluster_status_next(status, now + 1, &client, &request));
    errno = 0;
    expect_cut_off(clients[1]);
    /* A client that does not finish is cut off after a while. */
    assert_int_equal(recv(clients[2], flood, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_false(cluster_status_next(status, now + 3, &client, &request));
    errno = 0;
    expect_cut_off(clients[2]);
    cluster_status_close(status);
    close(clients[0]);
    base_free(flood);
    base_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer), cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_no_job), cmocka_unit_test(test_bad_requests)};
    int failed;

    if (mkdtemp(folder) == NULL)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    base_ignore(base_remove_tree(folder));
    return failed;
}
