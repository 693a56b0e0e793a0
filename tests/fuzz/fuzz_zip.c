/* covers: src/data/zip.c src/data/inflate.c */
/* SPDX-License-Identifier: MIT
 *
 * A zip archive; every entry is wanted, so stored and deflated bodies are read too.
 */
#include <string.h>

#include "data/data_get_private.h"

enum { LIMIT = 1 << 20 };

static base_status begin(void *state, const char *entry, bool *wanted_p)
{
    *(size_t *)state += strlen(entry);
    *wanted_p = true;
    return BASE_OK;
}

static base_status sum(void *state, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *(size_t *)state += bytes[i];
    return BASE_OK;
}

static base_status end(void *state)
{
    (void)state;
    return BASE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    size_t seen = 0;
    struct data_sink sink = {&seen, begin, sum, end};

    if (count > 0)
        base_ignore(data_zip_read(bytes, count, LIMIT, &sink));
    return 0;
}
