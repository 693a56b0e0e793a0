/* SPDX-License-Identifier: MIT
 *
 * paceline recommend RUN --user U: the items that a user would rate best, of those that it has not
 * rated; also for users who were not there in training, whose ratings are in a file.
 */
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/recommend_all.h"

struct args {
    struct cli_rating_args run;
    const char *user, *added, *exclude, *out;
    bool all, explain, include_rated;
    int64_t least;
};

enum { CAUSES = 3 }; /* ratings that explain a pick */

/* A list for one user under way. */
struct list {
    const struct args *args;
    struct cli_rating_run run;
    struct recsys_ratings *added; /* of --new, or NULL */
    bool *barred;                 /* of --exclude and --least */
    const char *user;             /* its id */
    bool known;                   /* from training */
    struct recsys_asker asker;
    struct recsys_pick *picks;
    uint32_t n, found;
};

/* ---- who asks ---- */

/* The user that --user names in the file of --new, or its only one. */
static base_status cmd_recommend_new_user(struct list *l, uint32_t *user_p, struct recsys_id *id)
{
    const struct recsys_ratings *set = l->added;

    if (l->user == NULL && set->users > 1)
        return base_fail(BASE_ERR_USAGE,
                         "%s has ratings of %u users: choose one with --user, or take --all",
                         l->args->added, set->users);
    if (l->user == NULL) {
        *user_p = 0;
        l->user = recsys_id_text(&set->user_ids, 0, id);
        return BASE_OK;
    }
    if (recsys_id_find(&set->user_ids, l->user, user_p))
        return BASE_OK;
    return base_fail(BASE_ERR_USAGE, "%s has no rating of user '%s'", l->args->added, l->user);
}

static base_status cmd_recommend_unknown_user(const struct list *l)
{
    struct recsys_id id;

    return base_fail(BASE_ERR_USAGE,
                     "user '%s' is none of the %u that the model was trained on (such as %s); give "
                     "its ratings with --new FILE",
                     l->user, l->run.saved->users.count,
                     recsys_id_text(&l->run.saved->users, 0, &id));
}

static base_status cmd_recommend_find_asker(struct list *l, struct recsys_id *id)
{
    base_status st = BASE_OK;
    struct recsys_rating *added = NULL;
    uint32_t count = 0, user = RECSYS_UNKNOWN, row = 0;
    uint64_t unknown = 0;

    if (l->added != NULL) {
        TRY(cmd_recommend_new_user(l, &row, id));
        TRY(cli_rating_run_added(&l->run, l->added, row, &added, &count, &unknown));
    }
    if (unknown > 0)
        base_warn("%s: %llu rating%s of items that the model does not know", l->args->added,
                  (unsigned long long)unknown, base_plural((int64_t)unknown));
    l->known = recsys_id_find(&l->run.saved->users, l->user, &user);
    if (!l->known && l->added == NULL)
        TRY(cmd_recommend_unknown_user(l));
    if (!l->known && count == 0)
        TRY(base_fail(BASE_ERR_DATA, "%s has no rating of an item that the model knows",
                      l->args->added));
    TRY(base_prefix(
        recsys_asker_init(l->run.saved, l->known ? user : RECSYS_UNKNOWN, added, count, &l->asker),
        "user %s", l->user));
    if (l->args->include_rated)
        l->asker.wish.seen_count = 0;
out:
    base_free(added);
    return st;
}

/* ---- answers ---- */

static uint64_t cmd_recommend_barred_count(const struct list *l)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < l->run.saved->items.count; i++)
        count += l->barred[i];
    return count;
}

/* Why there are fewer items than were asked for; base_free. NULL: there are as many. */
static char *cmd_recommend_why_fewer(const struct list *l)
{
    struct base_str why = {0};
    const uint64_t barred = cmd_recommend_barred_count(l);

    if (l->found == l->n)
        return NULL;
    if (l->found == 0)
        base_str_add(&why, "no item is left");
    else
        base_str_add(&why, "only %u item%s left", l->found, l->found == 1 ? " is" : "s are");
    base_str_add(&why, ": user %s has rated %llu of the %u items", l->user,
                 (unsigned long long)l->asker.wish.seen_count, l->run.saved->items.count);
    if (barred > 0)
        base_str_add(&why, ", and %llu are excluded or have fewer than %lld ratings (--least)",
                     (unsigned long long)barred, (long long)l->args->least);
    return base_str_take(&why);
}

static base_status cmd_recommend_causes(const struct list *l, uint32_t item,
                                        struct recsys_cause *causes, uint32_t *count_p)
{
    *count_p = 0;
    return l->args->explain ? recsys_because(l->run.saved, &l->asker, item, CAUSES, causes, count_p)
                            : BASE_OK;
}

