/* SPDX-License-Identifier: MIT
 *
 * What the workers of `paceline drill` do: collectives as they are told, for benchmarks that take
 * turns and for tests that break things. Every worker connects to the Unix socket that the job
 * names and obeys lines:
 *
 *   time private|shared BYTES COUNT   COUNT all-reduces between barriers, after one to warm up
 *   check KIND BYTES COUNT            COUNT operations whose results are checked (cli/drill.h); 0:
 *                                     until one fails
 *   hold BYTES                        touches so much more memory
 *   patience SECONDS                  that an operation of this view and later ones may take
 *
 * `@VIEW ` before an order: only in this view, otherwise the answer is "skipped". The end of the
 * socket is the end of the job. It answers with JSON lines:
 *
 *   {"id","pid"}                      once, when it connects
 *   {"view","rank","members"}         it is in this view; members are ids
 *   {"seconds"}                       rank 0: of one all-reduce, after `time`
 *   {"checked"}, {"held"}, {"skipped"}   done: operations, bytes; the view that it is in
 *   {"failed","lost","at","done","view","message"}
 *                                     the code, who was lost (0: no worker can be named), when
 *                                     (CLOCK_MONOTONIC) and after how many operations of `check`
 *   {"wrong"}                         a result was; the worker ends
 *
 * After a failure, and when it has nothing to do, it goes to the next view that it is in.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/drill.h"
#include "cluster/worker.h"

static const double IDLE = 600; /* seconds after which a silent driver counts as gone */
enum { LOOK = 100 };            /* milliseconds after which an idle worker looks for a new view */
static const size_t MOST = (size_t)1 << 30; /* the most bytes that an order may ask for */

struct drill {
    struct cluster_worker *worker;
    const char *collective;
    double patience;
    int fd; /* connection to the driver */
    char inbox[256];
    size_t have;
    struct comm_view view;
    struct comm_group *group;
    struct cli_drill_work work;
    char *held;
};

/* ---- the driver's socket ---- */

static base_status drill_dial(const char *path, int *fd_p)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof at.sun_path)
        return base_fail(BASE_ERR_USAGE, "the socket's path %s is too long", path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    *fd_p = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd_p < 0 || connect(*fd_p, (struct sockaddr *)&at, sizeof at) != 0)
        return base_fail(BASE_ERR_IO, "cannot connect to %s: %m", path);
    return BASE_OK;
}

static base_status drill_answer(struct drill *d, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    base_status st = BASE_OK;

    if (dprintf(d->fd, "%s\n", text) < 0)
        st = base_fail(BASE_ERR_IO, "cannot write to the driver: %m");
    free(text);
    json_decref(object);
    return st;
}

enum wish { ORDER, NEW_VIEW, THE_END };

/* Waits for the next line, which it returns without its newline, or for the view or the job to end.
 */
static base_status drill_next_wish(struct drill *d, char line[256], enum wish *wish_p)
{
    double deadline = base_now() + IDLE;
    struct comm_view view;
    base_status next;
    char *end;

    while ((end = memchr(d->inbox, '\n', d->have)) == NULL) {
        struct pollfd ready = {.fd = d->fd, .events = POLLIN};
        ssize_t got;

        *wish_p = THE_END;
        if (d->have == sizeof d->inbox)
            return base_fail(BASE_ERR_DATA, "the driver's line is too long");
        if (poll(&ready, 1, LOOK) == 0 && base_now() > deadline)
            return base_fail(BASE_ERR_TIMEOUT, "the driver has said nothing for %.0f s", IDLE);
        if (cluster_worker_stopping(d->worker))
            return BASE_OK;
        next = cluster_worker_view(d->worker, d->view.number, base_now(), &view);
        if (next != BASE_ERR_TIMEOUT) {
            *wish_p = next == BASE_OK ? NEW_VIEW : THE_END;
            return BASE_OK;
        }
        if (ready.revents == 0)
            continue;
        got = read(d->fd, d->inbox + d->have, sizeof d->inbox - d->have);
        if (got <= 0)
            return BASE_OK;
        d->have += (size_t)got;
    }
    *end++ = '\0';
    memcpy(line, d->inbox, (size_t)(end - d->inbox));
    d->have -= (size_t)(end - d->inbox);
    memmove(d->inbox, end, d->have);
    *wish_p = ORDER;
    return BASE_OK;
}

