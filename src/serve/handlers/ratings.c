/* SPDX-License-Identifier: MIT
 *
 * Questions to rating models, as JSON:
 *
 *   {"user": 42, "n": 10}                                   the ten best items for a user
 *   {"user": 42, "item": 318}                               what the user would rate an item
 *   {"ratings": [{"item": 318, "rating": 5}, …], "n": 10}   the same for a new user, or with "user"
 *                                                           for one who has rated more since
 *
 * "exclude": [ids] leaves items out, and "least": 5 those with fewer ratings in training;
 * "explain": true names the ratings that count most. Ids are strings or numbers. An array of
 * questions, also under "instances", gets an array of answers.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "recsys/asker.h"
#include "serve/handler.h"
#include "serve/values.h"

enum { USUAL_N = 10, CAUSES = 3 };
/* So much may be asked in one request, which a worker answers before it takes another. */
enum { MOST_QUESTIONS = 64, MOST_RATINGS = 10000, MOST_ITEMS = 1000, MOST_EXPLAINED = 20 };
/* What explaining may cost in one request: picks times what is known of the user. */
enum { MOST_EXPLAINING = 100000, LEAST_EXPLAINING = 100 };

struct question {
    const struct recsys_saved *saved;
    const json_t *json;
    char user[RECSYS_MAX_ID + 1]; /* "": none was named */
    uint32_t user_number;
    bool explain;
    uint64_t *explained; /* what explanations of this request have cost so far */
    struct recsys_asker asker;
};

/* ---- reading ---- */

/* An id: a string, or a whole number as people write numbers. */
static base_status ratings_id(const json_t *value, const char *what, char text[RECSYS_MAX_ID + 1])
{
    const char *string = json_string_value(value);

    if (json_is_integer(value))
        snprintf(text, RECSYS_MAX_ID + 1, "%lld", (long long)json_integer_value(value));
    else if (string != NULL && string[0] != '\0' && json_string_length(value) <= RECSYS_MAX_ID &&
             strlen(string) == json_string_length(value))
        memcpy(text, string, strlen(string) + 1);
    else
        return base_fail(BASE_ERR_DATA,
                         "\"%s\" is an id: a string of up to %d bytes or a whole "
                         "number",
                         what, RECSYS_MAX_ID);
    return BASE_OK;
}

static base_status ratings_item(const struct recsys_saved *saved, const json_t *value,
                                const char *what, char id[RECSYS_MAX_ID + 1], uint32_t *item_p)
{
    base_status st = BASE_OK;

    TRY(ratings_id(value, what, id));
    if (!recsys_id_find(&saved->items, id, item_p))
        *item_p = RECSYS_UNKNOWN;
out:
    return st;
}

/* The ratings of "ratings"; those of unknown items are left out, as nothing is known of them. */
static base_status ratings_added(const struct question *q, struct recsys_rating **added_p,
                                 uint32_t *count_p)
{
    base_status st = BASE_OK;
    const json_t *list = json_object_get(q->json, "ratings"), *one;
    size_t index;

    *count_p = 0;
    if (list == NULL)
        return BASE_OK;
    if (!json_is_array(list) || json_array_size(list) > MOST_RATINGS)
        TRY(base_fail(BASE_ERR_DATA,
                      "\"ratings\" is an array of up to %d objects like {\"item\": 318, "
                      "\"rating\": 4.5}",
                      MOST_RATINGS));
    *added_p = base_calloc(json_array_size(list) + 1, sizeof **added_p);
    json_array_foreach(list, index, one)
    {
        struct recsys_rating *r = &(*added_p)[*count_p];
        const json_t *value = json_object_get(one, "rating");
        char id[RECSYS_MAX_ID + 1];

        TRY(ratings_item(q->saved, json_object_get(one, "item"), "item", id, &r->item));
        if (!json_is_number(value))
            TRY(base_fail(BASE_ERR_DATA, "rating %zu has no number as \"rating\"", index + 1));
        r->value = (float)json_number_value(value);
        *count_p += r->item != RECSYS_UNKNOWN;
    }
out:
    return st;
}

