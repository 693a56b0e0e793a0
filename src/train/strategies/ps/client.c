/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/client.h"

#include <math.h>

#include "base/clock.h"
#include "base/mem.h"

/* Seconds that a worker waits for a server: others may compute or be stalled meanwhile. */
static const double PATIENCE = 600;

/* Messages of a pull and of the push after it, with its answer, or of a pull and the goodbyes: a
 * bucket comes from one server and goes to two, and there are five more for each. */
static size_t most_tasks(const struct ps_client *c, size_t bucket)
{
    size_t buckets = 0;

    for (int i = 0; i < c->servers; i++)
        buckets += c->slices[i][0].count / bucket + 1;
    return 3 * buckets + 5 * (size_t)c->servers + 1;
}

void ps_client_open(struct ps_client *c, struct train_session *s, struct ps_seats seats,
                    struct ps_server *server, struct ps_parcel *parcel, size_t bucket)
{
    c->session = s;
    c->servers = seats.servers;
    c->works = s->team.exchange.rank >= seats.first_worker;
    c->server = server;
    c->parcel = parcel;
    c->bucket = bucket;
    c->task_count = 0;
    c->answer = (struct train_ps_body){0};
    for (int i = 0; i < c->servers; i++) {
        ps_server_slices(s->state.floats, i, c->servers, c->slices[i]);
        c->coming[i] = (struct ps_coming){.arrived = c->slices[i][0].count};
    }
    base_free(c->tasks);
    c->tasks = base_calloc(most_tasks(c, bucket), sizeof *c->tasks);
}

void ps_client_fini(struct ps_client *c)
{
    base_free(c->tasks);
    c->tasks = NULL;
}

static int rank_of(const struct ps_client *c)
{
    return c->session->team.exchange.rank;
}

static struct comm_engine *engine_of(const struct ps_client *c)
{
    return comm_group_engine(c->session->team.group);
}

static void send(struct ps_client *c, int to, enum comm_channel channel, enum train_ps_call call,
                 const void *bytes, size_t count)
{
    comm_engine_send(engine_of(c), to, channel, (uint32_t)call, bytes, count,
                     &c->tasks[c->task_count++]);
}

static void receive(struct ps_client *c, int from, enum train_ps_call call, void *bytes,
                    size_t count)
{
    comm_engine_receive(engine_of(c), from, COMM_BACKWARD, (uint32_t)call, bytes, count,
                        &c->tasks[c->task_count++]);
}

static base_status wait_for(const struct ps_client *c, struct comm_task *task)
{
    return comm_engine_wait(engine_of(c), task, base_now() + PATIENCE);
}

/* Until all messages have moved. */
static base_status wait_all(struct ps_client *c)
{
    base_status st = BASE_OK;

    for (int i = 0; i < c->task_count; i++)
        TRY(wait_for(c, &c->tasks[i]));
    c->task_count = 0;
out:
    return st;
}

base_status ps_client_ask(struct ps_client *c)
{
    ps_body_encode(&(struct train_ps_body){.rank = rank_of(c)}, c->call);
    if (c->server != NULL) {
        ps_server_ask(c->server);
        return BASE_OK;
    }
    send(c, 0, COMM_CALLS, TRAIN_PS_ASK, c->call, sizeof c->call);
    return wait_all(c);
}

base_status ps_client_answer(struct ps_client *c)
{
    base_status st = BASE_OK;
    struct train_session *s = c->session;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);

    if (rank_of(c) == 0)
        TRY(ps_server_wait_answer(c->server, &c->answer));
    else
        receive(c, 0, TRAIN_PS_ANSWER, c->heads[0], sizeof c->heads[0]);
    TRY(wait_all(c));
    if (rank_of(c) != 0)
        TRY(base_prefix(ps_body_decode(c->heads[0], sizeof c->heads[0], &c->answer),
                        "an answer of server 0"));
    train_fault_at(&s->fault, "answer", c->answer.step + 1);
    train_clock_enter(&s->clock, was);
