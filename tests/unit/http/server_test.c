/* SPDX-License-Identifier: MIT
 *
 * The HTTP server: routes, answers now and later, and what clients must not be able to do: two
 * lengths, long bodies, slow ones, wrong tokens, pages of elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "http/server.h"
#include "http/stream.h"
#include "support/client.h"
#include "support/server.h"

/* ---- a server ---- */

static void echo(void *context, struct http_request *request)
{
    size_t count;
    const char *body = http_body(request, &count);
    char *copy = base_calloc(count + 1, 1);

    (void)context;
    if (count > 0)
        memcpy(copy, body, count);
    http_add_header(request, "X-Method", http_method(request));
    http_answer(request, 200, "text/plain", copy, count);
}

static void name_parts(void *context, struct http_request *request)
{
    const char *second = http_wildcard(request, 1), *q = http_parameter(request, "q");
    char *text = base_format("<%s|%s|%s>", http_wildcard(request, 0), second != NULL ? second : "-",
                             q != NULL ? q : "-");

    (void)context;
    http_answer(request, 200, "text/plain", text, strlen(text));
}

static void *answer_later(void *argument)
{
    http_answer(argument, 200, "text/plain", base_strdup("late"), 4);
    return NULL;
}

static void later(void *context, struct http_request *request)
{
    pthread_t thread;

    (void)context;
    assert_int_equal(pthread_create(&thread, NULL, answer_later, request), 0);
    pthread_detach(thread);
}

static struct http_request *kept; /* by the handler below, for the test */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;

static void keep(void *context, struct http_request *request)
{
    (void)context;
    if (http_parameter(request, "expire") != NULL)
        http_expire(request, 0.05, "too late");
    pthread_mutex_lock(&lock);
    kept = request;
    pthread_cond_signal(&came);
    pthread_mutex_unlock(&lock);
}

static struct http_request *take_kept(void)
{
    struct http_request *request;

    pthread_mutex_lock(&lock);
    while (kept == NULL)
        pthread_cond_wait(&came, &lock);
    request = kept;
    kept = NULL;
    pthread_mutex_unlock(&lock);
    return request;
}

static struct http_stream *stream;

static void open_stream(void *context, struct http_request *request)
{
    (void)context;
    pthread_mutex_lock(&lock);
    stream = http_stream_begin(request, "text/event-stream");
    pthread_cond_signal(&came);
    pthread_mutex_unlock(&lock);
}

static const struct http_route routes[] = {
    {"POST|PUT", "/echo", echo},
    {"GET", "/echo", echo, .open = true},
    {"GET", "/things/{name}", name_parts},
    {"GET", "/things/{name}/{part}", name_parts},
    {"GET", "/v1/{name}:predict", name_parts},
    {"GET", "/later", later},
    {"GET", "/keep", keep},
    {"GET", "/stream", open_stream},
    {0},
};

#define HEAD " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"

static void expect(struct http_server *server, const char *request, int status, const char *says)
{
    char *answer;
    int got = support_ask(http_server_port(server), request, &answer);

    if (got != status || strstr(answer, says) == NULL)
        fail_msg("%s\ngot %d instead of %d, or not '%s':\n%s", request, got, status, says, answer);
    base_free(answer);
}

/* ---- what it serves ---- */

