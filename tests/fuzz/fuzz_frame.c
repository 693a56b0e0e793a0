/* covers: src/comm/frame.c src/comm/link.c */
/* SPDX-License-Identifier: MIT
 *
 * What a peer sends on a data connection, through the reading path of a link; checksums are read
 * and not compared. The first five bytes say how many messages are expected and of which lengths,
 * and where the bytes arrive in two parts. What is accepted must survive being sent and received
 * again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/link.h"

enum { MESSAGES = 3, PREFIX = 2 + MESSAGES, UNIT = 37, ROOM = 256 * UNIT, TAG = 7 };

static uint8_t got[MESSAGES][ROOM], again[ROOM];

static void open_pair(struct comm_link *a, struct comm_link *b, int *raw)
{
    int fds[2];

    comm_link_init(a, 1, COMM_COLLECTIVES);
    comm_link_init(b, 1, COMM_COLLECTIVES);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 ||
        comm_stream_of(fds[0], &a->stream) != BASE_OK ||
        (raw == NULL && comm_stream_of(fds[1], &b->stream) != BASE_OK))
        abort();
    if (raw != NULL)
        *raw = fds[1];
}

static base_status receive_all(struct comm_link *link)
{
    base_status st = BASE_OK;
    bool moved = true;

    while (st == BASE_OK && moved && link->in.first != NULL) {
        moved = false;
        st = comm_link_receive(link, &moved);
    }
    return st;
}

static void send_again(const uint8_t *bytes, size_t count)
{
    struct comm_request send = {.sends = true, .tag = TAG, .bytes = (void *)bytes, .count = count};
    struct comm_request receive = {.tag = TAG, .bytes = again, .count = count};
    struct comm_link a, b;
    bool moved = false;

    open_pair(&a, &b, NULL);
    comm_link_post(&a, &send);
    comm_link_post(&b, &receive);
    if (comm_link_send(&a, &moved) != BASE_OK || receive_all(&b) != BASE_OK || !send.done ||
        !receive.done || memcmp(again, bytes, count) != 0)
        abort();
    comm_link_fini(&a);
    comm_link_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct comm_request requests[MESSAGES] = {0};
    struct comm_link link, unused;
    size_t expected, cut;
    int raw;

    if (count < PREFIX || count > 65536)
        return 0;
    open_pair(&link, &unused, &raw);
    expected = 1 + bytes[0] % MESSAGES;
    for (size_t i = 0; i < expected; i++) {
        requests[i] = (struct comm_request){
            .tag = TAG, .bytes = got[i], .count = (size_t)bytes[1 + i] * UNIT};
        comm_link_post(&link, &requests[i]);
    }
    cut = PREFIX + (count - PREFIX) * bytes[PREFIX - 1] / 255;
    if (write(raw, bytes + PREFIX, cut - PREFIX) != (ssize_t)(cut - PREFIX))
        abort();
    if (receive_all(&link) == BASE_OK) {
        if (write(raw, bytes + cut, count - cut) != (ssize_t)(count - cut))
            abort();
        close(raw);
        raw = -1;
        base_ignore(receive_all(&link));
    }
    if (raw >= 0)
        close(raw);
    comm_link_fini(&link);
    for (size_t i = 0; i < expected; i++)
        if (requests[i].done)
            send_again(got[i], requests[i].count);
    return 0;
}
