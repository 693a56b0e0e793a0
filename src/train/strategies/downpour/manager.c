/* SPDX-License-Identifier: MIT
 *
 * Every rank has a desk: what its worker does, by what the manager knows. A call is booked first,
 * then all desks are served: who waits gets a block if there is one, and who has not been told that
 * the round is over is told. The lock covers desks and ledger; the thread lets go of it while it
 * waits for messages.
 */
#include "train/strategies/downpour/manager.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/engine.h"
#include "comm/region.h"
#include "comm/transport.h"

/* Seconds between looks at what no message tells: a grace that is over, a block that is late, a
 * newer view. */
static const double TICK = 0.02;
enum { ANSWERS = 4 }; /* to one worker on their way: of a block, of a wait, of the round's end */

struct said {
    uint8_t bytes[TRAIN_ANSWER_BYTES];
    struct comm_task task;
    bool used;
};

struct desk {
    enum { DESK_SILENT, DESK_WAITS, DESK_COMPUTES, DESK_GONE } state;
    bool holds;    /* `block` is out with this worker … */
    bool reserved; /* … which does not know it yet */
    bool added;    /* a part of the block is in the centre already */
    uint32_t block;
    bool told;     /* that the round is over */
    double waited; /* since this moment without a word from the manager */

    /* Of a worker in another process. */
    uint8_t bytes[DOWNPOUR_CALL_BYTES];
    struct downpour_call call; /* whose values are on their way */
    float *values;             /* room for them */
    float *fetched;            /* a copy of the centre, on its way */
    struct comm_task fetch;
    bool values_come;
    struct comm_task heard;
    struct said said[ANSWERS];
};

struct downpour_manager {
    struct train_team *team;
    struct downpour_ledger *ledger;
    struct train_rules rules;
    size_t floats;
    struct comm_engine *engine; /* NULL: there is no other worker */
    float *centre;
    struct comm_region *region; /* of the centre; NULL: no worker of this host reads it */
    uint64_t version;
    struct desk desks[COMM_MAX_WORKERS];
    int size, workers; /* of the view; those that compute */

    struct base_mutex lock;
    struct base_signal moved;  /* the desk of rank 0 was served, or the round has failed */
    struct train_answer local; /* for rank 0, while `answered` */
    bool answered;
    bool over;
    double over_since;
    enum train_ending ending;
    base_status failure;
    char *message;
    char *refusal;  /* of the last result that was none; NULL: there was none */
    bool abandoned; /* the thread is to end */
    struct base_thread thread;
    bool has_thread;
};

static uint32_t id_of(const struct downpour_manager *m, int rank)
{
    return m->team->worker != NULL ? m->team->view.members[rank].id : 0;
}

/* With the lock: the round cannot go on. */
static void fail_round(struct downpour_manager *m, base_status st)
{
    if (m->failure != BASE_OK)
        return;
    m->failure = st;
    m->message = base_strdup(base_message());
    base_signal_wake(&m->moved);
}

/* ---- answers ---- */

static struct said *free_answer(struct desk *d)
{
    for (int i = 0; i < ANSWERS; i++)
        if (!d->said[i].used || atomic_load(&d->said[i].task.ended))
            return &d->said[i];
    return NULL;
}

static void answer(struct downpour_manager *m, int rank, const struct train_answer *a)
{
    struct desk *d = &m->desks[rank];
    struct said *said = free_answer(d);

    d->waited = base_now();
    if (rank == 0) {
        m->local = *a;
        m->answered = true;
        base_signal_wake(&m->moved);
    } else if (said != NULL) {
        said->used = true;
        train_answer_encode(a, said->bytes);
        comm_engine_send(m->engine, rank, COMM_CALLS, TRAIN_TAG_ANSWER, said->bytes,
                         sizeof said->bytes, &said->task);
    } else {
        fail_round(m, base_fail(BASE_ERR_TIMEOUT, "worker %u takes no answers of the manager",
                                id_of(m, rank)));
    }
}

static void tell_end(struct downpour_manager *m, int rank)
{
    struct desk *d = &m->desks[rank];

    d->told = true;
    answer(
        m, rank,
        &(struct train_answer){.kind = TRAIN_ANSWER_CLOSE,
                               .ending = m->ending,
                               .wanted = m->ending == TRAIN_ENDING_RENEW ||
                                         d->state == DESK_SILENT || /* with a late block */
                                         (d->holds && downpour_ledger_wants(m->ledger, d->block))});
}

