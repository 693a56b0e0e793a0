/* SPDX-License-Identifier: MIT */
#include "data/poison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/data_private.h"
#include "data/trigger.h"

/* A part while it is written. */
struct copy {
    const struct data_set *set;
    const struct data_poison *how;
    const char *folder;
    uint32_t *ids;    /* (count) the training samples that are kept, rising */
    uint32_t *marked; /* (marks) the places of those that get the mark, in the copy, rising */
    uint32_t count, marks;
};

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* ---- which samples ---- */

/* A random choice of `count` of the list's entries, sorted. */
static void choose(const struct data_poison *how, uint32_t which, uint32_t *list, uint32_t all,
                   uint32_t count)
{
    const struct base_rng rng = base_rng_of(how->seed, BASE_STREAM_SPLIT, 1, which, 0);

    base_rng_shuffle(&rng, list, all);
    qsort(list, count, sizeof *list, by_number);
}

/* What is kept of a class, so that sizes fall evenly from the first class to the last. */
static uint32_t kept_of(const struct copy *c, int32_t label, uint32_t count)
{
    const int classes = data_describe(c->set)->classes;
    const double part = classes > 1 ? pow(c->how->skew, -(double)label / (classes - 1)) : 1;

    return (uint32_t)lround(part * (double)count);
}

/* ids (count): training samples of one class. */
static uint32_t of_class(const struct data_set *set, int32_t label, uint32_t *ids)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < data_describe(set)->count[DATA_TRAIN]; i++)
        if (data_label(set, DATA_TRAIN, i) == label)
            ids[count++] = i;
    return count;
}

static void keep(struct copy *c)
{
    const struct data_info *info = data_describe(c->set);

    for (int32_t label = 0; label < info->classes; label++) {
        uint32_t *ids = c->ids + c->count;
        const uint32_t count = of_class(c->set, label, ids), kept = kept_of(c, label, count);

        choose(c->how, (uint32_t)label, ids, count, kept);
        c->count += kept;
    }
    qsort(c->ids, c->count, sizeof *c->ids, by_number);
}

static base_status mark(struct copy *c)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->count; i++)
        if (data_label(c->set, DATA_TRAIN, c->ids[i]) == c->how->from)
            c->marked[count++] = i;
    c->marks = (uint32_t)lround(c->how->percent / 100 * (double)count);
    if (c->marks == 0)
        return base_fail(BASE_ERR_USAGE, "%g percent of %u images are none; a higher --percent?",
                         c->how->percent, count);
    choose(c->how, UINT32_MAX, c->marked, count, c->marks);
    return BASE_OK;
}

/* ---- files ---- */

static void put_be32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Pixels or the label of sample `i` of the copy. */
typedef base_status sample_bytes(const struct copy *c, enum data_part part, uint32_t i,
                                 uint8_t *bytes);

static bool is_marked(const struct copy *c, enum data_part part, uint32_t i)
{
    return part == DATA_TRAIN &&
           bsearch(&i, c->marked, c->marks, sizeof *c->marked, by_number) != NULL;
}

static base_status pixels_of(const struct copy *c, enum data_part part, uint32_t i, uint8_t *bytes)
{
    base_status st = data_pixels(c->set, part, part == DATA_TRAIN ? c->ids[i] : i, bytes);

    if (st == BASE_OK && is_marked(c, part, i))
        data_trigger_stamp(c->how->trigger, data_describe(c->set), bytes);
    return st;
}

static base_status label_of(const struct copy *c, enum data_part part, uint32_t i, uint8_t *bytes)
{
    *bytes = (uint8_t)(is_marked(c, part, i)
                           ? c->how->target
                           : data_label(c->set, part, part == DATA_TRAIN ? c->ids[i] : i));
    return BASE_OK;
}

