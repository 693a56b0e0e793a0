/* covers: src/http/uri.c */
/* SPDX-License-Identifier: MIT
 *
 * The target of a request. What is accepted has no segment that leads elsewhere and no control
 * character, and finds its own parameters.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "http/uri.h"

static void check_text(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *target = base_strndup((const char *)bytes, count);
    struct http_uri uri;

    if (http_uri_parse(target, &uri) == BASE_OK) {
        for (int i = 0; i < uri.segment_count; i++) {
            check_text(uri.segments[i]);
            if (strcmp(uri.segments[i], "..") == 0 || strcmp(uri.segments[i], ".") == 0)
                abort();
        }
        for (int i = 0; i < uri.parameter_count; i++) {
            check_text(uri.parameters[i].value);
            if (http_uri_parameter(&uri, uri.parameters[i].name, 0) == NULL)
                abort();
        }
        if (http_uri_parameter(&uri, "\n", 0) != NULL)
            abort();
    }
    http_uri_fini(&uri);
    base_free(target);
    return 0;
}
