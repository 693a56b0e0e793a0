/* SPDX-License-Identifier: MIT
 *
 * Which CPU level's kernels run: the best this CPU has, or the one PACELINE_CPU names. Decided
 * once, on first use; any thread may ask. Built once, for the plain architecture.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "recsys/kernels/kernels.h"

extern const struct recsys_kernels recsys_kernels_portable;
extern const struct recsys_kernels recsys_kernels_avx2;
extern const struct recsys_kernels recsys_kernels_avx512;

enum { MAX_LEVELS = 3 };

static struct {
    pthread_once_t once;
    const struct recsys_kernels *levels[MAX_LEVELS + 1], *chosen; /* slowest first */
} cpu = {.once = PTHREAD_ONCE_INIT};

/* A name that is no level of this CPU is told of once, by nn/simd. */
static void choose(void)
{
    const char *wish = getenv("PACELINE_CPU");
    size_t count = 0;

    cpu.levels[count++] = &recsys_kernels_portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        cpu.levels[count++] = &recsys_kernels_avx2;
    if (count == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        cpu.levels[count++] = &recsys_kernels_avx512;
#endif
    cpu.chosen = cpu.levels[count - 1];
    for (size_t i = 0; i < count; i++)
        if (wish != NULL && strcmp(wish, cpu.levels[i]->name) == 0)
            cpu.chosen = cpu.levels[i];
}

const struct recsys_kernels *recsys_kernels(void)
{
    pthread_once(&cpu.once, choose);
    return cpu.chosen;
}

const struct recsys_kernels *const *recsys_kernels_levels(void)
{
    pthread_once(&cpu.once, choose);
    return cpu.levels;
}
