/* SPDX-License-Identifier: MIT
 *
 * A body of multipart/form-data (RFC 7578), as `curl -F data=@image.png` sends it: the parts are
 * found in place, nothing is copied.
 */
#ifndef HTTP_MULTIPART_H
#define HTTP_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum { HTTP_PART_TEXT = 128 };

struct http_part {
    char name[HTTP_PART_TEXT]; /* name of the form's field; "" if there is none */
    char type[HTTP_PART_TEXT]; /* its Content-Type; "" where there is none */
    const char *bytes;
    size_t count;
};

/* True if this Content-Type (or NULL) is that of a form in parts. */
bool http_is_multipart(const char *type);

/* Finds the part called `name` or, if there is none, the first part. */
base_status http_multipart_find(const char *type, const char *bytes, size_t count, const char *name,
                                struct http_part *part_p);

#endif
