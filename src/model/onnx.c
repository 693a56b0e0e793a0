/* SPDX-License-Identifier: MIT
 *
 * Writes ONNX by hand: its protocol buffers are few (github.com/onnx/onnx, onnx.proto), and the
 * lengths of all messages follow from shapes, so that the weights are streamed and never held a
 * second time, unless batch norms are folded (nn/fold.h). What the layers are in ONNX is theirs to
 * say (nn/ops.h); this file knows none of them.
 */
#include "model/onnx.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "model/protobuf.h"
#include "nn/fold.h"
#include "nn/ops.h"

/* Numbers of fields, by message. */
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER,
    MODEL_VERSION,
    MODEL_GRAPH = 7,
    MODEL_OPSETS,
    MODEL_PROPS = 14
};
enum { GRAPH_NODE = 1, GRAPH_NAME, GRAPH_TENSOR = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT };
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_TYPE, NODE_ATTRIBUTE };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT,
    ATTRIBUTE_INT,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20
};
enum { TENSOR_DIM = 1, TENSOR_TYPE, TENSOR_NAME = 8, TENSOR_BYTES };
enum { VALUE_NAME = 1, VALUE_TYPE };

enum { IR_VERSION = 8, TYPE_FLOAT = 1 };          /* the first of opset 17; float32 */
enum { KIND_FLOAT = 1, KIND_INT, KIND_INTS = 7 }; /* of attributes */

#define OUTPUT "output"
#define PIXELS "pixels"
static const uint64_t most_bytes = (1ull << 31) - 1; /* protocol buffers end there */

/* A tensor of the file. */
struct constant {
    char *name;
    int rank;
    int64_t dims[4];
    size_t values;
    const struct nn_tensor *tensor; /* canonical(memory) … */
    const float *memory;
    float *own; /* … or these values; tensor is NULL */
};

struct onnx {
    const struct model *model;
    const float *weights, *statistics; /* the model's, or the folded ones */
    struct nn_fold fold;
    struct nn_ops ops;
    struct constant *constants;
    size_t count;
    struct base_str nodes, values; /* of the graph: its operators; its name, input and output */
    size_t node_count;
};

static void onnx_fini(struct onnx *o)
{
    for (size_t i = 0; i < o->count; i++) {
        base_free(o->constants[i].name);
        base_free(o->constants[i].own);
    }
    base_free(o->constants);
    base_str_fini(&o->nodes);
    base_str_fini(&o->values);
    nn_ops_fini(&o->ops);
    nn_fold_fini(&o->fold);
}

/* ---- constants ---- */

static struct constant *add_constant(struct onnx *o, char *name)
{
    o->constants = base_realloc(o->constants, o->count + 1, sizeof *o->constants);
    o->constants[o->count] = (struct constant){.name = name};
    return &o->constants[o->count++];
}

static void add_tensor(struct onnx *o, const struct nn_op_input *input)
{
    const struct nn_tensor *t = input->tensor;
    struct constant *c = add_constant(o, base_strdup(t->name));

    c->rank = t->rank;
    c->values = t->values;
    c->tensor = t;
    c->memory = (input->statistic ? o->statistics : o->weights) + t->offset;
    for (int i = 0; i < t->rank; i++)
        c->dims[i] = t->dims[i];
    if (t->rank == 2) /* a dense weight is (O,C,H,W) in memory */
        c->dims[1] = (int64_t)(t->values / (size_t)t->dims[0]);
}

static float *add_vector(struct onnx *o, char *name, int count)
{
    struct constant *c = add_constant(o, name);

    c->rank = 1;
    c->dims[0] = count;
    c->values = (size_t)count;
    c->own = base_calloc(c->values, sizeof *c->own);
    return c->own;
}

/* ---- the graph ---- */

