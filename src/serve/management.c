/* SPDX-License-Identifier: MIT
 *
 * The management port: what is served, and changing that.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "serve/answer.h"
#include "serve/serve_private.h"

/* ---- list and describe ---- */

static void list(void *context, struct http_request *request)
{
    struct serve *serve = context;
    const char *limit_text = http_parameter(request, "limit");
    const char *token_text = http_parameter(request, "next_page_token");
    long limit = limit_text != NULL ? strtol(limit_text, NULL, 10) : 100;
    long from = token_text != NULL ? strtol(token_text, NULL, 10) : 0;
    json_t *models = json_array(), *answer = json_object();
    size_t count, last;
    struct serve_version **all = serve_models_list(serve->models, true, &count);

    limit = limit < 0 || limit > 100 ? 100 : limit;
    from = from < 0 ? 0 : from;
    last = (size_t)from > count ? count : (size_t)from + (size_t)limit;
    if (last < count)
        json_object_set_new(answer, "nextPageToken", json_sprintf("%zu", last));
    for (size_t i = 0; i < count; i++) {
        if (i >= (size_t)from && i < last)
            json_array_append_new(models, json_pack("{s:s, s:o}", "modelName", all[i]->name,
                                                    "modelUrl", base_json_text(all[i]->url)));
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
    json_object_set_new(answer, "models", models);
    serve_answer(request, 200, answer);
}

const struct http_route serve_management_routes[] = {
    {"GET", "/models", list},
    {0},
};