/* ---- orders ---- */

static base_status drill_one_all_reduce(struct drill *d, bool shared, size_t floats)
{
    float *result;

    if (shared)
        return coll_space_all_reduce(d->work.coll, d->work.space, 0, floats, NULL, &result);
    return coll_all_reduce(d->work.coll, d->work.x, floats, NULL);
}

/* x is all zeros, so the sums stay zero. */
static base_status drill_timed(struct drill *d, const char *buffers, size_t floats, long long count)
{
    bool shared = strcmp(buffers, "shared") == 0;
    double start;
    base_status st = BASE_OK;

    if (!shared && strcmp(buffers, "private") != 0)
        TRY(base_fail(BASE_ERR_USAGE, "buffers are private or shared, not %s", buffers));
    TRY(shared ? cli_drill_space_room(&d->work, floats) : cli_drill_room(&d->work, floats));
    TRY(drill_one_all_reduce(d, shared, floats));
    TRY(coll_barrier(d->work.coll));
    start = base_now();
    for (long long i = 0; i < count; i++)
        TRY(drill_one_all_reduce(d, shared, floats));
    TRY(coll_barrier(d->work.coll));
    if (d->work.rank == 0)
        TRY(drill_answer(d, json_pack("{s:f}", "seconds", (base_now() - start) / (double)count)));
out:
    return st;
}

static base_status drill_checked(struct drill *d, const char *name, size_t floats, long long count,
                                 long long *done_p)
{
    const struct cli_drill_kind *kind = cli_drill_kinds;
    base_status st = BASE_OK;

    while (kind->name != NULL && strcmp(kind->name, name) != 0)
        kind++;
    if (kind->name == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "there is no operation %s", name));
    TRY(cli_drill_room(&d->work, floats));
    for (; count == 0 || *done_p < count; ++*done_p) {
        if (count == 0 && cluster_worker_stopping(d->worker))
            break;
        TRY(kind->run(&d->work, floats, (unsigned)*done_p));
        cluster_worker_step(d->worker, *done_p);
    }
    TRY(drill_answer(d, json_pack("{s:I}", "checked", (json_int_t)*done_p)));
out:
    return st;
}

static base_status drill_hold(struct drill *d, size_t bytes)
{
    base_status st = BASE_OK;

    base_free(d->held);
    d->held = NULL;
    TRY(base_tensor(bytes, 1, "memory to hold", &d->held));
    for (size_t i = 0; i < bytes; i += 4096)
        ((volatile char *)d->held)[i] = 1;
    TRY(drill_answer(d, json_pack("{s:I}", "held", (json_int_t)bytes)));
out:
    return st;
}

static base_status drill_obey(struct drill *d, const char *line, long long *done_p)
{
    char verb[16], what[32];
    size_t bytes;
    long long count;
    double seconds;
    uint32_t view;
    int used = 0;

    if (sscanf(line, "@%" SCNu32 " %n", &view, &used) == 1 && used > 0) {
        if (view != d->view.number)
            return drill_answer(d, json_pack("{s:I}", "skipped", (json_int_t)d->view.number));
        line += used;
    }
    if (sscanf(line, "patience %lf", &seconds) == 1 && seconds > 0) {
        d->patience = seconds;
        coll_patience(d->work.coll, seconds);
        return BASE_OK;
    }
    if (sscanf(line, "hold %zu", &bytes) == 1 && bytes <= 4 * MOST)
        return drill_hold(d, bytes);
    if (sscanf(line, "%15s %31s %zu %lld", verb, what, &bytes, &count) == 4 && bytes <= MOST &&
        count >= 0) {
        if (strcmp(verb, "time") == 0 && count > 0)
            return drill_timed(d, what, bytes / sizeof(float), count);
        if (strcmp(verb, "check") == 0)
            return drill_checked(d, what, bytes / sizeof(float), count, done_p);
    }
    return base_fail(BASE_ERR_USAGE, "the driver's order '%s' makes no sense", line);
}

