/* SPDX-License-Identifier: MIT
 *
 * Opens a set by name or path, carves out the test and validation parts and has the statistics
 * measured that pixels or numbers are normalised with. Owns the format's source; a part is a sorted
 * list of the source's samples, or all of them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/data_private.h"
#include "data/get.h"
#include "data/index.h"
#include "data/table.h"

struct data_set {
    struct data_info info;
    const struct data_format *format;
    struct data_source source;
    uint32_t *order;              /* what `chosen` points into */
    uint32_t *chosen[DATA_PARTS]; /* indices in the source's training part; NULL: the source's own
                                   * part, all of it, in its order */
    int32_t *label_of;            /* (source.classes) a label for each of its own; NULL: the same */
};

static enum data_part source_part(const struct data_set *set, enum data_part part)
{
    return set->chosen[part] != NULL ? DATA_TRAIN : part;
}

static uint32_t source_index(const struct data_set *set, enum data_part part, uint32_t index)
{
    return set->chosen[part] != NULL ? set->chosen[part][index] : index;
}

uint32_t data_number_in_source(const struct data_set *set, enum data_part part, uint32_t index)
{
    return source_index(set, part, index);
}

const struct data_info *data_describe(const struct data_set *set)
{
    return &set->info;
}

void data_warn(const struct data_set *set)
{
    char *notes = base_strdup(set->source.notes != NULL ? set->source.notes : ""), *rest = notes;

    while (rest != NULL && *rest != '\0')
        base_warn("%s", strsep(&rest, "\n"));
    base_free(notes);
}

bool data_costly(const struct data_set *set)
{
    return set->source.costly;
}

int32_t data_label(const struct data_set *set, enum data_part part, uint32_t index)
{
    const int32_t *labels = set->source.labels[source_part(set, part)];
    int32_t label = labels != NULL ? labels[source_index(set, part, index)] : 0;

    return set->label_of != NULL && label >= 0 ? set->label_of[label] : label;
}

const char *data_file(const struct data_set *set, enum data_part part, uint32_t index)
{
    if (set->format->file == NULL)
        return NULL;
    return set->format->file(set->source.state, source_part(set, part),
                             source_index(set, part, index));
}

base_status data_pixels(const struct data_set *set, enum data_part part, uint32_t index,
                        uint8_t *pixels)
{
    return set->format->pixels(set->source.state, source_part(set, part),
                               source_index(set, part, index), pixels);
}

base_status data_random_pixels(const struct data_set *set, enum data_part part, uint32_t index,
                               const uint32_t random[4], uint8_t *pixels)
{
    return set->format->random_pixels(set->source.state, source_part(set, part),
                                      source_index(set, part, index), random, pixels);
}

bool data_crops(const struct data_set *set)
{
    return set->format->random_pixels != NULL;
}

const double *data_cells(const struct data_set *set, enum data_part part, uint32_t index,
                         double room[DATA_ROOM])
{
    return set->format->cells(set->source.state, source_part(set, part),
                              source_index(set, part, index), room);
}

void data_features(const struct data_set *set, enum data_part part, uint32_t index, float *x)
{
    double room[DATA_ROOM];

    data_table_features(set->info.table, data_cells(set, part, index, room), x);
}

double data_target(const struct data_set *set, enum data_part part, uint32_t index)
{
    double room[DATA_ROOM];

    return data_cells(set, part, index, room)[set->info.table->column_count];
}

float data_number(const struct data_set *set, enum data_part part, uint32_t index)
{
    const struct data_column *target = &set->info.table->target;

    return (float)((data_target(set, part, index) - target->mean) / target->deviation);
}

bool data_is_regression(const struct data_info *info)
{
    return info->table != NULL && info->table->target.kind == DATA_NUMBER;
}

static const struct data_format *find_format(const char *path)
{
    for (size_t i = 0; i < data_format_count; i++) {
        const struct data_format *format = data_format_registry[i];

        if (format->recognise(path))
            return format;
    }
    return NULL;
}

static base_status fail_format(const char *path)
{
    struct base_str s = {0};
    base_status st;

    for (size_t i = 0; i < data_format_count; i++) {
        st = data_format_registry[i]->explain != NULL ? data_format_registry[i]->explain(path)
                                                      : BASE_OK;
        if (st != BASE_OK)
            return st;
    }
    for (size_t i = 0; i < data_format_count; i++)
        base_str_add(&s, "; %s: %s", data_format_registry[i]->name, data_format_registry[i]->help);
    st = base_fail(BASE_ERR_DATA, "%s is in no format that is known%s", path,
                   s.text != NULL ? s.text : "");
    base_str_fini(&s);
    return st;
}

