/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/measure.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/mem.h"
#include "nn/net.h"
#include "nn/simd/simd.h"

enum { PASSES = 5, MAX_EDGES = 64 };

static const double ENOUGH = 1; /* seconds: after them one pass a unit has to do */

/* One unit on the bench. */
struct ring_bench {
    struct nn_net *net;
    size_t weights; /* floats */
    float *sum;     /* of gradients, as a stage has it */
    float *x;       /* samples; zeros are numbers of rows, too, where a model begins with those */
    int32_t *labels;
    uint32_t *ids;
    float *targets;
    int samples;
};

static void ring_fill(float *at, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        at[i] = value;
}

/* What the neighbours would send. */
static void ring_bench_edges(const struct ring_bench *b)
{
    struct nn_edge edges[MAX_EDGES];

    for (int i = nn_net_entering(b->net, edges, MAX_EDGES); i-- > 0;)
        if (edges[i].values != NULL)
            ring_fill(edges[i].values, (size_t)b->samples * nn_shape_floats(edges[i].shape), 0.5f);
    for (int i = nn_net_leaving(b->net, edges, MAX_EDGES); i-- > 0;)
        if (edges[i].gradients != NULL)
            ring_fill(edges[i].gradients, (size_t)b->samples * nn_shape_floats(edges[i].shape),
                      1e-3f);
}

static base_status ring_bench_open(struct ring_bench *b, const struct train_session *s,
                                   const struct nn_setup *setup)
{
    base_status st = BASE_OK;
    const struct nn_graph *graph = s->state.graph;
    size_t n = (size_t)setup->n_max, values = n * nn_shape_values(nn_graph_input(graph));

    *b = (struct ring_bench){.samples = setup->n_max};
    b->weights = nn_graph_weights_of(graph, setup->first, setup->last).count;
    TRY(nn_net_new(graph, setup, &b->net));
    TRY(base_tensor(b->weights, sizeof(float), "summed gradients", &b->sum));
    if (setup->first == 0)
        TRY(base_tensor(values, sizeof *b->x, "samples", &b->x));
    TRY(base_tensor(n, sizeof *b->labels, "labels", &b->labels));
    TRY(base_tensor(n, sizeof *b->ids, "sample ids", &b->ids));
    if (nn_graph_predicts_number(graph))
        TRY(base_tensor(n, sizeof *b->targets, "targets", &b->targets));
    /* Pages that were never written are all the same one, which any cache holds. */
    ring_fill(nn_net_weights(b->net), b->weights, 0.01f);
    ring_fill(b->sum, b->weights, 0);
    if (b->x != NULL)
        ring_fill(b->x, values, 0);
out:
    return st;
}

static void ring_bench_close(struct ring_bench *b)
{
    nn_net_free(b->net);
    base_free(b->sum);
    base_free(b->x);
    base_free(b->labels);
    base_free(b->ids);
    base_free(b->targets);
}

static void ring_bench_add(void *context, size_t from, size_t count)
{
    const struct ring_bench *b = context;
    float *gradients = nn_net_gradients(b->net);

    nn_simd()->add(count, b->sum + from, gradients + from, b->sum + from);
}

/* A micro-batch through the unit: what each part took of this thread's time. That other processes
 * had the core for a while says nothing of the worker. */
static base_status ring_bench_pass(struct ring_bench *b, double seconds[RING_PARTS])
{
    base_status st = BASE_OK;
    const struct nn_ready ready = {ring_bench_add, b};
    struct nn_batch batch = {.n = b->samples,
                             .x = b->x,
                             .samples = {.labels = b->targets == NULL ? b->labels : NULL,
                                         .targets = b->targets,
                                         .ids = b->ids,
                                         .seed = 1}};
    struct nn_outcome outcome;
    double began;

    ring_bench_edges(b);
    began = base_thread_cpu();
    TRY(nn_net_forward(b->net, &batch, true, &outcome));
    seconds[RING_PART_FORWARD] = base_thread_cpu() - began;
    began = base_thread_cpu();
    TRY(nn_net_backward(b->net, 1.0f / (float)b->samples, ready));
    seconds[RING_PART_BACKWARD] = base_thread_cpu() - began;
    began = base_thread_cpu();
    for (int i = 0; i < nn_net_deferred(b->net); i++)
        TRY(nn_net_backward_deferred(b->net, i, ready));
    seconds[RING_PART_WEIGHTS] = base_thread_cpu() - began;
out:
    return st;
}

/* Bytes that this worker will need beside its weights, which it may have already. */
static double ring_bench_room(const struct train_session *s)
{
    const struct train_memory *m = &s->memory;

    return m->of[TRAIN_MEMORY_ACTIVATIONS].own + m->of[TRAIN_MEMORY_GRADIENTS].own +
           m->of[TRAIN_MEMORY_COMMUNICATION].own;
}

static base_status ring_measure_unit(const struct train_session *s, const struct nn_setup *setup,
                                     int passes, struct ring_unit *unit)
{
    base_status st = BASE_OK;
    struct nn_memory memory;
    struct ring_bench bench = {0};

    TRY(nn_net_memory(s->state.graph, setup, &memory));
    if ((double)nn_memory_total(&memory, 1) > ring_bench_room(s))
        goto out;
    TRY(ring_bench_open(&bench, s, setup));
    for (int part = 0; part < RING_PARTS; part++)
        unit->part[part] = INFINITY;
    for (int i = 0; i < passes; i++) {
        double seconds[RING_PARTS];

        TRY(ring_bench_pass(&bench, seconds));
        for (int part = 0; part < RING_PARTS; part++)
            unit->part[part] = fmin(unit->part[part], seconds[part]);
    }
out:
    ring_bench_close(&bench);
    return st;
}

double ring_measure_stretch(double cpus, int workers, int threads)
{
    return fmax(1, (double)workers * threads / cpus);
}

static base_status ring_measure_units(const struct train_session *s, const struct ring_costs *costs,
                                      struct ring_profile *p)
{
    base_status st = BASE_OK;
    const struct ring_options *options = s->options;
    double began = base_now();

    ring_profile_fini(p);
    p->at = base_calloc((size_t)costs->units, sizeof *p->at);
    for (int i = 0; i < costs->units; i++) {
        const struct nn_setup setup = {
            .first = costs->begins[i],
            .last = costs->begins[i + 1],
            .n_max = costs->samples,
            .training = true,
            .split = ring_options_split(options, s->team.exchange.size),
            .kernels = s->kernels,
        };

        TRY(ring_measure_unit(s, &setup, base_now() - began < ENOUGH ? PASSES : 1, &p->at[i]));
    }
    p->units = costs->units;
    p->samples = costs->samples;
    p->stretch = 1;
out:
    return st;
}

base_status ring_measure(const struct train_session *s, const struct ring_costs *costs,
                         struct ring_profile *p)
{
    base_status st = BASE_OK;
    double stretch =
        ring_measure_stretch(base_cpus_time(), train_team_neighbours(&s->team), s->threads);

    train_fault_at(&s->fault, "profile", s->state.position.step);
    if (p->units != costs->units || p->samples != costs->samples)
        TRY(ring_measure_units(s, costs, p));
    for (int i = 0; i < p->units; i++)
        for (int part = 0; part < RING_PARTS; part++)
            p->at[i].part[part] *= stretch / p->stretch;
    p->stretch = stretch;
out:
    return st;
}

void ring_profile_fini(struct ring_profile *p)
{
    base_free(p->at);
    *p = (struct ring_profile){0};
}
