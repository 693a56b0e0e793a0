/* SPDX-License-Identifier: MIT
 *
 * Memory planning by lifetime. Time runs over the forwards of the range's L layers (0 … L-1) and
 * then their backwards (L … 2L-1). Every tensor is a value with an interval from the layer that
 * makes it to the last one that reads it; a layer that can work in place takes over the buffer
 * of its input when it is that input's last reader. Gradients form a chain of their own. Buffers
 * are then placed, largest first, at the lowest offset free during their interval. What crosses
 * the ends of the range is pinned: it keeps its memory all the time. So does what a layer needs for
 * gradients of parameters that are computed later: its input, and the gradient of its output.
 *
 * With several batches in flight, forwards and backwards of other batches come between a batch's
 * own two. Buffers that live across that gap are placed first, in memory that each batch has for
 * itself; the others go where those are dead, or into memory that all batches share, because it
 * holds nothing between passes. Nothing here is thread-bound.
 */
#include "nn/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MAX_BATCH = 1 << 24, MAX_IN_FLIGHT = 1 << 12 };
static const size_t max_bytes = (size_t)1 << 50; /* products and sums stay far from overflow */

/* A tensor of the forward. */
struct value {
    size_t bytes;
    int end; /* last read */
    int buffer;
};

struct builder {
    const struct nn_graph *graph;
    struct nn_plan_setup setup;
    struct nn_plan *plan;
    int layers, forever; /* forever: 2L, after every backward */
    struct value *values;
    int value_count;
    int *x, *y;   /* (L) values of each layer */
    int *named;   /* (all layers) value of a `save`, or -1 */
    int *dnamed;  /* (all layers) buffer of its gradient, or -1 */
    bool *wanted; /* (L+1) the gradient of what enters layer j */
};

static const struct nn_node *node_at(const struct builder *b, int j)
{
    return nn_graph_node(b->graph, b->setup.first + j);
}

static size_t bytes_of(const struct builder *b, struct nn_shape shape)
{
    return (size_t)b->setup.n * nn_shape_floats(shape) * sizeof(float);
}

static int backward_time(const struct builder *b, int j)
{
    return b->forever - 1 - j;
}

/* y is x, or the named tensor: nothing is computed. */
static bool passes(const struct nn_node *node)
{
    return node->identity || node->layer->naming == NN_NAMING_LOAD;
}

/* Whether the tensor saved by `save` is used by a layer from `from` to `to`-1; the last such. */
static int last_use(const struct builder *b, int save, int from, int to)
{
    for (int i = to - 1; i >= from && i > save; i--)
        if (nn_graph_node(b->graph, i)->named == save)
            return i;
    return -1;
}

/* A `save` before the cut whose name is used after it. */
static bool crosses(const struct builder *b, int save, int cut)
{
    return save < cut && nn_graph_node(b->graph, save)->layer->naming == NN_NAMING_SAVE &&
           last_use(b, save, cut, nn_graph_layers(b->graph)) >= 0;
}

static bool is_deferred(const struct builder *b, int j)
{
    const struct nn_node *node = node_at(b, j);

    return b->setup.split && b->setup.training && node->layer->splits && node->params > 0;
}

static int new_buffer(struct builder *b, size_t bytes, int begin, int end)
{
    struct nn_plan *plan = b->plan;

    if ((plan->count & (plan->count - 1)) == 0)
        plan->buffers = base_realloc(plan->buffers, plan->count ? 2 * (size_t)plan->count : 1,
                                     sizeof *plan->buffers);
    bytes = (bytes + BASE_ALIGN - 1) / BASE_ALIGN * BASE_ALIGN;
    plan->buffers[plan->count] =
        (struct nn_plan_buffer){.bytes = bytes, .begin = begin, .end = end};
    return plan->count++;
}

static void touch_buffer(struct builder *b, int buffer, int time)
{
    struct nn_plan_buffer *p = &b->plan->buffers[buffer];

    p->begin = time < p->begin ? time : p->begin;
    p->end = time > p->end ? time : p->end;
}

