/* SPDX-License-Identifier: MIT
 *
 * Which CPU level this process uses: base/cpu_level.h.
 */
#include "base/cpu_level.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static struct {
    pthread_once_t once;
    enum base_cpu_level best, chosen;
} cpu = {.once = PTHREAD_ONCE_INIT};

const char *base_cpu_level_name(enum base_cpu_level level)
{
    static const char *const names[BASE_CPU_LEVELS] = {
        [BASE_CPU_portable] = "portable",
        [BASE_CPU_avx2] = "avx2",
        [BASE_CPU_avx512] = "avx512",
    };

    return names[level];
}

static void choose(void)
{
    const char *wish = getenv("PACELINE_CPU");
    enum base_cpu_level best = BASE_CPU_portable;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        best = BASE_CPU_avx2;
    if (best == BASE_CPU_avx2 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        best = BASE_CPU_avx512;
#endif
    cpu.best = cpu.chosen = best;
    if (wish == NULL || *wish == '\0')
        return;
    for (enum base_cpu_level level = 0; level <= best; level++)
        if (strcmp(wish, base_cpu_level_name(level)) == 0) {
            cpu.chosen = level;
            return;
        }
    base_warn("PACELINE_CPU=%s is no level of this CPU; using %s", wish, base_cpu_level_name(best));
}

enum base_cpu_level base_cpu_best(void)
{
    pthread_once(&cpu.once, choose);
    return cpu.best;
}

enum base_cpu_level base_cpu_level(void)
{
    pthread_once(&cpu.once, choose);
    return cpu.chosen;
}
