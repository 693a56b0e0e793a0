/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/run.h"

#include <assert.h>
#include <string.h>

#include "nn/simd/simd.h"
#include "train/tally.h"

/* ---- what crosses a cut ---- */

enum { MAX_EDGES = 64 };

/* The edge of a stage over which it gets what comes on this way (`enters`), or gives. */
static int ring_edges(const struct nn_net *net, enum ring_way way, bool enters,
                      struct nn_edge edges[MAX_EDGES])
{
    int count = (way == RING_FORWARD) == enters ? nn_net_entering(net, edges, MAX_EDGES)
                                                : nn_net_leaving(net, edges, MAX_EDGES);

    assert(count <= MAX_EDGES);
    return count;
}

/* Takes what has come: activations, or gradients. Scoring only tells that a micro-batch is done. */
static base_status ring_receive(const struct ring_run *run, int track, enum ring_way way, int n)
{
    base_status st = BASE_OK;
    struct ring_mail *mail = &run->stages->mail;
    const struct nn_net *net = run->stages->at[track].net;
    struct nn_edge edges[MAX_EDGES];
    bool empty = way == RING_BACKWARD && run->tally != NULL;
    int count = empty ? 0 : ring_edges(net, way, true, edges);
    const float *floats = NULL;
    size_t all = 0;

    if (mail->in[track][way].lane == NULL)
        return BASE_OK;
    for (int i = 0; i < count; i++)
        all += (size_t)n * nn_shape_floats(edges[i].shape);
    TRY(ring_mail_take(mail, track, way, all, &floats));
    for (int i = 0; i < count; i++) {
        size_t part = (size_t)n * nn_shape_floats(edges[i].shape);
        float *to = way == RING_FORWARD ? edges[i].values : edges[i].gradients;

        if (to != NULL) /* no layer there learns from it */
            memcpy(to, floats, part * sizeof(float));
        floats += part;
    }
    ring_mail_done(mail, track, way);
out:
    return st;
}

static void ring_pass_on(const struct ring_run *run, int track, enum ring_way way, int n)
{
    struct ring_mail *mail = &run->stages->mail;
    const struct nn_net *net = run->stages->at[track].net;
    struct nn_edge edges[MAX_EDGES];
    bool empty = way == RING_BACKWARD && run->tally != NULL;
    int count = empty ? 0 : ring_edges(net, way, false, edges);
    float *room, *to;

    if (mail->out[track][way].peer < 0)
        return;
    room = to = ring_mail_room(mail, track, way);
    for (int i = 0; i < count; i++) {
        size_t part = (size_t)n * nn_shape_floats(edges[i].shape);
        const float *from = way == RING_FORWARD ? edges[i].values : edges[i].gradients;

        if (from != NULL)
            memcpy(to, from, part * sizeof(float));
        else
            memset(to, 0, part * sizeof(float));
        to += part;
    }
    ring_mail_send(mail, track, way, (size_t)(to - room));
}

/* ---- moves ---- */

/* Samples [*at_p, *at_p + the result) of the batch are this micro-batch. */
static int ring_piece(const struct ring_run *run, int piece, uint32_t *at_p)
{
    uint32_t most = (uint32_t)run->stages->piece, at = (uint32_t)piece * most,
             left = run->batch->count - at;

    *at_p = at;
    return (int)(left < most ? left : most);
}

static base_status ring_count_outcome(struct ring_run *run, const struct nn_net *net, uint32_t at,
                                      int n, const struct nn_outcome *o)
{
    const struct data_batch *b = run->batch;
    struct data_batch part = {.count = (uint32_t)n,
                              .whole = b->whole,
                              .labels = b->labels + at,
                              .numbers = b->numbers != NULL ? b->numbers + at : NULL,
                              .ids = b->ids + at};

    if (run->tally != NULL)
        return train_tally_add(run->tally, &part, net, o);
    run->outcome.loss_sum += o->loss_sum;
    run->outcome.correct += o->correct;
    run->outcome.seen += n;
    return BASE_OK;
}