static void give_block(struct downpour_manager *m, int rank, double now)
{
    struct desk *d = &m->desks[rank];
    int64_t block = m->rules.fixed
                        ? -1
                        : downpour_ledger_issue(m->ledger, id_of(m, rank), m->workers == 1,
                                                (uint32_t)rank % m->ledger->round.blocks, now);

    if (block >= 0) {
        d->state = DESK_COMPUTES;
        d->holds = true;
        d->added = false;
        d->block = (uint32_t)block;
        answer(m, rank,
               &(struct train_answer){.kind = TRAIN_ANSWER_BLOCK, .block = (uint32_t)block});
    } else if (rank != 0 && now > d->waited + DOWNPOUR_MANAGER_WAITS) {
        answer(m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_WAIT});
    }
}

/* The block that is kept for this worker since the round's beginning. */
static void give_reserved(struct downpour_manager *m, int rank)
{
    struct desk *d = &m->desks[rank];

    d->reserved = d->added = false;
    d->state = DESK_COMPUTES;
    downpour_ledger_claim(m->ledger, d->block);
    answer(m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_BLOCK, .block = d->block});
}

static void serve(struct downpour_manager *m, double now)
{
    for (int rank = 0; rank < m->size; rank++) {
        struct desk *d = &m->desks[rank];

        if (m->over && !d->told && d->state != DESK_GONE)
            tell_end(m, rank);
        else if (!m->over && d->state == DESK_WAITS)
            give_block(m, rank, now);
    }
}

/* ---- the round's end ---- */

static void end_round(struct downpour_manager *m, enum train_ending ending, double now)
{
    m->over = true;
    m->over_since = now;
    m->ending = ending;
}

/* What no message tells. */
static void look_around(struct downpour_manager *m, double now)
{
    if (m->over)
        return;
    if (downpour_ledger_complete(m->ledger, m->rules.quorum, m->rules.grace, now))
        end_round(m, TRAIN_ENDING_COMMIT, now);
    else if (train_team_stopping(m->team))
        end_round(m, TRAIN_ENDING_STOP, now);
    else if (train_team_outdated(m->team))
        end_round(m, TRAIN_ENDING_RENEW, now);
    else if (downpour_ledger_hopeless(m->ledger))
        fail_round(m,
                   base_fail(BASE_ERR_DIVERGED,
                             "no worker has a result for a block: %s; try a lower --lr or --clip 1",
                             m->refusal != NULL ? m->refusal : "there are no samples"));
}

/* ---- calls ---- */

static void note_refusal(struct downpour_manager *m, int rank)
{
    base_free(m->refusal);
    m->refusal = base_format("worker %u sent %s", id_of(m, rank), base_message());
    base_warn("%s; it does not count", m->refusal);
}

static void publish(struct downpour_manager *m)
{
    if (m->region != NULL)
        base_ignore(
            comm_region_publish(m->region, ++m->version, m->centre)); /* one writer: it can */
}

/* A change is in the centre at once, by its block's share of the round's samples. */
static void add_change(struct downpour_manager *m, const struct downpour_call *call,
                       const float *values)
{
    const struct downpour_ledger *l = m->ledger;
    float *centre = m->centre,
          share = (float)((double)l->blocks[call->block].samples / (double)l->samples);

    for (size_t i = 0; i < m->floats; i++)
        centre[i] += share * values[i];
    publish(m);
}

static void book_result(struct downpour_manager *m, int rank, const struct downpour_call *call,
                        float **values_p, size_t got, double now)
{
    const struct desk *d = &m->desks[rank];
    struct downpour_call booked = *call;

    if (d->holds && !d->reserved && booked.block != d->block &&
        booked.round.number == m->ledger->round.number)
        booked.round.blocks = 0; /* it was given another one: this is of no round */
    switch (downpour_ledger_receive(m->ledger, id_of(m, rank), &booked, values_p, m->floats, got,
                                    now)) {
    case DOWNPOUR_RECEIPT_REFUSED:
        note_refusal(m, rank);
        /* A block that is in the centre in part would count more than once if it was computed
         * again: the rest of it is left out. */
        if (d->holds && !d->reserved && (m->rules.fixed || d->added))
            downpour_ledger_drop(m->ledger, d->block);
        else if (d->holds && !d->reserved)
            downpour_ledger_blame(m->ledger, d->block, id_of(m, rank));
        break;
    case DOWNPOUR_RECEIPT_COUNTS:
        if (m->centre != NULL)
            add_change(m, &booked, m->ledger->blocks[booked.block].values);
        break;
    case DOWNPOUR_RECEIPT_SURPLUS:
        break;
    }
}

