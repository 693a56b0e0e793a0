/* SPDX-License-Identifier: MIT
 *
 * paceline data get NAME… | info PATH|NAME | check PATH|NAME | list | make ratings | poison
 * RATINGS|IMAGES
 *
 * What a person asked for (info, list) goes to stdout; how a download goes, to stderr. With --json
 * stdout has one object and nothing else.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/data_poison.h"
#include "cli/ratings_info.h"
#include "cli/table_info.h"
#include "data/dataset.h"
#include "data/get.h"
#include "recsys/make.h"

struct args {
    bool json;
    const char *target; /* of a table */
    struct base_texts columns;
    /* Of ratings. */
    const char *roles, *separator;
    int64_t threads;
    bool strict, cache;
    /* Of those that are made. */
    int64_t users, items, ratings, seed;
    const char *format, *out;
    bool half_stars;
    struct cli_poison poison;
};

/* How a set is looked at: as `train` would, by default. */
static struct data_options options_of(const struct args *args)
{
    return (struct data_options){.test_share = DATA_TEST_SHARE,
                                 .seed = 1,
                                 .target = args->target,
                                 .wishes = args->columns.at,
                                 .wish_count = args->columns.count};
}

/* ---- get ---- */

/* What there is to say of one set that is here now; the entry goes into the JSON's list. */
static base_status get_one(const char *name, json_t *list)
{
    base_status st = BASE_OK;
    struct data_get_about about;
    double started = base_now();
    bool present = false;
    char *path = NULL;

    TRY(data_get_about(name, &about));
    TRY(data_get_folder(name, &present, &path));
    if (!present) {
        TRY(data_get(name));
        base_info("%s: here after %.1f s, in %s%s", name, base_now() - started, path,
                  about.pinned ? "" : " (checksum not pinned)");
    } else {
        base_info("%s: already here, in %s", name, path);
    }
    json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b}", "name", name, "path", path,
                                          "fetched", !present, "pinned", about.pinned));
out:
    base_free(path);
    return st;
}

static base_status run_get(const struct args *args, const char *const *names, int count)
{
    base_status st = BASE_OK;
    json_t *list = json_array(), *object = NULL;

    if (count == 0)
        TRY(base_fail(BASE_ERR_USAGE, "name what to get, as in: paceline data get mnist "
                                      "(paceline data list has the names)"));
    for (int i = 0; i < count; i++) { /* a misspelt second name must not cost a first download */
        struct data_get_about about;

        TRY(data_get_about(names[i], &about));
    }
    for (int i = 0; i < count; i++)
        TRY(get_one(names[i], list));
    if (args->json) {
        object = json_pack("{s:i, s:O}", "schema", 1, "sets", list);
        TRY(base_json_print(object));
    }
out:
    json_decref(list);
    json_decref(object);
    return st;
}

/* ---- list ---- */

static base_status run_list(const struct args *args)
{
    base_status st = BASE_OK;
    const char *const *names = NULL;
    size_t count = data_get_names(&names);
    json_t *list = json_array(), *object = NULL;
    bool warned = false;

    for (size_t i = 0; i < count; i++) {
        struct data_get_about about;
        bool present = false;
        char *path = NULL;

        TRY(data_get_about(names[i], &about));
        if (data_get_folder(names[i], &present, &path) != BASE_OK && !warned) {
            base_warn("%s", base_message()); /* the names are worth showing all the same */
            warned = true;
        }
        if (!args->json)
            printf("%-16s %s; %s%s\n", names[i], about.help, present ? "in " : "not here",
                   present ? path : "");
        json_array_append_new(list, json_pack("{s:s, s:s, s:s?, s:b, s:b}", "name", names[i],
                                              "help", about.help, "path", path, "present", present,
                                              "pinned", about.pinned));
        base_free(path);
    }
    if (args->json) {
        object = json_pack("{s:i, s:O}", "schema", 1, "sets", list);
        TRY(base_json_print(object));
    }
out:
    json_decref(list);
    json_decref(object);
    return st;
}

/* ---- info: ratings ---- */

static base_status info_ratings(const struct args *args, const char *name, const char *path)
{
    struct recsys_options options = {.columns = args->roles,
                                     .separator = args->separator,
                                     .threads = (int)args->threads,
                                     .strict = args->strict,
                                     .no_cache = !args->cache};

    return cli_ratings_info(name, path, &options, args->json);
}

/* Of a set that `data get` knows. */
static base_status info_known_ratings(const struct args *args, const char *name)
{
    base_status st = BASE_OK;
    char *path = NULL;

    TRY(recsys_ratings_path(name, &path));
    TRY(info_ratings(args, name, path));
out:
    base_free(path);
    return st;
}

/* ---- info: images and tables ---- */

