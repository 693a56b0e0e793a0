/* SPDX-License-Identifier: MIT
 *
 * What the workers and servers of `ps` say to each other, as bytes: a *body*, which most calls
 * have; the *outline* of a push, which follows messages with the values of the slices that the
 * receiver keeps; an *entry* of the log; and after a loss *notes*. The kind of a call is the
 * message's tag. Decoding believes nothing, and sees to it that ranks and counts can be used as
 * such; whether a call makes sense now is for the server to say.
 */
#ifndef TRAIN_STRATEGIES_PS_CALL_H
#define TRAIN_STRATEGIES_PS_CALL_H

#include "base/cursor.h"
#include "train/strategies/ps/ledger.h"

enum train_ps_call {
    TRAIN_PS_ASK = 16,
    TRAIN_PS_PUSH, /* values of the receiver's slices have gone before */
    TRAIN_PS_GOT,
    TRAIN_PS_ENTRY,
    TRAIN_PS_HAVE,
    TRAIN_PS_PULL,
    TRAIN_PS_BYE, /* without a body: no more pushes */
    TRAIN_PS_ANSWER,
    TRAIN_PS_WEIGHTS, /* values of the sender's own slice follow, unless they are shared */
    TRAIN_PS_VALUES,
};

struct train_outline { /* of a push */
    int rank;
    bool shared;            /* gradients of the whole batch's mean loss, not of the block's */
    bool stop, renew, news; /* what the worker knows of the job */
    int64_t clock;          /* the worker's count of its pushes in this view */
    uint64_t read;          /* the entry up to which it had read the weights */
    struct train_span block;
    double loss_sum;
    int64_t correct, seen;
};

struct train_log_entry {
    uint64_t number; /* from 1 on in a view */
    double lr;
    uint64_t update;  /* as optimisers count them */
    uint64_t readers; /* workers that read the weights before it, where that matters: bits */
    int count;        /* of pushes */
    struct train_outline of[COMM_MAX_WORKERS];
};

/* Why a push does not count. */
enum ps_refusal {
    PS_ACCEPTED,
    PS_NOT_FINITE,
    PS_WRONG_SIZE,
    PS_WRONG_BLOCK, /* that was not granted */
    PS_UNREADABLE,  /* in the format in which gradients travel */
    PS_REFUSALS
};
extern const char *const ps_refusal_texts[PS_REFUSALS]; /* what was pushed, then */

struct train_ps_body { /* ask, got, have, pull, bye, answer; the head of weights */
    int rank;
    bool over;   /* the leg is */
    bool shared; /* of an answer: as in an outline; of a pull: the weights in shared memory */
    bool stop, renew, news, diverged;
    enum ps_refusal refusal; /* of the push that a server has got; diverged: of the last one */
    int64_t clock; /* of the worker's pushes: those before it are in the log, or never will be */
    struct train_span block, whole; /* over: block.from is the cursor */
    uint64_t number;                /* of an entry: what to read at least, what was read */
    int64_t step;                   /* that is done */
    double loss_sum; /* of the entry that the worker's push is in; over: of the epoch so far */
    int64_t correct, seen;
};

/* What a worker knows of a leg that ended half-way, told after the loss (recover.c). */
struct ps_note {
    uint32_t view; /* of the leg; 0: this worker is in none */
    bool serves;
    bool has_residual; /* what gradients left out is divided, and it has its part (parcel.h) */
    uint64_t applied;
    uint64_t log_bytes; /* of entries that another server may lack */
};

enum {
    PS_BODY_BYTES = 92,
    PS_OUTLINE_BYTES = 64,
    PS_ENTRY_HEAD_BYTES = 36,
    PS_ENTRY_MAX_BYTES = PS_ENTRY_HEAD_BYTES + COMM_MAX_WORKERS * PS_OUTLINE_BYTES,
    PS_NOTE_BYTES = 24
};

void ps_body_encode(const struct train_ps_body *body, uint8_t bytes[PS_BODY_BYTES]);
void ps_outline_encode(const struct train_outline *outline, uint8_t bytes[PS_OUTLINE_BYTES]);
/* Returns how many bytes it has. */
size_t ps_entry_encode(const struct train_log_entry *entry, uint8_t bytes[PS_ENTRY_MAX_BYTES]);
void ps_note_encode(const struct ps_note *note, uint8_t bytes[PS_NOTE_BYTES]);

/* A whole message each: bytes that are left over are an error, too. */
base_status ps_body_decode(const void *bytes, size_t count, struct train_ps_body *body_p);
base_status ps_outline_decode(const void *bytes, size_t count, struct train_outline *outline_p);
base_status ps_entry_decode(const void *bytes, size_t count, struct train_log_entry *entry_p);
base_status ps_note_decode(const void *bytes, size_t count, struct ps_note *note_p);
/* One of several entries in a row. */
base_status ps_entry_read(struct base_cursor *cursor, struct train_log_entry *entry_p);

#endif