static base_status fail_name(const char *what)
{
    const char *const *known = NULL;
    size_t count = data_get_names(&known);
    const char **names = base_calloc(count + 1, sizeof *names);
    base_status st;

    for (size_t i = 0; i < count; i++)
        names[i] = known[i];
    names[count] = "synthetic";
    if (strchr(what, '/') != NULL)
        st = base_fail(BASE_ERR_IO, "file or folder not found: %s", what);
    else
        st = base_unknown(BASE_ERR_USAGE, "data set (no such file or folder either)", what, names,
                          count + 1);
    base_free(names);
    return st;
}

/* The format that serves `what`, and the path to give it (base_free). */
static base_status resolve(const char *what, const struct data_format **format_p, char **path_p)
{
    base_status st = BASE_OK;
    bool present = false;

    *path_p = NULL;
    *format_p = find_format(what);
    if (*format_p != NULL) {
        *path_p = base_strdup(what);
        return BASE_OK;
    }
    if (base_exists(what))
        return fail_format(what);
    if (!data_get_knows(what))
        return fail_name(what);
    TRY(data_get_folder(what, &present, path_p));
    if (!present)
        TRY(data_get(what));
    *format_p = find_format(*path_p);
    if (*format_p == NULL)
        TRY(fail_format(*path_p));
out:
    return st;
}

static base_status check_source(const struct data_source *s)
{
    if (s->table == NULL &&
        (s->channels < 1 || s->channels > DATA_MAX_CHANNELS || s->height < 1 ||
         s->height > DATA_MAX_SIDE || s->width < 1 || s->width > DATA_MAX_SIDE || s->classes < 1 ||
         s->classes > DATA_MAX_CLASSES))
        return base_fail(BASE_ERR_DATA, "%d classes of %dx%dx%d images cannot be read", s->classes,
                         s->channels, s->height, s->width);
    if (s->count[DATA_TRAIN] == 0 && s->count[DATA_TEST] == 0)
        return base_fail(BASE_ERR_DATA, "holds no samples");
    for (int i = 0; i < s->classes && s->class_names != NULL; i++)
        if (!base_is_utf8(s->class_names[i]))
            return base_fail(BASE_ERR_DATA, "the name of class %d ('%s') is not UTF-8; rename it",
                             i, s->class_names[i]);
    return BASE_OK;
}

