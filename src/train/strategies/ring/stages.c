/* SPDX-License-Identifier: MIT */
#include "train/strategies/ring/stages.h"

#include "base/mem.h"

/* ---- memory ---- */

static void ring_stage_describe(struct ring_stage *stage, const struct nn_graph *graph,
                                const struct ring_cut *cut, int index)
{
    int first = cut->first[index], last = cut->first[index + 1];

    *stage = (struct ring_stage){.worker = ring_cut_worker(cut, index),
                                 .first = first,
                                 .last = last,
                                 .weights = nn_graph_weights_of(graph, first, last),
                                 .statistics = nn_graph_stats_of(graph, first, last)};
}

/* The stages of the workers before this one, of which it keeps replicas; returns how many. */
static int ring_stages_kept(struct ring_stage kept[RING_MAX_KEPT], const struct nn_graph *graph,
                            const struct ring_cut *cut, int copies, int rank)
{
    int stages[RING_MAX_LAPS], count = 0;

    for (int places = 1; places < copies; places++) {
        int more = ring_cut_stages(cut, ring_cut_near(cut, rank, -places), stages);

        for (int i = 0; i < more; i++)
            ring_stage_describe(&kept[count++], graph, cut, stages[i]);
    }
    return count;
}

base_status ring_stages_memory(const struct nn_graph *graph, const struct ring_options *options,
                               const struct ring_cut *cut, int rank, int64_t pieces, int piece,
                               struct ring_bytes *bytes_p)
{
    base_status st = BASE_OK;
    struct ring_stage kept[RING_MAX_KEPT];
    struct ring_mail *mail = base_calloc(1, sizeof *mail);
    int copies = ring_options_copies(options, cut->workers);
    double largest = 0;

    *bytes_p = (struct ring_bytes){0};
    ring_mail_plan(mail, graph, cut, rank, piece, pieces);
    bytes_p->messages = ring_mail_bytes(mail);
    for (int i = 0; i < mail->count; i++) {
        struct ring_stage stage;
        struct nn_memory memory;

        ring_stage_describe(&stage, graph, cut, mail->stages[i]);
        TRY(nn_net_memory(
            graph,
            &(struct nn_setup){.first = stage.first,
                               .last = stage.last,
                               .n_max = piece,
                               .in_flight = ring_mail_limit(cut, mail->stages[i], pieces),
                               .training = true,
                               .split = ring_options_split(options, cut->workers)},
            &memory));
        bytes_p->activations += (double)memory.activations + (double)memory.scratch;
        bytes_p->gradients += (double)memory.gradients;
        bytes_p->weights += (double)stage.weights.count * sizeof(float);
        largest = (double)memory.gradients > largest ? (double)memory.gradients : largest;
    }
    bytes_p->gradients += pieces > 1 ? largest : 0;
    for (int i = ring_stages_kept(kept, graph, cut, copies, rank); i-- > 0;)
        bytes_p->replicas += (double)kept[i].weights.count * sizeof(float);
    bytes_p->gradients += bytes_p->replicas;
out:
    base_free(mail);
    return st;
}

static base_status ring_stage_open(struct ring_stage *stage, const struct train_session *s,
                                   int in_flight, int piece)
{
    base_status st = BASE_OK;
    const struct ring_options *options = s->options;
    const struct nn_range *range = &stage->weights;

    TRY(base_tensor(range->count, sizeof(float), "summed gradients", &stage->sum));
    TRY(nn_net_new(s->state.graph,
                   &(struct nn_setup){.first = stage->first,
                                      .last = stage->last,
                                      .n_max = piece,
                                      .in_flight = in_flight,
                                      .training = true,
                                      .split = ring_options_split(options, s->team.exchange.size),
                                      .weights = train_state_at(&s->state, TRAIN_WEIGHTS, 0,
                                                                range->from, range->count),
                                      .gradients = stage->sum,
                                      .statistics = s->state.statistics + stage->statistics.from,
                                      .kernels = s->kernels},
                   &stage->net));
out:
    return st;
}

base_status ring_stages_open(struct ring_stages *r, const struct train_session *s, int piece)
{
    base_status st = BASE_OK;
    const struct ring_options *options = s->options;
    const struct train_exchange *x = &s->team.exchange;
    int64_t pieces = options->microbatches;
    size_t largest = 0;

    *r = (struct ring_stages){.piece = piece};
    ring_cut_make(s->state.graph, options, x->size, &r->cut);
    ring_mail_plan(&r->mail, s->state.graph, &r->cut, x->rank, piece, pieces);
    TRY(ring_mail_allocate(&r->mail));
    r->count = r->rule.count = r->mail.count;
    for (int i = 0; i < r->count; i++) {
        int index = r->mail.stages[i], limit = ring_mail_limit(&r->cut, index, pieces);

        r->rule.at[i] = (struct ring_track){
            .first = index == 0, .last = index == r->cut.stages - 1, .limit = limit};
        ring_stage_describe(&r->at[i], s->state.graph, &r->cut, index);
        TRY(ring_stage_open(&r->at[i], s, limit, piece));
        if (r->at[i].weights.count > largest)
            largest = r->at[i].weights.count;
    }
    if (pieces > 1)
        TRY(base_tensor(largest, sizeof(float), "gradients of a micro-batch", &r->gradients));
    r->copies = ring_options_copies(options, x->size);
    r->kept_count = ring_stages_kept(r->kept, s->state.graph, &r->cut, r->copies, x->rank);
    for (int i = 0; i < r->kept_count; i++)
        TRY(base_tensor(r->kept[i].weights.count, sizeof(float), "gradients of a neighbour",
                        &r->kept[i].sum));
out:
    return st;
}

void ring_stages_close(struct ring_stages *r)
{
    for (int i = 0; i < r->count; i++) {
        nn_net_free(r->at[i].net);
        base_free(r->at[i].sum);
    }
    for (int i = 0; i < r->kept_count; i++)
        base_free(r->kept[i].sum);
    base_free(r->gradients);
    ring_mail_free(&r->mail);
    *r = (struct ring_stages){0};
}

bool ring_stages_judge(const struct ring_stages *r)
{
    return r->count > 0 && r->rule.at[r->count - 1].last;
}
