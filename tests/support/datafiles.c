/* SPDX-License-Identifier: MIT */
#include "support/datafiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"

char *support_scratch(void)
{
    const char *parent = getenv("TMPDIR");
    char *folder = base_format("%s/paceline-XXXXXX", parent != NULL ? parent : "/tmp");

    assert_non_null(mkdtemp(folder));
    return folder;
}

void support_scratch_free(char *folder)
{
    assert_int_equal(base_remove_tree(folder), BASE_OK);
    base_free(folder);
}

void support_write(const char *folder, const char *name, const void *bytes, size_t count)
{
    char *path = base_format("%s/%s", folder, name), *slash = strrchr(path, '/');

    *slash = '\0';
    assert_int_equal(base_make_dirs(path), BASE_OK);
    *slash = '/';
    assert_int_equal(base_file_replace(path, bytes, count), BASE_OK);
    base_free(path);
}

size_t support_gzip(const void *bytes, size_t count, uint8_t **packed_p)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)count};
    size_t room = count + count / 100 + 1024;

    *packed_p = base_calloc(room, 1);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = *packed_p;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return (size_t)z.total_out;
}

void support_write_gzip(const char *folder, const char *name, const void *bytes, size_t count)
{
    uint8_t *packed = NULL;
    size_t size = support_gzip(bytes, count, &packed);

    support_write(folder, name, packed, size);
    base_free(packed);
}

static uint8_t *put_be32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
    return at + 4;
}

size_t support_idx_images(uint32_t count, uint32_t height, uint32_t width, uint8_t **bytes_p)
{
    size_t plane = (size_t)height * width, size = 16 + count * plane;
    uint8_t *at = base_calloc(size, 1);

    *bytes_p = at;
    at = put_be32(at, 0x803);
    at = put_be32(at, count);
    at = put_be32(at, height);
    at = put_be32(at, width);
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < plane; k++)
            *at++ = (uint8_t)(i * 7 + k);
    return size;
}

size_t support_idx_labels(uint32_t count, uint32_t classes, uint8_t **bytes_p)
{
    uint8_t *at = base_calloc(8 + (size_t)count, 1);

    *bytes_p = at;
    at = put_be32(at, 0x801);
    at = put_be32(at, count);
    for (uint32_t i = 0; i < count; i++)
        *at++ = (uint8_t)(i % classes);
    return 8 + (size_t)count;
}

void support_idx_set(const char *folder, uint32_t train, uint32_t test)
{
    uint8_t *bytes = NULL;
    size_t size = support_idx_images(train, 5, 4, &bytes);

    support_write(folder, "train-images-idx3-ubyte", bytes, size);
    base_free(bytes);
    size = support_idx_labels(train, 10, &bytes);
    support_write(folder, "train-labels-idx1-ubyte", bytes, size);
    base_free(bytes);
    size = support_idx_images(test, 5, 4, &bytes);
    support_write(folder, "t10k-images-idx3-ubyte", bytes, size);
    base_free(bytes);
    size = support_idx_labels(test, 10, &bytes);
    support_write(folder, "t10k-labels-idx1-ubyte", bytes, size);
    base_free(bytes);
}