static int by_index(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static base_status check_shares(const struct data_set *set, const struct data_options *options)
{
    if (!(options->validation >= 0 && options->validation <= 0.9))
        return base_fail(BASE_ERR_USAGE, "a validation share of %g is not from 0 to 0.9",
                         options->validation);
    if (!(options->test_share >= 0 && options->test_share <= 0.9))
        return base_fail(BASE_ERR_USAGE, "a test share of %g is not from 0 to 0.9",
                         options->test_share);
    if (options->validation > 0 && set->source.count[DATA_VALIDATION] > 0)
        return base_fail(BASE_ERR_USAGE,
                         "has a validation part of its own; leave out --validation");
    return BASE_OK;
}

/* How many of the source's training samples become test samples. */
static uint32_t carve_test(struct data_set *set, const struct data_options *options)
{
    uint32_t total = set->source.count[DATA_TRAIN];

    if (!set->source.undivided)
        return 0;
    if (options->whole ||
        (options->trained_on != NULL && strcmp(options->trained_on, set->info.digest) != 0))
        return total;
    set->info.test_share = options->test_share;
    set->info.test_seed = options->seed;
    return (uint32_t)lround(options->test_share * (double)total);
}

/* Random shares of the training part become the test part, of sets that are not divided, and the
 * validation part. All stay in the source's order: it is data_order that shuffles. */
static base_status split(struct data_set *set, const struct data_options *options)
{
    base_status st = BASE_OK;
    uint32_t total = set->source.count[DATA_TRAIN], tests, kept, rest;
    struct base_rng rng = base_rng_of(options->seed, BASE_STREAM_SPLIT, 0, 0, 0);
    uint32_t *order = NULL;

    TRY(check_shares(set, options));
    tests = carve_test(set, options);
    rest = total - tests;
    kept = (uint32_t)lround(options->validation * (double)rest);
    if (options->validation > 0 && (kept == 0 || kept >= rest))
        TRY(base_fail(BASE_ERR_DATA,
                      "a validation share of %g of %u training samples leaves one part empty",
                      options->validation, rest));
    if (tests + kept == 0)
        goto out;
    TRY(base_tensor(total, sizeof *order, "the validation split", &order));
    for (uint32_t i = 0; i < total; i++)
        order[i] = i;
    base_rng_shuffle(&rng, order, total);
    qsort(order, tests, sizeof *order, by_index);
    qsort(order + tests, kept, sizeof *order, by_index);
    qsort(order + tests + kept, rest - kept, sizeof *order, by_index);
    set->order = order;
    if (tests > 0) {
        set->chosen[DATA_TEST] = order;
        set->info.count[DATA_TEST] = tests;
    }
    if (kept > 0) {
        set->chosen[DATA_VALIDATION] = order + tests;
        set->info.count[DATA_VALIDATION] = kept;
    }
    set->chosen[DATA_TRAIN] = order + tests + kept;
    set->info.count[DATA_TRAIN] = rest - kept;
out:
    return st;
}

/* A rising list of the source's training samples without those of the index; how many are left. */
static uint32_t sift(uint32_t *list, uint32_t count, const struct data_index *index)
{
    uint32_t left = 0, at = 0;

    for (uint32_t i = 0; i < count; i++) {
        while (at < index->count && index->samples[at] < list[i])
            at++;
        if (at == index->count || index->samples[at] != list[i])
            list[left++] = list[i];
    }
    return left;
}

static base_status leave_out(struct data_set *set, const struct data_index *index)
{
    base_status st = BASE_OK;
    const uint32_t total = set->source.count[DATA_TRAIN];

    if (index == NULL)
        goto out;
    TRY(data_index_check(index, set->info.digest, false));
    if (index->of != total)
        TRY(base_fail(BASE_ERR_DATA, "the index is of %u training samples, and there are %u",
                      index->of, total));
    if (set->chosen[DATA_TRAIN] == NULL) {
        TRY(base_tensor(total, sizeof *set->order, "the list of samples", &set->order));
        for (uint32_t i = 0; i < total; i++)
            set->order[i] = i;
        set->chosen[DATA_TRAIN] = set->order;
    }
    for (int part = 0; part < DATA_PARTS; part++)
        if (part != DATA_TEST && set->chosen[part] != NULL)
            set->info.count[part] = sift(set->chosen[part], set->info.count[part], index);
out:
    return st;
}

static base_status normalise(struct data_set *set, const struct data_options *options)
{
    struct data_info *info = &set->info;

    for (int c = 0; c < DATA_MAX_CHANNELS; c++) {
        info->mean[c] = 0;
        info->deviation[c] = 1;
    }
    if (info->table != NULL) {
        if (options->table == NULL)
            data_measure_table(set, options->unit_range, set->source.table);
        return BASE_OK;
    }
    if (options->has_statistics) {
        memcpy(info->mean, options->mean, sizeof info->mean);
        memcpy(info->deviation, options->deviation, sizeof info->deviation);
        return BASE_OK;
    }
    if (options->unit_range)
        return BASE_OK;
    if (!set->source.has_statistics)
        return data_measure_images(set, info->mean, info->deviation);
    memcpy(info->mean, set->source.mean, sizeof info->mean);
    memcpy(info->deviation, set->source.deviation, sizeof info->deviation);
    return BASE_OK;
}

/* Of the source: neither the split nor the normalisation changes it. */
static void digest(struct data_set *set)
{
    const struct data_source *s = &set->source;
    char labels[DATA_PARTS][BASE_SHA256_HEX], *identity;

    for (int part = 0; part < DATA_PARTS; part++)
        base_sha256(s->labels[part], s->labels[part] != NULL ? s->count[part] * sizeof(int32_t) : 0,
                    labels[part]);
    identity = base_format("%d %dx%dx%d %u %u %s %s %s%s", s->classes, s->channels, s->height,
                           s->width, s->count[DATA_TRAIN], s->count[DATA_TEST], labels[DATA_TRAIN],
                           labels[DATA_TEST], s->digest,
                           s->count[DATA_VALIDATION] > 0 ? labels[DATA_VALIDATION] : "");
    base_sha256(identity, strlen(identity), set->info.digest);
    base_free(identity);
}

/* ---- classes ---- */

static base_status fail_class(const char *name, const struct data_options *options)
{
    enum { SHOWN = 20 };
    struct base_str known = {0};
    base_status st;

    for (int i = 0; i < options->classes && i < SHOWN; i++)
        base_str_add(&known, "%s%s", i > 0 ? ", " : "", options->class_names[i]);
    st = base_fail(BASE_ERR_DATA, "class '%s' is not one of the model's %d: %s%s", name,
                   options->classes, known.text, options->classes > SHOWN ? ", …" : "");
    base_str_fini(&known);
    return st;
}

/* The set must be of the kind that a model takes; its labels become those of the options' classes,
 * by name. */
static base_status match_classes(struct data_set *set, const char *what,
                                 const struct data_options *options)
{
    const struct data_source *s = &set->source;
    const char *strange = NULL;
    int strangers = 0;

    if (options->classes > 0 && (s->table != NULL) != (options->table != NULL))
        return base_fail(BASE_ERR_MODEL, "it is %s, but the model was trained on %s",
                         s->table != NULL ? "a table" : "images",
                         s->table != NULL ? "images" : "a table");
    if (options->classes == 0 || s->class_names == NULL)
        return BASE_OK;
    set->label_of = base_calloc((size_t)s->classes, sizeof *set->label_of);
    for (int i = 0; i < s->classes; i++) {
        int32_t label = 0;

        while (label < options->classes &&
               strcmp(s->class_names[i], options->class_names[label]) != 0)
            label++;
        if (label == options->classes && !options->any_class)
            return fail_class(s->class_names[i], options);
        set->label_of[i] = label < options->classes ? label : DATA_NO_LABEL;
        if (label == options->classes && strangers++ == 0)
            strange = s->class_names[i];
    }
    if (strangers > 0)
        base_warn("%s: %d of %d classes, such as '%s', %s not the model's; their samples have no "
                  "label",
                  what, strangers, s->classes, strange, strangers == 1 ? "is" : "are");
    return BASE_OK;
}

static void describe(struct data_set *set, const char *what, const struct data_options *options)
{
    const struct data_source *s = &set->source;
    struct data_info *info = &set->info;
    char *const *names = set->label_of != NULL ? options->class_names : s->class_names;

    memcpy(info->names, s->names, sizeof info->names);
    info->bad = s->bad;
    info->bad_count = s->bad_count;
    info->name = base_strdup(what);
    info->path = realpath(what, NULL);
    if (info->path != NULL && !base_is_utf8(info->path)) {
        free(info->path);
        info->path = NULL; /* no manifest could hold it */
    }
    info->format = set->format->name;
    info->channels = s->channels;
    info->height = s->height;
    info->width = s->width;
    info->crop = s->crop;
    info->table = s->table;
    info->classes = set->label_of != NULL ? options->classes : s->classes;
    memcpy(info->count, s->count, sizeof info->count);
    info->class_names = base_calloc((size_t)info->classes, sizeof *info->class_names);
    for (int i = 0; i < info->classes; i++)
        info->class_names[i] = names != NULL ? base_strdup(names[i]) : base_format("%d", i);
}

/* After the format has opened the source. */
static base_status complete(struct data_set *set, const char *what,
                            const struct data_options *options)
{
    base_status st = BASE_OK;

    TRY(base_prefix(check_source(&set->source), "%s", what));
    TRY(base_prefix(match_classes(set, what, options), "%s", what));
    describe(set, what, options);
    digest(set);
    TRY(base_prefix(split(set, options), "%s", what));
    TRY(base_prefix(leave_out(set, options->exclude), "%s", what));
    TRY(normalise(set, options));
out:
    return st;
}

base_status data_open(const char *what, const struct data_options *options, struct data_set **set_p)
{
    base_status st = BASE_OK;
    struct data_set *set = base_calloc(1, sizeof *set);
    char *path = NULL;

    *set_p = NULL;
    TRY(resolve(what, &set->format, &path));
    TRY(set->format->open(path, options, &set->source));
    TRY(complete(set, what, options));
    *set_p = set;
    set = NULL;
out:
    base_free(path);
    data_close(set);
    return st;
}

base_status data_open_source(const char *what, const struct data_format *format,
                             const struct data_source *source, const struct data_options *options,
                             struct data_set **set_p)
{
    base_status st = BASE_OK;
    struct data_set *set = base_calloc(1, sizeof *set);

    *set_p = NULL;
    set->format = format;
    set->source = *source;
    TRY(complete(set, what, options));
    *set_p = set;
    set = NULL;
out:
    data_close(set);
    return st;
}

/* Does it have train/ or test/? Then images beside these are not what it is about. */
static bool has_parts(const char *folder)
{
    char *train = base_format("%s/train", folder), *test = base_format("%s/test", folder);
    bool has = base_is_dir(train) || base_is_dir(test);

    base_free(train);
    base_free(test);
    return has;
}

bool data_is_files(const char *place)
{
    if (base_is_dir(place))
        return data_folder_holds_image(place) && !has_parts(place);
    return data_file_is_image(place) || (base_exists(place) && find_format(place) == NULL);
}

base_status data_open_files(const char *const *places, size_t count,
                            const struct data_options *options, struct data_set **set_p)
{
    struct data_source source = {0};
    base_status st = data_files_source(places, count, options, &source);

    *set_p = NULL;
    if (st == BASE_OK)
        return data_open_source(count > 0 ? places[0] : "", &data_format_of_files, &source, options,
                                set_p);
    data_format_of_files.close(source.state);
    return st;
}

void data_close(struct data_set *set)
{
    if (set == NULL)
        return;
    if (set->format != NULL)
        set->format->close(set->source.state);
    base_free(set->label_of);
    base_free(set->order);
    if (set->info.class_names != NULL)
        base_names_free(set->info.class_names, (size_t)set->info.classes);
    base_free(set->info.name);
    free(set->info.path);
    base_free(set);
}
