/* SPDX-License-Identifier: MIT
 *
 * Messages of a group over the simulated network. As with comm/transports/tcp.c there is a
 * connection for each pair of ranks of a view, made when both have opened the view; a peer that
 * leaves or dies closes it, and a sender whose bytes get no answer for a while takes the link for
 * cut. Nothing here runs by itself: a message has a moment of arrival, and its receiver sleeps
 * until then.
 */
#include "sim/transport.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_private.h"
#include "sim/hosts.h"

/* Seconds until bytes without an acknowledgement are taken for a cut link; until an attempt to
 * connect without an answer is. */
static const double CUT_AFTER = 1.4, NO_ANSWER_AFTER = 7;

struct message {
    struct message *next;
    double sent, arrives;
    uint32_t tag;
    size_t count;
    uint8_t bytes[];
};

struct lane {                              /* one direction of one channel of a connection */
    struct comm_request *sends, *receives; /* posted, in order; of the two sides */
    struct message *first, *last;          /* under way, or there and not taken yet */
    size_t bytes;                          /* of them */
    double free_at;                        /* the wire is, for the next one */
};

struct side {
    struct sim_process *process; /* NULL: it has not come */
    struct comm_endpoint *endpoint;
    int host;
    bool closed; /* it has left, or died */
    double news; /* when the other side learns of that; INFINITY: never */
};

struct connection {
    struct side side[2];                 /* of the lower and the higher rank */
    double up_at;                        /* connected, when both sides are there */
    struct lane lanes[2][COMM_CHANNELS]; /* by the side that sends */
};

/* All connections of a view. */
struct mesh {
    struct comm_view view;
    uint32_t connected; /* ranks that were, with all others */
    struct connection *between[COMM_MAX_WORKERS][COMM_MAX_WORKERS]; /* [lower][higher] */
    struct mesh *next;
};

struct sim {
    struct comm_group *group;
    struct mesh *mesh;
    uint64_t bytes_sent;
    bool reaches[COMM_MAX_WORKERS];
};

static struct mesh *meshes;

/* ---- who is connected with whom ---- */

static bool same_view(const struct comm_view *a, const struct comm_view *b)
{
    bool same = a->size == b->size;

    for (uint32_t i = 0; same && i < a->size; i++)
        same = a->members[i].id == b->members[i].id;
    return same;
}

static struct mesh *mesh_of(const struct comm_view *view)
{
    struct mesh *m;

    for (m = meshes; m != NULL; m = m->next)
        if (m->view.number == view->number) {
            sim_check(same_view(&m->view, view), "there are two views with number %u",
                      view->number);
            return m;
        }
    m = base_calloc(1, sizeof *m);
    m->view = *view;
    m->next = meshes;
    meshes = m;
    return m;
}

/* With the fence missed: the connection of an earlier view that two workers have still open. */
static struct connection *stale(const struct mesh *mesh, uint32_t low, uint32_t high)
{
    for (const struct mesh *m = meshes; m != NULL; m = m->next) {
        int a = comm_view_rank(&m->view, low), b = comm_view_rank(&m->view, high);

        if (m != mesh && a >= 0 && b >= 0 && m->between[a][b] != NULL)
            return m->between[a][b];
    }
    return NULL;
}

static struct connection *connection_of(struct mesh *m, int a, int b)
{
    struct connection **at = a < b ? &m->between[a][b] : &m->between[b][a];

    if (*at == NULL && sim_network.bug == SIM_MISSED_FENCE)
        *at = stale(m, m->view.members[a < b ? a : b].id, m->view.members[a < b ? b : a].id);
    if (*at == NULL)
        *at = base_calloc(1, sizeof **at);
    return *at;
}

static struct connection *with(const struct sim *s, int peer)
{
    return connection_of(s->mesh, s->group->rank, peer);
}

static int my_side(const struct sim *s, int peer)
{
    return s->group->rank > peer;
}

static void wake(const struct side *side)
{
    if (side->process != NULL && !side->closed)
        base_world->wake(side->endpoint);
}

