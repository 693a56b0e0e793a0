/* SPDX-License-Identifier: MIT
 *
 * How good the model is: every worker scores its share of a part, and the numbers are added up.
 */
#include "base/log.h"
#include "base/mem.h"
#include "train/session.h"

/* In the order of ranks, so that all workers have the same bits. */
static base_status add_scores(struct train_session *s, double *score)
{
    base_status st = BASE_OK;
    size_t count = s->task->score_count(s), size = (size_t)s->team.exchange.size;
    enum train_category was = train_clock_enter(&s->clock, TRAIN_WAIT);
    double *all = NULL;

    if (size == 1)
        goto out;
    TRY(base_tensor(count * size, sizeof *all, "the scores of all workers", &all));
    TRY(train_team_gather(&s->team, score, count * sizeof *score, all));
    for (size_t i = 0; i < count; i++) {
        score[i] = 0;
        for (size_t rank = 0; rank < size; rank++)
            score[i] += all[rank * count + i];
    }
out:
    train_clock_enter(&s->clock, was);
    base_free(all);
    return st;
}

base_status train_session_score(struct train_session *s, enum data_part part, double *score)
{
    base_status st = BASE_OK;

    base_progress(true, "evaluating …");
    TRY(train_session_unite(s));
    TRY(s->task->score(s, part, train_team_share(&s->team), score));
    train_fault_at(&s->fault, "evaluation", s->state.position.step);
    TRY(add_scores(s, score));
out:
    return st;
}

base_status train_session_test(struct train_session *s)
{
    base_status st = train_session_score(s, DATA_TEST, s->test);

    s->tested = st == BASE_OK;
    return st;
}
