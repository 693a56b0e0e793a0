/* SPDX-License-Identifier: MIT
 *
 * Multiply-adds in registers and nothing else: the peak that every kernel is measured against.
 */
#include "nn/simd/simd_private.h"

enum {
    CHAINS = 12, /* more than latency times units of any CPU with 16 vector registers */
    WIDTH = sizeof(nn_widest) / sizeof(float),
};

/* Each thread does `rounds` times CHAINS vector multiply-adds; returns the flops of all. */
double NN_LEVEL(fma)(long rounds, int threads)
{
    volatile float one = 1.0f, tiny = 1e-30f; /* unknown to the compiler */
    double sink = 0;

#pragma omp parallel num_threads(threads) reduction(+ : sink)
    {
        const nn_widest factor = (nn_widest){0} + one, term = (nn_widest){0} + tiny;
        nn_widest sum[CHAINS];

        for (int i = 0; i < CHAINS; i++)
            sum[i] = term;
        for (long r = 0; r < rounds; r++)
#pragma GCC unroll 12
            for (int i = 0; i < CHAINS; i++)
                sum[i] = sum[i] * factor + term;
        for (int i = 0; i < CHAINS; i++)
            sink += (double)sum[i][0];
    }
    return sink >= 0 ? 2.0 * WIDTH * CHAINS * (double)rounds * threads : 0;
}
