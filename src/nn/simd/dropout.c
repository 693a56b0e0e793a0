/* SPDX-License-Identifier: MIT
 *
 * Dropout. Random words are Philox4x32-10 (base/rng.c says the same for one block) of eight blocks
 * at once, in registers from the first round to the last. A word is the low half of a 64-bit lane,
 * whose high half is left-over: nothing reads it, so a round is a multiplication, a shift and two
 * exclusive-ors.
 */
#include "base/rng.h"
#include "nn/simd/simd_private.h"

#if defined(__AVX2__)
#    include <immintrin.h>
#endif

enum {
    ROUNDS = 10,
    PAIR = 2,       /* vectors of four blocks, against the latency of a round */
    WORDS = 16,     /* of four blocks */
    SPAN = 1 << 12, /* elements of a task; a multiple of PAIR * WORDS */
};

typedef uint64_t v4 __attribute__((vector_size(32)));
typedef uint64_t v4_at __attribute__((vector_size(32), aligned(4), may_alias));

static const uint64_t low_half = UINT32_MAX;

/* The products of the low halves. gcc 12 does not see that the high ones count nothing and would
 * multiply three times: the one place that names an instruction. */
NN_INLINE v4 product(v4 a, uint32_t b)
{
#if defined(__AVX2__)
    return (v4)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
    return (a & low_half) * (uint64_t)b;
#endif
}

/* The words of four blocks, block after block. Lanes hold blocks 0, 2, 1, 3, so that putting the
 * words of a block side by side moves nothing between the halves of a register. */
NN_INLINE void store_words(const v4 word[4], uint32_t *to)
{
    const v4 front = (word[0] & low_half) | word[1] << 32;
    const v4 back = (word[2] & low_half) | word[3] << 32;

    *(v4_at *)to = __builtin_shufflevector(front, back, 0, 4, 2, 6);
    *(v4_at *)(to + WORDS / 2) = __builtin_shufflevector(front, back, 1, 5, 3, 7);
}

/* The words of 4 * PAIR blocks from `first` on. */
NN_INLINE void philox(const struct base_rng *rng, uint32_t first, uint32_t to[PAIR * WORDS])
{
    uint32_t k0 = rng->key[0], k1 = rng->key[1];
    v4 word[PAIR][4];

#pragma GCC unroll 2
    for (uint32_t p = 0; p < PAIR; p++) {
        word[p][0] = (v4){0, 2, 1, 3} + (uint64_t)(first + 4 * p);
#pragma GCC unroll 4
        for (int j = 1; j < 4; j++)
            word[p][j] = (v4){0} + (uint64_t)rng->counter[j];
    }
#pragma GCC unroll 10
    for (int round = 0; round < ROUNDS; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
#pragma GCC unroll 2
        for (int p = 0; p < PAIR; p++) {
            const v4 even = product(word[p][0], 0xD2511F53u);
            const v4 odd = product(word[p][2], 0xCD9E8D57u);

            word[p][0] = odd >> 32 ^ word[p][1] ^ (uint64_t)k0;
            word[p][1] = odd;
            word[p][2] = even >> 32 ^ word[p][3] ^ (uint64_t)k1;
            word[p][3] = even;
        }
#pragma GCC unroll 2
    for (int p = 0; p < PAIR; p++)
        store_words(word[p], to + p * WORDS);
}

/* What lives: base_rng_unit(word) >= rate, as whole numbers. */
struct law {
    int32_t least;
    float factor;
};

static struct law law_of(float rate)
{
    const float words = rate * 0x1p24f; /* exact */
    const int32_t whole = (int32_t)words;

    return (struct law){whole + ((float)whole < words), 1.0f / (1.0f - rate)};
}

NN_INLINE void drop(struct law law, size_t count, const uint32_t *word, const float *x, float *y,
                    uint8_t *marks)
{
#pragma omp simd
    for (size_t j = 0; j < count; j++) {
        const float value = x[j] * law.factor;

        y[j] = (int32_t)(word[j] >> 8) >= law.least ? value : 0;
    }
    if (marks)
        for (size_t j = 0; j < count; j++)
            marks[j] = (int32_t)(word[j] >> 8) >= law.least ? marks[j] : NN_POOL_DEAD;
}

/* Elements begin … end-1 of a sample; marks may be NULL. */
static void drop_span(const struct base_rng *rng, struct law law, size_t begin, size_t end,
                      const float *x, float *y, uint8_t *marks)
{
    for (size_t i = begin; i < end; i += PAIR * WORDS) {
        _Alignas(32) uint32_t word[PAIR * WORDS];

        philox(rng, (uint32_t)(i / 4), word);
        if (end - i >= PAIR * WORDS)
            drop(law, PAIR * WORDS, word, x + i, y + i, marks ? marks + i : NULL);
        else
            drop(law, end - i, word, x + i, y + i, marks ? marks + i : NULL);
    }
}

/* x, y, marks (n,floats); ids (n) */
void NN_LEVEL(dropout)(int n, size_t floats, float rate, uint64_t seed, uint32_t layer,
                       uint32_t epoch, const uint32_t *ids, const float *x, float *y,
                       uint8_t *marks)
{
    const struct law law = law_of(rate);

#pragma omp parallel for collapse(2) schedule(static)
    for (int j = 0; j < n; j++)
        for (size_t at = 0; at < floats; at += SPAN) {
            const struct base_rng rng =
                base_rng_of(seed, BASE_STREAM_DROPOUT, layer, epoch, ids[j]);
            const size_t end = floats - at < SPAN ? floats : at + SPAN, sample = (size_t)j * floats;

            drop_span(&rng, law, at, end, x + sample, y + sample, marks ? marks + sample : NULL);
        }
}
