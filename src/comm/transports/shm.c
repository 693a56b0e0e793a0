/* SPDX-License-Identifier: MIT
 *
 * Messages between workers of one host through shared memory: for each ordered pair of ranks and
 * each channel a ring of bytes in the view's region "view/N/mail" (memory that is never used is
 * never there). A message is a record: a head of 16 bytes, the payload, padding to 16. One larger
 * than the ring streams through it. `put` is written by the sender alone, `taken` by the receiver
 * alone; both only grow.
 *
 * A rank that waits lingers (comm/futex.h), then sleeps on a futex together with the host's alarm.
 * A rank that moves bytes wakes a sleeping peer: `asleep` is set before the last look at the rings
 * and read after the move.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "comm/barrier.h"
#include "comm/comm_private.h"
#include "comm/futex.h"

enum {
    RING = 256 << 10,
    CHUNK = 64 << 10 /* bytes published at a time: the peer copies while the next are written */
};

/* No host has the memory for a longer message. */
static const uint64_t MOST_BYTES = UINT64_C(1) << 48;

struct head {
    uint32_t tag, reserved;
    uint64_t count;
};

struct ring {
    _Alignas(64) _Atomic uint64_t put;
    _Alignas(64) _Atomic uint64_t taken;
};

struct mail {
    struct comm_barrier_words barrier;
    struct {
        _Alignas(64) _Atomic uint32_t asleep; /* a futex */
        _Atomic uint32_t opened;
    } boxes[COMM_MAX_WORKERS];
    struct ring rings[]; /* [from][to][channel]; their bytes follow in the same order */
};

/* One direction of one channel with one peer, seen from this rank. */
struct queue {
    struct comm_request *first, *last;
    struct ring *ring;
    uint8_t *bytes;
    uint64_t at; /* this side's position: bytes put or taken since the beginning */
    int peer;    /* index among the host's ranks */
};

struct shm {
    struct comm_group *group;
    struct comm_shared shared;
    struct mail *mail;
    struct comm_barrier barrier;
    _Atomic uint32_t *alarm;
    int count, me; /* ranks of this host, and this rank's index among them */
    int index_of[COMM_MAX_WORKERS];
    struct queue *queues; /* [peer][channel][sends] */
    struct queue **active;
    int active_count;
    uint64_t bytes_sent;
};

/* --- the region ---------------------------------------------------------------------------- */

static size_t shm_ring_count(int count)
{
    return (size_t)count * (size_t)count * COMM_CHANNELS;
}

static size_t shm_bytes_offset(int count)
{
    const size_t page = 4096;
    size_t end = sizeof(struct mail) + shm_ring_count(count) * sizeof(struct ring);

    return (end + page - 1) / page * page;
}

static struct queue *shm_queue_of(struct shm *s, int peer, enum comm_channel channel, bool sends)
{
    return &s->queues[(peer * COMM_CHANNELS + (int)channel) * 2 + sends];
}

static void shm_init_queue(struct shm *s, int peer, int channel, bool sends)
{
    struct queue *q = shm_queue_of(s, peer, (enum comm_channel)channel, sends);
    int from = sends ? s->me : peer, to = sends ? peer : s->me;
    size_t pair = (size_t)from * (size_t)s->count + (size_t)to;
    size_t index = pair * COMM_CHANNELS + (size_t)channel;

    q->peer = peer;
    q->ring = &s->mail->rings[index];
    q->bytes = (uint8_t *)s->mail + shm_bytes_offset(s->count) + index * RING;
}

static void shm_init_queues(struct shm *s)
{
    size_t count = (size_t)s->count * COMM_CHANNELS * 2;

    s->queues = base_calloc(count, sizeof *s->queues);
    s->active = base_calloc(count, sizeof *s->active);
    for (int peer = 0; peer < s->count; peer++)
        for (int channel = 0; channel < COMM_CHANNELS; channel++)
            for (int sends = 0; sends < 2; sends++)
                shm_init_queue(s, peer, channel, sends);
}

static bool shm_reaches(const struct comm_group *group, int peer)
{
    const struct comm_member *members = group->view.members;

    return group->endpoint->setup.host != NULL && group->endpoint->setup.region != NULL &&
           members[peer].host == members[group->rank].host;
}

static void shm_close(void *state)
{
    struct shm *s = state;

    if (s == NULL)
        return;
    comm_shared_close(&s->shared);
    base_free(s->queues);
    base_free(s->active);
    base_free(s);
}

