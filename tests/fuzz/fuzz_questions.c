/* covers: src/serve/handlers/ratings.c src/recsys/asker.c */
/* SPDX-License-Identifier: MIT
 *
 * The body of a question to a rating model of 3 users and 5 items. What is answered with a
 * prediction has one on the scale, and no list is longer than the model has items.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "recsys/asker.h"
#include "serve/handler.h"

enum { USERS = 3, ITEMS = 5, RATINGS = 7 };

static const uint64_t user_start[] = {0, 2, 5, 7}, item_start[] = {0, 3, 5, 6, 7, 7};
static const uint32_t user_column[] = {0, 1, 0, 1, 2, 0, 3}, item_column[] = {0, 1, 2, 0, 1, 1, 2};
static const uint8_t user_code[] = {4, 0, 3, 1, 2, 4, 0}, item_code[] = {4, 3, 4, 0, 1, 2, 0};
static const struct recsys_rows by_user = {USERS,       ITEMS,     RATINGS, user_start,
                                           user_column, user_code, NULL,    NULL};
static const struct recsys_rows by_item = {ITEMS,       USERS,     RATINGS, item_start,
                                           item_column, item_code, NULL,    NULL};
static const uint32_t users[] = {1, 2, 40}, items[] = {1, 2, 3, 318, 500};
static uint32_t counts[] = {3, 2, 5, 9, 0};
static struct recsys_saved saved = {
    .scale = {.lowest = 1, .highest = 5, .step = 1, .levels = 5, .level = {1, 2, 3, 4, 5}},
    .users = {.count = USERS, .number = users},
    .items = {.count = ITEMS, .number = items},
    .item_counts = counts};

static void make_model(void)
{
    struct recsys_setup setup = {.scale = &saved.scale, .by_user = &by_user, .by_item = &by_item};

    if (recsys_model_find("mf:k=8,sweeps=3", &setup.model, &saved.options) != BASE_OK ||
        base_team_new(1, &saved.team) != BASE_OK)
        abort();
    setup.options = saved.options;
    setup.team = saved.team;
    if (recsys_fit_new(&setup, &saved.fit) != BASE_OK)
        abort();
    for (int64_t s = 0; s < saved.fit->sweeps; s++)
        if (recsys_sweep(saved.fit) != BASE_OK)
            abort();
    saved.rated = by_user;
}

static void check(const json_t *answer)
{
    const json_t *prediction = json_object_get(answer, "prediction"), *one;
    const json_t *list = json_object_get(answer, "items");
    size_t index;

    if (json_is_object(answer) && prediction == NULL && list == NULL)
        abort();
    if (prediction != NULL &&
        !(json_number_value(prediction) >= 1 && json_number_value(prediction) <= 5))
        abort();
    if (json_array_size(list) > ITEMS)
        abort();
    json_array_foreach(list, index, one) check(one);
    json_array_foreach(answer, index, one) check(one);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct serve_body body = {.type = "application/json", .bytes = bytes, .count = count};
    json_t *answer = NULL;

    if (saved.fit == NULL)
        make_model();
    if (serve_ask(NULL, &saved, &body, &answer) == BASE_OK)
        check(answer);
    else if (answer != NULL)
        abort();
    json_decref(answer);
    return 0;
}
