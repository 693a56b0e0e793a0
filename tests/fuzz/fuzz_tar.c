/* covers: src/data/tar.c */
/* SPDX-License-Identifier: MIT
 *
 * A tar archive as it comes out of gzip; every entry is wanted.
 */
#include <string.h>

#include "data/data_get_private.h"

static base_status read_memory(void *state, uint8_t *bytes, size_t want, size_t *got_p)
{
    struct base_cursor *c = state;
    const uint8_t *from = NULL;
    base_status st;

    *got_p = want < base_cursor_left(c) ? want : base_cursor_left(c);
    st = base_cursor_skip(c, *got_p, &from);
    if (*got_p > 0)
        memcpy(bytes, from, *got_p);
    return st;
}

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
    struct base_cursor c;

    if (count == 0)
        return 0;
    c = base_cursor_of(bytes, count);
    base_ignore(data_tar_read((struct data_input){&c, read_memory}, &sink));
    return 0;
}
