/* SPDX-License-Identifier: MIT
 *
 * The kernels for AVX2 (x86-64 only; built with -mavx2). Products and sums are separate
 * instructions: fused ones would round otherwise than the portable kernels.
 */
#include "coll/kernels.h"

#if defined(__x86_64__)

#    include <immintrin.h>
#    include <string.h>

enum { LANES = 8, BLOCK = 4 * LANES };

struct job {
    const float *const *x;
    const float *scale;
    float *const *y;
    int sources, outs;
};

/* y[…][i … i + BLOCK) of aligned or any memory; `scaled`, `sources` and `stream` are constants
 * where it is inlined. */
static inline __attribute__((always_inline)) void block(const struct job *j, size_t i, int sources,
                                                        bool scaled, bool stream)
{
    __m256 sum[4];

    for (int v = 0; v < 4; v++) {
        sum[v] = _mm256_loadu_ps(j->x[0] + i + v * LANES);
        if (scaled)
            sum[v] = _mm256_mul_ps(sum[v], _mm256_broadcast_ss(j->scale));
    }
    for (int k = 1; k < sources; k++)
        for (int v = 0; v < 4; v++) {
            __m256 x = _mm256_loadu_ps(j->x[k] + i + v * LANES);

            if (scaled)
                x = _mm256_mul_ps(x, _mm256_broadcast_ss(j->scale + k));
            sum[v] = _mm256_add_ps(sum[v], x);
        }
    for (int k = 0; k < j->outs; k++)
        for (int v = 0; v < 4; v++)
            if (stream)
                _mm256_stream_ps(j->y[k] + i + v * LANES, sum[v]);
            else
                _mm256_storeu_ps(j->y[k] + i + v * LANES, sum[v]);
}

static inline __attribute__((always_inline)) size_t
blocks(const struct job *j, size_t from, size_t to, int sources, bool scaled, bool stream)
{
    size_t i = from;

    for (; i + BLOCK <= to; i += BLOCK)
        block(j, i, sources, scaled, stream);
    return i;
}

/* The usual group sizes get loops of their own. */
static inline __attribute__((always_inline)) size_t by_sources(const struct job *j, size_t from,
                                                               size_t to, bool scaled, bool stream)
{
    switch (j->sources) {
    case 1:
        return blocks(j, from, to, 1, scaled, stream);
    case 2:
        return blocks(j, from, to, 2, scaled, stream);
    case 3:
        return blocks(j, from, to, 3, scaled, stream);
    case 4:
        return blocks(j, from, to, 4, scaled, stream);
    default:
        return blocks(j, from, to, j->sources, scaled, stream);
    }
}

static void one_by_one(const struct job *j, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        float sum = (j->scale ? j->scale[0] : 1.0f) * j->x[0][i];

        for (int k = 1; k < j->sources; k++)
            sum += (j->scale ? j->scale[k] : 1.0f) * j->x[k][i];
        for (int k = 0; k < j->outs; k++)
            j->y[k][i] = sum;
    }
}

/* Floats before the first aligned one; more than `count`: the outputs are not aligned alike. */
static size_t head(size_t count, int outs, float *const *y)
{
    size_t floats = -(uintptr_t)y[0] % 32 / sizeof(float);

    for (int k = 0; k < outs; k++)
        if (((uintptr_t)y[k] + floats * sizeof(float)) % 32 != 0)
            return count + 1;
    return floats;
}

static void sum_avx2(size_t count, int sources, const float *const *x, const float *scale, int outs,
                     float *const *y, bool stream)
{
    const struct job j = {x, scale, y, sources, outs};
    size_t i = 0;

    if (stream && (i = head(count, outs, y)) > count) {
        stream = false;
        i = 0;
    }
    one_by_one(&j, 0, i);
    if (stream) {
        i = scale ? by_sources(&j, i, count, true, true) : by_sources(&j, i, count, false, true);
        _mm_sfence();
    } else {
        i = scale ? by_sources(&j, i, count, true, false) : by_sources(&j, i, count, false, false);
    }
    one_by_one(&j, i, count);
}

static __m256i round_to_bf16(__m256 x)
{
    const __m256i bits = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    __m256i even = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);

    even = _mm256_blendv_epi8(even, quiet, _mm256_castps_si256(is_nan));
    return _mm256_srli_epi32(even, 16);
}

static __m256i pack_16(const float *x)
{
    __m256i low = round_to_bf16(_mm256_loadu_ps(x));
    __m256i high = round_to_bf16(_mm256_loadu_ps(x + LANES));

    return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
}

static void pack_avx2(size_t count, const float *x, uint16_t *y)
{
    float tail[2 * LANES] = {0};
    size_t i = 0;
    __m256i last;

    for (; i + 2 * LANES <= count; i += 2 * LANES)
        _mm256_storeu_si256((__m256i_u *)(y + i), pack_16(x + i));
    memcpy(tail, x + i, (count - i) * sizeof *x);
    last = pack_16(tail);
    memcpy(y + i, &last, (count - i) * sizeof *y);
}

static void unpack_avx2(size_t count, const uint16_t *x, float *y)
{
    size_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(x + i)));

        _mm256_storeu_ps(y + i, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)));
    }
    for (; i < count; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;

        memcpy(y + i, &bits, sizeof bits);
    }
}

const struct coll_kernels coll_kernels_avx2 = {
    .sum = sum_avx2,
    .pack = pack_avx2,
    .unpack = unpack_avx2,
};

#endif