static void test_routes(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);

    (void)state;
    expect(server, "GET /things/a%20b?q=1+2" HEAD "\r\n", 200, "<a b|-|1 2>");
    expect(server, "GET /things/a/b%2Fc/" HEAD "\r\n", 200, "<a|b/c|->");
    expect(server, "GET /v1/x:predict" HEAD "\r\n", 200, "<x|-|->");
    expect(server, "GET /v1/:predict" HEAD "\r\n", 404, "{404 -}");
    expect(server, "GET /things" HEAD "\r\n", 404, "{404 -}");
    expect(server, "GET /things/a/b/c" HEAD "\r\n", 404, "{404 -}");
    expect(server, "DELETE /things/a" HEAD "\r\n", 405, "{405 -}");
    expect(server, "DELETE /things/a" HEAD "\r\n", 405, "\r\nAllow: GET, HEAD\r\n");
    expect(server, "PU /echo" HEAD "\r\n", 405, "{405 -}");
    expect(server, "PU /echo" HEAD "\r\n", 405, "\r\nAllow: GET, HEAD, POST, PUT\r\n");
    expect(server, "GET /things/../echo" HEAD "\r\n", 400, "segment '..'");
    expect(server, "GET /things/%2e%2e/echo" HEAD "\r\n", 400, "segment '..'");
    expect(server, "GET /things/%zz" HEAD "\r\n", 400, "hexadecimal");
    expect(server, "HEAD /echo" HEAD "\r\n", 200, "X-Method: HEAD");
    http_server_close(server);
}

static void test_bodies(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);

    (void)state;
    expect(server, "POST /echo" HEAD "Content-Length: 5\r\n\r\nhello", 200, "\r\n\r\nhello");
    expect(server, "PUT /echo" HEAD "Content-Length: 0\r\n\r\n", 200, "x-request-id: ");
    expect(server,
           "POST /echo" HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
           200, "\r\n\r\nhello");
    http_server_close(server);
}

static void test_later(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);

    (void)state;
    for (int i = 0; i < 50; i++)
        expect(server, "GET /later" HEAD "\r\n", 200, "late");
    http_server_close(server);
}

/* The answer that comes after the time limit goes nowhere, and harms nothing. */
static void test_expire(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);

    (void)state;
    expect(server, "GET /keep?expire=1" HEAD "\r\n", 408, "{408 too late}");
    assert_true(http_is_over(kept));
    http_answer(take_kept(), 200, "text/plain", base_strdup("x"), 1);
    expect(server, "GET /echo" HEAD "\r\n", 200, "");
    http_server_close(server);
}

static void test_stream(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);
    int fd = support_connect(http_server_port(server));
    char *heard;

    (void)state;
    support_say_text(fd, "GET /stream" HEAD "\r\n");
    pthread_mutex_lock(&lock);
    while (stream == NULL)
        pthread_cond_wait(&came, &lock);
    pthread_mutex_unlock(&lock);
    assert_true(http_stream_send(stream, "data: one\n\n", 11));
    heard = support_hear_until(fd, "data: one");
    assert_int_equal(support_status(heard), 200);
    assert_non_null(strstr(heard, "data: one"));
    base_free(heard);
    assert_true(http_stream_send(stream, "data: two\n\n", 11));
    http_stream_end(stream);
    heard = support_hear(fd);
    assert_non_null(strstr(heard, "data: two"));
    base_free(heard);
    close(fd);
    stream = NULL;
    http_server_close(server);
}

/* A stream that a client left is told of by a send; one that is open does not hold up the end. */
static void test_stream_ends(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);
    int fd = support_connect(http_server_port(server));
    struct http_stream *left;

    (void)state;
    support_say_text(fd, "GET /stream" HEAD "\r\n");
    pthread_mutex_lock(&lock);
    while (stream == NULL)
        pthread_cond_wait(&came, &lock);
    left = stream;
    stream = NULL;
    pthread_mutex_unlock(&lock);
    close(fd);
    while (http_stream_send(left, "data: x\n\n", 9))
        usleep(1000);
    http_stream_end(left);
    fd = support_connect(http_server_port(server));
    support_say_text(fd, "GET /stream" HEAD "\r\n");
    pthread_mutex_lock(&lock);
    while (stream == NULL)
        pthread_cond_wait(&came, &lock);
    pthread_mutex_unlock(&lock);
    assert_true(http_server_drain(server, 30));
    assert_false(http_stream_send(stream, "data: x\n\n", 9));
    http_stream_end(stream);
    stream = NULL;
    http_server_close(server);
    close(fd);
}

