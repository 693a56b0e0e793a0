/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/mail.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "base/mem.h"

static void ring_letters_add(struct ring_letters *list, struct ring_letter *letter)
{
    letter->next = NULL;
    if (list->first == NULL)
        list->first = letter;
    else
        list->last->next = letter;
    list->last = letter;
}

static struct ring_letter *ring_letters_pop(struct ring_letters *list)
{
    struct ring_letter *letter = list->first;

    if (letter != NULL)
        list->first = letter->next;
    return letter;
}

/* ---- the plan ---- */

int ring_mail_limit(const struct ring_cut *cut, int stage, int64_t pieces)
{
    int most = cut->stages - stage + cut->spare;

    if (cut->overlap && most < 2 * cut->spare)
        most = 2 * cut->spare;
    return pieces < most ? (int)pieces : most;
}

static enum comm_channel ring_channel(enum ring_way way)
{
    return way == RING_FORWARD ? COMM_FORWARD : COMM_BACKWARD;
}

/* The lane of a peer and a way; of this worker itself one for each boundary. */
static struct ring_lane *ring_lane_of(struct ring_mail *mail, int peer, enum ring_way way)
{
    struct ring_lane *lane = mail->lanes;

    for (; lane < mail->lanes + mail->lane_count; lane++)
        if (lane->peer == peer && lane->channel == ring_channel(way) && peer != mail->rank)
            return lane;
    mail->lane_count++;
    *lane = (struct ring_lane){.peer = peer, .channel = ring_channel(way)};
    return lane;
}

/* The stage from which, or to which, `stage` passes on this way: -1 where the model ends. */
static int ring_next_stage(const struct ring_cut *cut, int stage, enum ring_way way)
{
    int next = way == RING_FORWARD ? stage + 1 : stage - 1;

    return next < cut->stages ? next : -1;
}

static int ring_former_stage(const struct ring_cut *cut, int stage, enum ring_way way)
{
    return ring_next_stage(cut, stage, way == RING_FORWARD ? RING_BACKWARD : RING_FORWARD);
}

static size_t ring_crossing(const struct nn_graph *graph, const struct ring_cut *cut, int a, int b)
{
    return ring_cut_crossing(graph, cut->first[a > b ? a : b]);
}

static void ring_mail_plan_way(struct ring_mail *mail, const struct nn_graph *graph,
                               const struct ring_cut *cut, int track, enum ring_way way, int piece,
                               int64_t pieces)
{
    int stage = mail->stages[track], from = ring_former_stage(cut, stage, way),
        to = ring_next_stage(cut, stage, way);
    struct ring_outlet *out = &mail->out[track][way];

    if (from >= 0) {
        struct ring_lane *lane = ring_lane_of(mail, ring_cut_worker(cut, from), way);
        size_t room = ring_crossing(graph, cut, from, stage) * (size_t)piece;

        mail->in[track][way].lane = lane;
        lane->count += ring_mail_limit(cut, way == RING_FORWARD ? from : stage, pieces);
        lane->room = lane->room > room ? lane->room : room;
    }
    *out = (struct ring_outlet){.peer = -1};
    if (to >= 0)
        *out = (struct ring_outlet){.peer = ring_cut_worker(cut, to),
                                    .stage = to,
                                    .count = pieces < RING_PARCELS ? (int)pieces : RING_PARCELS,
                                    .room = ring_crossing(graph, cut, stage, to) * (size_t)piece};
}

/* What leaves for a stage of this worker is put where that one looks for it. */
static void ring_mail_join(struct ring_mail *mail, struct ring_outlet *out, enum ring_way way)
{
    for (int i = 0; i < mail->count && out->peer == mail->rank; i++)
        if (mail->stages[i] == out->stage)
            out->inlet = &mail->in[i][way];
}

void ring_mail_plan(struct ring_mail *mail, const struct nn_graph *graph,
                    const struct ring_cut *cut, int rank, int piece, int64_t pieces)
{
    *mail = (struct ring_mail){.rank = rank};
    mail->count = ring_cut_stages(cut, rank, mail->stages);
    for (int i = 0; i < mail->count; i++)
        for (enum ring_way way = RING_FORWARD; way < RING_WAYS; way++)
            ring_mail_plan_way(mail, graph, cut, i, way, piece, pieces);
    for (int i = 0; i < mail->count; i++)
        for (enum ring_way way = RING_FORWARD; way < RING_WAYS; way++)
            ring_mail_join(mail, &mail->out[i][way], way);
}

