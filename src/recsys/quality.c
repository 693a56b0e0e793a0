/* SPDX-License-Identifier: MIT */
#include "recsys/quality.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "recsys/model_private.h"
#include "recsys/rank.h"

static const double RELEVANT_PART = 0.7; /* of the scale, from below: 4 of 5 stars */
enum { BATCH = 1024 };                   /* users whose lists are in memory at once */

/* ---- guesses ---- */

static void set_bins(const struct recsys_scale *scale, struct recsys_quality *q)
{
    const float width = (scale->highest - scale->lowest) / RECSYS_QUALITY_BINS;
    const bool levels = scale->levels > 0 && scale->levels <= RECSYS_QUALITY_BINS;

    q->bins = levels ? (int)scale->levels : RECSYS_QUALITY_BINS;
    for (int b = 0; b < q->bins; b++)
        q->bin[b] = levels ? scale->level[b] : scale->lowest + ((float)b + 0.5f) * width;
}

int recsys_quality_bin(const struct recsys_quality *q, float value)
{
    int nearest = 0;

    for (int b = 1; b < q->bins; b++)
        if (fabsf(q->bin[b] - value) < fabsf(q->bin[nearest] - value))
            nearest = b;
    return nearest;
}

struct confusing {
    const struct recsys_fit *fit;
    const struct recsys_rows *test;
    struct recsys_quality *of_thread; /* counts can be added in any order */
};

static void confuse_range(const void *context, uint32_t from, uint32_t to, int thread)
{
    const struct confusing *c = context;
    struct recsys_quality *q = &c->of_thread[thread];

    for (uint32_t u = from; u < to; u++)
        for (uint64_t k = c->test->start[u]; k < c->test->start[u + 1]; k++) {
            const uint32_t time = c->test->time != NULL ? c->test->time[k] : 0;
            const float guess = recsys_predict(c->fit, u, c->test->column[k], time).value;
            const float truth = recsys_value(c->fit->scale, c->test, k);

            q->confusion[recsys_quality_bin(q, truth)][recsys_quality_bin(q, guess)]++;
        }
}

static void add_confusion(const struct recsys_fit *fit, const struct recsys_rows *test,
                          struct recsys_quality *q)
{
    const int threads = base_team_threads(fit->team);
    const struct confusing c = {fit, test, base_calloc((size_t)threads, sizeof *q)};

    for (int t = 0; t < threads; t++)
        set_bins(fit->scale, &c.of_thread[t]);
    recsys_each_range(fit->team, test->start, 0, test->rows, confuse_range, &c);
    for (int t = 0; t < threads; t++)
        for (int a = 0; a < q->bins; a++)
            for (int b = 0; b < q->bins; b++)
                q->confusion[a][b] += c.of_thread[t].confusion[a][b];
    base_free(c.of_thread);
}

/* ---- lists ---- */

struct listing {
    const struct recsys_fit *fit;
    const struct recsys_rows *train, *test;
    struct recsys_quality *quality;
    struct recsys_wish *wishes; /* (BATCH) */
    uint32_t *user, *found;     /* (BATCH) whose wish it is */
    struct recsys_pick *picks;  /* (BATCH,n) */
    bool *listed, *barred;      /* (items) in some list; in none, being rare */
};

static bool is_relevant(const struct listing *l, uint64_t k)
{
    return l->fit->model->implicit ||
           recsys_value(l->fit->scale, l->test, k) >= l->quality->relevant;
}

static uint64_t count_relevant(const struct listing *l, uint32_t user)
{
    uint64_t count = 0;

    for (uint64_t k = l->test->start[user]; k < l->test->start[user + 1]; k++)
        count += is_relevant(l, k);
    return count;
}

/* Is the item one that the user liked in the tests? */
static bool is_hit(const struct listing *l, uint32_t user, uint32_t item)
{
    uint64_t low = l->test->start[user], high = l->test->start[user + 1];

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (l->test->column[middle] < item)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->test->start[user + 1] && l->test->column[low] == item && is_relevant(l, low);
}

