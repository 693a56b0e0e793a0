/* SPDX-License-Identifier: MIT
 *
 * A reader of zip archives in memory (APPNOTE 6.3): the central directory says what there is, each
 * wanted entry is inflated, its length and CRC-32 checked. Not read: zip64, encryption, archives
 * in several parts; a wanted entry that needs one is an error. Writes no file itself. One thread.
 */
#include <string.h>

#include "data/data_get_private.h"

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    END_SIZE = 22,
    COMMENT = 65535,
    ENTRY = 512,
    CHUNK = 64 * 1024,
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1,
};

/* The fuzzer's mutations would all end at the checksum. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { CHECKED = 0 };
#else
enum { CHECKED = 1 };
#endif

struct entry {
    char name[ENTRY];
    uint16_t flags, method;
    uint32_t crc, packed, size, offset;
};

static base_status le16(struct base_cursor *c, uint16_t *value_p)
{
    const uint8_t *bytes = NULL;
    base_status st = base_cursor_skip(c, 2, &bytes);

    *value_p = 0;
    if (st == BASE_OK)
        *value_p = (uint16_t)(bytes[0] | bytes[1] << 8);
    return st;
}

/* The part of the archive from `offset` on. */
static base_status cursor_at(struct base_cursor all, size_t offset, struct base_cursor *c_p)
{
    const uint8_t *skipped = NULL;

    *c_p = all;
    return base_cursor_skip(c_p, offset, &skipped);
}

/* The end record is the last thing, only its own comment follows it: found by looking backwards. */
static base_status find_end(struct base_cursor all, uint16_t *entries_p, uint32_t *offset_p)
{
    base_status st = BASE_OK;
    size_t count = base_cursor_left(&all);
    size_t lowest = count > END_SIZE + COMMENT ? count - END_SIZE - COMMENT : 0;

    *entries_p = 0;
    *offset_p = 0;
    for (size_t at = count < END_SIZE ? 0 : count - END_SIZE + 1; at-- > lowest;) {
        struct base_cursor c;
        const uint8_t *skipped;
        uint32_t magic;
        uint16_t comment;

        TRY(cursor_at(all, at, &c));
        TRY(base_cursor_le32(&c, &magic));
        if (magic != END)
            continue;
        TRY(base_cursor_skip(&c, 6, &skipped)); /* part numbers, entries in this part */
        TRY(le16(&c, entries_p));
        TRY(base_cursor_skip(&c, 4, &skipped)); /* size of the directory */
        TRY(base_cursor_le32(&c, offset_p));
        TRY(le16(&c, &comment));
        if (comment == base_cursor_left(&c))
            goto out;
    }
    TRY(base_fail(BASE_ERR_DATA, "it is not a whole zip archive (no end record)"));
out:
    return st;
}

static base_status read_central(struct base_cursor *c, struct entry *entry_p)
{
    base_status st = BASE_OK;
    const uint8_t *name, *skipped;
    uint16_t name_length, extra, comment;
    uint32_t magic;

    *entry_p = (struct entry){0};
    TRY(base_cursor_le32(c, &magic));
    if (magic != CENTRAL)
        TRY(base_fail(BASE_ERR_DATA, "the zip directory is damaged"));
    TRY(base_cursor_skip(c, 4, &skipped)); /* versions */
    TRY(le16(c, &entry_p->flags));
    TRY(le16(c, &entry_p->method));
    TRY(base_cursor_skip(c, 4, &skipped)); /* time */
    TRY(base_cursor_le32(c, &entry_p->crc));
    TRY(base_cursor_le32(c, &entry_p->packed));
    TRY(base_cursor_le32(c, &entry_p->size));
    TRY(le16(c, &name_length));
    TRY(le16(c, &extra));
    TRY(le16(c, &comment));
    TRY(base_cursor_skip(c, 8, &skipped)); /* part, attributes */
    TRY(base_cursor_le32(c, &entry_p->offset));
    TRY(base_cursor_skip(c, name_length, &name));
    TRY(base_cursor_skip(c, (size_t)extra + comment, &skipped));
    if (name_length >= ENTRY || memchr(name, '\0', name_length) != NULL)
        TRY(base_fail(BASE_ERR_DATA, "the zip directory has a name that cannot be used"));
    memcpy(entry_p->name, name, name_length);
out:
    return st;
}

