/* SPDX-License-Identifier: MIT
 *
 * Control messages over a socket pair: whole messages in order, descriptors with the message they
 * belong to, and an end for every peer that misbehaves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "comm/frame.h"
#include "comm/mailbox.h"

struct pair {
    struct comm_mailbox *a, *b;
    int raw; /* the other end of a, when b is not a mailbox */
};

static struct comm_mailbox *box_of(int fd)
{
    struct comm_stream *stream;

    assert_int_equal(comm_stream_of(fd, &stream), BASE_OK);
    return comm_mailbox_new(stream);
}

static struct pair pair_of(bool both)
{
    struct pair p = {0};
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    p.a = box_of(fds[0]);
    p.raw = fds[1];
    if (both)
        p.b = box_of(fds[1]);
    return p;
}

static void pair_fini(struct pair *p)
{
    comm_mailbox_free(p->a);
    if (p->b != NULL)
        comm_mailbox_free(p->b);
    else if (p->raw >= 0)
        close(p->raw);
}

static void send_number(struct comm_mailbox *box, int number, int fd)
{
    json_t *message = json_pack("{s:i}", "number", number);

    if (fd >= 0)
        comm_mailbox_send_fd(box, message, fd);
    else
        comm_mailbox_send(box, message);
    json_decref(message);
}

/* The number of the next message; -1: none there. */
static int next_number(struct comm_mailbox *box)
{
    json_t *message;
    int number = -1;

    assert_int_equal(comm_mailbox_move(box, &message), BASE_OK);
    if (message != NULL)
        number = (int)json_integer_value(json_object_get(message, "number"));
    json_decref(message);
    return number;
}

static void test_messages_in_order(void **state)
{
    struct pair p = pair_of(true);

    (void)state;
    assert_int_equal(next_number(p.b), -1);
    for (int i = 0; i < 1000; i++)
        send_number(p.a, i, -1);
    send_number(p.b, 7777, -1);
    assert_int_equal(comm_mailbox_flush(p.a, base_now() + 10), BASE_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(next_number(p.b), i);
    assert_int_equal(next_number(p.b), -1);
    assert_int_equal(next_number(p.a), 7777);
    pair_fini(&p);
}

/* More than the socket holds: both sides move in turns, and one that does not read is told of. */
static void test_large_messages(void **state)
{
    struct pair p = pair_of(true);
    json_t *message =
               json_pack("{s:o}", "text",
                         json_stringn_nocheck(memset((char[900001]){0}, 'x', 900000), 900000)),
           *got = NULL;
    int count = 0;

    (void)state;
    for (int i = 0; i < 5; i++)
        comm_mailbox_send(p.a, message);
    assert_int_equal(comm_mailbox_flush(p.a, base_now() + 0.01), BASE_ERR_TIMEOUT);
    assert_true(comm_mailbox_events(p.a) & POLLOUT);
    while (count < 5) {
        assert_int_equal(next_number(p.a), -1);
        assert_int_equal(comm_mailbox_move(p.b, &got), BASE_OK);
        if (got != NULL) {
            assert_true(json_equal(got, message));
            count++;
        }
        json_decref(got);
    }
    assert_false(comm_mailbox_events(p.a) & POLLOUT);
    assert_int_equal(comm_mailbox_flush(p.a, 0), BASE_OK);
    for (int i = 0; i < 30; i++)
        comm_mailbox_send(p.a, message);
    assert_int_equal(comm_mailbox_move(p.a, &got), BASE_ERR_DATA);
    json_decref(message);
    pair_fini(&p);
}

static void test_too_long(void **state)
{
    struct pair p = pair_of(true);
    json_t *message =
               json_pack("{s:o}", "text",
                         json_stringn_nocheck(memset((char[1 << 20]){0}, 'x', 1 << 20), 1 << 20)),
           *got = NULL;

    (void)state;
    comm_mailbox_send(p.a, message);
    assert_int_equal(comm_mailbox_move(p.a, &got), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "too long"));
    json_decref(message);
    pair_fini(&p);
}

