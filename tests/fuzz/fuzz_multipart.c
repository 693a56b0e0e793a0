/* covers: src/http/multipart.c */
/* SPDX-License-Identifier: MIT
 *
 * A form: the first line is its Content-Type, the rest its body. A part that is found lies within
 * the body.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const uint8_t *line = memchr(bytes, '\n', count);
    size_t head = line != NULL ? (size_t)(line - bytes) : count;
    char *type = base_strndup((const char *)bytes, head);
    size_t rest = line != NULL ? count - head - 1 : 0;
    char *body = base_calloc(rest + 1, 1); /* so that a read past its end is seen */
    struct http_part part;

    memcpy(body, bytes + count - rest, rest);
    body = base_realloc(body, rest > 0 ? rest : 1, 1);
    if (http_is_multipart(type) &&
        http_multipart_find(type, body, rest, "data", &part) == BASE_OK &&
        (part.bytes < body || part.bytes + part.count > body + rest ||
         strlen(part.name) >= sizeof part.name || strlen(part.type) >= sizeof part.type))
        abort();
    base_free(body);
    base_free(type);
    return 0;
}