static void *drain(void *argument)
{
    return http_server_drain(argument, 300) ? argument : NULL;
}

/* Asks on a connection that stays open until an answer says that it closes. */
static void until_draining(int fd)
{
    bool draining = false;

    while (!draining) {
        char *heard;

        support_say_text(fd, "GET /things/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
        heard = support_hear_until(fd, "<x|-|->");
        draining = strstr(heard, "Connection: close") != NULL;
        base_free(heard);
    }
}

/* What is under way is waited for; a stream that begins meanwhile ends at once. */
static void test_drain(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);
    int port = http_server_port(server), fd = support_connect(port);
    int asking = support_connect(port), late = support_connect(port);
    struct http_request *request;
    pthread_t thread;
    void *idle;
    char *heard;

    (void)state;
    support_say_text(late, "GET /things/y HTTP/1.1\r\nHost: localhost\r\n\r\n");
    base_free(support_hear_until(late, "<y|-|->"));
    support_say_text(fd, "GET /keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    request = take_kept();
    assert_int_equal(pthread_create(&thread, NULL, drain, server), 0);
    until_draining(asking);
    support_say_text(late, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    heard = support_hear(late); /* until the server closes */
    assert_int_equal(support_status(heard), 200);
    assert_non_null(strstr(heard, "\r\n0\r\n")); /* the whole of a body without bytes */
    base_free(heard);
    assert_false(http_stream_send(stream, "data: x\n\n", 9));
    http_stream_end(stream);
    stream = NULL;
    http_answer(request, 200, "text/plain", base_strdup("done"), 4);
    heard = support_hear(fd); /* until the server closes */
    assert_int_equal(support_status(heard), 200);
    assert_non_null(strstr(heard, "Connection: close"));
    base_free(heard);
    pthread_join(thread, &idle);
    assert_non_null(idle);
    close(fd);
    close(asking);
    close(late);
    http_server_close(server);
}

/* Of what is not done in time no more is computed: its handler learns that it is over. */
static void test_drain_ends(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);
    int fd = support_connect(http_server_port(server));
    struct http_request *request;
    char *heard;

    (void)state;
    support_say_text(fd, "GET /keep HTTP/1.1\r\nHost: localhost\r\n\r\n");
    request = take_kept();
    assert_false(http_is_over(request));
    assert_false(http_server_drain(server, 0));
    assert_true(http_is_over(request));
    heard = support_hear(fd);
    assert_int_equal(support_status(heard), 503);
    base_free(heard);
    http_answer(request, 200, "text/plain", base_strdup("late"), 4);
    close(fd);
    http_server_close(server);
}

/* ---- what it refuses ---- */

static void test_framing(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes);

    (void)state;
    expect(server,
           "POST /echo" HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           400, "twice");
    expect(server, "POST /echo" HEAD "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400,
           "twice");
    expect(server, "POST /echo" HEAD "Content-Length: 5\r\ncontent-length: 5\r\n\r\nhello", 400,
           "twice");
    expect(server, "POST /echo" HEAD "Transfer-Encoding: gzip\r\n\r\n", 400, "chunked");
    expect(server,
           "POST /echo" HEAD
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
           400, "twice");
    expect(server, "POST /echo" HEAD "Content-Length: 5x\r\n\r\nhello", 400, "");
    expect(server, "POST /echo" HEAD "Content-Length: -1\r\n\r\n", 400, "");
    http_server_close(server);
}

/* One body may always be as long as bodies may be. */
static void test_one_long_body(void **state)
{
    struct http_setup setup = http_setup_defaults;
    struct http_server *server;

    (void)state;
    setup.body_limit = 5;
    setup.bodies_limit = 4;
    server = support_serve(setup, routes);
    expect(server, "POST /echo" HEAD "Content-Length: 5\r\n\r\nhello", 200, "hello");
    expect(server, "POST /echo" HEAD "Content-Length: 6\r\n\r\nhello!", 413, "");
    http_server_close(server);
}