static void judge_list(const struct listing *l, uint32_t wish)
{
    struct recsys_quality *q = l->quality;
    const uint32_t user = l->user[wish];
    const uint64_t relevant = count_relevant(l, user);
    double hits = 0, gain = 0, best = 0;

    for (uint32_t r = 0; r < l->found[wish]; r++) {
        const uint32_t item = l->picks[(size_t)wish * q->n + r].item;

        l->listed[item] = true;
        if (is_hit(l, user, item)) {
            hits++;
            gain += 1 / log2(r + 2);
        }
    }
    for (uint32_t r = 0; r < q->n && r < relevant; r++)
        best += 1 / log2(r + 2);
    q->users++;
    q->precision += hits / q->n;
    q->recall += hits / (double)relevant;
    q->ndcg += gain / best;
}

/* Lists for the users who have something relevant, from *user on; *user: the first that is not
 * judged yet. */
static base_status judge_batch(const struct listing *l, uint32_t *user)
{
    base_status st = BASE_OK;
    const struct recsys_fit *fit = l->fit;
    uint32_t count = 0;

    for (; *user < fit->users && count < BATCH; ++*user) {
        if (count_relevant(l, *user) == 0)
            continue;
        l->user[count] = *user;
        l->wishes[count++] = (struct recsys_wish){
            recsys_at(fit, fit->answers, *user), l->train->column + l->train->start[*user],
            l->train->start[*user + 1] - l->train->start[*user]};
    }
    TRY(recsys_rank(fit, l->wishes, count, l->barred, l->quality->n, l->picks, l->found));
    for (uint32_t w = 0; w < count; w++)
        judge_list(l, w);
out:
    return st;
}

static base_status bar_rare(struct listing *l)
{
    base_status st = BASE_OK;
    uint32_t *count = NULL;

    TRY(base_tensor(l->fit->items, sizeof *l->barred, "rare items", &l->barred));
    TRY(base_tensor(l->fit->items, sizeof *count, "rare items", &count));
    for (uint64_t k = 0; k < l->train->count; k++)
        count[l->train->column[k]]++;
    for (uint32_t i = 0; i < l->fit->items; i++)
        l->barred[i] = count[i] < l->quality->least;
out:
    base_free(count);
    return st;
}

static base_status judge_lists(struct listing *l)
{
    base_status st = BASE_OK;
    struct recsys_quality *q = l->quality;
    uint64_t listed = 0;
    size_t picks;

    TRY(base_mul(BATCH, q->n, &picks));
    TRY(base_tensor(picks, sizeof *l->picks, "lists of items", &l->picks));
    TRY(base_tensor(l->fit->items, sizeof *l->listed, "listed items", &l->listed));
    TRY(bar_rare(l));
    l->wishes = base_calloc(BATCH, sizeof *l->wishes);
    l->user = base_calloc(BATCH, sizeof *l->user);
    l->found = base_calloc(BATCH, sizeof *l->found);
    for (uint32_t user = 0; user < l->fit->users;)
        TRY(judge_batch(l, &user));
    for (uint32_t i = 0; i < l->fit->items; i++)
        listed += l->listed[i];
    q->precision /= (double)q->users;
    q->recall /= (double)q->users;
    q->ndcg /= (double)q->users;
    q->coverage = (double)listed / l->fit->items;
out:
    base_free(l->picks);
    base_free(l->listed);
    base_free(l->barred);
    base_free(l->wishes);
    base_free(l->user);
    base_free(l->found);
    return st;
}

base_status recsys_quality(const struct recsys_fit *fit, const struct recsys_rows *train,
                           const struct recsys_rows *test, uint32_t n, uint32_t least,
                           float relevant, struct recsys_quality *q)
{
    base_status st = BASE_OK;
    const double scale = (double)fit->scale->highest - (double)fit->scale->lowest;
    struct recsys_score score = {0};
    struct listing l = {.fit = fit, .train = train, .test = test, .quality = q};

    *q = (struct recsys_quality){
        .n = n < fit->items ? n : fit->items,
        .least = least,
        .relevant = isnan(relevant) ? (float)((double)fit->scale->lowest + RELEVANT_PART * scale)
                                    : relevant};
    set_bins(fit->scale, q);
    TRY(recsys_score(fit, test, 0, test->rows, &score));
    q->count = test->count;
    q->mae = score.absolute / score.count;
    q->rmse = sqrt(score.squared / score.count);
    if (!fit->model->implicit)
        add_confusion(fit, test, q);
    TRY(judge_lists(&l));
out:
    return st;
}
