/* SPDX-License-Identifier: MIT */
#include "support/texts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "support/datafiles.h"

char *texts_folder;

int texts_set_up(void **state)
{
    (void)state;
    texts_folder = support_scratch();
    base_log_level(BASE_WARN);
    return 0;
}

int texts_tear_down(void **state)
{
    (void)state;
    support_scratch_free(texts_folder);
    return 0;
}

void texts_put(const char *name, const char *text)
{
    support_write(texts_folder, name, text, strlen(text));
}

struct recsys_ratings *texts_open_with(const char *name, const struct recsys_options *options)
{
    struct recsys_ratings *r;
    char *path = base_format("%s/%s", texts_folder, name);
    base_status st = recsys_ratings_open(path, options, &r);

    if (st != BASE_OK)
        fail_msg("%s", base_message());
    base_free(path);
    return r;
}

struct recsys_ratings *texts_open(const char *text)
{
    texts_put("ratings.txt", text);
    return texts_open_with("ratings.txt", &(struct recsys_options){.no_cache = true});
}

void texts_fail(const char *text, const struct recsys_options *options, const char *message)
{
    struct recsys_ratings *r;
    char *path = base_format("%s/bad.txt", texts_folder);

    texts_put("bad.txt", text);
    assert_int_not_equal(recsys_ratings_open(path, options, &r), BASE_OK);
    assert_null(r);
    if (strstr(base_message(), message) == NULL)
        fail_msg("'%s' is not in '%s'", message, base_message());
    base_free(path);
}

/* All ratings as "user item value time;", users and items by id. */
static char *dump(const struct recsys_ratings *r)
{
    struct base_str s = {0};
    const struct recsys_rows *rows = &r->by_user;

    base_str_add(&s, "%s", "");
    for (uint32_t u = 0; u < r->users; u++)
        for (uint64_t k = rows->start[u]; k < rows->start[u + 1]; k++) {
            struct recsys_id user, item;

            base_str_add(&s, "%s %s %g", recsys_id_text(&r->user_ids, u, &user),
                         recsys_id_text(&r->item_ids, rows->column[k], &item),
                         (double)recsys_value(&r->scale, rows, k));
            if (rows->time != NULL)
                base_str_add(&s, " %u", rows->time[k]);
            base_str_add(&s, ";");
        }
    return base_str_take(&s);
}

void texts_hold(struct recsys_ratings *r, const char *format, const char *want)
{
    char *found = dump(r);

    assert_string_equal(r->format, format);
    assert_string_equal(found, want);
    base_free(found);
    recsys_ratings_close(r);
}

char *texts_large(bool netflix, size_t lines)
{
    struct base_str s = {0};

    base_str_add(&s, "%s", netflix ? "" : "userId,movieId,rating,timestamp\n");
    for (size_t i = 0; i < lines; i++) {
        uint32_t user = (uint32_t)(i * 2654435761u) % 5000, item = (uint32_t)(i / 7 % 900);

        if (netflix && i % 40000 == 0)
            base_str_add(&s, "%zu:\n", i / 40000 + 1);
        if (netflix)
            base_str_add(&s, "%u,%zu,200%zu-01-1%zu\n", user, i % 5 + 1, i % 6, i % 9);
        else
            base_str_add(&s, "%u,%u,%s%zu\n", user * 7919 % 100003, item,
                         i % 1000 == 999 ? "bad," : (i % 3 ? "4.5," : "3.0,"), i);
    }
    return base_str_take(&s);
}
