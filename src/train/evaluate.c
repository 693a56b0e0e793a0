/* SPDX-License-Identifier: MIT */
#include "train/evaluate.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/stop.h"

static base_status pass_network(void *context, const struct data_batch *b,
                                struct train_tally *tally)
{
    base_status st = BASE_OK;
    struct nn_net *net = context;
    struct nn_outcome outcome;

    TRY(nn_net_forward(
        net,
        &(struct nn_batch){.n = (int)b->count,
                           .x = b->x,
                           .samples = {.labels = b->numbers == NULL ? b->labels : NULL,
                                       .targets = b->numbers,
                                       .ids = b->ids}},
        false, &outcome));
    if (b->count > 0)
        TRY(train_tally_add(tally, b, net, &outcome));
out:
    return st;
}

base_status train_evaluate_by(struct train_pass pass, const struct data_set *set,
                              enum data_part part, struct data_share share, int batch, bool in_step,
                              struct train_tally *tally, struct train_clock *clock,
                              struct train_pace *pace)
{
    base_status st = BASE_OK;
    const uint32_t whole = data_describe(set)->count[part];
    uint32_t first, count, passes = 0, *ids;
    struct data_loader *loader = NULL;
    enum train_category was = clock->current;

    data_share_of(share, whole, &first, &count);
    ids = base_calloc(count, sizeof *ids);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = first + i;
    TRY(data_loader_new(set, part, (uint32_t)batch, (struct data_share){0}, 0,
                        (struct data_augment){0}, &loader));
    TRY(data_loader_begin(loader, 0, ids, count));
    for (;;) {
        struct data_batch b;
        double asked = base_now();

        if (share.total <= 1 && base_stop_signal() != 0) /* the others wait for their sum */
            TRY(base_fail(BASE_ERR_INTERRUPTED, "stopped while evaluating"));
        train_clock_enter(clock, TRAIN_DATA);
        TRY(data_loader_next(loader, &b));
        train_clock_enter(clock, was);
        if (b.count == 0)
            break;
        passes++;
        TRY(pass.batch(pass.context, &b, tally));
        if (pace != NULL)
            train_pace_add(pace, base_now() - asked, b.count);
    }
    for (; in_step && passes * (uint64_t)batch < data_share_most(share, whole); passes++)
        TRY(pass.batch(pass.context, &(struct data_batch){0}, tally));
out:
    train_clock_enter(clock, was);
    data_loader_free(loader);
    base_free(ids);
    return st;
}

base_status train_evaluate(struct nn_net *net, const struct data_set *set, enum data_part part,
                           struct data_share share, int batch, bool in_step,
                           struct train_tally *tally, struct train_clock *clock,
                           struct train_pace *pace)
{
    return train_evaluate_by((struct train_pass){pass_network, net}, set, part, share, batch,
                             in_step, tally, clock, pace);
}