/* ---- views ---- */

static void drill_leave(struct drill *d)
{
    cli_drill_work_fini(&d->work);
    coll_close(d->work.coll);
    cluster_worker_leave(d->worker, d->group);
    d->work = (struct cli_drill_work){0};
    d->group = NULL;
}

/* Answers a loss, after which the next view goes on; tells a wrong result before the end. */
static base_status drill_report(struct drill *d, base_status failure, double at, long long done)
{
    uint32_t lost = d->group != NULL ? comm_group_lost(d->group) : 0;

    if (failure == BASE_ERR_INTERNAL)
        base_ignore(drill_answer(d, json_pack("{s:o}", "wrong", base_json_text(base_message()))));
    if (failure != BASE_ERR_PEER_LOST && failure != BASE_ERR_TIMEOUT && failure != BASE_ERR_DATA)
        return failure;
    return drill_answer(d, json_pack("{s:s, s:I, s:f, s:I, s:I, s:o}", "failed",
                                     base_code_name(failure), "lost", (json_int_t)lost, "at", at,
                                     "done", (json_int_t)done, "view", (json_int_t)d->view.number,
                                     "message", base_json_text(base_message())));
}

static base_status drill_enter(struct drill *d)
{
    json_t *ids = json_array();
    base_status st = BASE_OK;

    TRY(cluster_worker_group(d->worker, d->patience, &d->view, &d->group));
    d->work.rank = comm_group_rank(d->group);
    d->work.size = comm_group_size(d->group);
    TRY(coll_open(d->group, d->collective, &d->work.coll));
    coll_patience(d->work.coll, d->patience);
    for (uint32_t i = 0; i < d->view.size; i++)
        json_array_append_new(ids, json_integer(d->view.members[i].id));
    TRY(drill_answer(d, json_pack("{s:I, s:i, s:O}", "view", (json_int_t)d->view.number, "rank",
                                  d->work.rank, "members", ids)));
out:
    json_decref(ids);
    return st;
}

/* Serves all orders of one view. */
static base_status drill_serve(struct drill *d, bool *ended_p)
{
    char line[256];
    enum wish wish = ORDER;
    long long done = 0;
    base_status st = BASE_OK;

    TRY(drill_enter(d));
    while (true) {
        done = 0;
        TRY(drill_next_wish(d, line, &wish));
        if (wish != ORDER)
            break;
        TRY(drill_obey(d, line, &done));
    }
    *ended_p = wish == THE_END;
out:
    if (st != BASE_OK)
        st = drill_report(d, st, base_now(), done);
    drill_leave(d);
    return st;
}

static base_status drill_run(struct cluster_worker *worker, const json_t *job, json_t **result_p)
{
    struct drill d = {.worker = worker, .fd = -1, .patience = 30};
    const char *socket_path;
    bool ended = false;
    base_status st = BASE_OK;

    *result_p = NULL;
    TRY(base_json_string(job, "socket", &socket_path));
    d.collective = json_string_value(json_object_get(job, "collective"));
    TRY(drill_dial(socket_path, &d.fd));
    TRY(drill_answer(&d, json_pack("{s:I, s:i}", "id", (json_int_t)cluster_worker_id(worker), "pid",
                                   (int)getpid())));
    while (!ended && !cluster_worker_stopping(worker))
        TRY(drill_serve(&d, &ended));
    *result_p = json_object();
out:
    base_free(d.held);
    if (d.fd >= 0)
        close(d.fd);
    return st;
}

const struct cluster_program cluster_program_drill = {
    .name = "drill",
    .help = "collectives as a driver tells them",
    .run = drill_run,
};