static void book_push(struct downpour_manager *m, int rank, const struct downpour_call *call,
                      const float *values, size_t got)
{
    struct desk *d = &m->desks[rank];

    if (d->holds && call->block == d->block &&
        downpour_ledger_check(m->ledger, call, values, m->floats, got) == BASE_OK) {
        add_change(m, call, values);
        d->added = true;
    } else {
        note_refusal(m, rank);
    }
    if (!m->over)
        answer(m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_GO_ON});
}

static void book_fetch(struct downpour_manager *m, int rank)
{
    struct desk *d = &m->desks[rank];
    size_t bytes = m->floats * sizeof(float);

    if (m->over || rank == 0)
        return;
    answer(m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_GO_ON});
    memcpy(d->fetched, m->centre, bytes);
    comm_engine_send(m->engine, rank, COMM_CALLS, TRAIN_TAG_WEIGHTS, d->fetched, bytes, &d->fetch);
}

/* A worker has a part of a block done, and gets it if it is free. */
static void book_continue(struct downpour_manager *m, int rank, const struct downpour_call *call,
                          double now)
{
    struct desk *d = &m->desks[rank];

    for (int r = 0; r < m->size; r++) /* kept for another worker, which has not begun it */
        if (m->desks[r].reserved && m->desks[r].block == call->block) {
            downpour_ledger_release(m->ledger, call->block);
            m->desks[r].holds = m->desks[r].reserved = false;
        }
    if (!downpour_ledger_resume(m->ledger, id_of(m, rank), call, now))
        return;
    d->state = DESK_COMPUTES;
    d->holds = true;
    d->added = false;
    d->block = call->block;
    answer(m, rank, &(struct train_answer){.kind = TRAIN_ANSWER_BLOCK, .block = call->block});
}

static void book(struct downpour_manager *m, int rank, const struct downpour_call *call,
                 float **values_p, size_t got, double now)
{
    struct desk *d = &m->desks[rank];

    d->waited = now;
    if (call->kind == DOWNPOUR_CALL_PUSH)
        return book_push(m, rank, call, *values_p, got);
    if (call->kind == DOWNPOUR_CALL_FETCH)
        return book_fetch(m, rank);
    if (call->kind == DOWNPOUR_CALL_RESULT)
        book_result(m, rank, call, values_p, got, now);
    if (call->kind == DOWNPOUR_CALL_ASK && d->reserved && !m->over &&
        downpour_ledger_wants(m->ledger, d->block))
        return give_reserved(m, rank);
    if (d->holds)
        downpour_ledger_release(m->ledger, d->block);
    d->holds = d->reserved = false;
    d->state = call->kind == DOWNPOUR_CALL_BYE ? DESK_GONE : DESK_WAITS;
    if (call->kind == DOWNPOUR_CALL_CONTINUE && !m->over)
        book_continue(m, rank, call, now);
    look_around(m, now);
    serve(m, now);
}

/* ---- workers of other processes ---- */

static void listen(struct downpour_manager *m, int rank)
{
    struct desk *d = &m->desks[rank];

    comm_engine_receive_any(m->engine, rank, COMM_CALLS, d->bytes, sizeof d->bytes, &d->heard);
}

static base_status expect_values(struct downpour_manager *m, int rank)
{
    base_status st = BASE_OK;
    struct desk *d = &m->desks[rank];

    if (d->values == NULL)
        TRY(base_tensor(m->floats, sizeof(float), "a worker's result", &d->values));
    d->values_come = true;
    comm_engine_receive_any(m->engine, rank, COMM_CALLS, d->values, m->floats * sizeof(float),
                            &d->heard);
out:
    return st;
}

