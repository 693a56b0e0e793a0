/* SPDX-License-Identifier: MIT */
#include "nn/ops.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

/* ---- what layers call ---- */

/* NODE/TYPE; a layer's second operator of a type is NODE/TYPE.1. '/' is in no layer's name. */
static char *output_name(const struct nn_ops *ops, const char *type)
{
    int before = 0;

    for (size_t i = 0; i < ops->count; i++)
        before += ops->at[i]->node == ops->node && strcmp(ops->at[i]->type, type) == 0;
    return before > 0 ? base_format("%s/%s.%d", ops->node->name, type, before)
                      : base_format("%s/%s", ops->node->name, type);
}

struct nn_op *nn_ops_add(struct nn_ops *ops, const char *type)
{
    struct nn_op *op = base_calloc(1, sizeof *op);

    *op = (struct nn_op){.type = type,
                         .node = ops->node,
                         .output = output_name(ops, type),
                         .inputs = 1,
                         .input = {{.value = ops->current}}};
    ops->at = base_realloc(ops->at, ops->count + 1, sizeof(struct nn_op *));
    ops->at[ops->count++] = op;
    ops->current = op->output;
    return op;
}

void nn_op_param(struct nn_op *op, int index)
{
    assert(op->inputs < NN_OP_INPUTS && index < op->node->params);
    op->input[op->inputs++] = (struct nn_op_input){.tensor = &op->node->param[index]};
}

void nn_op_stat(struct nn_op *op, int index)
{
    assert(op->inputs < NN_OP_INPUTS && index < op->node->stats);
    op->input[op->inputs++] =
        (struct nn_op_input){.tensor = &op->node->stat[index], .statistic = true};
}

static void add_attribute(struct nn_op *op, struct nn_op_attribute attribute)
{
    assert(op->attributes < NN_OP_ATTRIBUTES);
    op->attribute[op->attributes++] = attribute;
}

void nn_op_whole(struct nn_op *op, const char *name, int number)
{
    add_attribute(op, (struct nn_op_attribute){.name = name, .numbers = {number}});
}

void nn_op_pair(struct nn_op *op, const char *name, const int pair[2])
{
    add_attribute(
        op, (struct nn_op_attribute){.name = name, .count = 2, .numbers = {pair[0], pair[1]}});
}

void nn_op_pads(struct nn_op *op, const int pad[2])
{
    add_attribute(op, (struct nn_op_attribute){
                          .name = "pads", .count = 4, .numbers = {pad[0], pad[1], pad[0], pad[1]}});
}

void nn_op_real(struct nn_op *op, const char *name, double number)
{
    add_attribute(op,
                  (struct nn_op_attribute){.name = name, .real = true, .number = (float)number});
}

void nn_ops_flatten(struct nn_ops *ops)
{
    if (!ops->node->in.flat)
        nn_op_whole(nn_ops_add(ops, "Flatten"), "axis", 1);
}

/* ---- the list ---- */

static base_status express(struct nn_ops *ops, const struct nn_node *node)
{
    if (node->layer->express != NULL)
        return node->layer->express(node, ops);
    if (node->layer->forward == NULL) /* `save` and `load` name tensors and make none */
        return BASE_OK;
    return base_fail(BASE_ERR_MODEL, "layer %s (%s) cannot be exported: it has no form in ONNX",
                     node->name, node->layer->name);
}

base_status nn_ops_init(struct nn_ops *ops, const struct nn_graph *graph)
{
    base_status st = BASE_OK;
    int layers = nn_graph_layers(graph);
    const char **saved = base_calloc((size_t)layers, sizeof *saved); /* by the `save` node */

    *ops = (struct nn_ops){.current = NN_OPS_INPUT};
    for (int i = 0; i < layers; i++) {
        const struct nn_node *node = nn_graph_node(graph, i);

        ops->node = node;
        ops->named = node->layer->naming == NN_NAMING_READ ? saved[node->named] : NULL;
        ops->named_flat = ops->named != NULL && nn_graph_node(graph, node->named)->out.flat;
        TRY(express(ops, node));
        if (node->layer->naming == NN_NAMING_SAVE)
            saved[i] = ops->current;
        if (node->layer->naming == NN_NAMING_LOAD)
            ops->current = saved[node->named];
    }
out:
    base_free(saved);
    if (st != BASE_OK)
        nn_ops_fini(ops);
    return st;
}

void nn_ops_fini(struct nn_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++) {
        base_free(ops->at[i]->output);
        base_free(ops->at[i]);
    }
    base_free(ops->at);
    *ops = (struct nn_ops){0};
}
