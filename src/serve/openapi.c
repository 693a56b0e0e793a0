/* SPDX-License-Identifier: MIT
 *
 * A port's routes as an OpenAPI description: made of the table that requests are matched with, so
 * that it tells what is.
 */
#include <string.h>

#include "base/mem.h"
#include "serve/serve_private.h"

static json_t *parameter(const char *name, size_t length, const char *in)
{
    return json_pack("{s:s%, s:s, s:b, s:{s:s}}", "name", name, length, "in", in, "required",
                     strcmp(in, "path") == 0, "schema", "type", "string");
}

static json_t *parameters_of(const struct http_route *route)
{
    json_t *parameters = json_array();

    for (const char *at = route->pattern; (at = strchr(at, '{')) != NULL; at++)
        json_array_append_new(parameters, parameter(at + 1, strcspn(at + 1, "}"), "path"));
    for (const char *at = route->query; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, " ");

        json_array_append_new(parameters, parameter(at, length, "query"));
        at += length + strspn(at + length, " ");
    }
    return parameters;
}

static void describe_route(json_t *paths, const struct http_route *route)
{
    json_t *path = json_object_get(paths, route->pattern);
    char *methods = base_strdup(route->methods), *rest = methods;

    if (path == NULL)
        json_object_set_new(paths, route->pattern, path = json_object());
    for (char *method; (method = strsep(&rest, "|")) != NULL;) {
        for (char *at = method; *at != '\0'; at++)
            *at |= 0x20; /* methods are capital letters; this makes them small */
        json_object_set_new(path, method,
                            json_pack("{s:s, s:o, s:{s:{s:s}}}", "summary", route->help,
                                      "parameters", parameters_of(route), "responses", "200",
                                      "description", "OK"));
    }
    base_free(methods);
}

json_t *serve_openapi(const char *title, const struct http_route *routes)
{
    json_t *paths = json_object();

    for (const struct http_route *route = routes; route->pattern != NULL; route++)
        if (route->help != NULL)
            describe_route(paths, route);
    return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o}", "openapi", "3.0.1", "info", "title", title,
                     "description", "paceline serve, in the manner of TorchServe", "version",
                     PACELINE_VERSION, "paths", paths);
}
