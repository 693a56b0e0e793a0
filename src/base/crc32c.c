/* SPDX-License-Identifier: MIT
 *
 * CRC32C (Castagnoli, RFC 3720): the processor's instruction where there is one, eight tables
 * otherwise. The instruction takes three cycles and can begin one each cycle, so three streams run
 * side by side and are joined by carry-less multiplication (Gopal et al., Intel 2011).
 */
#include "base/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

enum { POLYNOMIAL = (int)0x82f63b78, SLICES = 8 };

static uint32_t table[SLICES][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((uint32_t)POLYNOMIAL & -(crc & 1));
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int s = 1; s < SLICES; s++)
            table[s][i] = (table[s - 1][i] >> 8) ^ table[0][table[s - 1][i] & 255];
}

uint32_t base_crc32c_portable(uint32_t crc, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;

    pthread_once(&once, make_table);
    crc = ~crc;
    for (; count >= SLICES; count -= SLICES, p += SLICES) {
        uint64_t word;
        uint32_t next = 0;

        memcpy(&word, p, sizeof word);
        word = le64toh(word) ^ crc;
        for (int s = 0; s < SLICES; s++)
            next ^= table[SLICES - 1 - s][(word >> (8 * s)) & 255];
        crc = next;
    }
    while (count-- > 0)
        crc = (crc >> 8) ^ table[0][(crc ^ *p++) & 255];
    return ~crc;
}

#ifdef __x86_64__
#    include <immintrin.h>

enum { STREAM = 1024, WORDS = STREAM / 8 }; /* bytes of one of the three streams */
/* x^(8n-33) mod P, bits reflected: moves a CRC past n bytes. */
enum { PAST_ONE = (int)0x170076fa, PAST_TWO = (int)0xa51b6135 };

static inline uint64_t word_at(const uint8_t *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof word);
    return word;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t three_streams(uint64_t crc,
                                                                       const uint8_t *p)
{
    uint64_t a = crc, b = 0, c = 0;
    __m128i ab;

    for (int i = 0; i < WORDS; i++, p += 8) {
        a = _mm_crc32_u64(a, word_at(p));
        b = _mm_crc32_u64(b, word_at(p + STREAM));
        c = _mm_crc32_u64(c, word_at(p + 2 * STREAM));
    }
    ab = _mm_xor_si128(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a), _mm_cvtsi32_si128(PAST_TWO), 0),
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)b), _mm_cvtsi32_si128(PAST_ONE), 0));
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(ab)) ^ c;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p,
                                                                   size_t count)
{
    uint64_t x = ~crc;

    for (; count >= 3 * STREAM; count -= 3 * STREAM, p += 3 * STREAM)
        x = three_streams(x, p);
    for (; count >= 8; count -= 8, p += 8)
        x = _mm_crc32_u64(x, word_at(p));
    while (count-- > 0)
        x = _mm_crc32_u8((uint32_t)x, *p++);
    return ~(uint32_t)x;
}
#endif

uint32_t base_crc32c(uint32_t crc, const void *bytes, size_t count)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        return crc_sse42(crc, bytes, count);
#endif
    return base_crc32c_portable(crc, bytes, count);
}