static void close_side(struct connection *c, int index, bool silent)
{
    struct side *me = &c->side[index], *other = &c->side[!index];

    if (me->process == NULL || me->closed)
        return;
    me->closed = true;
    if (!silent && other->process != NULL)
        me->news = base_now() + sim_network_delay(me->host, other->host, 0);
    for (int channel = 0; channel < COMM_CHANNELS; channel++) {
        c->lanes[index][channel].sends = NULL;
        c->lanes[!index][channel].receives = NULL;
    }
    wake(other);
}

void sim_transport_died(const struct sim_process *process, bool silent)
{
    for (struct mesh *m = meshes; m != NULL; m = m->next)
        for (uint32_t a = 0; a < m->view.size; a++)
            for (uint32_t b = a + 1; b < m->view.size; b++)
                for (int i = 0; m->between[a][b] != NULL && i < 2; i++)
                    if (m->between[a][b]->side[i].process == process)
                        close_side(m->between[a][b], i, silent);
}

bool sim_transport_is_up(uint32_t view)
{
    for (const struct mesh *m = meshes; m != NULL; m = m->next)
        if (m->view.number == view)
            return m->connected == m->view.size;
    return false;
}

static bool half_of_view_is(const struct comm_view *view, bool hit(int host))
{
    bool counted[SIM_MAX_HOSTS] = {false};
    int hosts = 0, hits = 0;

    for (uint32_t i = 0; i < view->size; i++) {
        int host = sim_host_of(view->members[i].id);

        hosts += !counted[host];
        hits += !counted[host] && hit(host);
        counted[host] = true;
    }
    return 2 * hits >= hosts;
}

bool sim_transport_half_is(bool hit(int host))
{
    int up = 0;

    for (const struct mesh *m = meshes; m != NULL && up < 2; m = m->next) { /* the newest first */
        if (half_of_view_is(&m->view, hit))
            return true;
        up += m->connected == m->view.size;
    }
    return false;
}

static bool sim_reaches(const struct comm_group *group, int peer)
{
    (void)group;
    (void)peer;
    return base_world != NULL;
}

static void come(struct sim *s, int peer)
{
    struct connection *c = with(s, peer);
    struct side *me = &c->side[my_side(s, peer)], *other = &c->side[!my_side(s, peer)];

    *me = (struct side){.process = sim_process_self(),
                        .endpoint = s->group->endpoint,
                        .news = INFINITY,
                        .host = sim_worker_self()->host};
    if (other->process == NULL || other->closed)
        return;
    c->up_at = base_now() + 2 * sim_network_delay(me->host, other->host, 0);
    wake(other);
}

/* INFINITY: not yet. */
static double up_at(const struct sim *s, int peer)
{
    const struct connection *c = with(s, peer);
    const struct side *a = &c->side[0], *b = &c->side[1];

    if (a->process == NULL || b->process == NULL || c->side[!my_side(s, peer)].closed)
        return INFINITY;
    return fmax(c->up_at, sim_network_cut_until(a->host, b->host));
}

static base_status lose(struct sim *s, int peer, bool cut)
{
    uint32_t id = s->group->view.members[peer].id;

    s->group->lost = id;
    s->group->cut |= cut;
    return base_fail(BASE_ERR_PEER_LOST, "%s worker %u",
                     cut ? "nothing is acknowledged by" : "the connection was closed by", id);
}

/* ---- a group's life ---- */

static base_status give_up_opening(const struct sim *s, int peer)
{
    char names[256];

    s->group->lost = s->group->view.members[peer].id;
    comm_group_name(s->group, UINT64_C(1) << peer, names, sizeof names);
    return base_fail(BASE_ERR_TIMEOUT, "view %u: no connection with %s in time",
                     s->group->view.number, names);
}

/* As in comm/transports/tcp.c the higher rank connects, and notices when no answer comes. */
static double no_answer_at(const struct sim *s, int peer, double began)
{
    int from = sim_worker_self()->host, to = sim_host_of(s->group->view.members[peer].id);

    if (s->group->view.number == 1 || peer > s->group->rank || sim_network_cut_until(from, to) == 0)
        return INFINITY;
    return fmax(began, sim_network_cut_since(from, to)) + NO_ANSWER_AFTER;
}

