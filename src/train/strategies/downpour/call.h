/* SPDX-License-Identifier: MIT
 *
 * What the workers and the manager of `downpour` say to each other, as bytes: a worker's *call*,
 * and the manager's *answer*. A call of kind DOWNPOUR_CALL_RESULT is followed by a message with the
 * floats of the result. Decoding believes nothing: whether the numbers make sense is for the ledger
 * to say.
 */
#ifndef TRAIN_STRATEGIES_DOWNPOUR_CALL_H
#define TRAIN_STRATEGIES_DOWNPOUR_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "train/task.h"

/* A round: from where to where, and with which weights it begins. Workers that know the same round
 * by these numbers divide the same samples and began with the same bits. */
struct downpour_round {
    int64_t number; /* rounds of the run before it, as far as this view knows */
    int64_t epoch, cursor;
    int64_t step, goal; /* steps done at its beginning and at its end */
    uint32_t blocks;
    uint32_t checksum; /* of the weights */
};

/* The same samples from the same weights; whatever its number is. */
bool downpour_round_same(const struct downpour_round *a, const struct downpour_round *b);

enum downpour_call_kind {
    DOWNPOUR_CALL_ASK,      /* for a block */
    DOWNPOUR_CALL_CONTINUE, /* the same; the worker has a part of `block` done */
    DOWNPOUR_CALL_RESULT,   /* of `block`; and asks for the next one */
    DOWNPOUR_CALL_PUSH,     /* a part of the change of `block`, to be added at once */
    DOWNPOUR_CALL_FETCH,    /* asks for the weights */
    DOWNPOUR_CALL_BYE,      /* the round is over for this worker */
    DOWNPOUR_CALL_KINDS
};

struct downpour_call {
    enum downpour_call_kind kind;
    uint32_t block;
    struct downpour_round round;  /* that the block is of */
    struct train_outcome outcome; /* of the result's samples */
};

enum train_answer_kind {
    TRAIN_ANSWER_BLOCK, /* compute this one */
    TRAIN_ANSWER_WAIT,  /* there is none now; the manager lives */
    TRAIN_ANSWER_GO_ON, /* the push was added; or the weights follow */
    TRAIN_ANSWER_CLOSE, /* the round is over */
    TRAIN_ANSWER_KINDS
};

/* How a round ended. */
enum train_ending {
    TRAIN_ENDING_COMMIT, /* with an update of all workers */
    TRAIN_ENDING_STOP,   /* without: a person asked to stop */
    TRAIN_ENDING_RENEW,  /* without: there is a newer view, in which it goes on */
    TRAIN_ENDINGS
};

struct train_answer {
    enum train_answer_kind kind;
    uint32_t block;
    enum train_ending ending; /* of CLOSE */
    bool wanted; /* of CLOSE: what this worker has under way counts when it comes, if late */
    bool counts; /* the newest result or push that the manager has of this worker does */
};

enum { DOWNPOUR_CALL_BYTES = 80, TRAIN_ANSWER_BYTES = 16 };

void downpour_call_encode(const struct downpour_call *call, uint8_t bytes[DOWNPOUR_CALL_BYTES]);
void train_answer_encode(const struct train_answer *answer, uint8_t bytes[TRAIN_ANSWER_BYTES]);
base_status downpour_call_decode(const void *bytes, size_t count, struct downpour_call *call_p);
base_status train_answer_decode(const void *bytes, size_t count, struct train_answer *answer_p);

#endif
