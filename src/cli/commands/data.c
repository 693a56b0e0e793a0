/* SPDX-License-Identifier: MIT
 *
 * paceline data get NAME… | info PATH|NAME | check PATH|NAME | list
 *
 * What a person asked for (info, list) goes to stdout; how a download goes, to stderr. With --json
 * stdout has one object and nothing else.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/table_info.h"
#include "data/dataset.h"
#include "data/get.h"

struct args {
    bool json;
    const char *target; /* of a table */
    struct base_texts columns;
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

static json_t *files_of(const char *folder, char *const *names, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        char *path = base_format("%s/%s", folder, names[i]);
        struct stat about;

        if (stat(path, &about) == 0 && S_ISREG(about.st_mode))
            json_array_append_new(list, json_pack("{s:s, s:I}", "name", names[i], "bytes",
                                                  (json_int_t)about.st_size));
        base_free(path);
    }
    return list;
}

static base_status info_ratings(const struct args *args, const char *name)
{
    base_status st = BASE_OK;
    json_t *files = NULL, *object = NULL, *file;
    char **names = NULL, *path = NULL;
    size_t count = 0, i;
    bool present = false;

    TRY(data_get_folder(name, &present, &path));
    if (!present)
        TRY(base_fail(BASE_ERR_DATA, "%s is not here; get it with: paceline data get %s", name,
                      name));
    TRY(base_list_dir(path, &names, &count));
    files = files_of(path, names, count);
    if (args->json) {
        object = json_pack("{s:i, s:s, s:s, s:s, s:O}", "schema", 1, "data", name, "kind",
                           "ratings", "path", path, "files", files);
        TRY(base_json_print(object));
        goto out;
    }
    printf("%s: ratings, in %s\n", name, path);
    json_array_foreach(files, i, file)
    {
        printf("  %-16s %12lld bytes\n", json_string_value(json_object_get(file, "name")),
               (long long)json_integer_value(json_object_get(file, "bytes")));
    }
out:
    json_decref(files);
    json_decref(object);
    base_names_free(names, count);
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
    if (about.images)
        TRY(info_samples(args, names[0]));
    else
        TRY(info_ratings(args, names[0]));
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

/* ---- the command ---- */

static const char *const verbs[] = {"get", "info", "check", "list", NULL};

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
    if (strcmp(verb, "list") != 0)
        return base_unknown(BASE_ERR_USAGE, "verb", verb, verbs, 4);
    if (count > 0)
        return base_fail(BASE_ERR_USAGE,
                         "paceline data list takes no name; for one set use: "
                         "paceline data info %s",
                         names[0]);
    return run_list(args);
}

static const struct base_option options[] = {
    {.name = "json",
     .kind = BASE_FLAG,
     .offset = offsetof(struct args, json),
     .help = "one JSON object on stdout",
     .local = true},
    {.name = "target",
     .argument = "COLUMN",
     .kind = BASE_TEXT,
     .offset = offsetof(struct args, target),
     .help = "of a table: the column to predict [the last one]",
     .local = true},
    {.name = "column",
     .argument = "NAME=KIND",
     .kind = BASE_TEXTS,
     .offset = offsetof(struct args, columns),
     .help = "of a table: read a column as number or category, or ignore it",
     .local = true},
    {0},
};

const struct cli_command cli_command_data = {
    .name = "data",
    .help = "get and look at data sets",
    .usage = "paceline data get NAME… | info PATH|NAME | check PATH|NAME | list [options]",
    .examples =
        "  paceline data list\n"
        "  paceline data get mnist cifar10\n"
        "  paceline data info fashion-mnist\n"
        "  paceline data check photos                      # reads every image, names bad ones\n"
        "  paceline data info prices.csv --target price     # a table, and what its columns are\n"
        "  PACELINE_DATA=/data paceline data get ml-1m      # another place than the cache\n"
        "  PACELINE_MIRROR=http://mirror/sets paceline data get ml-1m\n",
    .verbs = verbs,
    .completes = "D",
    .options = options,
    .args_size = sizeof(struct args),
    .defaults = &(const struct args){0},
    .min_positional = 1,
    .max_positional = BASE_MAX_TEXTS,
    .run = cmd_data,
};
