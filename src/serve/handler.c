/* SPDX-License-Identifier: MIT */
#include "serve/handler.h"

#include <string.h>

#include "base/mem.h"
#include "base/registry.h"
#include "base/str.h"

base_status serve_handler_find(const char *name, const struct serve_handler **handler_p)
{
    *handler_p = NULL;
    for (size_t i = 0; i < serve_handler_count; i++) {
        const char *alias = serve_handler_registry[i]->alias;

        if (alias != NULL && strcmp(alias, name) == 0)
            *handler_p = serve_handler_registry[i];
    }
    if (*handler_p != NULL)
        return BASE_OK;
    return base_registry_find("handler", name, serve_handler_registry, serve_handler_count,
                              handler_p);
}

static base_status no_handler(const struct serve_body *body)
{
    struct base_str kinds = {0};
    base_status st;

    for (size_t i = 0; i < serve_handler_count; i++)
        if (serve_handler_registry[i]->takes != NULL)
            base_str_add(&kinds, "%s%s",
                         kinds.length == 0              ? ""
                         : i + 1 == serve_handler_count ? ", or "
                                                        : ", ",
                         serve_handler_registry[i]->help);
    st = base_fail(BASE_ERR_DATA, "the body (%zu bytes) is no input; it would be %s", body->count,
                   kinds.text);
    base_str_fini(&kinds);
    return st;
}

bool serve_is_octets(const struct serve_body *body)
{
    return strncasecmp(body->type, "application/octet-stream", 24) == 0;
}

bool serve_is_json(const struct serve_body *body)
{
    const char *bytes = body->bytes;
    size_t at = 0;

    if (strncasecmp(body->type, "application/json", 16) == 0)
        return true;
    if (serve_is_octets(body) && !body->in_form)
        return false;
    while (at < body->count && strchr(" \t\r\n", bytes[at]) != NULL && bytes[at] != '\0')
        at++;
    return at < body->count && (bytes[at] == '[' || bytes[at] == '{');
}

static base_status choose(const char *name, const struct model_about *about,
                          const struct serve_body *body, const struct serve_handler **handler_p)
{
    size_t i = 0;

    base_status st = BASE_OK;

    if (name != NULL) {
        TRY(serve_handler_find(name, handler_p));
        if ((*handler_p)->read == NULL)
            TRY(base_fail(BASE_ERR_DATA, "the handler '%s' is not for networks", name));
        goto out;
    }
    while (i < serve_handler_count && (serve_handler_registry[i]->takes == NULL ||
                                       !serve_handler_registry[i]->takes(about, body)))
        i++;
    if (i == serve_handler_count)
        TRY(no_handler(body));
    *handler_p = serve_handler_registry[i];
out:
    return st;
}

base_status serve_read(const char *handler, const struct model_about *about,
                       const struct serve_body *body, struct serve_samples *samples_p)
{
    base_status st = BASE_OK;
    const struct serve_handler *found;

    *samples_p = (struct serve_samples){0};
    TRY(choose(handler, about, body, &found));
    TRY(found->read(about, body, samples_p));
out:
    if (st != BASE_OK) {
        base_free(samples_p->x);
        *samples_p = (struct serve_samples){0};
    }
    return st;
}

base_status serve_ask(const char *handler, const struct recsys_saved *saved,
                      const struct serve_body *body, json_t **answer_p)
{
    base_status st = BASE_OK;
    const struct serve_handler *found = NULL;

    *answer_p = NULL;
    if (handler != NULL)
        TRY(serve_handler_find(handler, &found));
    for (size_t i = 0; found == NULL && i < serve_handler_count; i++)
        if (serve_handler_registry[i]->answer != NULL)
            found = serve_handler_registry[i];
    if (found == NULL || found->answer == NULL)
        TRY(base_fail(BASE_ERR_DATA, "the handler '%s' is not for rating models", handler));
    TRY(found->answer(saved, body, answer_p));
out:
    return st;
}

base_status serve_samples_new(const struct model_about *about, size_t values,
                              struct serve_samples *samples_p)
{
    enum { MOST = 4096 };
    struct nn_shape in = about->input;
    size_t each = nn_shape_values(in);

    if (values == 0 || values % each != 0 || values / each > MOST)
        return base_fail(BASE_ERR_DATA,
                         "%zu values; a sample of this model has %dx%dx%d = %zu, and up to %d "
                         "samples may come at once",
                         values, in.c, in.h, in.w, each, MOST);
    *samples_p = (struct serve_samples){.n = (int)(values / each), .list = values > each};
    return base_tensor(values, sizeof *samples_p->x, "samples", &samples_p->x);
}
