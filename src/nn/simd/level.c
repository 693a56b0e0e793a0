/* SPDX-License-Identifier: MIT
 *
 * The kernels of every CPU level, and those of this process's level. Built once, for the plain
 * architecture.
 */
#include "nn/simd/simd.h"

extern const struct nn_simd nn_simd_portable;
extern const struct nn_simd nn_simd_avx2;
extern const struct nn_simd nn_simd_avx512;

const struct nn_simd *nn_simd_of(enum base_cpu_level level)
{
    static const struct nn_simd *const levels[BASE_CPU_LEVELS] = {
        [BASE_CPU_portable] = &nn_simd_portable,
        [BASE_CPU_avx2] = &nn_simd_avx2,
        [BASE_CPU_avx512] = &nn_simd_avx512,
    };

    return levels[level];
}

const struct nn_simd *nn_simd(void)
{
    return nn_simd_of(base_cpu_level());
}
