/* SPDX-License-Identifier: MIT
 *
 * A reader of tar archives (POSIX ustar and GNU): regular files are handed to a sink, everything
 * else is passed over: folders, links, and the long-name records, since no known set has a name
 * that needs one. It writes no file itself. Every header's checksum is verified. One thread.
 */
#include <string.h>

#include "data/data_get_private.h"

enum { BLOCK = 512, NAME = 100, PREFIX = 155, CHUNK = 64 * 1024, ENTRY = NAME + PREFIX + 2 };

/* The fuzzer's mutations would all end at the checksum. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { CHECKED = 0 };
#else
enum { CHECKED = 1 };
#endif

struct header {
    char entry[ENTRY]; /* prefix/name */
    uint64_t size;
    uint8_t type;
};

/* Reads exactly `want` bytes. */
static base_status read_all(struct data_input in, uint8_t *bytes, size_t want)
{
    size_t got = 0;
    base_status st = in.read(in.state, bytes, want, &got);

    if (st == BASE_OK && got < want)
        st = base_fail(BASE_ERR_DATA, "the tar archive ends too early");
    return st;
}

/* Octal digits between blanks; what GNU writes for numbers beyond them (bit 7) is too large. */
static base_status parse_octal(const uint8_t *text, size_t count, uint64_t *value_p)
{
    uint64_t value = 0;
    size_t i = 0;

    *value_p = 0;
    while (i < count && text[i] == ' ')
        i++;
    for (; i < count && text[i] >= '0' && text[i] <= '7'; i++)
        value = value * 8 + (uint64_t)(text[i] - '0');
    if (i < count && text[i] != ' ' && text[i] != '\0')
        return base_fail(BASE_ERR_DATA, "a tar header has a number that cannot be read");
    *value_p = value;
    return BASE_OK;
}

/* The sum of all bytes, those of the sum itself counted as blanks. */
static uint64_t sum_of(const uint8_t block[BLOCK])
{
    uint64_t sum = 0;

    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : block[i];
    return sum;
}

static base_status parse_header(const uint8_t block[BLOCK], struct header *header_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(block, BLOCK);
    const uint8_t *name, *skipped, *size, *sum, *magic, *prefix;
    uint64_t stored = 0;
    int prefix_length = 0, name_length;

    *header_p = (struct header){0};
    TRY(base_cursor_skip(&c, NAME, &name));
    TRY(base_cursor_skip(&c, 24, &skipped)); /* mode, owner, group */
    TRY(base_cursor_skip(&c, 12, &size));
    TRY(base_cursor_skip(&c, 12, &skipped)); /* time */
    TRY(base_cursor_skip(&c, 8, &sum));
    TRY(base_cursor_u8(&c, &header_p->type));
    TRY(base_cursor_skip(&c, 100, &skipped)); /* link */
    TRY(base_cursor_skip(&c, 8, &magic));
    TRY(base_cursor_skip(&c, 80, &skipped)); /* owner, group, device */
    TRY(base_cursor_skip(&c, PREFIX, &prefix));
    TRY(parse_octal(sum, 8, &stored));
    if (stored != sum_of(block) && CHECKED)
        TRY(base_fail(BASE_ERR_DATA, "a tar header's checksum is wrong"));
    TRY(parse_octal(size, 12, &header_p->size));
    /* GNU's own format ("ustar  ") keeps other things where ustar has its prefix. */
    if (memcmp(magic, "ustar\0", 6) == 0)
        prefix_length = (int)strnlen((const char *)prefix, PREFIX);
    name_length = (int)strnlen((const char *)name, NAME);
    if (prefix_length > 0) {
        memcpy(header_p->entry, prefix, (size_t)prefix_length);
        header_p->entry[prefix_length++] = '/';
    }
    memcpy(header_p->entry + prefix_length, name, (size_t)name_length);
out:
    return st;
}

static base_status read_body(struct data_input in, uint64_t size, const struct data_sink *sink,
                             bool wanted)
{
    base_status st = BASE_OK;
    uint64_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
    uint8_t chunk[CHUNK];

    for (uint64_t done = 0; done < padded;) {
        size_t count = padded - done < CHUNK ? (size_t)(padded - done) : CHUNK;
        size_t useful = 0;

        TRY(read_all(in, chunk, count));
        if (done < size)
            useful = size - done < count ? (size_t)(size - done) : count;
        if (wanted && useful > 0)
            TRY(sink->bytes(sink->state, chunk, useful));
        done += count;
    }
out:
    return st;
}

/* Up to the end of the stream, so that the trailer of the compression is checked too. */
static base_status drain(struct data_input in)
{
    uint8_t chunk[CHUNK];
    size_t got = 0;
    base_status st;

    do
        st = in.read(in.state, chunk, sizeof chunk, &got);
    while (st == BASE_OK && got > 0);
    return st;
}

base_status data_tar_read(struct data_input in, const struct data_sink *sink)
{
    base_status st = BASE_OK;
    static const uint8_t zeros[BLOCK];

    for (;;) {
        uint8_t block[BLOCK];
        struct header header;
        bool regular, wanted = false;
        size_t got = 0;

        TRY(in.read(in.state, block, BLOCK, &got));
        if (got == 0)
            break;
        if (got < BLOCK)
            TRY(base_fail(BASE_ERR_DATA, "the tar archive ends too early"));
        if (memcmp(block, zeros, BLOCK) == 0) {
            TRY(drain(in));
            break;
        }
        TRY(parse_header(block, &header));
        TRY(data_entry_check(header.entry));
        regular = header.type == '0' || header.type == '\0';
        if (regular)
            TRY(sink->begin(sink->state, header.entry, &wanted));
        TRY(read_body(in, header.size, sink, wanted));
        if (wanted)
            TRY(sink->end(sink->state));
    }
out:
    return st;
}
