/* SPDX-License-Identifier: MIT
 *
 * How the ring cuts a model into stages, and which worker has which. A stage is a range of layers.
 * Pure arithmetic: every worker computes the same answers.
 */
#ifndef TRAIN_STRATEGIES_RING_CUT_H
#define TRAIN_STRATEGIES_RING_CUT_H

#include "comm/view.h"
#include "nn/graph.h"

enum {
    RING_MAX_LAPS = 4,
    RING_MAX_STAGES = RING_MAX_LAPS * COMM_MAX_WORKERS,
    RING_MAX_PIECES = 4096, /* micro-batches of a batch */
    RING_MAX_EVERY = 1000000,
    RING_MAX_REPLICAS = 8, /* workers that have a stage */
};

/* Where the stages of a lap lie: always from worker 0 to the last one, or every second lap back, so
 * that a lap begins where the one before ended. */
enum ring_order { RING_AROUND, RING_FOLD, RING_ANY };

struct ring_cut {
    int workers, stages; /* fewer stages than workers times laps where the model has no more */
    enum ring_order order;
    int spare; /* micro-batches that a stage may hold beyond those that are on their way through the
                * stages from it on: their gradients of weights wait for a moment without other work
                */
    bool overlap; /* a worker begins a batch while others are at the one before it */
    int first[RING_MAX_STAGES + 1]; /* stage i is layers first[i] … first[i + 1] - 1 */
};

/* Does a step begin while other workers are at the one before it? */
enum ring_overlap { RING_OVERLAP_OFF, RING_OVERLAP_ON, RING_OVERLAP_AUTO };

struct ring_options {
    int64_t microbatches, laps; /* 0: to be chosen (ring/choose.h) … */
    enum ring_order order;      /* … as is RING_ANY */
    enum ring_overlap overlap;  /* … and RING_OVERLAP_AUTO */
    const char *replicate;      /* "off", "on", "every:K" */
    int64_t replicas;           /* workers that have a stage, where there are replicas at all */
    bool split, async;
    bool free_pieces;       /* the micro-batches were chosen, not given */
    bool overlapping;       /* chosen, or asked for */
    struct ring_cut chosen; /* for so many workers, with the laps and the order that were chosen; no
                             * workers: none is yet */
};

/* After how many steps replicas are renewed; 0: there are none, -1: what was given makes no sense.
 */
int64_t ring_options_every(const struct ring_options *options);
/* How many of so many workers have a stage: the one that computes it, and some after it. */
int ring_options_copies(const struct ring_options *options, int workers);

/* Gradients of weights are apart where there is a neighbour that a worker may wait for. */
static inline bool ring_options_split(const struct ring_options *options, int workers)
{
    return options->split && workers > 1;
}

/* The norm of all gradients is known when all are complete: clipped steps do not overlap. */
static inline bool ring_options_overlap(const struct ring_options *options, int workers, bool clips)
{
    return options->overlapping && workers > 1 && !clips;
}

static inline int ring_options_laps(const struct ring_options *options)
{
    return options->laps > 0 ? (int)options->laps : 1;
}

static inline enum ring_order ring_options_order(const struct ring_options *options)
{
    return options->order != RING_ANY ? options->order : RING_AROUND;
}

/* What was chosen for so many workers; before that, stages whose workers have nearly the same work
 * by estimate, in one lap around where the options leave that open. */
void ring_cut_make(const struct nn_graph *graph, const struct ring_options *options, int workers,
                   struct ring_cut *cut_p);
int ring_cut_worker(const struct ring_cut *cut, int stage);
/* The stages of a worker in ascending order, one a lap at most; returns how many. */
int ring_cut_stages(const struct ring_cut *cut, int worker, int stages[RING_MAX_LAPS]);
/* The worker that is so many places after this one, around the end; before it where `places` is
 * negative. */
int ring_cut_near(const struct ring_cut *cut, int worker, int places);
/* A stage that has so many copies is held by the worker that computes it and by those after it. */
bool ring_cut_holds(const struct ring_cut *cut, int copies, int worker, int stage);

/* Floats of a sample that pass from the layers before `layer` to those from it on: the current
 * tensor and every named one that is used there. */
size_t ring_cut_crossing(const struct nn_graph *graph, int layer);

/* The core: cuts `units` costs into cut->stages neighbouring ranges; cut->first gets the unit with
 * which each begins. slow[r]: how much longer worker r takes for the same; NULL: all the same. */
void ring_cut_costs(const double *costs, int units, const double *slow, struct ring_cut *cut);
/* How long the worker with the most to do takes, in these costs. */
double ring_cut_largest(const double *costs, const double *slow, const struct ring_cut *cut);

#endif
