/* SPDX-License-Identifier: MIT
 *
 * The thread that hears the workers of other processes, the calls of the worker beside the manager,
 * and the manager's life. The lock covers desks and ledger; the thread lets go of it while it waits
 * for messages.
 */
#include "train/strategies/downpour/manager.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/transport.h"
#include "train/strategies/downpour/manager_private.h"
#include "train/strategies/downpour/parcel.h"

/* Seconds between looks at what no message tells: a grace that is over, a block that is late, a
 * newer view. */
static const double TICK = 0.02;

/* ---- workers of other processes ---- */

static void listen(struct downpour_manager *m, int rank)
{
    struct desk *d = &m->desks[rank];

    comm_engine_receive_any(m->engine, rank, COMM_CALLS, d->bytes, sizeof d->bytes, &d->heard);
}

static size_t packed_bytes(const struct downpour_manager *m)
{
    return downpour_parcel_bound(m->rules.wiring, m->floats - m->statistics, m->statistics);
}

static base_status expect_values(struct downpour_manager *m, int rank)
{
    base_status st = BASE_OK;
    struct desk *d = &m->desks[rank];
    bool packed = m->rules.wiring != NULL;
    void *to;

    if (d->values == NULL)
        TRY(base_tensor(m->floats, sizeof(float), "a worker's result", &d->values));
    if (packed && d->coming == NULL)
        TRY(base_tensor(packed_bytes(m), 1, "a worker's packed result", &d->coming));
    d->values_come = true;
    to = packed ? (void *)d->coming : d->values;
    comm_engine_receive_any(m->engine, rank, COMM_CALLS, to,
                            packed ? packed_bytes(m) : m->floats * sizeof(float), &d->heard);
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

/* The floats of the values that came; 0: they are none, and what is there is undefined. */
static size_t take_values(const struct downpour_manager *m, struct desk *d)
{
    const struct comm_request *message = &d->heard.request;

    if (message->tag != TRAIN_TAG_VALUES)
        return 0;
    if (m->rules.wiring == NULL)
        return message->count % sizeof(float) == 0 ? message->count / sizeof(float) : 0;
    if (message->count > packed_bytes(m) ||
        downpour_parcel_unpack(m->rules.wiring, d->coming, message->count, d->values,
                               m->floats - m->statistics, m->statistics) != BASE_OK)
        return 0;
    return m->floats;
}

/* The message that this desk waited for is there. */
static base_status hear(struct downpour_manager *m, int rank, double now)
{
    base_status st = BASE_OK;
    struct desk *d = &m->desks[rank];
    size_t got = 0;

    if (d->values_come) {
        d->values_come = false;
        got = take_values(m, d);
    } else {
        TRY(base_prefix(decode(m, d), "worker %u", downpour_manager_id(m, rank)));
        if (d->call.kind == DOWNPOUR_CALL_RESULT || d->call.kind == DOWNPOUR_CALL_PUSH) {
            TRY(expect_values(m, rank));
            goto out;
        }
    }
    downpour_desks_book(m, rank, &d->call, &d->values, got, now);
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
            downpour_manager_fail(
                m, base_fail(BASE_ERR_TIMEOUT, "worker %u does not end its round for %.0f seconds",
                             downpour_manager_id(m, rank), DOWNPOUR_MANAGER_PATIENCE));
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
            downpour_manager_fail(m, st);
        downpour_desks_serve(m, base_now());
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
    downpour_desks_book(m, 0, call, values_p, m->floats, base_now());
    if (call->kind == DOWNPOUR_CALL_FETCH && !m->answered) {
        memcpy(*values_p, m->centre, m->floats * sizeof(float));
        downpour_desks_answer(m, 0, &(struct train_answer){.kind = TRAIN_ANSWER_GO_ON});
    }
    while (!m->answered && m->failure == BASE_OK && call->kind != DOWNPOUR_CALL_BYE) {
        base_signal_wait(&m->moved, &m->lock, base_now() + TICK);
        downpour_desks_serve(m, base_now());
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
    downpour_desks_serve(m, base_now());
    *over_p = m->over;
    *answer_p = m->local;
    st = failed(m);
    base_mutex_unlock(&m->lock);
    return st;
}

/* ---- life ---- */

/* Room for a copy of the centre, for a worker of another host. */
static base_status open_copy(struct downpour_manager *m, struct desk *d)
{
    base_status st = BASE_OK;

    TRY(base_tensor(m->floats, sizeof(float), "a copy of the centre", &d->fetched));
    if (m->rules.wiring == NULL)
        goto out;
    TRY(base_tensor(packed_bytes(m), 1, "the packed centre", &d->going));
    if (m->change == NULL)
        TRY(base_tensor(m->floats, sizeof(float), "the centre's change", &m->change));
    if (m->rest == NULL)
        TRY(base_tensor(m->floats, sizeof(float), "what is left of the change", &m->rest));
out:
    return st;
}

static base_status open_centre(struct downpour_manager *m)
{
    base_status st = BASE_OK;
    size_t bytes = m->floats * sizeof(float);

    TRY(base_tensor(m->floats, sizeof(float), "the centre of all workers", &m->centre));
    for (int rank = 1; rank < m->size; rank++)
        if ((comm_group_can(m->team->group, rank) & COMM_CAN_SHARE) == 0)
            TRY(open_copy(m, &m->desks[rank]));
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
                                  const struct train_rules *rules, size_t floats, size_t statistics,
                                  struct downpour_manager **manager_p)
{
    base_status st = BASE_OK;
    struct downpour_manager *m = base_calloc(1, sizeof *m);

    *manager_p = m; /* the caller closes what is half open, too */
    m->team = team;
    m->ledger = ledger;
    m->rules = *rules;
    m->floats = floats;
    m->statistics = statistics;
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
        base_free(m->desks[rank].coming);
        base_free(m->desks[rank].going);
    }
    base_free(m->change);
    base_free(m->rest);
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

    m->rounds++;
    m->over = m->answered = m->abandoned = false;
    m->local = (struct train_answer){0};
    m->workers = m->size - !computes;
    m->engine = m->size > 1 ? comm_group_engine(m->team->group) : NULL;
    downpour_desks_publish(m);
    for (int rank = 0; rank < m->size; rank++) {
        struct desk *d = &m->desks[rank];

        d->state = rank == 0 && !computes ? DESK_GONE : DESK_SILENT;
        d->told = d->values_come = d->counts = false;
        if (d->going != NULL) /* all workers begin with the same weights */
            memcpy(d->fetched, m->centre, m->floats * sizeof *d->fetched);
        d->block = (uint32_t)rank % m->ledger->round.blocks;
        d->holds = d->reserved =
            d->state != DESK_GONE &&
            downpour_ledger_reserve(m->ledger, downpour_manager_id(m, rank), d->block, base_now());
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

bool downpour_manager_has_counted(const struct downpour_manager *m, int rank)
{
    return m->desks[rank].counts;
}

int64_t downpour_manager_sent(struct downpour_manager *m)
{
    int64_t sent;

    base_mutex_lock(&m->lock);
    sent = m->sent;
    base_mutex_unlock(&m->lock);
    return sent;
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
