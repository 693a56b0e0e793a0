/* SPDX-License-Identifier: MIT
 *
 * Connecting and listening in one poll loop, plain and under TLS: what is welcomed moves bytes both
 * ways; wrong tokens, strangers and the slow are refused while the good go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/comm_stream_private.h"

static const struct comm_hello hello = {
    .job = "job", .role = "data", .from = 2, .to = 1, .view = 1};
static const struct comm_secret secret = {{1, 2, 3}}, other = {{1, 2, 4}};

struct ends {
    struct comm_listener *listener;
    struct comm_stream *there, *here; /* the side that connected, the side that accepted */
};

/* Connects and accepts until both ends are there, or the connecting one failed. */
static base_status meet(struct ends *e, const struct comm_secret *with,
                        const struct comm_hello *says)
{
    double deadline = base_now() + 20;
    struct comm_connecting *c = NULL;
    struct comm_tls *tls = NULL;
    base_status st = BASE_OK;

    e->here = e->there = NULL;
    if (with != NULL)
        TRY(comm_tls_new(with, false, &tls));
    TRY(comm_connecting_new("127.0.0.1", comm_listener_port(e->listener), tls, says, &c));
    TRY(comm_connecting_step(c, &e->there));
    while (st == BASE_OK && e->there == NULL) {
        struct pollfd fds[COMM_MAX_HANDSHAKES + 2];
        struct comm_hello heard;
        struct comm_stream *came;
        int count = comm_listener_watch(e->listener, fds, COMM_MAX_HANDSHAKES + 1);

        fds[count++] = comm_connecting_watch(c);
        assert_true(base_now() < deadline);
        poll(fds, (nfds_t)count, 100);
        assert_int_equal(comm_accept(e->listener, &heard, &came), BASE_OK);
        if (came != NULL) {
            assert_memory_equal(&heard, says, sizeof heard);
            assert_null(e->here);
            e->here = came;
            assert_int_equal(comm_welcome(came, deadline), BASE_OK);
        }
        st = comm_connecting_step(c, &e->there);
    }
out:
    comm_connecting_free(c);
    comm_tls_free(tls);
    return st;
}

static void part(struct ends *e)
{
    comm_stream_close(e->there);
    comm_stream_close(e->here);
    e->here = e->there = NULL;
}

/* More than the sockets hold, both ways at once. */
static void exchange(struct ends *e)
{
    enum { BYTES = 12 << 20 };
    struct comm_stream *const s[2] = {e->here, e->there};
    uint8_t *out[2], *in[2];
    size_t sent[2] = {0}, got[2] = {0}, moved;

    for (int i = 0; i < 2; i++) {
        out[i] = malloc(BYTES);
        in[i] = calloc(1, BYTES);
        for (size_t j = 0; j < BYTES; j++)
            out[i][j] = (uint8_t)(j * 7 + j / 251 + (size_t)i);
    }
    while (got[0] < BYTES || got[1] < BYTES)
        for (int i = 0; i < 2; i++) {
            /* the first 32 bytes as a header: */
            if (sent[i] < 32)
                assert_int_equal(comm_stream_write_two(s[i], out[i] + sent[i], 32 - sent[i],
                                                       out[i] + 32, BYTES - 32, &moved),
                                 BASE_OK);
            else
                assert_int_equal(comm_stream_write(s[i], out[i] + sent[i], BYTES - sent[i], &moved),
                                 BASE_OK);
            sent[i] += moved;
            assert_int_equal(comm_stream_read(s[i], in[i] + got[i], BYTES - got[i], &moved),
                             BASE_OK);
            got[i] += moved;
        }
    assert_memory_equal(in[0], out[1], BYTES);
    assert_memory_equal(in[1], out[0], BYTES);
    for (int i = 0; i < 2; i++) {
        free(out[i]);
        free(in[i]);
    }
}

static void listen_with(struct ends *e, const struct comm_secret *with)
{
    *e = (struct ends){0};
    assert_int_equal(comm_listen("127.0.0.1", 0, with, &e->listener), BASE_OK);
    assert_int_not_equal(comm_listener_port(e->listener), 0);
}

static void welcomed_and_used(const struct comm_secret *with)
{
    struct ends e;
    uint8_t byte;
    size_t moved;

    listen_with(&e, with);
    assert_int_equal(meet(&e, with, &hello), BASE_OK);
    assert_int_equal(comm_stream_encrypted(e.here), with != NULL);
    assert_int_equal(comm_stream_encrypted(e.there), with != NULL);
    exchange(&e);
    comm_stream_close(e.there);
    e.there = NULL;
    assert_int_equal(comm_stream_wait(e.here, true, false, base_now() + 10), BASE_OK);
    assert_int_equal(comm_stream_read(e.here, &byte, 1, &moved), BASE_ERR_PEER_LOST);
    part(&e);
    comm_listener_close(e.listener);
}

static void test_plain(void **state)
{
    (void)state;
    welcomed_and_used(NULL);
}

static void test_tls(void **state)
{
    (void)state;
    welcomed_and_used(&secret);
}

