/* SPDX-License-Identifier: MIT
 *
 * The manager of `downpour`, at rank 0: a ledger, and the talk with the workers about it. The
 * workers of other processes are heard by a thread of the manager; the worker beside it calls
 * directly. No worker waits for the manager to compute: it only books, and the round's update is
 * made by the thread of rank 0's worker after the round.
 *
 * A view begins with `open`, before the group gets its engine, and ends with `close`, after the
 * engine's end: what the manager has asked the engine for stays in memory until then. In between,
 * each round is begun and ended.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_MANAGER_H
#define TRAIN_STRATEGIES_DOWNPOUR_MANAGER_H

#include "train/strategies/downpour/ledger.h"
#include "train/team.h"
#include "train/wire.h"

struct downpour_manager;

/* The rules of a round. */
struct train_rules {
    double quorum, grace; /* share of the blocks that must be in; seconds that others then have */
    bool fixed;           /* block r is rank r's: no other worker can compute it */
    bool adds; /* changes are added to the centre as they come, each by its block's share */
    const struct train_wiring *wiring; /* in which they travel; NULL: as floats */
};

/* Seconds. WAITS: the manager gives a sign of life to a worker that waits. PATIENCE: a worker that
 * hears nothing for so long, or a manager of a worker that was told that the round is over, gives
 * up. */
#define DOWNPOUR_MANAGER_WAITS 10.0
#define DOWNPOUR_MANAGER_PATIENCE 600.0
/* Tags of messages on COMM_CALLS. */
enum { TRAIN_TAG_CALL = 16, TRAIN_TAG_VALUES, TRAIN_TAG_ANSWER, TRAIN_TAG_WEIGHTS };

/* Where changes are added as they come, the workers of the manager's host read the centre from a
 * region of this key, without a message. */
#define DOWNPOUR_MANAGER_REGION "downpour"

/* `floats`: of a result, the last `statistics` of them of running statistics. The ledger outlives
 * the manager. */
base_status downpour_manager_open(struct train_team *team, struct downpour_ledger *ledger,
                                  const struct train_rules *rules, size_t floats, size_t statistics,
                                  struct downpour_manager **manager_p);
void downpour_manager_close(struct downpour_manager *manager); /* accepts NULL */

/* Weights and statistics that changes are added to: to be filled before a round begins, and whole
 * when it has ended. NULL: nothing is added. */
float *downpour_manager_centre(struct downpour_manager *manager);

/* The ledger has begun a round: hears the workers of other ranks. `computes`: a worker is beside
 * the manager. */
base_status downpour_manager_begin(struct downpour_manager *manager, bool computes);
/* All workers have said good-bye; or, with `failed`, it does not matter any more. */
base_status downpour_manager_end(struct downpour_manager *manager, bool failed);

/* What has happened so far; any thread. */
struct downpour_ledger_counts downpour_manager_counts(struct downpour_manager *manager);
/* Once the round has ended: does the newest result or push of that rank count? */
bool downpour_manager_has_counted(const struct downpour_manager *manager, int rank);
/* Bytes of packed weights that were sent to workers. */
int64_t downpour_manager_sent(struct downpour_manager *manager);
/* How the round ended, once it has. */
enum train_ending downpour_manager_ending(const struct downpour_manager *manager);

/* The call of the worker beside the manager; waits for the answer. *values_p as of
 * downpour_ledger_receive, of the right length; of a fetch, it gets the centre. */
base_status downpour_manager_call(struct downpour_manager *manager,
                                  const struct downpour_call *call, float **values_p,
                                  struct train_answer *answer_p);
/* Between steps: is the round over, and how? */
base_status downpour_manager_look(struct downpour_manager *manager, bool *over_p,
                                  struct train_answer *answer_p);

#endif
