/* SPDX-License-Identifier: MIT */
#include "recsys/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/index.h"
#include "recsys/recsys_private.h"

struct recsys_parts {
    const struct recsys_rows *rows;
    struct recsys_split split;
    uint64_t *user_key, *item_key; /* of ids, not of numbers: those change when others come */
    uint64_t below;                /* SHARE: mixes below this are for tests */
    uint64_t *last;                /* LAST: (users, last) the ratings that are for tests */
};

/* ---- text ---- */

static base_status bad_split(const char *text)
{
    return base_fail(BASE_ERR_USAGE,
                     "'%s' is no split: give a share as in 0.2, fold:1/5, last, last:3 or "
                     "from:2005-01-31",
                     text);
}

static base_status parse_fold(const char *text, struct recsys_split *split)
{
    unsigned fold, folds;
    int end = 0;

    if (sscanf(text, "fold:%9u/%9u%n", &fold, &folds, &end) != 2 || text[end] != '\0' || fold < 1 ||
        fold > folds || folds < 2)
        return bad_split(text);
    split->kind = RECSYS_SPLIT_FOLD;
    split->fold = fold - 1;
    split->folds = folds;
    return BASE_OK;
}

base_status recsys_split_parse(const char *text, uint64_t seed, struct recsys_split *split)
{
    char *end;

    *split = (struct recsys_split){.kind = RECSYS_SPLIT_SHARE, .seed = seed};
    if (strncmp(text, "fold:", 5) == 0)
        return parse_fold(text, split);
    if (strncmp(text, "from:", 5) == 0) {
        split->kind = RECSYS_SPLIT_DATE;
        return recsys_time((struct recsys_field){text + 5, strlen(text + 5)}, &split->from)
                   ? BASE_OK
                   : bad_split(text);
    }
    if (strcmp(text, "last") == 0 || strncmp(text, "last:", 5) == 0) {
        split->kind = RECSYS_SPLIT_LAST;
        split->last = 1;
        return text[4] == '\0' || (recsys_number((struct recsys_field){text + 5, strlen(text + 5)},
                                                 1000, &split->last) &&
                                   split->last > 0)
                   ? BASE_OK
                   : bad_split(text);
    }
    split->share = strtod(text, &end);
    return end != text && *end == '\0' && split->share > 0 && split->share < 1 ? BASE_OK
                                                                               : bad_split(text);
}

/* ---- parts ---- */

/* Of the id's text: ids are numbers until one comes that is none, and it must not deal anew. */
static uint64_t key_of(const struct recsys_ids *ids, uint32_t number, uint64_t seed)
{
    struct recsys_id text;
    uint64_t key = seed;

    for (const char *at = recsys_id_text(ids, number, &text); *at != '\0'; at++)
        key = base_rng_mix(key ^ (unsigned char)*at);
    return base_rng_mix(key);
}

static base_status make_keys(const struct recsys_ids *ids, uint64_t seed, uint64_t **keys_p)
{
    base_status st = base_tensor(ids->count, sizeof **keys_p, "keys", keys_p);

    for (uint32_t i = 0; st == BASE_OK && i < ids->count; i++)
        (*keys_p)[i] = key_of(ids, i, seed);
    return st;
}

/* Is rating a later than rating b? Of two at once, the one of the greater item. */
static bool is_later(const struct recsys_rows *rows, uint64_t a, uint64_t b)
{
    return rows->time[a] != rows->time[b] ? rows->time[a] > rows->time[b] : a > b;
}

