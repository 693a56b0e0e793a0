/* SPDX-License-Identifier: MIT */
#include "recsys/shill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "recsys/gauss.h"

const char *const recsys_shill_kinds[] = {"random",  "average", "bandwagon",
                                          "segment", "mixed",   NULL};
enum kind { RANDOM, AVERAGE, BANDWAGON, SEGMENT, MIXED, KINDS = MIXED };

enum {
    LEAST_FILLERS = 10,
    POPULAR = 50, /* items that count as popular */
    LOVED = 5,    /* of them in a profile of a segment */
    PIECE = 1 << 20,
    DRAWS_OF_SHILL = 0x5c1, /* apart from what sampling draws */
};

struct shilling {
    const struct recsys_ratings *r;
    const struct recsys_shill *how;
    double mean, deviation; /* of all ratings */
    double *item_mean;      /* (items) */
    uint32_t *degree;       /* (items) their ratings */
    uint32_t *by_degree;    /* (items) the most popular first */
    uint32_t *mark;         /* (items) the last profile that rated it, from 1 */
    uint32_t first_id;      /* of the fake users */
    char **users;           /* (fakes) */
    uint32_t fakes;
    struct base_replacement file;
    struct base_str text; /* not written yet */
};

/* ---- what is known of the items ---- */

static int by_popularity(const void *a, const void *b, void *degree)
{
    const uint32_t *of = degree, x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return of[x] != of[y] ? (of[x] < of[y]) - (of[x] > of[y]) : (x > y) - (x < y);
}

static base_status survey(struct shilling *s)
{
    base_status st = BASE_OK;
    const struct recsys_ratings *r = s->r;
    const struct recsys_rows *rows = &r->by_user;
    double sum = 0, squares = 0;

    TRY(base_tensor(r->items, sizeof *s->item_mean, "items", &s->item_mean));
    TRY(base_tensor(r->items, sizeof *s->degree, "items", &s->degree));
    TRY(base_tensor(r->items, sizeof *s->by_degree, "items", &s->by_degree));
    TRY(base_tensor(r->items, sizeof *s->mark, "items", &s->mark));
    for (uint64_t k = 0; k < rows->count; k++) {
        const double value = (double)recsys_value(&r->scale, rows, k);

        s->item_mean[rows->column[k]] += value;
        s->degree[rows->column[k]]++;
        sum += value;
        squares += value * value;
    }
    s->mean = sum / (double)rows->count;
    s->deviation = sqrt(fmax(squares / (double)rows->count - s->mean * s->mean, 0));
    for (uint32_t i = 0; i < r->items; i++) {
        s->item_mean[i] = s->degree[i] > 0 ? s->item_mean[i] / s->degree[i] : s->mean;
        s->by_degree[i] = i;
    }
    qsort_r(s->by_degree, r->items, sizeof *s->by_degree, by_popularity, s->degree);
out:
    return st;
}

/* ---- text ---- */

static base_status put(struct shilling *s, const char *user, uint32_t item, double value,
                       uint32_t time)
{
    base_status st = BASE_OK;
    struct recsys_id id;

    base_str_add(&s->text, "%s,%s,%g,%u\n", user, recsys_id_text(&s->r->item_ids, item, &id), value,
                 time);
    if (s->text.length > PIECE) {
        TRY(base_replace_write(&s->file, s->text.text, s->text.length));
        s->text.length = 0;
    }
out:
    return st;
}

static base_status copy_honest(struct shilling *s)
{
    base_status st = BASE_OK;
    const struct recsys_rows *rows = &s->r->by_user;
    struct recsys_id id;

    base_str_add(&s->text, "userId,movieId,rating,timestamp\n");
    for (uint32_t u = 0; u < rows->rows; u++) {
        const char *user = recsys_id_text(&s->r->user_ids, u, &id);

        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++)
            TRY(put(s, user, rows->column[k], (double)recsys_value(&s->r->scale, rows, k),
                    rows->time != NULL ? rows->time[k] : 0));
    }
out:
    return st;
}

/* ---- a profile ---- */

/* The value of the scale that is nearest. */
static double round_to_scale(const struct recsys_scale *scale, double value)
{
    double best = fmin(fmax(value, (double)scale->lowest), (double)scale->highest);

    for (uint32_t i = 0; i < scale->levels; i++)
        if (i == 0 || fabs((double)scale->level[i] - value) < fabs(best - value))
            best = (double)scale->level[i];
    return best;
}

static uint32_t draw_below(struct recsys_draws *draws, uint32_t count)
{
    const uint32_t at = (uint32_t)(recsys_draw_unit(draws) * count);

    return at < count ? at : count - 1;
}

/* One of the `among` most popular items that the profile does not have yet. */
static uint32_t draw_item(struct shilling *s, struct recsys_draws *draws, uint32_t among,
                          uint32_t profile)
{
    uint32_t at = draw_below(draws, among);

    while (s->mark[s->by_degree[at]] == profile)
        at = at + 1 < among ? at + 1 : 0;
    s->mark[s->by_degree[at]] = profile;
    return s->by_degree[at];
}

static double draw_filler(const struct shilling *s, struct recsys_draws *draws, enum kind kind,
                          uint32_t item)
{
    const double about = kind == AVERAGE ? s->item_mean[item] : s->mean;

    if (kind == SEGMENT)
        return (double)s->r->scale.lowest;
    return round_to_scale(&s->r->scale, about + s->deviation * recsys_draw_normal(draws));
}

