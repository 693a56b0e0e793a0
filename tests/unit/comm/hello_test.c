/* SPDX-License-Identifier: MIT
 *
 * Hellos: every field there and back, every field wrong in turn; greetings over a socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "comm/comm_stream_private.h"

static const struct comm_hello good = {
    .job = "8f2e-Job", .role = "data", .from = 7, .to = UINT32_MAX, .view = 3, .channel = 2};

static void test_round_trip(void **state)
{
    json_t *object = comm_hello_to_json(&good);
    struct comm_hello hello;

    (void)state;
    assert_int_equal(comm_hello_from_json(object, &hello), BASE_OK);
    assert_memory_equal(&hello, &good, sizeof good);
    json_decref(object);
}

static void refused(const char *key, json_t *value)
{
    json_t *object = comm_hello_to_json(&good);
    struct comm_hello hello;

    if (value != NULL)
        json_object_set_new(object, key, value);
    else
        json_object_del(object, key);
    assert_int_equal(comm_hello_from_json(object, &hello), BASE_ERR_DATA);
    json_decref(object);
}

static void test_every_field_wrong(void **state)
{
    static const char *const keys[] = {"protocol", "job", "role", "from", "to", "view", "channel"};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        refused(keys[i], NULL);
        refused(keys[i], json_null());
        refused(keys[i], json_real(1.5));
    }
    refused("protocol", json_integer(2));
    assert_non_null(strstr(base_message(), "protocol 2"));
    refused("job", json_string("a/b"));
    refused("job", json_string("0123456789012345678901234567890123456789"));
    refused("job", json_stringn_nocheck("a\0b", 3));
    refused("role", json_string("root"));
    refused("role", json_string(""));
    refused("from", json_integer(-1));
    refused("to", json_integer((json_int_t)UINT32_MAX + 1));
    refused("view", json_integer(INT64_MIN));
    refused("channel", json_integer(4));
    refused("more", json_true());
}

struct sockets {
    struct comm_stream *a, *b;
};

static struct sockets open_pair(void)
{
    struct sockets s;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(comm_stream_of(fds[0], &s.a), BASE_OK);
    assert_int_equal(comm_stream_of(fds[1], &s.b), BASE_OK);
    return s;
}

static void close_pair(struct sockets *s)
{
    comm_stream_close(s->a);
    comm_stream_close(s->b);
}

/* What follows a greeting stays in the socket. */
static void test_no_byte_too_much(void **state)
{
    struct sockets s = open_pair();
    struct comm_greeting out, in = {0};
    struct comm_hello hello;
    uint8_t byte = 0;
    bool done = true;
    size_t moved;

    (void)state;
    assert_int_equal(comm_greeting_read(&in, s.b, &done), BASE_OK);
    assert_false(done);
    comm_greeting_hello(&out, &good, false);
    assert_int_equal(comm_greeting_write(&out, s.a, &done), BASE_OK);
    assert_true(done);
    assert_int_equal(comm_stream_write(s.a, "x", 1, &moved), BASE_OK);
    assert_int_equal(comm_greeting_read(&in, s.b, &done), BASE_OK);
    assert_true(done);
    assert_int_equal(comm_greeting_to_hello(&in, false, &hello), BASE_OK);
    assert_memory_equal(&hello, &good, sizeof good);
    assert_int_equal(comm_stream_read(s.b, &byte, 1, &moved), BASE_OK);
    assert_int_equal(byte, 'x');
    close_pair(&s);
}

static void test_byte_by_byte(void **state)
{
    struct sockets s = open_pair();
    struct comm_greeting out, in = {0};
    struct comm_hello hello;
    bool done = false;
    size_t moved;

    (void)state;
    comm_greeting_hello(&out, &good, false);
    for (size_t i = 0; i < out.count; i++) {
        assert_int_equal(comm_greeting_read(&in, s.b, &done), BASE_OK);
        assert_false(done);
        assert_int_equal(comm_stream_write(s.a, out.bytes + i, 1, &moved), BASE_OK);
    }
    assert_int_equal(comm_greeting_read(&in, s.b, &done), BASE_OK);
    assert_true(done);
    assert_int_equal(comm_greeting_to_hello(&in, false, &hello), BASE_OK);
    close_pair(&s);
}

static base_status read_frame(struct comm_frame frame, const char *payload, bool *done_p,
                              struct comm_hello *hello_p)
{
    struct sockets s = open_pair();
    struct comm_greeting in = {0};
    uint8_t header[COMM_FRAME_BYTES];
    base_status st;
    size_t moved;

    comm_frame_write(&frame, header);
    assert_int_equal(
        comm_stream_write_two(s.a, header, sizeof header, payload, strlen(payload), &moved),
        BASE_OK);
    comm_stream_close(s.a);
    s.a = NULL;
    st = comm_greeting_read(&in, s.b, done_p);
    if (st == BASE_OK && *done_p)
        st = comm_greeting_to_hello(&in, false, hello_p);
    close_pair(&s);
    return st;
}

static void test_bad_frames(void **state)
{
    struct comm_frame frame = {.type = COMM_FRAME_HELLO, .count = 2};
    struct comm_hello hello;
    bool done;

    (void)state;
    frame.crc = base_crc32c(0, "{}", 2);
    assert_int_equal(read_frame(frame, "{}", &done, &hello), BASE_ERR_DATA);
    assert_int_equal(read_frame(frame, "[]", &done, &hello), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "damaged"));
    assert_int_equal(read_frame(frame, "{", &done, &hello), BASE_ERR_PEER_LOST);
    frame.type = COMM_FRAME_CONTROL;
    assert_int_equal(read_frame(frame, "{}", &done, &hello), BASE_ERR_DATA);
    frame.type = COMM_FRAME_HELLO;
    frame.count = COMM_MAX_HELLO + 1;
    assert_int_equal(read_frame(frame, "{}", &done, &hello), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "1024 at most"));
}

static void test_welcome(void **state)
{
    struct comm_greeting greeting = {0};

    (void)state;
    comm_greeting_welcome(&greeting);
    greeting.moved = greeting.count;
    assert_int_equal(comm_greeting_is_welcome(&greeting), BASE_OK);
    comm_greeting_hello(&greeting, &good, false);
    greeting.moved = greeting.count;
    assert_int_equal(comm_greeting_is_welcome(&greeting), BASE_ERR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),       cmocka_unit_test(test_every_field_wrong),
        cmocka_unit_test(test_no_byte_too_much), cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_bad_frames),       cmocka_unit_test(test_welcome),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
