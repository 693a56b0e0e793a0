/* SPDX-License-Identifier: MIT
 *
 * First the least that the slowest stage can take, by dynamic programming: with one lap that is the
 * best cut. With several a worker has the sum of its stages to do, and a search for better cuts
 * follows, which ends after so many tries; in models of the zoo it sees them all.
 */
#include "train/strategies/ring/cut.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/strategies/ring/costs.h"

enum { TRIES = 200000 };

static const double LESS = 1 - 1e-9; /* a gain that rounding cannot feign */

int64_t ring_options_every(const struct ring_options *options)
{
    static const char EVERY[] = "every:";
    const char *text = options->replicate;
    long long steps;
    char *end;

    if (strcmp(text, "off") == 0 || strcmp(text, "on") == 0)
        return strcmp(text, "on") == 0;
    if (strncmp(text, EVERY, sizeof EVERY - 1) != 0 ||
        !isdigit((unsigned char)text[sizeof EVERY - 1]))
        return -1;
    steps = strtoll(text + sizeof EVERY - 1, &end, 10);
    return *end == '\0' && steps >= 1 && steps <= RING_MAX_EVERY ? steps : -1;
}

int ring_options_copies(const struct ring_options *options, int workers)
{
    int64_t copies = ring_options_every(options) > 0 ? options->replicas : 1;

    return copies < workers ? (int)copies : workers;
}

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

int ring_cut_near(const struct ring_cut *cut, int worker, int places)
{
    return (worker + places + cut->workers) % cut->workers;
}

bool ring_cut_holds(const struct ring_cut *cut, int copies, int worker, int stage)
{
    return ring_cut_near(cut, worker, -ring_cut_worker(cut, stage)) < copies;
}

/* ---- costs ---- */

/* What the worker of a stage multiplies costs by. */
static double ring_slowness(const struct ring_cut *cut, const double *slow, int stage)
{
    return slow != NULL ? slow[ring_cut_worker(cut, stage)] : 1;
}

/* A cut of the first units into the first stages. */
struct ring_prefix {
    double most, squares; /* of what its stages take */
    int begin;            /* the unit with which its last stage begins */
};

/* The cut whose slowest stage is as fast as can be; with one lap that is the best cut. Of several
 * such cuts a more even one. `upto`: the sums of the costs before each unit. */
static void ring_cut_evenly(const double *upto, int units, const double *slow, struct ring_cut *cut)
{
    size_t row = (size_t)units + 1;
    struct ring_prefix *best = base_calloc(((size_t)cut->stages + 1) * row, sizeof *best);
    int end = units;

    for (int stage = 0; stage < cut->stages; stage++) {
        const struct ring_prefix *before = best + (size_t)stage * row;
        struct ring_prefix *now = best + (size_t)(stage + 1) * row;

        for (end = stage + 1; end <= units - (cut->stages - 1 - stage); end++)
            for (int at = stage; at < (stage == 0 ? 1 : end); at++) {
                double own = ring_slowness(cut, slow, stage) * (upto[end] - upto[at]),
                       most = own > before[at].most ? own : before[at].most,
                       squares = before[at].squares + own * own;

                if (at == stage || most < now[end].most * LESS ||
                    (most <= now[end].most && squares < now[end].squares))
                    now[end] = (struct ring_prefix){most, squares, at};
            }
    }
    end = cut->first[cut->stages] = units;
    for (int stage = cut->stages; stage > 0; stage--)
        end = cut->first[stage - 1] = best[(size_t)stage * row + (size_t)end].begin;
    base_free(best);
}

/* How long the worker with the most to do takes. */
static double ring_cut_most(const double *upto, const double *slow, const struct ring_cut *cut)
{
    double of[COMM_MAX_WORKERS] = {0}, most = 0;

    for (int stage = 0; stage < cut->stages; stage++) {
        double *sum = &of[ring_cut_worker(cut, stage)];

        *sum += ring_slowness(cut, slow, stage) *
                (upto[cut->first[stage + 1]] - upto[cut->first[stage]]);
        most = *sum > most ? *sum : most;
    }
    return most;
}

