/* SPDX-License-Identifier: MIT
 *
 * A parameter server's thread, which takes what workers and other servers send.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "train/strategies/ps/server_private.h"
#include "train/wire.h"

/* Seconds without any message after which a server gives up: a worker may compute for long. */
static const double PATIENCE = 600;

/* What comes from one rank: calls, and beside them on a channel of their own its pushes, each of
 * them values in buckets, then an outline. */
struct train_inbox {
    struct comm_task call, push;
    uint8_t bytes[PS_ENTRY_MAX_BYTES]; /* of a call: an entry is the longest */
    uint8_t outline[PS_OUTLINE_BYTES];
    uint8_t *packed; /* room for a slice in the format of pushes; NULL: none */
    size_t left;     /* floats of the push that are still to come; 0: its outline is */
    bool calls_over, pushes_over;
};

static void expect_call(struct ps_server *v, int rank)
{
    struct train_inbox *in = &v->inboxes[rank];

    comm_engine_receive_any(v->engine, rank, COMM_CALLS, in->bytes, sizeof in->bytes, &in->call);
}

/* The next values of a push of which `left` floats are to come. Backward completes the weights from
 * their end to their beginning, so the higher slice comes first. */
static struct ps_bucket next_bucket(const struct ps_server *v, size_t left)
{
    int first = v->slice_count > 1 && v->slices[1].from > v->slices[0].from, last = 1 - first;
    size_t after = v->slice_count > 1 ? v->slices[last].count : 0;
    struct ps_bucket b = {.slice = left > after ? first : last};
    const struct train_slice *slice = &v->slices[b.slice];
    size_t end = slice->from + (left > after ? left - after : left);

    b.from = v->wiring != NULL ? slice->from : ps_server_bucket(slice, end, v->bucket);
    b.count = end - b.from;
    return b;
}

static void expect_push(struct ps_server *v, int rank)
{
    struct train_inbox *in = &v->inboxes[rank];
    void *to = in->outline;
    size_t room = sizeof in->outline;

    if (in->left > 0) {
        struct ps_bucket b = next_bucket(v, in->left);

        to = in->packed != NULL ? in->packed : (void *)ps_server_values(v, rank, &b);
        room = in->packed != NULL ? train_wire_bound(v->wiring, b.count) : b.count * sizeof(float);
    }
    comm_engine_receive_any(v->engine, rank, COMM_FORWARD, to, room, &in->push);
}

static base_status take_body(struct ps_server *v, int rank, enum train_ps_call call,
                             const struct train_ps_body *body)
{
    bool leads = v->rank == 0;
    int first_worker = v->sequencer.first_worker;

    if (call == TRAIN_PS_BYE && body->rank == rank)
        v->inboxes[rank].calls_over = true;
    else if (call == TRAIN_PS_PULL && body->rank == rank && (!body->shared || v->region != NULL))
        ps_server_take_pull(v, rank, body->number, body->shared);
    else if (call == TRAIN_PS_ASK && body->rank == rank && leads && rank >= first_worker &&
             v->sequencer.of[rank].work == TRAIN_ABSENT)
        ps_server_take_ask(v, rank);
    else if (call == TRAIN_PS_ANSWER && body->rank == v->rank && rank == 0 &&
             v->rank < first_worker)
        ps_server_keep_answer(v, body);
    else if (call == TRAIN_PS_GOT && body->rank >= first_worker && body->rank < v->size && leads &&
             rank < v->servers)
        ps_server_take_got(v, body->rank, body->refusal);
    else if (call == TRAIN_PS_HAVE && leads && rank < v->servers &&
             body->number <= v->sequencer.number)
        ps_server_take_have(v, body->number);
    else
        return base_fail(BASE_ERR_DATA, "a call that makes no sense now");
    return BASE_OK;
}

static base_status take_entry(struct ps_server *v, int rank, const void *bytes, size_t count)
{
    base_status st = BASE_OK;
    struct train_log_entry entry;

    TRY(ps_entry_decode(bytes, count, &entry));
    if (rank != 0 || !ps_server_is_entry(v, &entry))
        TRY(base_fail(BASE_ERR_DATA, "an entry that is none"));
    ps_server_take_entry(v, &entry);
out:
    return st;
}

