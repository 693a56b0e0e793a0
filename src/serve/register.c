/* SPDX-License-Identifier: MIT */
#include "serve/register.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/store.h"

const char serve_first_version[] = "1.0";

struct serve_settings serve_default_settings(const struct serve_setup *setup)
{
    return (struct serve_settings){
        .batch_size = (int)setup->batch_size,
        .max_batch_delay = (int)setup->max_batch_delay,
        .response_timeout = (int)setup->response_timeout,
        .min_workers = (int)setup->workers,
        .max_workers = (int)setup->workers,
    };
}

static base_status refused(struct serve_verdict *verdict, int status, const char *type,
                           base_status st)
{
    *verdict = (struct serve_verdict){status, type};
    return st;
}

static base_status load_from_store(struct serve *serve, const struct serve_order *order,
                                   struct serve_loaded **loaded_p, struct serve_verdict *verdict)
{
    if (serve->store == NULL)
        return refused(verdict, 400, NULL,
                       base_fail(BASE_ERR_USAGE, "this server has no model store; it would be "
                                                 "started with --store DIR"));
    switch (serve_store_load(serve->store, order->url, order->settings.batch_size, loaded_p)) {
    case SERVE_STORE_FINE:
        return BASE_OK;
    case SERVE_STORE_URL:
        return refused(verdict, 403, NULL, BASE_ERR_USAGE);
    case SERVE_STORE_OUTSIDE:
    case SERVE_STORE_ABSENT:
        return refused(verdict, 404, "ModelNotFoundException", BASE_ERR_USAGE);
    case SERVE_STORE_MEMORY:
        return refused(verdict, 507, NULL, BASE_ERR_MEMORY);
    case SERVE_STORE_BAD:
        break;
    }
    return refused(verdict, 400, "InvalidModelException", BASE_ERR_DATA);
}

static base_status load(struct serve *serve, const struct serve_order *order,
                        struct serve_loaded **loaded_p, struct serve_verdict *verdict)
{
    const char *runs_dir = serve->setup->runs_dir;
    char *place, *checkpoints;
    bool waits;

    if (order->from_store)
        return load_from_store(serve, order, loaded_p, verdict);
    place = model_place(order->url, runs_dir);
    checkpoints = base_format("%s/checkpoints", place);
    waits = order->follows && base_is_dir(place) && !store_has_checkpoint(checkpoints);
    base_free(checkpoints);
    base_free(place);
    if (waits)
        return BASE_OK;
    return refused(verdict, 400, NULL,
                   serve_loaded_open(order->url, runs_dir, order->settings.batch_size, loaded_p));
}

/* Both "runs/mine/" and "mine.mar" are called mine. */
char *serve_model_name(const char *url)
{
    size_t length = strlen(url);
    const char *slash;

    while (length > 1 && url[length - 1] == '/')
        length--;
    slash = memrchr(url, '/', length);
    if (slash != NULL) {
        length -= (size_t)(slash + 1 - url);
        url = slash + 1;
    }
    if (length > 4 && strncmp(url + length - 4, ".mar", 4) == 0)
        length -= 4;
    return base_strndup(url, length);
}

static base_status check_names(const char *name, const char *version, struct serve_verdict *verdict)
{
    const char *wrong = !serve_is_name(name) ? name : !serve_is_name(version) ? version : NULL;

    if (wrong == NULL)
        return BASE_OK;
    return refused(verdict, 400, NULL,
                   base_fail(BASE_ERR_USAGE,
                             "'%s' can be no model's name or version, which has letters, digits, "
                             "'.', '_' and '-' (NAME=RUN gives a name)",
                             wrong));
}

static base_status check_absent(struct serve *serve, const char *name, const char *version,
                                struct serve_verdict *verdict)
{
    bool known;
    struct serve_version *there = serve_models_find(serve->models, name, version, &known);

    serve_models_release(serve->models, there);
    if (there == NULL)
        return BASE_OK;
    return refused(verdict, 409, NULL,
                   base_fail(BASE_ERR_USAGE, "Model version %s is already registered for model %s",
                             version, name));
}

base_status serve_register(struct serve *serve, const struct serve_order *order,
                           struct serve_verdict *verdict_p)
{
    base_status st = BASE_OK;
    char *name = order->name != NULL ? base_strdup(order->name) : serve_model_name(order->url);
    struct serve_settings settings = order->settings;
    struct serve_loaded *loaded = NULL;
    struct serve_version *version = NULL;
    const struct serve_handler *handler = NULL;

    *verdict_p = (struct serve_verdict){.status = 400};
    TRY(check_names(name, order->version, verdict_p));
    if (settings.handler != NULL)
        TRY(serve_handler_find(settings.handler, &handler));
    TRY(check_absent(serve, name, order->version, verdict_p));
    settings.handler = handler != NULL ? base_strdup(handler->name) : NULL;
    st = load(serve, order, &loaded, verdict_p);
    version = serve_version_new(name, order->version, order->url, settings, loaded,
                                (int)serve->setup->queue, serve->threads);
    TRY(st);
    version->at_startup = order->at_startup;
    version->from_store = order->from_store;
    *verdict_p = (struct serve_verdict){.status = 507};
    TRY(serve_version_scale(version, settings.min_workers, settings.max_workers, order->wait));
    serve_models_add(serve->models, version);
    base_info("serving %s %s: %s", name, order->version,
              loaded != NULL ? loaded->model.checkpoint.path : "waits for its first checkpoint");
    version = NULL;
out:
    serve_version_free(version);
    base_free(name);
    return st;
}
