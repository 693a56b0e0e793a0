/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/costs.h"

#include "base/mem.h"
#include "nn/fuse.h"

/* In flops. Layers such as relu are as fast as memory is. Every micro-batch reads the weights
 * forward and backward and adds to their gradients, which are read and written: that is why few
 * micro-batches compute faster than many. Kernels of convolutions also transform their weights each
 * time. (What a step of mlp:1024x8 and of vgg11 took with 1 to 16 micro-batches says 79 and 377 for
 * a weight in all.) A message is copied four times on its way between workers of a host, twice by
 * each of them, and threads wake up for it. */
static const double COST_OF_VALUE = 8, COST_OF_CALL = 1e5, COST_OF_MESSAGE = 3e6,
                    COST_OF_SENT_VALUE = 64, COST_OF_WEIGHT = 20, COST_OF_SHARED_WEIGHT = 95;

static const double ALIKE = 1.2; /* a difference between workers that may be chance */

/* ---- estimates ---- */

/* May a stage begin with this layer? Layers that are computed as one stay together, or the bits
 * would be others, and a loss stays with what it compares. */
static bool ring_may_begin(const struct nn_graph *fused, int layer)
{
    return layer == 0 ||
           (!nn_graph_node(fused, layer - 1)->hidden && !nn_graph_node(fused, layer)->layer->loss);
}

static void ring_estimate_layer(const struct nn_graph *graph, int layer, double samples,
                                struct ring_unit *unit)
{
    const struct nn_node *node = nn_graph_node(graph, layer);
    double count = (double)nn_graph_weights_of(graph, layer, layer + 1).count;
    bool shared = node->flops > 4 * count; /* by the places of an image: a convolution */
    double weights = count * (shared ? COST_OF_SHARED_WEIGHT : COST_OF_WEIGHT);
    double pass = samples * (node->flops + COST_OF_VALUE * (double)(nn_shape_values(node->in) +
                                                                    nn_shape_values(node->out)));

    unit->part[RING_PART_FORWARD] += pass + weights + COST_OF_CALL;
    unit->part[RING_PART_BACKWARD] += pass + weights + COST_OF_CALL;
    if (weights > 0)
        unit->part[RING_PART_WEIGHTS] += pass + 2 * weights + COST_OF_CALL;
}

void ring_costs_estimate(const struct nn_graph *graph, int samples, struct ring_costs *c)
{
    int layers = nn_graph_layers(graph);
    struct nn_graph *fused = nn_graph_fuse(graph, 0, layers);

    *c = (struct ring_costs){.samples = samples,
                             .at = base_calloc((size_t)layers, sizeof *c->at),
                             .begins = base_calloc((size_t)layers + 1, sizeof *c->begins)};
    for (int i = 0; i < layers; i++) {
        if (ring_may_begin(fused, i)) {
            c->begins[c->units] = i;
            c->at[c->units++].message = COST_OF_MESSAGE + COST_OF_SENT_VALUE * samples *
                                                              (double)ring_cut_crossing(graph, i);
        }
        ring_estimate_layer(graph, i, samples, &c->at[c->units - 1]);
    }
    c->begins[c->units] = layers;
    for (int i = 0; i < COMM_MAX_WORKERS; i++)
        c->slow[i] = 1;
    nn_graph_free(fused);
}

void ring_costs_fini(struct ring_costs *c)
{
    base_free(c->at);
    base_free(c->begins);
    *c = (struct ring_costs){0};
}

/* ---- measurements ---- */

static double ring_unit_sum(const struct ring_unit *unit)
{
    return unit->part[RING_PART_FORWARD] + unit->part[RING_PART_BACKWARD] +
           unit->part[RING_PART_WEIGHTS];
}

static bool ring_unit_known(const struct ring_unit *all, int units, int workers, int unit)
{
    bool known = true;

    for (int i = 0; i < workers; i++)
        known &= ring_unit_sum(&all[i * units + unit]) > 0;
    return known;
}

/* Differences that all workers share are the machine's load, and say nothing of a worker. */
static void ring_costs_slowness(struct ring_costs *c, const double *took, int workers)
{
    double least = took[0], most = took[0];

    for (int i = 1; i < workers; i++) {
        least = took[i] < least ? took[i] : least;
        most = took[i] > most ? took[i] : most;
    }
    for (int i = 0; i < workers; i++)
        c->slow[i] = most < ALIKE * least ? 1 : took[i] / least;
}

