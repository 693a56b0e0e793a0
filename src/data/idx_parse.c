/* SPDX-License-Identifier: MIT
 *
 * The bytes of idx files, plain or gzip: a big-endian header, then unsigned bytes. Knows memory
 * only; files are formats/idx.c's. A gzip file is unpacked to the size that its header gives and no
 * further, and not at all when that many bytes could not come from so few.
 */
#include <string.h>
#include <zlib.h>

#include "base/cursor.h"
#include "base/mem.h"
#include "data/data_private.h"

enum {
    MAGIC_IMAGES = 0x803,
    MAGIC_LABELS = 0x801,
    DEFLATE_RATIO = 1032 /* deflate never packs better */
};

static const size_t UNPACKED_LIMIT = (size_t)1 << 32;

bool data_idx_is_gzip(const void *bytes, size_t count)
{
    return count >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0;
}

/* The header alone; `size_p` is what the whole file must measure. */
static base_status parse_header(struct base_cursor *c, uint32_t *magic_p, struct data_idx *idx_p,
                                size_t *size_p)
{
    base_status st = BASE_OK;
    size_t start = base_cursor_left(c), body = 0;

    *idx_p = (struct data_idx){0};
    TRY(base_cursor_be32(c, magic_p));
    if (*magic_p != MAGIC_IMAGES && *magic_p != MAGIC_LABELS)
        TRY(base_fail(BASE_ERR_DATA, "not an idx file of images or labels (magic %#x)", *magic_p));
    TRY(base_cursor_be32(c, &idx_p->count));
    body = idx_p->count;
    if (*magic_p == MAGIC_IMAGES) {
        TRY(base_cursor_be32(c, &idx_p->height));
        TRY(base_cursor_be32(c, &idx_p->width));
        if (idx_p->height == 0 || idx_p->height > DATA_MAX_SIDE || idx_p->width == 0 ||
            idx_p->width > DATA_MAX_SIDE)
            TRY(base_fail(BASE_ERR_DATA, "images of %ux%u pixels; 1 to %d a side can be read",
                          idx_p->height, idx_p->width, DATA_MAX_SIDE));
        TRY(base_mul(body, (size_t)idx_p->height * idx_p->width, &body));
    }
    TRY(base_add(body, start - base_cursor_left(c), size_p));
out:
    return st;
}

static base_status parse(const void *bytes, size_t count, uint32_t wanted, const char *what,
                         struct data_idx *idx_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(bytes, count);
    uint32_t magic = 0;
    size_t size = 0;

    TRY(parse_header(&c, &magic, idx_p, &size));
    if (magic != wanted)
        TRY(base_fail(BASE_ERR_DATA, "holds %s, not %s (magic %#x instead of %#x)",
                      magic == MAGIC_IMAGES ? "images" : "labels", what, magic, wanted));
    if (size < count)
        TRY(base_fail(BASE_ERR_DATA, "%zu bytes too many for its %u %s", count - size, idx_p->count,
                      what));
    TRY(base_cursor_skip(&c, size - (count - base_cursor_left(&c)), &idx_p->values));
out:
    return st;
}

base_status data_idx_images(const void *bytes, size_t count, struct data_idx *images_p)
{
    return parse(bytes, count, MAGIC_IMAGES, "images", images_p);
}

base_status data_idx_labels(const void *bytes, size_t count, struct data_idx *labels_p)
{
    return parse(bytes, count, MAGIC_LABELS, "labels", labels_p);
}

/* Unpacks exactly `size` bytes. */
static base_status inflate_some(z_stream *z, uint8_t *to, size_t size)
{
    z->next_out = to;
    while (size > 0) {
        uInt step = size > (1u << 30) ? 1u << 30 : (uInt)size;
        int result;

        z->avail_out = step;
        result = inflate(z, Z_NO_FLUSH);
        size -= step - z->avail_out;
        if (size > 0 && (result == Z_STREAM_END || result == Z_BUF_ERROR))
            return base_fail(BASE_ERR_DATA,
                             "the gzip file ends too early: %zu bytes are missing "
                             "once unpacked",
                             size);
        if (result != Z_OK && result != Z_STREAM_END)
            return base_fail(BASE_ERR_DATA, "the gzip file is damaged (%s)",
                             z->msg != NULL ? z->msg : zError(result));
    }
    return BASE_OK;
}