static base_status shm_open(struct comm_group *group, const int *peers, int count, double deadline,
                            void **state_p)
{
    struct shm *s = base_calloc(1, sizeof *s);
    char key[32];
    base_status st;
    int ranks[COMM_MAX_WORKERS];

    (void)peers, (void)count; /* all ranks of this host: shm_reaches */
    *state_p = NULL;
    s->group = group;
    s->count = comm_group_locals(group, ranks);
    s->alarm = comm_host_alarm_word(group->endpoint->setup.host);
    for (int i = 0; i < s->count; i++)
        s->index_of[ranks[i]] = i;
    s->me = s->index_of[group->rank];
    snprintf(key, sizeof key, "view/%u/mail", group->view.number);
    TRY(comm_shared_open(group->endpoint, key,
                         shm_bytes_offset(s->count) + shm_ring_count(s->count) * RING, &s->shared));
    s->mail = s->shared.at;
    group->asleep = &s->mail->boxes[s->me].asleep;
    comm_barrier_init(&s->barrier, group, &s->mail->barrier, ranks, s->count);
    shm_init_queues(s);
    if (atomic_exchange(&s->mail->boxes[s->me].opened, 1) != 0)
        TRY(base_fail(BASE_ERR_INTERNAL, "the group of view %u was opened before",
                      group->view.number));
    TRY(comm_barrier_meet(&s->barrier, deadline));
    *state_p = s;
    s = NULL;
out:
    shm_close(s);
    return st;
}

/* --- moving bytes -------------------------------------------------------------------------- */

static size_t shm_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* For a comm_receive_any, it is known once the head has come. */
static size_t shm_record_size(const struct comm_request *r)
{
    return sizeof(struct head) + (r->count + 15) / 16 * 16;
}

/* Copies between ring and buffer the payload among the next `take` bytes of the record, which may
 * also contain padding. Rings wrap around. */
static void shm_copy(struct queue *q, struct comm_request *r, size_t take)
{
    bool has_room = !r->any || r->count <= r->room;
    size_t from = r->moved - sizeof(struct head), offset = q->at % RING;
    size_t count = from < r->count && has_room ? shm_least(take, r->count - from) : 0;
    size_t straight = shm_least(count, RING - offset);
    uint8_t *bytes;

    if (count == 0)
        return;
    bytes = (uint8_t *)r->bytes + from;
    if (r->sends) {
        memcpy(q->bytes + offset, bytes, straight);
        memcpy(q->bytes, bytes + straight, count - straight);
    } else {
        memcpy(bytes, q->bytes + offset, straight);
        memcpy(bytes + straight, q->bytes, count - straight);
    }
}

static void shm_advance(struct queue *q, struct comm_request *r, size_t take)
{
    q->at += take;
    r->moved += take;
}

/* Free bytes of the ring when sending, bytes to read when receiving. */
static uint64_t shm_room_of(const struct queue *q, bool sends)
{
    if (sends)
        return RING - (q->at - atomic_load_explicit(&q->ring->taken, memory_order_acquire));
    return atomic_load_explicit(&q->ring->put, memory_order_acquire) - q->at;
}

/* Heads never wrap around: records and RING are multiples of a head's size. */
static base_status shm_move_head(struct shm *s, struct queue *q, struct comm_request *r)
{
    struct head *in_ring = (struct head *)(q->bytes + q->at % RING), head = {0};

    if (r->sends) {
        *in_ring = (struct head){.tag = r->tag, .count = r->count};
    } else {
        head = *in_ring;
        if (r->any && head.count <= MOST_BYTES) {
            r->tag = head.tag;
            r->count = head.count;
        } else if (head.tag != r->tag || head.count != r->count)
            return base_fail(BASE_ERR_DATA,
                             "worker %u sent %llu bytes with tag %u where %zu with tag %u were "
                             "expected",
                             s->group->view.members[r->peer].id, (unsigned long long)head.count,
                             head.tag, r->count, r->tag);
    }
    shm_advance(q, r, sizeof head);
    return BASE_OK;
}

static void shm_wake_sleeper(_Atomic uint32_t *asleep)
{
    if (atomic_load_explicit(asleep, memory_order_relaxed) != 0 && atomic_exchange(asleep, 0) != 0)
        comm_futex_wake(asleep);
}

/* Lets the peer know. The fence is the sleeper's other half: it sees the move, or we see it asleep.
 */