static base_status connect_one(struct sim *s, int peer, double deadline)
{
    double began = base_now();
    base_status st = BASE_OK;

    while (up_at(s, peer) > base_now()) {
        double no_answer = no_answer_at(s, peer, began);

        TRY(comm_group_check(s->group));
        if (base_now() >= deadline)
            TRY(give_up_opening(s, peer));
        if (base_now() >= no_answer)
            TRY(lose(s, peer, true));
        base_world->wait(s->group->endpoint,
                         fmin(fmin(deadline, no_answer), fmin(up_at(s, peer), base_now() + 0.5)));
    }
out:
    return st;
}

static void sim_close(void *state)
{
    struct sim *s = state;

    if (s == NULL)
        return;
    for (int peer = 0; peer < (int)s->group->view.size; peer++)
        if (s->reaches[peer])
            close_side(with(s, peer), my_side(s, peer), false);
    base_free(s);
}

static base_status sim_open(struct comm_group *group, const int *peers, int count, double deadline,
                            void **state_p)
{
    struct sim *s = base_calloc(1, sizeof *s);
    base_status st = BASE_OK;

    *state_p = NULL;
    s->group = group;
    s->mesh = mesh_of(&group->view);
    sim_worker_self()->joined = true;
    for (int i = 0; i < count; i++) {
        s->reaches[peers[i]] = true;
        come(s, peers[i]);
    }
    for (int i = 0; i < count; i++)
        TRY(connect_one(s, peers[i], deadline));
    s->mesh->connected++;
    *state_p = s;
    s = NULL;
out:
    sim_close(s);
    return st;
}

/* ---- requests ---- */

static struct lane *lane_of(const struct sim *s, const struct comm_request *r)
{
    int me = my_side(s, r->peer);

    return &with(s, r->peer)->lanes[r->sends ? me : !me][r->channel];
}

static void sim_post(void *state, struct comm_request *request)
{
    struct sim *s = state;
    struct lane *lane = lane_of(s, request);
    struct comm_request **last = request->sends ? &lane->sends : &lane->receives;

    request->next = NULL;
    while (*last != NULL)
        last = &(*last)->next;
    *last = request;
    if (!request->sends) /* its sender may wait for that */
        wake(&with(s, request->peer)->side[!my_side(s, request->peer)]);
}

static bool has_room(const struct lane *lane, size_t count)
{
    if (lane->first == NULL && (sim_network.window > 0 || lane->receives != NULL))
        return true;
    return lane->bytes + count <= sim_network.window;
}

/* What is sent while the link is cut is sent again when it is whole. */
static double arrival(struct lane *lane, const struct side *from, const struct side *to,
                      size_t count)
{
    double now = base_now(),
           start = fmax(fmax(now, lane->free_at), sim_network_cut_until(from->host, to->host));

    lane->free_at = start + (double)count / sim_network.bandwidth;
    start += sim_network_delay(from->host, to->host, count);
    if (lane->last != NULL && lane->last->arrives > start)
        start = lane->last->arrives; /* in order */
    return start;
}

static bool send_one(struct sim *s, struct connection *c, int me, struct lane *lane)
{
    struct comm_request *r = lane->sends;
    struct message *m;

    if (r == NULL || !has_room(lane, r->count) || c->side[!me].news <= base_now())
        return false;
    m = base_calloc(1, sizeof *m + r->count);
    m->sent = base_now();
    m->arrives = arrival(lane, &c->side[me], &c->side[!me], r->count);
    m->tag = r->tag;
    m->count = r->count;
    if (r->count > 0)
        memcpy(m->bytes, r->bytes, r->count);
    if (lane->last != NULL)
        lane->last->next = m;
    else
        lane->first = m;
    lane->last = m;
    lane->bytes += m->count;
    lane->sends = r->next;
    r->done = true;
    s->bytes_sent += r->count;
    sim_tell("sends tag %x, %zu bytes, to worker %u", r->tag, r->count,
             s->group->view.members[r->peer].id);
    wake(&c->side[!me]);
    return true;
}

static base_status receive_one(struct connection *c, int me, struct lane *lane, bool *moved_p)
{
    struct comm_request *r = lane->receives;
    struct message *m = lane->first;

    if (r == NULL || m == NULL || m->arrives > base_now())
        return BASE_OK;
    if (!r->any && (m->tag != r->tag || m->count != r->count))
        return base_fail(BASE_ERR_DATA, "a message of tag %x and %zu bytes, expected %x and %zu",
                         m->tag, m->count, r->tag, r->count);
    if (m->count > 0 && (!r->any || m->count <= r->room))
        memcpy(r->bytes, m->bytes, m->count);
    r->tag = m->tag;
    r->count = m->count;
    lane->receives = r->next;
    lane->first = m->next;
    if (lane->first == NULL)
        lane->last = NULL;
    lane->bytes -= m->count;
    base_free(m);
    r->done = true;
    *moved_p = true;
    wake(&c->side[!me]); /* there is room again */
    return BASE_OK;
}

