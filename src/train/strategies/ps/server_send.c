/* SPDX-License-Identifier: MIT
 *
 * What a parameter server sends. Every message is in an outbox until it has left.
 */
#include <string.h>

#include "base/mem.h"
#include "train/strategies/ps/server_private.h"
#include "train/strategies/ps/shelf.h"

struct train_outbox {
    struct train_outbox *next;
    struct comm_task head;
    uint8_t bytes[PS_ENTRY_MAX_BYTES];
    float *copy;              /* of the slice, where one is sent … */
    struct comm_task *floats; /* … in buckets … */
    size_t float_count;       /* … so many; 0: none is */
    bool used;
};

static bool is_free(const struct train_outbox *o)
{
    bool ended = !o->used || atomic_load(&o->head.ended);

    for (size_t i = 0; ended && i < o->float_count; i++)
        ended = atomic_load(&o->floats[i].ended);
    return ended;
}

static struct train_outbox *find_outbox(struct ps_server *v)
{
    struct train_outbox *o = v->outboxes;

    while (o != NULL && !is_free(o))
        o = o->next;
    if (o == NULL) {
        o = base_calloc(1, sizeof *o);
        o->next = v->outboxes;
        v->outboxes = o;
    }
    o->used = true;
    o->float_count = 0;
    return o;
}

/* Answers go to the worker of a process; one that has none hears them through its server. */
void ps_server_send(struct ps_server *v, int to, enum train_ps_call call,
                    const struct train_ps_body *body)
{
    struct train_outbox *o = find_outbox(v);
    bool to_worker =
        call == TRAIN_PS_WEIGHTS || (call == TRAIN_PS_ANSWER && to >= v->sequencer.first_worker);

    ps_body_encode(body, o->bytes);
    comm_engine_send(v->engine, to, to_worker ? COMM_BACKWARD : COMM_CALLS, (uint32_t)call,
                     o->bytes, PS_BODY_BYTES, &o->head);
}

void ps_server_send_entry(struct ps_server *v, int to, const struct train_log_entry *entry)
{
    struct train_outbox *o = find_outbox(v);

    comm_engine_send(v->engine, to, COMM_CALLS, TRAIN_PS_ENTRY, o->bytes,
                     ps_entry_encode(entry, o->bytes), &o->head);
}

/* A worker that finds another entry than it needs says so. */
static void share_weights(struct ps_server *v, int to)
{
    const struct train_ps_body head = {.rank = v->rank, .shared = true, .number = v->applied};

    base_ignore(ps_shelf_publish(v->region, v->applied, v->slices[0].weights));
    ps_server_send(v, to, TRAIN_PS_WEIGHTS, &head);
}

/* A copy: the slice may change before it has left. */
void ps_server_send_weights(struct ps_server *v, int to, uint64_t number)
{
    const struct train_slice *slice = &v->slices[0];
    struct train_outbox *o;
    uint64_t sent;
    const float *weights = ps_server_weights_for(v, to, number, &sent);

    if ((v->shared_pulls >> to & 1) != 0) {
        share_weights(v, to);
        return;
    }
    o = find_outbox(v);
    if (o->copy == NULL) {
        o->copy = base_calloc(slice->count + 1, sizeof *o->copy);
        o->floats = base_calloc(ps_server_pull_buckets(slice, v->bucket) + 1, sizeof *o->floats);
    }
    memcpy(o->copy, weights, slice->count * sizeof *o->copy);
    ps_body_encode(&(struct train_ps_body){.rank = v->rank, .number = sent}, o->bytes);
    comm_engine_send(v->engine, to, COMM_BACKWARD, TRAIN_PS_WEIGHTS, o->bytes, PS_BODY_BYTES,
                     &o->head);
    for (size_t at = 0; at < slice->count; at += v->bucket) {
        size_t count = slice->count - at < v->bucket ? slice->count - at : v->bucket;

        comm_engine_send(v->engine, to, COMM_BACKWARD, TRAIN_PS_VALUES, o->copy + at,
                         count * sizeof *o->copy, &o->floats[o->float_count++]);
    }
}

base_status ps_server_wait_sent(struct ps_server *v, double deadline)
{
    base_status st = BASE_OK;

    for (struct train_outbox *o = v->outboxes; o != NULL; o = o->next) {
        TRY(comm_engine_wait(v->engine, &o->head, deadline));
        for (size_t i = 0; i < o->float_count; i++)
            TRY(comm_engine_wait(v->engine, &o->floats[i], deadline));
    }
out:
    return st;
}

void ps_server_forget_sent(struct ps_server *v)
{
    while (v->outboxes != NULL) {
        struct train_outbox *o = v->outboxes;

        v->outboxes = o->next;
        base_free(o->copy);
        base_free(o->floats);
        base_free(o);
    }
}
