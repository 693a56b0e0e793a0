/* SPDX-License-Identifier: MIT
 *
 * CRC32C against the vectors of RFC 3720 and against one bit at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

static uint32_t bit_by_bit(uint32_t crc, const uint8_t *p, size_t count)
{
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void test_known_vectors(void **state)
{
    uint8_t bytes[32];

    (void)state;
    assert_int_equal(base_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(base_crc32c(0, "", 0), 0);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(base_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(base_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(base_crc32c(0, bytes, sizeof bytes), 0x46dd794e);
    assert_int_equal(base_crc32c_portable(0, bytes, sizeof bytes), 0x46dd794e);
}

/* Every length around a word and around three streams, every alignment. */
static void test_lengths_and_alignments(void **state)
{
    static const size_t lengths[] = {0,    1,    7,    8,    9,    63,   3071,
                                     3072, 3073, 6143, 6144, 6151, 9217, 20000};
    uint8_t *bytes = malloc(20008);

    (void)state;
    assert_non_null(bytes);
    for (uint32_t i = 0; i < 20008; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t at = 0; at < 8; at++) {
            uint32_t want = bit_by_bit(7, bytes + at, lengths[l]);

            assert_int_equal(base_crc32c(7, bytes + at, lengths[l]), want);
            assert_int_equal(base_crc32c_portable(7, bytes + at, lengths[l]), want);
        }
    free(bytes);
}

static void test_continues(void **state)
{
    static const char text[] = "a message that arrives in two parts";
    uint32_t whole = base_crc32c(0, text, sizeof text);

    (void)state;
    for (size_t cut = 0; cut <= sizeof text; cut++)
        assert_int_equal(base_crc32c(base_crc32c(0, text, cut), text + cut, sizeof text - cut),
                         whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_vectors),
        cmocka_unit_test(test_lengths_and_alignments),
        cmocka_unit_test(test_continues),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