static void add_attribute(struct base_str *node, const struct nn_op_attribute *a)
{
    struct base_str s = {0};

    model_pb_text(&s, ATTRIBUTE_NAME, a->name);
    if (a->real)
        model_pb_float(&s, ATTRIBUTE_FLOAT, a->number);
    else if (a->count == 0)
        model_pb_int(&s, ATTRIBUTE_INT, a->numbers[0]);
    for (int i = 0; i < a->count; i++)
        model_pb_int(&s, ATTRIBUTE_INTS, a->numbers[i]);
    model_pb_int(&s, ATTRIBUTE_TYPE, a->real ? KIND_FLOAT : a->count == 0 ? KIND_INT : KIND_INTS);
    model_pb_message(node, NODE_ATTRIBUTE, &s);
}

static void add_node(struct onnx *o, struct base_str *node, const char *name, const char *type,
                     const char *output)
{
    model_pb_text(node, NODE_OUTPUT, output);
    model_pb_text(node, NODE_NAME, name);
    model_pb_text(node, NODE_TYPE, type);
    model_pb_message(&o->nodes, GRAPH_NODE, node);
    o->node_count++;
}

static void add_op(struct onnx *o, const struct nn_op *op, bool last)
{
    struct base_str node = {0};

    model_pb_text(&node, NODE_INPUT, op->input[0].value);
    for (int i = 1; i < op->inputs; i++) {
        const struct nn_op_input *input = &op->input[i];

        model_pb_text(&node, NODE_INPUT, input->value != NULL ? input->value : input->tensor->name);
        if (input->tensor != NULL)
            add_tensor(o, input);
    }
    for (int i = 0; i < op->attributes; i++)
        add_attribute(&node, &op->attribute[i]);
    add_node(o, &node, op->output, op->type, last ? OUTPUT : op->output);
}

/* One of the two steps from pixels to the model's input: `what` is of the channels, as (C,1,1). */
static void add_normalising(struct onnx *o, const char *from, const char *type, const char *to,
                            const char *constant, const float *what)
{
    int channels = o->model->about.input.c;
    float *values = add_vector(o, base_strdup(constant), channels);
    struct constant *c = &o->constants[o->count - 1];
    struct base_str node = {0};
    char *name = base_format(PIXELS "/%s", type);

    c->rank = 3;
    c->dims[1] = c->dims[2] = 1;
    for (int i = 0; i < channels; i++)
        values[i] = 255.0f * what[i];
    model_pb_text(&node, NODE_INPUT, from);
    model_pb_text(&node, NODE_INPUT, constant);
    add_node(o, &node, name, type, to);
    base_free(name);
}

/* dims of 0: the batch. */
static void add_value(struct onnx *o, int field, const char *name, const int *dims, int rank)
{
    struct base_str value = {0}, type = {0}, tensor = {0}, shape = {0};

    for (int i = 0; i < rank; i++) {
        struct base_str dim = {0};

        if (dims[i] > 0)
            model_pb_int(&dim, 1, dims[i]);
        else
            model_pb_text(&dim, 2, "batch");
        model_pb_message(&shape, 1, &dim);
    }
    model_pb_int(&tensor, 1, TYPE_FLOAT);
    model_pb_message(&tensor, 2, &shape);
    model_pb_message(&type, 1, &tensor);
    model_pb_text(&value, VALUE_NAME, name);
    model_pb_message(&value, VALUE_TYPE, &type);
    model_pb_message(&o->values, field, &value);
}

static void describe_graph(struct onnx *o, bool normalise)
{
    const struct model_about *about = &o->model->about;
    const struct nn_node *last =
        nn_graph_node(o->model->graph, nn_graph_layers(o->model->graph) - 1);

    if (normalise) {
        add_normalising(o, PIXELS, "Sub", PIXELS "/Sub", PIXELS ".mean", about->mean);
        add_normalising(o, PIXELS "/Sub", "Div", NN_OPS_INPUT, PIXELS ".deviation",
                        about->deviation);
    }
    for (size_t i = 0; i < o->ops.count; i++)
        add_op(o, o->ops.at[i], i + 1 == o->ops.count);
    model_pb_text(&o->values, GRAPH_NAME, "paceline");
    add_value(o, GRAPH_INPUT, normalise ? PIXELS : NN_OPS_INPUT,
              (const int[]){0, about->input.c, about->input.h, about->input.w}, 4);
    add_value(o, GRAPH_OUTPUT, OUTPUT, (const int[]){0, last->out.c}, 2);
}

