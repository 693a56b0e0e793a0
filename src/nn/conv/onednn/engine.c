/* SPDX-License-Identifier: MIT
 *
 * oneDNN's engine and stream: one pair for the process, made on first use and kept to its end.
 */
#include <pthread.h>

#include "base/cpu_level.h"
#include "nn/conv/onednn/onednn_private.h"

static struct {
    pthread_once_t once;
    dnnl_status_t status;
    struct nn_onednn dnnl;
} process = {.once = PTHREAD_ONCE_INIT};

static void start(void)
{
    /* oneDNN's kernels are those of our level, which decides which bits come out. Elsewhere than on
     * x86 there is nothing to hold back. */
    if (base_cpu_level() == BASE_CPU_portable)
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    if (base_cpu_level() == BASE_CPU_avx2)
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    process.status = dnnl_engine_create(&process.dnnl.engine, dnnl_cpu, 0);
    if (process.status == dnnl_success)
        process.status = dnnl_stream_create(&process.dnnl.stream, process.dnnl.engine,
                                            dnnl_stream_default_flags);
}

base_status nn_onednn_get(struct nn_onednn *dnnl_p)
{
    pthread_once(&process.once, start);
    *dnnl_p = process.dnnl;
    return nn_onednn_check(process.status, "start its CPU engine");
}

base_status nn_onednn_check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return BASE_OK;
    if (status == dnnl_out_of_memory)
        return base_fail(BASE_ERR_MEMORY, "not enough memory for oneDNN to %s", what);
    return base_fail(BASE_ERR_INTERNAL, "oneDNN could not %s (status %d)", what, (int)status);
}
