/* SPDX-License-Identifier: MIT
 *
 * Convolutions by oneDNN (nn/conv/onednn), which serve every shape: our shapes as oneDNN's
 * descriptors, and one plan of three operations for each batch size. Channels of ungrouped
 * convolutions are described padded to eight: the padding is zero in x, w, b and dy, so it comes
 * out zero in y, dw, db and dx. The plan of n_max is made by open; one for another n is made, once,
 * when that n is first seen: the only place where a step allocates. Owns its plans; a state is used
 * by one thread at a time. Compiled for each CPU level as any form is, though oneDNN has levels of
 * its own (nn/conv/onednn/engine.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "nn/conv/form.h"
#include "nn/conv/onednn/onednn_private.h"

enum pass { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS, PASSES };

/* n_max, the rest of the training set, the rest of the test set, and one to spare. */
enum { PLANS = 4 };

struct plan {
    int n; /* 0: unused */
    struct nn_op op[PASSES];
    void *memory; /* when it wants more scratch than n_max did, else NULL */
};

struct state {
    struct nn_conv_shape shape;
    dnnl_memory_desc_t weights, bias;
    struct plan plan[PLANS]; /* [0]: n_max */
    int next;                /* the plan that is replaced next */
    size_t scratch_bytes;
    char implementation[128];
};

static bool onednn_serves(const struct nn_conv_shape *shape)
{
    (void)shape;
    return true;
}

/* oneDNN has kernels of their own for these. */
enum kind { PLANAR, ONE, OTHER, KINDS };

static const struct nn_cost_rates rates[BASE_CPU_LEVELS][KINDS] = {
    [BASE_CPU_portable] = {[PLANAR] = {{36.6, 949, 1491}, {80.2, 1257, 1}},
                           [ONE] = {{62.3, 94, 599}, {71.7, 673, 166}},
                           [OTHER] = {{48.5, 503, 1}, {75.5, 2491, 611}}},
    [BASE_CPU_avx2] = {[PLANAR] = {{18.2, 79, 7}, {24.1, 234, 1}},
                       [ONE] = {{20.9, 93, 1}, {23.2, 120, 1}},
                       [OTHER] = {{22.6, 1, 1}, {25.5, 1, 322}}},
    [BASE_CPU_avx512] = {[PLANAR] = {{18.2, 79, 7}, {24.1, 234, 1}},
                         [ONE] = {{20.9, 93, 1}, {23.2, 120, 1}},
                         [OTHER] = {{22.6, 1, 1}, {25.5, 1, 322}}},
};

static double onednn_cost(const struct nn_conv_shape *shape, enum base_cpu_level level)
{
    const enum kind kind = shape->in.planar                                 ? PLANAR
                           : shape->kernel[0] == 1 && shape->kernel[1] == 1 ? ONE
                                                                            : OTHER;
    const double blocks = nn_pad8(shape->out.c) / (double)NN_BLOCK;
    struct nn_cost forward = nn_cost_plain(shape);

    forward.product *= 1 + 0.5 / shape->out.w;      /* to begin a row takes half a pixel's time */
    forward.product *= 1 + 1.0 / (blocks * blocks); /* few channels leave multipliers idle */
    return nn_cost_seconds(shape, &rates[level][kind], forward);
}

/* Channels as oneDNN sees them: groups divide the true number only. */
static int channels(const struct nn_conv_shape *shape, const struct nn_shape *side)
{
    return shape->groups > 1 || side->planar ? side->c : nn_pad8(side->c);
}

static base_status layout(dnnl_memory_desc_t *layout_p, int rank, const dnnl_dims_t dims,
                          dnnl_format_tag_t tag)
{
    return nn_onednn_check(dnnl_memory_desc_init_by_tag(layout_p, rank, dims, dnnl_f32, tag),
                           "describe a tensor");
}

static base_status activation(const struct nn_conv_shape *shape, const struct nn_shape *side, int n,
                              dnnl_memory_desc_t *layout_p)
{
    const dnnl_dims_t dims = {n, channels(shape, side), side->h, side->w};

    return layout(layout_p, 4, dims, side->planar ? dnnl_nchw : dnnl_nChw8c);
}

static base_status parameters(struct state *s)
{
    base_status st = BASE_OK;
    const struct nn_conv_shape *shape = &s->shape;
    const int o = channels(shape, &shape->out), i = channels(shape, &shape->in), g = shape->groups;
    const dnnl_dims_t plain = {g, o / g, i / g, shape->kernel[0], shape->kernel[1]};
    const dnnl_dims_t dense = {o, i, shape->kernel[0], shape->kernel[1]};
    const dnnl_dims_t vector = {o};

    if (g > 1)
        TRY(layout(&s->weights, 5, plain, dnnl_goihw));
    else
        TRY(layout(&s->weights, 4, dense, shape->in.planar ? dnnl_Ohwi8o : dnnl_OIhw8i8o));
    TRY(layout(&s->bias, 1, vector, dnnl_a));
out:
    return st;
}

