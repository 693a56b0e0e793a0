/* SPDX-License-Identifier: MIT */
#include "train/strategies/downpour/line.h"

#include "base/clock.h"
#include "train/strategies/downpour/manager.h"

void downpour_line_open(struct downpour_line *line, struct train_team *team)
{
    *line = (struct downpour_line){.team = team};
}

static struct comm_engine *engine_of(const struct downpour_line *line)
{
    return comm_group_engine(line->team->group);
}

static void listen(struct downpour_line *line)
{
    if (line->listens)
        return;
    line->listens = true;
    comm_engine_receive(engine_of(line), 0, COMM_CALLS, TRAIN_TAG_ANSWER, line->answer,
                        sizeof line->answer, &line->heard);
}

static base_status wait_for(struct downpour_line *line, struct comm_task *task)
{
    base_status st =
        comm_engine_wait(engine_of(line), task, base_now() + DOWNPOUR_MANAGER_PATIENCE);
    const struct comm_member *manager = &line->team->view.members[0];

    if (st == BASE_ERR_TIMEOUT)
        return base_fail(st, "the manager, worker %u, is silent for %.0f seconds", manager->id,
                         DOWNPOUR_MANAGER_PATIENCE);
    return st;
}

/* The next answer that is more than a sign of life. */
static base_status hear(struct downpour_line *line, struct train_answer *answer_p)
{
    base_status st = BASE_OK;

    do {
        listen(line);
        TRY(wait_for(line, &line->heard));
        line->listens = false;
        TRY(train_answer_decode(line->answer, sizeof line->answer, answer_p));
    } while (answer_p->kind == TRAIN_ANSWER_WAIT);
out:
    return st;
}

base_status downpour_line_call(struct downpour_line *line, const struct downpour_call *call,
                               const void *values, size_t length, struct train_answer *answer_p)
{
    base_status st = BASE_OK;
    bool result = call->kind == DOWNPOUR_CALL_RESULT || call->kind == DOWNPOUR_CALL_PUSH;

    downpour_call_encode(call, line->call);
    comm_engine_send(engine_of(line), 0, COMM_CALLS, TRAIN_TAG_CALL, line->call, sizeof line->call,
                     &line->said);
    if (result)
        comm_engine_send(engine_of(line), 0, COMM_CALLS, TRAIN_TAG_VALUES, values, length,
                         &line->values);
    TRY(wait_for(line, &line->said));
    if (result)
        TRY(wait_for(line, &line->values));
    if (call->kind != DOWNPOUR_CALL_BYE)
        TRY(hear(line, answer_p));
out:
    return st;
}

base_status downpour_line_fetch(struct downpour_line *line, void *weights, size_t room,
                                size_t *length_p)
{
    base_status st = BASE_OK;
    const struct comm_request *message = &line->values.request;

    *length_p = 0;
    comm_engine_receive_any(engine_of(line), 0, COMM_CALLS, weights, room, &line->values);
    TRY(wait_for(line, &line->values));
    if (message->tag != TRAIN_TAG_WEIGHTS || message->count > room)
        TRY(base_fail(BASE_ERR_DATA, "the manager sent %zu bytes under tag %u in place of weights",
                      message->count, message->tag));
    *length_p = message->count;
out:
    return st;
}

base_status downpour_line_look(struct downpour_line *line, bool *over_p,
                               struct train_answer *answer_p)
{
    base_status st = BASE_OK;

    *over_p = false;
    listen(line);
    if (!atomic_load(&line->heard.ended))
        return BASE_OK;
    TRY(hear(line, answer_p));
    *over_p = answer_p->kind == TRAIN_ANSWER_CLOSE;
out:
    return st;
}