/* The packed bytes of an entry, after its local header. */
static base_status find_body(struct base_cursor all, const struct entry *entry,
                             struct base_cursor *body_p)
{
    base_status st = BASE_OK;
    struct base_cursor c;
    const uint8_t *bytes;
    uint32_t magic;
    uint16_t name_length, extra;

    *body_p = (struct base_cursor){0};
    if ((entry->flags & ENCRYPTED) != 0 || (entry->method != STORED && entry->method != DEFLATED) ||
        entry->packed == UINT32_MAX || entry->size == UINT32_MAX || entry->offset == UINT32_MAX)
        TRY(base_fail(BASE_ERR_DATA, "is encrypted, zip64 or packed in a way we do not read"));
    TRY(cursor_at(all, entry->offset, &c));
    TRY(base_cursor_le32(&c, &magic));
    if (magic != LOCAL)
        TRY(base_fail(BASE_ERR_DATA, "its header is damaged"));
    TRY(base_cursor_skip(&c, 22, &bytes));
    TRY(le16(&c, &name_length));
    TRY(le16(&c, &extra));
    TRY(base_cursor_skip(&c, (size_t)name_length + extra, &bytes));
    TRY(base_cursor_skip(&c, entry->packed, &bytes));
    *body_p = base_cursor_of(bytes, entry->packed);
out:
    return st;
}

static base_status read_stored(void *state, uint8_t *bytes, size_t want, size_t *got_p)
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

static base_status copy_body(struct data_input in, const struct entry *entry,
                             const struct data_sink *sink)
{
    base_status st = BASE_OK;
    uint8_t chunk[CHUNK];
    uint64_t size = 0;
    uLong crc = crc32(0, NULL, 0);
    size_t got;

    do {
        TRY(in.read(in.state, chunk, sizeof chunk, &got));
        crc = crc32(crc, chunk, (uInt)got);
        size += got;
        if (got > 0)
            TRY(sink->bytes(sink->state, chunk, got));
    } while (got > 0);
    if (size != entry->size || (crc != entry->crc && CHECKED))
        TRY(base_fail(BASE_ERR_DATA, "is damaged (its length or CRC-32 is not what it says)"));
    TRY(sink->end(sink->state));
out:
    return st;
}

static base_status read_entry(struct base_cursor all, const struct entry *entry,
                              const struct data_sink *sink)
{
    base_status st = BASE_OK;
    struct base_cursor body;
    struct data_inflate inflate;

    TRY(find_body(all, entry, &body));
    if (entry->method == STORED) {
        TRY(copy_body((struct data_input){&body, read_stored}, entry, sink));
    } else {
        TRY(data_inflate_init(&inflate, DATA_INFLATE_RAW, body, entry->size));
        st = copy_body((struct data_input){&inflate, data_inflate_read}, entry, sink);
        data_inflate_fini(&inflate);
    }
out:
    return base_prefix(st, "the entry %s", entry->name);
}

base_status data_zip_read(const void *bytes, size_t count, uint64_t limit,
                          const struct data_sink *sink)
{
    base_status st = BASE_OK;
    struct base_cursor all = base_cursor_of(bytes, count), directory;
    uint16_t entries;
    uint32_t offset;

    TRY(find_end(all, &entries, &offset));
    TRY(cursor_at(all, offset, &directory));
    for (uint16_t i = 0; i < entries; i++) {
        struct entry entry;
        bool wanted = false;

        TRY(read_central(&directory, &entry));
        TRY(data_entry_check(entry.name));
        TRY(sink->begin(sink->state, entry.name, &wanted));
        if (!wanted)
            continue;
        if (entry.size > limit)
            TRY(base_fail(BASE_ERR_DATA, "it unpacks to more bytes than allowed (%s)", entry.name));
        limit -= entry.size;
        TRY(read_entry(all, &entry, sink));
    }
out:
    return st;
}
