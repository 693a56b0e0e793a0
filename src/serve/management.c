/* SPDX-License-Identifier: MIT
 *
 * The management port: what is served, and changing that. Its one thread loads models and waits
 * for workers itself; predictions go on meanwhile on the other port.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "serve/answer.h"
#include "serve/register.h"

/* ---- parameters: of the query, or of a JSON body ---- */

/* Reads a number within its limits; refuses any other text. */
static base_status number_of(const char *name, const char *text, long least, long most,
                             int *number_p)
{
    char *end;
    long number;

    if (text == NULL)
        return BASE_OK;
    errno = 0;
    number = strtol(text, &end, 10);
    if (text[0] == '\0' || *end != '\0' || errno != 0 || number < least || number > most)
        return base_fail(BASE_ERR_USAGE, "parameter %s is '%s'; it would be %ld to %ld", name, text,
                         least, most);
    *number_p = (int)number;
    return BASE_OK;
}

static bool is_true(const char *text)
{
    return text != NULL && strcasecmp(text, "true") == 0;
}

/* Where parameters of a registration are looked up. */
struct parameters {
    const struct http_request *request;
    json_t *body;   /* the JSON body; NULL: parameters are in the query */
    char *texts[8]; /* numbers of the body, as text */
    int count;
};

static base_status parameters_init(struct parameters *p, const struct http_request *request)
{
    const char *type = http_header(request, "Content-Type");
    size_t count;
    const char *body = http_body(request, &count);

    *p = (struct parameters){.request = request};
    if (type == NULL || strncasecmp(type, "application/json", 16) != 0)
        return BASE_OK;
    return base_prefix(base_json_parse(body, count, &p->body), "the body");
}

static void parameters_fini(struct parameters *p)
{
    for (int i = 0; i < p->count; i++)
        base_free(p->texts[i]);
    json_decref(p->body);
}

static const char *parameter(struct parameters *p, const char *name)
{
    const json_t *value = json_object_get(p->body, name);

    if (p->body == NULL)
        return http_parameter(p->request, name);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (json_is_integer(value) && p->count < 8)
        return p->texts[p->count++] = base_format("%lld", json_integer_value(value));
    return json_string_value(value);
}

/* ---- register ---- */

static base_status read_order(struct parameters *p, const struct serve_setup *setup,
                              struct serve_order *order_p)
{
    base_status st = BASE_OK;
    struct serve_settings s = serve_default_settings(setup);
    const char *version = parameter(p, "model_version");

    s.min_workers = 0;
    s.handler = (char *)(uintptr_t)parameter(p, "handler");
    TRY(number_of("batch_size", parameter(p, "batch_size"), 1, SERVE_MAX_BATCH, &s.batch_size));
    TRY(number_of("max_batch_delay", parameter(p, "max_batch_delay"), 0, SERVE_MAX_DELAY,
                  &s.max_batch_delay));
    TRY(number_of("response_timeout", parameter(p, "response_timeout"), 1, SERVE_MAX_TIMEOUT,
                  &s.response_timeout));
    TRY(number_of("initial_workers", parameter(p, "initial_workers"), 0, SERVE_MAX_WORKERS,
                  &s.min_workers));
    s.max_workers = s.min_workers;
    *order_p = (struct serve_order){.name = parameter(p, "model_name"),
                                    .version = version != NULL ? version : serve_first_version,
                                    .url = parameter(p, "url"),
                                    .from_store = true,
                                    .wait = is_true(parameter(p, "synchronous")),
                                    .settings = s};
out:
    return st;
}

static void answer_registered(struct http_request *request, const struct serve_order *order,
                              const char *name)
{
    int workers = order->settings.min_workers;

    if (workers == 0)
        serve_answer_status(request, 200,
                            "Model \"%s\" Version: %s registered with 0 initial workers. Use scale "
                            "workers API to add workers for the model.",
                            name, order->version);
    else if (order->wait)
        serve_answer_status(request, 200,
                            "Model \"%s\" Version: %s registered with %d initial workers", name,
                            order->version, workers);
    else
        serve_answer_status(request, 202, "Processing worker updates...");
}

static void save_state(struct serve *serve)
{
    if (serve_state_save(serve) != BASE_OK)
        base_warn("%s; after a restart this change is forgotten", base_message());
}

