/* SPDX-License-Identifier: MIT */
#include "data/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { INDEX_LIMIT = 256 << 20, ID_LIMIT = 255 }; /* bytes of a file, of a user's id */

/* Of what is listed, whatever else the file says. */
static void seal(struct data_index *index)
{
    struct base_str s = {0};

    base_str_add(&s, "%s %u", index->set, index->of);
    for (uint32_t i = 0; i < index->count; i++)
        if (index->samples != NULL)
            base_str_add(&s, "\n%u", index->samples[i]);
        else
            base_str_add(&s, "\n%s", index->users[i]);
    base_sha256(s.text, s.length, index->digest);
    base_str_fini(&s);
}

static void begin(struct data_index *index, const char *set, uint32_t of, uint32_t count)
{
    *index = (struct data_index){.of = of, .count = count};
    memccpy(index->set, set, 0, sizeof index->set - 1);
}

void data_index_of_samples(const char *set, uint32_t of, const uint32_t *samples, uint32_t count,
                           struct data_index *index)
{
    begin(index, set, of, count);
    index->samples = base_calloc((size_t)count + 1, sizeof *index->samples);
    for (uint32_t i = 0; i < count; i++)
        index->samples[i] = samples[i];
    seal(index);
}

void data_index_of_users(const char *set, uint32_t of, char **users, uint32_t count,
                         struct data_index *index)
{
    begin(index, set, of, count);
    index->users = users;
    seal(index);
}

void data_index_fini(struct data_index *index)
{
    base_free(index->samples);
    if (index->users != NULL)
        base_names_free(index->users, index->count);
    *index = (struct data_index){0};
}

/* ---- reading ---- */

static base_status read_samples(const json_t *list, struct data_index *index)
{
    index->samples = base_calloc((size_t)index->count + 1, sizeof *index->samples);
    for (uint32_t i = 0; i < index->count; i++) {
        const json_t *entry = json_array_get(list, i);
        const json_int_t sample = json_integer_value(entry);

        if (!json_is_integer(entry) || sample < 0 || sample >= index->of)
            return base_fail(BASE_ERR_DATA, "entry %u of its samples is not from 0 to %u", i,
                             index->of - 1);
        if (i > 0 && sample <= index->samples[i - 1])
            return base_fail(BASE_ERR_DATA,
                             "its samples do not rise: %lld comes after %u, or comes twice",
                             (long long)sample, index->samples[i - 1]);
        index->samples[i] = (uint32_t)sample;
    }
    return BASE_OK;
}

static base_status read_users(const json_t *list, struct data_index *index)
{
    index->users = base_calloc((size_t)index->count + 1, sizeof *index->users);
    for (uint32_t i = 0; i < index->count; i++) {
        const char *id = json_string_value(json_array_get(list, i));

        if (id == NULL || id[0] == '\0' || strlen(id) > ID_LIMIT)
            return base_fail(BASE_ERR_DATA,
                             "entry %u of its users is no id: a text of 1 to %d bytes", i,
                             ID_LIMIT);
        index->users[i] = base_strdup(id);
    }
    return BASE_OK;
}

static base_status parse(const json_t *object, struct data_index *index)
{
    base_status st = BASE_OK;
    const bool users = json_object_get(object, "users") != NULL;
    json_t *list = NULL;
    const char *set = NULL;
    int64_t of = 0;

    TRY(base_json_string(object, "set", &set));
    TRY(base_json_bounded(object, "of", 1, UINT32_MAX, &of));
    TRY(base_json_array(object, users ? "users" : "samples", &list));
    if (strlen(set) != BASE_SHA256_HEX - 1)
        TRY(base_fail(BASE_ERR_DATA, "'%s' is not the digest of a data set", set));
    if (json_array_size(list) > (size_t)of)
        TRY(base_fail(BASE_ERR_DATA, "it lists %zu of %lld", json_array_size(list), (long long)of));
    begin(index, set, (uint32_t)of, (uint32_t)json_array_size(list));
    TRY(users ? read_users(list, index) : read_samples(list, index));
    seal(index);
out:
    return st;
}

base_status data_index_read(const char *path, struct data_index *index)
{
    base_status st = BASE_OK;
    json_t *object = NULL;

    *index = (struct data_index){0};
    TRY(base_json_load(path, INDEX_LIMIT, &object));
    TRY(base_prefix(parse(object, index), "%s", path));
out:
    json_decref(object);
    if (st != BASE_OK)
        data_index_fini(index);
    return st;
}

base_status data_index_check(const struct data_index *index, const char *set, bool users)
{
    if ((index->users != NULL) != users)
        return base_fail(BASE_ERR_DATA, "the index lists %s, but the data is %s",
                         users ? "samples" : "users", users ? "ratings" : "samples");
    if (strcmp(index->set, set) != 0)
        return base_fail(BASE_ERR_DATA,
                         "the index is of another data set: its digest is %.12s…, that of the "
                         "data %.12s…",
                         index->set, set);
    return BASE_OK;
}

/* ---- writing ---- */

base_status data_index_write(const struct data_index *index, const char *path, json_t *more)
{
    base_status st = BASE_OK;
    json_t *list = json_array();
    json_t *object =
        json_pack("{s:i, s:s, s:I}", "schema", 1, "set", index->set, "of", (json_int_t)index->of);
    char *text = NULL;

    for (uint32_t i = 0; i < index->count; i++)
        json_array_append_new(list, index->samples != NULL ? json_integer(index->samples[i])
                                                           : json_string(index->users[i]));
    json_object_update_new(object, more);
    json_object_set_new(object, index->samples != NULL ? "samples" : "users", list);
    text = json_dumps(object, JSON_COMPACT);
    if (text == NULL)
        TRY(base_fail(BASE_ERR_INTERNAL, "an index of %u entries is no JSON", index->count));
    TRY(base_file_replace(path, text, strlen(text)));
out:
    free(text);
    json_decref(object);
    return st;
}