out:
    return st;
}

static const struct comm_region *region_of(const struct ps_client *c, int server)
{
    return c->exact ? NULL : c->shelf.of[server];
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Asks a server of another process for its slice, unless that is in shared memory already. */
static void request(struct ps_client *c, int server, uint64_t number)
{
    const struct train_slice *slice = &c->slices[server][0];
    const struct comm_region *region = region_of(c, server);
    float *weights = c->session->state.weights + slice->from;
    struct ps_coming *coming = &c->coming[server];

    if (region != NULL && ps_shelf_has(region, number))
        return;
    ps_body_encode(
        &(struct train_ps_body){.rank = rank_of(c), .shared = region != NULL, .number = number},
        c->calls[server]);
    send(c, server, COMM_CALLS, TRAIN_PS_PULL, c->calls[server], sizeof c->calls[server]);
    coming->head = &c->tasks[c->task_count];
    receive(c, server, TRAIN_PS_WEIGHTS, c->heads[server], sizeof c->heads[server]);
    if (region != NULL)
        return;
    coming->values = &c->tasks[c->task_count];
    coming->arrived = 0;
    for (size_t at = 0; at < slice->count; at += c->bucket)
        receive(c, server, TRAIN_PS_VALUES, weights + at,
                smaller(slice->count - at, c->bucket) * sizeof *weights);
    c->pulled += (int64_t)(slice->count * sizeof *weights);
}

/* Waits until a server has said what it sends, and takes what is in shared memory. *oldest_p: the
 * entry up to which the weights have been read, if that is less than it was. */
static base_status take_weights(struct ps_client *c, int server, uint64_t number,
                                uint64_t *oldest_p)
{
    base_status st = BASE_OK;
    const struct train_slice *slice = &c->slices[server][0];
    struct train_ps_body head;
    uint64_t read;

    if (c->coming[server].head != NULL)
        TRY(wait_for(c, c->coming[server].head));
    if (region_of(c, server) != NULL) {
        TRY(ps_shelf_read(region_of(c, server), number, c->session->state.weights + slice->from,
                          slice->count, &read));
    } else {
        TRY(ps_body_decode(c->heads[server], sizeof c->heads[server], &head));
        read = head.number;
    }
    *oldest_p = read < *oldest_p ? read : *oldest_p;
out:
    return base_prefix(st, "weights of server %d", server);
}

base_status ps_client_pull(struct ps_client *c, uint64_t number)
{
    base_status st = BASE_OK;
    struct train_session *s = c->session;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_COMMUNICATE);

    c->read = UINT64_MAX;
    for (int i = 0; i < c->servers; i++) {
        c->coming[i] = (struct ps_coming){.arrived = c->slices[i][0].count};
        if (i != rank_of(c))
            request(c, i, number);
    }
    train_fault_at(&s->fault, "pull", c->answer.step + 1);
    if (c->server != NULL)
        TRY(ps_server_read(c->server, number, s->state.weights, &c->read));
    for (int i = 0; i < c->servers; i++)
        if (i != rank_of(c))
            TRY(take_weights(c, i, number, &c->read));
    if (c->read < number)
        TRY(base_fail(BASE_ERR_INTERNAL, "weights of entry %llu where %llu was asked for",
                      (unsigned long long)c->read, (unsigned long long)number));
    s->tested = false; /* the test's figures were of the former weights */
    train_clock_enter(&s->clock, was);
out:
    return st;
}

base_status ps_client_await(struct ps_client *c, size_t end)
{
    base_status st = BASE_OK;
    double began = base_now();

    for (int i = 0; i < c->servers; i++) {
        const struct train_slice *slice = &c->slices[i][0];
        struct ps_coming *coming = &c->coming[i];

        while (coming->arrived < slice->count && slice->from + coming->arrived < end) {
            TRY(base_prefix(wait_for(c, coming->values++), "weights of server %d", i));
            coming->arrived += smaller(slice->count - coming->arrived, c->bucket);
        }
    }
    train_clock_move(&c->session->clock, TRAIN_COMMUNICATE, base_now() - began);
out:
    return st;
}