struct geometry {
    dnnl_dims_t stride, pad;
    dnnl_prop_kind_t kind; /* of forward */
};

static struct geometry geometry_of(const struct nn_conv_shape *shape)
{
    return (struct geometry){{shape->stride[0], shape->stride[1]},
                             {shape->pad[0], shape->pad[1]},
                             shape->training ? dnnl_forward_training : dnnl_forward_inference};
}

/* layouts: x, w, y and, with bias, b */
static dnnl_status_t describe_forward(const void *context, const dnnl_memory_desc_t *layouts,
                                      dnnl_convolution_desc_t *descriptor_p)
{
    const struct nn_conv_shape *shape = context;
    const struct geometry g = geometry_of(shape);

    return dnnl_convolution_forward_desc_init(
        descriptor_p, g.kind, dnnl_convolution_direct, &layouts[0], &layouts[1],
        shape->bias ? &layouts[3] : NULL, &layouts[2], g.stride, g.pad, g.pad);
}

/* layouts: dy, w, dx */
static dnnl_status_t describe_data(const void *context, const dnnl_memory_desc_t *layouts,
                                   dnnl_convolution_desc_t *descriptor_p)
{
    const struct geometry g = geometry_of(context);

    return dnnl_convolution_backward_data_desc_init(descriptor_p, dnnl_convolution_direct,
                                                    &layouts[2], &layouts[1], &layouts[0], g.stride,
                                                    g.pad, g.pad);
}

/* layouts: x, dy, dw and, with bias, db */
static dnnl_status_t describe_weights(const void *context, const dnnl_memory_desc_t *layouts,
                                      dnnl_convolution_desc_t *descriptor_p)
{
    const struct nn_conv_shape *shape = context;
    const struct geometry g = geometry_of(shape);

    return dnnl_convolution_backward_weights_desc_init(
        descriptor_p, dnnl_convolution_direct, &layouts[0], &layouts[2],
        shape->bias ? &layouts[3] : NULL, &layouts[1], g.stride, g.pad, g.pad);
}

static base_status plan_open(const struct state *s, int n, struct plan *plan)
{
    base_status st = BASE_OK;
    const struct nn_conv_shape *shape = &s->shape;
    const int bias = shape->bias ? 1 : 0;
    dnnl_memory_desc_t x, y;

    TRY(activation(shape, &shape->in, n, &x));
    TRY(activation(shape, &shape->out, n, &y));
    plan->op[FORWARD] = (struct nn_op){
        .operand = {{DNNL_ARG_SRC, dnnl_query_src_md, .ours = x},
                    {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, .weights = true, .ours = s->weights},
                    {DNNL_ARG_DST, dnnl_query_dst_md, .output = true, .ours = y},
                    {DNNL_ARG_BIAS, dnnl_query_weights_md, .ours = s->bias}},
        .operands = 3 + bias};
    plan->op[BACKWARD_DATA] = (struct nn_op){
        .operand = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, .ours = y},
                    {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, .weights = true, .ours = s->weights},
                    {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, .output = true, .ours = x}},
        .operands = 3};
    plan->op[BACKWARD_WEIGHTS] = (struct nn_op){
        .operand = {{DNNL_ARG_SRC, dnnl_query_src_md, .ours = x},
                    {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, .ours = y},
                    {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, true, true, s->weights},
                    {DNNL_ARG_DIFF_BIAS, dnnl_query_diff_weights_md, .output = true,
                     .ours = s->bias}},
        .operands = 3 + bias};
    TRY(nn_onednn_op_init(&plan->op[FORWARD], describe_forward, shape, NULL));
    if (shape->training && shape->want_dx)
        TRY(nn_onednn_op_init(&plan->op[BACKWARD_DATA], describe_data, shape, &plan->op[FORWARD]));
    if (shape->training)
        TRY(nn_onednn_op_init(&plan->op[BACKWARD_WEIGHTS], describe_weights, shape,
                              &plan->op[FORWARD]));
    plan->n = n;
out:
    return st;
}

static void plan_close(struct plan *plan)
{
    for (int i = 0; i < PASSES; i++)
        nn_onednn_op_fini(&plan->op[i]);
    base_free(plan->memory);
    *plan = (struct plan){0};
}