/* Every user's latest ratings, the latest first; UINT64_MAX fills the rest of the row. */
static base_status find_last(struct recsys_parts *p)
{
    base_status st = BASE_OK;
    const struct recsys_rows *rows = p->rows;
    uint32_t wanted = p->split.last;

    TRY(base_tensor((size_t)rows->rows * wanted, sizeof *p->last, "last ratings", &p->last));
    for (uint32_t u = 0; u < rows->rows; u++) {
        uint64_t *last = p->last + (size_t)u * wanted;
        uint64_t count = rows->start[u + 1] - rows->start[u], found = 0;
        uint64_t most = count > wanted ? wanted : (count > 0 ? count - 1 : 0);

        memset(last, 0xff, wanted * sizeof *last);
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1] && most > 0; k++) {
            uint64_t at = found < most ? found++ : most;

            for (; at > 0 && is_later(rows, k, last[at - 1]); at--)
                if (at < most)
                    last[at] = last[at - 1];
            if (at < most)
                last[at] = k;
        }
    }
out:
    return st;
}

/* Both parts have a rating: looks no further than the first of each. */
static base_status check_parts(const struct recsys_parts *p)
{
    bool seen[2] = {false, false};

    for (uint32_t u = 0; u < p->rows->rows; u++)
        for (uint64_t k = p->rows->start[u]; k < p->rows->start[u + 1]; k++) {
            seen[recsys_is_test(p, u, k)] = true;
            if (seen[0] && seen[1])
                return BASE_OK;
        }
    return base_fail(BASE_ERR_DATA, "the split leaves no rating for %s",
                     seen[0] ? "tests" : "training");
}

/* Either part may be empty. */
static base_status open_parts(const struct recsys_ratings *ratings,
                              const struct recsys_split *split, struct recsys_parts **parts_p)
{
    base_status st = BASE_OK;
    struct recsys_parts *p = base_calloc(1, sizeof *p);

    *parts_p = NULL;
    *p = (struct recsys_parts){.rows = &ratings->by_user, .split = *split};
    p->below = (uint64_t)(split->share * 0x1p64);
    if ((split->kind == RECSYS_SPLIT_LAST || split->kind == RECSYS_SPLIT_DATE) &&
        p->rows->time == NULL)
        TRY(base_fail(BASE_ERR_DATA, "%s has no times, so it cannot be split by time",
                      ratings->path));
    if (split->kind == RECSYS_SPLIT_LAST) {
        TRY(find_last(p));
    } else if (split->kind != RECSYS_SPLIT_DATE) {
        TRY(make_keys(&ratings->user_ids, split->seed, &p->user_key));
        TRY(make_keys(&ratings->item_ids, ~split->seed, &p->item_key));
    }
    *parts_p = p;
    p = NULL;
out:
    recsys_parts_free(p);
    return st;
}

base_status recsys_parts_new(const struct recsys_ratings *ratings, const struct recsys_split *split,
                             struct recsys_parts **parts_p)
{
    base_status st = open_parts(ratings, split, parts_p);

    if (st == BASE_OK)
        st = check_parts(*parts_p);
    if (st != BASE_OK) {
        recsys_parts_free(*parts_p);
        *parts_p = NULL;
    }
    return st;
}

void recsys_parts_free(struct recsys_parts *p)
{
    if (p == NULL)
        return;
    base_free(p->user_key);
    base_free(p->item_key);
    base_free(p->last);
    base_free(p);
}

/* Marks those ratings of a user that are for tests. */
static void mark_tests(const struct recsys_parts *p, uint32_t user, uint8_t mark, uint8_t *marks)
{
    const uint64_t from = p->rows->start[user], to = p->rows->start[user + 1];

    if (p->split.kind == RECSYS_SPLIT_SHARE) { /* the usual one, without a question a rating */
        const uint64_t user_key = p->user_key[user], below = p->below;
        const uint64_t *item_key = p->item_key;
        const uint32_t *item = p->rows->column;

        for (uint64_t k = from; k < to; k++)
            marks[k - from] =
                base_rng_mix(user_key + item_key[item[k]]) < below ? mark : marks[k - from];
        return;
    }
    for (uint64_t k = from; k < to; k++)
        marks[k - from] = recsys_is_test(p, user, k) ? mark : marks[k - from];
}

