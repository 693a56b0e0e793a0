/* SPDX-License-Identifier: MIT
 *
 * The line of a worker to the manager of `downpour` (train/strategies/downpour/manager.h), over the
 * group's engine. While the worker computes, it listens for the round's end.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_LINE_H
#define TRAIN_STRATEGIES_DOWNPOUR_LINE_H

#include "comm/engine.h"
#include "train/strategies/downpour/call.h"
#include "train/team.h"

struct downpour_line {
    struct train_team *team;
    bool listens; /* `heard` is under way */
    uint8_t call[DOWNPOUR_CALL_BYTES], answer[TRAIN_ANSWER_BYTES];
    struct comm_task said, values, heard;
};

/* A view has begun, and its group has an engine, which must end before the line's memory does. */
void downpour_line_open(struct downpour_line *line, struct train_team *team);

/* Sends the call, of a result or a push with the bytes of its values, and waits for the answer;
 * after a good-bye none comes. */
base_status downpour_line_call(struct downpour_line *line, const struct downpour_call *call,
                               const void *values, size_t length, struct train_answer *answer_p);
/* After an answer to a fetch: the weights that follow it, at most `room` bytes. */
base_status downpour_line_fetch(struct downpour_line *line, void *weights, size_t room,
                                size_t *length_p);
/* Has the manager said that the round is over? Does not wait. */
base_status downpour_line_look(struct downpour_line *line, bool *over_p,
                               struct train_answer *answer_p);

#endif