static void test_long_bodies(void **state)
{
    struct http_setup setup = http_setup_defaults;
    struct http_server *server;
    char *body = base_calloc(1, 40001), *request;

    (void)state;
    setup.body_limit = 1000;
    setup.bodies_limit = 1500;
    server = support_serve(setup, routes);
    memset(body, 'x', 40000);
    request = base_format("POST /echo" HEAD "Content-Length: 40000\r\n\r\n%s", body);
    expect(server, request, 413, "{413 -}"); /* though all of it was sent */
    base_free(request);
    request = base_format(
        "POST /echo" HEAD "Transfer-Encoding: chunked\r\n\r\n9c40\r\n%s\r\n0\r\n\r\n", body);
    expect(server, request, 413, "{413 -}");
    base_free(request);
    expect(server, "POST /echo" HEAD "Content-Length: 40000\r\nExpect: 100-continue\r\n\r\n", 413,
           "{413 -}"); /* before any of it is */
    expect(server, "POST /echo" HEAD "Content-Length: 99999999999\r\n\r\n", 413, "{413 -}");
    body[900] = '\0';
    request = base_format("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 901\r\n\r\n%s",
                          body);
    int fd = support_connect(http_server_port(server)); /* holds 900 of 1500 bytes */

    support_say_text(fd, request);
    base_free(request);
    request = base_format("POST /echo" HEAD "Content-Length: 900\r\n\r\n%s", body);
    while (support_ask(http_server_port(server), request, NULL) != 503)
        usleep(1000); /* until the first has been taken in */
    support_say_text(fd, "x");
    char *heard = support_hear_until(fd, "xxx");

    assert_int_equal(support_status(heard), 200);
    base_free(heard);
    close(fd);
    while (support_ask(http_server_port(server), request, NULL) != 200)
        usleep(1000); /* until the first has been let go */
    base_free(request);
    base_free(body);
    http_server_close(server);
}

static void test_token(void **state)
{
    struct http_setup setup = http_setup_defaults;
    struct http_server *server;

    (void)state;
    setup.token = "correct-horse-battery";
    server = support_serve(setup, routes);
    expect(server, "GET /echo" HEAD "\r\n", 200, "");
    expect(server, "GET /things/a" HEAD "\r\n", 401, "Token");
    expect(server, "GET /things/a" HEAD "Authorization: Bearer correct-horse\r\n\r\n", 401, "");
    expect(server, "GET /things/a" HEAD "Authorization: Bearer correct-horse-batterz\r\n\r\n", 401,
           "");
    expect(server, "GET /things/a" HEAD "Authorization: Bearer \r\n\r\n", 401, "");
    expect(server, "GET /things/a" HEAD "Authorization: correct-horse-battery\r\n\r\n", 401, "");
    expect(server, "GET /things/a?token=correct-horse-battery" HEAD "\r\n", 401, "");
    expect(server, "GET /things/a" HEAD "Authorization: Bearer correct-horse-battery\r\n\r\n", 200,
           "<a|");
    /* with a token, any name of the host will do */
    expect(server,
           "GET /things/a HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n"
           "Authorization: Bearer correct-horse-battery\r\n\r\n",
           200, "<a|");
    http_server_close(server);
}

static void test_foreign(void **state)
{
    static const char *const bad[] = {"Host: evil.example\r\n",
                                      "Host: 127.0.0.1.evil.example\r\n",
                                      "Host: localhostevil\r\n",
                                      "Host: localhost:80.evil.example\r\n",
                                      "Host: [::1]:80@evil.example\r\n",
                                      "Host: localhost\r\nOrigin: http://evil.example\r\n",
                                      "Host: localhost\r\nOrigin: null\r\n",
                                      "Host: localhost:80\r\nOrigin: http://localhost:81\r\n"};
    static const char *const good[] = {"Host: 127.0.0.1:8080\r\n", "Host: [::1]:8080\r\n",
                                       "Host: LocalHost\r\n", "Host: 127.0.0.2\r\n",
                                       "Host: localhost:80\r\nOrigin: http://localhost:80\r\n"};
    struct http_server *server = support_serve(http_setup_defaults, routes);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *request = base_format("GET /echo HTTP/1.1\r\nConnection: close\r\n%s\r\n", bad[i]);

        expect(server, request, 403, "another host");
        base_free(request);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char *request = base_format("GET /echo HTTP/1.1\r\nConnection: close\r\n%s\r\n", good[i]);

        expect(server, request, 200, "");
        base_free(request);
    }
    expect(server, "GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n", 400, ""); /* no Host */
    http_server_close(server);
}

