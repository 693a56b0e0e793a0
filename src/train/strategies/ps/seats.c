/* SPDX-License-Identifier: MIT
 *
 * Which processes of `ps` serve and which work, what each of them holds, and what that needs and
 * costs. Pure arithmetic of options and sizes.
 */
#include <math.h>

#include "train/forecast.h"
#include "train/memory.h"
#include "train/strategies/ps/ps.h"

/* A process that is alone does both also where servers are apart. */
struct ps_seats ps_seats(const struct ps_options *options, int size)
{
    bool apart = options->apart && size > 1;
    int64_t wanted = options->servers > 0 ? options->servers : size > 2 ? 2 : 1;
    int most = apart ? size - 1 : size, servers = (int)(wanted < most ? wanted : most);

    return (struct ps_seats){.servers = servers, .first_worker = apart ? servers : 0};
}

bool ps_overlaps(const struct ps_options *options, bool one_host, bool clips)
{
    return !clips && options->overlap != PS_OVERLAP_OFF &&
           (options->overlap == PS_OVERLAP_ON || !one_host);
}

int ps_first_worker(const void *options, int size)
{
    return ps_seats(options, size).first_worker;
}

void ps_place(const struct train_placing *p, int rank, struct train_holds *wanted)
{
    int servers = ps_seats(p->options, p->size).servers, count;
    struct train_slice slices[2];

    wanted->at[wanted->count++] =
        (struct train_hold){.group = TRAIN_WEIGHTS, .count = p->floats[TRAIN_WEIGHTS]};
    if (rank >= servers)
        return;
    count = ps_server_slices(p->floats[TRAIN_SLOTS], rank, servers, slices);
    if (count == 2 && slices[1].from < slices[0].from) { /* ascending */
        struct train_slice own = slices[0];

        slices[0] = slices[1];
        slices[1] = own;
    }
    if (count == 2 && slices[0].from + slices[0].count == slices[1].from) {
        slices[0].count += slices[1].count;
        count = 1;
    }
    for (int i = 0; i < count; i++)
        if (slices[i].count > 0)
            wanted->at[wanted->count++] = (struct train_hold){
                .group = TRAIN_SLOTS, .from = slices[i].from, .count = slices[i].count};
}

/* A server has its slices a second time, a push of every worker, and slices on their way; to
 * correct stale gradients also its slices as every worker has read them, and mean squares. With a
 * lossy wire it has one slot more, for checkpoints. */
void ps_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct ps_options *options = q->options;
    struct ps_seats seats = ps_seats(options, q->seat.workers);
    int workers = q->seat.workers - seats.first_worker;
    double slice = q->sizes->weights / seats.servers, kept = seats.servers > 1 ? 2 * slice : slice;
    double ratio = ps_parcel_ratio(options->wire, q->sizes->weights / sizeof(float));
    bool packs = options->wire != NULL && q->seat.workers > 1;

    if (q->seat.shares && q->seat.locals > 1) /* two copies of what servers of this host serve */
        m->of[TRAIN_MEMORY_COMMUNICATION].shared += 2 * slice * fmin(seats.servers, q->seat.locals);
    if (packs)
        m->of[TRAIN_MEMORY_COMMUNICATION].own += ratio * q->sizes->weights;
    if (train_wire_is_lossy(options->wire)) /* what it left out, and will have left out next */
        m->of[TRAIN_MEMORY_SPARE].own += 2 * q->sizes->weights;
    if (q->seat.rank >= seats.servers)
        return;
    m->of[TRAIN_MEMORY_SPARE].own += kept * (options->correct ? 2 + workers : 1);
    m->of[TRAIN_MEMORY_COMMUNICATION].own += workers * kept + (q->seat.workers - 1) * slice;
    if (packs)
        m->of[TRAIN_MEMORY_COMMUNICATION].own += workers * ratio * slice;
    if (train_wire_is_lossy(options->wire))
        m->of[TRAIN_MEMORY_SLOTS].own += kept;
}

/* A server sends its slice to the other workers and gets their gradients for the slices that it
 * keeps; its own worker does the same with the other servers. Where servers are apart, a worker's
 * own link may be the busiest. Pushes may be hidden by backward, and then what is pulled is left.
 */
void ps_cost(const struct train_memory_question *q, struct train_cost *cost)
{
    const struct ps_options *options = q->options;
    struct ps_seats seats = ps_seats(options, q->seat.workers);
    double n = q->seat.workers - seats.first_worker, servers = seats.servers;
    double copies = servers > 1 ? 2 : 1, bytes = q->sizes->weights;
    double push = copies * ps_parcel_ratio(options->wire, bytes / sizeof(float));
    double pulled = seats.first_worker > 0 ? fmax(n / servers, 1) : (n - 1) / servers;

    cost->sent =
        seats.first_worker > 0
            ? fmax(n / servers, 1) * fmax(push, 1) * bytes
            : fmax((n - 1) * push + servers - 1, (servers - 1) * push + n - 1) * bytes / servers;
    if (cost->sent > 0 && ps_overlaps(options, q->seat.shares, q->clips))
        cost->hidden = 1 - pulled * bytes / cost->sent;
    /* Weights are published once and read by each. */
    cost->moved = q->seat.workers > 1 ? 2 * (n * push + 1 + n) * bytes : 0;
    cost->updates = copies / servers;
    cost->exact = options->rules.consistency == TRAIN_BSP && options->rules.backup == 0 &&
                  !train_wire_is_lossy(options->wire);
}

unsigned ps_roles(const struct train_session *s, int rank)
{
    struct ps_seats seats = ps_seats(s->options, s->team.exchange.size);

    return (rank >= seats.first_worker ? CLUSTER_ROLE_WORKER : 0) |
           (rank < seats.servers ? CLUSTER_ROLE_SERVER : 0);
}