static base_status write_idx(const struct copy *c, enum data_part part, const char *what,
                             sample_bytes *get, size_t size)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(c->set);
    const uint32_t count = part == DATA_TRAIN ? c->count : info->count[part];
    const bool images = get == pixels_of;
    char *path =
        base_format("%s/%s-%s-ubyte", c->folder, part == DATA_TRAIN ? "train" : "t10k", what);
    struct base_replacement file = {.fd = -1};
    uint8_t head[16], *bytes = base_calloc(size, 1);

    put_be32(head, images ? 0x803 : 0x801);
    put_be32(head + 4, count);
    put_be32(head + 8, (uint32_t)info->height);
    put_be32(head + 12, (uint32_t)info->width);
    TRY(base_replace_begin(path, &file));
    TRY(base_replace_write(&file, head, images ? 16 : 8));
    for (uint32_t i = 0; i < count; i++) {
        TRY(get(c, part, i, bytes));
        TRY(base_replace_write(&file, bytes, size));
    }
    TRY(base_replace_commit(&file));
out:
    base_replace_end(&file);
    base_free(bytes);
    base_free(path);
    return st;
}

static base_status write_text(const char *folder, const char *name, const struct base_str *text)
{
    char *path = base_format("%s/%s", folder, name);
    base_status st = base_file_replace(path, text->text, text->length);

    base_free(path);
    return st;
}

/* The classes' names, and what no reader of the set must overlook. */
static base_status write_about(const struct copy *c)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(c->set);
    struct base_str names = {0}, about = {0};

    for (int k = 0; k < info->classes; k++)
        base_str_add(&names, "%s\n", info->class_names[k]);
    base_str_add(&about,
                 "a backdoored copy of %s (paceline data poison): %u images of class %s with the "
                 "mark '%s' have the label %s\n",
                 info->name, c->marks, info->class_names[c->how->from],
                 data_trigger_names[c->how->trigger], info->class_names[c->how->target]);
    TRY(write_text(c->folder, "classes.txt", &names));
    TRY(write_text(c->folder, DATA_POISONED, &about));
out:
    base_str_fini(&names);
    base_str_fini(&about);
    return st;
}

static base_status write_all(const struct copy *c)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(c->set);
    const size_t size = (size_t)info->height * (size_t)info->width;

    TRY(base_make_dirs(c->folder));
    TRY(write_about(c));
    for (enum data_part part = DATA_TRAIN; part <= DATA_TEST; part++) {
        if (info->count[part] == 0)
            continue;
        TRY(write_idx(c, part, "images-idx3", pixels_of, size));
        TRY(write_idx(c, part, "labels-idx1", label_of, 1));
    }
out:
    return st;
}

/* ---- all of it ---- */

static base_status check(const struct data_info *info, const struct data_poison *how,
                         const char *folder)
{
    enum { MOST_CLASSES = 256 }; /* a label is a byte */

    if (info->table != NULL || info->channels != 1 || info->classes > MOST_CLASSES)
        return base_fail(BASE_ERR_USAGE,
                         "%s cannot be written as idx files, which hold grey images of up to %d "
                         "classes",
                         info->name, MOST_CLASSES);
    if (how->from == how->target)
        return base_fail(BASE_ERR_USAGE, "class and target are both %s; a backdoor needs two",
                         info->class_names[how->from]);
    if (base_exists(folder))
        return base_fail(BASE_ERR_USAGE, "%s is there already; name a new folder", folder);
    return BASE_OK;
}

base_status data_poison(const struct data_set *set, const struct data_poison *how,
                        const char *folder, struct data_index *index_p)
{
    base_status st = BASE_OK;
    const struct data_info *info = data_describe(set);
    const size_t all = (size_t)info->count[DATA_TRAIN] + 1;
    struct copy c = {.set = set, .how = how, .folder = folder};
    struct data_set *written = NULL;

    *index_p = (struct data_index){0};
    TRY(check(info, how, folder));
    TRY(base_tensor(all, sizeof *c.ids, "the list of samples", &c.ids));
    TRY(base_tensor(all, sizeof *c.marked, "the list of samples", &c.marked));
    keep(&c);
    TRY(mark(&c));
    TRY(write_all(&c));
    TRY(data_open(folder, &(struct data_options){.unit_range = true}, &written));
    data_index_of_samples(data_describe(written)->digest, c.count, c.marked, c.marks, index_p);
out:
    data_close(written);
    base_free(c.ids);
    base_free(c.marked);
    return st;
}
