/* SPDX-License-Identifier: MIT
 *
 * A small HTTP server on 127.0.0.1 for tests of downloads: answers from a table, and can lie about
 * the length or fall silent in the middle. A thread of its own serves one connection at a time.
 */
#ifndef TEST_HTTP_H
#define TEST_HTTP_H

#include <stdbool.h>
#include <stddef.h>

struct test_route {
    const char *path; /* "/set.zip" */
    const char *bytes;
    size_t count;
    size_t more;        /* bytes that Content-Length promises beyond `count` */
    bool silent;        /* after `count` bytes nothing, until the client goes */
    const char *header; /* one more header line, "Location: /x\r\n" (answers 302), or NULL */
};

struct test_http;

/* `routes` ends with a NULL path and is borrowed; other paths get a 404. */
struct test_http *test_http_start(const struct test_route *routes);
void test_http_stop(struct test_http *server);
int test_http_port(const struct test_http *server);

/* Returns once a silent route has sent its bytes. */
void test_http_wait_silent(struct test_http *server);

#endif
