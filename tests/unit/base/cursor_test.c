/* SPDX-License-Identifier: MIT
 *
 * The bounds-checked cursor: every read at the last byte that serves and one past it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cursor.h"

static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 0x88, 9};

static void test_reads(void **state)
{
    struct base_cursor c = base_cursor_of(bytes, sizeof bytes);
    const uint8_t *at = NULL;
    uint64_t wide;
    uint32_t word;
    uint16_t half;
    uint8_t byte;

    (void)state;
    assert_int_equal(base_cursor_le16(&c, &half), BASE_OK);
    assert_int_equal(half, 0x0201);
    c = base_cursor_of(bytes, sizeof bytes);
    assert_int_equal(base_cursor_be32(&c, &word), BASE_OK);
    assert_int_equal(word, 0x01020304);
    c = base_cursor_of(bytes, sizeof bytes);
    assert_int_equal(base_cursor_le32(&c, &word), BASE_OK);
    assert_int_equal(word, 0x04030201);
    assert_int_equal(base_cursor_left(&c), 5);
    assert_int_equal(base_cursor_skip(&c, 4, &at), BASE_OK);
    assert_ptr_equal(at, bytes + 4);
    assert_int_equal(base_cursor_u8(&c, &byte), BASE_OK);
    assert_int_equal(byte, 9);
    assert_int_equal(base_cursor_left(&c), 0);
    c = base_cursor_of(bytes, 8);
    assert_int_equal(base_cursor_le64(&c, &wide), BASE_OK);
    assert_true(wide == 0x8807060504030201ull);
}

/* A short read fails, moves nothing, and leaves no stale value behind. */
static void test_past_the_end(void **state)
{
    struct base_cursor c = base_cursor_of(bytes, 7);
    const uint8_t *at = bytes;
    uint64_t wide = 77;
    uint32_t word = 77;
    uint16_t half = 77;
    uint8_t byte = 77;

    (void)state;
    assert_int_equal(base_cursor_le64(&c, &wide), BASE_ERR_DATA);
    assert_true(wide == 0);
    assert_int_equal(base_cursor_left(&c), 7);
    assert_non_null(strstr(base_message(), "8 bytes wanted, 7 left"));
    assert_int_equal(base_cursor_skip(&c, 8, &at), BASE_ERR_DATA);
    assert_null(at);
    assert_int_equal(base_cursor_skip(&c, SIZE_MAX, &at), BASE_ERR_DATA);
    assert_int_equal(base_cursor_skip(&c, 4, &at), BASE_OK);
    assert_int_equal(base_cursor_be32(&c, &word), BASE_ERR_DATA);
    assert_int_equal(word, 0);
    word = 77;
    assert_int_equal(base_cursor_le32(&c, &word), BASE_ERR_DATA);
    assert_int_equal(word, 0);
    assert_int_equal(base_cursor_skip(&c, 2, &at), BASE_OK);
    assert_int_equal(base_cursor_le16(&c, &half), BASE_ERR_DATA);
    assert_int_equal(half, 0);
    assert_int_equal(base_cursor_skip(&c, 1, &at), BASE_OK);
    assert_int_equal(base_cursor_u8(&c, &byte), BASE_ERR_DATA);
    assert_int_equal(byte, 0);
}

static void test_empty(void **state)
{
    struct base_cursor c = base_cursor_of(NULL, 0);
    const uint8_t *at = NULL;

    (void)state;
    assert_int_equal(base_cursor_left(&c), 0);
    assert_int_equal(base_cursor_skip(&c, 1, &at), BASE_ERR_DATA);
    assert_int_equal(base_cursor_skip(&c, 0, &at), BASE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_past_the_end),
        cmocka_unit_test(test_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
