/* SPDX-License-Identifier: MIT
 *
 * Model text → layers with shapes and tensors. Lines are parsed first, then described in order,
 * because whether the input is planar depends on the layer that reads it.
 *
 * Named tensors: `save` gives the current tensor a name, `add` reads it, `load` makes it current
 * again. The gradient of a named tensor is a buffer of its own; every use adds to it (the last
 * use first, as backward goes), and the backward of `save` adds the sum to the gradient that came
 * down the main path. What `load` leaves behind must have a name, so its gradient comes through
 * that name and zero flows straight back. A model can therefore be cut before any layer: what
 * crosses is the current tensor and the names still needed, each with one gradient.
 *
 * Bounds (a layer's sample below 2^30 floats, a model's weights below 2^40) keep all later
 * arithmetic on sizes from overflowing. A graph never changes once made: any thread may read it.
 */
#include "nn/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "nn/line.h"
#include "nn/name.h"

enum { MAX_DIM = 1 << 20, MAX_SAMPLE = 1 << 30, ALIGN_FLOATS = 16 };
static const size_t max_weights = (size_t)1 << 40;

struct nn_graph {
    char *text, *origin;
    struct nn_shape input;
    int classes;
    struct nn_node *nodes;
    int count;
    const struct nn_tensor **params, **stats;
    size_t param_count, stat_count;
    size_t weight_floats, stat_floats;
    uint64_t parameters;
    double flops;
    bool view;   /* owns its nodes, and nothing that they point to */
    bool placed; /* a view with lists of tensors of its own */
};

/* ---- lines ---- */

static base_status unknown_layer(const char *name)
{
    base_status st;
    const char **names = base_calloc(nn_layer_count + 2, sizeof *names);

    for (size_t i = 0; i < nn_layer_count; i++)
        names[i] = nn_layer_registry[i]->name;
    names[nn_layer_count] = "input";
    names[nn_layer_count + 1] = "classes";
    st = base_unknown(BASE_ERR_MODEL, "layer", name, names, nn_layer_count + 2);
    base_free(names);
    return st;
}