/* ---- the file ---- */

static void add_property(struct base_str *s, const char *key, const char *value)
{
    struct base_str entry = {0};

    model_pb_text(&entry, 1, key);
    model_pb_text(&entry, 2, value);
    model_pb_message(s, MODEL_PROPS, &entry);
}

const char *model_onnx_input(const struct model_about *about, bool normalise)
{
    if (about->table != NULL)
        return "features of a row, made as `table` says";
    return normalise ? "pixels from 0 to 255" : "(pixel / 255 - mean) / deviation";
}

/* Means of pixels are floats, those of a table doubles. */
static size_t precision_of(const char *key)
{
    return JSON_REAL_PRECISION(strcmp(key, "table") == 0 ? 17 : 9);
}

/* Fields of model_about_to_json as texts: what a program needs to feed the model. */
static void add_metadata(struct base_str *s, const struct model_about *about, bool normalise)
{
    static const char *const keys[] = {"labels", "mean", "deviation", "crop", "table"};
    json_t *all = model_about_to_json(about);
    char *model = model_about_text(about);

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(all, keys[i]);
        char *text = value != NULL ? json_dumps(value, JSON_COMPACT | precision_of(keys[i])) : NULL;

        if (text == NULL)
            continue;
        add_property(s, keys[i], text);
        free(text);
    }
    add_property(s, "input", model_onnx_input(about, normalise));
    add_property(s, "model", model);
    base_free(model);
    json_decref(all);
}

static void describe_model(const struct onnx *o, bool normalise, struct base_str *s)
{
    struct base_str opset = {0};

    model_pb_int(s, MODEL_IR, IR_VERSION);
    model_pb_text(s, MODEL_PRODUCER, "paceline");
    model_pb_text(s, MODEL_VERSION, PACELINE_VERSION);
    model_pb_text(&opset, 1, "");
    model_pb_int(&opset, 2, MODEL_ONNX_OPSET);
    model_pb_message(s, MODEL_OPSETS, &opset);
    add_metadata(s, &o->model->about, normalise);
}

/* All of a tensor but its values. */
static void describe_constant(const struct constant *c, struct base_str *s)
{
    for (int i = 0; i < c->rank; i++)
        model_pb_int(s, TENSOR_DIM, c->dims[i]);
    model_pb_int(s, TENSOR_TYPE, TYPE_FLOAT);
    model_pb_text(s, TENSOR_NAME, c->name);
    model_pb_length(s, TENSOR_BYTES, c->values * sizeof(float));
}

/* The tensor as a field of the graph, as far as its values; `bytes_p` counts those, too. */
static struct base_str constant_head(const struct constant *c, uint64_t *bytes_p)
{
    struct base_str inside = {0}, s = {0};
    uint64_t values = c->values * sizeof(float);

    describe_constant(c, &inside);
    model_pb_length(&s, GRAPH_TENSOR, inside.length + values);
    base_str_append(&s, inside.text, inside.length);
    base_str_fini(&inside);
    *bytes_p = s.length + values;
    return s;
}

/* `room` holds the largest constant. */
static base_status write_constant(struct base_replacement *file, const struct constant *c,
                                  float *room)
{
    base_status st = BASE_OK;
    uint64_t bytes;
    struct base_str head = constant_head(c, &bytes);
    const float *values = c->own;

    if (values == NULL) {
        nn_tensor_export(c->tensor, c->memory, room);
        values = room;
    }
    TRY(base_replace_write(file, head.text, head.length));
    TRY(base_replace_write(file, values, c->values * sizeof *values));
out:
    base_str_fini(&head);
    return st;
}

