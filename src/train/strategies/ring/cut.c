/* SPDX-License-Identifier: MIT
 *
 * First the smallest bound on the cost of a stage, by bisection: with one lap that is the best cut.
 * With several a worker has the sum of its stages to do, and a search for better cuts follows,
 * which ends after so many tries; in models of the zoo it sees them all.
 */
#include "train/strategies/ring/cut.h"

#include <assert.h>

#include "base/mem.h"
#include "nn/fuse.h"

/* What a value that a layer reads or writes costs, in flops: layers such as relu are as fast as
 * memory is. */
static const double COST_OF_VALUE = 8;

enum { BISECTIONS = 60, TRIES = 200000 };

static const double LESS = 1 - 1e-9; /* a gain that rounding cannot feign */

int ring_cut_worker(const struct ring_cut *cut, int stage)
{
    int lap = stage / cut->workers, index = stage % cut->workers;

    return cut->order == RING_FOLD && lap % 2 == 1 ? cut->workers - 1 - index : index;
}

int ring_cut_stages(const struct ring_cut *cut, int worker, int stages[RING_MAX_LAPS])
{
    int count = 0;

    for (int stage = 0; stage < cut->stages; stage++)
        if (ring_cut_worker(cut, stage) == worker)
            stages[count++] = stage;
    return count;
}

int ring_cut_before(const struct ring_cut *cut, int worker)
{
    return (worker + cut->workers - 1) % cut->workers;
}

bool ring_cut_holds(const struct ring_cut *cut, bool replicate, int worker, int stage)
{
    int owner = ring_cut_worker(cut, stage);

    return owner == worker || (replicate && owner == ring_cut_before(cut, worker));
}

/* ---- costs ---- */

/* Stages of at most `bound`, as long as possible; each has a unit at least. */
static bool ring_cut_within(const double *costs, int units, double bound, struct ring_cut *cut)
{
    int at = 0;

    for (int stage = 0; stage < cut->stages; stage++) {
        int most = units - (cut->stages - 1 - stage);
        double sum = costs[at];

        cut->first[stage] = at++;
        if (sum > bound)
            return false;
        while (at < most && sum + costs[at] <= bound)
            sum += costs[at++];
    }
    cut->first[cut->stages] = at;
    return at == units;
}

static void ring_cut_evenly(const double *costs, int units, struct ring_cut *cut)
{
    double low = 0, high = 0;

    for (int i = 0; i < units; i++)
        high += costs[i];
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;

        if (ring_cut_within(costs, units, middle, cut))
            high = middle;
        else
            low = middle;
    }
    if (!ring_cut_within(costs, units, high * (1 + 1e-12), cut))
        assert(!"a bound that was wide enough is");
}

/* The most that a worker has to do. `upto`: the sums of the costs before each unit. */
static double ring_cut_most(const double *upto, const struct ring_cut *cut)
{
    double of[COMM_MAX_WORKERS] = {0}, most = 0;

    for (int stage = 0; stage < cut->stages; stage++) {
        double *sum = &of[ring_cut_worker(cut, stage)];

        *sum += upto[cut->first[stage + 1]] - upto[cut->first[stage]];
        most = *sum > most ? *sum : most;
    }
    return most;
}

/* All cuts in turn, but for those that cannot be better than the best so far. */
struct ring_search {
    const double *upto;
    int units, tries;
    double of[COMM_MAX_WORKERS]; /* what each worker has to do in the stages that are placed */
    double best;
    struct ring_cut now, *found;
};

/* Places the units from `at` on in the stages from `stage` on. The workers whose stages are all
 * placed have `closed` to do together. */
static void ring_search_from(struct ring_search *s, int stage, int at, double closed)
{
    int worker = ring_cut_worker(&s->now, stage), left = s->now.stages - 1 - stage;
    bool even = s->now.order == RING_AROUND || s->now.stages % s->now.workers == 0;
    bool closes = even && left < s->now.workers; /* the worker has no stage after this one */
    double before = s->of[worker];

    s->now.first[stage] = at;
    for (int end = at + 1; end <= s->units - left && s->tries > 0; end++) {
        double rest, sum;

        s->tries--;
        s->of[worker] = before + (s->upto[end] - s->upto[at]);
        if (s->of[worker] >= s->best * LESS)
            break;
        sum = closed + (closes ? s->of[worker] : 0);
        rest = s->upto[s->units] - sum; /* for the others, who are so many: */
        if (closes && rest > left * s->best)
            continue;
        s->now.first[stage + 1] = end;
        if (left > 0) {
            ring_search_from(s, stage + 1, end, sum);
        } else {
            s->best = ring_cut_most(s->upto, &s->now);
            *s->found = s->now;
        }
    }
    s->of[worker] = before;
}

