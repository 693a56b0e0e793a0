/* SPDX-License-Identifier: MIT */
#include "cli/rating_run.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/csv.h"
#include "model/model.h"
#include "recsys/ratings.h"

/* ---- titles ---- */

/* movies.csv in the folder of the ratings, which may be a file there; base_free, or NULL. */
static char *titles_beside(const char *data)
{
    char *folder = NULL, *path, *slash;

    if (recsys_ratings_path(data, &folder) != BASE_OK)
        return NULL;
    slash = strrchr(folder, '/');
    if (base_is_dir(folder))
        path = base_format("%s/movies.csv", folder);
    else if (slash != NULL)
        path = base_format("%.*s/movies.csv", (int)(slash - folder), folder);
    else
        path = base_strdup("movies.csv");
    base_free(folder);
    if (!base_exists(path)) {
        base_free(path);
        path = NULL;
    }
    return path;
}

static base_status open_titles(struct cli_rating_run *run, const char *path)
{
    char *beside = NULL;

    if (path != NULL)
        return recsys_titles_open(path, &run->saved->items, &run->titles);
    beside = titles_beside(run->saved->data);
    if (beside != NULL && recsys_titles_open(beside, &run->saved->items, &run->titles) != BASE_OK)
        base_warn("no titles: %s", base_message()); /* no one asked for this file */
    base_free(beside);
    return BASE_OK;
}

/* ---- a run ---- */

base_status cli_rating_run_open(const char *name, const struct cli_rating_args *args,
                                struct cli_rating_run *run)
{
    base_status st = BASE_OK;

    *run = (struct cli_rating_run){0};
    if (args->quiet)
        base_log_level(BASE_WARN);
    TRY(model_find(name, args->runs_dir, args->best, &run->checkpoint));
    if (!recsys_saved_is(run->checkpoint.manifest))
        TRY(base_fail(BASE_ERR_USAGE,
                      "%s is no rating model but a network, which 'paceline predict' asks", name));
    TRY(recsys_saved_open(&run->checkpoint, (int)args->threads, &run->saved));
    TRY(open_titles(run, args->titles));
out:
    if (st != BASE_OK)
        cli_rating_run_close(run);
    return st;
}

void cli_rating_run_close(struct cli_rating_run *run)
{
    recsys_titles_close(&run->titles);
    recsys_saved_close(run->saved);
    store_checkpoint_close(&run->checkpoint);
    *run = (struct cli_rating_run){0};
}

/* ---- items ---- */

base_status cli_rating_run_item(const struct cli_rating_run *run, const char *id, uint32_t *item_p)
{
    if (recsys_id_find(&run->saved->items, id, item_p))
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE, "item '%s' is none of the %u that the model was trained on",
                     id, run->saved->items.count);
}

const char *cli_rating_run_title(const struct cli_rating_run *run, uint32_t item)
{
    return run->titles.title != NULL ? run->titles.title[item] : NULL;
}

void cli_rating_run_name(const struct cli_rating_run *run, uint32_t item, struct base_str *text)
{
    const char *title = cli_rating_run_title(run, item);
    struct recsys_id id;

    base_str_add(text, "%s%s%s", recsys_id_text(&run->saved->items, item, &id),
                 title != NULL ? " " : "", title != NULL ? title : "");
}

json_t *cli_rating_run_json(const struct cli_rating_run *run, uint32_t item)
{
    const char *title = cli_rating_run_title(run, item);
    struct recsys_id id;

    return json_pack("{s:o, s:o}", "item",
                     base_json_text(recsys_id_text(&run->saved->items, item, &id)), "title",
                     title != NULL ? base_json_text(title) : json_null());
}

/* The ids in a file, one a line. */
static base_status bar_listed(const struct cli_rating_run *run, const char *path, bool *barred)
{
    enum { LIMIT = 1 << 30 };
    base_status st = BASE_OK;
    struct data_csv csv = {0};
    uint64_t unknown = 0;
    char *bytes = NULL;
    size_t count = 0;
    bool more = true;

    TRY(base_file_read(path, LIMIT, &bytes, &count));
    data_csv_init(&csv, bytes, count);
    for (;;) {
        uint32_t item;

        TRY(base_prefix(data_csv_next(&csv, &more), "%s", path));
        if (!more)
            break;
        if (csv.count == 0 || data_csv_field(&csv, 0)[0] == '\0')
            continue;
        if (recsys_id_find(&run->saved->items, data_csv_field(&csv, 0), &item))
            barred[item] = true;
        else
            unknown += csv.line > 1; /* the first line may have titles */
    }
    if (unknown > 0)
        base_warn("%s: %llu line%s with an item that the model does not know", path,
                  (unsigned long long)unknown, base_plural((int64_t)unknown));
out:
    data_csv_fini(&csv);
    base_free(bytes);
    return st;
}

base_status cli_rating_run_barred(const struct cli_rating_run *run, const char *path,
                                  uint32_t least, bool **barred_p)
{
    base_status st = BASE_OK;

    TRY(base_tensor(run->saved->items.count, sizeof **barred_p, "excluded items", barred_p));
    for (uint32_t i = 0; i < run->saved->items.count; i++)
        (*barred_p)[i] = run->saved->item_counts[i] < least;
    if (path != NULL)
        TRY(bar_listed(run, path, *barred_p));
out:
    return st;
}

/* ---- ratings that the model does not know ---- */

base_status cli_rating_run_added(const struct cli_rating_run *run, const struct recsys_ratings *set,
                                 uint32_t user, struct recsys_rating **added_p, uint32_t *count_p,
                                 uint64_t *unknown_p)
{
    base_status st = BASE_OK;
    const struct recsys_rows *rows = &set->by_user;
    const uint64_t from = rows->start[user], to = rows->start[user + 1];

    *count_p = 0;
    TRY(base_tensor(to - from + 1, sizeof **added_p, "new ratings", added_p));
    for (uint64_t k = from; k < to; k++) {
        struct recsys_rating *r = &(*added_p)[*count_p];
        struct recsys_id id;

        r->value = recsys_value(&set->scale, rows, k);
        r->time = rows->time != NULL ? rows->time[k] : 0;
        if (recsys_id_find(&run->saved->items, recsys_id_text(&set->item_ids, rows->column[k], &id),
                           &r->item))
            ++*count_p;
        else
            ++*unknown_p;
    }
out:
    return st;
}

#define AT(field) offsetof(struct cli_rating_args, field)

/* clang-format off */
const struct base_option cli_rating_options[] = {
    {.name = "count", .alias = "n", .argument = "N", .kind = BASE_INT, .offset = AT(n), .min = 1,
     .max = 1e6, .help = "how many items", .local = true},
    {.name = "titles", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(titles), .local = true,
     .help = "a table with the items' titles [movies.csv beside the ratings, if it is there]"},
    {.name = "best", .kind = BASE_FLAG, .offset = AT(best), .local = true,
     .help = "the checkpoint marked best instead of the newest"},
    {.name = "threads", .argument = "N", .kind = BASE_INT, .offset = AT(threads), .max = 1024,
     .help = "compute threads; 0: one per core", .local = true},
    {.name = "runs-dir", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(runs_dir),
     .help = "where runs are kept", .local = true},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json),
     .help = "one JSON object on standard output", .local = true},
    {.name = "quiet", .kind = BASE_FLAG, .offset = AT(quiet),
     .help = "of messages only warnings and errors", .local = true},
    {0},
};
/* clang-format on */
