/* SPDX-License-Identifier: MIT
 *
 * Where a state begins: at the seed, which every worker follows for what it holds; at a file of
 * weights (--init); or at a checkpoint, of a run that is resumed or of this one when its workers
 * have lost a part of the state. One worker reads the file and carries its tensors to those that
 * hold them.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/model.h"
#include "train/carry.h"
#include "train/session.h"

bool train_session_is_grown(const struct train_session *s)
{
    const json_t *data =
        s->origin.path != NULL ? json_object_get(s->origin.manifest, "data") : NULL;
    const char *digest = json_string_value(json_object_get(data, "digest"));

    return s->job->add.count > 0 && digest != NULL && strcmp(digest, s->digest) != 0;
}

base_status train_session_load_position(struct train_session *s)
{
    base_status st = train_state_load_position(&s->state, &s->origin);

    if (st == BASE_OK && train_session_is_grown(s)) {
        s->state.position.plan_start = s->task->sweeps->restart(s);
        s->state.position.best_validation = -1; /* the best was that of fewer ratings */
        s->state.position.stale_epochs = 0;
    }
    return st;
}

bool train_session_has_file(const struct train_session *s)
{
    return s->origin.path != NULL || s->job->init != NULL;
}

static base_status load_file(struct train_session *s, const struct model_carrier *carrier)
{
    const struct train_job *job = s->job;
    base_status st = BASE_OK;
    char *path = NULL;

    if (s->origin.path != NULL) {
        if (s->task->read != NULL)
            TRY(s->task->read(s, carrier, &s->origin));
        else
            TRY(train_state_load(&s->state, carrier, &s->origin));
        goto out;
    }
    TRY(base_prefix(model_find_weights(job->init, job->runs_dir, &path), "--init %s", job->init));
    TRY(train_state_load_weights(&s->state, carrier, path, true));
out:
    base_free(path);
    return st;
}

base_status train_session_begin_state(struct train_session *s, const struct train_holds *places,
                                      int source, bool started, bool file)
{
    base_status st = BASE_OK;
    struct train_carry carry = {0};
    bool good = true;

    if (!started)
        TRY(s->task->start(s));
    if (!file)
        goto out;
    TRY(train_carry_begin(&carry, &s->team, &s->state, places, source));
    if (s->team.exchange.rank == source)
        TRY(load_file(s, train_carry_leader(&carry)));
    TRY(train_carry_loaded(&carry, &good));
out:
    train_carry_end(&carry);
    store_checkpoint_close(&s->origin);
    return st;
}

/* ---- back to a checkpoint ---- */

enum { NO_STATE = -3, NO_RUN = -2, NO_CHECKPOINT = -1 };

/* The step of the newest checkpoint that this worker can read, which it opens. */
static int64_t open_newest(struct train_session *s)
{
    store_checkpoint_close(&s->origin);
    if (!s->begun)
        return NO_STATE;
    if (s->run.path == NULL || !train_run_is_here(&s->run))
        return NO_RUN;
    if (!store_has_checkpoint(s->run.checkpoints))
        return NO_CHECKPOINT;
    if (store_checkpoint_open(s->run.checkpoints, false, &s->origin) == BASE_OK)
        return (int64_t)s->origin.step;
    base_warn("%s", base_message());
    return NO_CHECKPOINT;
}

base_status train_session_go_back(struct train_session *s, uint32_t leader, int *source_p)
{
    base_status st = BASE_OK;
    int64_t mine = open_newest(s), all[COMM_MAX_WORKERS];

    s->whole = false;
    s->state.claims.count = 0;
    s->state.ahead = 0;
    TRY(train_team_gather(&s->team, &mine, sizeof mine, all));
    for (int i = 0; i < s->team.exchange.size; i++)
        if (all[i] > all[*source_p])
            *source_p = i;
    if (all[*source_p] == NO_RUN && s->begun && s->saved_step >= 0) /* it was on a lost host */
        TRY(base_fail(BASE_ERR_DATA, "%s", TRAIN_STATE_UNKNOWN));
    if (s->team.exchange.rank != *source_p) {
        store_checkpoint_close(&s->origin);
        goto out;
    }
    s->state.position = (struct train_position){.best_validation = -1};
    if (s->origin.path != NULL)
        TRY(train_session_load_position(s));
    s->saved_step = s->origin.path != NULL ? s->state.position.step : -1;
    s->leader = leader;
out:
    return st;
}