static base_status cmd_recommend_print(const struct list *l)
{
    base_status st = BASE_OK;
    struct base_str text = {0};

    base_str_add(&text, "%u item%s for user %s, by %s:\n", l->found, base_plural((int64_t)l->found),
                 l->user, l->run.saved->model);
    for (uint32_t r = 0; r < l->found; r++) {
        const uint32_t item = l->picks[r].item;
        const struct recsys_guess guess =
            recsys_predict_row(l->run.saved->fit, l->asker.wish.row, item, 0);
        struct recsys_cause causes[CAUSES];
        uint32_t count;

        base_str_add(&text, "%4u  %6.3f", r + 1, (double)guess.value);
        if (!isnan(guess.deviation))
            base_str_add(&text, " ± %4.2f", (double)guess.deviation);
        base_str_add(&text, "  ");
        cli_rating_run_name(&l->run, item, &text);
        base_str_add(&text, "\n");
        TRY(cmd_recommend_causes(l, item, causes, &count));
        for (uint32_t c = 0; c < count; c++) {
            base_str_add(&text, "      %+.3f by ", (double)causes[c].part);
            cli_rating_run_name(&l->run, causes[c].item, &text);
            base_str_add(&text, ", rated %g\n", (double)causes[c].value);
        }
    }
    fputs(text.text, stdout);
out:
    base_str_fini(&text);
    return st;
}

static base_status cmd_recommend_item_json(const struct list *l, uint32_t item, json_t **object_p)
{
    base_status st = BASE_OK;
    const struct recsys_guess guess =
        recsys_predict_row(l->run.saved->fit, l->asker.wish.row, item, 0);
    struct recsys_cause causes[CAUSES];
    json_t *list = NULL;
    uint32_t count;

    *object_p = cli_rating_run_json(&l->run, item);
    json_object_set_new(*object_p, "prediction", base_json_number((double)guess.value));
    json_object_set_new(*object_p, "deviation", base_json_number((double)guess.deviation));
    TRY(cmd_recommend_causes(l, item, causes, &count));
    if (!l->args->explain)
        goto out;
    list = json_array();
    for (uint32_t c = 0; c < count; c++) {
        json_t *cause = cli_rating_run_json(&l->run, causes[c].item);

        json_object_set_new(cause, "rating", base_json_number((double)causes[c].value));
        json_object_set_new(cause, "part", base_json_number((double)causes[c].part));
        json_array_append_new(list, cause);
    }
    json_object_set_new(*object_p, "because", list);
out:
    return st;
}

static base_status cmd_recommend_print_json(const struct list *l, const char *why)
{
    base_status st = BASE_OK;
    json_t *items = json_array(), *object = NULL;

    for (uint32_t r = 0; r < l->found; r++) {
        json_t *item = NULL;

        st = cmd_recommend_item_json(l, l->picks[r].item, &item);
        json_array_append_new(items, item);
        TRY(st);
    }
    object = json_pack("{s:i, s:o, s:o, s:o, s:b, s:i, s:I, s:O, s:o}", "schema", 1, "run",
                       base_json_text(l->run.checkpoint.path), "model",
                       base_json_text(l->run.saved->model), "user", base_json_text(l->user),
                       "known", l->known, "n", (int)l->n, "rated", (json_int_t)l->asker.count,
                       "items", items, "fewer", why != NULL ? base_json_text(why) : json_null());
    TRY(base_json_print(object));
out:
    json_decref(items);
    json_decref(object);
    return st;
}

static base_status cmd_recommend_one(struct list *l)
{
    base_status st = BASE_OK;
    struct recsys_id id;
    char *why = NULL;

    TRY(cmd_recommend_find_asker(l, &id));
    TRY(base_tensor(l->n, sizeof *l->picks, "a list of items", &l->picks));
    TRY(recsys_rank(l->run.saved->fit, &l->asker.wish, 1, l->barred, l->n, l->picks, &l->found));
    why = cmd_recommend_why_fewer(l);
    if (l->args->run.json)
        TRY(cmd_recommend_print_json(l, why));
    else
        TRY(cmd_recommend_print(l));
    if (why != NULL)
        base_info("%s", why);
out:
    base_free(why);
    return st;
}

