/* SPDX-License-Identifier: MIT
 *
 * A message to an owner is the sender's weight, a le32, and the encoded values; one to all is the
 * encoded mean. Lengths are the messages' own.
 */
#include "train/mean.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "coll/kernels.h"
#include "train/residual.h"

enum { HEAD = sizeof(uint32_t) };

static const double PATIENCE = 600; /* seconds; the others are there, but may be slow */

struct slice {
    size_t from, count;
};

static struct slice slice_of(const struct train_mean *m, int rank)
{
    struct slice slice;

    coll_slice(m->floats, rank, m->team->exchange.size, &slice.from, &slice.count);
    return slice;
}

/* Room for a message of any slice. */
static size_t message_room(const struct train_wiring *wiring, size_t floats, int workers)
{
    return HEAD + train_wire_bound(wiring, coll_longest_slice(floats, workers));
}

static size_t room(const struct train_mean *m)
{
    return message_room(m->wiring, m->floats, m->team->exchange.size);
}

double train_mean_memory(const struct train_wiring *wiring, size_t floats, int workers)
{
    double n = workers;

    if (workers == 1)
        return 0;
    return 2 * (double)coll_longest_slice(floats, workers) * sizeof(float) +
           2 * n * (double)message_room(wiring, floats, workers);
}

/* The owner's slice is in the unit of the mean: of N workers' values, each counts one N-th. */
static void scale_own_residual(const struct train_mean *m, float scale)
{
    struct slice own = slice_of(m, m->team->exchange.rank);

    if (m->residual != NULL)
        coll_scale(own.count, scale, m->residual + own.from);
}

base_status train_mean_open(struct train_mean *m, struct train_team *team,
                            const struct train_wiring *wiring, float *residual, size_t floats)
{
    base_status st = BASE_OK;
    size_t workers = (size_t)team->exchange.size, longest;

    *m =
        (struct train_mean){.wiring = wiring, .team = team, .floats = floats, .residual = residual};
    if (workers == 1)
        return BASE_OK;
    longest = coll_longest_slice(floats, team->exchange.size);
    TRY(base_tensor(longest, sizeof(float), "a slice of changes", &m->part));
    TRY(base_tensor(longest, sizeof(float), "a slice of sums", &m->sum));
    TRY(base_tensor(workers * room(m), 1, "changes that are sent", &m->sending));
    TRY(base_tensor(workers * room(m), 1, "changes that come", &m->coming));
    scale_own_residual(m, 1 / (float)workers);
out:
    if (st != BASE_OK) {
        m->residual = NULL; /* it is in the unit that it came in */
        train_mean_close(m);
    }
    return st;
}

void train_mean_close(struct train_mean *m)
{
    if (m->coming != NULL)
        scale_own_residual(m, (float)m->team->exchange.size);
    base_free(m->part);
    base_free(m->sum);
    base_free(m->sending);
    base_free(m->coming);
    *m = (struct train_mean){0};
}

/* ---- messages ---- */

struct messages {
    struct comm_request requests[2 * COMM_MAX_WORKERS], *list[2 * COMM_MAX_WORKERS];
    int count;
};

enum purpose { CHANGE, MEAN, PURPOSES };

static uint32_t tag_of(int64_t step, enum purpose purpose)
{
    return (uint32_t)step * PURPOSES + purpose;
}

static void post_send(const struct train_mean *m, struct messages *all, int to, uint32_t tag,
                      const uint8_t *bytes, size_t length)
{
    struct comm_request *r = all->list[all->count] = &all->requests[all->count];

    all->count++;
    comm_send(m->team->group, to, COMM_CALLS, tag, bytes, length, r);
}

static struct comm_request *post_receive(const struct train_mean *m, struct messages *all, int from,
                                         uint8_t *bytes)
{
    struct comm_request *r = all->list[all->count] = &all->requests[all->count];

    all->count++;
    comm_receive_any(m->team->group, from, COMM_CALLS, bytes, room(m), r);
    return r;
}

static base_status check_message(const struct train_mean *m, const struct comm_request *r,
                                 uint32_t tag)
{
    if (r->tag == tag && r->count <= r->room)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA, "worker %u sent %zu bytes under tag %u where %u was expected",
                     m->team->view.members[r->peer].id, r->count, r->tag, tag);
}

static base_status decode(const struct train_mean *m, int from, struct base_cursor in, float *y,
                          size_t count)
{
    return base_prefix(train_wire_decode(m->wiring, in.at, base_cursor_left(&in), y, count),
                       "what worker %u sent", m->team->view.members[from].id);
}

static size_t encode(const struct train_mean *m, const float *x, struct slice slice, uint8_t *bytes)
{
    return train_wire_encode(m->wiring, x + slice.from,
                             m->residual != NULL ? m->residual + slice.from : NULL, slice.count,
                             bytes);
}

/* ---- to the owners ---- */

/* Every owner gets its slice of x; this worker gets those of its own. */
static base_status give_changes(struct train_mean *m, const float *x, uint32_t weight, int64_t step,
                                struct comm_request *came[COMM_MAX_WORKERS], struct messages *all)
{
    base_status st = BASE_OK;
    const struct train_exchange *e = &m->team->exchange;

