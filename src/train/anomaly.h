/* SPDX-License-Identifier: MIT
 *
 * Finds workers that have become slow, and those that are back. Each worker's seconds a sample are
 * compared with those of its peers in the same second, so that what slows all workers is no
 * anomaly, and so are the seconds that bytes between it and its peers are on their way; a change of
 * these ratios is looked for in each worker's series (train/series.h). How much counts as slow
 * follows from the usual scatter and from how often a false alarm may come. Times in which a worker
 * stands still are counted apart: they are rare and long, and make no level. Workers that have
 * always been slower than others are no anomaly; shares are for them. Pure arithmetic: all workers
 * see the same efforts, and so find the same.
 */
#ifndef TRAIN_ANOMALY_H
#define TRAIN_ANOMALY_H

#include "train/series.h"

enum train_cause {
    TRAIN_CAUSE_COMPUTE, /* its CPU takes longer for the same work */
    TRAIN_CAUSE_STOLEN,  /* other processes have its CPU */
    TRAIN_CAUSE_QUOTA,
    TRAIN_CAUSE_MEMORY,
    TRAIN_CAUSE_DATA,
    TRAIN_CAUSE_LINK,
    TRAIN_CAUSE_STALLS,   /* it does nothing for a while, again and again */
    TRAIN_CAUSE_FLAPPING, /* slow and back for the third time */
    TRAIN_CAUSES
};

extern const char *const train_cause_names[TRAIN_CAUSES]; /* as events have them: "cpu-quota" */
extern const char *const train_cause_texts[TRAIN_CAUSES]; /* as people read them */

/* What of a worker is slow. It may be slow in several of these at once. */
enum train_aspect { TRAIN_ASPECT_COMPUTE, TRAIN_ASPECT_LINK, TRAIN_ASPECT_STALLS, TRAIN_ASPECTS };

extern const char *const train_aspect_names[TRAIN_ASPECTS];

struct train_anomaly {
    int rank;
    enum train_aspect aspect;
    bool over;          /* it is no longer slow; there is no cause then */
    int64_t since;      /* the first step with it */
    double peers, past; /* its time: as multiples of its peers' and of its own before; NAN: there is
                         * none to compare with */
    enum train_cause cause;
    double explained; /* the part of the added time that the cause accounts for; 0: not known */
};

struct train_link { /* from a worker to another */
    double seconds, bytes;
};

struct train_level { /* of one part of a worker */
    struct train_series series;
    bool slow;
    double slow_from, slow_to, slow_own; /* levels before and after it became slow */
    int times;                           /* that it has become slow */
};

struct train_stalls { /* of one worker */
    double evidence;  /* logarithm of a likelihood ratio; 0: no stalls */
    int count, seen;  /* observations with a stall, and all, since there was none */
    int64_t since;
    struct train_effort effort;
    bool slow;
};

struct train_watch { /* of one view */
    int size;
    int64_t step; /* up to which there are observations */
    struct train_effort efforts[COMM_MAX_WORKERS];
    struct train_level levels[TRAIN_ASPECTS - 1][COMM_MAX_WORKERS];
    double scatter[TRAIN_ASPECTS - 1]; /* usual ones, of all workers */
    double pace; /* usual seconds of a step, of the worker in the middle; 0: not known … */
    int paced;   /* … from so many observations */
    struct train_stalls stalls[COMM_MAX_WORKERS];
    double stalled, seen; /* observations of all workers with a stall, and all */
};

/* A view of so many workers begins after `step`. */
void train_watch_begin(struct train_watch *watch, int size, int64_t step);
/* What each worker did since it was told last, by rank; zeros: it does not tell. True: that is
 * enough for an observation. */
bool train_watch_tell(struct train_watch *watch, const struct train_effort *efforts);
/* An observation of what was told up to `step`; `links` are those of rank i to rank j at
 * i * size + j since the last one; NULL: not known. Returns how many anomalies were found or are
 * over; `found` has room for TRAIN_ASPECTS of each worker. */
int train_watch_see(struct train_watch *watch, const struct train_link *links, int64_t step,
                    struct train_anomaly *found);
/* Workers have other parts of a batch, with which a sample takes another time: its levels are
 * learnt anew, but for workers that are about to be found. */
void train_watch_shares(struct train_watch *watch);

#endif