static base_status cmd_recommend_all(const struct list *l)
{
    base_status st = BASE_OK;
    struct cli_recommend_all all = {
        .run = &l->run,
        .added = l->added,
        .barred = l->barred,
        .include_rated = l->args->include_rated,
        .n = l->n < l->run.saved->items.count ? l->n : l->run.saved->items.count,
        .path = l->args->out};
    json_t *object = NULL;

    TRY(cli_recommend_all(&all));
    base_info("%s: %llu items for %llu user%s%s", all.path, (unsigned long long)all.lines,
              (unsigned long long)all.users, base_plural((int64_t)all.users),
              all.short_lists > 0 ? "; for some of them fewer than were asked for are left" : "");
    if (all.strangers > 0)
        base_warn("%llu of the users have no rating of an item that the model knows, and no list",
                  (unsigned long long)all.strangers);
    if (l->args->run.json) {
        object = json_pack("{s:i, s:o, s:o, s:i, s:I, s:I, s:I}", "schema", 1, "run",
                           base_json_text(l->run.checkpoint.path), "out", base_json_text(all.path),
                           "n", (int)l->n, "users", (json_int_t)all.users, "lines",
                           (json_int_t)all.lines, "fewer", (json_int_t)all.short_lists);
        TRY(base_json_print(object));
    }
out:
    json_decref(object);
    return st;
}

/* ---- the command ---- */

static base_status cmd_recommend_check(const struct args *a, const char *run)
{
    if (a->all && (a->user != NULL || a->explain))
        return base_fail(BASE_ERR_USAGE, "--all is for every user: it takes no --%s",
                         a->user != NULL ? "user" : "explain");
    if (a->all != (a->out != NULL))
        return base_fail(BASE_ERR_USAGE, a->all ? "--all writes a file: name it with -o FILE"
                                                : "-o FILE is for the lists of --all");
    if (!a->all && a->user == NULL && a->added == NULL)
        return base_fail(BASE_ERR_USAGE,
                         "for whom? as in: paceline recommend %s --user 42, or --new ratings.csv, "
                         "or --all -o lists.csv",
                         run);
    return BASE_OK;
}

static base_status cmd_recommend(void *args, const struct cli_positional *positional)
{
    base_status st = BASE_OK;
    const struct args *a = args;
    struct list l = {.args = a, .user = a->user, .n = (uint32_t)a->run.n};

    TRY(cmd_recommend_check(a, positional->at[0]));
    TRY(cli_rating_run_open(positional->at[0], &a->run, &l.run));
    if (a->added != NULL) {
        TRY(recsys_ratings_open(a->added, &(struct recsys_options){.no_cache = true}, &l.added));
        recsys_warn(l.added);
    }
    TRY(cli_rating_run_barred(&l.run, a->exclude, (uint32_t)a->least, &l.barred));
    TRY(a->all ? cmd_recommend_all(&l) : cmd_recommend_one(&l));
out:
    recsys_asker_fini(&l.asker);
    base_free(l.picks);
    base_free(l.barred);
    recsys_ratings_close(l.added);
    cli_rating_run_close(&l.run);
    return st;
}

#define AT(field) offsetof(struct args, field)

/* clang-format off */
static const struct base_option options[] = {
    {.name = "user", .argument = "U", .kind = BASE_TEXT, .offset = AT(user),
     .help = "the user's id", .local = true},
    {.name = "all", .kind = BASE_FLAG, .offset = AT(all),
     .help = "lists for every user, or with --new for every user of that file", .local = true},
    {.name = "out", .alias = "o", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(out),
     .help = "--all: the table to write: user, rank, item, prediction, title", .local = true},
    {.name = "new", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(added),
     .help = "ratings that came after the training, of known or new users", .local = true},
    {.name = "exclude", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(exclude),
     .help = "items to leave out, an id on each line", .local = true},
    {.name = "least", .argument = "N", .kind = BASE_INT, .offset = AT(least), .max = 1e9,
     .help = "leave out items with fewer ratings than that, of which little is known", .local = true},
    {.name = "include-rated", .kind = BASE_FLAG, .offset = AT(include_rated),
     .help = "also items that the user has rated", .local = true},
    {.name = "explain", .kind = BASE_FLAG, .offset = AT(explain),
     .help = "with the user's own ratings that count most for each", .local = true},
    {.table = cli_rating_options, .offset = AT(run)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_recommend = {
    .name = "recommend",
    .help = "the best items for a user, by a trained rating model",
    .usage = "paceline recommend RUN|CHECKPOINT --user U [options]\n"
             "       paceline recommend RUN|CHECKPOINT --new RATINGS [--user U] [options]\n"
             "       paceline recommend RUN|CHECKPOINT --all -o FILE [options]",
    .examples = "  paceline recommend films --user 42\n"
                "  paceline recommend films --user 42 -n 20 --explain --titles movies.csv\n"
                "  paceline recommend films --new mine.csv       # a user the model never saw\n"
                "  paceline recommend films --all -n 10 -o lists.csv\n",
    .completes = "RUN",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.run = CLI_RATING_DEFAULTS, .least = RECSYS_USUAL_LEAST},
    .min_positional = 1,
    .max_positional = 1,
    .run = cmd_recommend,
};