static base_status take_call(struct ps_server *v, int rank)
{
    base_status st = BASE_OK;
    const struct train_inbox *in = &v->inboxes[rank];
    const struct comm_request *r = &in->call.request;
    struct train_ps_body body;

    if (r->count > sizeof in->bytes)
        TRY(base_fail(BASE_ERR_DATA, "a call of %zu bytes", r->count));
    if (r->tag == TRAIN_PS_ENTRY) {
        TRY(take_entry(v, rank, in->bytes, r->count));
    } else {
        TRY(ps_body_decode(in->bytes, r->count, &body));
        TRY(take_body(v, rank, (enum train_ps_call)r->tag, &body));
    }
    if (!in->calls_over)
        expect_call(v, rank);
out:
    return st;
}

/* A bucket is here, or the outline that ends a push. Only between two pushes may a worker leave. */
static base_status take_push(struct ps_server *v, int rank)
{
    base_status st = BASE_OK;
    struct train_inbox *in = &v->inboxes[rank];
    const struct comm_request *r = &in->push.request;
    struct train_outline outline;

    if (r->tag == TRAIN_PS_BYE && in->left == ps_server_floats(v)) {
        in->pushes_over = true;
        goto out;
    }
    if (r->tag != (in->left > 0 ? TRAIN_PS_VALUES : TRAIN_PS_PUSH))
        TRY(base_fail(BASE_ERR_DATA, "values or a push out of turn"));
    if (v->rank == 0 && v->sequencer.of[rank].work != TRAIN_WORKS)
        TRY(base_fail(BASE_ERR_DATA, "a push of a worker that has no block"));
    if (in->left > 0) {
        struct ps_bucket b = next_bucket(v, in->left);

        ps_server_take_values(v, rank, &b, in->packed, r->count);
        in->left -= b.count;
    } else {
        TRY(ps_outline_decode(in->outline, r->count, &outline));
        ps_server_take_push(v, rank, &outline);
        in->left = ps_server_floats(v);
    }
    expect_push(v, rank);
out:
    return st;
}

static bool all_gone(const struct ps_server *v)
{
    for (int i = 0; i < v->size; i++)
        if (i != v->rank && !(v->inboxes[i].calls_over && v->inboxes[i].pushes_over))
            return false;
    return true;
}

static base_status take(struct ps_server *v, int rank, bool call)
{
    return base_prefix(call ? take_call(v, rank) : take_push(v, rank), "server %d, of worker %u",
                       v->rank, v->session->team.view.members[rank].id);
}

static base_status serve(struct ps_server *v)
{
    base_status st = BASE_OK;
    struct comm_task *tasks[2 * COMM_MAX_WORKERS + 1];
    int index;

    while (!all_gone(v)) {
        for (int i = 0; i < v->size; i++) {
            struct train_inbox *in = &v->inboxes[i];

            tasks[i] = i == v->rank || in->calls_over ? NULL : &in->call;
            tasks[v->size + i] = i == v->rank || in->pushes_over ? NULL : &in->push;
        }
        tasks[2 * v->size] = &v->bell;
        TRY(comm_engine_poll(v->engine, tasks, 2 * v->size + 1, base_now() + PATIENCE, UINT32_MAX,
                             &index));
        if (index == 2 * v->size)
            break;
        if (index < 0)
            TRY(base_fail(BASE_ERR_TIMEOUT, "server %d heard nothing for %g s", v->rank, PATIENCE));
        base_mutex_lock(&v->lock);
        st = take(v, index % v->size, index < v->size);
        base_mutex_unlock(&v->lock);
        TRY(st);
    }
out:
    return st;
}

/* An order that fails ends the group: workers that wait for this server need not wait in vain. */
static base_status end_group(void *context)
{
    const struct ps_server *v = context;

    return base_fail(v->failure, "%s", v->message);
}

static void *run(void *argument)
{
    struct ps_server *v = argument;
    base_status st = serve(v);

    base_mutex_lock(&v->lock);
    if (st != BASE_OK) {
        v->failure = st;
        snprintf(v->message, sizeof v->message, "%s", base_message());
    }
    base_signal_wake(&v->changed);
    base_mutex_unlock(&v->lock);
    if (st != BASE_OK)
        comm_engine_order(v->engine, end_group, v, &v->last);
    return NULL;
}