static base_status ratings_read(struct question *q)
{
    base_status st = BASE_OK;
    const json_t *user = json_object_get(q->json, "user");
    struct recsys_rating *added = NULL;
    uint32_t count = 0;

    if (!json_is_object(q->json))
        TRY(base_fail(BASE_ERR_DATA, "a question is an object like {\"user\": 42, \"n\": 10}"));
    q->user_number = RECSYS_UNKNOWN;
    if (user != NULL)
        TRY(ratings_id(user, "user", q->user));
    if (user != NULL && !recsys_id_find(&q->saved->users, q->user, &q->user_number))
        q->user_number = RECSYS_UNKNOWN;
    q->explain = json_is_true(json_object_get(q->json, "explain"));
    TRY(ratings_added(q, &added, &count));
    TRY(recsys_asker_init(q->saved, q->user_number, added, count, &q->asker));
out:
    base_free(added);
    return st;
}

/* ---- answers ---- */

static json_t *ratings_id_json(const struct recsys_saved *saved, uint32_t item)
{
    struct recsys_id id;

    return base_json_text(recsys_id_text(&saved->items, item, &id));
}

static base_status ratings_because(const struct question *q, uint32_t item, json_t *answer)
{
    base_status st = BASE_OK;
    struct recsys_cause causes[CAUSES];
    uint32_t count;
    json_t *list;

    if (!q->explain || item == RECSYS_UNKNOWN)
        return BASE_OK;
    *q->explained += q->asker.count + LEAST_EXPLAINING;
    if (*q->explained > MOST_EXPLAINING)
        TRY(base_fail(BASE_ERR_DATA, "so many ratings cannot be explained in one request"));
    TRY(recsys_because(q->saved, &q->asker, item, CAUSES, causes, &count));
    list = json_array();
    for (uint32_t c = 0; c < count; c++)
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "item",
                                              ratings_id_json(q->saved, causes[c].item), "rating",
                                              base_json_number((double)causes[c].value), "part",
                                              base_json_number((double)causes[c].part)));
    json_object_set_new(answer, "because", list);
out:
    return st;
}

static base_status ratings_guess(const struct question *q, uint32_t item, json_t *answer)
{
    const struct recsys_guess guess = recsys_predict_row(q->saved->fit, q->asker.wish.row, item, 0);

    json_object_set_new(answer, "prediction", base_json_number((double)guess.value));
    if (!isnan(guess.deviation))
        json_object_set_new(answer, "deviation", base_json_number((double)guess.deviation));
    return ratings_because(q, item, answer);
}

/* {"user", "item"}: also of unknown ones, for which the model falls back on means. */
static base_status ratings_pair(const struct question *q, json_t *answer)
{
    base_status st = BASE_OK;
    char id[RECSYS_MAX_ID + 1];
    uint32_t item;

    TRY(ratings_item(q->saved, json_object_get(q->json, "item"), "item", id, &item));
    json_object_set_new(answer, "item", base_json_text(id));
    json_object_set_new(answer, "user_known", json_boolean(q->asker.wish.row != NULL));
    json_object_set_new(answer, "item_known", json_boolean(item != RECSYS_UNKNOWN));
    TRY(ratings_guess(q, item, answer));
out:
    return st;
}

/* A whole number of the question, or the usual one where it has none. */
static base_status ratings_number(const struct question *q, const char *key, int least, int most,
                                  int usual, uint32_t *number_p)
{
    const json_t *value = json_object_get(q->json, key);

    *number_p = value != NULL ? (uint32_t)json_integer_value(value) : (uint32_t)usual;
    if (value == NULL || (json_is_integer(value) && json_integer_value(value) >= least &&
                          json_integer_value(value) <= most))
        return BASE_OK;
    return base_fail(BASE_ERR_DATA, "\"%s\" is a whole number from %d to %d%s", key, least, most,
                     q->explain ? " where answers are explained" : "");
}

