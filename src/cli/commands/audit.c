/* SPDX-License-Identifier: MIT
 *
 * paceline audit: which users of a set of ratings look made up, to push an item; which images that
 * a network was trained on look as if they opened a backdoor (cli/audit_images.h). Nothing is
 * changed; --drop writes an index of these users or images, which `train --exclude` leaves out.
 */
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/audit_images.h"
#include "cli/command.h"
#include "data/get.h"
#include "data/index.h"
#include "model/model.h"
#include "recsys/audit.h"
#include "recsys/saved.h"

struct args {
    const char *drop, *columns, *separator, *runs_dir;
    struct base_texts data;
    int64_t threads, show;
    bool json, quiet;
};

struct audit {
    struct model_about about; /* of a run; zeros: ratings are audited */
    struct recsys_ratings *ratings;
    struct recsys_audit found;
};

/* ---- what is audited ---- */

/* Is it no set of ratings, but something that was trained? */
static bool is_run(const struct args *args, const char *name)
{
    return !data_get_knows(name) && !recsys_is_ratings(name) && args->columns == NULL;
}

static base_status is_network(const struct args *args, const char *name, bool *network_p)
{
    base_status st = BASE_OK;
    struct store_checkpoint checkpoint = {0};

    *network_p = false;
    if (!is_run(args, name))
        return BASE_OK;
    TRY(model_find(name, args->runs_dir, false, &checkpoint));
    *network_p = !recsys_saved_is(checkpoint.manifest);
out:
    store_checkpoint_close(&checkpoint);
    return st;
}

/* Of a run: what it was trained on, and how that is read. */
static base_status open_run(const char *name, const char *runs_dir, struct model_about *about_p)
{
    base_status st = BASE_OK;
    struct store_checkpoint checkpoint = {0};

    TRY(model_find(name, runs_dir, false, &checkpoint));
    TRY(model_about_from_json(checkpoint.manifest, about_p));
    if (json_array_size(json_object_get(about_p->settings, "add")) > 0)
        TRY(base_fail(BASE_ERR_USAGE,
                      "run %s was trained on ratings of several files (--add); audit them one by "
                      "one",
                      name));
out:
    store_checkpoint_close(&checkpoint);
    return st;
}

/* Ratings by their path or name, or those that a run was trained on. */
static base_status open_ratings(const struct args *args, const char *name, struct audit *a)
{
    base_status st = BASE_OK;
    struct recsys_options options = {
        .columns = args->columns, .separator = args->separator, .threads = (int)args->threads};
    char *path = NULL;

    if (is_run(args, name)) {
        TRY(open_run(name, args->runs_dir, &a->about));
        options.columns = json_string_value(json_object_get(a->about.settings, "columns"));
        options.separator = json_string_value(json_object_get(a->about.settings, "separator"));
        name = model_about_place(&a->about);
    }
    TRY(recsys_ratings_path(name, &path));
    TRY(recsys_ratings_open(path, &options, &a->ratings));
    recsys_warn(a->ratings);
out:
    base_free(path);
    return st;
}

/* ---- what is told ---- */

static void tell(const struct audit *a, const char *name, int64_t show)
{
    const struct recsys_audit *f = &a->found;
    struct recsys_id id;

    printf("%s: %u of %u users are suspicious", name, f->suspect_count, a->ratings->users);
    printf(f->target_count > 0 ? "; they push\n" : "\n");
    for (uint32_t i = 0; i < f->target_count; i++)
        printf("  item %s to %g: %u users; %.1f %% of odd users rate it so, %.2f %% of others\n",
               recsys_id_text(&a->ratings->item_ids, f->targets[i].item, &id),
               (double)f->targets[i].value, f->targets[i].suspects, 100 * f->targets[i].share,
               100 * f->targets[i].usual);
    if (f->suspect_count > 0)
        printf("  %-12s %7s  %10s %12s %10s\n", "user", "score", "obscurity", "unexplained",
               "deviation");
    for (uint32_t i = 0; i < f->suspect_count && i < show; i++) {
        const struct recsys_feature *x = &f->features[f->suspects[i].user];

        printf("  %-12s %7.1f  %10.1f %12.1f %10.1f\n",
               recsys_id_text(&a->ratings->user_ids, f->suspects[i].user, &id), x->score,
               x->obscurity, x->unexplained, x->deviation);
    }
    if (f->suspect_count > show)
        printf("  … and %lld more (--show, --json, --drop)\n", (long long)f->suspect_count - show);
}

static json_t *targets_json(const struct audit *a)
{
    json_t *list = json_array();
    struct recsys_id id;

    for (uint32_t i = 0; i < a->found.target_count; i++) {
        const struct recsys_target *t = &a->found.targets[i];

        json_array_append_new(
            list, json_pack("{s:o, s:f, s:I, s:f, s:f}", "item",
                            base_json_text(recsys_id_text(&a->ratings->item_ids, t->item, &id)),
                            "rating", (double)t->value, "suspects", (json_int_t)t->suspects,
                            "share", t->share, "usual", t->usual));
    }
    return list;
}

