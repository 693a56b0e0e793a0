/* SPDX-License-Identifier: MIT
 *
 * Convolution and pooling, some samples at a time: nn/conv/pool.h.
 */
#include "nn/conv/pool.h"

#include "base/mem.h"
#include "nn/conv/layer.h"
#include "nn/dropout.h"
#include "nn/pool.h"

enum { PART_FLOATS = 5 << 16 }; /* of the convolution's outputs at a time: they stay in L2 */

struct state {
    void *conv;          /* struct nn_conv_work, for `part` samples */
    int part;            /* samples at a time */
    struct nn_shape out; /* of the convolution */
    size_t weights;      /* floats of the gradients, all tensors together */
};

/* Samples first … first+n-1 of the batch, and the parts of the scratch. */
struct part {
    int n;
    const float *x, *dy;
    float *y, *dx;
    uint8_t *argmax;
    const uint32_t *ids;
    float *outputs, *sums; /* of the convolution, or their gradient; of the weights' gradient */
    void *scratch;
};

static size_t weight_floats(const struct nn_node *node)
{
    size_t floats = 0;

    for (int i = 0; i < node->params; i++)
        floats += node->param[i].floats;
    return floats;
}

bool nn_conv_pool_fits(const struct nn_node *nodes)
{
    return nn_pool_halves(&nodes[2]) && weight_floats(&nodes[0]) <= nn_shape_floats(nodes[0].out);
}

base_status nn_conv_pool_open(const struct nn_node *node, struct nn_open *open, void **state_p)
{
    base_status st = BASE_OK;
    struct state *s = base_calloc(1, sizeof *s);
    struct nn_open inner = *open;
    size_t sample, room, parts;

    *state_p = NULL;
    s->out = nn_conv_layer_out(node);
    s->weights = weight_floats(node);
    sample = nn_shape_floats(s->out);
    room = sample < PART_FLOATS ? PART_FLOATS / sample : 1;
    parts = ((size_t)open->n_max + room - 1) / room;
    s->part = (int)(((size_t)open->n_max + parts - 1) / parts);
    inner.n_max = s->part;
    TRY(nn_conv_layer_open(node, &inner, &s->conv));
    open->chosen = inner.chosen;
    open->scratch_bytes =
        inner.scratch_bytes + ((size_t)s->part * sample + s->weights) * sizeof(float);
    *state_p = s;
    s = NULL;
out:
    nn_conv_pool_close(s);
    return st;
}

void nn_conv_pool_close(void *state)
{
    struct state *s = state;

    if (s != NULL)
        nn_conv_layer_close(s->conv);
    base_free(s);
}

static struct part part_at(const struct nn_pass *p, int first)
{
    const struct state *s = p->state;
    const struct nn_conv_work *work = s->conv;
    const size_t x = (size_t)first * nn_shape_floats(p->node->in);
    const size_t y = (size_t)first * nn_shape_floats(p->node->out);
    struct part t = {.n = p->n - first < s->part ? p->n - first : s->part,
                     .x = p->x + x,
                     .dy = p->dy ? p->dy + y : NULL,
                     .y = p->y ? p->y + y : NULL,
                     .dx = p->dx ? p->dx + x : NULL,
                     .argmax = (uint8_t *)p->keep + y,
                     .ids = p->samples->ids ? p->samples->ids + first : NULL,
                     .scratch = p->scratch};

    t.outputs = p->scratch + work->scratch_bytes / sizeof *p->scratch;
    t.sums = t.outputs + (size_t)s->part * nn_shape_floats(s->out);
    return t;
}

static size_t planes(const struct state *s, int n)
{
    return (size_t)n * (size_t)(nn_pad8(s->out.c) / NN_BLOCK);
}

base_status nn_conv_pool_forward(struct nn_pass *p, const struct nn_node *dropout)
{
    base_status st = BASE_OK;
    const struct state *s = p->state;
    const struct nn_conv_work *work = s->conv;

    for (int first = 0; first < p->n; first += s->part) {
        const struct part t = part_at(p, first);

        TRY(work->conv->forward(work, t.n, t.x, p->param[0], p->param[1], t.outputs, t.scratch));
        nn_simd()->relu_pool(planes(s, t.n), s->out.h, s->out.w, t.outputs, t.y, t.argmax);
        if (dropout != NULL && p->training)
            nn_dropout(dropout, p->samples, t.n, t.ids, t.y, t.y, t.argmax);
    }
out:
    return st;
}

/* Adds the sums of a part to the gradients. */
static void add_sums(const struct nn_pass *p, const float *sums)
{
    for (int i = 0; i < p->node->params; i++) {
        const size_t floats = p->node->param[i].floats;

        nn_simd()->add(floats, p->dparam[i], sums, p->dparam[i]);
        sums += floats;
    }
}

base_status nn_conv_pool_backward(struct nn_pass *p, const struct nn_node *dropout)
{
    base_status st = BASE_OK;
    const struct state *s = p->state;
    const struct nn_conv_work *work = s->conv;
    const float scale = dropout != NULL ? nn_dropout_factor(dropout) : 1;

    for (int first = 0; first < p->n; first += s->part) {
        const struct part t = part_at(p, first);
        float *dw = first > 0 ? t.sums : p->dparam[0], *db = p->dparam[1];

        if (first > 0 && db != NULL)
            db = t.sums + p->node->param[0].floats;
        nn_simd()->relu_pool_backward(planes(s, t.n), s->out.h, s->out.w, scale, t.dy, t.argmax,
                                      t.outputs);
        TRY(work->conv->backward(work, t.n, t.x, t.outputs, p->param[0], dw, db, t.dx, t.scratch));
        if (first > 0)
            add_sums(p, t.sums);
    }
out:
    return st;
}
