/* SPDX-License-Identifier: MIT
 *
 * Ratings that grow: files that are added are one set with the first, whatever their form; its
 * cache is made once; a rating that comes again replaces the former one. Every model that is saved
 * goes on with more users and items: those that it knows keep their rows, the others begin as in a
 * new training.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "recsys/model_private.h"
#include "recsys/saved.h"
#include "recsys/split.h"
#include "support/datafiles.h"

static char *folder;

static int setup(void **state)
{
    (void)state;
    folder = support_scratch();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    support_scratch_free(folder);
    return 0;
}

static void put(const char *name, const char *text)
{
    support_write(folder, name, text, strlen(text));
}

/* The ratings of `name` and, unless they are NULL, of two files that are added. */
static base_status open_all(const char *name, const char *second, const char *third,
                            struct recsys_ratings **ratings_p)
{
    char *paths[] = {base_format("%s/%s", folder, name), base_format("%s/%s", folder, second),
                     base_format("%s/%s", folder, third)};
    const struct recsys_options options = {.threads = 1,
                                           .added = (const char *const[]){paths[1], paths[2]},
                                           .added_count = (second != NULL) + (third != NULL)};
    base_status st = recsys_ratings_open(paths[0], &options, ratings_p);

    for (int i = 0; i < 3; i++)
        base_free(paths[i]);
    return st;
}

static void expect_ratings(const struct recsys_ratings *r, const char *wanted)
{
    struct base_str all = {0};
    struct recsys_id user, item;

    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = r->by_user.start[u]; k < r->by_user.start[u + 1]; k++)
            base_str_add(&all, "%s %s %g;", recsys_id_text(&r->user_ids, u, &user),
                         recsys_id_text(&r->item_ids, r->by_user.column[k], &item),
                         (double)recsys_value(&r->scale, &r->by_user, k));
    assert_string_equal(all.text, wanted);
    base_str_fini(&all);
}

static void test_files(void **state)
{
    struct recsys_ratings *r = NULL;
    char *cache;

    (void)state;
    put("a.csv", "userId,movieId,rating,timestamp\n7,1,3,10\n7,9,4,11\n8,1,5,12\n");
    put("b.dat", "7::5::4::20\n3::1::3::21\n");
    put("c.csv", "userId,movieId,rating,timestamp\n7,1,5,30\n");
    assert_int_equal(open_all("a.csv", "b.dat", NULL, &r), BASE_OK);
    expect_ratings(r, "3 1 3;7 1 3;7 5 4;7 9 4;8 1 5;");
    assert_false(r->cached);
    recsys_ratings_close(r);

    assert_int_equal(open_all("a.csv", "b.dat", NULL, &r), BASE_OK);
    assert_true(r->cached);
    cache = base_strdup(r->cache);
    recsys_ratings_close(r);

    assert_int_equal(open_all("a.csv", "b.dat", "c.csv", &r), BASE_OK);
    expect_ratings(r, "3 1 3;7 1 5;7 5 4;7 9 4;8 1 5;");
    assert_int_equal(r->faults.duplicates, 1);
    assert_string_not_equal(r->cache, cache);
    recsys_ratings_close(r);

    assert_int_equal(open_all("a.csv", NULL, NULL, &r), BASE_OK); /* by itself it is as it was */
    expect_ratings(r, "7 1 3;7 9 4;8 1 5;");
    recsys_ratings_close(r);
    base_free(cache);
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {{"", "is empty"},
                 {"what is this\n", "in no known format"},
                 {"userId,movieId,rating\n1,2,3\n", "has times, and"}};
    struct recsys_ratings *r = NULL;

    (void)state;
    put("a.csv", "userId,movieId,rating,timestamp\n7,1,3,10\n7,9,4,11\n8,1,5,12\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("bad.csv", cases[i].text);
        assert_int_not_equal(open_all("a.csv", "bad.csv", NULL, &r), BASE_OK);
        assert_non_null(strstr(base_message(), cases[i].message));
    }
    assert_int_not_equal(open_all("a.csv", "none.csv", NULL, &r), BASE_OK);
    assert_non_null(strstr(base_message(), "cannot open"));
}

