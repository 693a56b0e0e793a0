/* SPDX-License-Identifier: MIT */
#include "train/closed.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "train/journal.h"
#include "train/step.h"

enum {
    BLOCK = 1 << 16,     /* sums that are gathered at once: the memory is that of all workers */
    MANY_SUMS = 1 << 20, /* from so many on, solving is said to have begun */
};

/* A pass over many samples says now and then how far it is: after --log-every batches, or, where a
 * progress line does not tell it, after some seconds. */
static bool is_line_due(const struct train_job *job, int64_t batches, double *said_at)
{
    bool due = job->log_every > 0 ? batches % job->log_every == 0
                                  : job->log_every < 0 && !base_progress_shown() &&
                                        base_now() - *said_at >= TRAIN_LOG_SECONDS;

    if (due)
        *said_at = base_now();
    return due;
}

static base_status add_batches(struct train_session *s, const struct nn_closed *closed,
                               struct data_loader *loader, uint32_t total, double *sums)
{
    base_status st = BASE_OK;
    bool alone = s->team.worker == NULL;
    uint32_t done = 0;
    int64_t batches = 0;
    double said_at = base_now();
    struct data_batch b;

    for (;;) {
        if (alone && base_stop_signal() != 0) /* otherwise the others wait for the sums */
            TRY(base_fail(BASE_ERR_INTERRUPTED, "stopped while summing"));
        train_clock_enter(&s->clock, TRAIN_DATA);
        TRY(data_loader_next(loader, &b));
        train_clock_enter(&s->clock, TRAIN_COMPUTE);
        if (b.count == 0)
            break;
        TRY(closed->add(s->state.graph, (int)b.count, b.x, b.labels, sums));
        done += b.count;
        base_progress(false, "summing over the samples: %u of %u", done, total);
        if (is_line_due(s->job, ++batches, &said_at))
            base_info("summed over %u of %u samples", done, total);
    }
out:
    return st;
}

/* Of samples [first, first + count) of the training part. */
static base_status sum_share(struct train_session *s, const struct nn_closed *closed,
                             const struct data_set *set, uint32_t first, uint32_t count,
                             uint32_t batch, double *sums)
{
    base_status st = BASE_OK;
    uint32_t *ids = base_calloc(count, sizeof *ids);
    struct data_loader *loader = NULL;

    for (uint32_t i = 0; i < count; i++)
        ids[i] = first + i;
    TRY(data_loader_new(set, DATA_TRAIN, batch, (struct data_share){0}, 0, (struct data_augment){0},
                        &loader));
    TRY(data_loader_begin(loader, 0, ids, count));
    st = add_batches(s, closed, loader, count, sums);
    s->data_failed = st == BASE_ERR_DATA || st == BASE_ERR_IO;
out:
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    data_loader_free(loader);
    base_free(ids);
    return st;
}

/* In the order of ranks, so that all workers have the same bits. */
static base_status add_workers(struct train_session *s, double *sums, size_t count)
{
    base_status st = BASE_OK;
    size_t size = (size_t)s->team.exchange.size;
    double *all = NULL;

    if (size == 1)
        goto out;
    train_clock_enter(&s->clock, TRAIN_COMMUNICATE);
    TRY(base_tensor(BLOCK * size, sizeof *all, "the sums of all workers", &all));
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? count - at : BLOCK;

        TRY(train_team_gather(&s->team, sums + at, n * sizeof *sums, all));
        memset(sums + at, 0, n * sizeof *sums);
        for (size_t rank = 0; rank < size; rank++)
            for (size_t i = 0; i < n; i++)
                sums[at + i] += all[rank * n + i];
    }
out:
    train_clock_enter(&s->clock, TRAIN_COMPUTE);
    base_free(all);
    return st;
}

/* What the solution scores on the training part; the weights in use stay as they are. */
static base_status score(struct train_session *s, float *solved, struct train_outcome *outcome_p)
{
    float *weights = s->state.weights;
    double *numbers = base_calloc(s->task->score_count(s), sizeof *numbers);
    base_status st;

    s->state.weights = solved;
    st = train_session_score(s, DATA_TRAIN, numbers);
    s->state.weights = weights;
    *outcome_p = (struct train_outcome){.loss_sum = numbers[TRAIN_SCORE_LOSS],
                                        .correct = (int64_t)numbers[TRAIN_SCORE_CORRECT],
                                        .seen = s->count[DATA_TRAIN]};
    base_free(numbers);
    return st;
}

base_status train_closed_leg(struct train_session *s, const struct nn_closed *closed,
                             const char *arguments, const struct data_set *set, uint32_t batch)
{
    base_status st = BASE_OK;
    struct train_step step = {.began = base_now(), .before = s->clock};
    uint32_t total = s->count[DATA_TRAIN], first, own;
    double *sums = NULL;
    float *solved = NULL;
    size_t count = 0;

    train_trace_begin(&s->trace, s->state.position.step + 1);
    data_share_of(train_team_share(&s->team), total, &first, &own);
    TRY(closed->count(s->state.graph, &count));
    TRY(base_tensor(count, sizeof *sums, "sums over the samples", &sums));
    TRY(base_tensor(s->state.floats, sizeof *solved, "the solution", &solved));
    TRY(sum_share(s, closed, set, first, own, batch, sums));
    TRY(add_workers(s, sums, count));
    base_progress(true, "solving …");
    if (count >= MANY_SUMS && s->job->log_every != 0 && !base_progress_shown())
        base_info("solving …");
    TRY(closed->solve(s->state.graph, arguments, sums, solved));
    TRY(score(s, solved, &step.outcome));
    /* Workers of a host may have their weights in common memory: all write the same bits. */
    memcpy(s->state.weights, solved, s->state.floats * sizeof *solved);
    step.batch.whole = total;
    train_step_advance(s, &step);
    train_step_count(s, &step.outcome, own);
    train_step_tell(s, &step);
out:
    base_free(sums);
    base_free(solved);
    return st;
}