static void pin(struct builder *b, int buffer)
{
    if (buffer >= 0) {
        touch_buffer(b, buffer, 0);
        touch_buffer(b, buffer, b->forever);
    }
}

/* ---- forward ---- */

static int new_value(struct builder *b, struct nn_shape shape, int time)
{
    b->values[b->value_count] =
        (struct value){.bytes = bytes_of(b, shape), .end = time, .buffer = NN_PLAN_NONE};
    return b->value_count++;
}

static void touch(struct builder *b, int value, int time)
{
    if (time > b->values[value].end)
        b->values[value].end = time;
}

static void name_values(struct builder *b)
{
    int current = new_value(b, node_at(b, 0)->in, 0);

    for (int s = 0; s < b->setup.first; s++)
        if (crosses(b, s, b->setup.first))
            b->named[s] = new_value(b, nn_graph_node(b->graph, s)->out, b->forever);
    for (int j = 0; j < b->layers; j++) {
        const struct nn_node *node = node_at(b, j);

        b->x[j] = current;
        if (node->layer->naming == NN_NAMING_LOAD)
            current = b->named[node->named];
        else if (!node->identity)
            current = new_value(b, node->out, j);
        if (node->layer->naming == NN_NAMING_SAVE)
            b->named[node->index] = current;
        b->y[j] = current;
    }
}

static void find_last_reads(struct builder *b)
{
    for (int j = 0; j < b->layers; j++) {
        const struct nn_node *node = node_at(b, j);
        const struct nn_layer *layer = node->layer;

        if (b->setup.keep_outputs || layer->loss)
            touch(b, b->y[j], b->forever);
        if (passes(node))
            continue;
        touch(b, b->x[j], layer->loss ? b->forever : j);
        if (layer->naming == NN_NAMING_READ)
            touch(b, b->named[node->named], j);
        if (b->wanted[j + 1] && layer->needs_x)
            touch(b, b->x[j], backward_time(b, j));
        if (b->wanted[j + 1] && layer->needs_y)
            touch(b, b->y[j], backward_time(b, j));
        if (is_deferred(b, j))
            touch(b, b->x[j], b->forever);
    }
    if (b->setup.first > 0)
        touch(b, b->x[0], b->forever);
    if (b->setup.last < nn_graph_layers(b->graph))
        touch(b, b->y[b->layers - 1], b->forever);
    for (int s = 0; s < b->setup.last; s++)
        if (b->named[s] >= 0 && crosses(b, s, b->setup.last))
            touch(b, b->named[s], b->forever);
}

static void make_buffer(struct builder *b, int value, int begin)
{
    struct value *v = &b->values[value];

    v->buffer = new_buffer(b, v->bytes, begin, v->end);
}

/* May the layer compute in place? It must be the last reader of its input. */
static bool takes_over(const struct builder *b, int j)
{
    const struct value *x = &b->values[b->x[j]], *y = &b->values[b->y[j]];

    return node_at(b, j)->layer->in_place && x->end == j && x->buffer >= 0 && x->bytes == y->bytes;
}

static void place_values(struct builder *b)
{
    struct nn_plan_node *nodes = b->plan->nodes;

    if (b->setup.first == 0 && node_at(b, 0)->in.planar &&
        (b->values[b->x[0]].end < b->forever || is_deferred(b, 0)))
        b->values[b->x[0]].buffer = NN_PLAN_INPUT;
    else
        make_buffer(b, b->x[0], 0);
    for (int s = 0; s < b->setup.first; s++)
        if (b->named[s] >= 0)
            make_buffer(b, b->named[s], 0);
    for (int j = 0; j < b->layers; j++) {
        const struct nn_node *node = node_at(b, j);
        struct value *y = &b->values[b->y[j]];

        if (!passes(node) && takes_over(b, j)) {
            y->buffer = b->values[b->x[j]].buffer;
            touch_buffer(b, y->buffer, y->end);
        } else if (!passes(node)) {
            make_buffer(b, b->y[j], j);
        }
        nodes[j].x = b->values[b->x[j]].buffer;
        nodes[j].y = y->buffer;
        nodes[j].y_stays = y->end >= b->forever && !node->hidden;
        if (node->layer->naming == NN_NAMING_READ)
            nodes[j].other = b->values[b->named[node->named]].buffer;
    }
}

