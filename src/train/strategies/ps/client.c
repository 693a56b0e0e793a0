/* SPDX-License-Identifier: MIT */
#include "train/strategies/ps/client.h"

#include "base/clock.h"

/* Seconds that a worker waits for a server: others may compute or be stalled meanwhile. */
static const double PATIENCE = 600;

void ps_client_open(struct ps_client *c, struct train_session *s, int servers,
                    struct ps_server *server, struct ps_parcel *parcel)
{
    c->session = s;
    c->servers = servers;
    c->server = server;
    c->parcel = parcel;
    c->task_count = 0;
    c->answer = (struct train_ps_body){0};
    for (int i = 0; i < servers; i++)
        ps_server_slices(s->state.floats, i, servers, c->slices[i]);
}

static int rank_of(const struct ps_client *c)
{
    return c->session->team.exchange.rank;
}

static struct comm_engine *engine_of(const struct ps_client *c)
{
    return comm_group_engine(c->session->team.group);
}

static void send(struct ps_client *c, int to, enum train_ps_call call, const void *bytes,
                 size_t count)
{
    comm_engine_send(engine_of(c), to, COMM_CALLS, (uint32_t)call, bytes, count,
                     &c->tasks[c->task_count++]);
}

static void receive(struct ps_client *c, int from, enum train_ps_call call, void *bytes,
                    size_t count)
{
    comm_engine_receive(engine_of(c), from, COMM_BACKWARD, (uint32_t)call, bytes, count,
                        &c->tasks[c->task_count++]);
}

/* Until all messages have moved. */
static base_status wait_all(struct ps_client *c)
{
    base_status st = BASE_OK;

    for (int i = 0; i < c->task_count; i++)
        TRY(comm_engine_wait(engine_of(c), &c->tasks[i], base_now() + PATIENCE));
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
    send(c, 0, TRAIN_PS_ASK, c->call, sizeof c->call);
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

/* Asks a server of another process for its slice, unless that is in shared memory already. */
static void request(struct ps_client *c, int server, uint64_t number)
{
    const struct train_slice *slice = &c->slices[server][0];
    const struct comm_region *region = region_of(c, server);
    size_t bytes = slice->count * sizeof(float);

    if (region != NULL && ps_shelf_has(region, number))
        return;
    ps_body_encode(
        &(struct train_ps_body){.rank = rank_of(c), .shared = region != NULL, .number = number},
        c->calls[server]);
    send(c, server, TRAIN_PS_PULL, c->calls[server], sizeof c->calls[server]);
    receive(c, server, TRAIN_PS_WEIGHTS, c->heads[server], sizeof c->heads[server]);
    if (region != NULL)
        return;
    receive(c, server, TRAIN_PS_VALUES, c->session->state.weights + slice->from, bytes);
    c->pulled += (int64_t)bytes;
}

/* What was requested is there. *oldest_p: the entry up to which it has been read, if that is less
 * than it was. */
static base_status take_weights(struct ps_client *c, int server, uint64_t number,
                                uint64_t *oldest_p)
{
    base_status st = BASE_OK;
    const struct train_slice *slice = &c->slices[server][0];
    struct train_ps_body head;
    uint64_t read;

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
    for (int i = 0; i < c->servers; i++)
        if (i != rank_of(c))
            request(c, i, number);
    train_fault_at(&s->fault, "pull", c->answer.step + 1);
    if (c->server != NULL)
        TRY(ps_server_read(c->server, number, s->state.weights, &c->read));
    TRY(wait_all(c));
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

/* The bytes of a slice that server `owner` serves. */
static const void *slice_bytes(const struct ps_client *c, int owner, const float *gradients,
                               size_t *count_p)
{
    const struct ps_parcel *parcel = c->parcel;
    const struct train_slice *slice = &c->slices[owner][0];

    if (ps_parcel_packs(parcel)) {
        *count_p = parcel->length[owner];
        return parcel->bytes + parcel->from[owner];
    }
    *count_p = slice->count * sizeof *gradients;
    return gradients + slice->from;
}

/* The server of this process sends on the same channel, from another thread: the outline and its
 * values must not be torn apart. */
static void push_to(struct ps_client *c, int server, const float *gradients)
{
    int copies = c->servers > 1 ? 2 : 1;

    if (c->server != NULL)
        base_mutex_lock(&c->server->lock);
    send(c, server, TRAIN_PS_PUSH, c->outline, sizeof c->outline);
    for (int i = 0; i < copies; i++) {
        int owner = (server + c->servers - i) % c->servers;
        size_t count;
        const void *bytes = slice_bytes(c, owner, gradients, &count);

        if (c->slices[owner][0].count == 0)
            continue;
        send(c, server, TRAIN_PS_VALUES, bytes, count / (c->spoils ? 2 : 1));
        c->pushed += (int64_t)count;
    }
    if (c->server != NULL)
        base_mutex_unlock(&c->server->lock);
}

void ps_client_push(struct ps_client *c, const struct train_outline *outline)
{
    const struct train_exchange *x = &c->session->team.exchange;
    const float *gradients = x->mine + TRAIN_HEAD;
    double unit = (double)outline->block.count / (double)c->session->plan.batch;
    enum train_category was = train_clock_enter(&c->session->clock, TRAIN_COMMUNICATE);

    if (ps_parcel_packs(c->parcel))
        ps_parcel_pack(c->parcel, gradients, outline->shared ? 1 : unit);
    train_clock_enter(&c->session->clock, was);
    ps_outline_encode(outline, c->outline);
    for (int i = 0; i < c->servers; i++) {
        if (i != x->rank)
            push_to(c, i, gradients);
        train_fault_nth(x->fault, "push", i, x->step);
    }
    if (c->server != NULL)
        ps_server_push(c->server, outline, gradients, c->parcel);
}

static void say_goodbye(struct ps_client *c, int server)
{
    ps_body_encode(&(struct train_ps_body){.rank = rank_of(c)}, c->call);
    send(c, server, TRAIN_PS_BYE, c->call, sizeof c->call);
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
