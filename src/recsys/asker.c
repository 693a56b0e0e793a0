/* SPDX-License-Identifier: MIT */
#include "recsys/asker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/model_private.h"

static base_status check_added(const struct recsys_saved *saved, const struct recsys_rating *r)
{
    const struct recsys_scale *scale = &saved->scale;
    struct recsys_id id;

    if (r->item >= saved->fit->items)
        return base_fail(BASE_ERR_DATA, "a rating of an item that the model does not know");
    if (!isfinite(r->value) || r->value < scale->lowest || r->value > scale->highest)
        return base_fail(BASE_ERR_DATA, "item %s is rated %g; the model's ratings are %g … %g",
                         recsys_id_text(&saved->items, r->item, &id), (double)r->value,
                         (double)scale->lowest, (double)scale->highest);
    return BASE_OK;
}

/* Items that come again stand side by side, in the order in which they came: the last one stays. */
static uint32_t keep_last(struct recsys_rating *ratings, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t j = 0; j < count; j++) {
        if (kept > 0 && ratings[kept - 1].item == ratings[j].item)
            kept--;
        ratings[kept++] = ratings[j];
    }
    return kept;
}

/* Added ratings are few and those of training are in order, so an insertion will do; it keeps the
 * order of equals. */
static void insert(struct recsys_rating *ratings, uint32_t count, struct recsys_rating rating)
{
    uint32_t at = count;

    for (; at > 0 && ratings[at - 1].item > rating.item; at--)
        ratings[at] = ratings[at - 1];
    ratings[at] = rating;
}

static base_status collect(const struct recsys_saved *saved, uint32_t user,
                           const struct recsys_rating *added, uint32_t added_count,
                           struct recsys_asker *asker)
{
    base_status st = BASE_OK;
    const struct recsys_rows *rows = &saved->rated;
    const uint64_t from = user < rows->rows ? rows->start[user] : 0;
    const uint64_t own = user < rows->rows ? rows->start[user + 1] - from : 0;
    size_t all;

    TRY(base_add(own, added_count, &all));
    TRY(base_tensor(all + 1, sizeof *asker->ratings, "a user's ratings", &asker->ratings));
    TRY(base_tensor(all + 1, sizeof *asker->seen, "a user's items", &asker->seen));
    for (uint64_t k = from; k < from + own; k++)
        asker->ratings[asker->count++] = (struct recsys_rating){
            .item = rows->column[k], .value = recsys_value(&saved->scale, rows, k)};
    for (uint32_t j = 0; j < added_count; j++) {
        TRY(check_added(saved, &added[j]));
        insert(asker->ratings, asker->count++, added[j]);
    }
    asker->count = keep_last(asker->ratings, asker->count);
    for (uint32_t j = 0; j < asker->count; j++)
        asker->seen[j] = asker->ratings[j].item;
out:
    return st;
}

base_status recsys_asker_init(const struct recsys_saved *saved, uint32_t user,
                              const struct recsys_rating *added, uint32_t added_count,
                              struct recsys_asker *asker)
{
    base_status st = BASE_OK;
    const struct recsys_fit *fit = saved->fit;

    *asker = (struct recsys_asker){0};
    TRY(collect(saved, user, added, added_count, asker));
    asker->wish.seen = asker->seen;
    asker->wish.seen_count = asker->count;
    if (user < fit->users && added_count == 0) {
        asker->wish.row = recsys_at(fit, fit->answers, user);
    } else if (asker->count > 0) {
        TRY(base_tensor(recsys_row_floats(fit), sizeof(float), "a user's row", &asker->folded));
        TRY(recsys_fold(fit, asker->ratings, asker->count, asker->folded));
        asker->wish.row = asker->folded;
    }
out:
    if (st != BASE_OK)
        recsys_asker_fini(asker);
    return st;
}

void recsys_asker_fini(struct recsys_asker *asker)
{
    base_free(asker->ratings);
    base_free(asker->seen);
    base_free(asker->folded);
    *asker = (struct recsys_asker){0};
}

/* ---- explanations ---- */

static int larger_first(const void *a, const void *b)
{
    const struct recsys_cause *x = a, *y = b;

    if (x->part != y->part)
        return x->part > y->part ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

base_status recsys_because(const struct recsys_saved *saved, const struct recsys_asker *asker,
                           uint32_t item, uint32_t most, struct recsys_cause *causes,
                           uint32_t *found_p)
{
    base_status st = BASE_OK;
    float *parts = NULL, rest;
    struct recsys_cause *all = NULL;

    *found_p = 0;
    TRY(base_tensor(asker->count + 1u, sizeof *parts, "an explanation", &parts));
    TRY(base_tensor(asker->count + 1u, sizeof *all, "an explanation", &all));
    TRY(recsys_explain(saved->fit, asker->ratings, asker->count, item, parts, &rest));
    for (uint32_t j = 0; j < asker->count; j++)
        all[j] = (struct recsys_cause){asker->ratings[j].item, asker->ratings[j].value, parts[j]};
    qsort(all, asker->count, sizeof *all, larger_first);
    for (; *found_p < most && *found_p < asker->count && all[*found_p].part > 0; ++*found_p)
        causes[*found_p] = all[*found_p];
out:
    base_free(parts);
    base_free(all);
    return st;
}
