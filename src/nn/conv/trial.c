/* SPDX-License-Identifier: MIT */
#include "nn/conv/trial.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/registry.h"
#include "base/rng.h"
#include "nn/threads.h"

/* ---- the data ---- */

struct bench {
    const struct nn_conv_shape *shape;
    size_t x_floats, y_floats, w_floats;
    float *x, *y, *dy, *dx, *w, *dw, *b, *db;
    float *want_y, *want_dx, *want_dw; /* of the reference */
    void *scratch;
};

static void fill(float *values, size_t count, uint32_t what)
{
    struct base_rng rng = base_rng_of(1, BASE_STREAM_TEST, what, 0, 0);
    uint32_t words[4] = {0};

    for (size_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            base_rng_block(&rng, (uint32_t)(i / 4), words);
        values[i] = 2 * base_rng_unit(words[i % 4]) - 1;
    }
}

/* Zero in the padded channels of n samples, as every layer leaves them. */
static void clear_padding(struct nn_shape s, int n, float *values)
{
    size_t area = (size_t)s.h * (size_t)s.w, floats = nn_shape_floats(s);

    if (s.planar || s.c % NN_BLOCK == 0)
        return;
    for (int i = 0; i < n; i++) {
        float *block = values + (size_t)(i + 1) * floats - area * NN_BLOCK;

        for (size_t p = 0; p < area; p++)
            for (int c = s.c % NN_BLOCK; c < NN_BLOCK; c++)
                block[p * NN_BLOCK + (size_t)c] = 0;
    }
}

/* Weights (padding zero) through the tensor's own import, so that any layout is right. */
static base_status fill_weights(struct bench *b, const struct nn_node *node)
{
    base_status st = BASE_OK;
    const struct nn_tensor *t = &node->param[0];
    float *canonical = NULL;

    TRY(base_tensor(t->values, sizeof(float), "a trial of kernels", &canonical));
    fill(canonical, t->values, 3);
    nn_tensor_import(t, canonical, b->w);
out:
    base_free(canonical);
    return st;
}

static void bench_fini(struct bench *b)
{
    float *all[] = {b->x, b->y,  b->dy,     b->dx,      b->w,      b->dw,
                    b->b, b->db, b->want_y, b->want_dx, b->want_dw};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        base_free(all[i]);
    base_free(b->scratch);
}

static base_status bench_init(struct bench *b, const struct nn_conv_shape *shape,
                              const struct nn_node *node)
{
    base_status st = BASE_OK;
    size_t n = (size_t)shape->n_max, o = (size_t)nn_pad8(shape->out.c);
    const char *what = "a trial of kernels";

    *b = (struct bench){.shape = shape,
                        .x_floats = n * nn_shape_floats(shape->in),
                        .y_floats = n * nn_shape_floats(shape->out),
                        .w_floats = node->param[0].floats};
    TRY(base_tensor(b->x_floats, sizeof(float), what, &b->x));
    TRY(base_tensor(b->x_floats, sizeof(float), what, &b->dx));
    TRY(base_tensor(b->x_floats, sizeof(float), what, &b->want_dx));
    TRY(base_tensor(b->y_floats, sizeof(float), what, &b->y));
    TRY(base_tensor(b->y_floats, sizeof(float), what, &b->dy));
    TRY(base_tensor(b->y_floats, sizeof(float), what, &b->want_y));
    TRY(base_tensor(b->w_floats, sizeof(float), what, &b->w));
    TRY(base_tensor(b->w_floats, sizeof(float), what, &b->dw));
    TRY(base_tensor(b->w_floats, sizeof(float), what, &b->want_dw));
    TRY(base_tensor(o, sizeof(float), what, &b->b));
    TRY(base_tensor(o, sizeof(float), what, &b->db));
    fill(b->x, b->x_floats, 1);
    fill(b->dy, b->y_floats, 2);
    clear_padding(shape->in, shape->n_max, b->x);
    clear_padding(shape->out, shape->n_max, b->dy);
    TRY(fill_weights(b, node));
out:
    return st;
}

/* ---- the candidates ---- */

static double trial_clock(void)
{
    return nn_threads() == 1 ? base_thread_cpu() : base_now();
}