void ps_client_begin_push(struct ps_client *c, double unit)
{
    c->unit = unit;
    c->owner = c->servers - 1;
    c->end = c->session->state.floats;
}

/* For tests: what a worker that is wrong would push. */
static void spoil(const struct ps_client *c, size_t from, float *gradients)
{
    size_t middle = c->session->state.floats / 2;

    if (c->spoils_nan && from <= middle && middle < c->end)
        gradients[middle] = NAN;
}

/* Gradients [from, c->end), of one slice, go to the servers that keep it. The one of this process
 * takes them with the push. */
static void hand_over(struct ps_client *c, size_t from)
{
    struct train_clock *clock = &c->session->clock;
    float *gradients = c->session->team.exchange.mine + TRAIN_HEAD;
    const void *bytes = gradients + from;
    size_t count = (c->end - from) * sizeof *gradients;

    spoil(c, from, gradients);
    if (ps_parcel_packs(c->parcel)) {
        enum train_category was = train_clock_enter(clock, TRAIN_COMMUNICATE);

        ps_parcel_pack(c->parcel, c->owner, gradients, c->unit);
        bytes = c->parcel->bytes + c->parcel->from[c->owner];
        count = c->parcel->length[c->owner];
        train_clock_enter(clock, was);
    }
    for (int i = 0; i < (c->servers > 1 ? 2 : 1); i++) {
        int server = (c->owner + i) % c->servers;

        if (server == rank_of(c))
            continue;
        send(c, server, COMM_FORWARD, TRAIN_PS_VALUES, bytes, count / (c->spoils ? 2 : 1));
        c->pushed += (int64_t)count;
    }
    c->end = from;
}

void ps_client_ready(struct ps_client *c, size_t from)
{
    size_t most = ps_parcel_packs(c->parcel) ? SIZE_MAX : c->bucket;

    for (; c->owner >= 0; c->owner--) {
        const struct train_slice *slice = &c->slices[c->owner][0];

        while (slice->count > 0 && c->end > slice->from) {
            size_t first = ps_server_bucket(slice, c->end, most);

            if (first < from)
                return;
            hand_over(c, first);
        }
    }
}

void ps_client_push(struct ps_client *c, const struct train_outline *outline)
{
    const struct train_exchange *x = &c->session->team.exchange;

    ps_client_ready(c, 0);
    ps_outline_encode(outline, c->outline);
    for (int i = 0; i < c->servers; i++) {
        if (i != x->rank)
            send(c, i, COMM_FORWARD, TRAIN_PS_PUSH, c->outline, sizeof c->outline);
        train_fault_nth(x->fault, "push", i, x->step);
    }
    if (c->server != NULL)
        ps_server_push(c->server, outline, x->mine + TRAIN_HEAD, c->parcel);
}

static void say_goodbye(struct ps_client *c, int server)
{
    ps_body_encode(&(struct train_ps_body){.rank = rank_of(c)}, c->call);
    send(c, server, COMM_CALLS, TRAIN_PS_BYE, c->call, sizeof c->call);
    if (c->works)
        send(c, server, COMM_FORWARD, TRAIN_PS_BYE, c->call, 0);
}

/* A process that serves has more to tell server 0 for as long as others push to it. */
static bool goes_on_telling(const struct ps_client *c)
{
    return c->server != NULL && rank_of(c) != 0;
}

base_status ps_client_leave(struct ps_client *c)
{
    for (int i = 0; i < c->servers; i++)
        if (i != rank_of(c) && (i != 0 || !goes_on_telling(c)))
            say_goodbye(c, i);
    return wait_all(c);
}

base_status ps_client_leave_first(struct ps_client *c)
{
    if (goes_on_telling(c))
        say_goodbye(c, 0);
    return wait_all(c);
}
