/* SPDX-License-Identifier: MIT
 *
 * Ten thousand handshakes that must fail, against a listener that meanwhile serves a good
 * connection: absent, garbled, without token, with a wrong one, replayed, reflected, of another
 * job, begun and left, old protocols. None is accepted; the good connection never waits long; new
 * good ones get in all the time; the log stays short. Three processes: the listener, a pinger, and
 * the test as the attacker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "comm/comm_stream_private.h"

enum { ATTACKS = 10000, SLOW = 64, GOOD_EVERY = 250, STREAMS = 8, RECORD = 4096, ME = 1, YOU = 2 };

static const double LATE = 0.5; /* seconds */
static const struct comm_secret secret = {{1, 2, 3}}, other = {{1, 2, 4}};
static const struct comm_hello good = {
    .job = "job", .role = "data", .from = YOU, .to = ME, .view = 1};

static struct board { /* what the processes share */
    _Atomic int stop, accepted, refused;
    _Atomic uint64_t pings;
    _Atomic uint64_t slow; /* pings that took longer than LATE */
} * board;
static uint16_t port;

/* --- the listener's process ----------------------------------------------------------------- */

static const char *objection(const struct comm_hello *hello)
{
    if (strcmp(hello->job, good.job) != 0 || strcmp(hello->role, good.role) != 0)
        return "it is for another job";
    return hello->to != ME || hello->from == ME ? "it is for another worker" : NULL;
}

static void greet(struct comm_listener *listener, struct comm_stream **streams)
{
    struct comm_stream *came;
    struct comm_hello hello;
    int i = 0;

    while (comm_accept(listener, &hello, &came) == BASE_OK && came != NULL) {
        const char *why = objection(&hello);

        while (i < STREAMS && streams[i] != NULL)
            i++;
        if (why == NULL && i < STREAMS && comm_welcome(came, base_now() + 1) == BASE_OK) {
            streams[i] = came;
            atomic_fetch_add(&board->accepted, 1);
        } else {
            comm_refuse(listener, came, why != NULL ? why : "no room");
            atomic_fetch_add(&board->refused, 1);
        }
    }
}

static void echo(struct comm_stream **stream)
{
    char bytes[64];
    size_t count = 1, moved;

    while (count > 0) {
        if (comm_stream_read(*stream, bytes, sizeof bytes, &count) != BASE_OK ||
            (count > 0 && comm_stream_write(*stream, bytes, count, &moved) != BASE_OK)) {
            comm_stream_close(*stream);
            *stream = NULL;
            return;
        }
    }
}

static _Noreturn void serve(struct comm_listener *listener, int log)
{
    struct comm_stream *streams[STREAMS] = {NULL};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log, STDERR_FILENO);
    while (atomic_load(&board->stop) == 0) {
        struct pollfd fds[COMM_MAX_HANDSHAKES + 1 + STREAMS];
        int count = comm_listener_watch(listener, fds, COMM_MAX_HANDSHAKES + 1);

        for (int i = 0; i < STREAMS; i++)
            if (streams[i] != NULL)
                fds[count++] = (struct pollfd){.fd = comm_stream_fd(streams[i]), .events = POLLIN};
        poll(fds, (nfds_t)count, 100);
        for (int i = 0; i < STREAMS; i++)
            if (streams[i] != NULL)
                echo(&streams[i]);
        greet(listener, streams);
    }
    for (int i = 0; i < STREAMS; i++)
        comm_stream_close(streams[i]);
    comm_listener_close(listener);
    _exit(0);
}

/* --- good connections ----------------------------------------------------------------------- */

/* Refusals are possible while the attackers share our address: as the tcp transport, try again. */
static struct comm_stream *get_in(double deadline)
{
    struct comm_stream *stream = NULL;

    while (stream == NULL && base_now() < deadline)
        base_ignore(comm_connect("127.0.0.1", port, &secret, &good, deadline, &stream));
    return stream;
}

static bool ping(struct comm_stream *stream)
{
    char out[64], in[64];
    size_t moved, got = 0;

    memset(out, 7, sizeof out);
    if (comm_stream_write(stream, out, sizeof out, &moved) != BASE_OK || moved != sizeof out)
        return false;
    while (got < sizeof in) {
        if (comm_stream_read(stream, in + got, sizeof in - got, &moved) != BASE_OK)
            return false;
        got += moved;
        if (got < sizeof in && comm_stream_wait(stream, true, false, base_now() + 10) != BASE_OK)
            return false;
    }
    return memcmp(in, out, sizeof in) == 0;
}

