/* SPDX-License-Identifier: MIT
 *
 * A bounded stream over zlib's inflate: compressed bytes in memory, plain bytes on demand. It is
 * no reader of multi-member gzip: no known set has one, and what follows the first member is not
 * looked at. Owns zlib's state. One thread.
 */
#include "data/data_get_private.h"

enum { FEED = 1 << 20 }; /* zlib counts its input in 32 bits */

base_status data_inflate_init(struct data_inflate *inflate, enum data_inflate_kind kind,
                              struct base_cursor in, uint64_t limit)
{
    *inflate = (struct data_inflate){.in = in, .left = limit, .limit = limit};
    if (inflateInit2(&inflate->z, (int)kind) != Z_OK)
        return base_fail(BASE_ERR_MEMORY, "there is no memory to unpack it");
    return BASE_OK;
}

void data_inflate_fini(struct data_inflate *inflate)
{
    inflateEnd(&inflate->z);
}

static base_status feed(struct data_inflate *inflate)
{
    size_t count = base_cursor_left(&inflate->in);
    const uint8_t *bytes = NULL;
    base_status st;

    if (count == 0)
        return base_fail(BASE_ERR_DATA, "its compressed bytes end too early");
    if (count > FEED)
        count = FEED;
    st = base_cursor_skip(&inflate->in, count, &bytes);
    inflate->z.next_in = (Bytef *)(uintptr_t)bytes; /* zlib's type lacks the const it keeps */
    inflate->z.avail_in = (uInt)count;
    return st;
}

base_status data_inflate_read(void *state, uint8_t *bytes, size_t want, size_t *got_p)
{
    struct data_inflate *stream = state;
    z_stream *z = &stream->z;
    base_status st = BASE_OK;

    *got_p = 0;
    if (want > FEED)
        want = FEED;
    z->next_out = bytes;
    z->avail_out = (uInt)want;
    while (z->avail_out > 0 && !stream->ended) {
        int code;

        if (z->avail_in == 0)
            TRY(feed(stream));
        code = inflate(z, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            stream->ended = true;
        else if (code != Z_OK)
            TRY(base_fail(BASE_ERR_DATA, "its compressed bytes are damaged (%s)",
                          z->msg != NULL ? z->msg : "no reason given"));
    }
    *got_p = want - z->avail_out;
    if (*got_p > stream->left)
        TRY(base_fail(BASE_ERR_DATA, "it unpacks to more than the %llu bytes allowed",
                      (unsigned long long)stream->limit));
    stream->left -= *got_p;
out:
    return st;
}
