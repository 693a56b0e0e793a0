/* SPDX-License-Identifier: MIT */
#include "support/archives.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"

enum { BLOCK = 512 };

void test_tar_add(struct base_str *tar, const char *name, char type, const char *bytes,
                  size_t count)
{
    static const char zeros[BLOCK];
    char block[BLOCK] = {0};
    unsigned sum = 0;

    memcpy(block, name, strnlen(name, 100));
    snprintf(block + 100, 8, "%07o", 0644);
    snprintf(block + 124, 12, "%011zo", count);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257, "ustar", 6);
    memcpy(block + 263, "00", 2);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    base_str_append(tar, block, BLOCK);
    base_str_append(tar, bytes, count);
    base_str_append(tar, zeros, (BLOCK - count % BLOCK) % BLOCK);
}

void test_tar_end(struct base_str *tar)
{
    static const char zeros[2 * BLOCK];

    base_str_append(tar, zeros, sizeof zeros);
}

static void deflate_into(const char *bytes, size_t count, int window, struct base_str *out)
{
    size_t room = compressBound((uLong)count) + 64;
    char *packed = base_calloc(room, 1);
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes,
                  .avail_in = (uInt)count,
                  .next_out = (Bytef *)packed,
                  .avail_out = (uInt)room};

    deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    base_str_append(out, packed, z.total_out);
    deflateEnd(&z);
    base_free(packed);
}

void test_gzip(const char *bytes, size_t count, struct base_str *out)
{
    deflate_into(bytes, count, 15 + 16, out);
}

static void little(struct base_str *s, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        char byte = (char)(value >> 8 * i & 0xff);

        base_str_append(s, &byte, 1);
    }
}

/* What local header and directory share: version needed … length of the extra field. */
static void common(struct base_str *s, bool deflate, uint32_t crc, size_t packed, size_t size,
                   size_t name)
{
    little(s, 20, 2);
    little(s, 0, 2);
    little(s, deflate ? 8 : 0, 2);
    little(s, 0, 4);
    little(s, crc, 4);
    little(s, (uint32_t)packed, 4);
    little(s, (uint32_t)size, 4);
    little(s, (uint32_t)name, 2);
    little(s, 0, 2);
}

void test_zip_add(struct test_zip *zip, const char *name, const char *bytes, size_t count,
                  bool deflate)
{
    struct base_str packed = {0};
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)bytes, (uInt)count);
    size_t offset = zip->bytes.length, length = strlen(name);

    if (deflate)
        deflate_into(bytes, count, -15, &packed);
    else
        base_str_append(&packed, bytes, count);
    little(&zip->bytes, 0x04034b50, 4);
    common(&zip->bytes, deflate, crc, packed.length, count, length);
    base_str_append(&zip->bytes, name, length);
    base_str_append(&zip->bytes, packed.text, packed.length);
    little(&zip->directory, 0x02014b50, 4);
    little(&zip->directory, 20, 2);
    common(&zip->directory, deflate, crc, packed.length, count, length);
    little(&zip->directory, 0, 2); /* comment */
    little(&zip->directory, 0, 4); /* part, attributes inside */
    little(&zip->directory, 0, 4); /* attributes outside */
    little(&zip->directory, (uint32_t)offset, 4);
    base_str_append(&zip->directory, name, length);
    zip->entries++;
    base_str_fini(&packed);
}

void test_zip_end(struct test_zip *zip, const char *comment)
{
    size_t offset = zip->bytes.length, size = zip->directory.length;

    if (size > 0)
        base_str_append(&zip->bytes, zip->directory.text, size);
    little(&zip->bytes, 0x06054b50, 4);
    little(&zip->bytes, 0, 4);
    little(&zip->bytes, zip->entries, 2);
    little(&zip->bytes, zip->entries, 2);
    little(&zip->bytes, (uint32_t)size, 4);
    little(&zip->bytes, (uint32_t)offset, 4);
    little(&zip->bytes, (uint32_t)strlen(comment), 2);
    base_str_append(&zip->bytes, comment, strlen(comment));
}

void test_zip_fini(struct test_zip *zip)
{
    base_str_fini(&zip->bytes);
    base_str_fini(&zip->directory);
}