static void place_kept(struct builder *b)
{
    for (int j = 0; j < b->layers; j++) {
        const struct nn_node *node = node_at(b, j);
        size_t bytes = node->keep_fixed + (size_t)b->setup.n * node->keep_bytes;

        if (bytes > 0)
            b->plan->nodes[j].keep =
                new_buffer(b, bytes, j, b->wanted[j + 1] ? backward_time(b, j) : j);
    }
}

/* ---- backward ---- */

static void find_wanted(struct builder *b)
{
    b->wanted[0] = b->setup.training && (b->setup.first > 0 || b->setup.input_gradient);
    for (int j = 0; j < b->layers; j++)
        b->wanted[j + 1] = b->wanted[j] || (b->setup.training && node_at(b, j)->params > 0);
}

/* The gradient of y of layer j: the one of x where nothing changes or the layer works in place.
 * The two ends of a range stay apart, so that one can be sent while the other is received. */
static int gradient_of_y(struct builder *b, int j, int dx)
{
    const struct nn_node *node = node_at(b, j);
    int time = backward_time(b, j);

    if (node->layer->loss || !b->wanted[j + 1])
        return NN_PLAN_NONE;
    if (node->identity)
        return dx;
    if (node->layer->in_place && j > 0 && dx != NN_PLAN_NONE &&
        b->values[b->x[j]].bytes == b->values[b->y[j]].bytes)
        return dx;
    return new_buffer(b, bytes_of(b, node->out), time - 1, time);
}

static void place_gradients(struct builder *b)
{
    struct nn_plan_node *nodes = b->plan->nodes;
    int dx = NN_PLAN_NONE;

    if (b->wanted[0]) {
        dx = new_buffer(b, b->values[b->x[0]].bytes, b->forever - 1, b->forever);
        pin(b, dx);
    }
    for (int j = 0; j < b->layers; j++) {
        nodes[j].runs = b->wanted[j + 1];
        nodes[j].deferred = is_deferred(b, j);
        nodes[j].dx = dx;
        nodes[j].dy = gradient_of_y(b, j, dx);
        for (int use = 0; use < 2 && dx != NN_PLAN_NONE; use++)
            touch_buffer(b, dx, backward_time(b, j) + use);
        if (nodes[j].deferred)
            pin(b, nodes[j].dy);
        dx = nodes[j].dy;
    }
    if (b->setup.last < nn_graph_layers(b->graph))
        pin(b, dx);
}

/* Gradients of named tensors: from their last use to their `save`. */
static void place_named_gradients(struct builder *b)
{
    struct nn_plan_node *nodes = b->plan->nodes;
    int first = b->setup.first, last = b->setup.last;

    for (int s = 0; s < last; s++) {
        bool enters = s < first && b->named[s] >= 0, leaves = crosses(b, s, last);
        int use = last_use(b, s, first, last);

        if (b->named[s] < 0 || !b->wanted[s < first ? 0 : s - first])
            continue;
        b->dnamed[s] = new_buffer(b, b->values[b->named[s]].bytes,
                                  backward_time(b, use >= 0 ? use - first : 0),
                                  backward_time(b, s < first ? 0 : s - first));
        if (enters || leaves)
            pin(b, b->dnamed[s]);
        if (use >= 0)
            nodes[use - first].first_use = !leaves;
    }
    for (int j = 0; j < b->layers; j++)
        if (node_at(b, j)->named >= 0)
            nodes[j].dother = b->dnamed[node_at(b, j)->named];
}

/* ---- edges ---- */