static _Noreturn void keep_pinging(void)
{
    struct comm_stream *stream;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if ((stream = get_in(base_now() + 20)) == NULL)
        _exit(2);
    while (atomic_load(&board->stop) == 0) {
        double start = base_now(), took;

        if (!ping(stream)) /* the server may be gone before us once it is over */
            _exit(atomic_load(&board->stop) != 0 ? 0 : 3);
        took = base_now() - start;
        if (took > LATE)
            atomic_fetch_add(&board->slow, 1);
        atomic_fetch_add(&board->pings, 1);
        usleep(500);
    }
    comm_stream_close(stream);
    _exit(0);
}

/* --- attacks -------------------------------------------------------------------------------- */

static int raw_connection(void)
{
    struct comm_address at;
    int fd;

    assert_int_equal(comm_address_parse("127.0.0.1", port, &at), BASE_OK);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at.at, at.length), 0);
    return fd;
}

/* Sends bytes and leaves once the other side is done with them. */
static void send_raw(const void *bytes, size_t count)
{
    int fd = raw_connection();
    char answer[4096];

    if (send(fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count && shutdown(fd, SHUT_WR) == 0)
        while (recv(fd, answer, sizeof answer, 0) > 0)
            ;
    close(fd);
}

static void must_fail(const struct comm_secret *with, const struct comm_hello *hello)
{
    struct comm_stream *stream;

    assert_int_equal(comm_connect("127.0.0.1", port, with, hello, base_now() + 20, &stream),
                     BASE_ERR_NETWORK);
    assert_null(stream);
}

static void absent(uint32_t i)
{
    (void)i;
    close(raw_connection());
}

static void garbled(uint32_t i)
{
    struct base_rng rng = base_rng_of(i, BASE_STREAM_TEST, 0, 0, 0);
    uint32_t words[128];

    for (uint32_t j = 0; j < 128; j++)
        words[j] = base_rng_u32(&rng, j);
    if (i % 2 == 0)
        memcpy(words, "\26\3\1\1\374\1", 6); /* looks like a client hello */
    send_raw(words, sizeof words);
}

static void tokenless(uint32_t i)
{
    (void)i;
    must_fail(NULL, &good);
}

static void wrong_token(uint32_t i)
{
    (void)i;
    must_fail(&other, &good);
}

/* Worker 1's own connection to worker 2, led back to worker 1. */
static void reflected(uint32_t i)
{
    struct comm_hello own = good;

    (void)i;
    own.from = ME;
    own.to = YOU;
    must_fail(&secret, &own);
}

static void other_job(uint32_t i)
{
    struct comm_hello hello = good;

    strcpy(i % 2 == 0 ? hello.job : hello.role, i % 2 == 0 ? "jobb" : "agent");
    must_fail(&secret, &hello);
}

/* TLS as such: 1.2, 1.3 without a PSK, and one that would go without Diffie-Hellman. */
static int offer_psk(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *length,
                     SSL_SESSION **session)
{
    static const unsigned char cipher[] = {0x13, 0x01}, key[32];

    (void)digest;
    *session = SSL_SESSION_new();
    *identity = (const unsigned char *)"paceline-1-0000000000000000";
    *length = 27;
    return SSL_SESSION_set1_master_key(*session, key, sizeof key) &&
           SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, cipher)) &&
           SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
}

static void other_tls(uint32_t i)
{
    static SSL_CTX *contexts[3];
    SSL_CTX **context = &contexts[i % 3];
    int fd = raw_connection();
    SSL *ssl;

    if (*context == NULL) {
        *context = SSL_CTX_new(TLS_client_method());
        if (i % 3 == 0)
            SSL_CTX_set_max_proto_version(*context, TLS1_2_VERSION);
        if (i % 3 == 1)
            SSL_CTX_set_psk_use_session_callback(*context, offer_psk);
        SSL_CTX_set_options(*context, SSL_OP_ALLOW_NO_DHE_KEX);
    }
    ssl = SSL_new(*context);
    SSL_set_fd(ssl, fd);
    assert_int_not_equal(SSL_connect(ssl), 1);
    SSL_free(ssl);
    close(fd);
}

/* What a good client sent once: its first flight alone, or everything. */
static struct {
    uint8_t bytes[RECORD];
    size_t first, count;
} record;

static void replayed(uint32_t i)
{
    send_raw(record.bytes, i % 2 == 0 ? record.count : record.first);
}