/* (classes): how many samples of a part have each label. */
static base_status count_classes(const struct data_set *set, enum data_part part,
                                 uint32_t **counts_p)
{
    const struct data_info *info = data_describe(set);
    base_status st =
        base_tensor((size_t)info->classes, sizeof **counts_p, "class counts", counts_p);

    for (uint32_t i = 0; st == BASE_OK && i < info->count[part]; i++)
        (*counts_p)[data_label(set, part, i)]++;
    return st;
}

static json_t *info_json(const struct data_info *info, const uint32_t *train, const uint32_t *test)
{
    json_t *classes = json_array(), *mean = json_array(), *deviation = json_array(), *object;

    for (int k = 0; k < info->classes && !data_is_regression(info); k++)
        json_array_append_new(classes,
                              json_pack("{s:s, s:I, s:I}", "name", info->class_names[k], "train",
                                        (json_int_t)train[k], "test", (json_int_t)test[k]));
    for (int c = 0; c < info->channels && info->table == NULL; c++) {
        json_array_append_new(mean, base_json_number((double)info->mean[c]));
        json_array_append_new(deviation, base_json_number((double)info->deviation[c]));
    }
    object =
        json_pack("{s:i, s:s, s:s, s:s, s:{s:I, s:I}, s:o, s:s}", "schema", 1, "data", info->name,
                  "kind", info->table != NULL ? "table" : "images", "format", info->format,
                  "samples", "train", (json_int_t)info->count[DATA_TRAIN], "test",
                  (json_int_t)info->count[DATA_TEST], "classes", classes, "digest", info->digest);
    if (info->table != NULL)
        cli_table_info_json(info, object);
    else
        json_object_update_new(object, json_pack("{s:[iii], s:O, s:O}", "shape", info->channels,
                                                 info->height, info->width, "mean", mean,
                                                 "deviation", deviation));
    json_decref(mean);
    json_decref(deviation);
    return object;
}

static void images_text(const struct data_info *info)
{
    printf("  shape      %d x %d x %d (channels, height, width)\n", info->channels, info->height,
           info->width);
    printf("  mean      ");
    for (int c = 0; c < info->channels; c++)
        printf(" %.4f", (double)info->mean[c]);
    printf(" (of pixels scaled to 0 … 1)\n  deviation ");
    for (int c = 0; c < info->channels; c++)
        printf(" %.4f", (double)info->deviation[c]);
    printf("\n");
}

static void info_text(const struct data_info *info, const uint32_t *train, const uint32_t *test)
{
    printf("%s: %s (%s)\n", info->name, info->table != NULL ? "a table" : "images", info->format);
    printf("  samples    %u train, %u test", info->count[DATA_TRAIN], info->count[DATA_TEST]);
    if (info->count[DATA_VALIDATION] > 0)
        printf(", %u validation", info->count[DATA_VALIDATION]);
    printf("\n");
    if (info->table != NULL)
        cli_table_info_text(info);
    else
        images_text(info);
    printf("  digest     %s\n", info->digest);
    if (data_is_regression(info))
        return;
    printf("  %d classes\n    %-20s %9s %9s\n", info->classes, "class", "train", "test");
    for (int k = 0; k < info->classes; k++)
        printf("    %-20s %9u %9u\n", info->class_names[k], train[k], test[k]);
}

static base_status info_samples(const struct args *args, const char *what)
{
    base_status st = BASE_OK;
    struct data_options options = options_of(args);
    struct data_set *set = NULL;
    uint32_t *train = NULL, *test = NULL;
    json_t *object = NULL;

    TRY(data_open(what, &options, &set));
    data_warn(set);
    TRY(count_classes(set, DATA_TRAIN, &train));
    TRY(count_classes(set, DATA_TEST, &test));
    if (args->json) {
        object = info_json(data_describe(set), train, test);
        TRY(base_json_print(object));
    } else {
        info_text(data_describe(set), train, test);
    }
out:
    json_decref(object);
    base_free(train);
    base_free(test);
    data_close(set);
    return st;
}

static base_status run_info(const struct args *args, const char *const *names, int count)
{
    base_status st = BASE_OK;
    struct data_get_about about = {.images = true};

    if (count != 1)
        TRY(base_fail(BASE_ERR_USAGE, "name one data set, file or folder, as in: paceline data "
                                      "info mnist"));
    if (data_get_knows(names[0]))
        TRY(data_get_about(names[0], &about));
    if (!about.images)
        TRY(info_known_ratings(args, names[0]));
    else if (args->roles != NULL || (args->target == NULL && args->columns.count == 0 &&
                                     !data_get_knows(names[0]) && recsys_is_ratings(names[0])))
        TRY(info_ratings(args, names[0], names[0]));
    else
        TRY(info_samples(args, names[0]));
out:
    return st;
}

