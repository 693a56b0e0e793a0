/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/choose.h"

/* More laps mean more messages and memory, and gain less than the rule on paper says; more
 * micro-batches mean less memory: what is worth a change of each, in time. */
static const double WORTH_LAPS = 0.9, WORTH_PIECES = 1.02;

enum { MOST_PIECES = 64 }; /* that are chosen; more can be asked for */

void ring_expect(const struct ring_costs *costs, const struct ring_cut *cut,
                 const struct ring_options *options, struct ring_outlook *outlook)
{
    struct ring_times times;
    struct ring_cut played = *cut;

    played.overlap = options->overlapping;
    ring_costs_times(costs, cut, &times);
    ring_foresee(&played, &times, (int)options->microbatches, outlook);
}

void ring_choose_cut(struct ring_options *options, const struct ring_costs *costs, int workers,
                     struct ring_fits fits)
{
    struct ring_options now = *options;
    struct ring_outlook outlook;
    double best = 0;
    int most = options->laps > 0 ? (int)options->laps : RING_MAX_LAPS;

    for (int laps = ring_options_laps(options); laps <= most; laps++)
        for (enum ring_order order = RING_AROUND; order < RING_ANY; order++) {
            bool plainest =
                laps == ring_options_laps(options) && order == ring_options_order(options);

            if ((options->order != RING_ANY && order != options->order) ||
                (!plainest && (laps == 1 || (laps - 1) * workers >= costs->units)))
                continue;
            ring_costs_cut(costs, options, workers, laps, order, &now.chosen);
            ring_expect(costs, &now.chosen, options, &outlook);
            if (!plainest && (outlook.seconds > WORTH_LAPS * best ||
                              (fits.cut != NULL && !fits.cut(fits.context, &now))))
                continue;
            best = outlook.seconds;
            options->chosen = now.chosen;
        }
}

/* How long a step takes in so many micro-batches, in the plainest of cuts. Where steps overlap
 * unless memory is short they count as overlapping: the number must not depend on memory. */
static double ring_try_pieces(const struct ring_options *options, const struct nn_graph *graph,
                              int workers, int64_t batch, int64_t pieces)
{
    struct ring_options tried = *options;
    struct ring_costs costs;
    struct ring_outlook outlook;
    struct ring_cut cut;

    tried.microbatches = pieces;
    tried.overlapping = options->overlap != RING_OVERLAP_OFF;
    ring_costs_estimate(graph, (int)((batch + pieces - 1) / pieces), &costs);
    ring_costs_cut(&costs, options, workers, ring_options_laps(options),
                   ring_options_order(options), &cut);
    ring_expect(&costs, &cut, &tried, &outlook);
    ring_costs_fini(&costs);
    return outlook.seconds;
}

/* 1, 2, 3, 4, 6, 8, 12, …: with overlap two workers have something to do all the time from three
 * micro-batches on. */
static int64_t ring_more_pieces(int64_t pieces)
{
    bool doubled = (pieces & (pieces - 1)) == 0 && pieces > 1;

    return doubled ? pieces / 2 * 3 : pieces == 1 ? 2 : pieces / 3 * 4;
}

/* The most that take hardly longer than the best number does. */
static int64_t ring_choose_pieces(const struct ring_options *options, const struct nn_graph *graph,
                                  int workers, int64_t batch)
{
    double best = 0;
    int64_t chosen = 1;

    for (int64_t pieces = 1; pieces <= MOST_PIECES && pieces <= batch;
         pieces = ring_more_pieces(pieces)) {
        /* A worker may come to one that is alone. */
        double seconds = ring_try_pieces(options, graph, workers > 1 ? workers : 2, batch, pieces);

        if (pieces > 1 && seconds > WORTH_PIECES * best)
            continue;
        chosen = pieces;
        best = pieces == 1 || seconds < best ? seconds : best;
    }
    return chosen;
}

bool ring_choose(struct ring_options *options, const struct nn_graph *graph, int workers,
                 int64_t batch, int64_t least)
{
    struct ring_costs costs;
    bool open = options->microbatches == 0 || options->free_pieces;

    if (least > 1 && options->overlap == RING_OVERLAP_AUTO && options->overlapping) {
        options->overlapping = false; /* that saves memory, too */
        return true;
    }
    if (least <= 1)
        options->overlapping = options->overlap != RING_OVERLAP_OFF;
    if (least > 1 && (!open || least > batch || least > MOST_PIECES))
        return false;
    if (open) {
        int64_t pieces = ring_choose_pieces(options, graph, workers, batch);

        options->microbatches = pieces > least ? pieces : least;
        options->free_pieces = true;
    }
    ring_costs_estimate(graph, (int)((batch + options->microbatches - 1) / options->microbatches),
                        &costs);
    ring_costs_cut(&costs, options, workers, ring_options_laps(options),
                   ring_options_order(options), &options->chosen);
    ring_costs_fini(&costs);
    return true;
}
