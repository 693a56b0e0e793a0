/* SPDX-License-Identifier: MIT
 *
 * Pages that look at something which goes on: streams of server-sent events, up to 16 at a time. A
 * thread tells them what is new at every tick; it sleeps while no page looks.
 */
#ifndef HTTP_LIVE_H
#define HTTP_LIVE_H

#include "http/server.h"

struct http_live;

/* "data: …\n\n" (base_free) for pages that were told everything so far or, with `first`, for a page
 * that was told nothing; NULL: nothing is new. `first` follows a call without it and must be quick.
 * One thread calls it. */
typedef char *http_live_tell(void *context, bool first);

/* `seconds` between two ticks. */
base_status http_live_new(double seconds, http_live_tell *tell, void *context,
                          struct http_live **live_p);
/* Answers the request with the events from now on, or refuses it where 16 pages look already. */
void http_live_open(struct http_live *live, struct http_request *request);
/* Tells what is new once more and ends the streams; later requests are refused. */
void http_live_stop(struct http_live *live);
/* When no handler can call http_live_open any more. Stops it; accepts NULL. */
void http_live_free(struct http_live *live);

#endif
