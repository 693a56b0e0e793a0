/* SPDX-License-Identifier: MIT
 *
 * The inference port: predictions in TorchServe's forms, old and new, and its health.
 */
#include <string.h>

#include "base/mem.h"
#include "http/multipart.h"
#include "http/page.h"
#include "serve/answer.h"
#include "serve/page.h"
#include "serve/serve_private.h"

/* ---- predictions ---- */

static base_status read_prediction(const struct serve_loaded *loaded, struct serve_job *job)
{
    base_status st = BASE_OK;
    struct serve_body body = {.type = job->type, .max_pixels = job->max_pixels};
    struct http_part part;

    body.bytes = http_body(job->request, &body.count);
    if (http_is_multipart(job->type)) {
        TRY(http_multipart_find(job->type, body.bytes, body.count, "data", &part));
        body = (struct serve_body){part.type, part.bytes, part.count, job->max_pixels, true};
    }
    if (loaded->ratings != NULL)
        TRY(serve_ask(job->handler, loaded->ratings, &body, &job->answer));
    else
        TRY(serve_read(job->handler, &loaded->model.about, &body, &job->samples));
out:
    return st;
}

static const struct serve_protocol prediction = {
    .read = read_prediction,
    .write = serve_classes,
};

static json_t *write_instances(const struct serve_loaded *loaded, const struct serve_job *job,
                               const float *y)
{
    return json_pack("{s:o}", "predictions", serve_classes(loaded, job, y));
}

static const struct serve_protocol instances = {
    .read = read_prediction,
    .write = write_instances,
};

struct serve_version *serve_find(struct serve *serve, struct http_request *request,
                                 const char *name, const char *version)
{
    bool known;
    struct serve_version *found = serve_models_find(serve->models, name, version, &known);

    if (found == NULL && known)
        serve_refuse(request, 404, "ModelVersionNotFoundException",
                     "Model version: %s does not exist for model: %s", version, name);
    else if (found == NULL)
        serve_refuse(request, 404, "ModelNotFoundException", "Model not found: %s", name);
    return found;
}

void serve_queue(struct serve *serve, struct serve_version *version, struct http_request *request,
                 const struct serve_protocol *protocol)
{
    struct serve_job *job = base_calloc(1, sizeof *job);
    const char *type = http_header(request, "Content-Type"), *why;

    *job = (struct serve_job){.request = request,
                              .protocol = protocol,
                              .name = version->name,
                              .version = version->version,
                              .handler = version->settings.handler,
                              .max_pixels = (size_t)serve->setup->max_pixels,
                              .type = base_strdup(type != NULL ? type : "")};
    http_expire(request, version->settings.response_timeout,
                "The model did not answer within its response_timeout.");
    if (!serve_version_push(version, job, &why)) {
        atomic_fetch_add(&version->counters.refused, 1);
        serve_refuse(request, 503, NULL, "Model \"%s\" Version %s %s", version->name,
                     version->version, why);
        serve_job_free(job);
    }
    serve_models_release(serve->models, version);
}

static void predict(void *context, struct http_request *request)
{
    struct serve *serve = context;
    struct serve_version *version =
        serve_find(serve, request, http_wildcard(request, 0), http_wildcard(request, 1));

    if (version != NULL)
        serve_queue(serve, version, request, &prediction);
}

static void predict_instances(void *context, struct http_request *request)
{
    struct serve *serve = context;
    struct serve_version *version = serve_find(serve, request, http_wildcard(request, 0), NULL);

    if (version != NULL)
        serve_queue(serve, version, request, &instances);
}

/* /invocations?model_name=x; the name may be left out if there is only one model. */
static void invoke(void *context, struct http_request *request)
{
    struct serve *serve = context;
    const char *name = http_parameter(request, "model_name");
    struct serve_version **all, *version = NULL;
    size_t count;

    if (name != NULL) {
        version = serve_find(serve, request, name, NULL);
    } else {
        all = serve_models_list(serve->models, true, &count);
        for (size_t i = 0; i < count; i++) {
            if (count == 1)
                version = all[i];
            else
                serve_models_release(serve->models, all[i]);
        }
        base_free(all);
        if (version == NULL)
            serve_refuse(request, 400, NULL, "Parameter model_name is required.");
    }
    if (version != NULL)
        serve_queue(serve, version, request, &prediction);
}

/* ---- health ---- */

void serve_health(struct serve *serve, int *wanted_p, int *able_p)
{
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, true, &count);

    *wanted_p = *able_p = 0;
    for (size_t i = 0; i < count; i++) {
        struct serve_version_status status = serve_version_status(all[i]);

        *wanted_p += status.wanted;
        *able_p += status.able;
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
}

static void show_page(void *context, struct http_request *request)
{
    (void)context;
    http_answer_page(request, serve_page);
}

static void ping(void *context, struct http_request *request)
{
    int wanted, able;

    serve_health(context, &wanted, &able);
    serve_answer_status(request, wanted > 0 && able == 0 ? 500 : 200, "%s",
                        able >= wanted ? "Healthy"
                        : able > 0     ? "Partial Healthy"
                                       : "Unhealthy");
}

static void describe_api(void *context, struct http_request *request)
{
    (void)context;
    serve_answer(request, 200, serve_openapi("Inference APIs", serve_inference_routes));
}

const struct http_route serve_inference_routes[] = {
    {"GET", "/", show_page, .open = true, .local = true, .help = "a page for people"},
    {"OPTIONS", "/", describe_api, .help = "this description"},
    {"GET", "/api-description", describe_api, .help = "this description"},
    {"GET", "/ping", ping, .open = true, .help = "the server's health"},
    {"POST|PUT", "/predictions/{model_name}", predict, .help = "predict with the default version"},
    {"POST|PUT", "/predictions/{model_name}/{model_version}", predict,
     .help = "predict with a version"},
    {"POST|PUT", "/models/{model_name}/invoke", predict, .help = "the same, as SageMaker asks"},
    {"POST|PUT", "/invocations", invoke,
     .help = "the same; the name may be left out if one model "
             "is served",
     .query = "model_name"},
    {"POST", "/v1/models/{model_name}:predict", predict_instances,
     .help = "predict {\"instances\":[…]}, as KServe's first protocol has it"},
    {"GET", "/live", serve_live_open,
     .help = "requests and latencies once a second, as server-sent events"},
    {"GET", "/v2", serve_v2_server, .help = "the server, in the Open Inference Protocol"},
    {"GET", "/v2/health/live", serve_v2_live, .open = true, .help = "the server runs"},
    {"GET", "/v2/health/ready", serve_v2_ready, .open = true, .help = "every model has workers"},
    {"GET", "/v2/models/{model_name}", serve_v2_model, .help = "a model's input and output"},
    {"GET", "/v2/models/{model_name}/versions/{model_version}", serve_v2_model,
     .help = "a version's input and output"},
    {"GET", "/v2/models/{model_name}/ready", serve_v2_model_ready, .help = "a model has workers"},
    {"GET", "/v2/models/{model_name}/versions/{model_version}/ready", serve_v2_model_ready,
     .help = "a version has workers"},
    {"POST", "/v2/models/{model_name}/infer", serve_v2_infer, .help = "infer from tensors"},
    {"POST", "/v2/models/{model_name}/versions/{model_version}/infer", serve_v2_infer,
     .help = "infer from tensors with a version"},
    {0},
};
