/* covers: src/comm/mailbox.c src/cluster/message.c src/comm/view.c src/cluster/state.c
 * src/cluster/report.c src/cluster/settings.c src/cluster/requests.c */
/* SPDX-License-Identifier: MIT
 *
 * What comes on a control connection, through a mailbox and the reading of control messages;
 * checksums are not compared. The first byte says where the bytes arrive in two parts. A message
 * that is accepted must survive being sent, with a descriptor, and read again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/message.h"
#include "cluster/report.h"
#include "cluster/requests.h"
#include "cluster/state.h"
#include "comm/mailbox.h"

static struct comm_mailbox *open_pair(int *raw)
{
    struct comm_stream *stream;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || comm_stream_of(fds[0], &stream) != BASE_OK)
        abort();
    *raw = fds[1];
    return comm_mailbox_new(stream);
}

/* Long ones would not fit into the socket, and this is one thread. */
static void send_again(json_t *object)
{
    struct comm_stream *stream;
    struct comm_mailbox *a, *b;
    json_t *got = NULL, *none = NULL;
    int raw, fd;

    a = open_pair(&raw);
    if (comm_stream_of(raw, &stream) != BASE_OK)
        abort();
    b = comm_mailbox_new(stream);
    comm_mailbox_send(a, object);
    comm_mailbox_send_fd(a, object, STDERR_FILENO);
    if (comm_mailbox_flush(a, base_now() + 10) != BASE_OK ||
        comm_mailbox_move(b, &none) != BASE_OK || comm_mailbox_move(b, &got) != BASE_OK ||
        !json_equal(got, object) || (fd = comm_mailbox_take_fd(b)) < 0)
        abort();
    close(fd);
    json_decref(got);
    json_decref(none);
    comm_mailbox_free(a);
    comm_mailbox_free(b);
}

/* What is accepted must survive being written and read again. */
static void check_body(const json_t *body)
{
    struct cluster_state state;
    struct cluster_report report;
    json_t *text;

    if (cluster_state_from_json(body, &state) == BASE_OK) {
        text = cluster_state_to_json(&state);
        cluster_state_fini(&state);
        if (cluster_state_from_json(text, &state) != BASE_OK)
            abort();
        cluster_state_fini(&state);
        json_decref(text);
    }
    if (cluster_report_from_json(body, &report) == BASE_OK) {
        text = cluster_report_to_json(&report);
        cluster_report_fini(&report);
        if (cluster_report_from_json(text, &report) != BASE_OK)
            abort();
        cluster_report_fini(&report);
        json_decref(text);
    }
}

static void check(const json_t *object)
{
    struct cluster_message message, again;
    struct cluster_request request;
    json_t *text;

    /* What a person asks comes through another socket, and is as strict. */
    if (cluster_request_read(object, &request) == BASE_OK && request.sets &&
        (request.name == NULL || request.value == NULL))
        abort();
    if (cluster_message_from_json(object, &message) != BASE_OK)
        return;
    check_body(message.body);
    text = cluster_message_to_json(&message);
    if (cluster_message_from_json(text, &again) != BASE_OK)
        abort();
    send_again(text);
    json_decref(text);
    cluster_message_fini(&again);
    cluster_message_fini(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct comm_mailbox *box;
    json_t *object = NULL;
    size_t cut;
    int raw;

    if (count < 1 || count > 32768)
        return 0;
    box = open_pair(&raw);
    cut = 1 + (count - 1) * bytes[0] / 255;
    if (write(raw, bytes + 1, cut - 1) != (ssize_t)(cut - 1) || comm_mailbox_stream(box) == NULL)
        abort();
    for (int part = 0; part < 2; part++) {
        base_status st;

        while ((st = comm_mailbox_move(box, &object)) == BASE_OK && object != NULL) {
            check(object);
            json_decref(object);
        }
        if (st != BASE_OK)
            break;
        if (write(raw, bytes + cut, count - cut) != (ssize_t)(count - cut))
            abort();
        cut = count;
    }
    close(raw);
    comm_mailbox_free(box);
    return 0;
}