static base_status run_once(const struct bench *b, const struct nn_conv_work *work,
                            double *seconds_p)
{
    const struct nn_conv_shape *s = b->shape;
    const float *bias = s->bias ? b->b : NULL;
    base_status st = BASE_OK;
    double began = trial_clock();

    TRY(work->conv->forward(work, s->n_max, b->x, b->w, bias, b->y, b->scratch));
    if (s->training)
        TRY(work->conv->backward(work, s->n_max, b->x, b->dy, b->w, b->dw, s->bias ? b->db : NULL,
                                 s->want_dx ? b->dx : NULL, b->scratch));
    *seconds_p = trial_clock() - began;
out:
    return st;
}

static double distance(size_t count, const float *is, const float *want)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        double d = (double)is[i] - want[i];

        difference += d * d;
        norm += (double)want[i] * want[i];
    }
    return sqrt(difference / fmax(norm, 1e-30));
}

static double error_of(const struct bench *b)
{
    double error = distance(b->y_floats, b->y, b->want_y);

    if (b->shape->training)
        error = fmax(error, distance(b->w_floats, b->dw, b->want_dw));
    if (b->shape->training && b->shape->want_dx)
        error = fmax(error, distance(b->x_floats, b->dx, b->want_dx));
    return error;
}

/* The first run of a candidate warms up and shows how exact it is. */
static base_status first_run(struct bench *b, const struct nn_conv_work *work,
                             struct nn_trial_time *time)
{
    base_status st = BASE_OK;

    TRY(run_once(b, work, &time->seconds));
    if (work->conv == nn_conv_reference()) {
        memcpy(b->want_y, b->y, b->y_floats * sizeof(float));
        memcpy(b->want_dw, b->dw, b->w_floats * sizeof(float));
        memcpy(b->want_dx, b->dx, b->x_floats * sizeof(float));
    } else {
        time->error = error_of(b);
    }
out:
    return st;
}

/* Opens all that serve, the reference first; their scratch is shared. */
static base_status enter(struct bench *b, struct nn_conv_work *field, int *count_p)
{
    const struct nn_conv *first = nn_conv_reference();
    base_status st = BASE_OK;
    size_t most = 0;

    for (size_t i = 0; i <= nn_conv_count() && *count_p < NN_TRIAL_MOST; i++) {
        const struct nn_conv *conv = i == 0 ? first : nn_conv_registry()[i - 1];

        if ((i > 0 && conv == first) || !conv->serves(b->shape))
            continue;
        TRY(nn_conv_work_init(&field[*count_p], conv, b->shape));
        most = field[*count_p].scratch_bytes > most ? field[*count_p].scratch_bytes : most;
        (*count_p)++;
    }
    TRY(base_tensor(most, 1, "a trial of kernels", &b->scratch));
out:
    return st;
}

static base_status race(struct bench *b, const struct nn_conv_work *field, int count,
                        struct nn_trial_effort effort, struct nn_trial_time *times)
{
    base_status st = BASE_OK;
    double began;

    for (int i = 0; i < count; i++)
        TRY(first_run(b, &field[i], &times[i]));
    began = base_now();
    for (int round = 0; round < effort.rounds && base_now() - began < effort.seconds; round++)
        for (int i = 0; i < count; i++) {
            double seconds;

            TRY(run_once(b, &field[i], &seconds));
            /* The first run paid for page faults: it only counts when there is no other. */
            times[i].seconds = round == 0 ? seconds : fmin(times[i].seconds, seconds);
        }
out:
    return st;
}

base_status nn_trial(const struct nn_conv_shape *shape, const struct nn_node *node,
                     struct nn_trial_effort effort, struct nn_trial_time *times, int *count_p)
{
    struct nn_conv_work field[NN_TRIAL_MOST] = {0};
    struct bench b;
    base_status st = bench_init(&b, shape, node);

    *count_p = 0;
    if (st == BASE_OK)
        st = enter(&b, field, count_p);
    for (int i = 0; i < *count_p; i++)
        times[i] = (struct nn_trial_time){.conv = field[i].conv};
    if (st == BASE_OK && *count_p > 1)
        st = race(&b, field, *count_p, effort, times);
    for (int i = 0; i < *count_p; i++)
        nn_conv_work_fini(&field[i]);
    bench_fini(&b);
    return st;
}
