/* SPDX-License-Identifier: MIT */
#include "recsys/audit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Users with a score above this count when targets are looked for. */
static const double HIGH = 1.5;

static const double RARE =
                        1e-3, /* the chance of a target in a set without, if ratings were random */
    PRIOR = 2,         /* ratings of the usual value that every item's mean has besides its own */
    SUSPICIOUS = 3,    /* what score and evidence must come to */
    OF_EVIDENCE = 0.4; /* how much a logarithm of the evidence counts */
enum { REACH = 100 };  /* users that one is compared with, on both sides */

enum { LOWEST, HIGHEST, ENDS }; /* of the scale */

struct work {
    const struct recsys_ratings *r;
    struct recsys_audit *audit;
    uint32_t *order;        /* (users) by number of ratings */
    double *mean;           /* (items) */
    uint32_t *degree;       /* (items) */
    uint32_t *high[ENDS];   /* (items) users with high scores that gave it that end of the scale */
    uint32_t *usual[ENDS];  /* (items) other users that did */
    uint32_t *target[ENDS]; /* (items) its number among the targets, from 1; 0: it is none */
    double of_high[ENDS];   /* ratings at that end by users with high scores, an item */
    uint32_t highs, usuals; /* users with high scores; others */
    double *obscurity, *unexplained, *deviation; /* (users) */
};

/* ---- features ---- */

static base_status survey_items(struct work *w)
{
    base_status st = BASE_OK;
    const struct recsys_rows *rows = &w->r->by_user;
    double all = 0;

    TRY(base_tensor(w->r->items, sizeof *w->mean, "items", &w->mean));
    TRY(base_tensor(w->r->items, sizeof *w->degree, "items", &w->degree));
    for (uint64_t k = 0; k < rows->count; k++) {
        w->mean[rows->column[k]] += (double)recsys_value(&w->r->scale, rows, k);
        w->degree[rows->column[k]]++;
    }
    for (uint32_t i = 0; i < w->r->items; i++)
        all += w->mean[i];
    all /= (double)rows->count;
    for (uint32_t i = 0; i < w->r->items; i++)
        w->mean[i] = (w->mean[i] + PRIOR * all) / (w->degree[i] + PRIOR);
out:
    return st;
}

/* Of a user's ratings; its own share in an item's mean is taken out. */
static void measure_user(struct work *w, uint32_t user)
{
    const struct recsys_rows *rows = &w->r->by_user;
    const uint64_t from = rows->start[user], to = rows->start[user + 1];
    double obscurity = 0, deviation = 0;

    for (uint64_t k = from; k < to; k++) {
        const uint32_t item = rows->column[k];
        const double value = (double)recsys_value(&w->r->scale, rows, k);
        const double weight = w->degree[item] + PRIOR;

        obscurity -= log(w->degree[item]);
        deviation += fabs(value - w->mean[item]) * weight / (weight - 1);
    }
    w->obscurity[user] = to > from ? obscurity / (double)(to - from) : 0;
    w->deviation[user] = to > from ? deviation / (double)(to - from) : 0;
}

static int by_size(const void *a, const void *b, void *rows)
{
    const uint64_t *start = ((const struct recsys_rows *)rows)->start;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint64_t m = start[x + 1] - start[x], n = start[y + 1] - start[y];

    return m != n ? (m > n) - (m < n) : (x > y) - (x < y);
}

static base_status measure(struct work *w)
{
    base_status st = BASE_OK;
    const uint32_t users = w->r->users;
    struct recsys_rows rows = w->r->by_user;

    TRY(base_tensor(users, sizeof *w->order, "users", &w->order));
    TRY(base_tensor(users, sizeof *w->obscurity, "users", &w->obscurity));
    TRY(base_tensor(users, sizeof *w->unexplained, "users", &w->unexplained));
    TRY(base_tensor(users, sizeof *w->deviation, "users", &w->deviation));
    TRY(recsys_explained(&rows, RECSYS_AUDIT_COMPONENTS, w->unexplained));
    for (uint32_t u = 0; u < users; u++) {
        w->order[u] = u;
        w->unexplained[u] = -w->unexplained[u];
        measure_user(w, u);
    }
    qsort_r(w->order, users, sizeof *w->order, by_size, &rows);
    TRY(recsys_standardise(w->order, users, REACH, w->obscurity));
    TRY(recsys_standardise(w->order, users, REACH, w->unexplained));
    TRY(recsys_standardise(w->order, users, REACH, w->deviation));
    for (uint32_t u = 0; u < users; u++)
        w->audit->features[u] = (struct recsys_feature){
            w->obscurity[u], w->unexplained[u], w->deviation[u],
            (w->obscurity[u] + w->unexplained[u] + fmax(w->deviation[u], 0)) / 2};
out:
    return st;
}

/* ---- targets ---- */

