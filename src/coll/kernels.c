/* SPDX-License-Identifier: MIT
 *
 * The portable kernels, and the choice of a level.
 */
#include "coll/kernels.h"

#include <pthread.h>
#include <stdlib.h>
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
    .name = "portable",
    .sum = sum_portable,
    .pack = pack_portable,
    .unpack = unpack_portable,
};

#if defined(__x86_64__)
extern const struct coll_kernels coll_kernels_avx2;
#endif

static struct {
    pthread_once_t once;
    const struct coll_kernels *levels[3], *chosen;
} cpu = {.once = PTHREAD_ONCE_INIT, .levels = {&portable}};

static void choose(void)
{
    const char *wish = getenv("PACELINE_CPU");

    cpu.chosen = &portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        cpu.chosen = cpu.levels[1] = &coll_kernels_avx2;
#endif
    if (wish != NULL && strcmp(wish, portable.name) == 0)
        cpu.chosen = &portable;
}

const struct coll_kernels *coll_kernels(void)
{
    pthread_once(&cpu.once, choose);
    return cpu.chosen;
}

const struct coll_kernels *const *coll_kernels_levels(void)
{
    pthread_once(&cpu.once, choose);
    return cpu.levels;
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
