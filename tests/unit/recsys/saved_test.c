/* SPDX-License-Identifier: MIT
 *
 * Every rating model, saved and opened without its ratings, answers as the one that was saved: the
 * same bits for known, unknown and new users; read back beside its ratings, it goes on with the
 * same bits. Files that contradict each other are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "recsys/saved.h"
#include "support/datafiles.h"
#include "support/rated.h"

enum { USERS = 60, ITEMS = 40, EACH = 15 };

static struct rated rated;
static struct recsys_ratings ids;
static uint32_t user_numbers[USERS];
static char item_text[ITEMS * 8];
static uint64_t item_start[ITEMS + 1];

static int setup(void **state)
{
    (void)state;
    rated_make(&rated, USERS, ITEMS, EACH);
    for (uint32_t u = 0; u < USERS; u++)
        user_numbers[u] = 10 + 3 * u;
    for (uint32_t i = 0; i < ITEMS; i++) {
        snprintf(item_text + 5 * i, 6, "i%03u", i);
        item_start[i + 1] = 5 * (i + 1);
    }
    ids = (struct recsys_ratings){
        .users = USERS,
        .items = ITEMS,
        .user_ids = {.count = USERS, .number = user_numbers},
        .item_ids = {.count = ITEMS, .text_start = item_start, .text = item_text}};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rated_fini(&rated);
    return 0;
}

struct fitted {
    struct base_team *team;
    void *options;
    char *text;
    struct recsys_fit *fit;
};

static void fit_open(struct fitted *f, const char *model, const char *options)
{
    struct recsys_setup s = {
        .scale = &rated.scale, .by_user = &rated.by_user, .by_item = &rated.by_item, .seed = 9};

    f->text = base_format("%s:%s", model, options);
    assert_int_equal(base_team_new(2, &f->team), BASE_OK);
    assert_int_equal(recsys_model_find(f->text, &s.model, &f->options), BASE_OK);
    s.options = f->options;
    s.team = f->team;
    assert_int_equal(recsys_fit_new(&s, &f->fit), BASE_OK);
}

static void fit_close(struct fitted *f)
{
    recsys_fit_free(f->fit);
    base_free(f->options);
    base_free(f->text);
    base_team_free(f->team);
}

/* `spoil` changes the manifest. */
static void save(const struct fitted *f, const char *folder, void (*spoil)(json_t *ratings))
{
    json_t *manifest = json_pack("{s:s, s:o}", "task", "ratings", "ratings",
                                 recsys_saved_manifest(f->fit, f->text));
    struct store_save *save = NULL;

    if (spoil != NULL)
        spoil(json_object_get(manifest, "ratings"));
    assert_int_equal(store_save_begin(folder, (uint64_t)f->fit->sweep, &save), BASE_OK);
    assert_int_equal(recsys_saved_write(f->fit, &ids, NULL, save), BASE_OK);
    assert_int_equal(store_save_commit(save, manifest, 0), BASE_OK);
    json_decref(manifest);
}

static void assert_same_guess(struct recsys_guess a, struct recsys_guess b, const char *what)
{
    if (memcmp(&a.value, &b.value, sizeof a.value) != 0 ||
        (!isnan(a.deviation) && a.deviation != b.deviation))
        fail_msg("%s: %.9g and %.9g", what, (double)a.value, (double)b.value);
}

static void assert_answers(const struct fitted *f, const struct recsys_saved *saved)
{
    const struct recsys_rating rating = {.item = 3, .value = 4};
    float *row = base_calloc(recsys_row_floats(f->fit), sizeof *row), *again;
    uint32_t number = 0;
    struct recsys_id text;

    assert_int_equal(recsys_row_floats(f->fit), recsys_row_floats(saved->fit));
    again = base_calloc(recsys_row_floats(f->fit), sizeof *again);
    for (uint32_t u = 0; u <= USERS; u++)
        for (uint32_t i = 0; i <= ITEMS; i++)
            assert_same_guess(recsys_predict(f->fit, u, i, 0), recsys_predict(saved->fit, u, i, 0),
                              f->text);
    assert_int_equal(recsys_fold(f->fit, &rating, 1, row), BASE_OK);
    assert_int_equal(recsys_fold(saved->fit, &rating, 1, again), BASE_OK);
    assert_memory_equal(row, again, recsys_row_floats(f->fit) * sizeof *row);
    assert_true(recsys_id_find(&saved->users, "16", &number));
    assert_int_equal(number, 2);
    assert_string_equal(recsys_id_text(&saved->items, 7, &text), "i007");
    assert_int_equal(saved->rated.count, rated.by_user.count);
    assert_memory_equal(saved->rated.column, rated.by_user.column, rated.by_user.count * 4);
    base_free(row);
    base_free(again);
}

