/* SPDX-License-Identifier: MIT */
#include "train/evaluate.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/stop.h"

base_status train_evaluate(struct nn_net *net, const struct data_set *set, enum data_part part,
                           struct data_share share, int batch, bool in_step,
                           struct train_tally *tally, struct train_clock *clock,
                           struct train_pace *pace)
{
    base_status st = BASE_OK;
    const uint32_t whole = data_describe(set)->count[part];
    uint32_t first, count, passes = 0, *ids;
    struct nn_outcome outcome;
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
        TRY(nn_net_forward(
            net,
            &(struct nn_batch){.n = (int)b.count,
                               .x = b.x,
                               .samples = {.labels = b.numbers == NULL ? b.labels : NULL,
                                           .targets = b.numbers,
                                           .ids = b.ids}},
            false, &outcome));
        TRY(train_tally_add(tally, &b, net, &outcome));
        if (pace != NULL)
            train_pace_add(pace, base_now() - asked, b.count);
    }
    for (; in_step && passes * (uint64_t)batch < data_share_most(share, whole); passes++)
        TRY(nn_net_forward(net, &(struct nn_batch){0}, false, &outcome));
out:
    train_clock_enter(clock, was);
    data_loader_free(loader);
    base_free(ids);
    return st;
}