static base_status ring_forward(struct ring_run *run, int track, int piece)
{
    base_status st = BASE_OK;
    const struct data_batch *b = run->batch;
    struct train_session *s = run->session;
    struct nn_net *net = run->stages->at[track].net;
    struct nn_outcome o;
    uint32_t at;
    int n = ring_piece(run, piece, &at);
    struct nn_batch batch = {
        .n = n,
        .x = b->x + at * run->sample,
        .samples = {.labels = b->numbers == NULL ? b->labels + at : NULL,
                    .targets = b->numbers != NULL ? b->numbers + at : NULL,
                    .ids = b->ids + at,
                    .epoch = run->tally == NULL ? (uint32_t)s->state.position.epoch : 0,
                    .seed = run->tally == NULL ? (uint64_t)s->job->seed : 0},
    };

    TRY(ring_receive(run, track, RING_FORWARD, n));
    TRY(nn_net_forward(net, &batch, run->tally == NULL, &o));
    if (run->rule.at[track].last)
        TRY(ring_count_outcome(run, net, at, n, &o));
    ring_pass_on(run, track, RING_FORWARD, n);
    if (run->tally == NULL && ++run->forwards == 1)
        train_fault_at(&s->fault, "forward", s->team.exchange.step);
out:
    return st;
}

/* Where gradients of a micro-batch are added to those before it. */
struct ring_sum {
    float *sum;
    const float *gradients;
};

static void ring_add(void *context, size_t from, size_t count)
{
    const struct ring_sum *s = context;

    nn_simd()->add(count, s->sum + from, s->gradients + from, s->sum + from);
}

/* Gradients of one micro-batch: of all its activations, with those of weights that come at the same
 * time (job -1), or those of weights of a layer that was left out then. The first micro-batch's
 * are the beginning of the sum. */
static base_status ring_learn(struct ring_run *run, int track, int piece, int job)
{
    struct ring_stage *stage = &run->stages->at[track];
    struct ring_sum sum = {run->older != NULL ? stage->next_sum : stage->sum,
                           run->stages->gradients};
    const struct nn_ready ready = {piece == 0 ? NULL : ring_add, &sum};

    nn_net_gradients_at(stage->net, piece == 0 ? sum.sum : run->stages->gradients);
    if (job >= 0)
        return nn_net_backward_deferred(stage->net, job, ready);
    return nn_net_backward(stage->net, 1.0f / (float)run->batch->whole, ready);
}

static base_status ring_backward(struct ring_run *run, int track, int piece)
{
    base_status st = BASE_OK;
    uint32_t at;
    int n = ring_piece(run, piece, &at);

    TRY(ring_receive(run, track, RING_BACKWARD, n));
    if (run->tally == NULL) {
        TRY(ring_learn(run, track, piece, -1));
        train_fault_nth(&run->session->fault, "backward", ++run->backwards,
                        run->session->team.exchange.step);
    }
    ring_pass_on(run, track, RING_BACKWARD, n);
out:
    return st;
}

/* Where two batches are open each has weights of its own. */
static void ring_point(const struct ring_run *run, struct ring_stage *stage)
{
    const struct nn_range *range = &stage->weights;

    if (stage->stash != NULL && run->tally == NULL && run->older == NULL)
        nn_net_weights_at(stage->net, stage->stash);
    else
        nn_net_weights_at(stage->net, train_state_at(&run->session->state, TRAIN_WEIGHTS, 0,
                                                     range->from, range->count));
}

static base_status ring_make(struct ring_run *run, struct ring_move move)
{
    base_status st = BASE_OK;
    struct ring_stage *stage = &run->stages->at[move.track];
    int places = run->stages->rule.at[move.track].limit;

    train_trace_enter_piece(&run->session->trace,
                            move.verb == RING_LEARN    ? TRAIN_DOING_WEIGHTS
                            : move.way == RING_FORWARD ? TRAIN_DOING_FORWARD
                                                       : TRAIN_DOING_BACKWARD,
                            run->stages->mail.stages[move.track], move.piece);
    if (stage->stash != NULL)
        ring_point(run, stage);
    nn_net_piece(stage->net, (int)((run->before + move.piece) % places));
    if (move.verb == RING_LEARN)
        TRY(ring_learn(run, move.track, move.piece, move.job));
    else if (move.way == RING_FORWARD)
        TRY(ring_forward(run, move.track, move.piece));
    else
        TRY(ring_backward(run, move.track, move.piece));
    ring_rule_made(&run->rule, move);
    train_trace_enter(&run->session->trace, TRAIN_DOING_COMPUTE);
out:
    return st;
}

