/* SPDX-License-Identifier: MIT
 *
 * Open MPI as the engine of a cluster that has it: the processes that mpirun or srun started are
 * the workers, MPI moves the bytes over whatever network there is. A lost rank ends the job: MPI's
 * launcher kills the others. Built where the library is found.
 *
 * MPI is called by one thread at a time and never waits: requests are tested until the deadline. A
 * channel is a communicator of its own. A message is pieces of PIECE bytes and one that is shorter.
 * A piece is looked at (MPI_Improbe) before it is received: one of another tag or length is refused
 * and touches no memory. MPI has tags of 31 bits.
 */
#include "comm/transports/mpi.h"

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm_private.h"

/* YIELDS: a waiting rank looks so often before it begins to sleep between looks. */
enum { PIECE = 1 << 30, YIELDS = 2000, NAP_NANOSECONDS = 50000 };

struct queue { /* one direction of one channel with one peer */
    struct comm_request *first, *last;
    int peer;
    enum comm_channel channel;
    bool sends, under_way;
    MPI_Request request;
    size_t piece;
    uint8_t *discarded; /* buffer of a piece for which comm_receive_any has no room; else NULL */
};

struct mpi {
    struct comm_group *group;
    MPI_Comm channels[COMM_CHANNELS];
    struct queue *queues; /* [peer][channel][sends] */
    int pending, looks;
    uint64_t bytes_sent;
};

static base_status mpi_check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (code == MPI_SUCCESS)
        return BASE_OK;
    MPI_Error_string(code, text, &length);
    return base_fail(BASE_ERR_PEER_LOST, "MPI: %s: %s", what, text);
}

/* Yields or sleeps between two looks that found nothing. */
static void mpi_rest(int *looks)
{
    if (++*looks < YIELDS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = NAP_NANOSECONDS}, NULL);
}

static base_status mpi_finish(struct comm_group *group, MPI_Request *request, const char *what,
                              double deadline)
{
    base_status st = BASE_OK;
    int done = 0, looks = 0;
    bool moved;

    while (!done) {
        TRY(mpi_check(MPI_Test(request, &done, MPI_STATUS_IGNORE), what));
        if (done)
            break;
        TRY(comm_group_turn(group, &moved)); /* moves messages of an engine */
        if (moved)
            continue;
        if (base_now() >= deadline)
            TRY(base_fail(BASE_ERR_TIMEOUT, "MPI: %s did not end in time", what));
        mpi_rest(&looks);
    }
out:
    if (st != BASE_OK)
        group->failure = st;
    return st;
}

/* --- starting ------------------------------------------------------------------------------- */

/* Members in the order of MPI's ranks; ranks that can share memory are on one host. */
static base_status mpi_find_members(int rank, struct comm_view *view_p)
{
    int size, leader = rank, leaders[COMM_MAX_WORKERS];
    uint16_t hosts = 0;
    base_status st = BASE_OK;
    MPI_Comm host;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > COMM_MAX_WORKERS)
        TRY(base_fail(BASE_ERR_USAGE, "%d ranks are more than %d", size, COMM_MAX_WORKERS));
    TRY(mpi_check(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host),
        "who is on which host"));
    TRY(mpi_check(MPI_Bcast(&leader, 1, MPI_INT, 0, host), "who is on which host"));
    MPI_Comm_free(&host);
    TRY(mpi_check(MPI_Allgather(&leader, 1, MPI_INT, leaders, 1, MPI_INT, MPI_COMM_WORLD),
                  "who is on which host"));
    *view_p = (struct comm_view){.number = 1, .size = (uint32_t)size};
    for (int i = 0; i < size; i++) {
        struct comm_member *member = &view_p->members[i];

        member->id = (uint32_t)i + 1;
        member->host = leaders[i] == i ? hosts++ : view_p->members[leaders[i]].host;
    }
out:
    return st;
}

static base_status mpi_start(struct comm_view *view_p, uint32_t *id_p)
{
    int started, rank, threads;
    base_status st = BASE_OK;

    TRY(mpi_check(MPI_Initialized(&started), "asking whether it was started"));
    if (!started)
        TRY(mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &threads), "starting"));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *id_p = (uint32_t)rank + 1;
    TRY(mpi_find_members(rank, view_p));
out:
    return st;
}

static void mpi_end(void)
{
    MPI_Finalize();
}

