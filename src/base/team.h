/* SPDX-License-Identifier: MIT
 *
 * A few threads that share short work: the leader, which owns the team and calls its functions,
 * and helpers that the team starts. Work is a round of units. Every thread takes the next unit
 * until none is left, and the round is over once all units are done, not once all threads have
 * come: a helper that still wakes up, or has lost its core to another program, holds up nothing
 * but the unit that it has in hand.
 *
 * Waiting threads spin for a moment, then sleep; a team without work uses no CPU. Where there are
 * more threads than cores they sleep at once.
 */
#ifndef BASE_TEAM_H
#define BASE_TEAM_H

#include "base/status.h"

struct base_team;

/* One unit of a round; thread: 0 is the leader, helpers are 1 … threads-1. */
typedef void base_team_task(const void *context, int unit, int thread);

/* `threads` counts the leader, which may be another thread at each call. */
base_status base_team_new(int threads, struct base_team **team_p);
void base_team_free(struct base_team *team); /* accepts NULL */
int base_team_threads(const struct base_team *team);

/* Calls the task for the units 0 … units-1, in any order, and returns when all are done. */
void base_team_run(struct base_team *team, int units, base_team_task *task, const void *context);

#endif
