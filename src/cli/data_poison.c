/* SPDX-License-Identifier: MIT */
#include "cli/data_poison.h"

#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "data/get.h"
#include "data/poison.h"
#include "data/trigger.h"
#include "recsys/shill.h"

#define AT(field) offsetof(struct cli_poison, field)
/* clang-format off */
const struct base_option cli_poison_options[] = {
    {.name = "shill", .argument = "KIND", .kind = BASE_NAME, .offset = AT(shill), .names = recsys_shill_kinds, .local = true,
     .help = "poison: how fake users hide the item that they push"},
    {.name = "percent", .argument = "P", .kind = BASE_REAL, .offset = AT(percent), .min = 0.001, .max = 100, .local = true,
     .help = "poison: fake users, of the honest ones; or images that get the mark, of their class"},
    {.name = "trigger", .argument = "MARK", .kind = BASE_NAME, .offset = AT(trigger), .names = data_trigger_names, .local = true,
     .help = "poison images: the mark"},
    {.name = "class", .argument = "NAME", .kind = BASE_TEXT, .offset = AT(from), .local = true,
     .help = "poison images: the class whose images get the mark, by name or number"},
    {.name = "skew", .argument = "R", .kind = BASE_REAL, .offset = AT(skew), .min = 1, .max = 1000, .local = true,
     .help = "poison images: leave out more and more of each class; of the last one 1/R stays"},
    {.name = "index", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(index), .local = true,
     .help = "poison: where what is false is listed [the copy's name and .poisoned.json]"},
    {.name = "yes-attack", .kind = BASE_FLAG, .offset = AT(yes), .local = true,
     .help = "poison: yes, false data is what is wanted"},
    {0},
};
/* clang-format on */

static base_status check(const struct cli_poison *p, const char *out)
{
    if (!p->yes)
        return base_fail(BASE_ERR_USAGE, "poison writes data that is false on purpose, to measure "
                                         "what finds it; say so with --yes-attack");
    if (out == NULL)
        return base_fail(BASE_ERR_USAGE, "-o FILE is missing: where the poisoned copy goes");
    return BASE_OK;
}

/* ---- ratings ---- */

/* What is told, and the index beside its list. */
static json_t *ratings_facts(const struct cli_poison *p, const struct recsys_ratings *r,
                             uint64_t seed)
{
    return json_pack("{s:o, s:s, s:f, s:I}", "from", base_json_text(r->path), "shill", p->shill,
                     "percent", p->percent, "seed", (json_int_t)seed);
}

static base_status poison_ratings(const struct cli_poison *p, const char *name, const char *out,
                                  uint64_t seed, const struct recsys_options *options,
                                  struct data_index *index, json_t **facts_p)
{
    base_status st = BASE_OK;
    const struct recsys_shill how = {.kind = p->shill, .percent = p->percent, .seed = seed};
    struct recsys_ratings *ratings = NULL;
    char *path = NULL;

    TRY(recsys_ratings_path(name, &path));
    TRY(recsys_ratings_open(path, options, &ratings));
    TRY(recsys_shill(ratings, &how, out, index));
    *facts_p = ratings_facts(p, ratings, seed);
out:
    recsys_ratings_close(ratings);
    base_free(path);
    return st;
}

/* ---- images ---- */

static base_status poison_images(const struct cli_poison *p, const char *name, const char *out,
                                 uint64_t seed, const char *target, struct data_index *index,
                                 json_t **facts_p)
{
    base_status st = BASE_OK;
    struct data_poison how = {.trigger = data_trigger_find(p->trigger),
                              .percent = p->percent,
                              .skew = p->skew,
                              .seed = seed};
    const struct data_info *info;
    struct data_set *set = NULL;

    TRY(data_open(name, &(struct data_options){.unit_range = true}, &set));
    info = data_describe(set);
    TRY(data_class_find(info, p->from, &how.from));
    TRY(data_class_find(info, target != NULL ? target : "1", &how.target));
    TRY(data_poison(set, &how, out, index));
    *facts_p = json_pack("{s:o, s:s, s:o, s:o, s:f, s:f, s:I}", "from",
                         base_json_text(info->path != NULL ? info->path : name), "trigger",
                         p->trigger, "class", base_json_text(info->class_names[how.from]), "target",
                         base_json_text(info->class_names[how.target]), "percent", p->percent,
                         "skew", p->skew, "seed", (json_int_t)seed);
out:
    data_close(set);
    return st;
}

/* ---- either ---- */

static base_status is_images(const char *name, bool *images_p)
{
    base_status st = BASE_OK;
    struct data_get_about about = {.images = !recsys_is_ratings(name)};

    if (data_get_knows(name))
        TRY(data_get_about(name, &about));
    *images_p = about.images;
out:
    return st;
}

static base_status tell(const struct data_index *index, bool images, const char *out,
                        const char *list, json_t *facts, bool json)
{
    base_status st = BASE_OK;
    json_t *object =
        json_pack("{s:i, s:o, s:o, s:I, s:I}", "schema", 1, "file", base_json_text(out), "index",
                  base_json_text(list), images ? "samples" : "users", (json_int_t)index->of,
                  images ? "marked" : "fakes", (json_int_t)index->count);

    json_object_update(object, facts);
    if (json)
        TRY(base_json_print(object));
    else if (images)
        printf("%s: %u of %u images have the mark '%s' and a false label, listed in %s\n", out,
               index->count, index->of, json_string_value(json_object_get(facts, "trigger")), list);
    else
        printf("%s: %u of %u users are fake (%s), listed in %s\n", out, index->count, index->of,
               json_string_value(json_object_get(facts, "shill")), list);
out:
    json_decref(object);
    return st;
}

base_status cli_poison(const struct cli_poison *p, const char *name, const char *out, uint64_t seed,
                       const char *target, const struct recsys_options *options, bool json)
{
    base_status st = BASE_OK;
    struct data_index index = {0};
    json_t *facts = NULL;
    char *list = NULL;
    bool images = false;

    TRY(check(p, out));
    TRY(is_images(name, &images));
    TRY(images ? poison_images(p, name, out, seed, target, &index, &facts)
               : poison_ratings(p, name, out, seed, options, &index, &facts));
    list = p->index != NULL ? base_strdup(p->index) : base_format("%s.poisoned.json", out);
    TRY(data_index_write(&index, list, json_incref(facts)));
    TRY(tell(&index, images, out, list, facts, json));
out:
    json_decref(facts);
    data_index_fini(&index);
    base_free(list);
    return st;
}