static bool mpi_reaches(const struct comm_group *group, int peer)
{
    int started = 0, size = 0;

    (void)peer;
    MPI_Initialized(&started);
    if (started)
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size == (int)group->view.size;
}

/* --- opening and closing -------------------------------------------------------------------- */

static struct queue *mpi_queue_of(const struct mpi *m, int peer, enum comm_channel channel,
                                  bool sends)
{
    return &m->queues[((size_t)peer * COMM_CHANNELS + channel) * 2 + sends];
}

static void mpi_close(void *state)
{
    struct mpi *m = state;

    if (m == NULL)
        return;
    for (int i = 0; m->queues != NULL && i < (int)m->group->view.size * COMM_CHANNELS * 2; i++) {
        if (m->queues[i].under_way) {
            MPI_Cancel(&m->queues[i].request);
            MPI_Request_free(&m->queues[i].request);
        }
        base_free(m->queues[i].discarded);
    }
    for (int i = 0; i < COMM_CHANNELS; i++)
        if (m->channels[i] != MPI_COMM_NULL)
            MPI_Comm_free(&m->channels[i]);
    base_free(m->queues);
    base_free(m);
}

static base_status mpi_open(struct comm_group *group, const int *peers, int count, double deadline,
                            void **state_p)
{
    base_status st = BASE_OK;
    struct mpi *m = base_calloc(1, sizeof *m);
    MPI_Request request;

    (void)peers, (void)count; /* all ranks: mpi_reaches */
    *state_p = NULL;
    m->group = group;
    for (int i = 0; i < COMM_CHANNELS; i++)
        m->channels[i] = MPI_COMM_NULL;
    for (int i = 0; i < COMM_CHANNELS; i++) {
        MPI_Comm made;

        TRY(mpi_check(MPI_Comm_idup(MPI_COMM_WORLD, &made, &request), "opening a group"));
        TRY(mpi_finish(group, &request, "opening a group", deadline));
        m->channels[i] = made;
        MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    }
    m->queues = base_calloc((size_t)group->view.size * COMM_CHANNELS * 2, sizeof *m->queues);
    for (int peer = 0; peer < (int)group->view.size; peer++)
        for (int channel = 0; channel < COMM_CHANNELS; channel++)
            for (int sends = 0; sends < 2; sends++) {
                struct queue *q = mpi_queue_of(m, peer, (enum comm_channel)channel, sends);

                q->peer = peer;
                q->channel = (enum comm_channel)channel;
                q->sends = sends;
            }
    *state_p = m;
    m = NULL;
out:
    mpi_close(m);
    return st;
}

/* --- messages ------------------------------------------------------------------------------- */

static int mpi_tag_of(uint32_t tag)
{
    return (int)(tag & INT_MAX); /* Open MPI's largest tag is INT_MAX */
}

static void mpi_post(void *state, struct comm_request *request)
{
    struct mpi *m = state;
    struct queue *q = mpi_queue_of(m, request->peer, request->channel, request->sends);

    if (q->first == NULL)
        q->first = request;
    else
        q->last->next = request;
    q->last = request;
    m->pending++;
}

static bool mpi_busy(const void *state)
{
    return ((const struct mpi *)state)->pending > 0;
}

static base_status mpi_begin_send(struct mpi *m, struct queue *q)
{
    const struct comm_request *r = q->first;

    q->under_way = true;
    m->bytes_sent += q->piece;
    return mpi_check(MPI_Isend((const uint8_t *)r->bytes + r->moved, (int)q->piece, MPI_BYTE,
                               q->peer, mpi_tag_of(r->tag), m->channels[q->channel], &q->request),
                     "sending");
}

/* Fails unless a piece of this tag and length is what the queue's first request asks for. */
static base_status mpi_fits(struct mpi *m, struct queue *q, int tag, int bytes)
{
    struct comm_request *r = q->first;

    if (r->any && (r->moved == 0 || tag == mpi_tag_of(r->tag)) && bytes <= PIECE) {
        r->tag = (uint32_t)tag;
        q->piece = (size_t)bytes;
        return BASE_OK;
    }
    if (tag != mpi_tag_of(r->tag) || (size_t)bytes != q->piece)
        return base_fail(BASE_ERR_DATA,
                         "worker %u sent %d bytes with tag %d where %zu with tag %d were expected",
                         m->group->view.members[q->peer].id, bytes, tag, q->piece,
                         mpi_tag_of(r->tag));
    return BASE_OK;
}

