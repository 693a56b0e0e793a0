/* SPDX-License-Identifier: MIT */
#include "lab/results.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_BYTES = 256 << 20 };

void lab_run_id(const struct lab_point *point, int64_t seed, char id[LAB_ID])
{
    char **words = lab_words(point, seed), hex[BASE_SHA256_HEX];
    struct base_str line = {0};

    for (size_t i = 0; i < json_array_size(point->launch); i++)
        base_str_add(&line, "%s\n", json_string_value(json_array_get(point->launch, i)));
    for (size_t i = 0; words[i] != NULL; i++)
        base_str_add(&line, "%s\n", words[i]);
    base_sha256(line.text, line.length, hex);
    memcpy(id, hex, LAB_ID - 1);
    id[LAB_ID - 1] = '\0';
    base_str_fini(&line);
    lab_words_free(words);
}

static base_status load(struct lab_results *r)
{
    base_status st = BASE_OK;
    int64_t schema;

    TRY(base_json_load(r->path, MAX_BYTES, &r->json));
    TRY(base_json_bounded(r->json, "schema", 1, 1, &schema));
    TRY(base_json_object(r->json, "runs", &r->runs));
out:
    return base_prefix(st, "%s cannot be gone on with (--fresh forgets it)", r->path);
}

static base_status save(const struct lab_results *r)
{
    char *text = json_dumps(r->json, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    base_status st = base_file_replace(r->path, text, strlen(text));

    free(text);
    return st;
}

base_status lab_results_open(const char *folder, const char *lab, bool fresh, bool reads,
                             struct lab_results *results_p)
{
    base_status st = BASE_OK;
    struct lab_results *r = results_p;

    *r = (struct lab_results){
        .folder = base_strdup(folder), .path = base_format("%s/results.json", folder), .lock = -1};
    if (!reads) {
        TRY(base_make_dirs(folder));
        r->lock = base_lock(folder);
        if (r->lock < 0)
            TRY(base_fail(BASE_ERR_IO,
                          "another paceline lab is at work in %s; --out names "
                          "another folder",
                          folder));
    }
    if (!fresh && base_exists(r->path)) {
        TRY(load(r));
    } else {
        r->json = json_pack("{s:i, s:s, s:s, s:{}}", "schema", 1, "lab", lab, "version",
                            PACELINE_VERSION, "runs");
        r->runs = json_object_get(r->json, "runs");
        if (fresh && !reads) /* forgotten at once, not with the first run that is done */
            TRY(save(r));
    }
out:
    return st;
}

void lab_results_close(struct lab_results *results)
{
    if (results->folder != NULL && results->lock >= 0)
        close(results->lock);
    json_decref(results->json);
    base_free(results->folder);
    base_free(results->path);
    *results = (struct lab_results){.lock = -1};
}

const json_t *lab_results_get(const struct lab_results *results, const struct lab_point *point,
                              int64_t seed)
{
    char id[LAB_ID];
    const json_t *record;

    lab_run_id(point, seed, id);
    record = json_object_get(results->runs, id);
    return json_is_object(json_object_get(record, "result")) ? record : NULL;
}

base_status lab_results_add(struct lab_results *results, const struct lab_point *point,
                            int64_t seed, json_t *record)
{
    char id[LAB_ID];

    lab_run_id(point, seed, id);
    json_object_set_new(results->runs, id, record);
    return save(results);
}
