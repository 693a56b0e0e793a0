/* SPDX-License-Identifier: MIT
 *
 * What handlers see of a request, and its answer.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/http_private.h"

/* The id has a UUID's form: random bits that the server drew at its start, and the request's
 * number. */
static void make_id(struct http_server *server, char id[HTTP_ID])
{
    unsigned long long high = server->id_high, low = server->id_low++;

    snprintf(id, HTTP_ID, "%08llx-%04llx-4%03llx-8%03llx-%012llx", high >> 32, high >> 16 & 0xffff,
             high & 0xfff, low >> 48 & 0xfff, low & 0xffffffffffff);
}

struct http_request *http_request_new(struct http_server *server, struct MHD_Connection *connection,
                                      struct http_link *link, const char *target)
{
    struct http_request *request = base_calloc(1, sizeof *request);

    request->server = server;
    request->connection = connection;
    request->link = link;
    request->refs = 1;
    request->started = base_now();
    make_id(server, request->id);
    if (http_uri_parse(target, &request->uri) != BASE_OK)
        request->fault = base_strdup(base_message());
    return request;
}

void http_request_unref(struct http_request *request)
{
    struct http_server *server = request->server;
    bool last;

    pthread_mutex_lock(&server->lock);
    last = --request->refs == 0;
    if (last)
        server->bodies -= request->capacity;
    pthread_mutex_unlock(&server->lock);
    if (!last)
        return;
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    for (int i = 0; i < request->headers; i++)
        base_free(request->header_values[i]);
    http_uri_fini(&request->uri);
    base_free(request->fault);
    base_free(request->last_wildcard);
    base_free(request->late_message);
    base_free(request->body);
    base_free(request);
}

const char *http_method(const struct http_request *request)
{
    return request->method;
}

const char *http_segment(const struct http_request *request, int index)
{
    return index < request->uri.segment_count ? request->uri.segments[index] : NULL;
}

const char *http_wildcard(const struct http_request *request, int index)
{
    return index < HTTP_MAX_WILDCARDS ? request->wildcards[index] : NULL;
}

const char *http_parameter(const struct http_request *request, const char *name)
{
    return http_uri_parameter(&request->uri, name, 0);
}

const char *http_parameter_at(const struct http_request *request, const char *name, int index)
{
    return http_uri_parameter(&request->uri, name, index);
}

const char *http_header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *http_body(const struct http_request *request, size_t *count_p)
{
    *count_p = request->count;
    return request->body;
}

bool http_is_over(const struct http_request *request)
{
    bool over;

    pthread_mutex_lock(&request->server->lock);
    over = request->answered;
    pthread_mutex_unlock(&request->server->lock);
    return over;
}

void http_expire(struct http_request *request, double seconds, const char *message)
{
    pthread_mutex_lock(&request->server->lock);
    request->late_message = base_strdup(message);
    http_watch_set(request->server, request->link, base_now() + seconds);
    pthread_mutex_unlock(&request->server->lock);
}

void http_add_header(struct http_request *request, const char *name, const char *value)
{
    if (request->headers == HTTP_MAX_HEADERS)
        return;
    request->header_names[request->headers] = name;
    request->header_values[request->headers++] = base_strdup(value);
}

void http_response_headers(struct http_request *request, struct MHD_Response *response, int status,
                           const char *type)
{
    if (type != NULL)
        MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "x-request-id", request->id);
    MHD_add_response_header(response, "Pragma", "no-cache");
    MHD_add_response_header(response, "Cache-Control",
                            "no-cache; no-store, must-revalidate, private");
    MHD_add_response_header(response, "Expires", "Thu, 01 Jan 1970 00:00:00 UTC");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    for (int i = 0; i < request->headers; i++)
        MHD_add_response_header(response, request->header_names[i], request->header_values[i]);
    if (status >= 400 || request->server->draining)
        MHD_add_response_header(response, "Connection", "close");
}

struct MHD_Response *http_response(struct http_request *request, int status, const char *type,
                                   char *body, size_t count)
{
    struct MHD_Response *response =
        body != NULL ? MHD_create_response_from_buffer_with_free_callback(count, body, base_free)
                     : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

    if (response == NULL) { /* no memory: the connection ends without an answer */
        base_free(body);
        return NULL;
    }
    request->response_count = count;
    http_response_headers(request, response, status, type);
    return response;
}

struct MHD_Response *http_refusal(struct http_request *request, int *status, const char *message)
{
    const struct http_setup *setup = &request->server->setup;
    char *body = setup->error_body(setup->context, request, status, message);

    return http_response(request, *status, "application/json", body, strlen(body));
}

bool http_request_settle(struct http_request *request, int status, struct MHD_Response *response)
{
    bool resume = request->suspended;

    if (request->answered) {
        if (response != NULL)
            MHD_destroy_response(response);
        return false;
    }
    request->answered = true;
    request->link->deadline = INFINITY; /* sending the answer sets the next deadline */
    request->status = status;
    request->response = response;
    request->suspended = false;
    return resume;
}

void http_request_answer(struct http_request *request, int status, struct MHD_Response *response)
{
    struct http_server *server = request->server;
    struct MHD_Connection *connection = request->connection;
    bool resume;

    pthread_mutex_lock(&server->lock);
    resume = http_request_settle(request, status, response);
    pthread_mutex_unlock(&server->lock);
    http_request_unref(request);
    if (resume) /* a suspended connection cannot have ended, nor the server have closed */
        MHD_resume_connection(connection);
}

void http_answer(struct http_request *request, int status, const char *type, char *body,
                 size_t count)
{
    http_request_answer(request, status, http_response(request, status, type, body, count));
}

void http_refuse(struct http_request *request, int status, const char *message)
{
    struct MHD_Response *response = http_refusal(request, &status, message);

    http_request_answer(request, status, response);
}