static void round_trip(const char *model, const char *example)
{
    struct fitted f, other;
    struct store_checkpoint c = {0};
    struct recsys_saved *saved = NULL;
    char *folder = support_scratch(), *path = NULL;

    fit_open(&f, model, example);
    assert_int_equal(recsys_sweep(f.fit), BASE_OK);
    assert_int_equal(recsys_sweep(f.fit), BASE_OK);
    save(&f, folder, NULL);
    assert_int_equal(store_checkpoint_open(folder, false, &c), BASE_OK);
    if (recsys_saved_open(&c, 1, &saved) != BASE_OK)
        fail_msg("%s: %s", f.text, base_message());
    assert_answers(&f, saved);
    recsys_saved_close(saved);

    fit_open(&other, model, example);
    assert_int_equal(store_checkpoint_file(&c, RECSYS_MODEL_FILE, &path), BASE_OK);
    assert_int_equal(recsys_saved_read(other.fit, path, NULL), BASE_OK);
    other.fit->sweep = 2;
    assert_int_equal(recsys_sweep(f.fit), BASE_OK);
    assert_int_equal(recsys_sweep(other.fit), BASE_OK);
    for (int i = 0; i < f.fit->buffer_count; i++)
        if (!f.fit->buffers[i].passing)
            assert_memory_equal(f.fit->buffers[i].at, other.fit->buffers[i].at,
                                (size_t)f.fit->buffers[i].rows * f.fit->buffers[i].width * 4);
    fit_close(&other);
    base_free(path);
    store_checkpoint_close(&c);
    support_scratch_free(folder);
    fit_close(&f);
}

static void test_round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < recsys_model_count; i++) /* src/train writes those of batches */
        for (const char *const *e = recsys_model_registry[i]->examples;
             *e != NULL && !recsys_model_registry[i]->batches; e++)
            round_trip(recsys_model_registry[i]->name, *e);
}

static void more_users(json_t *ratings)
{
    json_object_set_new(ratings, "users", json_integer(USERS + 1));
}

static void another_k(json_t *ratings)
{
    json_array_set_new(json_object_get(ratings, "facts"), 0, json_integer(24));
}

static void no_facts(json_t *ratings)
{
    json_array_clear(json_object_get(ratings, "facts"));
}

static void falling_levels(json_t *ratings)
{
    json_array_set_new(json_object_get(json_object_get(ratings, "scale"), "levels"), 1,
                       json_integer(-7));
}

static void few_levels(json_t *ratings)
{
    json_array_remove(json_object_get(json_object_get(ratings, "scale"), "levels"), 9);
}

static void unknown_model(json_t *ratings)
{
    json_object_set_new(ratings, "model", json_string("oracle"));
}

static void test_spoilt(void **state)
{
    static void (*const spoils[])(json_t *) = {more_users,     another_k,  no_facts,
                                               falling_levels, few_levels, unknown_model};
    struct fitted f;

    (void)state;
    fit_open(&f, "bmf", "k=16,sweeps=8");
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        struct store_checkpoint c = {0};
        struct recsys_saved *saved = NULL;
        char *folder = support_scratch();

        save(&f, folder, spoils[i]);
        assert_int_equal(store_checkpoint_open(folder, false, &c), BASE_OK);
        if (recsys_saved_open(&c, 1, &saved) == BASE_OK)
            fail_msg("spoilt in way %zu, and opened", i);
        assert_null(saved);
        store_checkpoint_close(&c);
        support_scratch_free(folder);
    }
    fit_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trips),
                                       cmocka_unit_test(test_spoilt)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