double ring_mail_bytes(const struct ring_mail *mail)
{
    double floats = 0;

    for (int i = 0; i < mail->lane_count; i++)
        floats += (double)mail->lanes[i].count * (double)mail->lanes[i].room;
    for (int i = 0; i < mail->count; i++)
        for (int way = 0; way < RING_WAYS; way++)
            if (mail->out[i][way].inlet == NULL)
                floats += (double)mail->out[i][way].count * (double)mail->out[i][way].room;
    return floats * sizeof(float);
}

base_status ring_mail_allocate(struct ring_mail *mail)
{
    base_status st = BASE_OK;

    for (int i = 0; i < mail->lane_count; i++) {
        struct ring_lane *lane = &mail->lanes[i];

        lane->letters = base_calloc((size_t)lane->count, sizeof *lane->letters);
        for (int j = 0; j < lane->count; j++) {
            TRY(base_tensor(lane->room, sizeof(float), "what neighbours send",
                            &lane->letters[j].floats));
            ring_letters_add(&lane->unused, &lane->letters[j]);
        }
    }
    for (int i = 0; i < mail->count; i++)
        for (int way = 0; way < RING_WAYS; way++) {
            struct ring_outlet *out = &mail->out[i][way];

            for (int j = 0; j < out->count && out->inlet == NULL; j++)
                TRY(base_tensor(out->room, sizeof(float), "what goes to neighbours",
                                &out->parcels[j].floats));
        }
out:
    return st;
}

void ring_mail_free(struct ring_mail *mail)
{
    for (int i = 0; i < mail->lane_count; i++) {
        struct ring_lane *lane = &mail->lanes[i];

        for (int j = 0; lane->letters != NULL && j < lane->count; j++)
            base_free(lane->letters[j].floats);
        base_free(lane->letters);
    }
    for (int i = 0; i < mail->count; i++)
        for (int way = 0; way < RING_WAYS; way++)
            for (int j = 0; j < mail->out[i][way].count; j++)
                base_free(mail->out[i][way].parcels[j].floats);
    *mail = (struct ring_mail){0};
}

/* ---- messages ---- */

static void ring_lane_ask(struct ring_mail *mail, struct ring_lane *lane)
{
    while (lane->due > 0 && lane->unused.first != NULL) {
        struct ring_letter *letter = ring_letters_pop(&lane->unused);

        comm_engine_receive_any(mail->engine, lane->peer, lane->channel, letter->floats,
                                lane->room * sizeof(float), &letter->task);
        ring_letters_add(&lane->asked, letter);
        lane->due--;
    }
}

void ring_mail_begin(struct ring_mail *mail, int pieces)
{
    for (int i = 0; i < mail->count; i++)
        for (int way = 0; way < RING_WAYS; way++)
            if (mail->in[i][way].lane != NULL && mail->in[i][way].lane->peer != mail->rank)
                mail->in[i][way].lane->due += pieces;
    for (int i = 0; i < mail->lane_count; i++)
        ring_lane_ask(mail, &mail->lanes[i]);
}

/* A letter that has come goes to the stage that its tag names. */
static base_status ring_lane_sort(struct ring_mail *mail, struct ring_lane *lane)
{
    base_status st = BASE_OK;
    struct ring_letter *letter = ring_letters_pop(&lane->asked);
    const struct comm_request *came = &letter->task.request;
    enum ring_way way = lane->channel == COMM_FORWARD ? RING_FORWARD : RING_BACKWARD;

    TRY(comm_engine_wait(mail->engine, &letter->task, base_now()));
    letter->count = came->count / sizeof(float);
    for (int i = 0; i < mail->count; i++)
        if ((uint32_t)mail->stages[i] == came->tag && mail->in[i][way].lane == lane) {
            ring_letters_add(&mail->in[i][way].come, letter);
            goto out;
        }
    TRY(base_fail(BASE_ERR_DATA, "rank %d sent rank %d a message for stage %u, which it lacks",
                  lane->peer, mail->rank, came->tag));
out:
    return st;
}

static bool ring_task_ended(const struct comm_task *task)
{
    return atomic_load_explicit(&task->ended, memory_order_acquire);
}

/* Parcels that have gone can be filled again. */
static base_status ring_outlet_look(const struct ring_mail *mail, struct ring_outlet *out)
{
    base_status st = BASE_OK;

    for (int i = 0; i < out->count; i++) {
        struct ring_parcel *parcel = &out->parcels[i];

        if (!parcel->sending || !ring_task_ended(&parcel->task))
            continue;
        TRY(comm_engine_wait(mail->engine, &parcel->task, base_now()));
        parcel->sending = false;
    }
out:
    return st;
}

