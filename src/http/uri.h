/* SPDX-License-Identifier: MIT
 *
 * The target of a request, "/models/my%20model/1.0?min_worker=2", taken apart: split at '/', '?',
 * '&' and '=' first, percent-decoded afterwards, so that an encoded separator never splits and
 * routes are matched against what the client means. Malformed targets are refused whole.
 */
#ifndef HTTP_URI_H
#define HTTP_URI_H

#include "base/status.h"

enum { HTTP_MAX_SEGMENTS = 16, HTTP_MAX_PARAMETERS = 32 };

struct http_parameter {
    const char *name, *value; /* "" where there is no '=' */
};

struct http_uri {
    char *text; /* the pointers below point into it */
    int segment_count, parameter_count;
    const char *segments[HTTP_MAX_SEGMENTS]; /* none is ".", ".." or holds a control character */
    struct http_parameter parameters[HTTP_MAX_PARAMETERS];
};

/* `target` begins with '/'. Empty segments at its end do not count. */
base_status http_uri_parse(const char *target, struct http_uri *uri_p);
void http_uri_fini(struct http_uri *uri); /* accepts zeros */

/* Number `index` of the parameters of that name, NULL after the last. */
const char *http_uri_parameter(const struct http_uri *uri, const char *name, int index);

#endif