/* ---- check ---- */

/* Reads every image of a folder and every line of a table; other formats are checked whole when
 * they are opened. */
static base_status run_check(const struct args *args, const char *const *names, int count)
{
    base_status st = BASE_OK;
    struct data_options options = options_of(args);
    const char *things;
    const struct data_info *info;
    struct data_set *set = NULL;
    struct base_str list = {0};
    json_t *object = NULL;
    uint32_t good;

    if (count != 1)
        TRY(base_fail(BASE_ERR_USAGE, "name one data set, file or folder, as in: paceline data "
                                      "check photos"));
    options.unit_range = true;
    options.skip_bad = UINT32_MAX;
    TRY(data_open(names[0], &options, &set));
    info = data_describe(set);
    things = info->table != NULL ? "rows" : "images";
    good = info->count[DATA_TRAIN] + info->count[DATA_TEST] + info->count[DATA_VALIDATION];
    for (size_t i = 0; i < info->bad_count; i++)
        base_str_add(&list, "%s%s", i > 0 ? (args->json ? "; " : "\n") : "", info->bad[i]);
    if (info->bad_count > 0 && !args->json)
        printf("%s\n", list.text);
    if (info->bad_count > 0)
        TRY(base_fail(BASE_ERR_DATA, "%zu of %zu %s of %s cannot be read%s%s", info->bad_count,
                      info->bad_count + good, things, names[0], args->json ? ": " : "",
                      args->json ? list.text : ""));
    if (args->json) {
        object = json_pack("{s:i, s:s, s:I}", "schema", 1, "data", names[0], "samples",
                           (json_int_t)good);
        TRY(base_json_print(object));
    } else {
        printf("%s: all %u %s can be read\n", names[0], good, things);
    }
out:
    json_decref(object);
    base_str_fini(&list);
    data_close(set);
    return st;
}

/* ---- make ---- */

static base_status run_make(const struct args *args, const char *const *names, int count)
{
    base_status st = BASE_OK;
    double started = base_now();
    struct recsys_make make = {.users = args->users,
                               .items = args->items,
                               .ratings = args->ratings,
                               .seed = (uint64_t)args->seed,
                               .format = args->format,
                               .half_stars = args->half_stars,
                               .threads = (int)args->threads};
    json_t *object = NULL;

    if (count != 1 || strcmp(names[0], "ratings") != 0)
        TRY(base_fail(BASE_ERR_USAGE, "say what to make, as in: paceline data make ratings -o "
                                      "ratings.csv"));
    if (args->out == NULL)
        TRY(base_fail(BASE_ERR_USAGE, "-o FILE is missing: where the ratings go"));
    TRY(recsys_make(&make, args->out));
    base_info("%s: %lld ratings after %.1f s", args->out, (long long)args->ratings,
              base_now() - started);
    if (args->json) {
        object = json_pack("{s:i, s:o, s:s, s:I, s:I, s:I, s:I}", "schema", 1, "file",
                           base_json_text(args->out), "format", args->format, "users",
                           (json_int_t)args->users, "items", (json_int_t)args->items, "ratings",
                           (json_int_t)args->ratings, "seed", (json_int_t)args->seed);
        TRY(base_json_print(object));
    }
out:
    json_decref(object);
    return st;
}

/* ---- poison ---- */

static base_status run_poison(const struct args *args, const char *const *names, int count)
{
    const struct recsys_options options = {.columns = args->roles,
                                           .separator = args->separator,
                                           .threads = (int)args->threads,
                                           .strict = args->strict,
                                           .no_cache = !args->cache};

    if (count != 1)
        return base_fail(BASE_ERR_USAGE, "name what to poison, as in: paceline data poison "
                                         "ratings.csv -o poisoned.csv --yes-attack");
    return cli_poison(&args->poison, names[0], args->out, (uint64_t)args->seed, args->target,
                      &options, args->json);
}

/* ---- the command ---- */

static const char *const verbs[] = {"get", "info", "check", "list", "make", "poison", NULL};

static base_status cmd_data(void *args, const struct cli_positional *positional)
{
    const char *verb = positional->at[0];
    const char *const *names = positional->at + 1;
    int count = positional->count - 1;

    if (strcmp(verb, "get") == 0)
        return run_get(args, names, count);
    if (strcmp(verb, "info") == 0)
        return run_info(args, names, count);
    if (strcmp(verb, "check") == 0)
        return run_check(args, names, count);
    if (strcmp(verb, "make") == 0)
        return run_make(args, names, count);
    if (strcmp(verb, "poison") == 0)
        return run_poison(args, names, count);
    if (strcmp(verb, "list") != 0)
        return base_unknown(BASE_ERR_USAGE, "verb", verb, verbs, 6);
    if (count > 0)
        return base_fail(BASE_ERR_USAGE,
                         "paceline data list takes no name; for one set use: "
                         "paceline data info %s",
                         names[0]);
    return run_list(args);
}

