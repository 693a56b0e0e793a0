/* SPDX-License-Identifier: MIT */
#include "recsys/titles.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "data/csv.h"

enum { LIMIT = 1 << 30 }; /* bytes of the table */

/* The columns of ids and titles, by name; ids are in the first where none is named so. */
static base_status find_columns(struct data_csv *csv, size_t *id_p, size_t *title_p)
{
    base_status st = BASE_OK;
    bool more = false;

    *id_p = 0;
    *title_p = SIZE_MAX;
    TRY(data_csv_next(csv, &more));
    for (size_t i = 0; more && i < csv->count; i++) {
        const char *name = data_csv_field(csv, i);

        if (strcasecmp(name, "movieId") == 0 || strcasecmp(name, "itemId") == 0 ||
            strcasecmp(name, "item") == 0 || strcasecmp(name, "id") == 0)
            *id_p = i;
        if (*title_p == SIZE_MAX &&
            (strcasecmp(name, "title") == 0 || strcasecmp(name, "name") == 0))
            *title_p = i;
    }
    if (*title_p == SIZE_MAX || *title_p == *id_p)
        TRY(base_fail(BASE_ERR_DATA, "its first line names no column 'title' or 'name', as in: "
                                     "movieId,title,genres"));
out:
    return st;
}

static base_status read_titles(struct data_csv *csv, const struct recsys_ids *items,
                               struct recsys_titles *t)
{
    base_status st = BASE_OK;
    size_t id, title;

    TRY(find_columns(csv, &id, &title));
    for (bool more = true; more;) {
        uint32_t item;

        if (data_csv_next(csv, &more) != BASE_OK ||
            (more && (csv->count <= id || csv->count <= title))) {
            t->bad_lines++;
            continue;
        }
        if (!more || !recsys_id_find(items, data_csv_field(csv, id), &item) ||
            t->title[item] != NULL)
            continue;
        t->title[item] = base_strdup(data_csv_field(csv, title));
        t->known++;
    }
out:
    return st;
}

base_status recsys_titles_open(const char *path, const struct recsys_ids *items,
                               struct recsys_titles *t)
{
    base_status st = BASE_OK;
    struct data_csv csv = {0};
    char *bytes = NULL;
    size_t count = 0;

    *t = (struct recsys_titles){.items = items->count};
    TRY(base_tensor(items->count, sizeof *t->title, "titles", &t->title));
    TRY(base_file_read(path, LIMIT, &bytes, &count));
    data_csv_init(&csv, bytes, count);
    TRY(base_prefix(read_titles(&csv, items, t), "%s", path));
    if (t->bad_lines > 0)
        base_warn("%s: %llu line%s that cannot be read", path, (unsigned long long)t->bad_lines,
                  base_plural((int64_t)t->bad_lines));
out:
    data_csv_fini(&csv);
    base_free(bytes);
    if (st != BASE_OK)
        recsys_titles_close(t);
    return st;
}

void recsys_titles_close(struct recsys_titles *t)
{
    for (uint32_t i = 0; t->title != NULL && i < t->items; i++)
        base_free(t->title[i]);
    base_free(t->title);
    *t = (struct recsys_titles){0};
}