static void shm_publish(struct shm *s, struct queue *q, bool sends)
{
    atomic_store_explicit(sends ? &q->ring->put : &q->ring->taken, q->at, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    shm_wake_sleeper(&s->mail->boxes[q->peer].asleep);
}

/* Moves up to CHUNK bytes of the queue's first request. */
static base_status shm_move_some(struct shm *s, struct queue *q, bool *moved_p)
{
    struct comm_request *r = q->first;
    uint64_t room = shm_room_of(q, r->sends), start = q->at;
    size_t take;
    base_status st = BASE_OK;

    *moved_p = false;
    if (room > RING)
        return base_fail(BASE_ERR_DATA, "the mailbox of worker %u is broken",
                         s->group->view.members[r->peer].id);
    if (r->moved == 0) {
        if (room < sizeof(struct head))
            return BASE_OK;
        TRY(shm_move_head(s, q, r));
        room -= sizeof(struct head);
    }
    take = shm_least(shm_least(room, CHUNK), shm_record_size(r) - r->moved);
    shm_copy(q, r, take);
    shm_advance(q, r, take);
    *moved_p = q->at != start;
    if (!*moved_p)
        return BASE_OK;
    s->bytes_sent += r->sends ? q->at - start : 0;
    shm_publish(s, q, r->sends);
    if (r->moved == shm_record_size(r)) {
        q->first = r->next;
        r->done = true;
    }
out:
    return st;
}

static base_status shm_progress(void *state, bool *moved_p)
{
    struct shm *s = state;
    base_status st;
    bool moved;

    *moved_p = false;
    for (int i = 0; i < s->active_count;) {
        struct queue *q = s->active[i];

        TRY(shm_move_some(s, q, &moved));
        *moved_p |= moved;
        if (q->first == NULL)
            s->active[i] = s->active[--s->active_count];
        else
            i++;
    }
    return BASE_OK;
out:
    return st;
}

/* Puts what fits into the ring at once, so that a sender that goes on computing need not wait
 * first. */
static void shm_send_ahead(struct shm *s, struct queue *q)
{
    bool moved = true;

    while (q->first != NULL && moved)
        if (shm_move_some(s, q, &moved) != BASE_OK)
            return; /* shm_progress will meet and report the same failure */
}

static void shm_post(void *state, struct comm_request *request)
{
    struct shm *s = state;
    struct queue *q = shm_queue_of(s, s->index_of[request->peer], request->channel, request->sends);

    if (q->first != NULL) {
        q->last = q->last->next = request;
        return;
    }
    q->first = q->last = request;
    if (request->sends)
        shm_send_ahead(s, q);
    if (q->first != NULL)
        s->active[s->active_count++] = q;
}

static bool shm_busy(const void *state)
{
    return ((const struct shm *)state)->active_count > 0;
}

static uint64_t shm_bytes_sent(const void *state)
{
    return ((const struct shm *)state)->bytes_sent;
}

/* --- waiting ------------------------------------------------------------------------------- */

static bool shm_any_ready(const struct shm *s)
{
    for (int i = 0; i < s->active_count; i++) {
        const struct queue *q = s->active[i];

        if (shm_room_of(q, q->first->sends) >= (q->first->moved == 0 ? sizeof(struct head) : 1))
            return true;
    }
    return false;
}

static void shm_sleep(void *state, double deadline)
{
    struct shm *s = state;
    _Atomic uint32_t *asleep = &s->mail->boxes[s->me].asleep;
    struct comm_linger linger = comm_linger_of(s->alarm);
    uint32_t alarm;

    while (comm_linger(&linger))
        if (shm_any_ready(s) || comm_group_stirred(s->group))
            return;
    alarm = atomic_load(s->alarm);
    if (comm_group_check(s->group) != BASE_OK || comm_group_stirred(s->group))
        return; /* the group will ask again and report it */
    atomic_store(asleep, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (!shm_any_ready(s) && !comm_group_stirred(s->group))
        comm_futex_wait((struct comm_futex[]){{asleep, 1}, {s->alarm, alarm}}, 2, deadline);
    atomic_store(asleep, 0);
}

static void shm_wake(void *state)
{
    struct shm *s = state;

    atomic_thread_fence(memory_order_seq_cst);
    shm_wake_sleeper(&s->mail->boxes[s->me].asleep);
}

static base_status shm_barrier(void *state, double deadline)
{
    return comm_barrier_meet(&((struct shm *)state)->barrier, deadline);
}

const struct comm_transport comm_transport_shm = {
    .name = "shm",
    .help = "shared memory, between workers of one host",
    .can = COMM_CAN_SHARE | COMM_CAN_RECOVER,
    .rank = 0,
    .reaches = shm_reaches,
    .open = shm_open,
    .close = shm_close,
    .post = shm_post,
    .busy = shm_busy,
    .progress = shm_progress,
    .sleep = shm_sleep,
    .wake = shm_wake,
    .barrier = shm_barrier,
    .bytes_sent = shm_bytes_sent,
};