/* ---- models ---- */

struct grown {
    struct recsys_ratings *set;
    struct recsys_division parts;
    struct base_team *team;
    void *options;
    struct recsys_fit *fit;
};

static void grown_open(struct grown *g, const char *added, const char *model)
{
    struct recsys_setup s = {.by_user = &g->parts.by_user, .by_item = &g->parts.by_item, .seed = 5};

    assert_int_equal(open_all("some.csv", added, NULL, &g->set), BASE_OK);
    assert_int_equal(base_team_new(2, &g->team), BASE_OK);
    assert_int_equal(recsys_model_find(model, &s.model, &g->options), BASE_OK);
    assert_int_equal(recsys_divide(g->set,
                                   &(struct recsys_divide){.split = "none",
                                                           .seed = 5,
                                                           .threads = 1,
                                                           .by_item = s.model->by_item,
                                                           .times = s.model->times},
                                   &g->parts),
                     BASE_OK);
    s.options = g->options;
    s.scale = &g->set->scale;
    s.team = g->team;
    assert_int_equal(recsys_fit_new(&s, &g->fit), BASE_OK);
}

static void grown_close(struct grown *g)
{
    recsys_fit_free(g->fit);
    base_free(g->options);
    base_team_free(g->team);
    recsys_division_fini(&g->parts);
    recsys_ratings_close(g->set);
}

/* Even users rate even items; the file that is added has odd ones of both, and texts as ids. */
static void put_sets(void)
{
    struct base_str some = {0}, more = {0};

    base_str_add(&some, "userId,movieId,rating,timestamp\n");
    base_str_add(&more, "userId,movieId,rating,timestamp\nme,m1,5,86400\n");
    for (unsigned u = 0; u < 40; u++)
        for (unsigned i = 0; i < 30; i++)
            if ((u * 7 + i * 3) % 5 < 2)
                base_str_add(u % 2 == 0 && i % 2 == 0 ? &some : &more, "%u,%u,%u,%u\n", u, i,
                             1 + (u * i) % 5, 86400 * (1 + u));
    put("some.csv", some.text);
    put("more.csv", more.text);
    base_str_fini(&some);
    base_str_fini(&more);
}

static const float *place_of(const struct recsys_buffer *b, uint32_t row, uint32_t number)
{
    return b->across ? b->at + (size_t)row * b->width + 8 * (size_t)number
                     : b->at + (size_t)number * b->width;
}

/* `from`: as the buffer was before; `anew`: as it would begin. */
static void check_buffer(const struct recsys_buffer *b, const struct recsys_buffer *from,
                         const struct recsys_buffer *anew, const uint32_t *numbers, uint32_t count)
{
    const uint32_t rows = b->across ? b->rows : 1, width = b->across ? 8 : b->width;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t r = 0; r < rows; r++) {
            const float *wanted =
                numbers[i] != RECSYS_NO_ID ? place_of(from, r, numbers[i]) : place_of(anew, r, i);

            if (memcmp(place_of(b, r, i), wanted, width * sizeof(float)) != 0)
                fail_msg("%s of %u is another", b->name, i);
        }
}

static void check_grown(const struct grown *before, const struct grown *after,
                        const struct grown *anew)
{
    const struct recsys_ratings *old = before->set, *set = after->set;
    uint32_t *users = recsys_ids_match(&set->user_ids, &old->user_ids);
    uint32_t *items = recsys_ids_match(&set->item_ids, &old->item_ids);

    for (int i = 0; i < after->fit->buffer_count; i++) {
        const struct recsys_buffer *b = &after->fit->buffers[i];

        if (b->passing || b->late || b->of == RECSYS_NEITHER || strstr(b->name, "effects") != NULL)
            continue; /* effects follow from the ratings as they are now */
        check_buffer(b, &before->fit->buffers[i], &anew->fit->buffers[i],
                     b->of == RECSYS_OF_USERS ? users : items,
                     b->of == RECSYS_OF_USERS ? set->users : set->items);
    }
    base_free(users);
    base_free(items);
}

