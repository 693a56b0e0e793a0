/* SPDX-License-Identifier: MIT
 *
 * Questions to a rating model: lists, pairs, new users, several at once; and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "recsys/rank.h"
#include "serve/handler.h"
#include "support/fitted.h"

enum { USERS = 60, ITEMS = 80, EACH = 20 };

static struct rated rated;
static struct fitted fitted;
static uint32_t users[USERS], items[ITEMS]; /* ids 1 … and 100 … */
static uint32_t counts[ITEMS];              /* 0 of the last item, 10 of the others */
static struct recsys_saved saved;

/* A new reference, or NULL: it is refused. */
static json_t *ask(const char *text)
{
    const struct serve_body body = {"application/json", text, strlen(text)};
    json_t *answer = NULL;

    return serve_ask(NULL, &saved, &body, &answer) == BASE_OK ? answer : NULL;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void test_list(void **state)
{
    json_t *answer = ask("{\"user\": 8, \"n\": 5, \"exclude\": [103, \"104\", \"nix\"]}");
    const json_t *list = json_object_get(answer, "items");
    const struct recsys_wish wish = {fitted.fit->buffers[fitted.fit->answers].at + 7 * 16,
                                     rated.by_user.column + rated.by_user.start[7],
                                     rated.by_user.start[8] - rated.by_user.start[7]};
    const bool barred[ITEMS] = {[3] = true, [4] = true, [ITEMS - 1] = true};
    struct recsys_pick picks[5];
    uint32_t found;

    (void)state;
    assert_non_null(answer);
    assert_string_equal(json_string_value(json_object_get(answer, "user")), "8");
    assert_int_equal(json_array_size(list), 5);
    assert_int_equal(recsys_rank(fitted.fit, &wish, 1, barred, 5, picks, &found), BASE_OK);
    for (uint32_t r = 0; r < 5; r++) {
        const json_t *one = json_array_get(list, r);
        char id[16];

        snprintf(id, sizeof id, "%u", items[picks[r].item]);
        assert_string_equal(json_string_value(json_object_get(one, "item")), id);
        assert_true(fabs(number(one, "prediction") -
                         (double)recsys_predict(fitted.fit, 7, picks[r].item, 0).value) < 1e-6);
    }
    assert_null(json_object_get(answer, "fewer"));
    json_decref(answer);
}

static void test_pair(void **state)
{
    json_t *known = ask("{\"user\": \"8\", \"item\": 105, \"explain\": true}");
    json_t *stranger = ask("{\"user\": \"nix\", \"item\": \"nix\"}");

    (void)state;
    assert_non_null(known);
    assert_true(fabs(number(known, "prediction") -
                     (double)recsys_predict(fitted.fit, 7, 5, 0).value) < 1e-6);
    assert_true(json_array_size(json_object_get(known, "because")) > 0);
    assert_true(json_is_true(json_object_get(known, "user_known")));
    assert_non_null(stranger);
    assert_true(json_is_false(json_object_get(stranger, "user_known")));
    assert_true(json_is_false(json_object_get(stranger, "item_known")));
    assert_true(fabs(number(stranger, "prediction") - (double)fitted.fit->mean) < 1e-6);
    json_decref(known);
    json_decref(stranger);
}

/* A new user is folded in; the items that it names are not recommended to it. */
static void test_new(void **state)
{
    json_t *answer = ask("{\"ratings\": [{\"item\": 101, \"rating\": 5}, {\"item\": \"nix\", "
                         "\"rating\": 2}], \"n\": 1000, \"least\": 0}");
    const json_t *list = json_object_get(answer, "items");
    size_t index;
    json_t *one;

    (void)state;
    assert_int_equal(json_array_size(list), ITEMS - 1);
    assert_non_null(json_object_get(answer, "fewer"));
    json_array_foreach(list, index, one)
        assert_string_not_equal(json_string_value(json_object_get(one, "item")), "101");
    json_decref(answer);
}

static void test_several(void **state)
{
    json_t *answer =
        ask("{\"instances\": [{\"user\": 1, \"n\": 2}, {\"user\": 2, \"item\": 100}]}");

    (void)state;
    assert_int_equal(json_array_size(answer), 2);
    assert_int_equal(json_array_size(json_object_get(json_array_get(answer, 0), "items")), 2);
    json_decref(answer);
}

static void refuse(const char *text, const char *sentence)
{
    json_t *answer = ask(text);

    if (answer != NULL || strstr(base_message(), sentence) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", text, base_message(), sentence);
}

static void test_refused(void **state)
{
    struct base_str many = {0};

    (void)state;
    refuse("nix", "not valid JSON");
    refuse("{}", "no user is named");
    refuse("[[1]]", "question 1: a question is an object");
    refuse("{\"user\": \"nix\"}", "user 'nix' is not known");
    refuse("{\"user\": [1]}", "\"user\" is an id");
    refuse("{\"user\": \"\"}", "\"user\" is an id");
    refuse("{\"user\": 1, \"n\": 0}", "from 1 to 1000");
    refuse("{\"user\": 1, \"n\": 2.5}", "from 1 to 1000");
    refuse("{\"user\": 1, \"n\": 21, \"explain\": true}", "from 1 to 20 where");
    refuse("{\"user\": 1, \"least\": -1}", "\"least\" is a whole number");
    refuse("{\"user\": 1, \"item\": null}", "\"item\" is an id");
    refuse("{\"user\": 1, \"exclude\": 7}", "\"exclude\" is an array");
    refuse("{\"ratings\": 7}", "\"ratings\" is an array");
    refuse("{\"ratings\": [{\"item\": 101}]}", "rating 1 has no number");
    refuse("{\"ratings\": [{\"item\": 101, \"rating\": 6}]}", "item 101 is rated 6");
    base_str_add(&many, "[");
    for (int i = 0; i < 65; i++)
        base_str_add(&many, "%s{\"user\": 1, \"n\": 1}", i > 0 ? "," : "");
    base_str_add(&many, "]");
    refuse(many.text, "65 questions; up to 64");
    base_str_fini(&many);
}

/* Handlers of networks and of rating models do not stand in for each other. */
static void test_handlers(void **state)
{
    const struct serve_body body = {"application/json", "{\"user\": 1}", 11};
    const struct model_about about = {.classes = 2, .input = {.c = 1, .h = 2, .w = 2}};
    struct serve_samples samples;
    json_t *answer = NULL;

    (void)state;
    assert_int_equal(serve_ask("image", &saved, &body, &answer), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "'image' is not for rating models"));
    assert_int_equal(serve_ask("ratings", &saved, &body, &answer), BASE_OK);
    json_decref(answer);
    assert_int_equal(serve_read("ratings", &about, &body, &samples), BASE_ERR_DATA);
    assert_non_null(strstr(base_message(), "'ratings' is not for networks"));
}

static int set_up(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    fitted_open(&fitted, &rated, "mf", "k=16,sweeps=10", 1, 5);
    fitted_train(&fitted);
    for (uint32_t u = 0; u < USERS; u++)
        users[u] = 1 + u;
    for (uint32_t i = 0; i < ITEMS; i++) {
        items[i] = 100 + i;
        counts[i] = i < ITEMS - 1 ? 10 : 0;
    }
    saved = (struct recsys_saved){.fit = fitted.fit,
                                  .scale = rated.scale,
                                  .users = {.count = USERS, .number = users},
                                  .items = {.count = ITEMS, .number = items},
                                  .rated = rated.by_user,
                                  .item_counts = counts};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fitted_close(&fitted);
    rated_fini(&rated);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),    cmocka_unit_test(test_pair),
        cmocka_unit_test(test_new),     cmocka_unit_test(test_several),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_handlers),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
