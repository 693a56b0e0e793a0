/* SPDX-License-Identifier: MIT */
#include "nn/threads.h"

#include "base/cpus.h"

#ifdef _OPENMP
#    include <omp.h>

int nn_threads_set(int threads)
{
    if (threads <= 0)
        threads = base_cpus(omp_get_num_procs());
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    return threads;
}

int nn_threads(void)
{
    return omp_get_max_threads();
}
#else
int nn_threads_set(int threads)
{
    (void)threads;
    return 1;
}

int nn_threads(void)
{
    return 1;
}
#endif