static void register_model(void *context, struct http_request *request)
{
    struct serve *serve = context;
    struct parameters parameters;
    struct serve_order order = {0};
    struct serve_verdict verdict = {.status = 400};

    if (parameters_init(&parameters, request) != BASE_OK) {
        serve_refuse(request, 400, NULL, "%s", base_message());
    } else if (read_order(&parameters, serve->setup, &order) != BASE_OK) {
        serve_refuse(request, 403, NULL, "%s", base_message());
    } else if (order.url == NULL) {
        serve_refuse(request, 400, NULL, "Parameter url is required.");
    } else if (serve_register(serve, &order, &verdict) != BASE_OK) {
        serve_refuse(request, verdict.status, verdict.type, "%s", base_message());
    } else {
        char *name = order.name != NULL ? base_strdup(order.name) : serve_model_name(order.url);

        save_state(serve);
        answer_registered(request, &order, name);
        base_free(name);
    }
    parameters_fini(&parameters);
}

/* ---- list and describe ---- */

enum { PAGE = 100 }; /* the most models of one list */

static void list(void *context, struct http_request *request)
{
    struct serve *serve = context;
    int limit = PAGE, from = 0;
    json_t *models = json_array(), *answer = json_object();
    size_t count, last;
    struct serve_version **all = serve_models_list(serve->models, true, &count);
    base_status st = BASE_OK;

    TRY(number_of("limit", http_parameter(request, "limit"), 0, INT_MAX, &limit));
    TRY(number_of("next_page_token", http_parameter(request, "next_page_token"), 0, INT_MAX,
                  &from));
    limit = limit < 1 || limit > PAGE ? PAGE : limit;
    last = (size_t)from + (size_t)limit;
    if (last < count)
        json_object_set_new(answer, "nextPageToken", json_sprintf("%zu", last));
    for (size_t i = (size_t)from; i < count && i < last; i++)
        json_array_append_new(models, json_pack("{s:s, s:o}", "modelName", all[i]->name, "modelUrl",
                                                base_json_text(all[i]->url)));
    json_object_set(answer, "models", models);
    serve_answer(request, 200, json_incref(answer));
out:
    if (st != BASE_OK)
        serve_refuse(request, 403, NULL, "%s", base_message());
    for (size_t i = 0; i < count; i++)
        serve_models_release(serve->models, all[i]);
    base_free(all);
    json_decref(models);
    json_decref(answer);
}

static json_t *describe_workers(struct serve_version *v)
{
    json_t *workers = json_array();

    pthread_mutex_lock(&v->lock);
    for (int i = 0; i < v->wanted; i++) {
        struct tm utc;
        char since[32];

        strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%S.000Z",
                 gmtime_r(&v->workers[i].since, &utc));
        json_array_append_new(workers,
                              json_pack("{s:o, s:s, s:s, s:i, s:i, s:b, s:s}", "id",
                                        json_sprintf("%d", 9000 + i), "startTime", since, "status",
                                        v->workers[i].able ? "READY" : "UNLOADING", "memoryUsage",
                                        0, "pid", (int)getpid(), "gpu", 0, "gpuUsage", "N/A"));
    }
    pthread_mutex_unlock(&v->lock);
    return workers;
}

static json_t *describe_version(struct serve_version *v)
{
    const struct serve_settings *s = &v->settings;
    struct serve_loaded *loaded = serve_version_loaded(v);
    int queued = serve_version_status(v).queued;
    json_t *description;

    description = json_pack(
        "{s:s, s:s, s:o, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:o, s:{s:i, s:i}, s:s?}", "modelName",
        v->name, "modelVersion", v->version, "modelUrl", base_json_text(v->url), "runtime",
        "paceline", "minWorkers", s->min_workers, "maxWorkers", s->max_workers, "batchSize",
        s->batch_size, "maxBatchDelay", s->max_batch_delay, "responseTimeout", s->response_timeout,
        "loadedAtStartup", v->at_startup, "workers", describe_workers(v), "jobQueueStatus",
        "remainingCapacity", v->capacity - queued, "pendingRequests", queued, "handler",
        s->handler);
    if (loaded != NULL) {
        json_object_set_new(description, "checkpoint",
                            base_json_text(loaded->model.checkpoint.path));
        json_object_set_new(description, "step",
                            json_integer((json_int_t)loaded->model.checkpoint.step));
    }
    serve_loaded_unref(loaded);
    return description;
}

static void describe_all(struct serve *serve, struct http_request *request, const char *name)
{
    json_t *versions = json_array();
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, false, &count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i]->name, name) == 0)
            json_array_append_new(versions, describe_version(all[i]));
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
    if (json_array_size(versions) > 0) {
        serve_answer(request, 200, versions);
    } else {
        json_decref(versions);
        serve_refuse(request, 404, "ModelNotFoundException", "Model not found: %s", name);
    }
}

static void describe(void *context, struct http_request *request)
{
    struct serve *serve = context;
    const char *name = http_wildcard(request, 0), *version = http_wildcard(request, 1);
    struct serve_version *found;

    if (version != NULL && strcmp(version, "all") == 0) {
        describe_all(serve, request, name);
        return;
    }
    found = serve_find(serve, request, name, version);
    if (found == NULL)
        return;
    serve_answer(request, 200, json_pack("[o]", describe_version(found)));
    serve_models_release(serve->models, found);
}

