/* SPDX-License-Identifier: MIT */
#include "cli/recommend_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "cli/cli.h"

/* Users whose lists are in memory at once, and the most items of all these lists. */
enum { MOST_USERS = 1024, MOST_PICKS = 1 << 22 };

struct batch {
    struct recsys_asker *askers;
    struct recsys_wish *wishes;
    struct recsys_pick *picks;
    uint32_t *found;
    uint32_t size;
};

static base_status batch_init(struct batch *b, uint32_t n)
{
    base_status st = BASE_OK;
    const uint32_t users = MOST_PICKS / n;
    size_t picks;

    b->size = users < 1 ? 1 : users < MOST_USERS ? users : MOST_USERS;
    b->askers = base_calloc(b->size, sizeof *b->askers);
    b->wishes = base_calloc(b->size, sizeof *b->wishes);
    b->found = base_calloc(b->size, sizeof *b->found);
    TRY(base_mul(b->size, n, &picks));
    TRY(base_tensor(picks, sizeof *b->picks, "lists of items", &b->picks));
out:
    return st;
}

static void batch_fini(struct batch *b)
{
    for (uint32_t u = 0; b->askers != NULL && u < b->size; u++)
        recsys_asker_fini(&b->askers[u]);
    base_free(b->askers);
    base_free(b->wishes);
    base_free(b->found);
    base_free(b->picks);
}

static const struct recsys_ids *ids_of(const struct cli_recommend_all *all)
{
    return all->added != NULL ? &all->added->user_ids : &all->run->saved->users;
}

/* The wish of a user: of the run, or of the ratings that were added, who may be known to the run.
 */
static base_status ask(const struct cli_recommend_all *all, uint32_t user,
                       struct recsys_asker *asker)
{
    base_status st = BASE_OK;
    struct recsys_rating *added = NULL;
    uint32_t count = 0, known = user;
    uint64_t unknown = 0;
    struct recsys_id id;

    if (all->added != NULL) {
        TRY(cli_rating_run_added(all->run, all->added, user, &added, &count, &unknown));
        if (!recsys_id_find(&all->run->saved->users, recsys_id_text(ids_of(all), user, &id),
                            &known))
            known = RECSYS_UNKNOWN;
    }
    TRY(base_prefix(recsys_asker_init(all->run->saved, known, added, count, asker), "user %s",
                    recsys_id_text(ids_of(all), user, &id)));
    if (all->include_rated)
        asker->wish.seen_count = 0;
out:
    base_free(added);
    return st;
}

static void write_list(const struct cli_recommend_all *all, const struct batch *b, uint32_t index,
                       uint32_t user, FILE *out)
{
    const struct cli_rating_run *run = all->run;
    struct recsys_id user_id, item_id;

    for (uint32_t r = 0; r < b->found[index]; r++) {
        const uint32_t item = b->picks[(size_t)index * all->n + r].item;
        const char *title = cli_rating_run_title(run, item);

        cli_csv_field(recsys_id_text(ids_of(all), user, &user_id), out);
        fprintf(out, ",%u,", r + 1);
        cli_csv_field(recsys_id_text(&run->saved->items, item, &item_id), out);
        fprintf(out, ",%.4f",
                (double)recsys_predict_row(run->saved->fit, b->wishes[index].row, item, 0).value);
        if (run->titles.title != NULL)
            fputc(',', out);
        if (title != NULL)
            cli_csv_field(title, out);
        fputc('\n', out);
    }
}

/* Lists of users from … from+count-1, as text that is added to the file. */
static base_status write_batch(struct cli_recommend_all *all, struct batch *b, uint32_t from,
                               uint32_t count, struct base_replacement *file)
{
    base_status st = BASE_OK;
    char *text = NULL;
    size_t length = 0;
    FILE *out = NULL;

    for (uint32_t u = 0; u < count; u++) {
        recsys_asker_fini(&b->askers[u]);
        TRY(ask(all, from + u, &b->askers[u]));
        b->wishes[u] = b->askers[u].wish;
    }
    TRY(recsys_rank(all->run->saved->fit, b->wishes, count, all->barred, all->n, b->picks,
                    b->found));
    for (uint32_t u = 0; u < count; u++)
        if (b->wishes[u].row == NULL) { /* no rating of an item that the model knows */
            b->found[u] = 0;
            all->strangers++;
        }
    if ((out = open_memstream(&text, &length)) == NULL)
        TRY(base_fail(BASE_ERR_MEMORY, "no memory for the lists of %u users", count));
    for (uint32_t u = 0; u < count; u++) {
        write_list(all, b, u, from + u, out);
        all->lines += b->found[u];
        all->short_lists += b->found[u] < all->n;
    }
    if (fflush(out) != 0)
        TRY(base_fail(BASE_ERR_MEMORY, "no memory for the lists of %u users", count));
    TRY(base_replace_write(file, text, length));
    all->users += count;
out:
    if (out != NULL)
        fclose(out);
    free(text);
    return st;
}

base_status cli_recommend_all(struct cli_recommend_all *all)
{
    base_status st = BASE_OK;
    const uint32_t users = ids_of(all)->count;
    const char *head = all->run->titles.title != NULL ? "user,rank,item,prediction,title\n"
                                                      : "user,rank,item,prediction\n";
    struct base_replacement file = {.fd = -1};
    struct batch b = {0};

    base_stop_install(NULL);
    TRY(batch_init(&b, all->n));
    TRY(base_replace_begin(all->path, &file));
    TRY(base_replace_write(&file, head, strlen(head)));
    for (uint32_t from = 0; from < users; from += b.size) {
        TRY(write_batch(all, &b, from, users - from < b.size ? users - from : b.size, &file));
        base_progress(false, "%llu of %u users", (unsigned long long)all->users, users);
        if (base_stop_signal() != 0)
            TRY(base_fail(BASE_ERR_INTERRUPTED, "stopped after %llu of %u users; %s is as it was",
                          (unsigned long long)all->users, users, all->path));
    }
    TRY(base_replace_commit(&file));
out:
    base_progress_clear();
    base_replace_end(&file);
    batch_fini(&b);
    return st;
}