/* Begins to receive the next piece from the peer. */
static base_status mpi_begin_receive(struct mpi *m, struct queue *q)
{
    const struct comm_request *r = q->first;
    base_status st = BASE_OK;
    uint8_t *to = NULL;
    MPI_Message message;
    MPI_Status status;
    int there = 0, bytes = 0;

    TRY(mpi_check(
        MPI_Improbe(q->peer, MPI_ANY_TAG, m->channels[q->channel], &there, &message, &status),
        "looking for messages"));
    if (!there)
        return BASE_OK;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    TRY(mpi_fits(m, q, status.MPI_TAG, bytes));
    if (r->any && r->moved + q->piece > r->room) { /* MPI has no way to drop a message */
        TRY(base_tensor(q->piece, 1, "a message that is too long", &q->discarded));
        to = q->discarded;
    } else {
        to = (uint8_t *)r->bytes + r->moved;
    }
    q->under_way = true;
    TRY(mpi_check(MPI_Imrecv(to, (int)q->piece, MPI_BYTE, &message, &q->request), "receiving"));
out:
    return st;
}

static base_status mpi_move(struct mpi *m, struct queue *q, bool *moved_p)
{
    struct comm_request *r = q->first;
    base_status st = BASE_OK;
    int done = 0;

    if (!q->under_way) {
        q->piece = r->count - r->moved < PIECE ? r->count - r->moved : PIECE;
        TRY(q->sends ? mpi_begin_send(m, q) : mpi_begin_receive(m, q));
    }
    if (q->under_way)
        TRY(mpi_check(MPI_Test(&q->request, &done, MPI_STATUS_IGNORE), "moving a message"));
    if (!done)
        return BASE_OK;
    *moved_p = true;
    q->under_way = false;
    base_free(q->discarded);
    q->discarded = NULL;
    r->moved += q->piece;
    if (q->piece < PIECE) {
        q->first = r->next;
        r->count = r->moved;
        r->done = true;
        m->pending--;
    }
out:
    return st;
}

static base_status mpi_progress(void *state, bool *moved_p)
{
    struct mpi *m = state;
    base_status st = BASE_OK;

    *moved_p = false;
    for (int i = 0; i < (int)m->group->view.size * COMM_CHANNELS * 2; i++)
        if (m->queues[i].first != NULL)
            TRY(mpi_move(m, &m->queues[i], moved_p));
    if (*moved_p)
        m->looks = 0;
out:
    return st;
}

static void mpi_sleep(void *state, double deadline)
{
    (void)deadline; /* the nap is short; the group looks at the deadline */
    mpi_rest(&((struct mpi *)state)->looks);
}

static uint64_t mpi_bytes_sent(const void *state)
{
    return ((const struct mpi *)state)->bytes_sent;
}

const struct comm_transport comm_transport_mpi = {
    .name = "mpi",
    .help = "Open MPI, between the processes that mpirun or srun started",
    .can = COMM_CAN_NATIVE,
    .rank = 2,
    .start = mpi_start,
    .end = mpi_end,
    .reaches = mpi_reaches,
    .open = mpi_open,
    .close = mpi_close,
    .post = mpi_post,
    .busy = mpi_busy,
    .progress = mpi_progress,
    .sleep = mpi_sleep,
    .bytes_sent = mpi_bytes_sent,
};

/* --- native collectives --------------------------------------------------------------------- */

static base_status mpi_enter(struct comm_group *group, MPI_Comm *comm_p)
{
    for (int i = 0; i < group->open_count; i++)
        if (group->open[i].ops == &comm_transport_mpi) {
            *comm_p = ((struct mpi *)group->open[i].state)->channels[COMM_COLLECTIVES];
            return comm_wait(group, NULL, 0, 0); /* fails with the code of a void group */
        }
    return base_fail(BASE_ERR_INTERNAL, "this group does not use MPI");
}

base_status comm_mpi_barrier(struct comm_group *group, double deadline)
{
    base_status st = BASE_OK;
    MPI_Request request;
    MPI_Comm comm;

    TRY(mpi_enter(group, &comm));
    TRY(mpi_check(MPI_Ibarrier(comm, &request), "barrier"));
    TRY(mpi_finish(group, &request, "barrier", deadline));
out:
    return st;
}

