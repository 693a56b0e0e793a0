/* SPDX-License-Identifier: MIT
 *
 * CPU levels: kernels are compiled once for each, and a process uses those of one level. This file
 * says which one; the tables of kernels (nn/simd, recsys/kernels, coll/kernels) are indexed by it.
 */
#ifndef BASE_CPU_LEVEL_H
#define BASE_CPU_LEVEL_H

enum base_cpu_level {
    BASE_CPU_portable, /* the slowest */
    BASE_CPU_avx2,     /* with FMA */
    BASE_CPU_avx512,
    BASE_CPU_LEVELS
};

const char *base_cpu_level_name(enum base_cpu_level level);

/* The best level of this CPU. It can run the kernels of all levels below, too. */
enum base_cpu_level base_cpu_best(void);

/* The level of this process: the best, or the one that PACELINE_CPU names. A name that is no level
 * of this CPU is ignored with a warning. Decided once, on first use; any thread may ask. */
enum base_cpu_level base_cpu_level(void);

#endif
