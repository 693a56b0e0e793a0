/* SPDX-License-Identifier: MIT
 *
 * The Open Inference Protocol v2 over HTTP. A model has one input and one output. Floating-point
 * and integer values are what the network takes; UINT8 values are pixels, which are normalised as
 * in training.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/image.h"
#include "serve/answer.h"
#include "serve/serve_private.h"
#include "serve/values.h"

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

/* [n, C, H, W] or [n, C*H*W]; `values` are n samples' */
static base_status check_shape(const json_t *shape, struct nn_shape in, size_t values)
{
    const long long wants[] = {in.c, in.h, in.w};
    size_t rank = json_array_size(shape), each = nn_shape_values(in);
    bool fits = rank == 2 || rank == 4;

    for (size_t i = 1; i < rank; i++)
        fits &= json_integer_value(json_array_get(shape, i)) ==
                (rank == 2 ? (long long)each : wants[i - 1]);
    fits = fits && json_integer_value(json_array_get(shape, 0)) == (long long)(values / each) &&
           values % each == 0;
    if (fits)
        return BASE_OK;
    return base_fail(BASE_ERR_DATA,
                     "the input's shape and data do not fit: [n, %d, %d, %d] or [n, %zu] and as "
                     "many values expected",
                     in.c, in.h, in.w, each);
}

static base_status normalise_pixels(const struct model_about *about, struct serve_samples *samples)
{
    struct nn_shape in = about->input;
    size_t plane = (size_t)in.h * (size_t)in.w, total = (size_t)samples->n * nn_shape_values(in);
    float tables[DATA_MAX_CHANNELS][256];

    for (int c = 0; c < in.c; c++)
        data_level_table(about->mean[c], about->deviation[c], tables[c]);
    for (size_t i = 0; i < total; i++) {
        float value = samples->x[i];

        if (!(value >= 0 && value <= 255) || value != floorf(value))
            return base_fail(BASE_ERR_DATA, "value %zu of an input of type UINT8 is none", i);
        samples->x[i] = tables[i / plane % (size_t)in.c][(int)value];
    }
    return BASE_OK;
}

static base_status check_type(const char *type)
{
    static const char *const types[] = {"FP32",  "FP64",  "UINT8",  "INT8",  "INT16",
                                        "INT32", "INT64", "UINT16", "UINT32"};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0)
            return BASE_OK;
    return base_fail(BASE_ERR_DATA, "inputs of type %s are not taken; FP32 and UINT8 (pixels) are",
                     type);
}

static base_status v2_read(const struct serve_loaded *loaded, struct serve_job *job)
{
    base_status st = BASE_OK;
    const struct model_about *about = &loaded->model.about;
    json_t *inputs, *input, *shape, *data;
    const char *type, *body;
    size_t count;

    body = http_body(job->request, &count);
    TRY(base_prefix(base_json_parse(body, count, &job->document), "the body"));
    TRY(base_json_array(job->document, "inputs", &inputs));
    if (json_array_size(inputs) != 1)
        TRY(base_fail(BASE_ERR_DATA, "the model has one input, the request has %zu",
                      json_array_size(inputs)));
    input = json_array_get(inputs, 0);
    TRY(base_json_string(input, "datatype", &type));
    TRY(base_json_array(input, "shape", &shape));
    TRY(base_json_array(input, "data", &data));
    TRY(check_type(type));
    TRY(serve_values_count(data, &count));
    TRY(check_shape(shape, about->input, count));
    TRY(serve_samples_new(about, count, &job->samples));
    TRY(serve_values_take(data, job->samples.x));
    if (strcmp(type, "UINT8") == 0)
        TRY(normalise_pixels(about, &job->samples));
out:
    return st;
}

static json_t *v2_write(const struct serve_loaded *loaded, const struct serve_job *job,
                        const float *y)
{
    json_t *data = json_array(), *answer;
    const json_t *id = json_object_get(job->document, "id");
    size_t total = (size_t)job->samples.n * (size_t)loaded->outputs;

    for (size_t i = 0; i < total; i++)
        json_array_append_new(data, base_json_number((double)y[i]));
    answer = json_pack("{s:s, s:s, s:[{s:s, s:s, s:[i,i], s:o}]}", "model_name", job->name,
                       "model_version", job->version, "outputs", "name", output_name, "datatype",
                       "FP32", "shape", job->samples.n, loaded->outputs, "data", data);
    if (json_is_string(id))
        json_object_set_new(answer, "id", json_string(json_string_value(id)));
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