static base_status ratings_barred(const struct question *q, bool **barred_p)
{
    base_status st = BASE_OK;
    const json_t *list = json_object_get(q->json, "exclude"), *one;
    uint32_t least;
    size_t index;

    TRY(ratings_number(q, "least", 0, INT32_MAX, RECSYS_USUAL_LEAST, &least));
    if (list != NULL && !json_is_array(list))
        TRY(base_fail(BASE_ERR_DATA, "\"exclude\" is an array of items"));
    TRY(base_tensor(q->saved->fit->items, sizeof **barred_p, "excluded items", barred_p));
    for (uint32_t i = 0; i < q->saved->fit->items; i++)
        (*barred_p)[i] = q->saved->item_counts[i] < least;
    json_array_foreach(list, index, one)
    {
        char id[RECSYS_MAX_ID + 1];
        uint32_t item;

        TRY(ratings_item(q->saved, one, "exclude", id, &item));
        if (item != RECSYS_UNKNOWN)
            (*barred_p)[item] = true;
    }
out:
    return st;
}

static base_status ratings_list(const struct question *q, json_t *answer)
{
    base_status st = BASE_OK;
    struct recsys_pick picks[MOST_ITEMS];
    json_t *items = json_array();
    bool *barred = NULL;
    uint32_t n, found = 0;

    TRY(ratings_number(q, "n", 1, q->explain ? MOST_EXPLAINED : MOST_ITEMS, USUAL_N, &n));
    if (q->asker.wish.row == NULL)
        TRY(base_fail(BASE_ERR_DATA, "%s%s%s: send some of its \"ratings\"",
                      q->user[0] != '\0' ? "user '" : "", q->user[0] != '\0' ? q->user : "no user",
                      q->user[0] != '\0' ? "' is not known to the model" : " is named"));
    TRY(ratings_barred(q, &barred));
    TRY(recsys_rank(q->saved->fit, &q->asker.wish, 1, barred, n, picks, &found));
    for (uint32_t r = 0; r < found; r++) {
        json_t *item = json_pack("{s:o}", "item", ratings_id_json(q->saved, picks[r].item));

        json_array_append_new(items, item);
        TRY(ratings_guess(q, picks[r].item, item));
    }
    json_object_set(answer, "items", items);
    if (found < n) {
        char *why = base_format("only %u of the %u items are left that are neither rated nor "
                                "excluded nor rare (\"least\")",
                                found, q->saved->fit->items);

        json_object_set_new(answer, "fewer", base_json_text(why));
        base_free(why);
    }
out:
    json_decref(items);
    base_free(barred);
    return st;
}

static base_status ratings_one(const struct recsys_saved *saved, const json_t *json,
                               uint64_t *explained, json_t **answer_p)
{
    base_status st = BASE_OK;
    struct question q = {.saved = saved, .json = json, .explained = explained};
    json_t *answer = json_object();

    *answer_p = NULL;
    TRY(ratings_read(&q));
    if (q.user[0] != '\0')
        json_object_set_new(answer, "user", base_json_text(q.user));
    if (json_object_get(json, "item") != NULL)
        TRY(ratings_pair(&q, answer));
    else
        TRY(ratings_list(&q, answer));
    *answer_p = json_incref(answer);
out:
    json_decref(answer);
    recsys_asker_fini(&q.asker);
    return st;
}

static base_status ratings_answer(const struct recsys_saved *saved, const struct serve_body *body,
                                  json_t **answer_p)
{
    base_status st = BASE_OK;
    json_t *document = NULL, *list = NULL, *one;
    const json_t *questions;
    size_t index;
    uint64_t explained = 0;

    TRY(serve_values_parse(body->bytes, body->count, &document));
    questions = serve_values_of(document);
    if (!json_is_array(questions)) {
        TRY(ratings_one(saved, questions, &explained, answer_p));
        goto out;
    }
    if (json_array_size(questions) > MOST_QUESTIONS)
        TRY(base_fail(BASE_ERR_DATA, "%zu questions; up to %d may come at once",
                      json_array_size(questions), MOST_QUESTIONS));
    list = json_array();
    for (index = 0; index < json_array_size(questions); index++) {
        TRY(base_prefix(ratings_one(saved, json_array_get(questions, index), &explained, &one),
                        "question %zu", index + 1));
        json_array_append_new(list, one);
    }
    *answer_p = json_incref(list);
out:
    json_decref(list);
    json_decref(document);
    return st;
}

const struct serve_handler serve_handler_ratings = {
    .name = "ratings",
    .help = "for a rating model a question as JSON",
    .answer = ratings_answer,
};