static int list_edges(const struct builder *b, int cut, struct nn_plan_edge current,
                      struct nn_plan_edge **edges_p)
{
    int count = 1;

    *edges_p = base_calloc((size_t)cut + 1, sizeof **edges_p);
    (*edges_p)[0] = current;
    for (int s = 0; s < cut; s++)
        if (crosses(b, s, cut))
            (*edges_p)[count++] = (struct nn_plan_edge){
                .named = s,
                .shape = nn_graph_node(b->graph, s)->out,
                .values = b->values[b->named[s]].buffer,
                .gradients = b->dnamed[s],
            };
    return count;
}

static void find_edges(struct builder *b)
{
    struct nn_plan *plan = b->plan;
    const struct nn_plan_node *first = &plan->nodes[0], *last = &plan->nodes[b->layers - 1];

    if (b->setup.first > 0 || b->setup.input_gradient)
        plan->enters = list_edges(b, b->setup.first,
                                  (struct nn_plan_edge){-1, node_at(b, 0)->in, first->x, first->dx},
                                  &plan->entering);
    if (b->setup.last < nn_graph_layers(b->graph))
        plan->leaves =
            list_edges(b, b->setup.last,
                       (struct nn_plan_edge){-1, node_at(b, b->layers - 1)->out, last->y, last->dy},
                       &plan->leaving);
}

/* ---- packing ---- */

static int larger_first(const void *a, const void *b)
{
    const struct nn_plan_buffer *p = *(struct nn_plan_buffer *const *)a;
    const struct nn_plan_buffer *q = *(struct nn_plan_buffer *const *)b;

    if (p->bytes != q->bytes)
        return p->bytes > q->bytes ? -1 : 1;
    return p < q ? -1 : 1; /* one order on every machine */
}

/* Does it hold something between the forward and the backward? */
static bool survives(const struct nn_plan *plan, const struct nn_plan_buffer *buffer)
{
    return buffer->begin < plan->layers && buffer->end >= plan->layers;
}

/* The next offset from `at` on at which `bytes` do not lie across the end of the kept part. */
static size_t clear_of(size_t kept, size_t at, size_t bytes)
{
    return at < kept && at + bytes > kept ? kept : at;
}

/* `placed` is sorted by offset; returns where the new buffer goes in it. */
static int first_fit(const struct nn_plan *plan, struct nn_plan_buffer *const *placed, int count,
                     struct nn_plan_buffer *buffer)
{
    size_t at = clear_of(plan->kept, 0, buffer->bytes);
    int i;

    for (i = 0; i < count; i++) {
        const struct nn_plan_buffer *p = placed[i];

        if (p->begin > buffer->end || p->end < buffer->begin)
            continue;
        if (p->offset >= at + buffer->bytes)
            break;
        if (p->offset + p->bytes > at)
            at = clear_of(plan->kept, p->offset + p->bytes, buffer->bytes);
    }
    buffer->offset = at;
    for (i = 0; i < count && placed[i]->offset < at; i++)
        ;
    return i;
}

/* Places what is in `order`; `count` buffers are placed already. */
static base_status place_all(struct nn_plan *plan, struct nn_plan_buffer **placed, size_t count,
                             struct nn_plan_buffer *const *order, size_t more)
{
    for (size_t i = 0; i < more; i++, count++) {
        int at = first_fit(plan, placed, (int)count, order[i]);

        memmove(placed + at + 1, placed + at, (count - (size_t)at) * sizeof(void *));
        placed[at] = order[i];
        if (order[i]->offset + order[i]->bytes > plan->bytes)
            plan->bytes = order[i]->offset + order[i]->bytes;
        if (plan->bytes > max_bytes)
            return base_fail(BASE_ERR_MEMORY, "the activations of this model and batch need more "
                                              "than 2^50 bytes; use a smaller batch");
    }
    return BASE_OK;
}