static void test_descriptors(void **state)
{
    struct pair p = pair_of(true);
    int fds[2] = {memfd_create("one", 0), memfd_create("two", 0)}, got;

    (void)state;
    assert_int_equal(ftruncate(fds[0], 111), 0);
    assert_int_equal(ftruncate(fds[1], 222), 0);
    send_number(p.a, 0, -1);
    send_number(p.a, 1, fds[0]);
    send_number(p.a, 2, fds[1]);
    send_number(p.a, 3, -1);
    send_number(p.a, 4, fds[0]);
    close(fds[0]); /* the queue has its own */
    close(fds[1]);
    assert_int_equal(comm_mailbox_flush(p.a, base_now() + 10), BASE_OK);
    assert_int_equal(next_number(p.b), 0);
    assert_int_equal(comm_mailbox_take_fd(p.b), -1);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(next_number(p.b), i);
        got = comm_mailbox_take_fd(p.b);
        assert_true(got >= 0);
        assert_int_equal(comm_mailbox_take_fd(p.b), -1);
        assert_int_equal(lseek(got, 0, SEEK_END), 111 * i);
        close(got);
    }
    assert_int_equal(next_number(p.b), 3);
    assert_int_equal(comm_mailbox_take_fd(p.b), -1);
    assert_int_equal(next_number(p.b), 4); /* not taken: closed by the next move */
    assert_int_equal(next_number(p.b), -1);
    assert_int_equal(comm_mailbox_take_fd(p.b), -1);
    pair_fini(&p);
}

/* Everything that was sent before the end arrives, then the end. */
static void test_peer_goes(void **state)
{
    struct pair p = pair_of(true);
    json_t *message;

    (void)state;
    send_number(p.b, 1, -1);
    send_number(p.b, 2, -1);
    assert_int_equal(comm_mailbox_flush(p.b, base_now() + 10), BASE_OK);
    comm_mailbox_free(p.b);
    p.b = NULL;
    p.raw = -1;
    send_number(p.a, 3, -1);
    assert_int_equal(next_number(p.a), 1);
    assert_int_equal(next_number(p.a), 2);
    assert_int_equal(comm_mailbox_move(p.a, &message), BASE_ERR_PEER_LOST);
    assert_null(message);
    assert_int_equal(comm_mailbox_flush(p.a, base_now() + 10), BASE_ERR_PEER_LOST);
    pair_fini(&p);
}

static void refused(const struct comm_frame *frame, const char *payload, const char *why)
{
    struct pair p = pair_of(false);
    uint8_t header[COMM_FRAME_BYTES];
    json_t *message;

    comm_frame_write(frame, header);
    assert_int_equal(write(p.raw, header, sizeof header), sizeof header);
    assert_int_equal(write(p.raw, payload, strlen(payload)), strlen(payload));
    assert_int_equal(comm_mailbox_move(p.a, &message), BASE_ERR_DATA);
    assert_null(message);
    assert_non_null(strstr(base_message(), why));
    pair_fini(&p);
}

static void test_bad_frames(void **state)
{
    struct comm_frame frame = {.type = COMM_FRAME_CONTROL, .count = 2};

    (void)state;
    refused(&frame, "{}", "damaged");
    frame.crc = base_crc32c(0, "[]", 2);
    refused(&frame, "[]", "no object");
    frame.crc = base_crc32c(0, "{]", 2);
    refused(&frame, "{]", "JSON");
    frame.crc = base_crc32c(0, "{}", 2);
    frame.tag = 1;
    refused(&frame, "{}", "descriptor");
    frame.tag = 2;
    refused(&frame, "{}", "tag 2");
    frame.tag = 0;
    frame.type = COMM_FRAME_DATA;
    refused(&frame, "{}", "type 5");
    frame.type = COMM_FRAME_CONTROL;
    frame.count = COMM_MAX_CONTROL + 1;
    refused(&frame, "{}", "at most");
}

/* A frame that comes byte by byte is no message before its last byte. */
static void test_byte_by_byte(void **state)
{
    struct pair p = pair_of(false);
    struct comm_frame frame = {.type = COMM_FRAME_CONTROL, .count = 12};
    uint8_t bytes[COMM_FRAME_BYTES + 12];

    (void)state;
    memcpy(bytes + COMM_FRAME_BYTES, "{\"number\":5}", 12);
    frame.crc = base_crc32c(0, bytes + COMM_FRAME_BYTES, 12);
    comm_frame_write(&frame, bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        assert_int_equal(next_number(p.a), -1);
        assert_int_equal(write(p.raw, bytes + i, 1), 1);
    }
    assert_int_equal(next_number(p.a), 5);
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_in_order), cmocka_unit_test(test_large_messages),
        cmocka_unit_test(test_too_long),          cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_peer_goes),         cmocka_unit_test(test_bad_frames),
        cmocka_unit_test(test_byte_by_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
