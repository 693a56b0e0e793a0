/* SPDX-License-Identifier: MIT
 *
 * Bytes of protocol buffers against those of the encoding's own documentation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

#include "model/protobuf.h"

static void assert_bytes(struct base_str *s, const char *bytes, size_t count)
{
    assert_int_equal(s->length, count);
    assert_memory_equal(s->text, bytes, count);
    base_str_fini(s);
}
#define ASSERT_BYTES(s, literal) assert_bytes(&(s), literal, sizeof(literal) - 1)

static void test_numbers(void **state)
{
    struct base_str s = {0};

    (void)state;
    model_pb_int(&s, 1, 150);
    ASSERT_BYTES(s, "\x08\x96\x01");
    model_pb_int(&s, 1, 0);
    ASSERT_BYTES(s, "\x08\x00");
    model_pb_int(&s, 1, 127);
    model_pb_int(&s, 1, 128);
    ASSERT_BYTES(s, "\x08\x7f\x08\x80\x01");
    model_pb_int(&s, 2, -1); /* ten bytes, as int64 has it */
    ASSERT_BYTES(s, "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    model_pb_int(&s, 20, 1); /* a tag of two bytes */
    ASSERT_BYTES(s, "\xa0\x01\x01");
    model_pb_float(&s, 2, 1.0f);
    ASSERT_BYTES(s, "\x15\x00\x00\x80\x3f");
}

static void test_lengths(void **state)
{
    struct base_str s = {0}, inside = {0}, empty = {0};

    (void)state;
    model_pb_text(&s, 2, "testing");
    ASSERT_BYTES(s, "\x12\x07testing");
    model_pb_text(&s, 1, "");
    ASSERT_BYTES(s, "\x0a\x00");
    model_pb_int(&inside, 1, 150);
    model_pb_message(&s, 3, &inside);
    assert_null(inside.text);
    model_pb_message(&s, 4, &empty);
    ASSERT_BYTES(s, "\x1a\x03\x08\x96\x01\x22\x00");
    model_pb_length(&s, 9, 300);
    ASSERT_BYTES(s, "\x4a\xac\x02");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