static void grow(const char *model)
{
    struct grown before = {0}, after = {0}, anew = {0};
    struct store_save *save = NULL;
    struct store_checkpoint c = {0};
    struct recsys_score score = {0};
    char *place = base_format("%s/saved", folder), *text = NULL;
    json_t *manifest;

    put_sets();
    grown_open(&before, NULL, model);
    for (int i = 0; i < 3; i++)
        assert_int_equal(recsys_sweep(before.fit), BASE_OK);
    manifest = json_pack("{s:s, s:o}", "task", "ratings", "ratings",
                         recsys_saved_manifest(before.fit, model));
    assert_int_equal(store_save_begin(place, 3, &save), BASE_OK);
    assert_int_equal(recsys_saved_write(before.fit, before.set, NULL, save), BASE_OK);
    assert_int_equal(store_save_commit(save, manifest, 0), BASE_OK);
    json_decref(manifest);

    assert_int_equal(store_checkpoint_open(place, false, &c), BASE_OK);
    assert_int_equal(recsys_saved_text(c.manifest, &text), BASE_OK);
    grown_open(&after, "more.csv", text);
    grown_open(&anew, "more.csv", text);
    if (recsys_saved_grow(after.fit, after.set, &c) != BASE_OK)
        fail_msg("%s: %s", model, base_message());
    check_grown(&before, &after, &anew);
    after.fit->sweep = after.fit->again.from;
    for (int i = 0; i < 3; i++)
        assert_int_equal(recsys_sweep(after.fit), BASE_OK);
    assert_int_equal(recsys_score(after.fit, after.fit->by_user, 0, after.fit->users, &score),
                     BASE_OK);
    assert_true(score.squared / score.count < 4);

    /* The other way round users are missing. */
    assert_int_not_equal(recsys_saved_grow(before.fit, &(struct recsys_ratings){0}, &c), BASE_OK);
    assert_non_null(strstr(base_message(), "of the model is not in the data"));
    store_checkpoint_close(&c);
    grown_close(&before);
    grown_close(&after);
    grown_close(&anew);
    base_free(place);
    base_free(text);
}

static void test_models(void **state)
{
    static const char *const models[] = {"bias-stat",
                                         "bias-als",
                                         "bias-gd",
                                         "mf:k=8",
                                         "ials:k=8",
                                         "bmf:sweeps=20",
                                         "bmf:k=8,sweeps=20,likelihood=ordinal",
                                         "bmf:k=8,sweeps=20,time=5"};

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        support_scratch_free(folder);
        folder = support_scratch();
        grow(models[i]);
    }
}

/* The effects of bmf are the sums that they must be: drawn sites keep them so. */
static void test_effects(void **state)
{
    struct grown g = {0};
    const struct recsys_buffer *b;

    (void)state;
    put_sets();
    grown_open(&g, "more.csv", "bmf:k=8,sweeps=20");
    for (int i = 0; i < 2; i++)
        assert_int_equal(recsys_sweep(g.fit), BASE_OK);
    for (int i = 0; i < g.fit->buffer_count; i++) {
        float *drawn;

        b = &g.fit->buffers[i];
        if (strstr(b->name, "effects") == NULL)
            continue;
        drawn = base_calloc((size_t)b->rows * b->width, sizeof *drawn);
        memcpy(drawn, b->at, (size_t)b->rows * b->width * sizeof *drawn);
        g.fit->model->grown(g.fit);
        for (size_t f = 0; f < (size_t)b->rows * b->width; f++)
            assert_true(drawn[f] - b->at[f] < 1e-3f && b->at[f] - drawn[f] < 1e-3f);
        base_free(drawn);
    }
    grown_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_models, setup, teardown),
        cmocka_unit_test_setup_teardown(test_effects, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
