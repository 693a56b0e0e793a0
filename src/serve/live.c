/* SPDX-License-Identifier: MIT
 *
 * An event's data is one line of JSON: {"models":[{"name","version","default","requests","refused",
 * "queued","rate","p50_ms","p99_ms","step","input","outputs"}]}. Rate and latencies are those of
 * the last five seconds, 0 where they had no request; the last three are missing while there is no
 * checkpoint.
 */
#include "serve/live.h"

#include "base/clock.h"
#include "base/mem.h"
#include "serve/answer.h"

static const double WINDOW = 5; /* seconds */

static json_t *describe(struct serve_version *v, bool is_default, double now)
{
    struct serve_pace pace = serve_recent_pace(&v->recent, now, WINDOW);
    struct serve_loaded *loaded = serve_version_loaded(v);
    json_t *model = json_pack("{s:s, s:s, s:b, s:I, s:I, s:i, s:f, s:f, s:f}", "name", v->name,
                              "version", v->version, "default", is_default, "requests",
                              (json_int_t)atomic_load(&v->counters.requests), "refused",
                              (json_int_t)atomic_load(&v->counters.refused), "queued",
                              serve_version_status(v).queued, "rate", pace.per_second, "p50_ms",
                              pace.p50 * 1e3, "p99_ms", pace.p99 * 1e3);

    if (loaded != NULL) {
        struct nn_shape in = loaded->model.about.input;

        json_object_set_new(model, "step", json_integer((json_int_t)loaded->model.checkpoint.step));
        json_object_set_new(model, "input", json_pack("[i, i, i]", in.c, in.h, in.w));
        json_object_set_new(model, "outputs", json_integer(loaded->outputs));
        serve_loaded_unref(loaded);
    }
    return model;
}

char *serve_live_tell(void *context, bool first)
{
    struct serve *serve = context;
    struct serve_models *models = serve->models;
    double now = base_now();
    json_t *list = json_array(), *document = json_pack("{s:o}", "models", list);
    size_t count;
    struct serve_version **all = serve_models_list(models, false, &count);
    char *text, *event;

    (void)first; /* every event tells everything */
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, describe(all[i], serve_models_is_default(models, all[i]), now));
        serve_models_release(models, all[i]);
    }
    base_free(all);
    text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(6));
    event = base_format("data: %s\n\n", text);
    base_free(text);
    json_decref(document);
    return event;
}

void serve_live_open(void *context, struct http_request *request)
{
    struct serve *serve = context;

    http_live_open(serve->live, request);
}
