/* SPDX-License-Identifier: MIT
 *
 * The portable kernels, and the tables of all levels.
 */
#include "coll/kernels.h"

#include <string.h>

enum { BLOCK = 64 }; /* floats kept in registers or the first cache while sources are added */

static void add_block(float *restrict sum, const float *restrict x, float scale, bool first)
{
    if (first)
        for (int i = 0; i < BLOCK; i++)
            sum[i] = scale * x[i];
    else
        for (int i = 0; i < BLOCK; i++)
            sum[i] += scale * x[i];
}

static void sum_portable(size_t count, int sources, const float *const *x, const float *scale,
                         int outs, float *const *y, bool stream)
{
    size_t i = 0;

    (void)stream; /* there is no portable way around the caches */
    for (; i + BLOCK <= count; i += BLOCK) {
        float sum[BLOCK];

        for (int k = 0; k < sources; k++)
            add_block(sum, x[k] + i, scale ? scale[k] : 1.0f, k == 0);
        for (int k = 0; k < outs; k++)
            memcpy(y[k] + i, sum, sizeof sum);
    }
    for (; i < count; i++) {
        float sum = (scale ? scale[0] : 1.0f) * x[0][i];

        for (int k = 1; k < sources; k++)
            sum += (scale ? scale[k] : 1.0f) * x[k][i];
        for (int k = 0; k < outs; k++)
            y[k][i] = sum;
    }
}

static void pack_portable(size_t count, const float *x, uint16_t *y)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, x + i, sizeof bits);
        if ((bits & 0x7fffffff) > 0x7f800000)
            bits |= 0x400000; /* a NaN must not round to infinity */
        else
            bits += 0x7fff + (bits >> 16 & 1);
        y[i] = (uint16_t)(bits >> 16);
    }
}

static void unpack_portable(size_t count, const uint16_t *x, float *y)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;

        memcpy(y + i, &bits, sizeof bits);
    }
}

static const struct coll_kernels portable = {
    .sum = sum_portable,
    .pack = pack_portable,
    .unpack = unpack_portable,
};

#if defined(__x86_64__)
extern const struct coll_kernels coll_kernels_avx2;
#endif

const struct coll_kernels *coll_kernels_of(enum base_cpu_level level)
{
    static const struct coll_kernels *const levels[BASE_CPU_LEVELS] = {
        [BASE_CPU_portable] = &portable,
#if defined(__x86_64__)
        [BASE_CPU_avx2] = &coll_kernels_avx2,
        [BASE_CPU_avx512] = &coll_kernels_avx2, /* memory is the limit; the bits are the same */
#endif
    };

    return levels[level];
}

const struct coll_kernels *coll_kernels(void)
{
    return coll_kernels_of(base_cpu_level());
}

void coll_scale(size_t count, float scale, float *x)
{
    const float *source = x;

    coll_kernels()->sum(count, 1, &source, &scale, 1, &x, false);
}

void coll_add(size_t count, const float *more, float scale, float *x)
{
    const float *sources[] = {more, x}, scales[] = {1.0f, scale};

    coll_kernels()->sum(count, 2, sources, scales, 1, &x, false);
}

void coll_round(size_t count, float *x)
{
    enum { PIECE = 256 };
    uint16_t packed[PIECE];

    for (size_t i = 0; i < count; i += PIECE) {
        size_t piece = count - i < PIECE ? count - i : PIECE;

        coll_kernels()->pack(piece, x + i, packed);
        coll_kernels()->unpack(piece, packed, x + i);
    }
}