/* All cuts in turn, but for those that cannot be better than the best so far. */
struct ring_search {
    const double *upto, *slow;
    int units, tries;
    double of[COMM_MAX_WORKERS]; /* how long each worker takes for the stages that are placed */
    double best;
    struct ring_cut now, *found;
};

/* Places the units from `at` on in the stages from `stage` on. The workers whose stages are all
 * placed have units of `closed` together. */
static void ring_search_from(struct ring_search *s, int stage, int at, double closed)
{
    int worker = ring_cut_worker(&s->now, stage), left = s->now.stages - 1 - stage;
    bool even = s->now.order == RING_AROUND || s->now.stages % s->now.workers == 0;
    bool closes = even && left < s->now.workers; /* the worker has no stage after this one */
    double before = s->of[worker], slow = ring_slowness(&s->now, s->slow, stage), power = 0;

    for (int i = stage + 1; closes && i < s->now.stages; i++)
        power += 1 / ring_slowness(&s->now, s->slow, i); /* of the others together */

    s->now.first[stage] = at;
    for (int end = left > 0 ? at + 1 : s->units; end <= s->units - left && s->tries > 0; end++) {
        double rest, sum;

        s->tries--;
        s->of[worker] = before + slow * (s->upto[end] - s->upto[at]);
        if (s->of[worker] >= s->best * LESS)
            break;
        sum = closed + (closes ? s->of[worker] / slow : 0);
        rest = s->upto[s->units] - sum; /* is left for the others */
        if (left > 0 && closes && rest * LESS > power * s->best)
            continue;
        s->now.first[stage + 1] = end;
        if (left > 0) {
            ring_search_from(s, stage + 1, end, sum);
        } else {
            s->best = ring_cut_most(s->upto, s->slow, &s->now);
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

void ring_cut_costs(const double *costs, int units, const double *slow, struct ring_cut *cut)
{
    double *upto = ring_sums(costs, units);
    struct ring_search s = {
        .upto = upto, .slow = slow, .units = units, .tries = TRIES, .found = cut};

    assert(cut->stages >= 1 && cut->stages <= units);
    ring_cut_evenly(upto, units, slow, cut);
    s.now = *cut;
    s.best = ring_cut_most(upto, slow, cut);
    if (cut->stages > cut->workers)
        ring_search_from(&s, 0, 0, 0);
    base_free(upto);
}

double ring_cut_largest(const double *costs, const double *slow, const struct ring_cut *cut)
{
    double *upto = ring_sums(costs, cut->first[cut->stages]), most = ring_cut_most(upto, slow, cut);

    base_free(upto);
    return most;
}

/* ---- a model ---- */

void ring_cut_make(const struct nn_graph *graph, const struct ring_options *options, int workers,
                   struct ring_cut *cut)
{
    struct ring_costs costs;

    if (options->chosen.workers == workers) {
        *cut = options->chosen;
    } else {
        ring_costs_estimate(graph, RING_USUAL_SAMPLES, &costs);
        ring_costs_cut(&costs, options, workers, ring_options_laps(options),
                       ring_options_order(options), cut);
        ring_costs_fini(&costs);
    }
    cut->overlap = options->overlapping;
}

size_t ring_cut_crossing(const struct nn_graph *graph, int layer)
{
    size_t floats = nn_shape_floats(nn_graph_node(graph, layer)->in);

    for (int i = layer; i < nn_graph_layers(graph); i++) {
        int saved = nn_graph_node(graph, i)->named, first = layer;

        while (nn_graph_node(graph, first)->named != saved)
            first++;
        if (saved >= 0 && saved < layer && first == i) /* not counted yet */
            floats += nn_shape_floats(nn_graph_node(graph, saved)->out);
    }
    return floats;
}
