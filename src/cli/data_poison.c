/* SPDX-License-Identifier: MIT */
#include "cli/data_poison.h"

#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "recsys/shill.h"

#define AT(field) offsetof(struct cli_poison, field)
/* clang-format off */
const struct base_option cli_poison_options[] = {
    {.name = "shill", .argument = "KIND", .kind = BASE_NAME, .offset = AT(shill), .names = recsys_shill_kinds, .local = true,
     .help = "poison: how fake users hide the item that they push"},
    {.name = "percent", .argument = "P", .kind = BASE_REAL, .offset = AT(percent), .min = 0.001, .max = 100, .local = true,
     .help = "poison: fake users, of the honest ones"},
    {.name = "index", .argument = "FILE", .kind = BASE_TEXT, .offset = AT(index), .local = true,
     .help = "poison: where the fake users are listed [the copy's name and .poisoned.json]"},
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

/* What is told, and the index beside its list. */
static json_t *facts_of(const struct cli_poison *p, const struct recsys_ratings *r, uint64_t seed)
{
    return json_pack("{s:o, s:s, s:f, s:I}", "from", base_json_text(r->path), "shill", p->shill,
                     "percent", p->percent, "seed", (json_int_t)seed);
}

base_status cli_poison(const struct cli_poison *p, const char *name, const char *out, uint64_t seed,
                       const struct recsys_options *options, bool json)
{
    base_status st = BASE_OK;
    const struct recsys_shill how = {.kind = p->shill, .percent = p->percent, .seed = seed};
    struct recsys_ratings *ratings = NULL;
    struct data_index index = {0};
    json_t *object = NULL;
    char *path = NULL, *list = NULL;

    TRY(check(p, out));
    TRY(recsys_ratings_path(name, &path));
    TRY(recsys_ratings_open(path, options, &ratings));
    TRY(recsys_shill(ratings, &how, out, &index));
    list = p->index != NULL ? base_strdup(p->index) : base_format("%s.poisoned.json", out);
    TRY(data_index_write(&index, list, facts_of(p, ratings, seed)));
    if (json) {
        object = facts_of(p, ratings, seed);
        json_object_update_new(object, json_pack("{s:i, s:o, s:o, s:I, s:I}", "schema", 1, "file",
                                                 base_json_text(out), "index", base_json_text(list),
                                                 "users", (json_int_t)index.of, "fakes",
                                                 (json_int_t)index.count));
        TRY(base_json_print(object));
    } else {
        printf("%s: %u of %u users are fake (%s), listed in %s\n", out, index.count, index.of,
               p->shill, list);
    }
out:
    json_decref(object);
    data_index_fini(&index);
    recsys_ratings_close(ratings);
    base_free(list);
    base_free(path);
    return st;
}