static size_t plan_scratch(const struct plan *plan)
{
    size_t most = 0;

    for (int i = 0; i < PASSES; i++)
        if (plan->op[i].scratch_bytes > most)
            most = plan->op[i].scratch_bytes;
    return most;
}

static const char *name_of(const struct plan *plan, enum pass pass)
{
    const char *name = plan->op[pass].implementation;

    return name ? name : "-";
}

static void onednn_close(void *state)
{
    struct state *s = state;

    if (!s)
        return;
    for (int i = 0; i < PLANS; i++)
        plan_close(&s->plan[i]);
    base_free(s);
}

static base_status onednn_open(struct nn_conv_work *work)
{
    base_status st = BASE_OK;
    struct state *s = base_calloc(1, sizeof *s);

    s->shape = work->shape;
    TRY(parameters(s));
    TRY(plan_open(s, s->shape.n_max, &s->plan[0]));
    s->next = 1;
    s->scratch_bytes = plan_scratch(&s->plan[0]);
    snprintf(s->implementation, sizeof s->implementation, "%s %s %s", name_of(&s->plan[0], FORWARD),
             name_of(&s->plan[0], BACKWARD_DATA), name_of(&s->plan[0], BACKWARD_WEIGHTS));
    work->scratch_bytes = s->scratch_bytes;
    work->state = s;
    s = NULL;
out:
    onednn_close(s);
    return st;
}

static const char *onednn_implementation(const struct nn_conv_work *work)
{
    const struct state *s = work->state;

    return s->implementation;
}

/* The plan for n, made if need be in the place of the oldest but that of n_max. */
static base_status plan_for(struct state *s, int n, struct plan **plan_p)
{
    base_status st = BASE_OK;
    struct plan *plan;
    size_t bytes;

    *plan_p = NULL;
    for (int i = 0; i < PLANS; i++)
        if (s->plan[i].n == n) {
            *plan_p = &s->plan[i];
            return BASE_OK;
        }
    plan = &s->plan[s->next];
    plan_close(plan);
    TRY(plan_open(s, n, plan));
    bytes = plan_scratch(plan);
    if (bytes > s->scratch_bytes)
        TRY(base_tensor(bytes, 1, "a convolution's scratch", &plan->memory));
    s->next = s->next + 1 < PLANS ? s->next + 1 : 1;
    *plan_p = plan;
    plan = NULL;
out:
    if (plan)
        plan_close(plan);
    return st;
}

static base_status onednn_run(struct state *s, enum pass pass, int n, void *const *memory,
                              void *scratch)
{
    base_status st = BASE_OK;
    struct plan *plan;

    TRY(plan_for(s, n, &plan));
    TRY(nn_onednn_op_run(&plan->op[pass], memory, plan->memory ? plan->memory : scratch));
out:
    return st;
}

/* oneDNN's memories are not const; it does not change what it reads. */
static void *input(const float *memory)
{
    union {
        const float *from;
        void *to;
    } cast = {memory};

    return cast.to;
}

/* x (n,I,H,W), w, b (O) -> y (n,O,HO,WO) */
static base_status onednn_forward(const struct nn_conv_work *work, int n, const float *x,
                                  const float *w, const float *b, float *y, void *scratch)
{
    return onednn_run(work->state, FORWARD, n, (void *const[]){input(x), input(w), y, input(b)},
                      scratch);
}

/* x (n,I,H,W), dy (n,O,HO,WO), w -> dw, db (O), dx (n,I,H,W) */
static base_status onednn_backward(const struct nn_conv_work *work, int n, const float *x,
                                   const float *dy, const float *w, float *dw, float *db, float *dx,
                                   void *scratch)
{
    base_status st = BASE_OK;
    const int o = work->shape.out.c;

    if (db)
        memset(db + o, 0, (size_t)(nn_pad8(o) - o) * sizeof *db);
    if (dw)
        TRY(onednn_run(work->state, BACKWARD_WEIGHTS, n,
                       (void *const[]){input(x), input(dy), dw, db}, scratch));
    if (dx)
        TRY(onednn_run(work->state, BACKWARD_DATA, n, (void *const[]){input(dy), input(w), dx},
                       scratch));
out:
    return st;
}

const struct nn_conv NN_LEVEL(conv_onednn) = {
    .name = "onednn",
    .help = "oneDNN's direct convolutions: any kernel, stride, padding and groups",
    .share = 1,
    .serves = onednn_serves,
    .cost = onednn_cost,
    .open = onednn_open,
    .close = onednn_close,
    .forward = onednn_forward,
    .backward = onednn_backward,
    .implementation = onednn_implementation,
};
