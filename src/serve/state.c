/* SPDX-License-Identifier: MIT
 *
 * The state file: {"schema":1,"models":[{"name","version","url","from_store","default",
 * "min_workers","max_workers","batch_size","max_batch_delay","response_timeout","handler"}]}. It is
 * replaced whole after every change and before the change is answered, so that a server which is
 * killed and started again serves what it did.
 */
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/register.h"

enum { SCHEMA = 1, MAX_STATE = 16 << 20 };

/* A number outside the limits of registration means that the file is damaged. */
static base_status read_settings(const json_t *entry, struct serve_settings *settings_p)
{
    base_status st = BASE_OK;
    int64_t batch, delay, timeout, least, most;

    TRY(base_json_integer(entry, "batch_size", &batch));
    TRY(base_json_integer(entry, "max_batch_delay", &delay));
    TRY(base_json_integer(entry, "response_timeout", &timeout));
    TRY(base_json_integer(entry, "min_workers", &least));
    TRY(base_json_integer(entry, "max_workers", &most));
    if (batch < 1 || batch > SERVE_MAX_BATCH || delay < 0 || delay > SERVE_MAX_DELAY ||
        timeout < 1 || timeout > SERVE_MAX_TIMEOUT || least < 0 || most < least ||
        most > SERVE_MAX_WORKERS)
        TRY(base_fail(BASE_ERR_DATA, "a number is out of its range"));
    *settings_p = (struct serve_settings){
        .batch_size = (int)batch,
        .max_batch_delay = (int)delay,
        .response_timeout = (int)timeout,
        .min_workers = (int)least,
        .max_workers = (int)most,
        .handler = (char *)(uintptr_t)json_string_value(json_object_get(entry, "handler")),
    };
out:
    return st;
}

static base_status check_entry(const json_t *entry)
{
    base_status st = BASE_OK;
    struct serve_settings settings;
    const char *text;

    TRY(base_json_string(entry, "name", &text));
    TRY(base_json_string(entry, "version", &text));
    TRY(base_json_string(entry, "url", &text));
    TRY(read_settings(entry, &settings));
out:
    return st;
}

base_status serve_state_open(struct serve *serve)
{
    base_status st = BASE_OK;
    const struct serve_setup *setup = serve->setup;
    json_t *models, *entry;
    int64_t schema;
    size_t i;

    if (setup->state != NULL)
        serve->state_path = base_strdup(setup->state);
    else if (setup->store != NULL)
        serve->state_path = base_format("%s/.paceline-serve.json", setup->store);
    if (serve->state_path == NULL || !base_exists(serve->state_path))
        return BASE_OK;
    st = base_json_load(serve->state_path, MAX_STATE, &serve->state);
    if (st != BASE_OK) /* the message names the path */
        return st;
    TRY(base_json_integer(serve->state, "schema", &schema));
    if (schema != SCHEMA)
        TRY(base_fail(BASE_ERR_DATA, "schema %lld is unknown, this program reads %d",
                      (long long)schema, SCHEMA));
    TRY(base_json_array(serve->state, "models", &models));
    json_array_foreach(models, i, entry) TRY(check_entry(entry));
out:
    return base_prefix(st, "%s", serve->state_path);
}

static const char *text_of(const json_t *entry, const char *key)
{
    return json_string_value(json_object_get(entry, key));
}

void serve_state_workers(const struct serve *serve, const char *name, const char *version,
                         struct serve_settings *settings)
{
    struct serve_settings kept;
    size_t i;
    json_t *entry;

    json_array_foreach(json_object_get(serve->state, "models"), i, entry)
    {
        if (strcmp(text_of(entry, "name"), name) == 0 &&
            strcmp(text_of(entry, "version"), version) == 0 &&
            read_settings(entry, &kept) == BASE_OK) {
            settings->min_workers = kept.min_workers;
            settings->max_workers = kept.max_workers;
        }
    }
}

static bool restore(struct serve *serve, const json_t *entry)
{
    struct serve_order order = {.name = text_of(entry, "name"),
                                .version = text_of(entry, "version"),
                                .url = text_of(entry, "url"),
                                .from_store = true,
                                .wait = true};
    struct serve_verdict verdict;
    bool known;
    struct serve_version *there =
        serve_models_find(serve->models, order.name, order.version, &known);

    serve_models_release(serve->models, there);
    if (there != NULL) /* the command line has another model of that name */
        return true;
    base_ignore(read_settings(entry, &order.settings));
    if (serve_register(serve, &order, &verdict) == BASE_OK)
        return true;
    base_warn("model %s %s of %s is not served: %s", order.name, order.version, serve->state_path,
              base_message());
    return false;
}

base_status serve_state_restore(struct serve *serve)
{
    const json_t *models = json_object_get(serve->state, "models");
    bool all = true;
    size_t i;
    json_t *entry;

    json_array_foreach(models, i, entry)
    {
        if (json_is_true(json_object_get(entry, "from_store")))
            all &= restore(serve, entry);
    }
    json_array_foreach(models, i, entry)
    {
        if (json_is_true(json_object_get(entry, "default")))
            serve_models_set_default(serve->models, text_of(entry, "name"),
                                     text_of(entry, "version"));
    }
    json_decref(serve->state);
    serve->state = NULL;
    if (!all) /* the next start may find what this one did not */
        return BASE_OK;
    /* If the file cannot be written, a person hears it now and not at the first change. */
    return serve_state_save(serve);
}

base_status serve_state_save(struct serve *serve)
{
    base_status st = BASE_OK;
    json_t *models = json_array(), *state;
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, false, &count);
    char *text;

    for (size_t i = 0; i < count; i++) {
        const struct serve_settings *s = &all[i]->settings;

        /* A model of the command line need not be remembered, unless a request has scaled it. */
        if (!all[i]->at_startup || s->min_workers != serve->setup->workers ||
            s->max_workers != serve->setup->workers)
            json_array_append_new(
                models,
                json_pack("{s:s, s:s, s:o, s:b, s:b, s:i, s:i, s:i, s:i, s:i, s:s?}", "name",
                          all[i]->name, "version", all[i]->version, "url",
                          base_json_text(all[i]->url), "from_store", all[i]->from_store, "default",
                          serve_models_is_default(serve->models, all[i]), "min_workers",
                          s->min_workers, "max_workers", s->max_workers, "batch_size",
                          s->batch_size, "max_batch_delay", s->max_batch_delay, "response_timeout",
                          s->response_timeout, "handler", s->handler));
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
    state = json_pack("{s:i, s:o}", "schema", SCHEMA, "models", models);
    text = json_dumps(state, JSON_INDENT(1));
    json_decref(state);
    if (serve->state_path != NULL)
        st = base_file_replace(serve->state_path, text, strlen(text));
    base_free(text);
    return st;
}