static int end_of(const struct work *w, uint64_t k)
{
    const float value = recsys_value(&w->r->scale, &w->r->by_user, k);

    return value == w->r->scale.highest ? HIGHEST : value == w->r->scale.lowest ? LOWEST : ENDS;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* The mean of the less popular half of the items: what fillers that are drawn at random come to. */
static base_status measure_fillers(struct work *w)
{
    base_status st = BASE_OK;
    const uint32_t items = w->r->items;
    uint32_t *sorted = NULL, median, count = 0;

    TRY(base_tensor(items, sizeof *sorted, "items", &sorted));
    memcpy(sorted, w->degree, items * sizeof *sorted);
    qsort(sorted, items, sizeof *sorted, by_number);
    median = sorted[items / 2];
    for (uint32_t i = 0; i < items; i++) {
        count += w->degree[i] <= median;
        for (int end = 0; end < ENDS; end++)
            w->of_high[end] += w->degree[i] <= median ? w->high[end][i] : 0;
    }
    for (int end = 0; end < ENDS; end++)
        w->of_high[end] /= count;
out:
    base_free(sorted);
    return st;
}

static base_status count_ends(struct work *w)
{
    base_status st = BASE_OK;
    const struct recsys_rows *rows = &w->r->by_user;

    for (int end = 0; end < ENDS; end++) {
        TRY(base_tensor(w->r->items, sizeof(uint32_t), "items", &w->high[end]));
        TRY(base_tensor(w->r->items, sizeof(uint32_t), "items", &w->usual[end]));
        TRY(base_tensor(w->r->items, sizeof(uint32_t), "items", &w->target[end]));
    }
    for (uint32_t u = 0; u < rows->rows; u++) {
        const bool high = w->audit->features[u].score > HIGH;

        *(high ? &w->highs : &w->usuals) += 1;
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++) {
            const int end = end_of(w, k);

            if (end == ENDS)
                continue;
            (high ? w->high : w->usual)[end][rows->column[k]]++;
        }
    }
out:
    return st;
}

/* How many of the others rate an item so; never 0. */
static double usual_share(const struct work *w, int end, uint32_t item)
{
    return (w->usual[end][item] + 0.5) / (w->usuals + 1.0);
}

/* Users with high scores choose their items otherwise than others do, some at random: as many of
 * them as rate an item of little popularity so are no surprise. */
static bool is_target(const struct work *w, int end, uint32_t item)
{
    const double mean = w->highs * usual_share(w, end, item) + w->of_high[end];

    return recsys_poisson_tail(mean, w->high[end][item]) < log(RARE / (ENDS * (double)w->r->items));
}

static base_status find_targets(struct work *w)
{
    base_status st = BASE_OK;
    struct recsys_audit *a = w->audit;

    TRY(base_tensor((size_t)w->r->items * ENDS, sizeof *a->targets, "items", &a->targets));
    for (int end = 0; end < ENDS; end++)
        for (uint32_t i = 0; i < w->r->items; i++) {
            if (w->highs == 0 || !is_target(w, end, i))
                continue;
            a->targets[a->target_count++] = (struct recsys_target){
                .item = i,
                .value = end == HIGHEST ? w->r->scale.highest : w->r->scale.lowest,
                .share = (double)w->high[end][i] / w->highs,
                .usual = usual_share(w, end, i)};
            w->target[end][i] = a->target_count;
        }
out:
    return st;
}

/* ---- suspects ---- */

/* The user's most telling rating of a target; false: it is not suspicious. */
static bool suspect(const struct work *w, uint32_t user, uint32_t *target_p)
{
    const struct recsys_rows *rows = &w->r->by_user;
    double most = 0;

    for (uint64_t k = rows->start[user]; k < rows->start[user + 1]; k++) {
        const int end = end_of(w, k);
        const uint32_t number = end != ENDS ? w->target[end][rows->column[k]] : 0;
        const struct recsys_target *t = &w->audit->targets[number > 0 ? number - 1 : 0];
        const double evidence = number > 0 ? log(t->share / t->usual) : 0;

        if (evidence > most) {
            most = evidence;
            *target_p = number - 1;
        }
    }
    return most > 0 && w->audit->features[user].score + OF_EVIDENCE * most > SUSPICIOUS;
}

static base_status find_suspects(struct work *w)
{
    base_status st = BASE_OK;
    struct recsys_audit *a = w->audit;
    uint32_t target = 0;

    TRY(base_tensor(w->r->users, sizeof *a->suspects, "users", &a->suspects));
    for (uint32_t u = 0; a->target_count > 0 && u < w->r->users; u++)
        if (suspect(w, u, &target)) {
            a->suspects[a->suspect_count++] = (struct recsys_suspect){u, target};
            a->targets[target].suspects++;
        }
out:
    return st;
}

base_status recsys_audit(const struct recsys_ratings *r, struct recsys_audit *audit)
{
    base_status st = BASE_OK;
    struct work w = {.r = r, .audit = audit};

    *audit = (struct recsys_audit){0};
    if (r->scale.lowest == r->scale.highest)
        TRY(base_fail(BASE_ERR_DATA, "all ratings of %s are %g; fake profiles are told by theirs",
                      r->path, (double)r->scale.lowest));
    TRY(base_tensor(r->users, sizeof *audit->features, "users", &audit->features));
    TRY(survey_items(&w));
    TRY(measure(&w));
    TRY(count_ends(&w));
    TRY(measure_fillers(&w));
    TRY(find_targets(&w));
    TRY(find_suspects(&w));
out:
    for (int end = 0; end < ENDS; end++) {
        base_free(w.high[end]);
        base_free(w.usual[end]);
        base_free(w.target[end]);
    }
    base_free(w.order);
    base_free(w.mean);
    base_free(w.degree);
    base_free(w.obscurity);
    base_free(w.unexplained);
    base_free(w.deviation);
    if (st != BASE_OK)
        recsys_audit_fini(audit);
    return st;
}

void recsys_audit_fini(struct recsys_audit *audit)
{
    base_free(audit->features);
    base_free(audit->targets);
    base_free(audit->suspects);
    *audit = (struct recsys_audit){0};
}