static json_t *suspects_json(const struct audit *a)
{
    json_t *list = json_array();
    struct recsys_id id;

    for (uint32_t i = 0; i < a->found.suspect_count; i++) {
        const struct recsys_suspect *s = &a->found.suspects[i];
        const struct recsys_feature *x = &a->found.features[s->user];

        json_array_append_new(
            list,
            json_pack("{s:o, s:I, s:f, s:f, s:f, s:f}", "user",
                      base_json_text(recsys_id_text(&a->ratings->user_ids, s->user, &id)), "target",
                      (json_int_t)s->target, "score", x->score, "obscurity", x->obscurity,
                      "unexplained", x->unexplained, "deviation", x->deviation));
    }
    return list;
}

static base_status drop(const struct audit *a, const char *path)
{
    base_status st;
    const uint32_t count = a->found.suspect_count;
    char **users = base_calloc((size_t)count + 1, sizeof *users);
    struct data_index index;
    struct recsys_id id;

    for (uint32_t i = 0; i < count; i++)
        users[i] =
            base_strdup(recsys_id_text(&a->ratings->user_ids, a->found.suspects[i].user, &id));
    data_index_of_users(a->ratings->digest, a->ratings->users, users, count, &index);
    st = data_index_write(&index, path,
                          json_pack("{s:o}", "from", base_json_text(a->ratings->path)));
    data_index_fini(&index);
    if (st == BASE_OK)
        base_info("%s lists %u user%s for train --exclude", path, count, base_plural(count));
    return st;
}

static base_status audit_ratings(const struct args *a, const char *name)
{
    base_status st = BASE_OK;
    struct audit audit = {0};
    json_t *object = NULL;

    if (a->data.count > 0)
        TRY(base_fail(BASE_ERR_USAGE, "--data is for runs of images; name the ratings themselves"));
    TRY(open_ratings(a, name, &audit));
    TRY(recsys_audit(audit.ratings, &audit.found));
    if (a->drop != NULL)
        TRY(drop(&audit, a->drop));
    if (a->json) {
        object = json_pack("{s:i, s:o, s:I, s:s, s:o, s:o}", "schema", 1, "data",
                           base_json_text(audit.ratings->path), "users",
                           (json_int_t)audit.ratings->users, "digest", audit.ratings->digest,
                           "targets", targets_json(&audit), "suspects", suspects_json(&audit));
        TRY(base_json_print(object));
    } else {
        tell(&audit, name, a->show);
    }
out:
    json_decref(object);
    recsys_audit_fini(&audit.found);
    recsys_ratings_close(audit.ratings);
    model_about_fini(&audit.about);
    return st;
}

static base_status cmd_audit(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    const struct cli_audit_images images = {.run = positional->at[0],
                                            .runs_dir = a->runs_dir,
                                            .drop = a->drop,
                                            .data = &a->data,
                                            .threads = (int)a->threads,
                                            .show = a->show,
                                            .json = a->json};
    bool network = false;

    if (a->quiet)
        base_log_level(BASE_WARN);
    TRY(is_network(a, positional->at[0], &network));
    TRY(network ? cli_audit_images(&images) : audit_ratings(a, positional->at[0]));
out:
    return st;
}

#define AT(field) offsetof(struct args, field)
/* clang-format off */
static const struct base_option options[] = {
    {.name = "drop", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(drop), .local = true,
     .help = "write an index of the suspicious users or images, for train --exclude"},
    {.name = "data", .argument = "D", .kind = BASE_TEXTS, .offset = AT(data), .local = true,
     .help = "of a network: the images [what it was trained on]; of workers with data of their own, each in turn"},
    {.name = "show", .argument = "N", .kind = BASE_INT, .offset = AT(show), .max = 1e9, .local = true,
     .help = "suspicious users or images to print"},
    {.name = "columns", .argument = "NAMES", .kind = BASE_TEXT, .offset = AT(columns), .local = true,
     .help = "what the columns are, as in user,item,rating,time; others are skipped"},
    {.name = "separator", .argument = "TEXT", .kind = BASE_TEXT, .offset = AT(separator), .local = true,
     .help = "with --columns: what is between them [found by content]"},
    {.name = "threads", .argument = "N", .kind = BASE_INT, .offset = AT(threads), .max = 1024, .local = true,
     .help = "threads that read ratings or compute; 0: one a core"},
    {.name = "runs-dir", .argument = "DIR", .kind = BASE_TEXT, .offset = AT(runs_dir), .local = true,
     .help = "where runs are kept"},
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json), .local = true,
     .help = "one JSON object on standard output"},
    {.name = "quiet", .kind = BASE_FLAG, .offset = AT(quiet), .local = true,
     .help = "of messages only warnings and errors"},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_audit = {
    .name = "audit",
    .help = "find fake users in ratings, and images that open a backdoor",
    .usage = "paceline audit RATINGS|RUN [--data D] [--drop FILE] [options]",

    .examples =
        "  paceline audit ml-latest-small/ratings.csv\n"
        "  paceline audit films --drop fakes.json          # what the run was trained on\n"
        "  paceline audit digits --drop marked.json        # a network: images with a mark\n"
        "  paceline train --model mf --data ratings.csv --exclude fakes.json\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.runs_dir = "runs", .show = 20},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_audit,
};
