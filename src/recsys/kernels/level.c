/* SPDX-License-Identifier: MIT
 *
 * The kernels of every CPU level, and those of this process's level. Built once, for the plain
 * architecture.
 */
#include "recsys/kernels/kernels.h"

extern const struct recsys_kernels recsys_kernels_portable;
extern const struct recsys_kernels recsys_kernels_avx2;
extern const struct recsys_kernels recsys_kernels_avx512;

const struct recsys_kernels *recsys_kernels_of(enum base_cpu_level level)
{
    static const struct recsys_kernels *const levels[BASE_CPU_LEVELS] = {
        [BASE_CPU_portable] = &recsys_kernels_portable,
        [BASE_CPU_avx2] = &recsys_kernels_avx2,
        [BASE_CPU_avx512] = &recsys_kernels_avx512,
    };

    return levels[level];
}

const struct recsys_kernels *recsys_kernels(void)
{
    return recsys_kernels_of(base_cpu_level());
}
