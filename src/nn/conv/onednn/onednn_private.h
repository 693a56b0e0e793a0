/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of nn/conv/onednn and forms/onednn.c, the only ones that know dnnl.h (the C
 * API of oneDNN 2.x; 3.x makes primitives differently).
 *
 * An operation is one oneDNN primitive together with what it takes to run it on memory in our
 * layouts: where its implementation wants another layout, the operand goes through a reorder and
 * a piece of the caller's scratch.
 */
#ifndef NN_CONV_ONEDNN_PRIVATE_H
#define NN_CONV_ONEDNN_PRIVATE_H

#include <dnnl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* The process's one engine and stream, made on first use; any thread may ask. A CPU stream holds
 * no state, so threads may share it. */
struct nn_onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};
base_status nn_onednn_get(struct nn_onednn *dnnl_p);

/* BASE_ERR_INTERNAL (or _MEMORY) naming `what` unless `status` is success. */
base_status nn_onednn_check(dnnl_status_t status, const char *what);

enum { NN_ONEDNN_OPERANDS = 4 };

struct nn_operand {
    int arg;            /* DNNL_ARG_SRC, … */
    dnnl_query_t query; /* dnnl_query_src_md, …: asks what layout the implementation wants */
    bool weights;       /* its layout is the first we give up */
    bool output;
    dnnl_memory_desc_t ours;
    /* Filled by nn_onednn_op_init: */
    dnnl_memory_t outside;    /* the caller's memory */
    dnnl_memory_t inside;     /* in scratch, in the layout wanted; NULL: ours is that layout */
    dnnl_primitive_t reorder; /* between the two, or NULL */
    size_t offset;            /* of `inside` in the scratch */
};

struct nn_op {
    struct nn_operand operand[NN_ONEDNN_OPERANDS]; /* the caller fills the first part of each */
    int operands;
    dnnl_primitive_desc_t chosen;
    dnnl_primitive_t primitive;
    dnnl_memory_t scratchpad;
    size_t scratchpad_offset, scratch_bytes;
    const char *implementation; /* oneDNN's name of it, lives as long as `chosen` */
};

/* Writes the descriptor of the convolution for these layouts, one for each operand in order. */
typedef dnnl_status_t (*nn_op_describe)(const void *context, const dnnl_memory_desc_t *layouts,
                                        dnnl_convolution_desc_t *descriptor_p);

/* `op` has its operands and is zero elsewhere. `forward`: the forward operation, which oneDNN
 * wants to see when it makes a backward one, or NULL. After a failure nn_onednn_op_fini still
 * has to be called. */
base_status nn_onednn_op_init(struct nn_op *op, nn_op_describe describe, const void *context,
                              const struct nn_op *forward);
void nn_onednn_op_fini(struct nn_op *op);

/* memory: of each operand in order; scratch: op->scratch_bytes, aligned to 64. */
base_status nn_onednn_op_run(struct nn_op *op, void *const *memory, void *scratch);

#endif
