/* SPDX-License-Identifier: MIT
 *
 * The Open Inference Protocol v2 over HTTP. A model has one input and one output.
 */
#include <string.h>

#include "base/mem.h"
#include "serve/answer.h"
#include "serve/serve_private.h"
#include "serve/v2_parse.h"

static const char input_name[] = "input", output_name[] = "output";

/* ---- the server and its models ---- */

void serve_v2_server(void *context, struct http_request *request)
{
    (void)context;
    serve_answer(request, 200,
                 json_pack("{s:s, s:s, s:[]}", "name", "paceline", "version", PACELINE_VERSION,
                           "extensions"));
}

void serve_v2_live(void *context, struct http_request *request)
{
    (void)context;
    serve_answer(request, 200, json_pack("{s:b}", "live", 1));
}

void serve_v2_ready(void *context, struct http_request *request)
{
    int wanted, able;

    serve_health(context, &wanted, &able);
    serve_answer(request, able >= wanted ? 200 : 503, json_pack("{s:b}", "ready", able >= wanted));
}

static json_t *versions_of(struct serve *serve, const char *name)
{
    json_t *versions = json_array();
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, false, &count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i]->name, name) == 0)
            json_array_append_new(versions, json_string(all[i]->version));
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
    return versions;
}

void serve_v2_model(void *context, struct http_request *request)
{
    struct serve *serve = context;
    const char *name = http_wildcard(request, 0);
    struct serve_version *v = serve_find(serve, request, name, http_wildcard(request, 1));
    struct serve_loaded *loaded;

    if (v == NULL)
        return;
    loaded = serve_version_loaded(v);
    serve_models_release(serve->models, v);
    if (loaded == NULL) {
        serve_refuse(request, 503, NULL, "the model has no checkpoint yet");
        return;
    }
    if (loaded->ratings != NULL) {
        serve_refuse(request, 400, NULL, "a rating model takes no tensors: ask /predictions/%s",
                     name);
        serve_loaded_unref(loaded);
        return;
    }
    struct nn_shape in = loaded->model.about.input;

    serve_answer(request, 200,
                 json_pack("{s:s, s:o, s:s, s:[{s:s, s:s, s:[i,i,i,i]}], s:[{s:s, s:s, s:[i,i]}]}",
                           "name", name, "versions", versions_of(serve, name), "platform",
                           "paceline", "inputs", "name", input_name, "datatype", "FP32", "shape",
                           -1, in.c, in.h, in.w, "outputs", "name", output_name, "datatype", "FP32",
                           "shape", -1, loaded->outputs));
    serve_loaded_unref(loaded);
}

void serve_v2_model_ready(void *context, struct http_request *request)
{
    struct serve *serve = context;
    const char *name = http_wildcard(request, 0);
    struct serve_version *v = serve_find(serve, request, name, http_wildcard(request, 1));
    bool ready;

    if (v == NULL)
        return;
    ready = serve_version_status(v).able > 0;
    serve_models_release(serve->models, v);
    serve_answer(request, ready ? 200 : 503, json_pack("{s:s, s:b}", "name", name, "ready", ready));
}

/* ---- infer ---- */

static base_status v2_read(const struct serve_loaded *loaded, struct serve_job *job)
{
    size_t count;
    const char *body = http_body(job->request, &count);

    if (loaded->ratings != NULL)
        return base_fail(BASE_ERR_DATA, "a rating model takes no tensors: ask /predictions/%s",
                         job->name);
    return serve_v2_parse(&loaded->model.about, body, count, &job->id, &job->samples);
}

static json_t *v2_write(const struct serve_loaded *loaded, const struct serve_job *job,
                        const float *y)
{
    const struct model_about *about = &loaded->model.about;
    bool number = model_about_is_regression(about);
    json_t *data = json_array(), *answer;
    size_t total = (size_t)job->samples.n * (size_t)loaded->outputs;

    for (size_t i = 0; i < total; i++)
        json_array_append_new(
            data, base_json_number(number ? model_about_number(about, y[i]) : (double)y[i]));
    answer = json_pack("{s:s, s:s, s:[{s:s, s:s, s:[i,i], s:o}]}", "model_name", job->name,
                       "model_version", job->version, "outputs", "name", output_name, "datatype",
                       "FP32", "shape", job->samples.n, loaded->outputs, "data", data);
    if (job->id != NULL)
        json_object_set(answer, "id", job->id);
    return answer;
}

static const struct serve_protocol v2 = {.read = v2_read, .write = v2_write};

void serve_v2_infer(void *context, struct http_request *request)
{
    struct serve *serve = context;
    struct serve_version *v =
        serve_find(serve, request, http_wildcard(request, 0), http_wildcard(request, 1));

    if (v != NULL)
        serve_queue(serve, v, request, &v2);
}