/* Begun and left lying; the listener must end them. The oldest is looked at when room is needed. */
static void slow(uint32_t i)
{
    static int fds[SLOW];
    int *fd = &fds[i % SLOW];
    char answer[64];

    if (*fd > 0) {
        while (recv(*fd, answer, sizeof answer, 0) > 0)
            ;
        close(*fd);
    }
    *fd = raw_connection();
    assert_true(send(*fd, record.bytes, i % record.first, MSG_NOSIGNAL) >= 0);
}

/* A good handshake through a man in the middle who notes what the client says. */
static void make_record(void)
{
    struct comm_listener *ear; /* only its socket is used */
    struct comm_connecting *c;
    struct comm_stream *stream = NULL;
    struct comm_tls *tls;
    int middle, server = raw_connection();
    uint8_t bytes[RECORD];
    ssize_t count;

    assert_int_equal(comm_tls_new(&secret, false, &tls), BASE_OK);
    assert_int_equal(comm_listen("127.0.0.1", 0, &secret, &ear), BASE_OK);
    assert_int_equal(comm_connecting_new("127.0.0.1", comm_listener_port(ear), tls, &good, &c),
                     BASE_OK);
    assert_int_equal(comm_connecting_step(c, &stream), BASE_OK);
    struct pollfd listening;
    assert_int_equal(comm_listener_watch(ear, &listening, 1), 1);
    poll(&listening, 1, 10000);
    middle = accept(listening.fd, NULL, NULL);
    assert_true(middle >= 0);
    while (stream == NULL) {
        struct pollfd both[2] = {{.fd = middle, .events = POLLIN},
                                 {.fd = server, .events = POLLIN}};

        assert_int_equal(comm_connecting_step(c, &stream), BASE_OK);
        poll(both, 2, 10);
        count = recv(middle, record.bytes + record.count, RECORD - record.count, MSG_DONTWAIT);
        if (count > 0) {
            assert_int_equal(send(server, record.bytes + record.count, (size_t)count, 0), count);
            record.count += (size_t)count;
            record.first = record.first == 0 ? record.count : record.first;
        }
        if ((count = recv(server, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
            assert_int_equal(send(middle, bytes, (size_t)count, 0), count);
    }
    comm_stream_close(stream);
    comm_connecting_free(c);
    comm_tls_free(tls);
    comm_listener_close(ear);
    close(middle);
    close(server);
    assert_true(record.first > 100 && record.count > record.first + 100);
}

/* --- the test ------------------------------------------------------------------------------- */

static void (*const attacks[])(uint32_t) = {absent,    garbled,   tokenless, wrong_token, reflected,
                                            other_job, other_tls, replayed,  slow};

static int lines_of(int log)
{
    char text[65536];
    ssize_t count = pread(log, text, sizeof text - 1, 0);
    int lines = 0;

    for (ssize_t i = 0; i < count; i++)
        lines += text[i] == '\n';
    return lines;
}

static void test_ten_thousand(void **state)
{
    int log = memfd_create("log", 0), expected = 1, status;
    struct comm_listener *listener;
    struct comm_stream *stream;
    pid_t server, pinger;
    double start;

    (void)state;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(board, MAP_FAILED);
    assert_int_equal(comm_listen("127.0.0.1", 0, &secret, &listener), BASE_OK);
    port = comm_listener_port(listener);
    if ((server = fork()) == 0)
        serve(listener, log);
    comm_listener_close(listener);
    if ((pinger = fork()) == 0)
        keep_pinging();
    make_record();
    expected++;
    start = base_now();
    for (uint32_t i = 0; i < ATTACKS; i++) {
        attacks[i % (sizeof attacks / sizeof *attacks)](i);
        if (i % GOOD_EVERY != 0)
            continue;
        assert_non_null(stream = get_in(base_now() + 20));
        assert_true(ping(stream));
        comm_stream_close(stream);
        expected++;
    }
    print_message("%d attacks in %.1f s; %llu pings, %llu of them slow; %d lines of log\n", ATTACKS,
                  base_now() - start, (unsigned long long)atomic_load(&board->pings),
                  (unsigned long long)atomic_load(&board->slow), lines_of(log));
    assert_int_equal(atomic_load(&board->accepted), expected);
    assert_true(atomic_load(&board->refused) > ATTACKS / 9); /* those with the right token */
    assert_true(atomic_load(&board->pings) > 100);
    assert_true(100 * atomic_load(&board->slow) <= atomic_load(&board->pings));
    assert_in_range(lines_of(log), 1, 16);
    atomic_store(&board->stop, 1);
    assert_int_equal(waitpid(pinger, &status, 0), pinger);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(server, &status, 0), server);
    assert_int_equal(status, 0);
    close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ten_thousand)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