/* Cuts one line (modified) into words; a comment ends it. */
static base_status split(char *text, struct nn_line *line)
{
    char *rest = NULL;

    for (const char *at = text; *at != '\0'; at++)
        if (((unsigned char)*at < ' ' && *at != '\t' && *at != '\r') || *at == 0x7f)
            return base_fail(BASE_ERR_MODEL, "a control character (byte %d): not a model file",
                             *at);
    text[strcspn(text, "#")] = '\0';
    for (char *word = strtok_r(text, " \t\r", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (line->count == NN_LINE_WORDS)
            return base_fail(BASE_ERR_MODEL, "more than %d words on one line", NN_LINE_WORDS);
        line->words[line->count++] = word;
    }
    return BASE_OK;
}

static base_status add_node(struct nn_graph *g, const struct nn_layer *layer, int line)
{
    struct nn_node *node;

    if (g->count > 0 && g->nodes[g->count - 1].layer->loss)
        return base_fail(BASE_ERR_MODEL, "%s comes after the loss; a loss ends the model",
                         layer->name);
    if (g->count == NN_MAX_LAYERS)
        return base_fail(BASE_ERR_MODEL, "more than %d layers", NN_MAX_LAYERS);
    if ((g->count & (g->count - 1)) == 0)
        g->nodes =
            base_realloc(g->nodes, g->count == 0 ? 1 : 2 * (size_t)g->count, sizeof *g->nodes);
    node = &g->nodes[g->count];
    *node = (struct nn_node){.layer = layer, .line = line, .index = g->count, .named = -1};
    node->config = base_calloc(1, layer->config_size ? layer->config_size : 1);
    g->count++;
    return BASE_OK;
}

static base_status name_node(struct nn_graph *g, struct nn_node *node, const char *name)
{
    if (name != NULL && nn_name_check(name) != BASE_OK)
        return BASE_ERR_MODEL;
    node->name = name != NULL ? base_strdup(name) : base_format("%d", node->index);
    for (int i = 0; i < node->index; i++)
        if (strcmp(g->nodes[i].name, node->name) == 0)
            return base_fail(BASE_ERR_MODEL,
                             "the name '%s' is already that of the layer on line %d; choose "
                             "another with name=",
                             node->name, g->nodes[i].line);
    return BASE_OK;
}

static const struct nn_layer *find_layer(const char *name)
{
    for (size_t i = 0; i < nn_layer_count; i++) {
        const struct nn_layer *layer = nn_layer_registry[i];

        if (strcmp(layer->name, name) == 0 ||
            (layer->alias != NULL && strcmp(layer->alias, name) == 0))
            return layer;
    }
    return NULL;
}

static base_status layer_line(struct nn_graph *g, struct nn_line *line)
{
    base_status st = BASE_OK;
    const struct nn_layer *layer = find_layer(line->words[0]);
    const char *name = NULL;
    struct nn_node *node;

    if (layer == NULL)
        return unknown_layer(line->words[0]);
    line->usage = layer->usage;
    TRY(add_node(g, layer, line->number));
    node = &g->nodes[g->count - 1];
    TRY(nn_line_opt_word(line, "name", &name));
    TRY(name_node(g, node, name));
    if (layer->parse != NULL)
        TRY(layer->parse(line, node->config));
    TRY(nn_line_end(line));
out:
    return st;
}

/* `input` and `classes`: taken unless the caller knows better. */
static base_status header_line(struct nn_graph *g, struct nn_line *line)
{
    base_status st = BASE_OK;
    bool input = strcmp(line->words[0], "input") == 0;
    int dims[3] = {0}, classes = 0;

    line->usage = input ? "input CxHxW" : "classes N";
    if (g->count > 0)
        TRY(base_fail(BASE_ERR_MODEL, "%s belongs before the first layer", line->words[0]));
    if (input)
        TRY(nn_line_shape(line, MAX_DIM, dims));
    else
        TRY(nn_line_int(line, "N", 1, MAX_DIM, &classes));
    TRY(nn_line_end(line));
    if (input && g->input.c == 0)
        g->input = (struct nn_shape){.c = dims[0], .h = dims[1], .w = dims[2]};
    if (!input && g->classes == 0)
        g->classes = classes;
out:
    return st;
}

static base_status read_line(struct nn_graph *g, char *text, int number)
{
    base_status st = BASE_OK;
    struct nn_line line = {.number = number, .classes = g->classes, .usage = ""};

    TRY(split(text, &line));
    if (line.count == 0)
        return BASE_OK;
    if (strcmp(line.words[0], "input") == 0 || strcmp(line.words[0], "classes") == 0)
        TRY(header_line(g, &line));
    else
        TRY(layer_line(g, &line));
out:
    return base_prefix(st, "%s line %d", g->origin, number);
}

static base_status read_lines(struct nn_graph *g)
{
    base_status st = BASE_OK;
    char *copy = base_strdup(g->text), *at = copy;

    for (int number = 1; at != NULL; number++) {
        char *text = strsep(&at, "\n");

        TRY(read_line(g, text, number));
    }
    if (g->count == 0)
        TRY(base_fail(BASE_ERR_MODEL, "%s has no layers; write one a line, such as `dense 10`",
                      g->origin));
    if (!g->nodes[g->count - 1].layer->loss) {
        int line = g->nodes[g->count - 1].line;

        TRY(base_prefix(add_node(g, find_layer(g->classes == 1 ? "mse" : "softmax"), line), "%s",
                        g->origin));
        TRY(base_prefix(name_node(g, &g->nodes[g->count - 1], NULL), "%s line %d", g->origin,
                        line));
    }
out:
    base_free(copy);
    return st;
}

/* ---- names ---- */

static const char *name_of(const struct nn_node *node)
{
    return ((const struct nn_name *)node->config)->text;
}

/* The `save` of a name before `node`, or -1. */
static int find_saved(const struct nn_graph *g, const struct nn_node *node)
{
    for (int i = node->index - 1; i >= 0; i--)
        if (g->nodes[i].layer->naming == NN_NAMING_SAVE &&
            strcmp(name_of(&g->nodes[i]), name_of(node)) == 0)
            return i;
    return -1;
}

static base_status check_load(const struct nn_graph *g, const struct nn_node *node)
{
    int i = node->index - 1;

    while (i > 0 && g->nodes[i].identity && g->nodes[i].layer->naming == NN_NAMING_NONE)
        i--;
    if (g->nodes[i].layer->naming == NN_NAMING_SAVE || g->nodes[i].layer->naming == NN_NAMING_LOAD)
        return BASE_OK;
    return base_fail(BASE_ERR_MODEL,
                     "load %s would drop the tensor made so far; give it a name first with "
                     "`save NAME`",
                     name_of(node));
}

/* Before describe: which tensor a name means. */
static base_status resolve(struct nn_graph *g, struct nn_node *node)
{
    const struct nn_node *saved;
    int found;

    if (node->layer->naming == NN_NAMING_NONE)
        return BASE_OK;
    found = find_saved(g, node);
    if (node->layer->naming == NN_NAMING_SAVE) {
        node->named = node->index;
        if (found >= 0)
            return base_fail(BASE_ERR_MODEL, "the name '%s' is already saved on line %d",
                             name_of(node), g->nodes[found].line);
        return BASE_OK;
    }
    if (found < 0)
        return base_fail(BASE_ERR_MODEL, "%s %s: nothing is saved under that name before here",
                         node->layer->name, name_of(node));
    node->named = found;
    saved = &g->nodes[found];
    if (node->layer->naming == NN_NAMING_LOAD) {
        node->out = saved->out;
        return check_load(g, node);
    }
    if (saved->out.c != node->in.c || saved->out.h != node->in.h || saved->out.w != node->in.w)
        return base_fail(BASE_ERR_MODEL, "%s %s: shapes differ, %dx%dx%d here and %dx%dx%d there",
                         node->layer->name, name_of(node), node->in.c, node->in.h, node->in.w,
                         saved->out.c, saved->out.h, saved->out.w);
    return BASE_OK;
}

static base_status check_all_used(const struct nn_graph *g)
{
    for (int s = 0; s < g->count; s++) {
        bool used = g->nodes[s].layer->naming != NN_NAMING_SAVE;

        for (int i = s + 1; i < g->count && !used; i++)
            used = g->nodes[i].named == s;
        if (!used)
            return base_fail(BASE_ERR_MODEL,
                             "%s line %d: '%s' is saved but never used; remove the line or add "
                             "`add %s`",
                             g->origin, g->nodes[s].line, name_of(&g->nodes[s]),
                             name_of(&g->nodes[s]));
    }
    return BASE_OK;
}

/* ---- shapes and tensors ---- */

static void place(struct nn_tensor *tensor, size_t *floats)
{
    tensor->offset = *floats;
    *floats += (tensor->floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static void place_tensors(struct nn_graph *g, struct nn_node *node)
{
    for (int i = 0; i < node->params; i++) {
        place(&node->param[i], &g->weight_floats);
        g->parameters += node->param[i].values;
    }
    for (int i = 0; i < node->stats; i++)
        place(&node->stat[i], &g->stat_floats);
    g->flops += node->flops;
    g->param_count += (size_t)node->params;
    g->stat_count += (size_t)node->stats;
}

static base_status describe(struct nn_graph *g, struct nn_node *node, struct nn_shape in)
{
    base_status st = BASE_OK;

    node->in = in;
    node->classes = g->classes;
    TRY(resolve(g, node));
    if (node->layer->describe != NULL)
        TRY(node->layer->describe(node));
    if (nn_shape_floats(node->out) > MAX_SAMPLE)
        TRY(base_fail(BASE_ERR_MODEL, "%s gives %dx%dx%d, more than 2^30 values a sample",
                      node->layer->name, node->out.c, node->out.h, node->out.w));
    place_tensors(g, node);
    if (g->weight_floats > max_weights)
        TRY(base_fail(BASE_ERR_MODEL, "more than 2^40 weights"));
out:
    return base_prefix(st, "%s line %d", g->origin, node->line);
}

static void collect_tensors(struct nn_graph *g)
{
    size_t param = 0, stat = 0;

    g->params = base_calloc(g->param_count, sizeof(void *));
    g->stats = base_calloc(g->stat_count, sizeof(void *));
    for (int i = 0; i < g->count; i++) {
        for (int t = 0; t < g->nodes[i].params; t++)
            g->params[param++] = &g->nodes[i].param[t];
        for (int t = 0; t < g->nodes[i].stats; t++)
            g->stats[stat++] = &g->nodes[i].stat[t];
    }
}

static base_status describe_all(struct nn_graph *g)
{
    base_status st = BASE_OK;
    struct nn_shape shape = g->input;
    int first = 0; /* layer that computes */

    while (g->nodes[first].layer->takes_planar && g->nodes[first].layer->forward == NULL)
        first++;
    shape.planar = g->nodes[first].layer->takes_planar;
    for (int i = 0; i < g->count; i++) {
        TRY(describe(g, &g->nodes[i], shape));
        shape = g->nodes[i].out;
    }
    g->input.planar = g->nodes[0].in.planar;
    if (g->classes == 0)
        g->classes = shape.c;
    TRY(check_all_used(g));
    collect_tensors(g);
out:
    return st;
}

base_status nn_graph_new(const char *text, const char *origin, struct nn_shape input, int classes,
                         struct nn_graph **graph_p)
{
    base_status st = BASE_OK;
    struct nn_graph *g = base_calloc(1, sizeof *g);

    *graph_p = NULL;
    g->origin = base_strdup(origin);
    g->input = (struct nn_shape){.c = input.c, .h = input.h, .w = input.w};
    g->classes = classes;
    if (strnlen(text, NN_MAX_TEXT + 1) > NN_MAX_TEXT)
        TRY(base_fail(BASE_ERR_MODEL, "%s is longer than a model may be (%d bytes)", origin,
                      NN_MAX_TEXT));
    g->text = base_strdup(text);
    TRY(read_lines(g));
    if (g->input.c == 0)
        TRY(base_fail(BASE_ERR_MODEL,
                      "%s does not say what comes in; add a line `input CxHxW` at its top",
                      origin));
    if (nn_shape_floats(g->input) > MAX_SAMPLE)
        TRY(base_fail(BASE_ERR_MODEL, "%s: an input of %dx%dx%d has more than 2^30 values", origin,
                      g->input.c, g->input.h, g->input.w));
    TRY(describe_all(g));
    *graph_p = g;
    g = NULL;
out:
    nn_graph_free(g);
    return st;
}

void nn_graph_free(struct nn_graph *graph)
{
    if (graph == NULL)
        return;
    if (graph->view) {
        base_free(graph->placed ? graph->params : NULL);
        base_free(graph->placed ? graph->stats : NULL);
        base_free(graph->nodes);
        base_free(graph);
        return;
    }
    for (int i = 0; i < graph->count; i++) {
        struct nn_node *node = &graph->nodes[i];

        for (int t = 0; t < node->params; t++)
            base_free(node->param[t].name);
        for (int t = 0; t < node->stats; t++)
            base_free(node->stat[t].name);
        base_free(node->name);
        base_free(node->config);
    }
    base_free(graph->nodes);
    base_free(graph->params);
    base_free(graph->stats);
    base_free(graph->text);
    base_free(graph->origin);
    base_free(graph);
}

struct nn_graph *nn_graph_view(const struct nn_graph *graph, struct nn_node **nodes_p)
{
    struct nn_graph *view = base_calloc(1, sizeof *view);

    *view = *graph;
    view->view = true;
    view->placed = false;
    view->nodes = base_calloc((size_t)graph->count, sizeof *view->nodes);
    memcpy(view->nodes, graph->nodes, (size_t)graph->count * sizeof *view->nodes);
    *nodes_p = view->nodes;
    return view;
}

void nn_graph_place(struct nn_graph *view)
{
    view->weight_floats = view->stat_floats = view->param_count = view->stat_count = 0;
    view->parameters = 0;
    view->flops = 0;
    for (int i = 0; i < view->count; i++)
        place_tensors(view, &view->nodes[i]);
    collect_tensors(view);
    view->placed = true;
}

/* ---- questions ---- */

int nn_graph_layers(const struct nn_graph *graph)
{
    return graph->count;
}

const struct nn_node *nn_graph_node(const struct nn_graph *graph, int index)
{
    return &graph->nodes[index];
}

base_status nn_graph_find(const struct nn_graph *graph, const char *name, int *index_p)
{
    base_status st;
    const char **names;
    char *end;
    long number;

    *index_p = -1;
    for (int i = 0; i < graph->count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            *index_p = i;
    if (*index_p >= 0)
        return BASE_OK;
    number = strtol(name, &end, 10);
    if (name[0] >= '0' && name[0] <= '9' && *end == '\0' && number < graph->count) {
        *index_p = (int)number;
        return BASE_OK;
    }
    names = base_calloc((size_t)graph->count, sizeof *names);
    for (int i = 0; i < graph->count; i++)
        names[i] = graph->nodes[i].name;
    st = base_unknown(BASE_ERR_USAGE, "layer", name, names, (size_t)graph->count);
    base_free(names);
    return st;
}

const char *nn_graph_text(const struct nn_graph *graph)
{
    return graph->text;
}

struct nn_shape nn_graph_input(const struct nn_graph *graph)
{
    return graph->input;
}

bool nn_graph_predicts_number(const struct nn_graph *graph)
{
    const struct nn_node *last = &graph->nodes[graph->count - 1];

    return last->layer->takes_targets && last->in.c == 1;
}

int nn_graph_classes(const struct nn_graph *graph)
{
    return graph->classes;
}

size_t nn_graph_params(const struct nn_graph *graph)
{
    return graph->param_count;
}

const struct nn_tensor *nn_graph_param(const struct nn_graph *graph, size_t index)
{
    return graph->params[index];
}

size_t nn_graph_stats(const struct nn_graph *graph)
{
    return graph->stat_count;
}

const struct nn_tensor *nn_graph_stat(const struct nn_graph *graph, size_t index)
{
    return graph->stats[index];
}

size_t nn_graph_weight_floats(const struct nn_graph *graph)
{
    return graph->weight_floats;
}

size_t nn_graph_stat_floats(const struct nn_graph *graph)
{
    return graph->stat_floats;
}

uint64_t nn_graph_parameters(const struct nn_graph *graph)
{
    return graph->parameters;
}

double nn_graph_flops(const struct nn_graph *graph)
{
    return graph->flops;
}