bool ring_costs_measured(struct ring_costs *c, const struct ring_unit *all, int workers)
{
    double took[COMM_MAX_WORKERS] = {0}, estimated = 0, measured = 0;
    struct ring_unit *means = base_calloc((size_t)c->units, sizeof *means);

    for (int u = 0; u < c->units; u++)
        for (int i = 0; ring_unit_known(all, c->units, workers, u) && i < workers; i++)
            took[i] += ring_unit_sum(&all[i * c->units + u]);
    if (took[0] <= 0) {
        base_free(means);
        return false;
    }
    ring_costs_slowness(c, took, workers);
    for (int u = 0; u < c->units; u++) {
        if (!ring_unit_known(all, c->units, workers, u))
            continue;
        for (int i = 0; i < workers; i++)
            for (int part = 0; part < RING_PARTS; part++)
                means[u].part[part] +=
                    all[i * c->units + u].part[part] / (c->slow[i] * (double)workers);
        estimated += ring_unit_sum(&c->at[u]);
        measured += ring_unit_sum(&means[u]);
    }
    for (int u = 0; u < c->units; u++) { /* what was not measured is estimated, in seconds */
        bool known = ring_unit_sum(&means[u]) > 0;

        for (int part = 0; part < RING_PARTS; part++)
            c->at[u].part[part] =
                known ? means[u].part[part] : c->at[u].part[part] * measured / estimated;
        c->at[u].message *= measured / estimated;
    }
    base_free(means);
    return true;
}

/* ---- cuts ---- */

static double *ring_costs_sums(const struct ring_costs *c)
{
    double *sums = base_calloc((size_t)c->units, sizeof *sums);

    for (int i = 0; i < c->units; i++)
        sums[i] = ring_unit_sum(&c->at[i]);
    return sums;
}

void ring_costs_cut(const struct ring_costs *c, const struct ring_options *options, int workers,
                    int laps, enum ring_order order, struct ring_cut *cut)
{
    double *sums = ring_costs_sums(c);
    int most = workers * laps;

    *cut = (struct ring_cut){
        .workers = workers,
        .stages = most < c->units ? most : c->units,
        .order = order,
        .spare = ring_options_split(options, workers) ? workers : 0,
    };
    ring_cut_costs(sums, c->units, c->slow, cut);
    for (int stage = 0; stage <= cut->stages; stage++)
        cut->first[stage] = c->begins[cut->first[stage]];
    base_free(sums);
}

/* The unit that begins with this layer. */
static int ring_unit_at(const struct ring_costs *c, int layer)
{
    int unit = 0;

    while (c->begins[unit] < layer)
        unit++;
    return unit;
}

void ring_costs_times(const struct ring_costs *c, const struct ring_cut *cut,
                      struct ring_times *times)
{
    *times = (struct ring_times){0};
    for (int stage = 0; stage < cut->stages; stage++) {
        int first = ring_unit_at(c, cut->first[stage]),
            last = ring_unit_at(c, cut->first[stage + 1]);
        double slow = c->slow[ring_cut_worker(cut, stage)];

        for (int part = 0; part < RING_PARTS; part++)
            for (int u = first; u < last; u++)
                times->part[stage][part] += slow * c->at[u].part[part];
        if (stage == 0 || ring_cut_worker(cut, stage - 1) == ring_cut_worker(cut, stage))
            continue;
        for (int part = RING_PART_FORWARD; part <= RING_PART_BACKWARD; part++) {
            times->part[stage - 1][part] += c->at[first].message;
            times->part[stage][part] += c->at[first].message;
        }
    }
}

double ring_costs_unevenness(const struct ring_costs *c, const struct ring_cut *cut)
{
    double of[COMM_MAX_WORKERS] = {0}, most = 0, sum = 0;

    for (int stage = 0; stage < cut->stages; stage++) {
        double *own = &of[ring_cut_worker(cut, stage)];

        for (int u = ring_unit_at(c, cut->first[stage]); c->begins[u] < cut->first[stage + 1];
             u++) {
            *own += c->slow[ring_cut_worker(cut, stage)] * ring_unit_sum(&c->at[u]);
            sum += ring_unit_sum(&c->at[u]);
        }
        most = *own > most ? *own : most;
    }
    return most * cut->workers / sum;
}