base_status comm_mpi_broadcast(struct comm_group *group, int root, void *bytes, size_t count,
                               double deadline)
{
    base_status st = BASE_OK;
    MPI_Request request;
    MPI_Comm comm;

    TRY(mpi_enter(group, &comm));
    for (size_t done = 0, piece; done < count; done += piece) {
        piece = count - done < PIECE ? count - done : PIECE;
        TRY(mpi_check(
            MPI_Ibcast((uint8_t *)bytes + done, (int)piece, MPI_BYTE, root, comm, &request),
            "broadcast"));
        TRY(mpi_finish(group, &request, "broadcast", deadline));
    }
out:
    return st;
}

/* Each part is one element of an MPI datatype, so that MPI's int counts parts and not bytes. */
static base_status mpi_part_type(size_t count, MPI_Datatype *type_p)
{
    base_status st = BASE_OK;

    if (count > PIECE)
        TRY(base_fail(BASE_ERR_MEMORY, "parts of %zu bytes are more than MPI takes", count));
    TRY(mpi_check(MPI_Type_contiguous((int)count, MPI_BYTE, type_p), "describing a part"));
    TRY(mpi_check(MPI_Type_commit(type_p), "describing a part"));
out:
    return st;
}

base_status comm_mpi_gather(struct comm_group *group, int root, const void *mine, size_t count,
                            void *all, double deadline)
{
    base_status st = BASE_OK;
    bool is_root = group->rank == root;
    MPI_Datatype part = MPI_DATATYPE_NULL;
    MPI_Request request;
    MPI_Comm comm;

    TRY(mpi_enter(group, &comm));
    TRY(mpi_part_type(count, &part));
    TRY(mpi_check(
        MPI_Igather(is_root ? MPI_IN_PLACE : mine, 1, part, all, 1, part, root, comm, &request),
        "gather"));
    TRY(mpi_finish(group, &request, "gather", deadline));
out:
    if (part != MPI_DATATYPE_NULL)
        MPI_Type_free(&part);
    return st;
}

base_status comm_mpi_scatter(struct comm_group *group, int root, const void *all, size_t count,
                             void *mine, double deadline)
{
    base_status st = BASE_OK;
    bool is_root = group->rank == root;
    MPI_Datatype part = MPI_DATATYPE_NULL;
    MPI_Request request;
    MPI_Comm comm;

    TRY(mpi_enter(group, &comm));
    TRY(mpi_part_type(count, &part));
    TRY(mpi_check(
        MPI_Iscatter(all, 1, part, is_root ? MPI_IN_PLACE : mine, 1, part, root, comm, &request),
        "scatter"));
    TRY(mpi_finish(group, &request, "scatter", deadline));
out:
    if (part != MPI_DATATYPE_NULL)
        MPI_Type_free(&part);
    return st;
}

base_status comm_mpi_all_gather(struct comm_group *group, void *all, size_t count, double deadline)
{
    base_status st = BASE_OK;
    MPI_Datatype part = MPI_DATATYPE_NULL;
    MPI_Request request;
    MPI_Comm comm;

    TRY(mpi_enter(group, &comm));
    TRY(mpi_part_type(count, &part));
    TRY(mpi_check(MPI_Iallgather(MPI_IN_PLACE, 1, part, all, 1, part, comm, &request),
                  "all-gather"));
    TRY(mpi_finish(group, &request, "all-gather", deadline));
out:
    if (part != MPI_DATATYPE_NULL)
        MPI_Type_free(&part);
    return st;
}

base_status comm_mpi_all_reduce(struct comm_group *group, float *x, size_t count, double deadline)
{
    base_status st = BASE_OK;
    MPI_Request request;
    MPI_Comm comm;

    TRY(mpi_enter(group, &comm));
    for (size_t done = 0, piece; done < count; done += piece) {
        piece = count - done < PIECE / sizeof *x ? count - done : PIECE / sizeof *x;
        TRY(mpi_check(
            MPI_Iallreduce(MPI_IN_PLACE, x + done, (int)piece, MPI_FLOAT, MPI_SUM, comm, &request),
            "all-reduce"));
        TRY(mpi_finish(group, &request, "all-reduce", deadline));
    }
out:
    return st;
}