/* The call that came, as far as this manager knows such calls. */
static base_status decode(const struct downpour_manager *m, struct desk *d)
{
    base_status st = BASE_OK;
    const struct comm_request *message = &d->heard.request;

    if (message->tag != TRAIN_TAG_CALL || message->count > sizeof d->bytes)
        TRY(base_fail(BASE_ERR_DATA, "a message of %zu bytes with tag %u", message->count,
                      message->tag));
    TRY(downpour_call_decode(d->bytes, message->count, &d->call));
    if ((d->call.kind == DOWNPOUR_CALL_PUSH && m->centre == NULL) ||
        (d->call.kind == DOWNPOUR_CALL_FETCH && d->fetched == NULL))
        TRY(base_fail(BASE_ERR_DATA, "a call of kind %d, which is not served", d->call.kind));
out:
    return st;
}

/* The message that this desk waited for is there. */
static base_status hear(struct downpour_manager *m, int rank, double now)
{
    base_status st = BASE_OK;
    struct desk *d = &m->desks[rank];
    size_t got = 0;

    if (d->values_come) {
        d->values_come = false;
        if (d->heard.request.tag == TRAIN_TAG_VALUES &&
            d->heard.request.count % sizeof(float) == 0) /* else its contents are undefined */
            got = d->heard.request.count / sizeof(float);
    } else {
        TRY(base_prefix(decode(m, d), "worker %u", id_of(m, rank)));
        if (d->call.kind == DOWNPOUR_CALL_RESULT || d->call.kind == DOWNPOUR_CALL_PUSH) {
            TRY(expect_values(m, rank));
            goto out;
        }
    }
    book(m, rank, &d->call, &d->values, got, now);
    if (d->state != DESK_GONE)
        listen(m, rank);
out:
    return st;
}

/* With the lock: are there workers of other processes that have not said good-bye? */
static bool has_guests(const struct downpour_manager *m)
{
    for (int rank = 1; rank < m->size; rank++)
        if (m->desks[rank].state != DESK_GONE)
            return true;
    return false;
}

static void check_patience(struct downpour_manager *m, double now)
{
    if (!m->over || now < m->over_since + DOWNPOUR_MANAGER_PATIENCE)
        return;
    for (int rank = 1; rank < m->size; rank++)
        if (m->desks[rank].state != DESK_GONE)
            fail_round(m, base_fail(BASE_ERR_TIMEOUT,
                                    "worker %u does not end its round for %.0f seconds",
                                    id_of(m, rank), DOWNPOUR_MANAGER_PATIENCE));
}

static void *run(void *argument)
{
    struct downpour_manager *m = argument;
    struct comm_task *tasks[COMM_MAX_WORKERS] = {0};
    int rank;

    base_mutex_lock(&m->lock);
    while (has_guests(m) && m->failure == BASE_OK && !m->abandoned) {
        base_status st;

        for (int r = 1; r < m->size; r++)
            tasks[r] = m->desks[r].state != DESK_GONE ? &m->desks[r].heard : NULL;
        base_mutex_unlock(&m->lock);
        st = comm_engine_poll(m->engine, tasks, m->size, base_now() + TICK, UINT32_MAX, &rank);
        base_mutex_lock(&m->lock);
        if (st == BASE_OK && rank >= 0)
            st = hear(m, rank, base_now());
        if (st != BASE_OK)
            fail_round(m, st);
        look_around(m, base_now());
        serve(m, base_now());
        check_patience(m, base_now());
    }
    base_signal_wake(&m->moved);
    base_mutex_unlock(&m->lock);
    return NULL;
}

/* ---- the worker beside the manager ---- */

static base_status failed(const struct downpour_manager *m)
{
    return m->failure == BASE_OK ? BASE_OK : base_fail(m->failure, "%s", m->message);
}

base_status downpour_manager_call(struct downpour_manager *m, const struct downpour_call *call,
                                  float **values_p, struct train_answer *answer_p)
{
    base_status st;

    base_mutex_lock(&m->lock);
    m->answered = m->answered && m->local.kind == TRAIN_ANSWER_CLOSE;
    book(m, 0, call, values_p, m->floats, base_now());
    if (call->kind == DOWNPOUR_CALL_FETCH && !m->answered) {
        memcpy(*values_p, m->centre, m->floats * sizeof(float));
        answer(m, 0, &(struct train_answer){.kind = TRAIN_ANSWER_GO_ON});
    }
    while (!m->answered && m->failure == BASE_OK && call->kind != DOWNPOUR_CALL_BYE) {
        base_signal_wait(&m->moved, &m->lock, base_now() + TICK);
        look_around(m, base_now());
        serve(m, base_now());
    }
    *answer_p = m->local;
    st = failed(m);
    base_mutex_unlock(&m->lock);
    return st;
}

