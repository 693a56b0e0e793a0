/* SPDX-License-Identifier: MIT
 *
 * What the workers of `paceline ping` do: in each round every worker sends a message to every other
 * one. It carries what must be agreed on: the round, the newest view heard of, whether to stop. So
 * all leave a view in the same round, workers that join are taken in, and a loss costs one round.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/worker.h"

enum { KEPT = 1 << 16 }; /* how many rounds' times are kept */
static const double PATIENCE = 60;

struct note { /* the beginning of every message */
    int64_t round;
    uint32_t newest, stop;
    uint64_t from;
};

struct ping {
    struct cluster_worker *worker;
    int64_t count, bytes;
    double interval;
    uint8_t *out, *in; /* out: one message; in: one for each rank */
    int64_t round;
    int views, lost, hosts;
    uint32_t workers;
    double *seconds;
    int64_t timed;
    bool finished;
};

static void ping_pause_for(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};

    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL);
}

static base_status ping_exchange(struct ping *p, struct comm_group *g)
{
    int rank = comm_group_rank(g), size = comm_group_size(g), count = 0;
    struct comm_request requests[2 * COMM_MAX_WORKERS], *list[2 * COMM_MAX_WORKERS];

    for (int i = 0; i < size; i++) {
        if (i == rank)
            continue;
        for (int sends = 0; sends < 2; sends++) {
            list[count] = &requests[count];
            if (sends)
                comm_send(g, i, COMM_CALLS, 0, p->out, (size_t)p->bytes, list[count++]);
            else
                comm_receive(g, i, COMM_CALLS, 0, p->in + i * p->bytes, (size_t)p->bytes,
                             list[count++]);
        }
    }
    return comm_wait(g, list, count, base_now() + PATIENCE);
}

/* All workers read the same notes, so they all decide the same. */
static base_status ping_agree(struct ping *p, struct comm_group *g, struct note *agreed_p)
{
    const struct comm_view *view = comm_group_view(g);
    struct note all, one;

    memcpy(&all, p->out, sizeof all);
    for (int i = 0; i < comm_group_size(g); i++) {
        if (i == comm_group_rank(g))
            continue;
        memcpy(&one, p->in + i * p->bytes, sizeof one);
        if (one.from != view->members[i].id)
            return base_fail(BASE_ERR_DATA, "worker %u got a message of worker %llu in its place",
                             view->members[i].id, (unsigned long long)one.from);
        all.round = one.round > all.round ? one.round : all.round;
        all.newest = one.newest > all.newest ? one.newest : all.newest;
        all.stop |= one.stop;
    }
    *agreed_p = all;
    return BASE_OK;
}

/* Plays rounds in one view. BASE_OK: all rounds are done, or there is a newer view to take. */
static base_status ping_rounds(struct ping *p, struct comm_group *g)
{
    base_status st = BASE_OK;
    struct note note;
    double start;

    while (!p->finished) {
        note = (struct note){.round = p->round,
                             .newest = cluster_worker_newest(p->worker),
                             .stop = cluster_worker_stopping(p->worker),
                             .from = cluster_worker_id(p->worker)};
        memcpy(p->out, &note, sizeof note);
        start = base_now();
        TRY(ping_exchange(p, g));
        p->seconds[p->timed++ % KEPT] = base_now() - start;
        TRY(ping_agree(p, g, &note));
        p->round = note.round + 1;
        cluster_worker_step(p->worker, p->round);
        p->finished = note.stop != 0 || p->round >= p->count;
        if (note.newest > comm_group_view(g)->number)
            break;
        if (p->interval > 0 && !p->finished)
            ping_pause_for(p->interval);
    }
out:
    return st;
}

/* Finds the lost workers by comparing views: in between, a lost worker's last message may have
 * come, and with it the news of the next view. */
static void ping_note_view(struct ping *p, const struct comm_view *former,
                           const struct comm_view *view)
{
    uint64_t hosts = 0;

    for (uint32_t i = 0; i < former->size; i++) {
        if (comm_view_rank(view, former->members[i].id) >= 0)
            continue;
        base_info("worker %u was lost from view %u in round %lld", former->members[i].id,
                  former->number, (long long)p->round);
        p->lost++;
    }
    for (uint32_t i = 0; i < view->size; i++)
        hosts |= UINT64_C(1) << view->members[i].host % 64;
    p->hosts = __builtin_popcountll(hosts);
    p->workers = view->size;
    p->views++;
    base_info("view %u: rank %d of %u", view->number,
              comm_view_rank(view, cluster_worker_id(p->worker)), view->size);
}

static base_status ping_all_views(struct ping *p)
{
    base_status st = BASE_OK;
    struct comm_group *g = NULL;
    struct comm_view view = {0}, former;

    while (!p->finished) {
        former = view;
        TRY(cluster_worker_group(p->worker, PATIENCE, &view, &g));
        ping_note_view(p, &former, &view);
        st = ping_rounds(p, g);
        cluster_worker_leave(p->worker, g);
        g = NULL;
        if (st != BASE_ERR_PEER_LOST)
            TRY(st);
    }
out:
    cluster_worker_leave(p->worker, g);
    return st;
}

static int ping_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static json_t *ping_summary(struct ping *p)
{
    int64_t n = p->timed < KEPT ? p->timed : KEPT;

    if (n == 0)
        p->seconds[n++] = 0;
    qsort(p->seconds, (size_t)n, sizeof *p->seconds, ping_by_value);
    return json_pack("{s:i, s:I, s:I, s:i, s:I, s:i, s:i, s:{s:f, s:f, s:f}}", "schema", 1,
                     "rounds", (json_int_t)p->round, "workers", (json_int_t)p->workers, "hosts",
                     p->hosts, "bytes", (json_int_t)p->bytes, "views", p->views, "lost", p->lost,
                     "seconds", "median", p->seconds[n / 2], "min", p->seconds[0], "max",
                     p->seconds[n - 1]);
}

static base_status ping_run(struct cluster_worker *worker, const json_t *job, json_t **result_p)
{
    base_status st = BASE_OK;
    struct ping p = {.worker = worker};

    TRY(base_json_integer(job, "count", &p.count));
    TRY(base_json_integer(job, "bytes", &p.bytes));
    TRY(base_json_real(job, "interval", &p.interval));
    if (p.bytes < (int64_t)sizeof(struct note) || p.bytes > 1 << 30)
        TRY(base_fail(BASE_ERR_DATA, "messages of %lld bytes", (long long)p.bytes));
    TRY(base_tensor((size_t)p.bytes, 1, "a message", &p.out));
    TRY(base_tensor((size_t)p.bytes, COMM_MAX_WORKERS, "messages", &p.in));
    p.seconds = base_calloc(KEPT, sizeof *p.seconds);
    TRY(ping_all_views(&p));
    *result_p = ping_summary(&p);
out:
    base_free(p.out);
    base_free(p.in);
    base_free(p.seconds);
    return st;
}

const struct cluster_program cluster_program_ping = {
    .name = "ping",
    .help = "every worker sends a message to every other one, again and again",
    .run = ping_run,
};
