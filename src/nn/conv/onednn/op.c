/* SPDX-License-Identifier: MIT
 *
 * One oneDNN convolution primitive on memory in our layouts. Asked for layouts it has no kernel
 * for, oneDNN silently answers with its reference code, which is thousands of times slower; so
 * the layouts are given up step by step until a real kernel is found, and reorders bridge the
 * difference. Owns oneDNN objects only; operand memory and scratch are the caller's.
 */
#include <string.h>

#include "base/mem.h"
#include "nn/conv/onednn/onednn_private.h"

/* What oneDNN may choose for itself, from least to most. */
enum freedom { FREE_NOTHING, FREE_WEIGHTS, FREE_ALL, FREEDOMS };

static bool is_reference(dnnl_primitive_desc_t candidate)
{
    const char *name = "";

    return dnnl_primitive_desc_query(candidate, dnnl_query_impl_info_str, 0, &name) !=
               dnnl_success ||
           strncmp(name, "ref", 3) == 0;
}

/* NULL when oneDNN has nothing for these layouts. */
static dnnl_primitive_desc_t candidate_of(const struct nn_op *op, nn_op_describe describe,
                                          const void *context, enum freedom freedom,
                                          const_dnnl_primitive_attr_t attributes,
                                          const struct nn_op *forward, dnnl_engine_t engine)
{
    dnnl_memory_desc_t layouts[NN_ONEDNN_OPERANDS];
    dnnl_convolution_desc_t descriptor;
    dnnl_primitive_desc_t candidate = NULL;

    for (int i = 0; i < op->operands; i++) {
        const struct nn_operand *operand = &op->operand[i];
        bool one_layout = operand->ours.ndims == 1; /* of a vector: the bias */

        layouts[i] = operand->ours;
        if (!one_layout && freedom >= (operand->weights ? FREE_WEIGHTS : FREE_ALL) &&
            dnnl_memory_desc_init_by_tag(&layouts[i], operand->ours.ndims, operand->ours.dims,
                                         dnnl_f32, dnnl_format_tag_any) != dnnl_success)
            return NULL;
    }
    if (describe(context, layouts, &descriptor) != dnnl_success ||
        dnnl_primitive_desc_create(&candidate, &descriptor, attributes, engine,
                                   forward ? forward->chosen : NULL) != dnnl_success)
        return NULL;
    return candidate;
}

static base_status choose(struct nn_op *op, nn_op_describe describe, const void *context,
                          const struct nn_op *forward, dnnl_engine_t engine)
{
    base_status st = BASE_OK;
    dnnl_primitive_attr_t attributes = NULL;

    TRY(nn_onednn_check(dnnl_primitive_attr_create(&attributes), "make attributes"));
    TRY(nn_onednn_check(
        dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
        "take a scratchpad"));
    for (enum freedom freedom = FREE_NOTHING; freedom < FREEDOMS; freedom++) {
        dnnl_primitive_desc_t candidate =
            candidate_of(op, describe, context, freedom, attributes, forward, engine);

        if (!candidate)
            continue;
        if (!op->chosen || !is_reference(candidate)) {
            dnnl_primitive_desc_destroy(op->chosen);
            op->chosen = candidate;
        } else {
            dnnl_primitive_desc_destroy(candidate);
        }
        if (!is_reference(op->chosen))
            break;
    }
    if (!op->chosen)
        TRY(base_fail(BASE_ERR_INTERNAL, "oneDNN has no kernel for this convolution"));
    TRY(nn_onednn_check(
        dnnl_primitive_desc_query(op->chosen, dnnl_query_impl_info_str, 0, &op->implementation),
        "name a kernel"));
out:
    dnnl_primitive_attr_destroy(attributes);
    return st;
}

/* Room for `bytes` at the end of the operation's scratch. */
static size_t reserve(struct nn_op *op, size_t bytes)
{
    const size_t offset = op->scratch_bytes;

    op->scratch_bytes += (bytes + BASE_ALIGN - 1) / BASE_ALIGN * BASE_ALIGN;
    return offset;
}

