/* SPDX-License-Identifier: MIT
 *
 * The page is one file without anything from elsewhere. Its Content-Security-Policy names the
 * digests of its one style and its one script, so that a browser runs nothing else in it, whatever
 * a label or a message may contain.
 */
#include "serve/page.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/answer.h"
#include "serve/serve_private.h"

enum { DIGEST_TEXT = 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1 };
static const double WINDOW = 5; /* seconds that the pace is of */

/* In base64, of what stands between the page's <tag> and </tag>. */
static void digest_of(const char *tag, char text[DIGEST_TEXT])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char *open = base_format("<%s>", tag), *close = base_format("</%s>", tag);
    const char *begin = strstr(serve_page, open) + strlen(open);

    SHA256((const unsigned char *)begin, (size_t)(strstr(begin, close) - begin), digest);
    EVP_EncodeBlock((unsigned char *)text, digest, sizeof digest);
    base_free(open);
    base_free(close);
}

void serve_page_show(void *context, struct http_request *request)
{
    char style[DIGEST_TEXT], script[DIGEST_TEXT], *policy;

    (void)context;
    digest_of("style", style);
    digest_of("script", script);
    policy = base_format("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; "
                         "img-src data: blob:; connect-src 'self'; base-uri 'none'; "
                         "form-action 'none'; frame-ancestors 'none'",
                         style, script);
    http_add_header(request, "Content-Security-Policy", policy);
    http_add_header(request, "Referrer-Policy", "no-referrer");
    base_free(policy);
    http_answer(request, 200, "text/html; charset=utf-8", base_strdup(serve_page),
                strlen(serve_page));
}

/* ---- what changes ---- */

static json_t *describe(struct serve_version *version, double now)
{
    struct serve_pace pace = serve_recent_pace(&version->recent, now, WINDOW);
    struct serve_loaded *loaded = serve_version_loaded(version);
    json_t *model = json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f}", "name", version->name,
                              "version", version->version, "requests",
                              (json_int_t)atomic_load(&version->counters.requests), "refused",
                              (json_int_t)atomic_load(&version->counters.refused), "per_second",
                              pace.per_second, "p50_ms", pace.p50 * 1e3, "p90_ms", pace.p90 * 1e3,
                              "p99_ms", pace.p99 * 1e3);

    if (loaded != NULL) {
        const struct model_about *about = &loaded->model.about;

        json_object_set_new(model, "input",
                            json_pack("[i, i, i]", about->input.c, about->input.h, about->input.w));
        json_object_set_new(model, "outputs", json_integer(loaded->outputs));
        json_object_set_new(model, "step", json_integer((json_int_t)loaded->model.checkpoint.step));
        serve_loaded_unref(loaded);
    }
    return model;
}

void serve_page_live(void *context, struct http_request *request)
{
    struct serve *serve = context;
    double now = base_now();
    size_t count;
    struct serve_version **all = serve_models_list(serve->models, true, &count);
    json_t *models = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(models, describe(all[i], now));
        serve_models_release(serve->models, all[i]);
    }
    base_free(all);
    serve_answer(request, 200,
                 json_pack("{s:f, s:f, s:o}", "up_seconds", now - serve->started, "window_seconds",
                           WINDOW, "models", models));
}
