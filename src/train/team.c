/* SPDX-License-Identifier: MIT */
#include "train/team.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "comm/engine.h"
#include "comm/transport.h"

/* Seconds. CONNECT: with the members of a view. PATIENCE: of a collective, in which one worker may
 * time kernels or write a checkpoint while the others wait. VERDICT: of the coordinator, which
 * waits for the words of most workers. */
static const double CONNECT = 120, PATIENCE = 600, VERDICT = 30;
enum { MOST_TEXT = 64 << 20, PASS = 3 }; /* PASS: the tag of train_team_pass */

static base_status connect_members(struct train_team *team)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &team->exchange;

    TRY(cluster_worker_group(team->worker, CONNECT, &team->view, &team->group));
    TRY(coll_open(team->group, NULL, &x->coll));
    coll_patience(x->coll, PATIENCE);
    team->bytes_opening = comm_group_bytes_sent(team->group);
    x->rank = comm_group_rank(team->group);
    x->size = comm_group_size(team->group);
    x->one_host = x->size > 1 && (comm_group_can_all(team->group) & COMM_CAN_SHARE) != 0;
out:
    return st;
}

base_status train_team_meet(struct train_team *team)
{
    base_status st = BASE_OK;

    team->exchange.size = 1;
    while (team->worker != NULL) {
        train_team_leave(team);
        st = connect_members(team);
        if (st != BASE_ERR_PEER_LOST)
            break;
    }
    train_shares_even(&team->shares, team->exchange.size);
    return st;
}

base_status train_team_begin(struct train_team *team, size_t floats)
{
    base_status st = BASE_OK;
    struct train_exchange *x = &team->exchange;

    TRY(base_add(floats, TRAIN_HEAD, &x->floats));
    if (x->coll != NULL) {
        TRY(coll_space_open(x->coll, "gradients", x->floats, &x->space));
        x->mine = coll_space_mine(x->space);
    } else if (team->own == NULL) {
        TRY(base_tensor(x->floats, sizeof(float), "the gradients", &team->own));
        x->mine = team->own;
    }
    team->failure = BASE_OK;
out:
    return st;
}

void train_team_leave(struct train_team *team)
{
    struct train_exchange *x = &team->exchange;

    team->bytes_sent = train_team_bytes_sent(team);
    coll_space_close(x->space);
    coll_close(x->coll);
    cluster_worker_leave(team->worker, team->group);
    base_free(team->own);
    team->group = NULL;
    team->own = NULL;
    *x = (struct train_exchange){0};
}

struct data_share train_team_share(const struct train_team *team)
{
    return train_shares_of(&team->shares, team->exchange.rank);
}

int train_team_neighbours(const struct train_team *team)
{
    const struct comm_member *members = team->view.members;
    int count = 0;

    for (uint32_t i = 0; i < team->view.size; i++)
        count += members[i].host == members[team->exchange.rank].host;
    return team->worker != NULL ? count : 1;
}

bool train_team_leads(const struct train_team *team)
{
    return team->exchange.rank == 0;
}

uint32_t train_team_id(const struct train_team *team)
{
    return team->worker != NULL ? cluster_worker_id(team->worker) : 0;
}

uint32_t train_team_since(const struct train_team *team)
{
    return team->worker != NULL ? cluster_worker_since(team->worker) : 0;
}

bool train_team_outdated(const struct train_team *team)
{
    return team->worker != NULL && cluster_worker_newest(team->worker) > team->view.number;
}

bool train_team_stopping(const struct train_team *team)
{
    return team->worker != NULL ? cluster_worker_stopping(team->worker) : base_stop_signal() != 0;
}

uint64_t train_team_bytes_sent(const struct train_team *team)
{
    if (team->group == NULL || team->exchange.coll == NULL)
        return team->bytes_sent;
    return team->bytes_sent + comm_group_bytes_sent(team->group) - team->bytes_opening;
}

base_status train_team_accuse(struct train_team *team, int rank, const char *why)
{
    base_status st = BASE_OK;
    const uint32_t id = team->view.members[rank].id;
    const double deadline = base_now() + VERDICT;
    int index;

    base_warn("worker %u %s", id, why);
    cluster_worker_accuse(team->worker, team->view.number, id, why);
    while (base_now() < deadline)
        TRY(comm_poll(team->group, NULL, 0, deadline, &index));
    st = base_fail(BASE_ERR_DATA,
                   "worker %u %s, this worker says, and most others do not: one of the two is "
                   "wrong or hostile",
                   id, why);
out:
    return st;
}

