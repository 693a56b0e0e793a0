/* SPDX-License-Identifier: MIT */
#include "recsys/rank.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/gauss.h"
#include "recsys/model_private.h"

enum {
    GROUP = 16,            /* wishes that go over a block of items together */
    BLOCK_BYTES = 1 << 18, /* of the items' rows in a block */
    LEAST_BLOCK = 16,
    MOST_BLOCK = 1024,
};

/* ---- the n best: a heap whose root is the worst of them ---- */

static bool is_better(struct recsys_pick a, struct recsys_pick b)
{
    return a.score > b.score || (a.score == b.score && a.item < b.item);
}

static void sift_down(struct recsys_pick *heap, uint32_t count, uint32_t at)
{
    const struct recsys_pick moved = heap[at];

    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_better(heap[child], heap[child + 1]))
            child++;
        if (!is_better(moved, heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void heap_add(struct recsys_pick *heap, uint32_t n, uint32_t *count, struct recsys_pick pick)
{
    uint32_t at = *count;

    if (at == n) {
        if (n > 0 && is_better(pick, heap[0])) {
            heap[0] = pick;
            sift_down(heap, n, 0);
        }
        return;
    }
    for (*count += 1; at > 0 && is_better(heap[(at - 1) / 2], pick); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = pick;
}

/* The best first. */
static void heap_sort(struct recsys_pick *heap, uint32_t count)
{
    for (uint32_t left = count; left > 1; left--) {
        const struct recsys_pick worst = heap[0];

        heap[0] = heap[left - 1];
        heap[left - 1] = worst;
        sift_down(heap, left - 1, 0);
    }
}

/* ---- many users, all items ---- */

struct ranking {
    const struct recsys_fit *fit;
    const struct recsys_wish *wishes;
    const bool *barred;
    uint32_t count, n, block, group;
    struct recsys_pick *picks;
    uint32_t *found;
    bool *broken; /* (groups) a guess is not a number */
};

void recsys_scores(const struct recsys_fit *fit, const float *row, uint32_t from, uint32_t to,
                   float *scores)
{
    if (fit->model->scores != NULL)
        fit->model->scores(fit, row, from, to, scores);
    else
        for (uint32_t i = from; i < to; i++)
            scores[i - from] = fit->model->guess(fit, row, i, 0).value;
}

/* Adds the items of a block to a wish's heap. *seen_at: how many of those it has seen are passed.
 */
static bool add_block(const struct ranking *r, uint32_t wish, uint32_t from, const float *scores,
                      uint64_t *seen_at)
{
    const struct recsys_wish *w = &r->wishes[wish];
    const uint32_t to = r->fit->items - from < r->block ? r->fit->items : from + r->block;
    struct recsys_pick *heap = r->picks + (size_t)wish * r->n;

    for (uint32_t i = from; i < to; i++) {
        const float score = scores[i - from];

        if (isnan(score))
            return false;
        while (*seen_at < w->seen_count && w->seen[*seen_at] < i)
            ++*seen_at;
        if ((*seen_at < w->seen_count && w->seen[*seen_at] == i) ||
            (r->barred != NULL && r->barred[i]))
            continue;
        heap_add(heap, r->n, &r->found[wish], (struct recsys_pick){i, score});
    }
    return true;
}

static void rank_group(const void *context, int unit, int thread)
{
    const struct ranking *r = context;
    const uint32_t first = (uint32_t)unit * r->group;
    const uint32_t count = r->count - first < r->group ? r->count - first : r->group;
    uint64_t seen_at[GROUP] = {0};
    float scores[MOST_BLOCK] = {0};

    (void)thread;
    for (uint32_t from = 0; from < r->fit->items && !r->broken[unit]; from += r->block) {
        const uint32_t to = r->fit->items - from < r->block ? r->fit->items : from + r->block;

        for (uint32_t w = 0; w < count; w++) {
            recsys_scores(r->fit, r->wishes[first + w].row, from, to, scores);
            r->broken[unit] |= !add_block(r, first + w, from, scores, &seen_at[w]);
        }
    }
    for (uint32_t w = 0; w < count; w++)
        heap_sort(r->picks + (size_t)(first + w) * r->n, r->found[first + w]);
}

/* Items of a block, by the size of a user's row: an item's is about the same. */
static uint32_t block_of(const struct recsys_fit *fit)
{
    const uint32_t items = BLOCK_BYTES / (recsys_row_floats(fit) * (uint32_t)sizeof(float));

    return items < LEAST_BLOCK ? LEAST_BLOCK : items < MOST_BLOCK ? items : MOST_BLOCK;
}

base_status recsys_rank(const struct recsys_fit *fit, const struct recsys_wish *wishes,
                        uint32_t count, const bool *barred, uint32_t n, struct recsys_pick *picks,
                        uint32_t *found)
{
    const uint32_t threads = (uint32_t)base_team_threads(fit->team);
    const uint32_t each = (count + threads - 1) / threads, group = each < GROUP ? each : GROUP;
    const uint32_t groups = group > 0 ? (count + group - 1) / group : 0;
    const struct ranking r = {
        fit,           wishes, barred, count, n,
        block_of(fit), group,  picks,  found, base_calloc(groups + 1, sizeof(bool))};
    bool broken = false;

    memset(found, 0, count * sizeof *found);
    base_team_run(fit->team, (int)groups, rank_group, &r);
    for (uint32_t g = 0; g < groups; g++)
        broken |= r.broken[g];
    base_free(r.broken);
    return broken ? base_fail(BASE_ERR_DIVERGED, "the model's guesses are not numbers") : BASE_OK;
}

/* ---- similar items ---- */

/* The factors of an item less `mean` (or all of them: NULL), in place of biases zeros. */
static void factors_of(const struct recsys_fit *fit, uint32_t item, const double *mean, double *to)
{
    const struct recsys_traits *t = &fit->traits;
    const uint32_t width = fit->buffers[t->buffer].width;
    const float *row = recsys_at(fit, t->buffer, item);

    for (uint32_t f = 0; f < width; f++)
        to[f] = f < t->end && f % t->period < t->factors
                    ? (double)row[f] - (mean != NULL ? mean[f] : 0)
                    : 0;
}

base_status recsys_similar(const struct recsys_fit *fit, uint32_t item, uint32_t n,
                           struct recsys_pick *picks, uint32_t *found_p)
{
    base_status st = BASE_OK;
    const uint32_t width = fit->buffers[fit->traits.buffer].width;
    double *mean = NULL, *own = NULL, *other = NULL, own_length;

    *found_p = 0;
    if (fit->traits.factors == 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "the model %s has no factors of items that could be compared; mf, bmf and "
                      "ials have",
                      fit->model->name));
    TRY(base_tensor(width, sizeof *mean, "factors", &mean));
    TRY(base_tensor(width, sizeof *own, "factors", &own));
    TRY(base_tensor(width, sizeof *other, "factors", &other));
    for (uint32_t i = 0; i < fit->items; i++) {
        factors_of(fit, i, NULL, other);
        for (uint32_t f = 0; f < width; f++)
            mean[f] += other[f] / fit->items;
    }
    factors_of(fit, item, mean, own);
    own_length = sqrt(recsys_product(own, own, (int)width));
    for (uint32_t i = 0; i < fit->items; i++) {
        double length;

        factors_of(fit, i, NULL, other);
        if (i == item || recsys_product(other, other, (int)width) == 0)
            continue;
        factors_of(fit, i, mean, other);
        length = own_length * sqrt(recsys_product(other, other, (int)width));
        heap_add(picks, n, found_p,
                 (struct recsys_pick){
                     i, (float)(length > 0 ? recsys_product(own, other, (int)width) / length : 0)});
    }
    heap_sort(picks, *found_p);
out:
    base_free(mean);
    base_free(own);
    base_free(other);
    return st;
}
