/* SPDX-License-Identifier: MIT
 *
 * Frame headers: what is written is read again; every damaged bit and every wrong field is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/crc32c.h"
#include "comm/frame.h"
#include "comm/group.h"

static const struct comm_frame good = {
    .type = COMM_FRAME_DATA,
    .channel = COMM_BACKWARD,
    .view = 0x01020304,
    .tag = 0x0a0b0c0d,
    .count = 1000000,
    .crc = 0xdeadbeef,
};

static base_status read_it(const uint8_t *header, size_t count, uint64_t limit,
                           struct comm_frame *frame_p)
{
    struct base_cursor c = base_cursor_of(header, count);

    return comm_frame_read(&c, limit, frame_p);
}

static void test_round_trip(void **state)
{
    uint8_t header[COMM_FRAME_BYTES];
    struct comm_frame frame;

    (void)state;
    comm_frame_write(&good, header);
    assert_memory_equal(header, "PLF1\5\0\2\0\4\3\2\1\r\f\v\n", 16);
    assert_int_equal(read_it(header, sizeof header, COMM_MAX_DATA, &frame), BASE_OK);
    assert_memory_equal(&frame, &good, sizeof good);
    assert_int_equal(read_it(header, sizeof header, good.count, &frame), BASE_OK);
}

static void test_every_flipped_bit(void **state)
{
    uint8_t header[COMM_FRAME_BYTES];
    struct comm_frame frame;

    (void)state;
    comm_frame_write(&good, header);
    for (int bit = 0; bit < 8 * COMM_FRAME_BYTES; bit++) {
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(read_it(header, sizeof header, UINT64_MAX, &frame), BASE_ERR_DATA);
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void test_short(void **state)
{
    uint8_t header[COMM_FRAME_BYTES];
    struct comm_frame frame;

    (void)state;
    comm_frame_write(&good, header);
    for (size_t count = 0; count < sizeof header; count++)
        assert_int_equal(read_it(header, count, COMM_MAX_DATA, &frame), BASE_ERR_DATA);
}

static void refused(struct comm_frame frame, uint64_t limit, const char *why)
{
    uint8_t header[COMM_FRAME_BYTES];

    comm_frame_write(&frame, header);
    assert_int_equal(read_it(header, sizeof header, limit, &frame), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), why));
}

/* Fields that are wrong although the checksum is right. */
static void test_wrong_fields(void **state)
{
    struct comm_frame frame = good;

    (void)state;
    refused(good, good.count - 1, "1000000 bytes, 999999 at most");
    frame.count = UINT64_MAX;
    refused(frame, COMM_MAX_DATA, "at most");
    frame = good;
    frame.type = 0;
    refused(frame, COMM_MAX_DATA, "unknown type 0");
    frame.type = COMM_FRAME_TYPES;
    refused(frame, COMM_MAX_DATA, "unknown type");
    frame = good;
    frame.channel = COMM_CHANNELS;
    refused(frame, COMM_MAX_DATA, "unknown channel");
}

static void test_payload(void **state)
{
    struct comm_frame frame = good;

    (void)state;
    frame.crc = base_crc32c(0, "payload", 7);
    assert_int_equal(comm_frame_check(&frame, base_crc32c(0, "payload", 7)), BASE_OK);
    assert_int_equal(comm_frame_check(&frame, base_crc32c(0, "paylaod", 7)), BASE_ERR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_every_flipped_bit),
        cmocka_unit_test(test_short),      cmocka_unit_test(test_wrong_fields),
        cmocka_unit_test(test_payload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
