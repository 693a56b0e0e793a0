/* SPDX-License-Identifier: MIT
 *
 * The coordinator's connections: one that says something, but never joins, does not stay, and one
 * of another job does not come in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/message.h"
#include "cluster/server.h"
#include "comm/mailbox.h"

enum { PATIENCE = 60, FDS = 256 };

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    close(fd);
    return ntohs(at.sin_port);
}

/* A heartbeat of an agent that has not joined; then it waits until it is cut off. */
static _Noreturn void linger(uint16_t port)
{
    const struct cluster_message beat = {.type = CLUSTER_HEARTBEAT, .load.step = -1};
    const struct comm_hello hello = {.role = "agent", .from = 1};
    double deadline = base_now() + PATIENCE;
    struct comm_stream *stream;
    struct comm_mailbox *box;
    json_t *json = cluster_message_to_json(&beat), *answer;
    base_status st = BASE_OK;

    if (comm_connect("127.0.0.1", port, NULL, &hello, deadline, &stream) != BASE_OK)
        _exit(1);
    box = comm_mailbox_new(stream);
    comm_mailbox_send(box, json);
    while (st == BASE_OK) {
        st = comm_mailbox_move(box, &answer);
        if (st == BASE_OK)
            st = comm_stream_wait(stream, true, false, deadline);
    }
    _exit(st == BASE_ERR_PEER_LOST ? 0 : 2);
}

/* A coordinator that another job's hosts found where theirs was: theirs leads, and is refused. */
static _Noreturn void lead_others(uint16_t port)
{
    const struct comm_hello hello = {.role = "agent", .from = 1, .job = "another"};
    struct comm_stream *stream = NULL;
    base_status st = comm_connect("127.0.0.1", port, NULL, &hello, base_now() + PATIENCE, &stream);

    _exit(st == BASE_ERR_NETWORK ? 0 : 1);
}

/* Serves until the visitor has ended well. */
static void serve(void visit(uint16_t port))
{
    struct cluster_setup setup = {.launch = {.workers = 1,
                                             .hosts = 2,
                                             .listens = true,
                                             .bind = "127.0.0.1",
                                             .port = free_port(),
                                             .source = "flags",
                                             .silence = 10,
                                             .gather = 2 * PATIENCE},
                                  .program = "ping"};
    double deadline = base_now() + PATIENCE;
    struct cluster_server *server;
    struct pollfd fds[FDS];
    int pair[2], code = -1;
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(cluster_server_open(&setup, pair[1], &server), BASE_OK);
    if ((pid = fork()) == 0)
        visit(setup.launch.port);
    while (waitpid(pid, &code, WNOHANG) == 0) {
        assert_true(base_now() < deadline);
        assert_int_equal(cluster_server_step(server), BASE_OK);
        poll(fds, (nfds_t)cluster_server_watch(server, fds, FDS), 100);
    }
    assert_int_equal(code, 0);
    cluster_server_close(server);
    close(pair[0]);
}

static void who_does_not_join_is_cut_off(void **state)
{
    (void)state;
    serve(linger);
}

static void who_is_of_another_job_is_refused(void **state)
{
    (void)state;
    serve(lead_others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_does_not_join_is_cut_off),
                                       cmocka_unit_test(who_is_of_another_job_is_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