static base_status bridge(struct nn_op *op, struct nn_operand *operand, dnnl_engine_t engine)
{
    base_status st = BASE_OK;
    const dnnl_memory_desc_t *ours = &operand->ours;
    const dnnl_memory_desc_t *wanted = dnnl_primitive_desc_query_md(op->chosen, operand->query, 0);
    dnnl_primitive_desc_t reorder = NULL;

    TRY(nn_onednn_check(dnnl_memory_create(&operand->outside, ours, engine, DNNL_MEMORY_NONE),
                        "describe an operand"));
    if (ours->ndims == 1 || dnnl_memory_desc_equal(ours, wanted))
        goto out;
    TRY(nn_onednn_check(dnnl_memory_create(&operand->inside, wanted, engine, DNNL_MEMORY_NONE),
                        "describe an operand"));
    operand->offset = reserve(op, dnnl_memory_desc_get_size(wanted));
    TRY(nn_onednn_check(
        dnnl_reorder_primitive_desc_create(&reorder, operand->output ? wanted : ours, engine,
                                           operand->output ? ours : wanted, engine, NULL),
        "reorder an operand"));
    TRY(nn_onednn_check(dnnl_primitive_create(&operand->reorder, reorder), "reorder an operand"));
out:
    dnnl_primitive_desc_destroy(reorder);
    return st;
}

base_status nn_onednn_op_init(struct nn_op *op, nn_op_describe describe, const void *context,
                              const struct nn_op *forward)
{
    base_status st = BASE_OK;
    struct nn_onednn dnnl;
    const dnnl_memory_desc_t *pad;

    TRY(nn_onednn_get(&dnnl));
    TRY(choose(op, describe, context, forward, dnnl.engine));
    TRY(nn_onednn_check(dnnl_primitive_create(&op->primitive, op->chosen), "make a kernel"));
    for (int i = 0; i < op->operands; i++)
        TRY(bridge(op, &op->operand[i], dnnl.engine));
    pad = dnnl_primitive_desc_query_md(op->chosen, dnnl_query_scratchpad_md, 0);
    op->scratchpad_offset = reserve(op, dnnl_memory_desc_get_size(pad));
    TRY(nn_onednn_check(dnnl_memory_create(&op->scratchpad, pad, dnnl.engine, DNNL_MEMORY_NONE),
                        "describe its scratchpad"));
out:
    return st;
}

void nn_onednn_op_fini(struct nn_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        dnnl_memory_destroy(op->operand[i].outside);
        dnnl_memory_destroy(op->operand[i].inside);
        dnnl_primitive_destroy(op->operand[i].reorder);
    }
    dnnl_memory_destroy(op->scratchpad);
    dnnl_primitive_destroy(op->primitive);
    dnnl_primitive_desc_destroy(op->chosen);
    *op = (struct nn_op){0};
}

static base_status reorder_operand(const struct nn_operand *operand, dnnl_stream_t stream)
{
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, operand->output ? operand->inside : operand->outside},
        {DNNL_ARG_TO, operand->output ? operand->outside : operand->inside},
    };

    return nn_onednn_check(dnnl_primitive_execute(operand->reorder, stream, 2, args),
                           "run a reorder");
}

static base_status point(dnnl_memory_t memory, void *at)
{
    return nn_onednn_check(dnnl_memory_set_data_handle(memory, at), "take an operand");
}

base_status nn_onednn_op_run(struct nn_op *op, void *const *memory, void *scratch)
{
    base_status st = BASE_OK;
    struct nn_onednn dnnl;
    dnnl_exec_arg_t args[NN_ONEDNN_OPERANDS + 1];
    char *bytes = scratch;

    TRY(nn_onednn_get(&dnnl));
    for (int i = 0; i < op->operands; i++) {
        const struct nn_operand *operand = &op->operand[i];

        TRY(point(operand->outside, memory[i]));
        args[i] = (dnnl_exec_arg_t){operand->arg, operand->outside};
        if (operand->inside) {
            TRY(point(operand->inside, bytes + operand->offset));
            args[i].memory = operand->inside;
            if (!operand->output)
                TRY(reorder_operand(operand, dnnl.stream));
        }
    }
    TRY(point(op->scratchpad, bytes + op->scratchpad_offset));
    args[op->operands] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, op->scratchpad};
    TRY(nn_onednn_check(dnnl_primitive_execute(op->primitive, dnnl.stream, op->operands + 1, args),
                        "run a convolution"));
    for (int i = 0; i < op->operands; i++)
        if (op->operand[i].output && op->operand[i].inside)
            TRY(reorder_operand(&op->operand[i], dnnl.stream));
    TRY(nn_onednn_check(dnnl_stream_wait(dnnl.stream), "finish a convolution"));
out:
    return st;
}
