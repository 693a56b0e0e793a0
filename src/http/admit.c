/* SPDX-License-Identifier: MIT
 *
 * What the head of a request must be like: one length, a Host that is this server where browsers
 * could be sent here by others, a known path and method, the right token, a body that fits. In
 * this order, so that a refusal tells no more than its sender may know.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>

#include "base/file.h"
#include "base/mem.h"
#include "http/http_private.h"

/* ---- framing ---- */

struct framing {
    int lengths, encodings;
    bool chunked; /* Transfer-Encoding is chunked */
};

static enum MHD_Result count_framing(void *context, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct framing *framing = context;

    (void)kind;
    if (strcasecmp(name, "Content-Length") == 0)
        framing->lengths++;
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        framing->encodings++;
        framing->chunked = value != NULL && strcasecmp(value, "chunked") == 0;
    }
    return MHD_YES;
}

/* A proxy and this server must see the same end of a request: otherwise an attacker can make them
 * see different requests. */
static const char *framing_fault(const struct http_request *request)
{
    struct framing framing = {0};

    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_framing, &framing);
    if (framing.lengths + framing.encodings > 1)
        return "the request tells the length of its body twice";
    if (framing.encodings == 1 && !framing.chunked)
        return "of transfer encodings only 'chunked' is known";
    return NULL;
}

/* ---- requests that another site's page makes a browser send ---- */

/* "127.0.0.1:8080", "[::1]:8080", "localhost" */
static bool is_here(const char *host)
{
    static const char *const names[] = {"localhost", "[::1]"};
    static const char port[] = ":0123456789";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);

        if (strncasecmp(host, names[i], length) == 0 &&
            (host[length] == '\0' || host[length] == ':') &&
            host[length + strspn(host + length, port)] == '\0')
            return true;
    }
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.:") == strlen(host);
}

static bool is_foreign(const struct http_request *request)
{
    const char *host = http_header(request, "Host"), *origin = http_header(request, "Origin");
    const char *scheme_end = origin != NULL ? strstr(origin, "://") : NULL;

    if (host != NULL && !is_here(host))
        return true;
    return origin != NULL &&
           (scheme_end == NULL || host == NULL || strcasecmp(scheme_end + 3, host) != 0);
}

/* ---- routes ---- */

static bool takes_method(const char *methods, const char *method)
{
    size_t length = strlen(method);

    if (strcmp(method, "HEAD") == 0)
        return takes_method(methods, "GET");
    for (const char *at = methods; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, method, length) == 0 && (at[length] == '\0' || at[length] == '|'))
            return true;
    }
    return false;
}

/* True if the segment fits the pattern's segment of `length` bytes; stores a wildcard's text. */
static bool takes_segment(struct http_request *request, const char *pattern, size_t length,
                          const char *segment, int *wildcards)
{
    size_t count = strlen(segment), ending;
    const char *brace = memchr(pattern, '}', length);

    if (pattern[0] != '{' || brace == NULL)
        return count == length && memcmp(pattern, segment, length) == 0;
    ending = (size_t)(pattern + length - brace) - 1;
    if (count <= ending || memcmp(segment + count - ending, brace + 1, ending) != 0)
        return false;
    if (ending > 0) {
        base_free(request->last_wildcard);
        segment = request->last_wildcard = base_strndup(segment, count - ending);
    }
    request->wildcards[(*wildcards)++] = segment;
    return true;
}

static bool takes_path(struct http_request *request, const char *pattern)
{
    int at = 0, wildcards = 0;

    memset(request->wildcards, 0, sizeof request->wildcards);
    for (pattern++; *pattern != '\0'; at++) {
        size_t length = strcspn(pattern, "/");

        if (at == request->uri.segment_count ||
            !takes_segment(request, pattern, length, request->uri.segments[at], &wildcards))
            return false;
        pattern += length + (pattern[length] == '/');
    }
    return at == request->uri.segment_count;
}

/* The first route that fits the request's path and takes `method`; NULL: none does. */
static const struct http_route *find_route(struct http_request *request, const char *method)
{
    for (const struct http_route *r = request->server->setup.routes; r->pattern != NULL; r++)
        if ((!r->local || request->server->loopback) && takes_method(r->methods, method) &&
            takes_path(request, r->pattern))
            return r;
    return NULL;
}

/* Returns 0, 404, or 405 with the header that it must have, which lists the path's methods. */
static int take_route(struct http_request *request)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"};
    struct base_str allowed = {0};
    int status = MHD_HTTP_NOT_FOUND;

    if ((request->route = find_route(request, request->method)) != NULL)
        return 0;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (find_route(request, methods[i]) != NULL)
            base_str_add(&allowed, "%s%s", allowed.length > 0 ? ", " : "", methods[i]);
    if (allowed.length > 0) {
        http_add_header(request, "Allow", allowed.text);
        status = MHD_HTTP_METHOD_NOT_ALLOWED;
    }
    base_str_fini(&allowed);
    return status;
}

/* ---- the token ---- */

/* Compares digests, so that neither the time nor the length tells an attacker how much of a token
 * is right. */
static bool has_token(const struct http_request *request)
{
    static const char scheme[] = "Bearer ";
    const char *header = http_header(request, "Authorization");
    char digest[BASE_SHA256_HEX];

    if (header == NULL || strncasecmp(header, scheme, sizeof scheme - 1) != 0)
        return false;
    header += sizeof scheme - 1;
    base_sha256(header, strlen(header), digest);
    return CRYPTO_memcmp(digest, request->server->token, sizeof digest) == 0;
}

/* ---- the body ---- */

/* A client that is refused while it sends may lose the answer, because the connection closes with
 * bytes under way. So a body that is a little too long is read and thrown away, unless the client
 * waits for "100 Continue". */
static bool is_much_too_long(const struct http_request *request)
{
    enum { READ_ANYWAY = 8 << 20 };
    const char *length = http_header(request, "Content-Length");
    unsigned long long count = length != NULL ? strtoull(length, NULL, 10) : 0;
    size_t limit = request->server->setup.body_limit;

    if (count <= limit)
        return false;
    return http_header(request, "Expect") != NULL || count > limit + READ_ANYWAY;
}

int http_admit(struct http_request *request, const char **why_p)
{
    const struct http_server *server = request->server;
    int status;

    if ((*why_p = framing_fault(request)) != NULL || (*why_p = request->fault) != NULL)
        return MHD_HTTP_BAD_REQUEST;
    *why_p = NULL;
    if (server->loopback && server->setup.token == NULL && is_foreign(request)) {
        *why_p = "a page of another host may not use this server: without a token it answers "
                 "requests for localhost and 127.0.0.1 alone";
        return MHD_HTTP_FORBIDDEN;
    }
    status = take_route(request);
    if (status != 0)
        return status;
    if (server->setup.token != NULL && !request->route->open && !has_token(request)) {
        *why_p = "Token Authorization failed. Token either incorrect, expired, or not provided "
                 "correctly";
        return MHD_HTTP_UNAUTHORIZED;
    }
    return is_much_too_long(request) ? MHD_HTTP_CONTENT_TOO_LARGE : 0;
}
