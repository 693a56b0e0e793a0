/* SPDX-License-Identifier: MIT
 *
 * An answer that goes on: server-sent events, for pages that show what is happening. The
 * connection sleeps between two sends. Any one thread at a time may use a stream.
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include "http/server.h"

struct http_stream;

/* Answers the request with status 200 and a body that is still to come. End it with
 * http_stream_end. */
struct http_stream *http_stream_begin(struct http_request *request, const char *type);

/* False: the client is gone, reads too slowly, or the server is ending. The bytes are copied. */
bool http_stream_send(struct http_stream *stream, const char *bytes, size_t count);
void http_stream_end(struct http_stream *stream); /* the client sees the end of the body */

#endif
