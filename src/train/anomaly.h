/* SPDX-License-Identifier: MIT
 *
 * Finds workers that have become slow, and those that are back. Each worker's seconds a sample are
 * compared with those of its peers in the same second, so that what slows all workers is no
 * anomaly, and a change of that ratio is looked for with cumulative sums (Page, 1954) in units of
 * its usual scatter (the median absolute deviation). How much counts as slow follows from that
 * scatter and from how often a false alarm may come. Workers that have always been slower than
 * others are no anomaly either; shares are for them. Pure arithmetic: all workers see the same
 * efforts, and so find the same.
 */
#ifndef TRAIN_ANOMALY_H
#define TRAIN_ANOMALY_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/view.h"

enum { TRAIN_WATCH_WINDOW = 64 };

/* What a worker computed in a step or a round, how long it took, and where that time went. */
struct train_effort {
    double samples, seconds;
    double data, stolen; /* of these: waiting for a batch; computing, but without a CPU */
    double throttled;    /* seconds in which a CPU quota kept its process from running */
    double faults;       /* pages that its process had to wait for a disk for */
};

void train_effort_add(struct train_effort *sum, const struct train_effort *effort);

enum train_cause {
    TRAIN_CAUSE_COMPUTE, /* its CPU takes longer for the same work */
    TRAIN_CAUSE_STOLEN,  /* other processes have its CPU */
    TRAIN_CAUSE_QUOTA,
    TRAIN_CAUSE_MEMORY,
    TRAIN_CAUSE_DATA,
    TRAIN_CAUSE_FLAPPING, /* slow and back for the third time */
    TRAIN_CAUSES
};

extern const char *const train_cause_names[TRAIN_CAUSES]; /* as events have them: "cpu-quota" */
extern const char *const train_cause_texts[TRAIN_CAUSES]; /* as people read them */

struct train_anomaly {
    int rank;
    bool over;          /* it is no longer slow; there is no cause then */
    int64_t since;      /* the first step with it */
    double peers, past; /* seconds a sample: as multiples of its peers' and of its own before */
    enum train_cause cause;
    double explained; /* the part of the added time that the cause accounts for; 0: not known */
};

/* Observations on one side of the usual level, one after another. */
struct train_excursion {
    double sum; /* of deviations; 0: there is no excursion */
    int count;
    int64_t since;
    double ratio, own; /* sums of logarithms: to the peers, and of this worker's own time */
    struct train_effort effort;
};

struct train_series { /* of one worker; ratios and times are logarithms */
    float ratios[TRAIN_WATCH_WINDOW], owns[TRAIN_WATCH_WINDOW];
    int count;  /* observations since the level was last set; the newest are in the lists */
    bool known; /* its usual … */
    double level, own_level, scatter;
    struct train_effort usual; /* a sample's */
    struct train_excursion up, down;
    bool slow;
    double slow_from, slow_to, slow_own; /* levels before and after it became slow */
    int times;                           /* that it has become slow */
};

struct train_watch { /* of one view */
    int size;
    int64_t step; /* up to which there are observations */
    struct train_effort efforts[COMM_MAX_WORKERS];
    struct train_series series[COMM_MAX_WORKERS];
};

/* A view of so many workers begins after `step`. */
void train_watch_begin(struct train_watch *watch, int size, int64_t step);
/* What each worker did up to `step`, by rank; zeros: it does not tell. Returns how many anomalies
 * were found or are over; `found` has room for one of each worker. */
int train_watch_see(struct train_watch *watch, const struct train_effort *efforts, int64_t step,
                    struct train_anomaly *found);
/* Workers have other parts of a batch, with which a sample takes another time: levels are learnt
 * anew, but for workers that are about to be found. */
void train_watch_shares(struct train_watch *watch);

#endif