base_status ring_mail_look(struct ring_mail *mail)
{
    base_status st = BASE_OK;

    for (int i = 0; i < mail->lane_count; i++)
        while (mail->lanes[i].asked.first != NULL &&
               ring_task_ended(&mail->lanes[i].asked.first->task))
            TRY(ring_lane_sort(mail, &mail->lanes[i]));
    for (int i = 0; i < mail->count; i++)
        for (int way = 0; way < RING_WAYS; way++)
            TRY(ring_outlet_look(mail, &mail->out[i][way]));
out:
    return st;
}

base_status ring_mail_wait(struct ring_mail *mail, struct train_clock *clock)
{
    struct comm_task *tasks[RING_MAX_LAPS * RING_WAYS * RING_PARCELS + 2 * RING_WAYS];
    int count = 0, index;
    double began = base_now();
    base_status st;

    for (int i = 0; i < mail->lane_count; i++)
        if (mail->lanes[i].asked.first != NULL)
            tasks[count++] = &mail->lanes[i].asked.first->task;
    for (int i = 0; i < mail->count; i++)
        for (int way = 0; way < RING_WAYS; way++)
            for (int j = 0; j < mail->out[i][way].count; j++)
                if (mail->out[i][way].parcels[j].sending)
                    tasks[count++] = &mail->out[i][way].parcels[j].task;
    if (count == 0)
        return base_fail(BASE_ERR_INTERNAL, "rank %d of the ring waits for nothing", mail->rank);
    st = comm_engine_poll(mail->engine, tasks, count, INFINITY, UINT32_MAX, &index);
    train_clock_move(clock, TRAIN_WAIT, base_now() - began);
    return st;
}

static bool ring_outlet_sends(const struct ring_outlet *out)
{
    bool sends = false;

    for (int i = 0; i < out->count; i++)
        sends |= out->parcels[i].sending;
    return sends;
}

base_status ring_mail_end(struct ring_mail *mail, struct train_clock *clock)
{
    base_status st = BASE_OK;

    for (int i = 0; i < mail->count; i++)
        for (int way = 0; way < RING_WAYS; way++)
            while (ring_outlet_sends(&mail->out[i][way])) {
                TRY(ring_mail_wait(mail, clock));
                TRY(ring_mail_look(mail));
            }
out:
    return st;
}

bool ring_mail_came(const struct ring_mail *mail, int track, enum ring_way way)
{
    return mail->in[track][way].come.first != NULL;
}

bool ring_mail_clear(const struct ring_mail *mail, int track, enum ring_way way)
{
    const struct ring_outlet *out = &mail->out[track][way];

    return out->inlet != NULL ? out->inlet->lane->unused.first != NULL
                              : !out->parcels[out->next].sending;
}

base_status ring_mail_take(struct ring_mail *mail, int track, enum ring_way way, size_t count,
                           const float **floats_p)
{
    const struct ring_inlet *in = &mail->in[track][way];

    *floats_p = in->come.first->floats;
    if (in->come.first->count == count)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA, "rank %d sent %zu floats for stage %d of rank %d, not %zu",
                     in->lane->peer, in->come.first->count, mail->stages[track], mail->rank, count);
}

void ring_mail_done(struct ring_mail *mail, int track, enum ring_way way)
{
    struct ring_inlet *in = &mail->in[track][way];

    ring_letters_add(&in->lane->unused, ring_letters_pop(&in->come));
    ring_lane_ask(mail, in->lane);
}

float *ring_mail_room(struct ring_mail *mail, int track, enum ring_way way)
{
    struct ring_outlet *out = &mail->out[track][way];

    if (out->inlet == NULL)
        return out->parcels[out->next].floats;
    out->letter = ring_letters_pop(&out->inlet->lane->unused);
    return out->letter->floats;
}

void ring_mail_send(struct ring_mail *mail, int track, enum ring_way way, size_t count)
{
    struct ring_outlet *out = &mail->out[track][way];
    struct ring_parcel *parcel = &out->parcels[out->next];

    assert(count <= out->room);
    if (out->inlet != NULL) {
        out->letter->count = count;
        ring_letters_add(&out->inlet->come, out->letter);
        return;
    }
    parcel->sending = true;
    out->next = (out->next + 1) % out->count;
    comm_engine_send(mail->engine, out->peer, ring_channel(way), (uint32_t)out->stage,
                     parcel->floats, count * sizeof(float), &parcel->task);
}