bool recsys_is_test(const struct recsys_parts *p, uint32_t user, uint64_t k)
{
    uint64_t mix;

    if (p->split.kind == RECSYS_SPLIT_DATE)
        return p->rows->time[k] >= p->split.from;
    if (p->split.kind == RECSYS_SPLIT_LAST) {
        const uint64_t *last = p->last + (size_t)user * p->split.last;

        for (uint32_t i = 0; i < p->split.last; i++)
            if (last[i] == k)
                return true;
        return false;
    }
    mix = base_rng_mix(p->user_key[user] + p->item_key[p->rows->column[k]]);
    if (p->split.kind == RECSYS_SPLIT_SHARE)
        return mix < p->below;
    return (uint32_t)(((mix >> 32) * p->split.folds) >> 32) == p->split.fold;
}

/* ---- all parts ---- */

enum { TRAIN, TEST, VALIDATION };

struct division {
    const struct recsys_rows *rows;
    struct recsys_parts *tests, *validation; /* NULL: there are none */
    const bool *excluded;                    /* (users); NULL: none */
};

/* The validation part is of what the tests leave. */
static void deal_user(const void *division, uint32_t user, uint8_t *part_of)
{
    const struct division *d = division;

    const uint64_t count = d->rows->start[user + 1] - d->rows->start[user];

    if (d->excluded != NULL && d->excluded[user]) {
        memset(part_of, RECSYS_NO_PART, count);
        return;
    }
    memset(part_of, TRAIN, count);
    if (d->validation != NULL)
        mark_tests(d->validation, user, VALIDATION, part_of);
    if (d->tests != NULL)
        mark_tests(d->tests, user, TEST, part_of);
}

base_status recsys_excluded(const struct recsys_ratings *r, const struct data_index *index,
                            bool **excluded_p)
{
    base_status st = BASE_OK;
    bool *excluded = NULL;
    uint32_t user;

    *excluded_p = NULL;
    TRY(data_index_check(index, r->digest, true));
    TRY(base_tensor(r->users, sizeof *excluded, "users", &excluded));
    for (uint32_t i = 0; i < index->count; i++) {
        if (!recsys_id_find(&r->user_ids, index->users[i], &user))
            TRY(base_fail(BASE_ERR_DATA, "user '%s' of the index has no ratings in %s",
                          index->users[i], r->path));
        excluded[user] = true;
    }
    *excluded_p = excluded;
    excluded = NULL;
out:
    base_free(excluded);
    return st;
}

base_status recsys_divide(const struct recsys_ratings *ratings, const struct recsys_divide *how,
                          struct recsys_division *d)
{
    base_status st = BASE_OK;
    struct recsys_split split;
    const struct recsys_split held = {RECSYS_SPLIT_SHARE, base_rng_mix(~how->seed),
                                      .share = how->validation};
    struct division division = {.rows = &ratings->by_user, .excluded = how->excluded};
    struct recsys_rows parts[RECSYS_MAX_PARTS] = {0};
    int count = 1;

    *d = (struct recsys_division){0};
    if (strcmp(how->split, "none") != 0) {
        TRY(recsys_split_parse(how->split, how->seed, &split));
        TRY(recsys_parts_new(ratings, &split, &division.tests));
        count = TEST + 1;
    }
    if (how->validation > 0) {
        TRY(open_parts(ratings, &held, &division.validation));
        count = VALIDATION + 1;
    }
    TRY(recsys_deal(division.rows, deal_user, &division, how->times, how->threads, count, parts));
    d->by_user = parts[TRAIN];
    d->test = parts[TEST];
    d->validation = parts[VALIDATION];
    if (how->by_item)
        TRY(recsys_transpose(&d->by_user, how->times, how->threads, &d->by_item));
out:
    recsys_parts_free(division.tests);
    recsys_parts_free(division.validation);
    return st;
}

void recsys_division_fini(struct recsys_division *d)
{
    recsys_rows_fini(&d->by_user);
    recsys_rows_fini(&d->by_item);
    recsys_rows_fini(&d->test);
    recsys_rows_fini(&d->validation);
}