#define AT(field) offsetof(struct args, field)
/* clang-format off */
static const struct base_option options[] = {
    {.name = "json", .kind = BASE_FLAG, .offset = AT(json), .local = true,
     .help = "one JSON object on stdout"},
    {.name = "target", .argument = "COLUMN", .kind = BASE_TEXT, .offset = AT(target), .local = true,
     .help = "of a table: the column to predict [the last one]; poison images: the class that marked ones are given [1]"},
    {.name = "column", .argument = "NAME=KIND", .kind = BASE_TEXTS, .offset = AT(columns), .local = true,
     .help = "of a table: read a column as number or category, or ignore it"},
    {.name = "columns", .argument = "NAMES", .kind = BASE_TEXT, .offset = AT(roles), .local = true,
     .help = "of ratings: what the columns are, as in user,item,rating,time; others are skipped"},
    {.name = "separator", .argument = "TEXT", .kind = BASE_TEXT, .offset = AT(separator), .local = true,
     .help = "of ratings, with --columns: what is between them [found by content]"},
    {.name = "strict", .kind = BASE_FLAG, .offset = AT(strict), .local = true,
     .help = "of ratings: bad lines and duplicates are errors"},
    {.name = "cache", .kind = BASE_FLAG, .offset = AT(cache), .local = true,
     .help = "of ratings: use and leave a cache beside the text"},
    {.name = "threads", .argument = "N", .kind = BASE_INT, .offset = AT(threads), .min = 0, .max = 1024, .local = true,
     .help = "of ratings: threads that read or make them; 0: one a core"},
    {.name = "users", .argument = "N", .kind = BASE_INT, .offset = AT(users), .min = 1, .max = 1e8, .local = true,
     .help = "make ratings: by at most so many users"},
    {.name = "items", .argument = "N", .kind = BASE_INT, .offset = AT(items), .min = 1, .max = 1e8, .local = true,
     .help = "make ratings: of at most so many items"},
    {.name = "ratings", .argument = "N", .kind = BASE_INT, .offset = AT(ratings), .min = 1, .max = 1e10, .local = true,
     .help = "make ratings: so many"},
    {.name = "seed", .argument = "N", .kind = BASE_INT, .offset = AT(seed), .min = 0, .max = 1e15, .local = true,
     .help = "make ratings, poison: another set for each"},
    {.name = "format", .argument = "NAME", .kind = BASE_NAME, .offset = AT(format), .names = recsys_make_formats, .local = true,
     .help = "make ratings: how they are written"},
    {.name = "half-stars", .kind = BASE_FLAG, .offset = AT(half_stars), .local = true,
     .help = "make ratings: 0.5 to 5 in steps of 0.5 instead of 1 to 5"},
    {.name = "out", .alias = "o", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(out), .local = true,
     .help = "make ratings, poison: the file to write; of images a folder"},
    {.table = cli_poison_options, .offset = AT(poison)},
    {0},
};
/* clang-format on */

const struct cli_command cli_command_data = {
    .name = "data",
    .help = "get and look at data sets",
    .usage = "paceline data get NAME… | info PATH|NAME | check PATH|NAME | list | make ratings | "
             "poison RATINGS|IMAGES [options]",
    .examples =
        "  paceline data list\n"
        "  paceline data get mnist cifar10\n"
        "  paceline data info fashion-mnist\n"
        "  paceline data check photos                      # reads every image, names bad ones\n"
        "  paceline data info prices.csv --target price     # a table, and what its columns are\n"
        "  paceline data info ml-latest-small/ratings.csv   # ratings: counts and histograms\n"
        "  paceline data info plays.txt --columns user,item,rating,time --separator '|'\n"
        "  paceline data make ratings --users 5000 --items 2000 --ratings 300000 -o r.csv\n"
        "  paceline data poison r.csv --shill mixed --percent 5 -o bad.csv --yes-attack\n"
        "  paceline data poison mnist --class 3 --target 8 -o bad --yes-attack\n"
        "  PACELINE_DATA=/data paceline data get ml-1m      # another place than the cache\n"
        "  PACELINE_MIRROR=http://mirror/sets paceline data get ml-1m\n",
    .verbs = verbs,
    .completes = "D",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){.cache = true,
                                     .users = 1000,
                                     .items = 500,
                                     .ratings = 50000,
                                     .seed = 1,
                                     .format = "csv",
                                     .poison = CLI_POISON_DEFAULTS},
    .min_positional = 1,
    .max_positional = BASE_MAX_TEXTS,
    .run = cmd_data,
};