/* Room for the larger of the two slices. */
static base_status make_room(struct ps_server *v, struct train_inbox *in)
{
    size_t most = v->slices[0].count;

    if (v->wiring == NULL)
        return BASE_OK;
    if (v->slice_count > 1 && v->slices[1].count > most)
        most = v->slices[1].count;
    return base_tensor(train_wire_bound(v->wiring, most), 1, "packed pushes", &in->packed);
}

base_status ps_server_start(struct ps_server *v)
{
    base_status st = BASE_OK;

    v->engine = v->size > 1 ? comm_group_engine(v->session->team.group) : NULL;
    if (v->engine == NULL)
        return BASE_OK;
    v->inboxes = base_calloc((size_t)v->size, sizeof *v->inboxes);
    for (int i = 0; i < v->size; i++) {
        v->inboxes[i].left = ps_server_floats(v);
        v->inboxes[i].pushes_over = i < v->sequencer.first_worker;
        if (i != v->rank && !v->inboxes[i].pushes_over)
            TRY(make_room(v, &v->inboxes[i]));
    }
    for (int i = 0; i < v->size; i++) {
        if (i != v->rank)
            expect_call(v, i);
        if (i != v->rank && !v->inboxes[i].pushes_over)
            expect_push(v, i);
    }
    TRY(base_thread_start(&v->thread, "server", run, v));
    v->runs = true;
out:
    return st;
}

static void join(struct ps_server *v)
{
    if (v->runs)
        base_thread_join(&v->thread);
    v->runs = false;
}

base_status ps_server_finish(struct ps_server *v)
{
    base_status st = BASE_OK;

    join(v);
    if (v->failure != BASE_OK)
        TRY(base_fail(v->failure, "%s", v->message));
    TRY(ps_server_wait_sent(v, base_now() + PATIENCE));
out:
    return st;
}

void ps_server_abandon(struct ps_server *v)
{
    if (v->runs)
        comm_engine_ring(v->engine, &v->bell);
    join(v);
    memset(v->pulls, 0, sizeof v->pulls); /* workers that waited have lost their view, too */
}

base_status ps_server_wait_answer(struct ps_server *v, struct train_ps_body *answer)
{
    double deadline = base_now() + PATIENCE;
    base_status st = BASE_OK;

    base_mutex_lock(&v->lock);
    while (!v->answered && v->failure == BASE_OK && base_now() < deadline)
        base_signal_wait(&v->changed, &v->lock, deadline);
    if (v->answered)
        *answer = v->answer;
    else if (v->failure != BASE_OK)
        st = base_fail(v->failure, "%s", v->message);
    else
        st = base_fail(BASE_ERR_TIMEOUT, "no answer from the server of this process for %g s",
                       PATIENCE);
    v->answered = false;
    base_mutex_unlock(&v->lock);
    return st;
}

base_status ps_server_attend(struct ps_server *v, struct train_ps_body *answer, bool *over_p)
{
    const double MOMENT = 1; /* the thread that takes messages sees to it that this ends */
    double until = base_now() + MOMENT;
    base_status st = BASE_OK;
    uint64_t before;

    base_mutex_lock(&v->lock);
    before = v->applied;
    while (!v->answered && v->applied == before && v->failure == BASE_OK && base_now() < until)
        base_signal_wait(&v->changed, &v->lock, until);
    *over_p = v->answered;
    if (v->answered)
        *answer = v->answer;
    else if (v->failure != BASE_OK)
        st = base_fail(v->failure, "%s", v->message);
    base_mutex_unlock(&v->lock);
    return st;
}

void ps_server_close(struct ps_server *v)
{
    if (v->session == NULL)
        return;
    for (int i = 0; i < v->slice_count; i++)
        base_free(v->slices[i].weights);
    for (int i = 0; i < v->size; i++) {
        base_free(v->pushes[i]);
        if (v->inboxes != NULL)
            base_free(v->inboxes[i].packed);
    }
    ps_server_forget_sent(v);
    ps_server_forget_copies(v);
    if (v->reads != NULL)
        fclose(v->reads);
    base_free(v->inboxes);
    base_free(v->log);
    base_free(v->applied_log);
    base_free(v->told.at);
    base_signal_fini(&v->changed);
    base_mutex_fini(&v->lock);
    *v = (struct ps_server){0};
}
