/* SPDX-License-Identifier: MIT
 *
 * Who has which part of a model's state, and at which version. A *hold* is a range of one group of
 * the state's buffers that a worker has in memory. When a view begins all workers tell each other
 * their holds; the newest version whose holds together cover the whole state is what is committed,
 * and what a worker lacks comes from the lowest rank that has it. Pure arithmetic: every worker
 * computes the same answers from the same holds.
 */
#ifndef TRAIN_HOLDS_H
#define TRAIN_HOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ordered by step; at the same step an epoch that was judged is newer than one still open. */
struct train_version {
    int64_t step, epoch;
};

/* -1, 0, 1: `a` is older, the same, newer. */
int train_version_compare(struct train_version a, struct train_version b);

/* What is always held, given and taken together: buffers of equal length. */
enum train_group {
    TRAIN_WEIGHTS,
    TRAIN_SLOTS,      /* of the optimiser, as many floats each as there are weights */
    TRAIN_STATISTICS, /* running statistics of layers */
    TRAIN_GROUPS
};

struct train_hold {
    uint64_t from, count; /* floats of each of the group's buffers */
    struct train_version version;
    uint32_t group, reserved; /* enum train_group; it travels as bytes, hence no hidden padding */
};

enum { TRAIN_MAX_HOLDS = 64 };

struct train_holds { /* of one worker */
    uint32_t count, reserved;
    struct train_hold at[TRAIN_MAX_HOLDS];
};

/* Are the values of a hold those of the version? Those of its own version are. And an epoch that is
 * judged changes neither weights nor slots: those of the same step are the same before and after.
 */
bool train_hold_serves(const struct train_hold *hold, struct train_version version);

/* Is every hold inside the state? `size`: floats of a buffer of each group. */
bool train_holds_valid(const struct train_holds *holds, const uint64_t size[TRAIN_GROUPS]);

/* The newest version at which the holds of the workers 0 … workers-1 cover all groups; false: there
 * is none. */
bool train_holds_committed(const struct train_holds *held, int workers,
                           const uint64_t size[TRAIN_GROUPS], struct train_version *version_p);

/* One message of entering a view: `source` gives this range to `target`. */
struct train_transfer {
    int source, target; /* ranks */
    enum train_group group;
    uint64_t from, count;
};

/* The transfers after which every worker has the holds that it is to have, at `version`, which is
 * covered. The versions inside `wanted` do not matter. *transfers_p: a list to be freed with
 * base_free, in the order of targets; within a target in the order of its wanted holds. */
size_t train_holds_transfers(const struct train_holds *held, const struct train_holds *wanted,
                             int workers, struct train_version version,
                             struct train_transfer **transfers_p);

#endif