/* After the last byte the stream must end, its checksum right, and the file with it. */
static base_status inflate_last(z_stream *z)
{
    uint8_t extra;
    int result;

    z->next_out = &extra;
    z->avail_out = 1;
    result = inflate(z, Z_NO_FLUSH);
    if (z->avail_out == 0)
        return base_fail(BASE_ERR_DATA, "has more bytes once unpacked than its header says");
    if (result != Z_STREAM_END)
        return base_fail(BASE_ERR_DATA, "the gzip file is damaged at its end (%s)",
                         z->msg != NULL ? z->msg : zError(result));
    if (z->avail_in > 0)
        return base_fail(BASE_ERR_DATA, "%u bytes too many after the end of the gzip file",
                         z->avail_in);
    return BASE_OK;
}

/* What a file with this header measures once unpacked, refused where that cannot be. */
static base_status unpacked_size(const uint8_t *header, size_t length, size_t packed,
                                 size_t *size_p)
{
    base_status st = BASE_OK;
    struct base_cursor c = base_cursor_of(header, length);
    struct data_idx idx;
    uint32_t magic = 0;

    TRY(parse_header(&c, &magic, &idx, size_p));
    if (*size_p > UNPACKED_LIMIT || *size_p / DEFLATE_RATIO > packed)
        TRY(base_fail(BASE_ERR_DATA, "claims %zu bytes once unpacked, too many for %zu packed ones",
                      *size_p, packed));
out:
    return st;
}

static base_status inflate_all(z_stream *z, uint8_t **idx_p, size_t *size_p)
{
    enum { LABELS_HEADER = 8, IMAGES_HEADER = 16 };
    base_status st = BASE_OK;
    uint8_t header[IMAGES_HEADER] = {0}, *idx = NULL;
    size_t length = LABELS_HEADER, size = 0, packed = z->avail_in;

    TRY(inflate_some(z, header, LABELS_HEADER));
    if (header[3] == (MAGIC_IMAGES & 255)) {
        TRY(inflate_some(z, header + LABELS_HEADER, IMAGES_HEADER - LABELS_HEADER));
        length = IMAGES_HEADER;
    }
    TRY(unpacked_size(header, length, packed, &size));
    TRY(base_tensor(size, 1, "an unpacked idx file", &idx));
    memcpy(idx, header, length);
    TRY(inflate_some(z, idx + length, size - length));
    TRY(inflate_last(z));
    *idx_p = idx;
    *size_p = size;
    idx = NULL;
out:
    base_free(idx);
    return st;
}

base_status data_idx_inflate(const void *bytes, size_t count, uint8_t **idx_p, size_t *size_p)
{
    base_status st = BASE_OK;
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)count};

    *idx_p = NULL;
    *size_p = 0;
    if (count > UINT32_MAX)
        return base_fail(BASE_ERR_DATA, "too large for a gzip file; unpack it first");
    if (inflateInit2(&z, 15 + 16) != Z_OK) /* 16: gzip, not zlib */
        return base_fail(BASE_ERR_MEMORY, "no memory to unpack a gzip file");
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    inflateValidate(&z, 0);
#endif
    st = inflate_all(&z, idx_p, size_p);
    inflateEnd(&z);
    return st;
}

base_status data_idx_check(const struct data_idx *images, const struct data_idx *labels,
                           int classes, int32_t *numbers)
{
    if (images->count != labels->count)
        return base_fail(BASE_ERR_DATA, "%u images but %u labels", images->count, labels->count);
    for (uint32_t i = 0; i < labels->count; i++) {
        if (labels->values[i] >= classes)
            return base_fail(BASE_ERR_DATA,
                             "label %u of sample %u is out of range: there are %d classes, 0 to %d",
                             labels->values[i], i, classes, classes - 1);
        numbers[i] = labels->values[i];
    }
    return BASE_OK;
}