/* The state may have moved. */
void ring_run_begin(struct ring_run *run)
{
    struct ring_stages *r = run->stages;
    int most = r->piece, samples = (int)run->batch->count;

    run->sample = nn_shape_values(nn_graph_input(run->session->state.graph));
    run->rule = r->rule;
    run->rule.pieces = samples / most + (samples % most != 0);
    for (int i = 0; i < r->count; i++) {
        run->rule.at[i].jobs = run->tally == NULL ? nn_net_deferred(r->at[i].net) : 0;
        ring_point(run, &r->at[i]);
    }
    ring_mail_begin(&r->mail, run->rule.pieces);
}

/* What has come is the older run's as long as that one waits for more; it has its micro-batches in
 * flight, too. */
static void ring_look_around(struct ring_run *run)
{
    const struct ring_stages *r = run->stages;
    const struct ring_run *older = run->older;

    for (int i = 0; i < r->count; i++) {
        struct ring_track *track = &run->rule.at[i];
        const struct ring_track *before = older != NULL ? &older->rule.at[i] : NULL;

        for (enum ring_way way = RING_FORWARD; way < RING_WAYS; way++) {
            bool turn = older == NULL || before->done[way] == older->rule.pieces;

            track->came[way] = turn && ring_mail_came(&r->mail, i, way);
            track->clear[way] = turn && ring_mail_clear(&r->mail, i, way);
        }
        track->limit = r->rule.at[i].limit;
        if (older != NULL)
            track->limit -= before->done[RING_FORWARD] - before->learned;
    }
}

/* What to do next, of a run or of the one after it: gradients of weights can wait until that one
 * has to, too. */
static struct ring_move ring_next_move(struct ring_run *run, struct ring_run *next,
                                       struct ring_run **of_p)
{
    struct ring_move move, other;

    *of_p = run;
    ring_look_around(run);
    move = ring_rule_next(&run->rule);
    if (next == NULL || move.verb == RING_RUN || move.verb == RING_END)
        return move;
    ring_look_around(next);
    other = ring_rule_next(&next->rule);
    if (other.verb != RING_RUN && (other.verb != RING_LEARN || move.verb == RING_LEARN))
        return move;
    *of_p = next;
    return other;
}

static bool ring_does_chore(const struct ring_run *run)
{
    const struct ring_chore *chore = &run->stages->chore;

    if (chore->some == NULL || run->tally != NULL || !chore->some(chore->context))
        return false;
    train_trace_enter(&run->session->trace, TRAIN_DOING_COMPUTE);
    return true;
}

base_status ring_run_complete(struct ring_run *run, struct ring_run *next)
{
    base_status st = BASE_OK;
    struct ring_mail *mail = &run->stages->mail;
    struct train_clock *clock = &run->session->clock;

    for (;;) {
        struct ring_run *of;
        struct ring_move move;

        TRY(ring_mail_look(mail));
        move = ring_next_move(run, next, &of);
        if (move.verb == RING_END)
            break;
        if (move.verb == RING_WAIT && ring_does_chore(run))
            continue;
        if (move.verb == RING_WAIT)
            TRY(ring_mail_wait(mail, clock));
        else
            TRY(ring_make(of, move));
    }
    if (next == NULL)
        TRY(ring_mail_end(mail, clock));
out:
    return st;
}

base_status ring_run_learn(struct ring_stages *r, struct train_session *s,
                           const struct data_batch *batch, struct train_outcome *outcome)
{
    struct ring_run run = {.stages = r, .session = s, .batch = batch};
    base_status st;

    ring_run_begin(&run);
    st = ring_run_complete(&run, NULL);
    *outcome = run.outcome;
    return st;
}

base_status ring_run_score(struct ring_stages *r, struct train_session *s,
                           const struct data_batch *batch, struct train_tally *tally)
{
    struct ring_run run = {.stages = r, .session = s, .batch = batch, .tally = tally};

    ring_run_begin(&run);
    return ring_run_complete(&run, NULL);
}
