/* SPDX-License-Identifier: MIT */
#include "train/strategies/rotate/place.h"

#include "train/memory.h"
#include "train/shares.h"

static void rotate_want(struct train_holds *wanted, enum train_group group, size_t from, size_t end)
{
    struct train_hold *last = wanted->count > 0 ? &wanted->at[wanted->count - 1] : NULL;

    if (from >= end)
        return;
    if (last != NULL && last->group == group && last->from + last->count == from)
        last->count += end - from;
    else
        wanted->at[wanted->count++] =
            (struct train_hold){.group = group, .from = from, .count = end - from};
}

uint32_t rotate_begin(const struct train_stays *stays, const struct train_shares *shares, int rank)
{
    const bool beyond = rank == shares->size;
    const struct data_share share = train_shares_of(shares, beyond ? rank - 1 : rank);

    return train_rows_begin(stays->work, stays->rows, beyond ? share.to : share.from, share.total);
}

void rotate_place(const struct train_placing *p, int rank, struct train_holds *wanted)
{
    const struct rotate_options *options = p->options;
    const struct train_stays *stays = &p->stays;
    const int replicas = options->replicas < p->size ? (int)options->replicas : p->size;
    const int first = rank - replicas + 1;

    for (enum train_group g = TRAIN_WEIGHTS; g <= TRAIN_SLOTS; g++) {
        size_t begin[3] = {0};

        for (int i = 0; i < 3; i++) {
            const int of = i == 0 ? first : i == 1 ? rank + 1 : first + p->size;

            begin[i] = stays->width * rotate_begin(stays, p->shares,
                                                   of < 0         ? 0
                                                   : of > p->size ? p->size
                                                                  : of);
        }
        if (p->floats[g] == 0)
            continue;
        rotate_want(wanted, g, begin[0], begin[1]);
        if (first < 0)
            rotate_want(wanted, g, begin[2], stays->width * stays->rows);
        rotate_want(wanted, g, stays->width * stays->rows, p->floats[g]);
    }
}

void rotate_memory(const struct train_memory_question *q, struct train_memory *m)
{
    const struct rotate_options *options = q->options;
    const struct train_stays *stays = &q->sizes->stays;
    const double all = (double)stays->rows * (double)stays->width * sizeof(float);
    const struct train_seat *seat = &q->seat;
    const bool copies = options->replicas > 1 && seat->workers > 1;
    const double rest = q->sizes->weights - all;

    if (seat->workers > 1 && seat->shares && seat->locals == seat->workers)
        m->of[TRAIN_MEMORY_SPARE].shared += 2 * (all + rest + rest); /* bundles are the rest */
    else
        m->of[TRAIN_MEMORY_SPARE].own += all / seat->workers * (copies ? 2 : 1) + rest;
}