/* Bytes that this side has sent and that are not there since too long; INFINITY: there are none. */
static double cut_at(const struct connection *c, int me)
{
    double at = INFINITY, until = sim_network_cut_until(c->side[0].host, c->side[1].host);

    for (int channel = 0; channel < COMM_CHANNELS && until > 0; channel++) {
        const struct message *m = c->lanes[me][channel].last; /* earlier ones may be there */

        if (m != NULL && m->arrives > base_now())
            at = fmin(at, m->sent + CUT_AFTER);
    }
    return at;
}

static double breaks_at(const struct connection *c)
{
    return sim_network_breaks_at(c->side[0].host, c->side[1].host);
}

static base_status move_peer(struct sim *s, int peer, bool *moved_p)
{
    struct connection *c = with(s, peer);
    int me = my_side(s, peer);
    const struct side *other = &c->side[!me];
    base_status st = BASE_OK;
    bool posted = false, waits = false; /* waits: and nothing is under way */

    for (int channel = 0; channel < COMM_CHANNELS; channel++) {
        struct lane *out = &c->lanes[me][channel], *in = &c->lanes[!me][channel];

        while (send_one(s, c, me, out))
            *moved_p = true;
        TRY(receive_one(c, me, in, moved_p));
        posted |= out->sends != NULL || in->receives != NULL;
        waits |= out->sends != NULL || (in->receives != NULL && in->first == NULL);
    }
    if ((waits && other->news <= base_now()) || (posted && breaks_at(c) <= base_now()))
        TRY(lose(s, peer, false));
    if (cut_at(c, me) <= base_now())
        TRY(lose(s, peer, true));
out:
    return st;
}

static base_status sim_progress(void *state, bool *moved_p)
{
    struct sim *s = state;
    base_status st = BASE_OK;

    *moved_p = false;
    sim_yield(); /* here, so that no news comes between a look and the sleep that follows it */
    for (int peer = 0; peer < (int)s->group->view.size; peer++)
        if (s->reaches[peer])
            TRY(move_peer(s, peer, moved_p));
out:
    return st;
}

/* The next moment at which something comes from `peer`. */
static double next_news(const struct sim *s, int peer)
{
    const struct connection *c = with(s, peer);
    int me = my_side(s, peer);
    double at = cut_at(c, me);

    if (breaks_at(c) > base_now())
        at = fmin(at, breaks_at(c));
    for (int channel = 0; channel < COMM_CHANNELS; channel++) {
        const struct lane *in = &c->lanes[!me][channel];

        if (in->receives != NULL && in->first != NULL)
            at = fmin(at, in->first->arrives);
    }
    if (c->side[!me].news > base_now()) /* otherwise it is known */
        at = fmin(at, c->side[!me].news);
    return at;
}

static void sim_sleep(void *state, double deadline)
{
    struct sim *s = state;
    double until = deadline;

    for (int peer = 0; peer < (int)s->group->view.size; peer++)
        if (s->reaches[peer])
            until = fmin(until, fmax(next_news(s, peer), base_now()));
    if (!comm_group_stirred(s->group))
        base_world->wait(s->group->endpoint, until);
}

static void sim_wake(void *state)
{
    base_world->wake(((struct sim *)state)->group->endpoint);
}

static uint64_t sim_bytes_sent(const void *state)
{
    return ((const struct sim *)state)->bytes_sent;
}

const struct comm_transport comm_transport_sim = {
    .name = "sim",
    .help = "the simulated network",
    .can = COMM_CAN_RECOVER,
    .reaches = sim_reaches,
    .open = sim_open,
    .close = sim_close,
    .post = sim_post,
    .progress = sim_progress,
    .sleep = sim_sleep,
    .wake = sim_wake,
    .bytes_sent = sim_bytes_sent,
};
