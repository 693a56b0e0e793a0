/* SPDX-License-Identifier: MIT */
#include "support/server.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

static char *error_body(void *context, const struct http_request *request, int *status,
                        const char *message)
{
    (void)context;
    (void)request;
    return base_format("{%d %s}", *status, message != NULL ? message : "-");
}

struct http_server *support_serve(struct http_setup setup, const struct http_route *routes)
{
    struct http_server *server;

    setup.port = 0;
    setup.routes = routes;
    if (setup.error_body == NULL)
        setup.error_body = error_body;
    if (http_server_open(&setup, &server) != BASE_OK) {
        fprintf(stderr, "support_serve: %s\n", base_message());
        abort();
    }
    return server;
}