/* A connection that dawdles is closed: before its head, within it, within its body, after it. */
static void test_slow(void **state)
{
    static const char *const beginnings[] = {
        "", "GET /ec", "GET /echo HTTP/1.1\r\nHost: loc",
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc"};
    struct http_setup setup = http_setup_defaults;
    struct http_server *server;
    char *heard;
    int fd;

    (void)state;
    setup.head_seconds = setup.idle_seconds = 0.1;
    server = support_serve(setup, routes);
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        fd = support_connect(http_server_port(server));
        support_say_text(fd, beginnings[i]);
        heard = support_hear(fd);
        assert_string_equal(heard, "");
        base_free(heard);
        close(fd);
    }
    fd = support_connect(http_server_port(server));
    support_say_text(fd, "GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
    heard = support_hear(fd);
    assert_int_equal(support_status(heard), 200);
    base_free(heard);
    close(fd);
    http_server_close(server);
}

static void test_per_address(void **state)
{
    struct http_setup setup = http_setup_defaults;
    struct http_server *server;
    int fds[3];
    char *heard;

    (void)state;
    setup.connections_per_address = 3;
    server = support_serve(setup, routes);
    for (int i = 0; i < 3; i++) {
        fds[i] = support_connect(http_server_port(server));
        support_say_text(fds[i], "GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
        heard = support_hear_until(fds[i], "\r\n\r\n");
        assert_int_equal(support_status(heard), 200);
        base_free(heard);
    }
    assert_int_equal(support_ask(http_server_port(server), "GET /echo" HEAD "\r\n", NULL), 0);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    while (support_ask(http_server_port(server), "GET /echo" HEAD "\r\n", NULL) != 200)
        usleep(1000); /* until the server has seen them go */
    http_server_close(server);
}

static void test_open_refused(void **state)
{
    struct http_server *server = support_serve(http_setup_defaults, routes), *second;
    struct http_setup setup = http_setup_defaults;

    (void)state;
    setup.routes = routes;
    setup.port = http_server_port(server);
    assert_int_equal(http_server_open(&setup, &second), BASE_ERR_IO);
    assert_non_null(strstr(base_message(), "in use"));
    setup.port = 0;
    setup.host = "example.org";
    assert_int_equal(http_server_open(&setup, &second), BASE_ERR_USAGE);
    setup.host = "203.0.113.7";
    assert_int_equal(http_server_open(&setup, &second), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "no address"));
    setup.host = "127.0.0.1";
    setup.certificate = setup.key = "no PEM";
    assert_int_equal(http_server_open(&setup, &second), BASE_ERR_USAGE);
    assert_null(second);
    http_server_close(server);
    http_server_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_later),         cmocka_unit_test(test_expire),
        cmocka_unit_test(test_stream),        cmocka_unit_test(test_stream_ends),
        cmocka_unit_test(test_drain),         cmocka_unit_test(test_drain_ends),
        cmocka_unit_test(test_framing),       cmocka_unit_test(test_long_bodies),
        cmocka_unit_test(test_one_long_body), cmocka_unit_test(test_token),
        cmocka_unit_test(test_foreign),       cmocka_unit_test(test_slow),
        cmocka_unit_test(test_per_address),   cmocka_unit_test(test_open_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