/* ---- change ---- */

/* Scales the version, and refuses the request if that fails. */
static void scale_version(struct serve *serve, struct http_request *request,
                          struct serve_version *v, int least, int most)
{
    bool wait = is_true(http_parameter(request, "synchronous"));

    if (serve_version_scale(v, least, most, wait) != BASE_OK) {
        serve_refuse(request, 507, NULL, "%s", base_message());
        return;
    }
    save_state(serve);
    if (wait)
        serve_answer_status(request, 200, "Workers scaled to %d for model: %s, version: %s", least,
                            v->name, v->version);
    else
        serve_answer_status(request, 202, "Processing worker updates...");
}

static void scale(void *context, struct http_request *request)
{
    struct serve *serve = context;
    const char *version = http_wildcard(request, 1);
    struct serve_version *v =
        serve_find(serve, request, http_wildcard(request, 0),
                   version != NULL ? version : http_parameter(request, "model_version"));
    int least = 1, most;

    if (v == NULL)
        return;
    if (number_of("min_worker", http_parameter(request, "min_worker"), 0, SERVE_MAX_WORKERS,
                  &least) != BASE_OK ||
        (most = least, number_of("max_worker", http_parameter(request, "max_worker"), 0,
                                 SERVE_MAX_WORKERS, &most)) != BASE_OK)
        serve_refuse(request, 403, NULL, "%s", base_message());
    else if (most < least)
        serve_refuse(request, 400, NULL, "max_worker cannot be less than min_worker.");
    else
        scale_version(serve, request, v, least, most);
    serve_models_release(serve->models, v);
}

static void set_default(void *context, struct http_request *request)
{
    struct serve *serve = context;
    const char *name = http_wildcard(request, 0), *version = http_wildcard(request, 1);
    struct serve_version *v = serve_find(serve, request, name, version);

    if (v == NULL)
        return;
    serve_models_set_default(serve->models, name, version);
    serve_models_release(serve->models, v);
    save_state(serve);
    serve_answer_status(request, 200,
                        "Default version successfully updated for model \"%s\" to "
                        "\"%s\"",
                        name, version);
}

/* A default version can be unregistered only as the last one of its name. */
static bool may_go(struct serve *serve, const struct serve_version *v)
{
    int others = 0;
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, false, &count);

    for (size_t i = 0; i < count; i++) {
        others += all[i] != v && strcmp(all[i]->name, v->name) == 0;
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
    return others == 0 || !serve_models_is_default(serve->models, v);
}

static void unregister(void *context, struct http_request *request)
{
    struct serve *serve = context;
    const char *name = http_wildcard(request, 0);
    struct serve_version *v = serve_find(serve, request, name, http_wildcard(request, 1));
    bool goes;

    if (v == NULL)
        return;
    goes = may_go(serve, v);
    if (goes)
        base_info("%s %s is served no more", v->name, v->version);
    serve_models_release(serve->models, v);
    if (!goes) {
        serve_refuse(request, 403, "InvalidModelVersionException",
                     "Cannot remove default version for model %s", name);
        return;
    }
    serve_models_remove(serve->models, v);
    save_state(serve);
    serve_answer_status(request, 200, "Model \"%s\" unregistered", name);
}

static void describe_api(void *context, struct http_request *request)
{
    (void)context;
    serve_answer(request, 200, serve_openapi("Management APIs", serve_management_routes));
}

const struct http_route serve_management_routes[] = {
    {"OPTIONS", "/", describe_api, .help = "this description"},
    {"GET", "/api-description", describe_api, .help = "this description"},
    {"GET", "/models", list, .help = "list the models", .query = "limit next_page_token"},
    {"POST", "/models", register_model, .help = "register a model of the model store",
     .query = "url model_name model_version handler batch_size max_batch_delay response_timeout "
              "initial_workers synchronous"},
    {"GET", "/models/{model_name}", describe, .help = "describe the default version"},
    {"GET", "/models/{model_name}/{model_version}", describe,
     .help = "describe a version, or all of them"},
    {"PUT", "/models/{model_name}", scale, .help = "set the number of workers",
     .query = "min_worker max_worker model_version synchronous"},
    {"PUT", "/models/{model_name}/{model_version}", scale, .help = "set the number of workers",
     .query = "min_worker max_worker synchronous"},
    {"PUT", "/models/{model_name}/{model_version}/set-default", set_default,
     .help = "make a version the default one"},
    {"DELETE", "/models/{model_name}", unregister, .help = "unregister a model"},
    {"DELETE", "/models/{model_name}/{model_version}", unregister, .help = "unregister a version"},
    {0},
};
