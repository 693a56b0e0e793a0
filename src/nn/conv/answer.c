/* SPDX-License-Identifier: MIT
 *
 * A node's configuration owns its prepared weights and does not change once made; the state of
 * `open` is one lane's. Kernels that prepare nothing (oneDNN's) compute as in evaluation, and the
 * tail is passed over their outputs.
 */
#include "nn/conv/answer.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/team.h"
#include "nn/conv/kernelplan.h"
#include "nn/conv/prefer.h"
#include "nn/pool.h"
#include "nn/simd/simd.h"

/* ---- the layer, as a lane's network sees it ---- */

struct state {
    const struct nn_conv_answer *config;
    struct nn_conv_work work[NN_CONV_CHOICES];
};

static struct nn_conv_shape shape_of(const struct nn_node *node, int n_max)
{
    struct nn_conv_shape shape = {.n_max = n_max, .prepared = true};

    nn_conv_layer_shape(node, &shape);
    return shape;
}

static void conv_answer_close(void *state);

static base_status conv_answer_open(const struct nn_node *node, struct nn_open *open,
                                    void **state_p)
{
    base_status st = BASE_OK;
    const struct nn_conv_answer *c = node->config;
    const struct nn_conv_shape shape = shape_of(node, open->n_max);
    struct state *s = base_calloc(1, sizeof *s);

    *state_p = NULL;
    s->config = c;
    for (int i = 0; i < c->choices; i++) {
        TRY(nn_conv_work_init(&s->work[i], c->choice[i].conv, &shape));
        if (s->work[i].scratch_bytes > open->scratch_bytes)
            open->scratch_bytes = s->work[i].scratch_bytes;
    }
    open->chosen = c->choice[c->choices - 1].conv->name;
    *state_p = s;
    s = NULL;
out:
    conv_answer_close(s);
    return st;
}

static void conv_answer_close(void *state)
{
    struct state *s = state;

    for (int i = 0; s != NULL && i < s->config->choices; i++)
        nn_conv_work_fini(&s->work[i]);
    base_free(s);
}

/* A form without prepared weights, and the tail in passes of its own. */
static base_status forward_plain(const struct nn_pass *p, const struct nn_conv_work *work)
{
    base_status st = BASE_OK;
    const struct nn_conv_answer *c = p->node->config;
    const size_t count = (size_t)p->n * nn_shape_floats(p->node->out);

    TRY(work->conv->forward(work, p->n, p->x, p->param[0], p->param[1], p->y, p->scratch));
    if (c->add)
        nn_simd()->add(count, p->y, p->other, p->y);
    if (c->relu)
        nn_simd()->relu(count, p->y, p->y);
out:
    return st;
}

/* x (n,I,H,W) -> y (n) x node->out */
static base_status conv_answer_forward(struct nn_pass *p)
{
    const struct nn_conv_answer *c = p->node->config;
    const struct state *s = p->state;
    const struct nn_conv_tail tail = {
        .add = c->add ? p->other : NULL, .relu = c->relu, .pool = c->pool};
    const struct nn_conv_choice *choice = nn_conv_answer_choice(c, p->n);
    const struct nn_conv_work *work = &s->work[choice - c->choice];

    if (choice->prepared == NULL)
        return forward_plain(p, work);
    assert(base_team_threads(p->team) == work->threads);
    return work->conv->answer(work, p->team, p->n, p->x, choice->prepared, c->bias, &tail, p->y,
                              p->scratch);
}

#define LAYER                                                                                 \
    .name = "conv, to answer", .help = "a convolution and what its kernel does as it stores", \
    .open = conv_answer_open, .close = conv_answer_close, .forward = conv_answer_forward,     \
    .takes_planar = true

static const struct nn_layer plain_layer = {LAYER};
static const struct nn_layer adding_layer = {LAYER, .naming = NN_NAMING_READ};

/* ---- making one ---- */

/* The next node from `at` on that computes something or names a tensor. */
static int next_of(const struct nn_node *nodes, int at, int end)
{
    while (at < end && nodes[at].identity && nodes[at].layer->naming == NN_NAMING_NONE)
        at++;
    return at;
}

static bool is(const struct nn_node *nodes, int at, int end, const char *name)
{
    return at < end && strcmp(nodes[at].layer->name, name) == 0;
}

/* What the convolution does goes into `c`; returns the last of these nodes. */
static int take_tail(struct nn_node *nodes, int i, int end, struct nn_conv_answer *c)
{
    struct nn_node *head = &nodes[i];
    int last = i, at = next_of(nodes, i + 1, end);

    if (is(nodes, at, end, "add")) {
        c->add = true;
        head->named = nodes[at].named;
        last = at;
        at = next_of(nodes, at + 1, end);
    }
    if (is(nodes, at, end, "relu")) {
        c->relu = true;
        last = at;
        at = next_of(nodes, at + 1, end);
    }
    if (c->choice[0].prepared != NULL && is(nodes, at, end, "maxpool") &&
        nn_pool_halves(&nodes[at])) {
        c->pool = true;
        last = at;
    }
    return last;
}

