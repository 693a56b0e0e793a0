/* SPDX-License-Identifier: MIT
 *
 * What passes between the stages of a ring: activations forward, gradients back, from neighbour to
 * neighbour by the group's engine, or from one stage of a worker to its next one. A stage never has
 * more to send than it may have micro-batches in flight, and the receiver has room for all of that:
 * so every message is taken at once, and no stage waits for room that another one has filled.
 *
 * All messages of a neighbour on one channel come through a *lane*, in the order in which they were
 * sent; their tag is the stage that they are for, and their floats wait there for its turn.
 */
#ifndef TRAIN_STRATEGIES_RING_MAIL_H
#define TRAIN_STRATEGIES_RING_MAIL_H

#include "comm/engine.h"
#include "train/clock.h"
#include "train/strategies/ring/rule.h"

/* Room for a message that comes. */
struct ring_letter {
    float *floats;
    size_t count; /* that came */
    struct comm_task task;
    struct ring_letter *next;
};

struct ring_letters { /* first come, first served */
    struct ring_letter *first, *last;
};

struct ring_lane {
    int peer;
    enum comm_channel channel;
    int64_t due; /* messages of the run under way that are not asked for yet; not of this worker */
    int count;
    size_t room; /* floats of a letter */
    struct ring_letter *letters;
    struct ring_letters unused, asked;
};

/* One end of a boundary between two stages. */
struct ring_inlet {
    struct ring_lane *lane; /* NULL: nothing enters on this way */
    struct ring_letters come;
};

/* A message on its way to a neighbour. */
struct ring_parcel {
    float *floats;
    struct comm_task task;
    bool sending;
};

/* While one goes the stage makes the next one: where steps overlap, the neighbour may still be at
 * the step before, and takes messages of this one when it begins it. */
enum { RING_PARCELS = 2 };

struct ring_outlet {
    int peer;    /* -1: nothing leaves on this way */
    int stage;   /* that it is for */
    size_t room; /* floats of a parcel */
    int count, next;
    struct ring_parcel parcels[RING_PARCELS]; /* taken in turns */
    struct ring_inlet *inlet; /* of a stage of this very worker, and a letter of it to be filled */
    struct ring_letter *letter;
};

struct ring_mail {
    int rank, count; /* stages of this worker … */
    int stages[RING_MAX_LAPS];
    struct ring_inlet in[RING_MAX_LAPS][RING_WAYS];
    struct ring_outlet out[RING_MAX_LAPS][RING_WAYS];
    struct ring_lane lanes[2 * RING_WAYS + RING_WAYS * RING_MAX_LAPS];
    int lane_count;
    struct comm_engine *engine; /* NULL: alone */
};

/* Describes the mail of a worker for pieces of `piece` samples; allocates nothing. The struct stays
 * where it is. */
void ring_mail_plan(struct ring_mail *mail, const struct nn_graph *graph,
                    const struct ring_cut *cut, int rank, int piece, int64_t pieces);
double ring_mail_bytes(const struct ring_mail *mail);
base_status ring_mail_allocate(struct ring_mail *mail);
void ring_mail_free(struct ring_mail *mail); /* accepts zeros */

/* How many micro-batches a stage may have in flight: as many as pass through the stages from it on
 * at a time, and the spare ones. The last workers are the first to be done with a batch; where the
 * next one follows at once, gradients of weights that wait fill the time until it comes. The worker
 * with the first stage, which has the most in flight, needs no more memory for that. */
int ring_mail_limit(const struct ring_cut *cut, int stage, int64_t pieces);

/* A run of `pieces` begins: so many messages will come over each boundary. */
void ring_mail_begin(struct ring_mail *mail, int pieces);
/* Sees what has come and what has gone. */
base_status ring_mail_look(struct ring_mail *mail);
/* Waits until something has. */
base_status ring_mail_wait(struct ring_mail *mail, struct train_clock *clock);
/* All that was sent is on its way, and its room free. */
base_status ring_mail_end(struct ring_mail *mail, struct train_clock *clock);

bool ring_mail_came(const struct ring_mail *mail, int track, enum ring_way way);
bool ring_mail_clear(const struct ring_mail *mail, int track, enum ring_way way);
/* The message that came first, of `count` floats; back to its lane by ring_mail_done. */
base_status ring_mail_take(struct ring_mail *mail, int track, enum ring_way way, size_t count,
                           const float **floats_p);
void ring_mail_done(struct ring_mail *mail, int track, enum ring_way way);
/* Room for what is to be sent, where it is clear; then `count` floats of it go. */
float *ring_mail_room(struct ring_mail *mail, int track, enum ring_way way);
void ring_mail_send(struct ring_mail *mail, int track, enum ring_way way, size_t count);

#endif