static double *ring_sums(const double *costs, int units)
{
    double *upto = base_calloc((size_t)units + 1, sizeof *upto);

    for (int i = 0; i < units; i++)
        upto[i + 1] = upto[i] + costs[i];
    return upto;
}

void ring_cut_costs(const double *costs, int units, struct ring_cut *cut)
{
    double *upto = ring_sums(costs, units);
    struct ring_search s = {.upto = upto, .units = units, .tries = TRIES, .found = cut};

    assert(cut->stages >= 1 && cut->stages <= units);
    ring_cut_evenly(costs, units, cut);
    s.now = *cut;
    s.best = ring_cut_most(upto, cut);
    if (cut->stages > cut->workers)
        ring_search_from(&s, 0, 0, 0);
    base_free(upto);
}

double ring_cut_largest(const double *costs, const struct ring_cut *cut)
{
    double *upto = ring_sums(costs, cut->first[cut->stages]), most = ring_cut_most(upto, cut);

    base_free(upto);
    return most;
}

/* ---- a model ---- */

static double ring_cost_of(const struct nn_node *node)
{
    return node->flops +
           COST_OF_VALUE * (double)(nn_shape_values(node->in) + nn_shape_values(node->out));
}

/* May a stage begin with this layer? Layers that are computed as one stay together, or the bits
 * would be others, and a loss stays with what it compares. */
static bool ring_may_begin(const struct nn_graph *fused, int layer)
{
    return layer == 0 ||
           (!nn_graph_node(fused, layer - 1)->hidden && !nn_graph_node(fused, layer)->layer->loss);
}

int ring_cut_units(const struct nn_graph *graph, double *costs, int *begins)
{
    int layers = nn_graph_layers(graph), units = 0;
    struct nn_graph *fused = nn_graph_fuse(graph, 0, layers);

    for (int i = 0; i < layers; i++) {
        if (ring_may_begin(fused, i)) {
            begins[units] = i;
            costs[units++] = 0;
        }
        costs[units - 1] += ring_cost_of(nn_graph_node(graph, i));
    }
    begins[units] = layers;
    nn_graph_free(fused);
    return units;
}

void ring_cut_make(const struct nn_graph *graph, const struct ring_options *options, int workers,
                   struct ring_cut *cut)
{
    size_t layers = (size_t)nn_graph_layers(graph);
    double *costs = base_calloc(layers, sizeof *costs);
    int *begins = base_calloc(layers + 1, sizeof *begins);
    int units = ring_cut_units(graph, costs, begins), most = workers * (int)options->laps;

    *cut = (struct ring_cut){
        .workers = workers,
        .stages = most < units ? most : units,
        .order = options->order,
        .spare = ring_options_split(options, workers) ? workers : 0,
    };
    ring_cut_costs(costs, units, cut);
    for (int stage = 0; stage <= cut->stages; stage++)
        cut->first[stage] = begins[cut->first[stage]];
    base_free(costs);
    base_free(begins);
}

double ring_cut_unevenness(const struct nn_graph *graph, const struct ring_cut *cut)
{
    int layers = nn_graph_layers(graph);
    double *costs = base_calloc((size_t)layers, sizeof *costs), sum = 0, most;

    for (int i = 0; i < layers; i++)
        sum += costs[i] = ring_cost_of(nn_graph_node(graph, i));
    most = ring_cut_largest(costs, cut);
    base_free(costs);
    return most * cut->workers / sum;
}

size_t ring_cut_crossing(const struct nn_graph *graph, int layer)
{
    int layers = nn_graph_layers(graph);
    size_t floats = nn_shape_floats(nn_graph_node(graph, layer)->in);

    for (int saved = 0; saved < layer; saved++) {
        bool used = false;

        for (int i = layer; i < layers; i++)
            used |= nn_graph_node(graph, i)->named == saved;
        if (used)
            floats += nn_shape_floats(nn_graph_node(graph, saved)->out);
    }
    return floats;
}