static void hide(struct nn_node *nodes, int i, int last)
{
    struct nn_node *head = &nodes[i];

    head->out = nodes[last].out;
    for (int at = i + 1; at <= last; at++) {
        head->flops += nodes[at].flops;
        nodes[at].flops = 0;
        nodes[at].keep_fixed = nodes[at].keep_bytes = 0;
        nodes[at].in = nodes[at].out = head->out;
        nodes[at].identity = true;
        nodes[at].hidden = at < last;
    }
    head->hidden = last > i;
}

static base_status prepare(struct nn_conv_choice *choice, const struct nn_conv_shape *shape,
                           const float *w)
{
    base_status st = BASE_OK;

    if (choice->conv->answer == NULL)
        goto out;
    choice->floats = choice->conv->prepared_floats(shape);
    choice->uses = choice->conv->uses(shape);
    TRY(base_tensor(choice->floats, sizeof(float), "prepared weights", &choice->prepared));
    choice->conv->prepare(shape, w, choice->prepared);
out:
    return st;
}

static base_status take_tensors(struct nn_conv_answer *c, struct nn_node *node,
                                const float *weights)
{
    base_status st = BASE_OK;

    if (node->params > 1) {
        const struct nn_tensor *bias = &node->param[1];

        TRY(base_tensor(bias->floats, sizeof(float), "a bias", &c->bias));
        memcpy(c->bias, weights + bias->offset, bias->floats * sizeof(float));
    }
    node->params = 0;
out:
    return st;
}

/* One kernel for single samples and one for full batches, where they differ: the second from the
 * smallest batch on for which it costs less. */
static void choose(struct nn_conv_answer *c, const struct nn_conv_shape *shape)
{
    const struct nn_conv *small = nn_prefer(shape, 1), *large = nn_prefer(shape, shape->n_max);
    int n = 1;

    c->choice[c->choices++] = (struct nn_conv_choice){.conv = small, .from = 1};
    if (large == small)
        return;
    while (n < shape->n_max && nn_prefer_cost(small, shape, n) <= nn_prefer_cost(large, shape, n))
        n++;
    c->choice[c->choices++] = (struct nn_conv_choice){.conv = large, .from = n};
}

/* What a kernel plan gives the layer. One name for all layers counts where it serves. */
static base_status obey(struct nn_conv_answer *c, const struct nn_conv_shape *shape,
                        const char *kernels, const char *wish)
{
    const struct nn_conv *conv = strchr(kernels, '=') == NULL
                                     ? base_registry_get(wish, nn_conv_registry(), nn_conv_count())
                                     : NULL;

    if (conv != NULL && !conv->serves(shape)) {
        choose(c, shape);
        return BASE_OK;
    }
    c->choice[0].from = c->choices = 1;
    return nn_conv_choose(wish, shape, &c->choice[0].conv);
}

base_status nn_conv_answer_make(struct nn_node *nodes, int i, int room, int n_max,
                                const float *weights, const char *kernels,
                                struct nn_conv_answer **conv_p)
{
    base_status st = BASE_OK;
    struct nn_node *node = &nodes[i];
    const struct nn_conv_shape shape = shape_of(node, n_max);
    struct nn_conv_answer *c = base_calloc(1, sizeof *c);
    char *wish = nn_kernelplan_kernel(kernels, node);

    *conv_p = NULL;
    c->config = *(const struct nn_conv_config *)node->config;
    if (wish != NULL)
        TRY(obey(c, &shape, kernels, wish));
    else
        choose(c, &shape);
    for (int k = 0; k < c->choices; k++)
        TRY(prepare(&c->choice[k], &shape, weights + node->param[0].offset));
    if (c->choice[0].prepared != NULL)
        TRY(take_tensors(c, node, weights));
    hide(nodes, i, take_tail(nodes, i, i + room, c));
    node->layer = c->add ? &adding_layer : &plain_layer;
    node->config = c;
    *conv_p = c;
    c = NULL;
out:
    base_free(wish);
    nn_conv_answer_free(c);
    return base_prefix(st, "layer %s", node->name);
}

const struct nn_conv_choice *nn_conv_answer_choice(const struct nn_conv_answer *conv, int n)
{
    int i = conv->choices - 1;

    while (i > 0 && n < conv->choice[i].from)
        i--;
    return &conv->choice[i];
}

void nn_conv_answer_free(struct nn_conv_answer *conv)
{
    for (int i = 0; conv != NULL && i < conv->choices; i++)
        base_free(conv->choice[i].prepared);
    base_free(conv != NULL ? conv->bias : NULL);
    base_free(conv);
}