    for (int rank = 0; rank < e->size; rank++)
        if (rank != e->rank)
            came[rank] = post_receive(m, all, rank, m->coming + (size_t)rank * room(m));
    for (int i = 1; i < e->size; i++) { /* not all to the same owner at once */
        int owner = (e->rank + i) % e->size;
        uint8_t *bytes = m->sending + (size_t)owner * room(m);

        memcpy(bytes, &weight, HEAD);
        post_send(m, all, owner, tag_of(step, CHANGE), bytes,
                  HEAD + encode(m, x, slice_of(m, owner), bytes + HEAD));
    }
    TRY(comm_wait(m->team->group, all->list, all->count, base_now() + PATIENCE));
    for (int rank = 0; rank < e->size; rank++)
        if (rank != e->rank)
            TRY(check_message(m, came[rank], tag_of(step, CHANGE)));
out:
    return st;
}

/* The weights of all workers, in front of what they sent. */
static base_status read_weights(const struct train_mean *m, uint32_t own,
                                struct comm_request *const *came, struct base_cursor *in,
                                double *weights)
{
    base_status st = BASE_OK;
    const struct train_exchange *e = &m->team->exchange;
    double sum = 0;

    for (int rank = 0; rank < e->size; rank++) {
        uint32_t weight = own;

        if (rank != e->rank) {
            in[rank] = base_cursor_of(came[rank]->bytes, came[rank]->count);
            TRY(base_cursor_le32(&in[rank], &weight));
        }
        weights[rank] = weight;
        sum += weight;
    }
    if (sum <= 0)
        TRY(base_fail(BASE_ERR_DATA, "all workers sent a weight of 0"));
    for (int rank = 0; rank < e->size; rank++)
        weights[rank] /= sum;
out:
    return st;
}

/* The mean of this owner's slice, in place of its own values. */
static base_status add_up(struct train_mean *m, float *own, size_t count, uint32_t weight,
                          struct comm_request *const *came)
{
    base_status st = BASE_OK;
    const struct train_exchange *e = &m->team->exchange;
    struct base_cursor in[COMM_MAX_WORKERS];
    double weights[COMM_MAX_WORKERS];

    TRY(read_weights(m, weight, came, in, weights));
    memset(m->sum, 0, count * sizeof *m->sum);
    for (int rank = 0; rank < e->size; rank++) {
        float share = (float)weights[rank];
        const float *values = own;

        if (rank != e->rank) {
            TRY(decode(m, rank, in[rank], m->part, count));
            values = m->part;
        }
        for (size_t i = 0; i < count; i++)
            m->sum[i] += share * values[i];
    }
    memcpy(own, m->sum, count * sizeof *own);
out:
    return st;
}

/* ---- to all ---- */

static base_status give_mean(struct train_mean *m, float *x, int64_t step, struct messages *all)
{
    base_status st = BASE_OK;
    const struct train_exchange *e = &m->team->exchange;
    struct comm_request *came[COMM_MAX_WORKERS];
    uint8_t *mine = m->coming; /* all that came has been added */
    size_t length = encode(m, x, slice_of(m, e->rank), mine);

    all->count = 0;
    for (int rank = 0; rank < e->size; rank++)
        if (rank != e->rank)
            came[rank] = post_receive(m, all, rank, m->sending + (size_t)rank * room(m));
    for (int i = 1; i < e->size; i++)
        post_send(m, all, (e->rank + i) % e->size, tag_of(step, MEAN), mine, length);
    TRY(comm_wait(m->team->group, all->list, all->count, base_now() + PATIENCE));
    for (int rank = 0; rank < e->size; rank++) {
        struct slice slice = slice_of(m, rank);
        struct base_cursor in = base_cursor_of(mine, length);

        if (rank != e->rank) {
            TRY(check_message(m, came[rank], tag_of(step, MEAN)));
            in = base_cursor_of(came[rank]->bytes, came[rank]->count);
        }
        TRY(decode(m, rank, in, x + slice.from, slice.count));
    }
out:
    return st;
}

base_status train_mean_run(struct train_mean *m, float *x, uint32_t weight,
                           const struct train_fault *fault, int64_t step)
{
    base_status st = BASE_OK;
    struct messages all = {.count = 0};
    struct comm_request *came[COMM_MAX_WORKERS] = {NULL};
    struct slice own;

    if (m->team->exchange.size == 1)
        return BASE_OK;
    own = slice_of(m, m->team->exchange.rank);
    TRY(give_changes(m, x, weight, step, came, &all));
    train_fault_at(fault, "change", step);
    TRY(add_up(m, x + own.from, own.count, weight, came));
    TRY(give_mean(m, x, step, &all));
    train_fault_at(fault, "mean", step);
out:
    return st;
}

/* ---- for a checkpoint ---- */

base_status train_mean_of_residuals(struct train_mean *m, float *x)
{
    const struct train_exchange *e = &m->team->exchange;
    struct slice own = slice_of(m, e->rank);

    memcpy(x, m->residual, m->floats * sizeof *x);
    coll_scale(own.count, (float)e->size, x + own.from);
    return train_residual_mean(m->team, x, m->floats);
}
