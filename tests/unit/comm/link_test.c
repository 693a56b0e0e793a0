/* SPDX-License-Identifier: MIT
 *
 * Requests over a socket pair: every length and split, both ways at once; and frames that no honest
 * peer sends, each with its own complaint and an untouched buffer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "comm/link.h"

enum { VIEW = 5, TAG = 9 };

struct ends {
    struct comm_link a, b;
    int raw; /* the other end of a where b is not used */
};

static struct ends *open_ends(bool both)
{
    struct ends *e = calloc(1, sizeof *e);
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    comm_link_init(&e->a, VIEW, COMM_FORWARD);
    comm_link_init(&e->b, VIEW, COMM_FORWARD);
    assert_int_equal(comm_stream_of(fds[0], &e->a.stream), BASE_OK);
    e->raw = fds[1];
    if (both)
        assert_int_equal(comm_stream_of(fds[1], &e->b.stream), BASE_OK);
    return e;
}

static void close_ends(struct ends *e)
{
    if (e->b.stream == NULL && e->raw >= 0)
        close(e->raw);
    comm_link_fini(&e->a);
    comm_link_fini(&e->b);
    free(e);
}

static struct comm_request request_of(bool sends, void *bytes, size_t count)
{
    return (struct comm_request){
        .channel = COMM_FORWARD, .sends = sends, .tag = TAG, .bytes = bytes, .count = count};
}

static void test_every_length(void **state)
{
    static const size_t sizes[] = {0,      1,      4063,   4064,    4065,    4096,
                                   262143, 262144, 262145, 1 << 20, 3000001, 0};
    struct ends *e = open_ends(true);
    uint8_t *out = malloc(3000001), *in = malloc(3000001);

    (void)state;
    for (size_t i = 0; i < 3000001; i++)
        out[i] = (uint8_t)(i * 31 + i / 257);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct comm_request send[2] = {request_of(true, out, sizes[i]),
                                       request_of(true, out, sizes[i])};
        struct comm_request receive[2] = {request_of(false, in, sizes[i]),
                                          request_of(false, in, sizes[i])};
        bool moved = true;

        memset(in, 0, 3000001);
        for (int j = 0; j < 2; j++) {
            comm_link_post(&e->a, &send[j]);
            comm_link_post(&e->b, &receive[j]);
        }
        while (moved) {
            moved = false;
            if (e->a.out.first != NULL)
                assert_int_equal(comm_link_send(&e->a, &moved), BASE_OK);
            if (e->b.in.first != NULL)
                assert_int_equal(comm_link_receive(&e->b, &moved), BASE_OK);
        }
        assert_true(send[0].done && send[1].done && receive[0].done && receive[1].done);
        assert_false(comm_link_busy(&e->a) || comm_link_busy(&e->b));
        assert_int_equal(receive[1].moved, sizes[i]);
        assert_memory_equal(in, out, sizes[i]);
    }
    assert_true(e->a.bytes_sent > 8000000);
    free(in);
    free(out);
    close_ends(e);
}

/* Of a frame that comes byte by byte nothing counts before its checksum. */
static void test_byte_by_byte(void **state)
{
    struct ends *e = open_ends(false);
    struct comm_frame frame = {.type = COMM_FRAME_DATA,
                               .channel = COMM_FORWARD,
                               .view = VIEW,
                               .tag = TAG,
                               .count = 5,
                               .crc = base_crc32c(0, "hello", 5)};
    char in[6] = "", bytes[COMM_FRAME_BYTES + 5];
    struct comm_request r = request_of(false, in, 5);
    bool moved = false;

    (void)state;
    comm_frame_write(&frame, (uint8_t *)bytes);
    memcpy(bytes + COMM_FRAME_BYTES, "hello", 5);
    comm_link_post(&e->a, &r);
    for (size_t i = 0; i < sizeof bytes; i++) {
        assert_int_equal(comm_link_receive(&e->a, &moved), BASE_OK);
        assert_false(r.done);
        assert_int_equal(r.moved, 0);
        assert_int_equal(write(e->raw, bytes + i, 1), 1);
    }
    assert_int_equal(comm_link_receive(&e->a, &moved), BASE_OK);
    assert_true(r.done);
    assert_string_equal(in, "hello");
    close_ends(e);
}

/* What the receiver of `count` bytes says to that frame with a payload of zeros. */
static void refused(struct comm_frame frame, size_t count, const char *why)
{
    static uint8_t zeros[4096];
    struct ends *e = open_ends(false);
    uint8_t header[COMM_FRAME_BYTES], in[4096], clean[4096];
    struct comm_request r = request_of(false, in, count);
    bool moved = false;

    memset(in, 0x5a, sizeof in);
    memset(clean, 0x5a, sizeof clean);
    comm_frame_write(&frame, header);
    assert_int_equal(write(e->raw, header, sizeof header), sizeof header);
    assert_int_equal(write(e->raw, zeros, 100), 100);
    comm_link_post(&e->a, &r);
    assert_int_equal(comm_link_receive(&e->a, &moved), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), why));
    assert_false(r.done);
    assert_int_equal(r.moved, 0);
    if (strstr(why, "damaged") == NULL)
        assert_memory_equal(in, clean, sizeof in);
    close_ends(e);
}

static void test_bad_frames(void **state)
{
    static const uint8_t zeros[100];
    const struct comm_frame good = {.type = COMM_FRAME_DATA,
                                    .channel = COMM_FORWARD,
                                    .view = VIEW,
                                    .tag = TAG,
                                    .count = 100,
                                    .crc = base_crc32c(0, zeros, 100)};
    struct comm_frame f;

    (void)state;
    refused(good, 99, "100 bytes with tag 9 where 99");
    refused(good, 200, "100 bytes");
    f = good;
    f.tag = 8;
    refused(f, 100, "tag 8");
    f = good;
    f.view = VIEW - 1;
    refused(f, 100, "view 4");
    f = good;
    f.channel = COMM_BACKWARD;
    refused(f, 100, "channel 2");
    f = good;
    f.type = COMM_FRAME_CONTROL;
    refused(f, 100, "type 3");
    f = good;
    f.type = COMM_FRAME_PART; /* more must follow, but there is no room for it */
    refused(f, 100, "and more");
    f.count = 0;
    refused(f, 100, "and more");
    f = good;
    f.count = COMM_MAX_DATA + 1;
    refused(f, 100, "at most");
    f = good;
    f.crc ^= 1;
    refused(f, 100, "damaged");
}

static void test_peer_goes(void **state)
{
    struct ends *e = open_ends(false);
    uint8_t in[8];
    struct comm_request receive = request_of(false, in, 8), send = request_of(true, in, 8);
    bool moved = false;

    (void)state;
    assert_int_equal(write(e->raw, "PLF1", 4), 4);
    close(e->raw);
    e->raw = -1;
    comm_link_post(&e->a, &receive);
    assert_int_equal(comm_link_receive(&e->a, &moved), BASE_ERR_PEER_LOST);
    assert_int_equal(comm_link_receive(&e->a, &moved), BASE_ERR_PEER_LOST);
    comm_link_post(&e->a, &send);
    assert_int_equal(comm_link_send(&e->a, &moved), BASE_ERR_PEER_LOST);
    assert_false(send.done || receive.done);
    close_ends(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_bad_frames),
        cmocka_unit_test(test_peer_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