static base_status write_constants(const struct onnx *o, struct base_replacement *file)
{
    base_status st = BASE_OK;
    float *room = NULL;
    size_t most = 1;

    for (size_t i = 0; i < o->count; i++)
        most = o->constants[i].values > most ? o->constants[i].values : most;
    TRY(base_tensor(most, sizeof *room, "a tensor between memory and file", &room));
    for (size_t i = 0; i < o->count; i++)
        TRY(write_constant(file, &o->constants[i], room));
out:
    base_free(room);
    return st;
}

static uint64_t graph_bytes(const struct onnx *o)
{
    uint64_t total = o->nodes.length + o->values.length;

    for (size_t i = 0; i < o->count; i++) {
        uint64_t bytes;
        struct base_str head = constant_head(&o->constants[i], &bytes);

        base_str_fini(&head);
        total += bytes;
    }
    return total;
}

static base_status write_file(const struct onnx *o, bool normalise, const char *path,
                              uint64_t *bytes_p)
{
    base_status st = BASE_OK;
    struct base_replacement file = {.fd = -1};
    struct base_str head = {0};
    uint64_t graph = graph_bytes(o);

    describe_model(o, normalise, &head);
    model_pb_length(&head, MODEL_GRAPH, graph);
    *bytes_p = head.length + graph;
    if (*bytes_p > most_bytes)
        TRY(base_fail(BASE_ERR_MODEL, "%s would have %llu bytes; an ONNX file can have 2 GiB", path,
                      (unsigned long long)*bytes_p));
    TRY(base_replace_begin(path, &file));
    TRY(base_replace_write(&file, head.text, head.length));
    TRY(base_replace_write(&file, o->nodes.text, o->nodes.length));
    TRY(base_replace_write(&file, o->values.text, o->values.length));
    TRY(write_constants(o, &file));
    TRY(base_replace_commit(&file));
out:
    base_replace_end(&file);
    base_str_fini(&head);
    return st;
}

/* Batch norms that the folded graph has no tensors of. */
static size_t count_folded(const struct nn_graph *was, const struct nn_graph *is)
{
    size_t count = 0;

    for (int i = 0; i < nn_graph_layers(was); i++)
        count += nn_graph_node(is, i)->identity && !nn_graph_node(was, i)->identity;
    return count;
}

/* The graph to write, and where its tensors are. */
static base_status choose_graph(struct onnx *o, bool fold, const struct nn_graph **graph_p)
{
    const struct model_weights *w = &o->model->weights;
    base_status st = BASE_OK;

    *graph_p = o->model->graph;
    o->weights = w->weights;
    o->statistics = w->statistics;
    if (!fold)
        return BASE_OK;
    TRY(nn_fold_init(&o->fold, o->model->graph, w->weights, w->statistics));
    *graph_p = o->fold.graph;
    o->weights = o->fold.weights;
    o->statistics = o->fold.statistics;
out:
    return st;
}

base_status model_onnx_write(const struct model *model, const struct model_onnx_options *options,
                             const char *path, struct model_onnx_summary *summary_p)
{
    base_status st = BASE_OK;
    struct onnx o = {.model = model};
    const struct nn_graph *graph;

    *summary_p = (struct model_onnx_summary){0};
    if (options->normalise && model->about.table != NULL)
        TRY(base_fail(BASE_ERR_USAGE, "--normalise is for pixels; the model takes rows of a table, "
                                      "whose columns are in the file's metadata"));
    TRY(choose_graph(&o, options->fold, &graph));
    TRY(nn_ops_init(&o.ops, graph));
    describe_graph(&o, options->normalise);
    summary_p->folded = count_folded(model->graph, graph);
    summary_p->nodes = o.node_count;
    TRY(write_file(&o, options->normalise, path, &summary_p->bytes));
out:
    onnx_fini(&o);
    return st;
}