static uint32_t draw_time(const struct shilling *s, struct recsys_draws *draws)
{
    return s->r->first_time + draw_below(draws, s->r->last_time - s->r->first_time + 1);
}

/* As many fillers as a user that is drawn has ratings. */
static uint32_t draw_size(const struct shilling *s, struct recsys_draws *draws)
{
    const uint64_t *start = s->r->by_user.start;
    const uint32_t like = draw_below(draws, s->r->users);
    const uint64_t size = start[like + 1] - start[like];

    return (uint32_t)(size < LEAST_FILLERS     ? LEAST_FILLERS
                      : size < s->r->items / 2 ? size
                                               : s->r->items / 2);
}

static base_status write_profile(struct shilling *s, enum kind kind, uint32_t target,
                                 uint32_t number)
{
    base_status st = BASE_OK;
    struct recsys_draws draws = recsys_draws_of(s->how->seed, DRAWS_OF_SHILL, 1, number);
    const uint32_t size = draw_size(s, &draws), profile = number + 1;
    const double highest = (double)s->r->scale.highest;
    const uint32_t loved = kind == SEGMENT ? LOVED : kind == BANDWAGON ? 1 + size / 10 : 0;
    char *user = base_format("%u", s->first_id + number);

    s->users[number] = user;
    s->fakes = number + 1;
    s->mark[target] = profile;
    TRY(put(s, user, target, highest, draw_time(s, &draws)));
    for (uint32_t i = 0; i < loved && i < POPULAR / 2; i++)
        TRY(put(s, user, draw_item(s, &draws, POPULAR, profile), highest, draw_time(s, &draws)));
    for (uint32_t i = loved; i < size; i++) {
        const uint32_t item = draw_item(s, &draws, s->r->items, profile);

        TRY(put(s, user, item, draw_filler(s, &draws, kind, item), draw_time(s, &draws)));
    }
out:
    return st;
}

/* ---- the copy ---- */

static enum kind kind_of(const char *name)
{
    int kind = 0;

    while (kind < MIXED && strcmp(name, recsys_shill_kinds[kind]) != 0)
        kind++;
    return (enum kind)kind;
}

/* Items worth pushing are those of the less popular half. */
static uint32_t draw_target(const struct shilling *s, enum kind kind)
{
    struct recsys_draws draws = recsys_draws_of(s->how->seed, DRAWS_OF_SHILL, 0, (uint32_t)kind);
    const uint32_t half = s->r->items / 2;

    return s->by_degree[half + draw_below(&draws, s->r->items - half)];
}

static base_status write_fakes(struct shilling *s, uint32_t count)
{
    base_status st = BASE_OK;
    const enum kind kind = kind_of(s->how->kind);

    s->users = base_calloc((size_t)count + 1, sizeof *s->users);
    for (uint32_t i = 0; i < count; i++) {
        const enum kind own = kind == MIXED ? (enum kind)(i % KINDS) : kind;

        TRY(write_profile(s, own, draw_target(s, own), i));
    }
out:
    return st;
}

static base_status check(const struct shilling *s, uint32_t count)
{
    const struct recsys_ids *users = &s->r->user_ids;

    if (s->r->items < 2 * POPULAR)
        return base_fail(BASE_ERR_DATA, "%s has %u items; profiles hide among %d at least",
                         s->r->path, s->r->items, 2 * POPULAR);
    if (count == 0)
        return base_fail(BASE_ERR_USAGE, "%g %% of %u users is not one user", s->how->percent,
                         s->r->users);
    if (users->number == NULL || s->r->item_ids.number == NULL)
        return base_fail(BASE_ERR_DATA, "%s has ids that are texts; numbers can be written",
                         s->r->path);
    if (users->number[users->count - 1] > INT32_MAX - count)
        return base_fail(BASE_ERR_DATA, "no ids are left for %u users more", count);
    return BASE_OK;
}

/* The copy is read once more: its digest is what the index is of. */
static base_status make_index(struct shilling *s, const char *path, struct data_index *index_p)
{
    base_status st = BASE_OK;
    struct recsys_ratings *copy = NULL;

    TRY(recsys_ratings_open(path, &(struct recsys_options){.no_cache = true}, &copy));
    data_index_of_users(copy->digest, copy->users, s->users, s->fakes, index_p);
    s->users = NULL;
out:
    recsys_ratings_close(copy);
    return st;
}

base_status recsys_shill(const struct recsys_ratings *ratings, const struct recsys_shill *how,
                         const char *path, struct data_index *index_p)
{
    base_status st = BASE_OK;
    struct shilling s = {.r = ratings, .how = how, .file = {.fd = -1}};
    const uint32_t count = (uint32_t)lround(ratings->users * how->percent / 100);

    *index_p = (struct data_index){0};
    TRY(check(&s, count));
    s.first_id = ratings->user_ids.number[ratings->users - 1] + 1;
    TRY(survey(&s));
    TRY(base_replace_begin(path, &s.file));
    TRY(copy_honest(&s));
    TRY(write_fakes(&s, count));
    TRY(base_replace_write(&s.file, s.text.text, s.text.length));
    TRY(base_replace_commit(&s.file));
    TRY(make_index(&s, path, index_p));
out:
    base_replace_end(&s.file);
    base_str_fini(&s.text);
    base_free(s.item_mean);
    base_free(s.degree);
    base_free(s.by_degree);
    base_free(s.mark);
    if (s.users != NULL)
        base_names_free(s.users, s.fakes);
    return st;
}