static base_status pack(struct nn_plan *plan, int in_flight)
{
    base_status st = BASE_OK;
    size_t count = (size_t)plan->count, first = 0, last = count;
    struct nn_plan_buffer **order = base_calloc(count, sizeof(void *));
    struct nn_plan_buffer **placed = base_calloc(count + 1, sizeof(void *));

    for (size_t i = 0; i < count; i++)
        order[in_flight > 1 && !survives(plan, &plan->buffers[i]) ? --last : first++] =
            &plan->buffers[i];
    qsort(order, first, sizeof(void *), larger_first);
    qsort(order + first, count - first, sizeof(void *), larger_first);
    TRY(place_all(plan, placed, 0, order, first));
    plan->kept = plan->bytes;
    TRY(place_all(plan, placed, first, order + first, count - first));
    plan->total = (in_flight > 1 ? (size_t)in_flight : 1) * plan->kept + plan->bytes - plan->kept;
out:
    base_free(order);
    base_free(placed);
    return st;
}

/* ---- all of it ---- */

static void builder_init(struct builder *b, int all)
{
    size_t layers = (size_t)b->layers;

    b->values = base_calloc((size_t)all + layers + 1, sizeof *b->values);
    b->x = base_calloc(layers, sizeof *b->x);
    b->y = base_calloc(layers, sizeof *b->y);
    b->named = base_calloc((size_t)all, sizeof *b->named);
    b->dnamed = base_calloc((size_t)all, sizeof *b->dnamed);
    b->wanted = base_calloc(layers + 1, sizeof *b->wanted);
    for (int i = 0; i < all; i++)
        b->named[i] = b->dnamed[i] = NN_PLAN_NONE;
    b->plan = base_calloc(1, sizeof *b->plan);
    b->plan->layers = b->layers;
    b->plan->nodes = base_calloc(layers, sizeof *b->plan->nodes);
    for (int j = 0; j < b->layers; j++)
        b->plan->nodes[j] = (struct nn_plan_node){
            .other = NN_PLAN_NONE, .dother = NN_PLAN_NONE, .keep = NN_PLAN_NONE};
}

static void builder_fini(struct builder *b)
{
    base_free(b->values);
    base_free(b->x);
    base_free(b->y);
    base_free(b->named);
    base_free(b->dnamed);
    base_free(b->wanted);
    nn_plan_free(b->plan);
}

base_status nn_plan_new(const struct nn_graph *graph, const struct nn_plan_setup *setup,
                        struct nn_plan **plan_p)
{
    base_status st = BASE_OK;
    int all = nn_graph_layers(graph);
    struct builder b = {.graph = graph, .setup = *setup};

    *plan_p = NULL;
    if (setup->n < 1 || setup->n > MAX_BATCH)
        return base_fail(BASE_ERR_USAGE, "a batch of %d samples; use 1 to %d", setup->n, MAX_BATCH);
    if (setup->first < 0 || setup->first >= setup->last || setup->last > all)
        return base_fail(BASE_ERR_INTERNAL, "layers %d to %d of a model of %d", setup->first,
                         setup->last, all);
    if (setup->in_flight < 0 || setup->in_flight > MAX_IN_FLIGHT)
        return base_fail(BASE_ERR_USAGE, "%d batches in flight; use 1 to %d", setup->in_flight,
                         MAX_IN_FLIGHT);
    b.layers = setup->last - setup->first;
    b.forever = 2 * b.layers;
    builder_init(&b, all);
    find_wanted(&b);
    name_values(&b);
    find_last_reads(&b);
    place_values(&b);
    place_kept(&b);
    place_gradients(&b);
    place_named_gradients(&b);
    find_edges(&b);
    TRY(pack(b.plan, setup->in_flight));
    *plan_p = b.plan;
    b.plan = NULL;
out:
    builder_fini(&b);
    return st;
}

void nn_plan_free(struct nn_plan *plan)
{
    if (plan == NULL)
        return;
    base_free(plan->nodes);
    base_free(plan->buffers);
    base_free(plan->entering);
    base_free(plan->leaving);
    base_free(plan);
}
