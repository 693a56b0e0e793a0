/* SPDX-License-Identifier: MIT
 *
 * Which CPU level's kernels run: the best this CPU has, or the one PACELINE_CPU names. Decided
 * once, on first use; any thread may ask. Built once, for the plain architecture. There are no
 * kernels for AVX-512 of their own: a CPU that has it runs those for AVX2.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "recsys/kernels/kernels.h"

extern const struct recsys_kernels recsys_kernels_portable;
extern const struct recsys_kernels recsys_kernels_avx2;

static struct {
    pthread_once_t once;
    const struct recsys_kernels *levels[3], *chosen;
} cpu = {.once = PTHREAD_ONCE_INIT, .levels = {&recsys_kernels_portable}};

static void choose(void)
{
    const char *wish = getenv("PACELINE_CPU");

    cpu.chosen = &recsys_kernels_portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        cpu.chosen = cpu.levels[1] = &recsys_kernels_avx2;
#endif
    if (wish != NULL && strcmp(wish, recsys_kernels_portable.name) == 0)
        cpu.chosen = &recsys_kernels_portable;
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
