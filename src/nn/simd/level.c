/* SPDX-License-Identifier: MIT
 *
 * Which CPU level's kernels run: the best this CPU has, or the one PACELINE_CPU names. Decided
 * once, on first use; any thread may ask. Built once, for the plain architecture.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nn/simd/simd.h"

enum { MAX_LEVELS = 4 };

extern const struct nn_simd nn_simd_portable;
extern const struct nn_simd nn_simd_avx2;
extern const struct nn_simd nn_simd_avx512;

static struct {
    pthread_once_t once;
    const struct nn_simd *levels[MAX_LEVELS + 1]; /* slowest first */
    const struct nn_simd *chosen;
} cpu = {.once = PTHREAD_ONCE_INIT};

static void choose(void)
{
    const char *wish = getenv("PACELINE_CPU");
    size_t count = 0;

    cpu.levels[count++] = &nn_simd_portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        cpu.levels[count++] = &nn_simd_avx2;
    if (count == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        cpu.levels[count++] = &nn_simd_avx512;
#endif
    cpu.chosen = cpu.levels[count - 1];
    if (!wish || !*wish)
        return;
    for (size_t i = 0; i < count; i++)
        if (strcmp(wish, cpu.levels[i]->name) == 0) {
            cpu.chosen = cpu.levels[i];
            return;
        }
    base_warn("PACELINE_CPU=%s is no level of this CPU; using %s", wish, cpu.chosen->name);
}

const struct nn_simd *nn_simd(void)
{
    pthread_once(&cpu.once, choose);
    return cpu.chosen;
}

const struct nn_simd *const *nn_simd_levels(void)
{
    pthread_once(&cpu.once, choose);
    return cpu.levels;
}