base_status downpour_manager_look(struct downpour_manager *m, bool *over_p,
                                  struct train_answer *answer_p)
{
    base_status st;

    base_mutex_lock(&m->lock);
    look_around(m, base_now());
    serve(m, base_now());
    *over_p = m->over;
    *answer_p = m->local;
    st = failed(m);
    base_mutex_unlock(&m->lock);
    return st;
}

/* ---- life ---- */

/* The centre, and room for copies of it to workers of other hosts. */
static base_status open_centre(struct downpour_manager *m)
{
    base_status st = BASE_OK;
    size_t bytes = m->floats * sizeof(float);

    TRY(base_tensor(m->floats, sizeof(float), "the centre of all workers", &m->centre));
    for (int rank = 1; rank < m->size; rank++)
        if ((comm_group_can(m->team->group, rank) & COMM_CAN_SHARE) == 0)
            TRY(base_tensor(m->floats, sizeof(float), "a copy of the centre",
                            &m->desks[rank].fetched));
        else if (m->region == NULL)
            TRY(comm_region_open(m->team->group, DOWNPOUR_MANAGER_REGION, bytes, &m->region));
out:
    return st;
}

float *downpour_manager_centre(struct downpour_manager *m)
{
    return m->centre;
}

base_status downpour_manager_open(struct train_team *team, struct downpour_ledger *ledger,
                                  const struct train_rules *rules, size_t floats,
                                  struct downpour_manager **manager_p)
{
    base_status st = BASE_OK;
    struct downpour_manager *m = base_calloc(1, sizeof *m);

    *manager_p = m; /* the caller closes what is half open, too */
    m->team = team;
    m->ledger = ledger;
    m->rules = *rules;
    m->floats = floats;
    m->size = team->exchange.size;
    base_mutex_init(&m->lock);
    base_signal_init(&m->moved);
    if (rules->adds)
        TRY(open_centre(m));
out:
    return st;
}

void downpour_manager_close(struct downpour_manager *m)
{
    if (m == NULL)
        return;
    for (int rank = 0; rank < m->size; rank++) {
        base_free(m->desks[rank].values);
        base_free(m->desks[rank].fetched);
    }
    comm_region_close(m->region);
    base_free(m->centre);
    base_signal_fini(&m->moved);
    base_mutex_fini(&m->lock);
    base_free(m->message);
    base_free(m->refusal);
    base_free(m);
}

base_status downpour_manager_begin(struct downpour_manager *m, bool computes)
{
    base_status st = BASE_OK;

    m->over = m->answered = m->abandoned = false;
    m->local = (struct train_answer){0};
    m->workers = m->size - !computes;
    m->engine = m->size > 1 ? comm_group_engine(m->team->group) : NULL;
    publish(m);
    for (int rank = 0; rank < m->size; rank++) {
        struct desk *d = &m->desks[rank];

        d->state = rank == 0 && !computes ? DESK_GONE : DESK_SILENT;
        d->told = d->values_come = false;
        d->block = (uint32_t)rank % m->ledger->round.blocks;
        d->holds = d->reserved =
            d->state != DESK_GONE &&
            downpour_ledger_reserve(m->ledger, id_of(m, rank), d->block, base_now());
        if (rank > 0)
            listen(m, rank);
    }
    if (m->size == 1)
        goto out;
    TRY(base_thread_start(&m->thread, "manager", run, m));
    m->has_thread = true;
out:
    return st;
}

struct downpour_ledger_counts downpour_manager_counts(struct downpour_manager *m)
{
    struct downpour_ledger_counts counts;

    base_mutex_lock(&m->lock);
    counts = m->ledger->counts;
    base_mutex_unlock(&m->lock);
    return counts;
}

enum train_ending downpour_manager_ending(const struct downpour_manager *m)
{
    return m->ending;
}

base_status downpour_manager_end(struct downpour_manager *m, bool abandon)
{
    base_status st;

    base_mutex_lock(&m->lock);
    m->abandoned = abandon;
    base_mutex_unlock(&m->lock);
    if (m->has_thread)
        base_thread_join(&m->thread);
    m->has_thread = false;
    st = failed(m);
    return st;
}
