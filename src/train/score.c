/* SPDX-License-Identifier: MIT
 *
 * How good the model is: every worker scores its share of a part, and the numbers are added up.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "train/carry.h"
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
    s->tested_step = s->state.position.step;
    return st;
}

/* Rank 0: weights and statistics of the best checkpoint. */
static base_status load_best(struct train_session *s, const struct model_carrier *carrier)
{
    base_status st = BASE_OK;
    struct store_checkpoint checkpoint = {0};
    char *path = NULL;

    TRY(store_checkpoint_open(s->run.checkpoints, true, &checkpoint));
    TRY(store_checkpoint_file(&checkpoint, MODEL_WEIGHTS_FILE, &path));
    TRY(s->task->read_weights != NULL ? s->task->read_weights(s, carrier, path)
                                      : train_state_load_weights(&s->state, carrier, path, false));
out:
    store_checkpoint_close(&checkpoint);
    base_free(path);
    return st;
}

/* Every worker gets what it holds of what rank 0 reads; *there_p false: rank 0 could not. */
static base_status share_best(struct train_session *s, const struct train_holds *places,
                              bool *there_p)
{
    base_status st = BASE_OK;
    struct train_carry carry = {0};

    *there_p = true;
    TRY(train_carry_begin(&carry, &s->team, &s->state, places, 0));
    if (train_team_leads(&s->team)) {
        st = load_best(s, train_carry_leader(&carry));
        if (st == BASE_ERR_PEER_LOST)
            goto out;
        if (st != BASE_OK)
            base_warn("the report is of the last weights, not the best: %s", base_message());
        *there_p = st == BASE_OK;
    }
    TRY(train_carry_loaded(&carry, there_p));
out:
    train_carry_end(&carry);
    return st;
}

/* The best weights are in the place of the last ones meanwhile, in memory of their own: workers of
 * a host may have theirs in common memory. The statistics have one place, and come back to it. */
base_status train_session_test_best(struct train_session *s)
{
    base_status st = BASE_OK;
    const struct train_state last = s->state;
    struct train_holds *places = train_session_places(s);
    size_t statistics = s->state.stat_floats, norms = s->state.stats;
    float *kept = NULL;
    int64_t *tracked = base_calloc(norms, sizeof *tracked);
    bool there = false, made = false;

    TRY(base_tensor(statistics, sizeof(float), "the last statistics", &kept));
    TRY(train_session_unite(s)); /* before the statistics are others */
    memcpy(kept, s->state.statistics, statistics * sizeof *kept);
    memcpy(tracked, s->state.tracked, norms * sizeof *tracked);
    TRY(train_state_make_room(&s->state, TRAIN_WEIGHTS, &places[s->team.exchange.rank]));
    made = true;
    st = share_best(s, places, &there);
    if (st == BASE_OK && there) {
        st = train_session_test(s);
        s->tested_step = s->state.position.best_step;
    }
    memcpy(s->state.statistics, kept, statistics * sizeof *kept);
    memcpy(s->state.tracked, tracked, norms * sizeof *tracked);
out:
    if (made) {
        train_state_drop(&s->state, TRAIN_WEIGHTS);
        s->state.weights = last.weights;
        s->state.parts[TRAIN_WEIGHTS] = last.parts[TRAIN_WEIGHTS];
    }
    base_free(places);
    base_free(kept);
    base_free(tracked);
    return st;
}