/* Writing to a peer that is gone ends in a status and no SIGPIPE. */
static void test_peer_goes(void **state)
{
    static uint8_t bytes[1 << 20];
    struct ends e;
    base_status st = BASE_OK;
    size_t moved;

    (void)state;
    for (int tls = 0; tls < 2; tls++) {
        listen_with(&e, tls ? &secret : NULL);
        assert_int_equal(meet(&e, tls ? &secret : NULL, &hello), BASE_OK);
        comm_stream_close(e.here);
        e.here = NULL;
        for (int i = 0; i < 100 && st == BASE_OK; i++)
            st = comm_stream_write(e.there, bytes, sizeof bytes, &moved);
        assert_int_equal(st, BASE_ERR_PEER_LOST);
        st = BASE_OK;
        part(&e);
        comm_listener_close(e.listener);
    }
}

static void test_wrong_tokens(void **state)
{
    struct ends e;

    (void)state;
    listen_with(&e, &secret);
    assert_int_equal(meet(&e, &other, &hello), BASE_ERR_NETWORK);
    assert_non_null(strstr(base_message(), "token"));
    assert_int_equal(meet(&e, NULL, &hello), BASE_ERR_NETWORK);
    assert_null(e.here);
    assert_int_equal(meet(&e, &secret, &hello), BASE_OK);
    part(&e);
    comm_listener_close(e.listener);
    listen_with(&e, NULL);
    assert_int_equal(meet(&e, &secret, &hello), BASE_ERR_NETWORK);
    assert_null(e.here);
    comm_listener_close(e.listener);
}

static void test_only_loopback_without_token(void **state)
{
    struct comm_listener *listener;
    struct comm_connecting *connecting;
    struct comm_stream *stream;

    (void)state;
    assert_int_equal(comm_listen("0.0.0.0", 0, NULL, &listener), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "paceline token"));
    assert_int_equal(comm_listen("::", 0, NULL, &listener), BASE_ERR_USAGE);
    assert_int_equal(comm_listen("::ffff:127.0.0.1", 0, NULL, &listener), BASE_ERR_USAGE);
    assert_int_equal(comm_listen("localhost", 0, &secret, &listener), BASE_ERR_USAGE);
    assert_non_null(strstr(base_message(), "numeric"));
    assert_null(listener);
    assert_int_equal(comm_connecting_new("192.0.2.1", 1, NULL, &hello, &connecting),
                     BASE_ERR_USAGE);
    assert_null(connecting);
    assert_int_equal(comm_connect("192.0.2.1", 1, NULL, &hello, base_now(), &stream),
                     BASE_ERR_USAGE);
    assert_int_equal(comm_listen("0.0.0.0", 0, &secret, &listener), BASE_OK);
    comm_listener_close(listener);
}

static int raw_connection(const struct comm_listener *listener)
{
    struct comm_address at;
    int fd;

    assert_int_equal(comm_address_parse("127.0.0.1", comm_listener_port(listener), &at), BASE_OK);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at.at, at.length), 0);
    return fd;
}

static void test_nobody_there(void **state)
{
    struct comm_stream *stream;
    struct ends e;

    (void)state;
    listen_with(&e, NULL);
    /* The kernel accepts the connection, but no process answers. */
    assert_int_equal(comm_connect("127.0.0.1", comm_listener_port(e.listener), NULL, &hello,
                                  base_now() + 0.05, &stream),
                     BASE_ERR_TIMEOUT);
    assert_null(stream);
    uint16_t port = comm_listener_port(e.listener);
    comm_listener_close(e.listener);
    assert_int_equal(comm_connect("127.0.0.1", port, NULL, &hello, base_now() + 5, &stream),
                     BASE_ERR_IO);
    assert_null(stream);
}

/* Silent connections beyond every limit: the good one gets through, the silent are ended. */
static void test_slow_strangers(void **state)
{
    enum { STRANGERS = 3 * COMM_MAX_HANDSHAKES };
    double end = base_now() + 2 * COMM_HANDSHAKE_SECONDS + 10;
    struct comm_stream *came;
    struct comm_hello heard;
    int strangers[STRANGERS], ended = 0;
    struct ends e;

    (void)state;
    listen_with(&e, &secret);
    for (int i = 0; i < STRANGERS; i++)
        strangers[i] = raw_connection(e.listener);
    assert_int_equal(meet(&e, &secret, &hello), BASE_OK);
    while (ended < STRANGERS && base_now() < end) {
        struct pollfd fds[COMM_MAX_HANDSHAKES + 1];
        int count = comm_listener_watch(e.listener, fds, COMM_MAX_HANDSHAKES + 1);
        char byte;

        poll(fds, (nfds_t)count, 100);
        assert_int_equal(comm_accept(e.listener, &heard, &came), BASE_OK);
        assert_null(came);
        for (int i = 0; i < STRANGERS; i++)
            if (strangers[i] >= 0 && recv(strangers[i], &byte, 1, MSG_DONTWAIT) >= 0) {
                close(strangers[i]);
                strangers[i] = -1;
                ended++;
            }
    }
    assert_int_equal(ended, STRANGERS);
    exchange(&e);
    part(&e);
    comm_listener_close(e.listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),          cmocka_unit_test(test_tls),
        cmocka_unit_test(test_peer_goes),      cmocka_unit_test(test_wrong_tokens),
        cmocka_unit_test(test_nobody_there),   cmocka_unit_test(test_only_loopback_without_token),
        cmocka_unit_test(test_slow_strangers),
    };

    base_log_level(BASE_QUIET);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