base_status train_team_gather(struct train_team *team, const void *mine, size_t count, void *all)
{
    if (team->exchange.coll != NULL)
        return coll_all_gather(team->exchange.coll, mine, count, all);
    memcpy(all, mine, count);
    return BASE_OK;
}

base_status train_team_broadcast(struct train_team *team, int root, void *bytes, size_t count)
{
    if (team->exchange.coll == NULL)
        return BASE_OK;
    return coll_broadcast(team->exchange.coll, root, bytes, count);
}

struct pass {
    struct comm_group *group;
    const struct train_message *messages;
    size_t count;
};

static base_status pass_run(void *context)
{
    struct pass *p = context;
    struct comm_request *requests = base_calloc(p->count, sizeof *requests);
    struct comm_request **list = base_calloc(p->count, sizeof(void *));
    base_status st = BASE_OK;

    for (size_t i = 0; i < p->count; i++) {
        const struct train_message *m = &p->messages[i];
        size_t bytes = m->count * sizeof *m->at;

        list[i] = &requests[i];
        if (m->sends)
            comm_send(p->group, m->peer, COMM_CALLS, PASS, m->at, bytes, list[i]);
        else
            comm_receive(p->group, m->peer, COMM_CALLS, PASS, m->at, bytes, list[i]);
    }
    st = comm_wait(p->group, list, (int)p->count, base_now() + PATIENCE);
    base_free(list);
    base_free(requests);
    return st;
}

base_status train_team_pass(struct train_team *team, const struct train_message *messages,
                            size_t count)
{
    struct pass pass = {.group = team->group, .messages = messages, .count = count};
    struct comm_engine *engine = NULL;
    struct comm_task task;

    if (count == 0)
        return BASE_OK;
    engine = comm_group_engine(team->group);
    if (engine == NULL || comm_engine_is_here(engine))
        return pass_run(&pass);
    comm_engine_order(engine, pass_run, &pass, &task); /* it ends by its own deadline */
    return comm_engine_wait(engine, &task, INFINITY);
}

base_status train_team_mean(struct train_team *team, float *x, size_t count, int64_t weight)
{
    base_status st = BASE_OK;
    int64_t weights[COMM_MAX_WORKERS], all = 0;
    float scale[COMM_MAX_WORKERS];
    struct coll_sum mean = {.scale = scale};
    int size = team->exchange.size;

    if (size == 1 || count == 0)
        return BASE_OK;
    TRY(train_team_gather(team, &weight, sizeof weight, weights));
    for (int i = 0; i < size; i++)
        all += weights[i];
    for (int i = 0; i < size; i++)
        scale[i] = all > 0 ? (float)((double)weights[i] / (double)all) : 1.0f / (float)size;
    TRY(coll_all_reduce(team->exchange.coll, x, count, &mean));
out:
    return st;
}

void train_team_sum(struct train_team *team, float *sums, size_t count)
{
    double began = base_now();

    if (team->exchange.size == 1 || team->failure != BASE_OK)
        return;
    team->failure = coll_all_reduce(team->exchange.coll, sums, count, NULL);
    /* Moved, not entered: this is called for every layer of batch-norm, and entering asks the
     * kernel for the thread's CPU time. */
    train_clock_move(team->exchange.clock, TRAIN_COMMUNICATE, base_now() - began);
}

base_status train_team_tell(struct train_team *team, int root, json_t **object_p)
{
    base_status st = BASE_OK;
    bool tells = team->exchange.rank == root;
    char *text = NULL;
    uint64_t length = 0;

    if (team->exchange.size == 1)
        goto out;
    if (tells) {
        text = json_dumps(*object_p, JSON_COMPACT | JSON_REAL_PRECISION(17));
        length = strlen(text);
    }
    TRY(train_team_broadcast(team, root, &length, sizeof length));
    if (length > MOST_TEXT)
        TRY(base_fail(BASE_ERR_DATA, "a state of %llu bytes", (unsigned long long)length));
    if (!tells)
        TRY(base_tensor(length + 1, 1, "the state's description", &text));
    TRY(train_team_broadcast(team, root, text, length));
    if (!tells)
        TRY(base_json_parse(text, length, object_p));
out:
    base_free(text);
    return st;
}
